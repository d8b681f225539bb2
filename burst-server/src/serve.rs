//! A burst's thread: wait for a request, run it, answer. One request at a time, in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::validate::UnspecifiedOutputs;
use burst_hal::{Burst, ErrorStatus, ExecutionOptions, ExecutionResult, Request, TimePoint};
use burst_wire::control::{List, MEMORIES_MAX, ServerMessage, Text};
use burst_wire::{
    DATUM_BYTES, Features, ResultExtras, ResultPacket, SlotRequest, WireError, decode_request,
};
use fmq::{Consumer, Deadline, Producer, QueueError};

use crate::calls::guarded;
use crate::life::Life;
use crate::memory::ClientMemory;
use crate::memory_cache::MemoryCache;
use crate::model::PreparedEntry;
use crate::session::Session;

/// How long a client may take to name the memories of slots that it used without pushing them.
const MEMORIES_PATIENCE: Duration = Duration::from_secs(1);
/// How long a client may leave its result queue without room for an answer. It has at most one
/// request under way, so an honest one always has room.
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
    session: Arc<Session>,
    number: u32,
    requests: Consumer,
    results: Producer,
    entry: Arc<PreparedEntry>,
    burst: Box<dyn Burst>,
    cache: Arc<MemoryCache>,
    features: Features,
    life: Life,
    packet: Vec<u8>,
    decoded: SlotRequest,
    request: Request,
    result: ExecutionResult,
}

impl Worker {
    pub(crate) fn new(
        session: Arc<Session>,
        number: u32,
        (requests, results): (Consumer, Producer),
        (entry, burst): (Arc<PreparedEntry>, Box<dyn Burst>),
        cache: Arc<MemoryCache>,
        features: Features,
        life: Life,
    ) -> Self {
        Worker {
            session,
            number,
            requests,
            results,
            entry,
            burst,
            cache,
            features,
            life,
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
        tracing::warn!(burst = self.number, reason = %end, "burst given up");
        // The client may wait on the result queue: this wakes it, and the message says why.
        self.results.closer().close();
        self.requests.closer().close();
        let ended =
            ServerMessage::BurstEnded { burst: self.number, detail: Text::cut(&end.to_string()) };
        if let Err(error) = self.session.send(&ended, &[]) {
            tracing::debug!(burst = self.number, %error, "nobody to tell");
        }
    }

    fn serve_one(&mut self) -> Result<(), End> {
        let datums = self.life.next_request(&mut self.requests, &mut *self.burst)?;
        let arrived = Instant::now();
        self.copy_packet(datums)?;
        let extras = self.execute(arrived)?;
        self.reply(extras)?;
        self.life.answered(self.result.status, arrived, extras.in_driver_ns);
        self.requests.release();
        Ok(())
    }

    /// Copies everything there is out of the queue, once, before any of it is looked at.
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
            return Ok(ResultExtras::default());
        }
        let options = ExecutionOptions {
            measure_timing: self.decoded.measure_timing,
            deadline: self.decoded.extras.deadline,
            loop_timeout: self.decoded.extras.loop_timeout,
        };
        if options.deadline.is_some_and(TimePoint::has_passed) {
            self.result.reset(ErrorStatus::MissedDeadlineTransient);
        } else {
            let Worker { burst, request, result, life, .. } = self;
            life.executing();
            if guarded(|| burst.execute(request, &options, result)).is_err() {
                self.result.reset(ErrorStatus::GeneralFailure);
                self.reply(ResultExtras::default())?;
                return Err(End::Panicked);
            }
        }
        self.request.pools.clear(); // a freed slot's memory goes with its last execution
        let (outputs, measure) = (self.request.outputs.len(), self.decoded.measure_timing);
        let in_driver_ns = finish(&mut self.result, outputs, measure, arrived);
        Ok(ResultExtras { in_driver_ns, on_device_ns: None })
    }

    /// Packet to request: decoded, slots resolved, found legal for the model.
    fn prepare_request(&mut self) -> Result<(), ErrorStatus> {
        decode_request(&self.packet, self.features, &mut self.decoded).map_err(|error| {
            tracing::debug!(burst = self.number, %error, "request refused");
            self.life.malformed();
            error.status()
        })?;
        // Both sides keep storage for the next request.
        std::mem::swap(&mut self.request.inputs, &mut self.decoded.inputs);
        std::mem::swap(&mut self.request.outputs, &mut self.decoded.outputs);
        self.resolve_slots()?;
        self.entry.rules.check(&self.request, UnspecifiedOutputs::Allowed).map_err(|error| {
            self.request.pools.clear();
            tracing::debug!(burst = self.number, %error, "request refused");
            error.status()
        })
    }

    fn resolve_slots(&mut self) -> Result<(), ErrorStatus> {
        let slots = &self.decoded.slots;
        if self.cache.resolve(slots, &mut self.request.pools).is_ok() {
            return Ok(());
        }
        self.request.pools.clear();
        self.ask_for_memories()?;
        self.cache.resolve(&self.decoded.slots, &mut self.request.pools).map_err(|slot| {
            self.request.pools.clear();
            tracing::debug!(burst = self.number, slot, "slot stays empty");
            ErrorStatus::InvalidArgument
        })
    }

    /// Asks the client for the memories of slots it has not pushed (callback `getMemories`).
    fn ask_for_memories(&self) -> Result<(), ErrorStatus> {
        let missing = self.cache.missing(&self.decoded.slots);
        for slots in missing.chunks(MEMORIES_MAX) {
            let burst = self.number;
            let memories = self.session.callbacks.ask(burst, MEMORIES_PATIENCE, |id| {
                let slots = List(slots.to_vec());
                self.session.send(&ServerMessage::GetMemories { id, burst, slots }, &[])
            })?;
            match ErrorStatus::from_code(memories.status) {
                Some(ErrorStatus::None) => {}
                Some(status) => return Err(status),
                None => return Err(ErrorStatus::GeneralFailure),
            }
            let counts = [memories.lengths.len(), memories.descriptors.len()];
            if counts != [slots.len(); 2] {
                return Err(ErrorStatus::GeneralFailure);
            }
            let given = memories.descriptors.into_iter().zip(memories.lengths);
            for (slot, (descriptor, length)) in slots.iter().zip(given) {
                // One that cannot be used leaves its slot empty: the execution then fails.
                let opened = ClientMemory::open(descriptor, length, &self.session.budgets)
                    .and_then(|memory| self.cache.insert(*slot, Arc::new(memory)));
                if let Err(error) = opened {
                    tracing::debug!(burst, slot, %error, "memory refused");
                }
            }
        }
        Ok(())
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

/// Writes a packet of so many datums, and wakes the client if it sleeps.
fn send_packet(results: &mut Producer, packet: &[u8], datums: usize) -> Result<(), End> {
    match results.write(packet) {
        Err(QueueError::Full { .. }) => {
            match results.wait(datums, Deadline::after(RESULT_PATIENCE)) {
                Err(QueueError::Timeout) => return Err(End::ResultsNotTaken),
                other => other?,
            };
            results.write(packet)?;
        }
        written => written?,
    }
    Ok(results.wake()?)
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
