//! One execution over a burst: memories to slots, encode into the ring, publish, wake, wait, copy
//! out, decode.

use std::time::Duration;

use burst_hal::{ErrorStatus, ExecutionOptions, ExecutionResult, Request, RequestPool};
use burst_wire::{
    DATUM_BYTES, Features, RequestExtras, RequestPacket, ResultExtras, WireError, decode_result,
};
use fmq::{Deadline, QueueError};

use crate::{Burst, ClientError};

/// Storage that is used again for every execution.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) result: ExecutionResult,
    pub(crate) driver_time: Option<Duration>,
    pub(crate) fell_back: bool,
    slots: Vec<i32>,
    packet: Vec<u8>,
    /// A request is on its way whose result was not waited for to the end.
    outstanding: bool,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch {
            result: ExecutionResult::of(ErrorStatus::GeneralFailure),
            driver_time: None,
            fell_back: false,
            slots: Vec::new(),
            packet: Vec::new(),
            outstanding: false,
        }
    }
}

/// What became of sending a request.
enum Sent {
    /// It is on its way.
    Yes,
    /// A burst cannot carry it.
    DoesNotFit,
}

impl Burst {
    /// One execution; its result is in the scratch.
    pub(crate) fn run(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        self.model.link().check_here()?;
        self.scratch.driver_time = None;
        self.scratch.fell_back = false;
        if self.scratch.outstanding {
            self.receive(deadline)?; // the late result of the request before; nobody wants it
        }
        match self.send(request, options, deadline)? {
            Sent::DoesNotFit => self.fall_back(request, options, deadline),
            Sent::Yes => {
                self.scratch.outstanding = true;
                self.receive(deadline)?;
                self.decode(request.outputs.len(), options.measure_timing);
                Ok(())
            }
        }
    }

    fn send(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        deadline: Deadline,
    ) -> Result<Sent, ClientError> {
        let Some(extras) = self.extras(options) else { return Ok(Sent::DoesNotFit) };
        if !self.find_slots(request, deadline)? {
            return Ok(Sent::DoesNotFit);
        }
        let packet = RequestPacket {
            inputs: &request.inputs,
            outputs: &request.outputs,
            slots: &self.scratch.slots,
            measure_timing: options.measure_timing,
            extras,
        };
        let datums = packet.datums()? as usize;
        if datums > self.requests.capacity() {
            return Ok(Sent::DoesNotFit);
        }
        packet.encode_into(&mut self.scratch.packet)?;
        let written = write(&mut self.requests, &self.scratch.packet, datums, deadline);
        written.map_err(|error| self.explain(error.into()))?;
        Ok(Sent::Yes)
    }

    /// What goes beyond HAL 1.2; `None` where the burst cannot say it.
    fn extras(&self, options: &ExecutionOptions) -> Option<RequestExtras> {
        let ExecutionOptions { deadline, loop_timeout, .. } = *options;
        let has_any = deadline.is_some() || loop_timeout.is_some();
        (!has_any || self.features.contains(Features::DEADLINES))
            .then_some(RequestExtras { deadline, loop_timeout })
    }

    /// Slots of the request's pools; `false` where one cannot have any.
    fn find_slots(&mut self, request: &Request, deadline: Deadline) -> Result<bool, ClientError> {
        let mut slots = std::mem::take(&mut self.scratch.slots);
        slots.clear();
        let mut complete = true;
        for pool in &request.pools {
            let RequestPool::Memory(memory) = pool else {
                complete = false;
                break;
            };
            match self.slot_of(memory, deadline)? {
                Some(slot) => slots.push(slot),
                None => {
                    complete = false;
                    break;
                }
            }
        }
        self.scratch.slots = slots;
        Ok(complete)
    }

    /// Waits for a result and copies it out of the queue.
    fn receive(&mut self, deadline: Deadline) -> Result<(), ClientError> {
        let received = read(&mut self.results, &mut self.scratch.packet, deadline);
        received.map_err(|error| self.explain(error))?;
        self.scratch.outstanding = false;
        Ok(())
    }

    fn decode(&mut self, outputs: usize, measured: bool) {
        let Scratch { result, packet, driver_time, .. } = &mut self.scratch;
        match decode_result(packet, self.features, outputs, measured, result) {
            Ok(extras) => *driver_time = driver_time_of(result, extras),
            // The result is a general failure then, as it is for any HAL client.
            Err(error) => tracing::warn!(burst = self.number, %error, "malformed result"),
        }
    }

    /// The same request over the control socket (decision B6).
    fn fall_back(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        let executed = self.model.execute(request, options, deadline)?;
        self.scratch.result = executed.result;
        self.scratch.driver_time = executed.driver_time;
        self.scratch.fell_back = true;
        Ok(())
    }

    /// A queue that was closed says only that; the watcher knows why.
    fn explain(&self, error: QueueOrWire) -> ClientError {
        match error {
            QueueOrWire::Queue(QueueError::PeerDied) => self.model.link().why_closed(&self.watch),
            QueueOrWire::Queue(QueueError::Timeout) => ClientError::Timeout,
            QueueOrWire::Queue(error) => error.into(),
            QueueOrWire::Wire(error) => error.into(),
        }
    }
}

/// Why a packet could not be moved.
enum QueueOrWire {
    Queue(QueueError),
    Wire(WireError),
}

impl From<QueueError> for QueueOrWire {
    fn from(error: QueueError) -> Self {
        QueueOrWire::Queue(error)
    }
}

impl From<WireError> for QueueOrWire {
    fn from(error: WireError) -> Self {
        QueueOrWire::Wire(error)
    }
}

/// Writes a packet, and wakes the service if it sleeps.
fn write(
    requests: &mut fmq::Producer,
    packet: &[u8],
    datums: usize,
    deadline: Deadline,
) -> Result<(), QueueError> {
    match requests.write(packet) {
        Err(QueueError::Full { .. }) => {
            // The service gives the room of the last request back a moment after its answer.
            requests.wait(datums, deadline)?;
            requests.write(packet)?;
        }
        written => written?,
    }
    requests.wake()
}

/// Waits for a packet and copies it out, once, before any of it is looked at.
fn read(
    results: &mut fmq::Consumer,
    packet: &mut Vec<u8>,
    deadline: Deadline,
) -> Result<(), QueueOrWire> {
    let datums = results.wait(1, deadline)?;
    packet.resize(datums * DATUM_BYTES, 0);
    results.read(packet)?;
    Ok(results.wake()?) // the service may wait for room where the queue is short
}

fn driver_time_of(result: &ExecutionResult, extras: ResultExtras) -> Option<Duration> {
    let us = Some(result.timing.time_in_driver_us).filter(|us| *us != u64::MAX);
    extras.in_driver_ns.map(Duration::from_nanos).or(us.map(Duration::from_micros))
}
