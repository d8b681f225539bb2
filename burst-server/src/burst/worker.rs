//! A burst's thread: wait for a request, run it, answer. One request at a time, in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::trace::{Marks, SpanKind, Tracer, when_on};
use burst_hal::{ErrorStatus, ExecutionOptions, ExecutionResult, TimePoint, Turn};
use burst_wire::{
    DATUM_BYTES, Features, RequestDecoder, RequestExtras, ResultEncoder, ResultExtras, ResultPacket,
};
use fmq::{Consumer, Deadline, Producer, QueueError};

use super::end_reason::EndReason;
use super::ender::BurstEnder;
use super::executor::Runner;
use super::framing::Framing;
use super::idle_monitor::IdleMonitor;
use super::memories::BurstMemories;
use super::params::BurstParams;
use super::queues::QueueEnds;
use super::wake_coalescer::WakeCoalescer;
use crate::buffers::BufferEntry;
use crate::execution::finish;
use crate::metrics::BurstCounts;
use crate::panics::catch_panic;
use crate::prepared::{PreparedEntry, left_until};
use crate::scheduler::{NoToken, Run};

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
    run: Arc<Run>,
    features: Features,
    framing: Framing,
    counts: BurstCounts,
    idle: IdleMonitor,
    wakes: WakeCoalescer,
    tracer: Tracer,
    packet: Vec<u8>,
    decoder: RequestDecoder,
    encoder: ResultEncoder,
    /// The buffers that the request names.
    kept: Vec<Arc<BufferEntry>>,
    result: ExecutionResult,
}

impl Worker {
    pub(super) fn new(
        memories: BurstMemories,
        QueueEnds { requests, results }: QueueEnds,
        (entry, runner, run): (Arc<PreparedEntry>, Runner, Arc<Run>),
        params: BurstParams,
        counts: BurstCounts,
        idle: IdleMonitor,
    ) -> Self {
        let BurstParams { features, depth, .. } = params;
        let encoder = ResultEncoder::new(features, results.capacity());
        Worker {
            tracer: memories.link().tracer(),
            memories,
            requests,
            results,
            entry,
            runner,
            run,
            features,
            framing: Framing::new(features, depth),
            counts,
            idle,
            wakes: WakeCoalescer::default(),
            packet: Vec::new(),
            decoder: RequestDecoder::new(features),
            encoder,
            kept: Vec::new(),
            result: ExecutionResult::of(ErrorStatus::GeneralFailure),
        }
    }

    /// Serves requests until the burst ends. Where the client did not close it, `ender` tells the client
    /// why: also of a panic, wherever it was.
    pub(super) fn run(mut self, ender: &BurstEnder) {
        let served = catch_panic(|| {
            loop {
                if let Err(reason) = self.serve_one() {
                    return reason;
                }
            }
        });
        let reason = served.unwrap_or(EndReason::Panicked);
        self.run.end();
        if let Some(given_up) = reason.given_up() {
            ender.end(given_up, &reason.to_string());
        }
    }

    fn serve_one(&mut self) -> Result<(), EndReason> {
        let Worker { idle, requests, runner, counts, .. } = self;
        let release =
            || catch_panic(|| runner.release_resources()).map_err(|_| EndReason::Panicked);
        let available = idle.next_request(requests, counts, release)?;
        // What was queued before the burst ended is not executed: nobody waits for it.
        if self.run.is_called_off() {
            return Err(EndReason::Closed);
        }
        let arrived = Instant::now();
        let tracer = when_on(&self.tracer);
        let mut marks = Marks::begin(tracer.as_deref());
        let datums = self.framing.next_packet(&mut self.requests, available)?;
        self.copy_packet(datums)?;
        let extras = self.execute(arrived, &mut marks)?;
        self.reply(extras, &mut marks)?;
        let queued =
            self.features.contains(Features::PIPELINING) && self.requests.available_to_read()? > 0;
        self.wake_client(queued, arrived)?;
        self.take_turns(queued);
        self.counts.answered_after(self.result.status, arrived, extras.in_driver_ns);
        self.requests.release_quiet();
        // The client may sleep until there is room: its next request may not have fitted beside this one.
        Ok(self.requests.wake()?)
    }

    /// Wakes the client if it sleeps; a little later where its next result follows at once.
    fn wake_client(&mut self, queued: bool, arrived: Instant) -> Result<(), EndReason> {
        if queued && !self.wakes.is_due(queued, arrived.elapsed()) {
            return Ok(());
        }
        Ok(self.results.wake()?)
    }

    /// After a request: keeps the run token for the one that is queued, unless it is the turn of others.
    fn take_turns(&self, queued: bool) {
        if queued {
            self.run.give_way();
        } else {
            self.run.end();
        }
    }

    /// Copies a packet out of the queue, once, before any of it is looked at.
    fn copy_packet(&mut self, datums: usize) -> Result<(), EndReason> {
        let bytes = datums * DATUM_BYTES;
        self.packet.reserve_exact(bytes.saturating_sub(self.packet.len())); // as it is paid for
        self.packet.resize(bytes, 0);
        self.requests.read_deferred(&mut self.packet)?;
        // Giving room back writes to a cache line that the client reads, so the worker does it after
        // the answer is out, unless the next packet might not fit beside this one.
        if datums * 2 > self.requests.capacity() {
            self.requests.release()?;
        }
        Ok(())
    }

    /// Runs the packet's request; whatever is wrong with it becomes the result's status.
    fn execute(
        &mut self,
        arrived: Instant,
        marks: &mut Marks<'_>,
    ) -> Result<ResultExtras, EndReason> {
        let prepared = self.prepare_request();
        marks.mark(SpanKind::DecodeRequest);
        if let Err(status) = prepared {
            self.runner.end();
            self.result.reset(status);
            let id = self.decoder.extras().id;
            return Ok(ResultExtras { id, ..ResultExtras::default() });
        }
        let RequestExtras { deadline, loop_timeout, id } = self.decoder.extras();
        let measure_timing = self.decoder.measure_timing();
        let options = ExecutionOptions { measure_timing, deadline, loop_timeout };
        let left = left_until(options.deadline);
        if let Some(refusal) = self.begin(options.deadline, left)? {
            self.result.reset(refusal);
        } else {
            let Worker { runner, decoder, result, counts, .. } = self;
            let (request, slots) = (decoder.request(), decoder.slots());
            counts.executing();
            marks.skip(); // waiting for the turn has its own span
            if catch_panic(|| runner.run(request, slots, &options, result)).is_err() {
                self.run.end();
                self.result.reset(ErrorStatus::GeneralFailure);
                marks.mark(SpanKind::Device);
                self.reply(ResultExtras::default(), marks)?;
                self.results.wake()?;
                return Err(EndReason::Panicked);
            }
            marks.mark(SpanKind::Device);
            self.result.status = self.entry.judge(self.result.status, left);
        }
        self.runner.end();
        self.forget_memories();
        let outputs = self.decoder.request().outputs.len();
        let in_driver_ns = finish(&mut self.result, outputs, measure_timing, arrived);
        Ok(ResultExtras { in_driver_ns, on_device_ns: None, id })
    }

    /// Takes a run token, or gives the status of a request that does not get one: its deadline is
    /// hopeless, or passed before it was the burst's turn.
    fn begin(
        &self,
        deadline: Option<TimePoint>,
        left: Option<Duration>,
    ) -> Result<Option<ErrorStatus>, EndReason> {
        if let refusal @ Some(_) = self.entry.refusal(left) {
            return Ok(refusal);
        }
        match self.run.begin(deadline) {
            Ok(()) => Ok(None),
            Err(NoToken::MissedDeadline) => Ok(Some(self.entry.missed(left))),
            Err(NoToken::CalledOff) => Err(EndReason::Closed),
        }
    }

    /// Makes a request of the packet: decodes it, resolves its slots, checks it against the model.
    fn prepare_request(&mut self) -> Result<(), ErrorStatus> {
        self.decoder.decode(&self.packet).map_err(|error| {
            tracing::debug!(burst = self.memories.number(), %error, "request refused");
            self.counts.malformed();
            error.status()
        })?;
        let Worker { memories, kept, decoder, runner, run, .. } = self;
        runner.begin(decoder.slots());
        let (slots, pools) = decoder.slots_and_pools();
        memories.resolve_after(slots, pools, kept, || run.end())?;
        self.entry.check(self.decoder.request()).map_err(|error| {
            self.forget_memories();
            tracing::debug!(burst = self.memories.number(), %error, "request refused");
            error.status()
        })
    }

    /// Lets go of what a request uses: unmaps the memory of a slot that was freed meanwhile, and releases a buffer that
    /// was.
    fn forget_memories(&mut self) {
        self.decoder.slots_and_pools().1.clear();
        self.kept.clear();
    }

    /// Puts the result into its queue; one that does not fit there becomes a failure.
    fn reply(&mut self, extras: ResultExtras, marks: &mut Marks<'_>) -> Result<(), EndReason> {
        let packet = ResultPacket::new(&self.result, extras, self.features);
        // What the burst was charged pays for packets that fit; no more than those are encoded.
        if self.encoder.encode(&packet).is_err() {
            let failure = ResultPacket::failure(ErrorStatus::GeneralFailure, self.features);
            self.encoder.encode(&failure)?;
        }
        // Before the client has the result: what it finds then is whole.
        marks.mark(SpanKind::EncodeResult);
        marks.whole(SpanKind::Request, self.memories.number());
        let Worker { results, encoder, run, counts, .. } = self;
        send_packet(results, encoder.packet(), run, counts)?;
        encoder.sent();
        Ok(())
    }
}

/// Writes a packet. Without its run token where it has to wait for room.
fn send_packet(
    results: &mut Producer,
    packet: &[u8],
    run: &Run,
    counts: &BurstCounts,
) -> Result<(), EndReason> {
    match results.write_quiet(packet) {
        Err(QueueError::Full { .. }) => {
            run.end();
            results.wake()?; // it may sleep although there are results: see `WakeCoalescer`
            let patience = Deadline::after(RESULT_PATIENCE);
            let datums = packet.len() / DATUM_BYTES;
            match counts.while_waiting_for_room(|| results.wait(datums, patience)) {
                Err(QueueError::Timeout) => return Err(EndReason::ResultsNotTaken),
                other => other?,
            };
            results.write_quiet(packet)?;
        }
        written => written?,
    }
    Ok(())
}
