//! The helper threads of a device, and how they wait for work.
//!
//! A helper watches one word, that of the [`ScopedJob`], which every execution that begins and every job changes.
//! While executions are in progress it polls for a bounded time, then it yields its core between polls,
//! then it parks; after an execution it does the same for a shorter time. So there is no system call between the operations of an execution that keeps
//! its helpers busy.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::affinity::Affinity;
use super::scoped_job::{HelperDelay, HelperPanicked, ScopedJob, Work};
use crate::scratch::Scratch;

/// How long an idle helper polls while an execution is in progress: longer than most operations
/// that are not shared take.
const SPIN_IN_RUN: Duration = Duration::from_micros(100);

/// How long it then yields its core between polls, before it parks.
const YIELD_IN_RUN: Duration = Duration::from_millis(1);

/// How long it polls after the last execution ended: about what a wake-up costs, so that executions
/// that follow each other at once find it awake.
const SPIN_BETWEEN_RUNS: Duration = Duration::from_micros(20);

/// How long after the last execution it then yields its core between polls: whoever writes the next input meanwhile, a
/// picture of a megabyte say, finds it awake as well, and whoever else wants the core has it.
const YIELD_BETWEEN_RUNS: Duration = Duration::from_micros(200);

/// Working memory that a helper keeps between two jobs, in bytes. It works for every caller, so that no
/// account pays for it; tiles that make use of the caches need far less.
const MAX_IDLE_SCRATCH_BYTES: usize = 16 << 20;

/// How often a helper polls between two reads of the clock.
const POLLS_PER_CLOCK_READ: u32 = 32;

/// Helper threads that several executions share: each job is worked on by the helpers that are free.
///
/// The threads end when this value is dropped.
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Helpers are called whenever they have a reason to look for work.
    job: ScopedJob,
    /// Executions in progress.
    executions: AtomicUsize,
    ended: AtomicBool,
    /// The CPU of the thread that last called.
    caller_cpu: AtomicUsize,
    /// How long helpers poll while an execution is in progress.
    spin: Duration,
    sleepers: Box<[Sleeper]>,
}

#[derive(Default)]
struct Sleeper {
    /// One of [`AWAKE`], [`PARKED`] and [`CROWDED`]. A helper stores that it sleeps before it parks;
    /// the caller that replaces this by [`AWAKE`] unparks it.
    state: AtomicU8,
    thread: OnceLock<Thread>,
}

const AWAKE: u8 = 0;
/// The helper sleeps because there was no work.
const PARKED: u8 = 1;
/// The helper sleeps because it could only run on the CPU of the thread that it would help.
const CROWDED: u8 = 2;

/// Which sleeping helpers a call wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// Helpers that sleep because there was no work.
    Useful,
    Everybody,
}

impl std::fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ThreadPool of {}", self.threads())
    }
}

impl ThreadPool {
    /// A pool of `threads` threads, the executing one included, on a machine of `cpus` CPUs. The pool
    /// is smaller where the system refuses to start a thread.
    pub(crate) fn new(threads: usize, cpus: usize) -> Self {
        let count = threads.saturating_sub(1);
        let shared = Arc::new(Shared {
            job: ScopedJob::default(),
            executions: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            caller_cpu: AtomicUsize::new(usize::MAX),
            // Where threads share cores, a polling thread keeps another one from working.
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
        ThreadPool { shared, helpers }
    }

    /// Threads that work on one execution.
    pub(crate) fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Marks the begin of an execution, which ends when the value is dropped. With `is_expected`,
    /// wakes sleeping helpers, so that they run when the first work is offered.
    pub(crate) fn begin(&self, is_expected: bool) -> Scope<'_> {
        // Seen by a helper that sees the call.
        self.shared.executions.fetch_add(1, Ordering::Relaxed);
        self.shared.runs_on(Affinity::current());
        if is_expected {
            self.shared.job.call();
            self.shared.wake(Wake::Everybody);
        }
        Scope {
            pool: self,
            leaves_helpers: false,
            shared_work: AtomicBool::new(false),
            held_up: AtomicBool::new(false),
        }
    }

    /// As [`ThreadPool::begin`], for an execution that leaves the helpers to others while there are any: many
    /// at once compute more when each computes alone.
    pub(crate) fn begin_beside_others(&self, is_expected: bool) -> Scope<'_> {
        // Relaxed: only a hint, as in `share`.
        let is_alone = self.shared.executions.load(Ordering::Relaxed) == 0;
        let mut scope = self.begin(is_expected && is_alone);
        scope.leaves_helpers = true;
        scope
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // Seen by every helper that sees the call.
        self.shared.ended.store(true, Ordering::Relaxed);
        self.shared.job.call();
        self.shared.wake(Wake::Everybody);
        for helper in self.helpers.drain(..) {
            if helper.join().is_err() {
                tracing::error!("a helper thread panicked");
            }
        }
    }
}

/// One execution's use of a pool.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pool: &'a ThreadPool,
    /// Whether it computes alone while other executions are in progress.
    leaves_helpers: bool,
    /// Whether any work was shared so far.
    shared_work: AtomicBool,
    /// Whether this thread had to wait for a helper because something else ran on its CPU. It does
    /// the rest of the execution alone: it would be held up again and again, by a time slice each.
    held_up: AtomicBool,
}

impl Scope<'_> {
    /// Threads that may work.
    pub(crate) fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Whether any work was shared with the pool, which predicts whether the next execution will share.
    pub(crate) fn has_shared_work(&self) -> bool {
        self.shared_work.load(Ordering::Relaxed)
    }

    /// Runs the work on this thread and on every helper that is free. With `wake`, the work is large
    /// enough to pay for the system call that wakes sleeping helpers.
    ///
    /// # Errors
    /// [`HelperPanicked`]. A panic of this thread's own share continues after all helpers have left.
    pub(super) fn share(
        &self,
        work: &Work<'_>,
        wake: bool,
        scratch: &mut Scratch,
    ) -> Result<(), HelperPanicked> {
        // Relaxed: only a hint; an execution that begins or ends meanwhile is noticed by the next work.
        if self.leaves_helpers && self.pool.shared.executions.load(Ordering::Relaxed) > 1 {
            work(0, scratch);
            return Ok(());
        }
        self.shared_work.store(true, Ordering::Relaxed);
        if self.held_up.load(Ordering::Relaxed) {
            work(0, scratch);
            return Ok(());
        }
        let shared = &*self.pool.shared;
        shared.runs_on(Affinity::current());
        let delay = shared.job.run(work, |is_shared| {
            if is_shared && wake {
                shared.wake(Wake::Useful);
            }
            work(0, scratch);
        })?;
        if delay == HelperDelay::Long {
            self.held_up.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.pool.shared.executions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// Notes the CPU of the calling thread.
    fn runs_on(&self, cpu: usize) {
        // Relaxed: only a hint. Most often it is the one that is noted already, and helpers read the line.
        if self.caller_cpu.load(Ordering::Relaxed) != cpu {
            self.caller_cpu.store(cpu, Ordering::Relaxed);
        }
    }

    /// Wakes those sleeping helpers that `wake` names, after a call.
    fn wake(&self, wake: Wake) {
        // SeqCst, as the call before and the helper's store and load in `park`: either the helper sees the call before it
        // parks, or this thread sees that the helper sleeps.
        for sleeper in &self.sleepers {
            let state = sleeper.state.load(Ordering::SeqCst);
            let is_meant = state == PARKED || state == CROWDED && wake == Wake::Everybody;
            if is_meant
                && sleeper.state.swap(AWAKE, Ordering::SeqCst) != AWAKE
                && let Some(thread) = sleeper.thread.get()
            {
                thread.unpark();
            }
        }
    }

    /// The main loop of helper `index`.
    fn serve(&self, index: usize) {
        let sleeper = &self.sleepers[index];
        sleeper.thread.get_or_init(std::thread::current);
        let mut affinity = Affinity::of_this_thread();
        let mut scratch = Scratch::default();
        let mut seen = 0;
        loop {
            seen = self.wait(sleeper, &mut affinity, seen);
            // Written before the call that was seen.
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            self.job.help(index + 1, &mut scratch);
            scratch.keep_at_most(MAX_IDLE_SCRATCH_BYTES);
        }
    }

    /// Waits until there have been other calls than `seen`; returns how many.
    fn wait(&self, sleeper: &Sleeper, affinity: &mut Affinity, seen: u64) -> u64 {
        let began = Instant::now();
        let mut polls = 0u32;
        loop {
            let calls = self.job.calls();
            if calls != seen {
                return calls;
            }
            polls = polls.wrapping_add(1);
            if !polls.is_multiple_of(POLLS_PER_CLOCK_READ) && !self.spin.is_zero() {
                std::hint::spin_loop();
                continue;
            }
            let idle = began.elapsed();
            // Relaxed: only a hint; an outdated count costs a little time.
            let in_run = self.executions.load(Ordering::Relaxed) > 0;
            let (spin, yields_until) = match in_run {
                true => (self.spin, YIELD_IN_RUN),
                false if self.spin.is_zero() => (Duration::ZERO, Duration::ZERO),
                false => (self.spin.min(SPIN_BETWEEN_RUNS), YIELD_BETWEEN_RUNS),
            };
            let caller_cpu = self.caller_cpu.load(Ordering::Relaxed);
            if in_run && Affinity::current() == caller_cpu && !affinity.avoid(caller_cpu) {
                sleeper.park(CROWDED, || self.job.calls() == seen);
            } else if idle < spin {
                std::hint::spin_loop();
            } else if idle < yields_until {
                std::thread::yield_now();
            } else {
                sleeper.park(PARKED, || self.job.calls() == seen);
            }
        }
    }
}

impl Sleeper {
    /// Parks the calling thread, whose sleeper this is, unless a call came in the meantime.
    fn park(&self, state: u8, was_not_called: impl FnOnce() -> bool) {
        self.state.store(state, Ordering::SeqCst);
        // See `wake` for the order.
        if was_not_called() {
            std::thread::park();
        }
        self.state.store(AWAKE, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn helpers_end_with_their_pool() {
        for threads in [1, 2, 9] {
            let pool = ThreadPool::new(threads, 2);
            assert_eq!(pool.threads(), threads);
            // Each helper holds what they share for as long as it lives.
            let shared = Arc::downgrade(&pool.shared);
            drop(pool.begin(true));
            drop(pool);
            assert!(shared.upgrade().is_none());
        }
    }
}
