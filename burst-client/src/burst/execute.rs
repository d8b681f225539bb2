//! Executions over a burst: memories to slots, encode, publish, wake; wait, copy out, decode.

use std::time::Duration;

use burst_hal::trace::{Marks, SpanKind};
use burst_hal::{ErrorStatus, ExecutionOptions, ExecutionResult, Pool, Request, RequestPool};
use burst_wire::{
    DATUM_BYTES, DecodedResult, Features, RequestEncoder, RequestExtras, RequestPacket,
    ResultDecoder, ResultExtras, WireError,
};
use fmq::{Deadline, QueueError};

use super::pipeline::{Entry, Holder};
use super::results::NoResult;
use super::{Burst, Ticket};
use crate::connection::Link;
use crate::waiting::Patience;
use crate::{ClientError, Executed};

/// Dimensions that room is kept for per output of a result under way.
const RANK_ROOM: usize = 8;
/// How often whoever waits at a queue looks whether it was called off: only the other end of a queue can wake it.
const CANCEL_LOOK: Duration = Duration::from_millis(10);
/// Datums of a result beside its outputs: packet information, two kinds of times, number.
const RESULT_FIXED: usize = 4;

/// Storage that is used again for every execution, and what the last one came to.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) result: DecodedResult,
    pub(crate) driver_time: Option<Duration>,
    pub(crate) fell_back: bool,
    slots: Vec<i32>,
    encoder: RequestEncoder,
    packet: Vec<u8>,
    decoder: ResultDecoder,
}

impl Scratch {
    /// For a burst with these additions to HAL 1.2.
    pub(crate) fn new(features: Features) -> Self {
        Scratch {
            result: DecodedResult::default(),
            driver_time: None,
            fell_back: false,
            slots: Vec::new(),
            encoder: RequestEncoder::new(features),
            packet: Vec::new(),
            decoder: ResultDecoder::new(features),
        }
    }
}

impl Entry {
    /// Holds what the request uses, for as long as no result has come.
    fn keep(&mut self, request: &Request, link: &Link) {
        for pool in &request.pools {
            match pool {
                RequestPool::Memory(memory) => self.pools.push(Pool::clone(memory)),
                RequestPool::Token(token) => self.buffers.extend(link.find_buffer(*token)),
            }
        }
    }
}

/// What became of sending a request.
enum Sent {
    /// It is on its way, with this number.
    Yes(u64),
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
        self.model.link().check_not_forked()?;
        let cancel = self.cancel.clone();
        let patience = Patience::by(cancel.as_ref(), deadline);
        patience.check()?;
        let Sent::Yes(number) = self.send(request, options, patience, Holder::Caller)? else {
            let Executed { result, driver_time } = self.fall_back(request, options, patience)?;
            self.scratch.result = result.into();
            self.scratch.driver_time = driver_time;
            self.scratch.fell_back = true;
            return Ok(());
        };
        while !self.pipeline.is_ready(number) {
            if let Err(error) = self.take_one(patience) {
                // Its result comes late, if at all, and is dropped; until then it uses its memories.
                if let Some(entry) = self.pipeline.abandon(number) {
                    entry.keep(request, self.model.link());
                }
                return Err(error);
            }
        }
        self.collect(number)
    }

    /// Sends a request and returns, without waiting for its result.
    ///
    /// At most [`depth`](Burst::depth) requests may be under way or have a result that was not
    /// [waited](Burst::wait) for. They are executed in order, one at a time. A request that the
    /// burst cannot carry is executed over the control socket before this returns, after all
    /// those before it.
    ///
    /// The request's inputs must stay as they are, and its outputs are in flux, until the result
    /// has come.
    ///
    /// # Errors
    /// [`ClientError::PipelineFull`] where tickets for all places are held: wait for one, or drop
    /// one. [`ClientError::Timeout`] where there is no room in the queues until `deadline`;
    /// otherwise as [`Burst::execute`]. Nothing was sent then.
    pub fn submit(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        deadline: Deadline,
    ) -> Result<Ticket, ClientError> {
        self.model.link().check_not_forked()?;
        let patience = deadline.into();
        if let Sent::DoesNotFit = self.send(request, options, patience, Holder::Ticket)? {
            let done = self.fall_back(request, options, patience)?;
            let entry = self.pipeline.sent(Holder::Ticket, 0);
            entry.result = done.result.into();
            entry.driver_time = done.driver_time;
            entry.fell_back = true;
            self.pipeline.mark_ready();
        }
        self.pipeline.ticket().ok_or(ClientError::UnknownTicket)
    }

    /// Waits for the result of a submitted request until `deadline`. Results come in the order of
    /// the requests; those of earlier tickets are kept for them.
    ///
    /// # Errors
    /// [`ClientError::Timeout`], after which the ticket still holds;
    /// [`ClientError::UnknownTicket`] for one of another burst, or waited for before; otherwise as
    /// [`Burst::execute`]. What the execution itself came to is in the result's status.
    pub fn wait(
        &mut self,
        ticket: &Ticket,
        deadline: Deadline,
    ) -> Result<&ExecutionResult, ClientError> {
        self.model.link().check_not_forked()?;
        let number = self.pipeline.number_of(ticket)?;
        while !self.pipeline.is_ready(number) {
            self.take_one(deadline.into())?;
        }
        self.collect(number)?;
        Ok(self.scratch.result.get())
    }

    /// The result of a submitted request, if it is there already. Never waits.
    ///
    /// # Errors
    /// As [`Burst::wait`], but for the time-out.
    pub fn try_wait(&mut self, ticket: &Ticket) -> Result<Option<&ExecutionResult>, ClientError> {
        self.model.link().check_not_forked()?;
        let number = self.pipeline.number_of(ticket)?;
        while !self.pipeline.is_ready(number) {
            match self.results.is_readable() {
                Ok(true) => self.take_one(Deadline::at_ns(0).into())?,
                Ok(false) if self.is_alive() => return Ok(None),
                Ok(false) => return Err(self.explain(QueueError::PeerDied.into())),
                Err(error) => return Err(self.explain(error)),
            }
        }
        self.collect(number)?;
        Ok(Some(self.scratch.result.get()))
    }

    /// Requests whose results are still to come.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.pipeline.outstanding()
    }

    /// The result of a request that is ready, to the scratch.
    fn collect(&mut self, number: u64) -> Result<(), ClientError> {
        let mut entry = self.pipeline.collect(number).ok_or(ClientError::UnknownTicket)?;
        std::mem::swap(&mut self.scratch.result, &mut entry.result);
        self.scratch.driver_time = entry.driver_time;
        self.scratch.fell_back = entry.fell_back;
        self.pipeline.reuse(entry);
        Ok(())
    }

    fn send(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        patience: Patience<'_>,
        holder: Holder,
    ) -> Result<Sent, ClientError> {
        while !self.pipeline.admit()? {
            self.take_one(patience)?; // the late result of a request whose caller gave up
        }
        let tracer = self.model.link().tracer();
        let mut marks = Marks::begin(tracer.as_deref());
        let Some(extras) = self.extras(options) else { return Ok(Sent::DoesNotFit) };
        if !self.find_slots(request, patience)? {
            return Ok(Sent::DoesNotFit);
        }
        let packet = RequestPacket {
            inputs: &request.inputs,
            outputs: &request.outputs,
            slots: &self.scratch.slots,
            measure_timing: options.measure_timing,
            extras,
        };
        let packet = self.scratch.encoder.encode(&packet)?;
        if packet.len() / DATUM_BYTES > self.requests.capacity() {
            return Ok(Sent::DoesNotFit);
        }
        let reserved = RESULT_FIXED + request.outputs.len() * (1 + RANK_ROOM);
        marks.mark(SpanKind::EncodeRequest);
        while !self.pipeline.has_room(reserved, self.result_capacity) {
            self.take_one(patience)?;
        }
        marks.skip();
        self.write(patience)?;
        self.scratch.encoder.sent();
        marks.mark(SpanKind::Publish);
        let entry = self.pipeline.sent(holder, reserved);
        entry.outputs = request.outputs.len();
        entry.measured = options.measure_timing;
        if holder == Holder::Ticket {
            entry.keep(request, self.model.link());
        }
        Ok(Sent::Yes(entry.number))
    }

    /// Writes the encoded request, and wakes the service if it sleeps.
    fn write(&mut self, patience: Patience<'_>) -> Result<(), ClientError> {
        loop {
            match self.requests.write_quiet(self.scratch.encoder.packet()) {
                Err(QueueError::Full { .. }) => {}
                Ok(()) => break,
                Err(error) => return Err(self.explain(error.into())),
            }
            if self.pipeline.outstanding() > 0 {
                // The service may wait for room itself; and it gives room back with each answer.
                self.take_one(patience)?;
            } else {
                // It gives the room of the last request back a moment after its answer.
                let datums = self.scratch.encoder.packet().len() / DATUM_BYTES;
                let requests = &mut self.requests;
                let waited = at_queue(patience, |until| Ok(requests.wait(datums, until)?));
                waited.map_err(|error| self.explain(error))?;
            }
        }
        self.requests.wake().map_err(|error| self.explain(error.into()))
    }

    /// What goes beyond HAL 1.2; `None` where the burst cannot say it.
    fn extras(&self, options: &ExecutionOptions) -> Option<RequestExtras> {
        let ExecutionOptions { deadline, loop_timeout, .. } = *options;
        let has_any = deadline.is_some() || loop_timeout.is_some();
        let pipelined = self.features.contains(Features::PIPELINING);
        let id = pipelined.then(|| self.pipeline.next_number());
        (!has_any || self.features.contains(Features::DEADLINES)).then_some(RequestExtras {
            deadline,
            loop_timeout,
            id,
        })
    }

    /// Slots of the request's pools; `false` where one cannot have any.
    fn find_slots(
        &mut self,
        request: &Request,
        patience: Patience<'_>,
    ) -> Result<bool, ClientError> {
        let mut slots = std::mem::take(&mut self.scratch.slots);
        slots.clear();
        let mut complete = true;
        for pool in &request.pools {
            let slot = match pool {
                RequestPool::Memory(memory) => self.slot_of(memory, patience)?,
                RequestPool::Token(token) => self.slot_of_buffer(*token, patience)?,
            };
            match slot {
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

    /// Waits for the next result and takes it to the request it belongs to.
    fn take_one(&mut self, patience: Patience<'_>) -> Result<(), ClientError> {
        let tracer = self.model.link().tracer();
        let mut marks = Marks::begin(tracer.as_deref());
        let (results, packet) = (&mut self.results, &mut self.scratch.packet);
        let received = at_queue(patience, |until| results.receive(packet, until));
        marks.mark(SpanKind::WaitForResult);
        received.map_err(|error| self.explain(error))?;
        let Some(entry) = self.pipeline.next_pending() else {
            return Err(self.explain(NoResult::Flood)); // nothing was asked
        };
        let Scratch { packet, decoder, .. } = &mut self.scratch;
        let decoded = decoder.decode(packet, entry.outputs, entry.measured, &mut entry.result);
        let extras = match decoded {
            Ok(extras) => extras,
            // The result is a general failure then, as it is for any HAL client.
            Err(error) => {
                tracing::warn!(burst = self.number, %error, "malformed result");
                ResultExtras::default()
            }
        };
        let result = entry.result.get();
        // A failure may be too short for its number; a success never is.
        let belongs = match extras.id {
            Some(id) => id == entry.number,
            None => {
                result.status != ErrorStatus::None || !self.features.contains(Features::PIPELINING)
            }
        };
        if !belongs {
            let error = WireError::Malformed { reason: "it answers another request" };
            return Err(self.explain(NoResult::Framing(error)));
        }
        entry.driver_time = driver_time_of(result, extras);
        self.pipeline.mark_ready();
        marks.mark(SpanKind::DecodeResult);
        Ok(())
    }

    /// Executes a request that the burst cannot carry over the control socket, after all those
    /// before it: the caller gets a result either way, and results stay in order.
    fn fall_back(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        patience: Patience<'_>,
    ) -> Result<Executed, ClientError> {
        while self.pipeline.outstanding() > 0 {
            self.take_one(patience)?;
        }
        self.model.execute(request, options, patience)
    }

    /// A queue that was closed says only that; the watcher knows why. Where packets cannot be told
    /// apart any more, the burst is over.
    fn explain(&self, error: NoResult) -> ClientError {
        let detail = match error {
            NoResult::Queue(QueueError::PeerDied) => {
                return self.model.link().why_closed(&self.watch);
            }
            NoResult::Queue(QueueError::Timeout) => return ClientError::Timeout,
            NoResult::Cancelled => return ClientError::Cancelled,
            NoResult::Queue(error) => return error.into(),
            NoResult::Framing(error) => format!("a result cannot be read: {error}"),
            NoResult::Flood => "results that nobody asked for".to_owned(),
        };
        self.watch.end(&detail);
        ClientError::BurstEnded { detail: detail.into() }
    }
}

/// Waits at a queue, which is done by `wait` with a deadline: for a while at a time where the work may be called off.
/// What is there by then is taken all the same.
fn at_queue<T>(
    patience: Patience<'_>,
    mut wait: impl FnMut(Deadline) -> Result<T, NoResult>,
) -> Result<T, NoResult> {
    let until = patience.until();
    if !patience.can_be_cancelled() {
        return wait(until);
    }
    loop {
        let look = Deadline::after(CANCEL_LOOK);
        match wait(look.min(until)) {
            Err(NoResult::Queue(QueueError::Timeout)) if patience.is_cancelled() => {
                return Err(NoResult::Cancelled);
            }
            Err(NoResult::Queue(QueueError::Timeout)) if look.min(until) != until => {}
            waited => return waited,
        }
    }
}

fn driver_time_of(result: &ExecutionResult, extras: ResultExtras) -> Option<Duration> {
    let us = Some(result.timing.time_in_driver_us).filter(|us| *us != u64::MAX);
    extras.in_driver_ns.map(Duration::from_nanos).or(us.map(Duration::from_micros))
}
