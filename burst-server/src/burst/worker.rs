//! A burst's thread: wait for a request, run it, answer. One request at a time, in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::validate::UnspecifiedOutputs;
use burst_hal::{ErrorStatus, ExecutionOptions, ExecutionResult, Request, TimePoint};
use burst_wire::control::{ServerMessage, Text};
use burst_wire::{
    DATUM_BYTES, Features, PacketKind, RequestExtras, ResultExtras, ResultPacket, SlotRequest,
    WireError, decode_request, packet_datums,
};
use fmq::{Consumer, Deadline, Producer, QueueError};

use crate::BurstMemories;
use crate::burst::executor::Runner;
use crate::burst::idle_monitor::Life;
use crate::burst::wake_coalescer::Wakes;
use crate::session::dispatch::guarded;
use crate::session::models::PreparedEntry;

/// How long a client may leave its result queue without room for an answer. An honest one has no
/// more requests under way than there is room for their results.
const RESULT_PATIENCE: Duration = Duration::from_secs(5);

/// Why a burst ended by itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    /// The session closed it.
    #[error("the burst was closed")]
    Closed,
    /// The client broke the queue.
    #[error("the queue failed: {0}")]
    Queue(QueueError),
    /// Several packets may lie in the queue, and nobody knows where this one ends.
    #[error("a request cannot be told from the next: {0}")]
    Framing(WireError),
    /// Nobody takes the results.
    #[error("the client did not take a result in time")]
    ResultsNotTaken,
    /// The driver panicked; whatever state it left behind is not used again.
    #[error("the driver failed inside (it panicked)")]
    Panicked,
}

impl From<QueueError> for End {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::PeerDied => End::Closed,
            error => End::Queue(error),
        }
    }
}

impl From<WireError> for End {
    fn from(_: WireError) -> Self {
        // Only a result of 2^32 datums cannot be encoded, and that fits no queue.
        End::Queue(QueueError::TooLarge { wanted: u64::MAX, limit: 0 })
    }
}

/// Everything a burst's thread needs; its storage is used again for every request.
pub(crate) struct Worker {
    memories: BurstMemories,
    requests: Consumer,
    results: Producer,
    entry: Arc<PreparedEntry>,
    runner: Runner,
    features: Features,
    life: Life,
    wakes: Wakes,
    packet: Vec<u8>,
    decoded: SlotRequest,
    request: Request,
    result: ExecutionResult,
}

impl Worker {
    pub(crate) fn new(
        memories: BurstMemories,
        (requests, results): (Consumer, Producer),
        (entry, runner): (Arc<PreparedEntry>, Runner),
        features: Features,
        life: Life,
    ) -> Self {
        Worker {
            memories,
            requests,
            results,
            entry,
            runner,
            features,
            life,
            wakes: Wakes::default(),
            packet: Vec::new(),
            decoded: SlotRequest::default(),
            request: Request::default(),
            result: ExecutionResult::of(ErrorStatus::GeneralFailure),
        }
    }

    /// Serves requests until the burst ends.
    pub(crate) fn run(mut self) {
        let end = loop {
            if let Err(end) = self.serve_one() {
                break end;
            }
        };
        if matches!(end, End::Closed) {
            return;
        }
        self.life.given_up(&end);
        let burst = self.memories.number;
        tracing::warn!(burst, reason = %end, "burst given up");
        // The client may wait on the result queue: this wakes it, and the message says why.
        self.results.closer().close();
        self.requests.closer().close();
        let ended = ServerMessage::BurstEnded { burst, detail: Text::cut(&end.to_string()) };
        if let Err(error) = self.memories.session.send(&ended, &[]) {
            tracing::debug!(burst, %error, "nobody to tell");
        }
    }

    fn serve_one(&mut self) -> Result<(), End> {
        let available = self.life.next_request(&mut self.requests, &mut self.runner)?;
        let arrived = Instant::now();
        let datums = self.next_packet(available)?;
        self.copy_packet(datums)?;
        let extras = self.execute(arrived)?;
        self.reply(extras)?;
        self.wake_client(arrived)?;
        self.life.counts().answered_after(self.result.status, arrived, extras.in_driver_ns);
        self.requests.release();
        // A client whose next request did not fit beside this one may sleep until there is room.
        Ok(self.requests.wake()?)
    }

    /// How much of what is there is the next packet: everything, unless several may be there.
    fn next_packet(&mut self, available: usize) -> Result<usize, End> {
        if !self.features.contains(Features::PIPELINING) {
            return Ok(available);
        }
        let mut first = [0; DATUM_BYTES];
        self.requests.peek(1)?.copy_out(0, &mut first)?;
        // The packet is copied as a whole afterwards; should it say another length by then, it is
        // malformed like any other.
        packet_datums(PacketKind::Request, &first, available).map_err(End::Framing)
    }

    /// Wakes the client if it sleeps; a little later where its next result follows at once.
    fn wake_client(&mut self, arrived: Instant) -> Result<(), End> {
        if self.features.contains(Features::PIPELINING) {
            let queued = self.requests.available_to_read()? > 0;
            if queued && !self.wakes.is_due(queued, arrived.elapsed()) {
                return Ok(());
            }
        }
        Ok(self.results.wake()?)
    }

    /// Copies a packet out of the queue, once, before any of it is looked at.
    fn copy_packet(&mut self, datums: usize) -> Result<(), End> {
        self.packet.resize(datums * DATUM_BYTES, 0);
        self.requests.read_deferred(&mut self.packet)?;
        // Giving room back touches a cache line of the client's, so it is put off until the
        // answer is out; unless the next packet might not fit beside this one.
        if datums * 2 > self.requests.capacity() {
            self.requests.release();
            self.requests.wake()?;
        }
        Ok(())
    }

    /// Runs what the packet asks for; whatever is wrong with it becomes the result's status.
    fn execute(&mut self, arrived: Instant) -> Result<ResultExtras, End> {
        if let Err(status) = self.prepare_request() {
            self.result.reset(status);
            let id = self.decoded.extras.id;
            return Ok(ResultExtras { id, ..ResultExtras::default() });
        }
        let options = ExecutionOptions {
            measure_timing: self.decoded.measure_timing,
            deadline: self.decoded.extras.deadline,
            loop_timeout: self.decoded.extras.loop_timeout,
        };
        if options.deadline.is_some_and(TimePoint::has_passed) {
            self.result.reset(ErrorStatus::MissedDeadlineTransient);
        } else {
            let Worker { runner, request, decoded, result, life, .. } = self;
            life.counts().executing();
            if guarded(|| runner.run(request, &decoded.slots, &options, result)).is_err() {
                self.result.reset(ErrorStatus::GeneralFailure);
                self.reply(ResultExtras::default())?;
                self.results.wake()?;
                return Err(End::Panicked);
            }
        }
        self.request.pools.clear(); // a freed slot's memory goes with its last execution
        let (outputs, measure) = (self.request.outputs.len(), self.decoded.measure_timing);
        let in_driver_ns = finish(&mut self.result, outputs, measure, arrived);
        Ok(ResultExtras { in_driver_ns, on_device_ns: None, id: self.decoded.extras.id })
    }

    /// Packet to request: decoded, slots resolved, found legal for the model.
    fn prepare_request(&mut self) -> Result<(), ErrorStatus> {
        self.decoded.extras = RequestExtras::default(); // a malformed packet may leave the last one's
        decode_request(&self.packet, self.features, &mut self.decoded).map_err(|error| {
            tracing::debug!(burst = self.memories.number, %error, "request refused");
            self.life.counts().malformed();
            error.status()
        })?;
        // Both sides keep storage for the next request.
        std::mem::swap(&mut self.request.inputs, &mut self.decoded.inputs);
        std::mem::swap(&mut self.request.outputs, &mut self.decoded.outputs);
        self.memories.resolve(&self.decoded.slots, &mut self.request.pools)?;
        self.entry.rules.check(&self.request, UnspecifiedOutputs::Allowed).map_err(|error| {
            self.request.pools.clear();
            tracing::debug!(burst = self.memories.number, %error, "request refused");
            error.status()
        })
    }

    /// Puts the result into its queue; one that does not fit there becomes a failure.
    fn reply(&mut self, extras: ResultExtras) -> Result<(), End> {
        let packet = ResultPacket::new(&self.result, extras, self.features);
        let fits = packet.datums().is_ok_and(|datums| {
            usize::try_from(datums).is_ok_and(|datums| datums <= self.results.capacity())
        });
        let packet = if fits {
            packet
        } else {
            ResultPacket::failure(ErrorStatus::GeneralFailure, self.features)
        };
        packet.encode_into(&mut self.packet)?; // the request in it was decoded long ago
        send_packet(&mut self.results, &self.packet, packet.datums()? as usize)
    }
}

/// Writes a packet of so many datums.
fn send_packet(results: &mut Producer, packet: &[u8], datums: usize) -> Result<(), End> {
    match results.write(packet) {
        Err(QueueError::Full { .. }) => {
            results.wake()?; // it may sleep although there are results: see `Wakes`
            match results.wait(datums, Deadline::after(RESULT_PATIENCE)) {
                Err(QueueError::Timeout) => return Err(End::ResultsNotTaken),
                other => other?,
            };
            results.write(packet)?;
        }
        written => written?,
    }
    Ok(())
}

/// Brings what a device answered into the form the HAL promises, and fills in how long the
/// execution took in the driver: from the request's arrival until now, never less than on the
/// device. Gives the same in nanoseconds.
pub(crate) fn finish(
    result: &mut ExecutionResult,
    outputs: usize,
    measure: bool,
    arrived: Instant,
) -> Option<u64> {
    if !matches!(result.status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize) {
        result.output_shapes.clear();
    }
    if let Err(error) = burst_wire::check_shapes(result, outputs) {
        tracing::error!(%error, "the driver broke its contract");
        result.reset(ErrorStatus::GeneralFailure);
    }
    if !measure || result.status != ErrorStatus::None {
        result.timing = burst_hal::Timing::UNAVAILABLE;
        return None;
    }
    let elapsed = arrived.elapsed();
    let whole_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX - 1);
    let device_us = Some(result.timing.time_on_device_us).filter(|us| *us != u64::MAX);
    result.timing.time_in_driver_us = whole_us.max(device_us.unwrap_or(0));
    u64::try_from(elapsed.as_nanos()).ok()
}
