//! The helper threads of a device, and how they wait for work.
//!
//! A helper watches one word, `calls`, which every execution that begins and every piece of work
//! that is lent moves on. While executions are in progress it polls for a bounded time, then it
//! gives its core away between looks, then it parks; between executions it parks almost at once.
//! So there is no system call between the operations of an execution that keeps its helpers busy.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::lending::{HelperPanicked, Lending, Work};
use crate::scratch::Scratch;

/// How long an idle helper polls while an execution is in progress: longer than most operations
/// that are not shared take.
const SPIN_IN_RUN: Duration = Duration::from_micros(100);

/// How long it then looks again and again, giving its core away in between, before it parks.
const YIELD_IN_RUN: Duration = Duration::from_millis(1);

/// How long it polls after the last execution ended: about what a wake-up costs, so that executions
/// that follow each other at once find it awake.
const SPIN_BETWEEN_RUNS: Duration = Duration::from_micros(20);

/// Looks between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = 32;

/// Helper threads that several executions share: each piece of work goes to whoever is free.
///
/// The threads end when this value is dropped.
pub(crate) struct Team {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

struct Shared {
    lending: Lending,
    /// Moves on whenever helpers have a reason to look.
    calls: AtomicU64,
    /// Executions in progress.
    runs: AtomicUsize,
    ended: AtomicBool,
    /// How long helpers poll while an execution is in progress.
    spin: Duration,
    sleepers: Box<[Sleeper]>,
}

#[derive(Default)]
struct Sleeper {
    /// Set before a helper parks; who clears it unparks the helper.
    is_parked: AtomicBool,
    thread: OnceLock<Thread>,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Team of {}", self.threads())
    }
}

impl Team {
    /// A team of so many threads: the one that executes, and helpers. Where the system has no more
    /// threads to give, a smaller one.
    pub(crate) fn new(threads: usize) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let count = threads.saturating_sub(1);
        let shared = Arc::new(Shared {
            lending: Lending::default(),
            calls: AtomicU64::new(0),
            runs: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            // Where threads share cores, one that polls keeps another from working.
            spin: if cpus < threads { Duration::ZERO } else { SPIN_IN_RUN },
            sleepers: std::iter::repeat_with(Sleeper::default).take(count).collect(),
        });
        let mut helpers = Vec::with_capacity(count);
        for index in 0..count {
            let own = Arc::clone(&shared);
            let helper = std::thread::Builder::new()
                .name(format!("burst-compute-{}", index + 1))
                .spawn(move || own.serve(index));
            match helper {
                Ok(helper) => helpers.push(helper),
                Err(error) => {
                    tracing::warn!(%error, index, "no thread to compute with; going on with fewer");
                    break;
                }
            }
        }
        Team { shared, helpers }
    }

    /// Threads that work on one execution.
    pub(crate) fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// An execution begins; it ends when the value is dropped. `is_expected` wakes helpers that
    /// sleep, so that they are there when the first work comes.
    pub(crate) fn begin(&self, is_expected: bool) -> Shift<'_> {
        // Pairs with the look before a helper parks, through `calls`.
        self.shared.runs.fetch_add(1, Ordering::Relaxed);
        if is_expected {
            self.shared.call(true);
        }
        Shift { team: self, lent: AtomicBool::new(false) }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // Seen by whoever sees the call.
        self.shared.ended.store(true, Ordering::Relaxed);
        self.shared.call(true);
        for helper in self.helpers.drain(..) {
            if helper.join().is_err() {
                tracing::error!("a helper thread panicked");
            }
        }
    }
}

/// One execution's use of a team.
#[derive(Debug)]
pub(crate) struct Shift<'a> {
    team: &'a Team,
    /// Whether anything was lent so far.
    lent: AtomicBool,
}

impl Shift<'_> {
    /// Threads that may work.
    pub(crate) fn threads(&self) -> usize {
        self.team.threads()
    }

    /// Whether any work was given to the team: the next execution will have some too.
    pub(crate) fn has_lent(&self) -> bool {
        self.lent.load(Ordering::Relaxed)
    }

    /// Has the work done by this thread and whichever helper is free. `wake`: it is worth the
    /// system call that wakes those who sleep.
    ///
    /// # Errors
    /// [`HelperPanicked`]. A panic of this thread's own share goes on, after all have left.
    pub(super) fn share(
        &self,
        work: &Work<'_>,
        wake: bool,
        scratch: &mut Scratch,
    ) -> Result<(), HelperPanicked> {
        self.lent.store(true, Ordering::Relaxed);
        let shared = &*self.team.shared;
        shared.lending.lend(work, |lent| {
            if lent {
                shared.call(wake);
            }
            work(0, scratch);
        })
    }
}

impl Drop for Shift<'_> {
    fn drop(&mut self) {
        self.team.shared.runs.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// Has helpers look for work; wakes those who sleep if `wake`.
    fn call(&self, wake: bool) {
        // SeqCst, as the helper's store and load in `park`: either it sees this call before it
        // parks, or `is_parked` is seen here.
        self.calls.fetch_add(1, Ordering::SeqCst);
        if !wake {
            return;
        }
        for sleeper in &self.sleepers {
            if sleeper.is_parked.load(Ordering::SeqCst)
                && sleeper.is_parked.swap(false, Ordering::SeqCst)
                && let Some(thread) = sleeper.thread.get()
            {
                thread.unpark();
            }
        }
    }

    /// The life of helper `index`.
    fn serve(&self, index: usize) {
        crate::compute::enter();
        let sleeper = &self.sleepers[index];
        sleeper.thread.get_or_init(std::thread::current);
        let mut scratch = Scratch::default();
        let mut seen = 0;
        loop {
            seen = self.wait(sleeper, seen);
            // Written before the call that was seen.
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            self.lending.help(index + 1, &mut scratch);
        }
    }

    /// Waits until `calls` is no longer `seen`; returns what it is then.
    fn wait(&self, sleeper: &Sleeper, seen: u64) -> u64 {
        let began = Instant::now();
        let mut looks = 0u32;
        loop {
            // Pairs with the SeqCst addition in `call`.
            let calls = self.calls.load(Ordering::Acquire);
            if calls != seen {
                return calls;
            }
            looks = looks.wrapping_add(1);
            if !looks.is_multiple_of(LOOKS_PER_CLOCK) && !self.spin.is_zero() {
                std::hint::spin_loop();
                continue;
            }
            let idle = began.elapsed();
            // Only a hint: a count that is out of date costs a little time.
            let in_run = self.runs.load(Ordering::Relaxed) > 0;
            let spin = if in_run { self.spin } else { self.spin.min(SPIN_BETWEEN_RUNS) };
            if idle < spin {
                std::hint::spin_loop();
            } else if in_run && idle < YIELD_IN_RUN {
                std::thread::yield_now();
            } else {
                self.park(sleeper, seen);
            }
        }
    }

    fn park(&self, sleeper: &Sleeper, seen: u64) {
        sleeper.is_parked.store(true, Ordering::SeqCst);
        // See `call` for the order.
        if self.calls.load(Ordering::SeqCst) == seen {
            std::thread::park();
        }
        sleeper.is_parked.store(false, Ordering::SeqCst);
    }
}
