//! What a stream has come to so far. Whoever ends the stream takes it: the thread that streams, or the one that
//! waits for signals, where the other does not come to an end by itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use burst_client::Outages;
use burst_hal::ErrorStatus;
use burst_harness::WaitKind;
use indicatif::ProgressBar;
use nix::sys::signal::Signal;

use super::args::Args;
use super::report::{Accuracy, CameraReport, Report};
use super::results::FrameResult;
use super::stats::Stats;
use crate::route::RouteArg;
use crate::source::{CameraFacts, Live};

/// Most results that are kept for the JSON object; the rest is counted.
const MAX_KEPT: usize = 100_000;

/// What was measured, until somebody takes it to say it.
#[derive(Debug)]
pub(super) struct Ledger {
    entries: Mutex<Option<Box<Entries>>>,
    changed: Condvar,
    /// The number of the signal that asked for the end; 0 before one did.
    asked: AtomicI32,
}

/// What is known of the stream before its first frame.
#[derive(Debug, Default)]
pub(super) struct Heading {
    /// The model's name.
    pub(super) model: Option<String>,
    /// States that go from each frame to the next.
    pub(super) states: Option<usize>,
    /// How long the sound is.
    pub(super) sound: Option<Duration>,
    /// The camera, where it is one.
    pub(super) camera: Option<CameraFacts>,
    /// Whether results are kept for the JSON object.
    pub(super) keeps_results: bool,
    /// The line that is drawn while it goes on.
    pub(super) bar: Option<ProgressBar>,
}

/// What is written down frame by frame.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) heading: Heading,
    pub(super) stats: Stats,
    pub(super) counts: Counts,
    /// Frames that failed, by status.
    pub(super) failed: BTreeMap<&'static str, u64>,
    pub(super) driver: Driver,
    /// What became of a camera's frames so far.
    pub(super) live: Option<Live>,
    /// Where the sound streamed so far ends.
    pub(super) sound: Option<Duration>,
    results: Vec<FrameResult>,
    results_left_out: u64,
    started: Instant,
}

/// What a run counts.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    /// Frames that were sent to the driver, failed ones included.
    pub(super) frames: u64,
    pub(super) errors: u64,
    /// Frames that could not be read.
    pub(super) damaged: u64,
    /// Frames whose answer came after the next frame was due.
    pub(super) late: u64,
    /// Frames that were skipped as newer ones were due.
    pub(super) dropped: u64,
    /// Frames whose best class was the one they are known to show.
    pub(super) right: u64,
    /// Frames that are known to show something.
    pub(super) judged: u64,
}

impl Counts {
    /// Frames that the source has given.
    pub(super) fn seen(&self) -> u64 {
        self.frames + self.dropped + self.damaged
    }
}

/// What is known of the driver.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Driver {
    pub(super) pid: Option<u32>,
    /// How requests reach it, as it has turned out.
    pub(super) route: Option<RouteArg>,
    /// How this end of a burst waits.
    pub(super) wait: Option<WaitKind>,
    pub(super) outages: Option<Outages>,
    pub(super) retries: u64,
}

impl Ledger {
    pub(super) fn new() -> Result<Self> {
        let entries = Entries {
            heading: Heading::default(),
            stats: Stats::new()?,
            counts: Counts::default(),
            failed: BTreeMap::new(),
            driver: Driver::default(),
            live: None,
            sound: None,
            results: Vec::new(),
            results_left_out: 0,
            started: Instant::now(),
        };
        Ok(Ledger {
            entries: Mutex::new(Some(Box::new(entries))),
            changed: Condvar::new(),
            asked: AtomicI32::new(0),
        })
    }

    /// Writes something down. Where another thread has taken what there was, it is about to end the process, and
    /// this does not come back.
    pub(super) fn write<T>(&self, write: impl FnOnce(&mut Entries) -> T) -> T {
        if let Some(entries) = self.lock().as_deref_mut() {
            return write(entries);
        }
        wait_for_the_end()
    }

    /// Takes everything, to end the stream; `None` where somebody else does that.
    pub(super) fn take(&self) -> Option<Box<Entries>> {
        let entries = self.lock().take();
        self.changed.notify_all();
        entries
    }

    /// Asks for the end.
    pub(super) fn ask(&self, signal: Signal) {
        let _entries = self.lock(); // so that who is about to sleep sees it
        self.asked.store(signal as i32, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// The signal that asked for the end.
    pub(super) fn asked(&self) -> Option<Signal> {
        // Relaxed: nothing else hangs on it, and a frame later is soon enough.
        Signal::try_from(self.asked.load(Ordering::Relaxed)).ok()
    }

    /// Waits for so long, or until the end is asked for.
    pub(super) fn sleep(&self, time: Duration) {
        let asked = |_: &mut Option<Box<Entries>>| self.asked().is_none();
        drop(self.changed.wait_timeout_while(self.lock(), time, asked));
    }

    /// Waits until somebody has taken everything; false where nobody has in this time.
    pub(super) fn is_taken_within(&self, time: Duration) -> bool {
        let there = |entries: &mut Option<Box<Entries>>| entries.is_some();
        let waited = self.changed.wait_timeout_while(self.lock(), time, there);
        let (entries, _) = waited.unwrap_or_else(PoisonError::into_inner);
        entries.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Entries>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Another thread is saying the summary, and ends the process then.
pub(super) fn wait_for_the_end() -> ! {
    loop {
        std::thread::park();
    }
}

impl Entries {
    /// The stream begins now.
    pub(super) fn start(&mut self, heading: Heading) {
        self.heading = heading;
        self.started = Instant::now();
    }

    /// A frame that was sent and failed.
    pub(super) fn note_failure(&mut self, status: ErrorStatus) {
        self.counts.frames += 1;
        self.counts.errors += 1;
        *self.failed.entry(status.name()).or_default() += 1;
    }

    /// Keeps a result for the JSON object.
    pub(super) fn keep(&mut self, result: FrameResult) {
        if self.results.len() < MAX_KEPT {
            self.results.push(result);
        } else {
            self.results_left_out += 1;
        }
    }

    /// What became of a camera's frames by now; gives how many more were left out than at the last call.
    pub(super) fn note_live(&mut self, live: Live) -> u64 {
        let before = self.live.replace(live).map_or((0, 0), |live| (live.damaged, live.skipped));
        let (damaged, skipped) = (live.damaged - before.0, live.skipped - before.1);
        self.counts.damaged += damaged;
        self.counts.dropped += skipped;
        damaged + skipped
    }

    /// Whether there is anything to say.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.seen() == 0
    }

    /// The summary.
    pub(super) fn report(self, args: &Args) -> Report {
        let Entries { heading, stats, counts, driver, live, results, results_left_out, .. } = self;
        let failed = self.failed;
        let seconds = self.started.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts of frames")]
        let throughput_fps = (counts.frames - counts.errors) as f64 / seconds;
        let sound = self.sound.map(|end| end.min(heading.sound.unwrap_or(end)).as_secs_f64());
        let outages = driver.outages;
        let has_schedule = args.fps.is_some() && heading.camera.is_none();
        let camera = heading.camera.map(|facts| CameraReport::new(facts, live));
        Report {
            model: heading.model,
            source: args.source.clone(),
            path: match args.devices.is_empty() {
                true => driver.route.or(args.path).unwrap_or_default().name(),
                false => "framework",
            },
            wait: driver.wait.map(WaitKind::name),
            threads: args.threads_used(),
            frames: counts.frames,
            errors: counts.errors,
            errors_by_status: failed,
            damaged: counts.damaged,
            late: has_schedule.then_some(counts.late),
            dropped: (has_schedule || camera.is_some()).then_some(counts.dropped),
            client_pid: std::process::id(),
            driver_pid: driver.pid,
            reconnects: outages.map(|outages| outages.reconnects),
            lost: outages.map(|outages| outages.lost),
            longest_gap_ms: outages.map(|outages| outages.longest_gap.as_secs_f64() * 1000.0),
            retries: driver.retries,
            seconds,
            throughput_fps,
            sound_seconds: sound,
            times_real_time: sound.map(|sound| sound / seconds),
            states: heading.states,
            accuracy: Accuracy::of(counts.right, counts.judged),
            latency_us: stats.latency.quantiles(),
            driver_us: stats.driver.quantiles(),
            transport_us: stats.transport.quantiles(),
            results: heading.keeps_results.then_some(results),
            results_left_out,
            camera,
            trace: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_sleeps_is_woken_by_a_signal_and_who_waits_by_the_end() {
        let ledger = Arc::new(Ledger::new().unwrap());
        let sleeper = std::thread::spawn({
            let ledger = Arc::clone(&ledger);
            move || ledger.sleep(LONG)
        });
        assert_eq!(ledger.asked(), None);
        ledger.ask(Signal::SIGTERM);
        sleeper.join().unwrap();
        assert_eq!(ledger.asked(), Some(Signal::SIGTERM));
        ledger.sleep(LONG); // it was asked for already
        assert!(!ledger.is_taken_within(Duration::ZERO));
        assert!(ledger.take().unwrap().is_empty());
        assert!(ledger.is_taken_within(LONG));
        assert!(ledger.take().is_none(), "one of them says it");
    }
}
