//! A burst's thread: wait for a request, run it, answer. One request at a time, in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::{ErrorStatus, ExecutionOptions, ExecutionResult, Request, TimePoint};
use burst_wire::{
    DATUM_BYTES, Features, PacketKind, RequestExtras, ResultExtras, ResultPacket, SlotRequest,
    decode_request, packet_datums,
};
use fmq::{Consumer, Deadline, Producer, QueueError};

use super::end_reason::EndReason;
use super::executor::Runner;
use super::idle_monitor::IdleMonitor;
use super::memories::BurstMemories;
use super::queues::QueueEnds;
use super::wake_coalescer::WakeCoalescer;
use crate::execution::finish;
use crate::metrics::BurstCounts;
use crate::panics::catch_panic;
use crate::prepared::PreparedEntry;

/// How long a client may leave its result queue without room for an answer. A client that keeps to
/// the protocol has no more requests under way than there is room for their results.
const RESULT_PATIENCE: Duration = Duration::from_secs(5);

/// Everything a burst's thread needs; its storage is used again for every request.
pub(super) struct Worker {
    memories: BurstMemories,
    requests: Consumer,
    results: Producer,
    entry: Arc<PreparedEntry>,
    runner: Runner,
    features: Features,
    counts: BurstCounts,
    idle: IdleMonitor,
    wakes: WakeCoalescer,
    packet: Vec<u8>,
    decoded: SlotRequest,
    request: Request,
    result: ExecutionResult,
}

impl Worker {
    pub(super) fn new(
        memories: BurstMemories,
        QueueEnds { requests, results }: QueueEnds,
        (entry, runner): (Arc<PreparedEntry>, Runner),
        features: Features,
        counts: BurstCounts,
        idle: IdleMonitor,
    ) -> Self {
        Worker {
            memories,
            requests,
            results,
            entry,
            runner,
            features,
            counts,
            idle,
            wakes: WakeCoalescer::default(),
            packet: Vec::new(),
            decoded: SlotRequest::default(),
            request: Request::default(),
            result: ExecutionResult::of(ErrorStatus::GeneralFailure),
        }
    }

    /// Serves requests until the burst ends. Where the client did not close it, tells the client why.
    pub(super) fn run(mut self) {
        let reason = loop {
            if let Err(reason) = self.serve_one() {
                break reason;
            }
        };
        let Some(given_up) = reason.given_up() else { return };
        self.counts.given_up(given_up);
        let burst = self.memories.number();
        tracing::warn!(burst, %reason, "burst given up");
        // Closing wakes a client that waits on the result queue; the message says why.
        self.results.closer().close();
        self.requests.closer().close();
        self.memories.link().tell_burst_ended(burst, &reason.to_string());
    }

    fn serve_one(&mut self) -> Result<(), EndReason> {
        let Worker { idle, requests, runner, counts, .. } = self;
        let available = idle.next_request(requests, runner, counts)?;
        let arrived = Instant::now();
        let datums = self.next_packet(available)?;
        self.copy_packet(datums)?;
        let extras = self.execute(arrived)?;
        self.reply(extras)?;
        self.wake_client(arrived)?;
        self.counts.answered_after(self.result.status, arrived, extras.in_driver_ns);
        self.requests.release_quiet();
        // The client may sleep until there is room: its next request may not have fitted beside this one.
        Ok(self.requests.wake()?)
    }

    /// How many of the available datums are the next packet: all, unless several packets may lie there.
    fn next_packet(&mut self, available: usize) -> Result<usize, EndReason> {
        if !self.features.contains(Features::PIPELINING) {
            return Ok(available);
        }
        let mut first = [0; DATUM_BYTES];
        self.requests.peek(1)?.copy_out(0, &mut first)?;
        // The packet is copied as a whole afterwards. Should the client have changed its length by
        // then, decoding finds it malformed.
        packet_datums(PacketKind::Request, &first, available).map_err(EndReason::Framing)
    }

    /// Wakes the client if it sleeps; a little later where its next result follows at once.
    fn wake_client(&mut self, arrived: Instant) -> Result<(), EndReason> {
        if self.features.contains(Features::PIPELINING) {
            let queued = self.requests.available_to_read()? > 0;
            if queued && !self.wakes.is_due(queued, arrived.elapsed()) {
                return Ok(());
            }
        }
        Ok(self.results.wake()?)
    }

    /// Copies a packet out of the queue, once, before any of it is looked at.
    fn copy_packet(&mut self, datums: usize) -> Result<(), EndReason> {
        self.packet.resize(datums * DATUM_BYTES, 0);
        self.requests.read_deferred(&mut self.packet)?;
        // Giving room back writes to a cache line that the client reads, so the worker does it after
        // the answer is out, unless the next packet might not fit beside this one.
        if datums * 2 > self.requests.capacity() {
            self.requests.release()?;
        }
        Ok(())
    }

    /// Runs the packet's request; whatever is wrong with it becomes the result's status.
    fn execute(&mut self, arrived: Instant) -> Result<ResultExtras, EndReason> {
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
            let Worker { runner, request, decoded, result, counts, .. } = self;
            counts.executing();
            if catch_panic(|| runner.run(request, &decoded.slots, &options, result)).is_err() {
                self.result.reset(ErrorStatus::GeneralFailure);
                self.reply(ResultExtras::default())?;
                self.results.wake()?;
                return Err(EndReason::Panicked);
            }
        }
        self.request.pools.clear(); // unmaps the memory of a slot that was freed meanwhile
        let (outputs, measure) = (self.request.outputs.len(), self.decoded.measure_timing);
        let in_driver_ns = finish(&mut self.result, outputs, measure, arrived);
        Ok(ResultExtras { in_driver_ns, on_device_ns: None, id: self.decoded.extras.id })
    }

    /// Makes a request of the packet: decodes it, resolves its slots, checks it against the model.
    fn prepare_request(&mut self) -> Result<(), ErrorStatus> {
        self.decoded.extras = RequestExtras::default(); // a malformed packet may set none
        decode_request(&self.packet, self.features, &mut self.decoded).map_err(|error| {
            tracing::debug!(burst = self.memories.number(), %error, "request refused");
            self.counts.malformed();
            error.status()
        })?;
        // Both sides keep storage for the next request.
        std::mem::swap(&mut self.request.inputs, &mut self.decoded.inputs);
        std::mem::swap(&mut self.request.outputs, &mut self.decoded.outputs);
        self.memories.resolve(&self.decoded.slots, &mut self.request.pools)?;
        self.entry.check(&self.request).map_err(|error| {
            self.request.pools.clear();
            tracing::debug!(burst = self.memories.number(), %error, "request refused");
            error.status()
        })
    }

    /// Puts the result into its queue; one that does not fit there becomes a failure.
    fn reply(&mut self, extras: ResultExtras) -> Result<(), EndReason> {
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
fn send_packet(results: &mut Producer, packet: &[u8], datums: usize) -> Result<(), EndReason> {
    match results.write_quiet(packet) {
        Err(QueueError::Full { .. }) => {
            results.wake()?; // it may sleep although there are results: see `WakeCoalescer`
            match results.wait(datums, Deadline::after(RESULT_PATIENCE)) {
                Err(QueueError::Timeout) => return Err(EndReason::ResultsNotTaken),
                other => other?,
            };
            results.write_quiet(packet)?;
        }
        written => written?,
    }
    Ok(())
}
