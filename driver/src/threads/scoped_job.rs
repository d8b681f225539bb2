//! Runs a borrowed closure on threads that live longer than the borrow: a scoped job.
//!
//! The only place outside of the kernels where this crate needs `unsafe`: a thread that outlives an
//! execution cannot name the lifetime of the work that the execution lends to it. Every thread pool
//! erases that lifetime somewhere. Here it is one function, and everything the proof rests on is in
//! this file. Why not a library: `docs/decisions/0008-threads.md`.
//!
//! Helpers watch one word, and what they need to begin lies beside it: reading a cache line that another core has
//! written takes a tenth of a microsecond, and more where two cores are far from each other.
//!
//! 1. The lent work is written by whoever has set [`LENT`] in the word, before it sets [`OPEN`].
//! 2. A helper reads it after it counted itself in, in one step with finding [`OPEN`] set; it counts itself out after
//!    its last use of the work.
//! 3. `run` takes [`OPEN`] away and then waits until no helper is counted, also when the
//!    caller's own share panics: by then no helper can come in any more, and all have left.
//!    Only then it takes [`LENT`] away, so that nobody else lends work before that, and the count is of the helpers of
//!    one lender.
#![allow(unsafe_code, reason = "the lifetime of a scoped job; see above")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use super::sync::{AtomicU64, UnsafeCell, spin_loop, yield_now};
use crate::scratch::Scratch;

/// Work that several threads do together: called by each with its number and its working memory.
/// Number 0 is the thread that calls [`ScopedJob::run`].
pub(super) type Work<'w> = dyn Fn(usize, &mut Scratch) + Sync + 'w;

/// A helper panicked in its share of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HelperPanicked;

/// How often the calling thread polls the count of helpers before it yields its core: several times
/// what a tile takes.
const SPINS_BEFORE_YIELD: u32 = 10_000;

/// How long the calling thread waited for the helpers after its own share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HelperDelay {
    /// The helpers had left, or left while it polled.
    Short,
    /// It polled longer than their work takes and yielded: one of them shares its CPU with something
    /// else.
    Long,
}

/// In the word: somebody lends work, from before it can be found until all helpers have left.
const LENT: u64 = 1;
/// The work can be found.
const OPEN: u64 = 1 << 1;
/// A helper panicked in it.
const PANICKED: u64 = 1 << 2;
/// One helper that works on it.
const INSIDE: u64 = 1 << 3;
/// One call. Below it is room for more helpers than a pool may have.
const CALL: u64 = 1 << 16;

const _: () = assert!((super::MAX_THREADS as u64) < CALL / INSIDE);

/// Whether any helper is counted.
fn is_somebody_inside(word: u64) -> bool {
    word % CALL >= INSIDE
}

/// One job at a time that helpers may take a share of, and the calls that make them look for it.
///
/// It has cache lines of its own: a store to anything beside it would have to wait for those who watch it.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct ScopedJob {
    /// Flags, the helpers that are inside, and above them the calls so far; these begin again at 0 some day, which only
    /// whoever slept through 2^48 of them would not see.
    word: AtomicU64,
    /// What is lent, or was; nothing before the first time.
    work: UnsafeCell<Option<*const Work<'static>>>,
}

// SAFETY: a pointer is as good in one thread as in another one; what it points to is used under 1 to 3 above alone.
unsafe impl Send for ScopedJob {}
// SAFETY: work is for any number of threads (`Sync`, in `Work`), and its place is written by one thread while no other
// one reads it (1 to 3 above).
unsafe impl Sync for ScopedJob {}

impl ScopedJob {
    /// Calls so far. What was written before the last one is seen.
    pub(super) fn calls(&self) -> u64 {
        // SeqCst: for whoever is about to sleep; see `ThreadPool`. A load costs the same with any order.
        self.word.load(Ordering::SeqCst) / CALL
    }

    /// Makes whoever watches [`ScopedJob::calls`] look for work, and for what else there may be.
    pub(super) fn call(&self) {
        self.word.fetch_add(CALL, Ordering::SeqCst);
    }

    /// Runs `own` while helpers may run `work`; returns when no helper runs `work` any more. The
    /// argument of `own` says whether helpers can see the work, and were called: they cannot while another thread's
    /// job is offered.
    ///
    /// # Errors
    /// [`HelperPanicked`], after all helpers have left.
    pub(super) fn run(
        &self,
        work: &Work<'_>,
        own: impl FnOnce(bool),
    ) -> Result<HelperDelay, HelperPanicked> {
        let end = self.offer(work).then(|| End(self));
        own(end.is_some());
        let Some(end) = end else { return Ok(HelperDelay::Short) };
        // Only once: the next offer may be another thread's.
        std::mem::forget(end);
        self.end()
    }

    /// Offers the work unless somebody else lends some. A caller that gets `true` has to end the offer,
    /// whatever happens, before `work` is gone.
    fn offer(&self, work: &Work<'_>) -> bool {
        // Acquire: pairs with the Release in `end`. The helpers of the work before have left it.
        if self.word.fetch_or(LENT, Ordering::Acquire) & LENT != 0 {
            return false;
        }
        // SAFETY: only lifetimes change. Helpers use the pointer in `help` alone, while they are counted, and `run`,
        // the only caller, ends the offer before it returns or unwinds, which waits for them (1 to 3
        // above): `work`, and all that it borrows, outlive every use.
        let work = unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(work) };
        self.work.with_mut(|place| {
            // SAFETY: this thread has set `LENT`, and not yet `OPEN`: no helper is inside, and no other thread writes.
            unsafe { *place = Some(work) };
        });
        // Release, in SeqCst: pairs with the Acquire of a helper that comes in. SeqCst: it is a call, too.
        self.word.fetch_add(CALL + OPEN, Ordering::SeqCst);
        true
    }

    /// Does a helper's share of the offered work, if there is any.
    pub(super) fn help(&self, number: usize, scratch: &mut Scratch) {
        let comes_in = |word: u64| (word & OPEN != 0).then_some(word + INSIDE);
        // Acquire: pairs with the Release in `offer`. Helpers that come in or leave meanwhile keep that order going, as
        // they too change the word by steps that read it.
        if self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, comes_in).is_err() {
            return;
        }
        let work = self.work.with(|place| {
            // SAFETY: `OPEN` was set in the same step that counted this helper: the work is written, and nobody writes
            // another one before this helper has left.
            unsafe { *place }
        });
        let did = catch_unwind(AssertUnwindSafe(|| {
            if let Some(work) = work {
                // SAFETY: whoever lent it waits until this helper has left.
                let work = unsafe { &*work };
                work(number, scratch);
            }
        }));
        if did.is_err() {
            // Relaxed: the Release below makes it seen.
            self.word.fetch_or(PANICKED, Ordering::Relaxed);
        }
        // This helper does not use the work from here on. Pairs with the Acquire in `end`: the owner
        // of the work sees everything that this helper did to it.
        self.word.fetch_sub(INSIDE, Ordering::Release);
    }

    fn end(&self) -> Result<HelperDelay, HelperPanicked> {
        // Both pair with the Release in `help`.
        let mut word = self.word.fetch_and(!OPEN, Ordering::Acquire);
        let mut spins = 0;
        while is_somebody_inside(word) {
            if spins < SPINS_BEFORE_YIELD {
                spins += 1;
                spin_loop();
            } else {
                yield_now();
            }
            word = self.word.load(Ordering::Acquire);
        }
        // Release: pairs with the Acquire in `offer`.
        self.word.fetch_and(!(LENT | PANICKED), Ordering::Release);
        match (word & PANICKED != 0, spins < SPINS_BEFORE_YIELD) {
            (true, _) => Err(HelperPanicked),
            (false, true) => Ok(HelperDelay::Short),
            (false, false) => Ok(HelperDelay::Long),
        }
    }
}

/// Ends an offer when the caller's own share panics.
struct End<'a>(&'a ScopedJob);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // The caller's own panic goes on, whatever became of the helpers.
        let _ = self.0.end();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32};

    use super::*;

    /// Helps until `stop` is set.
    fn helpers(job: &ScopedJob, count: usize, then: impl FnOnce()) {
        struct Set<'a>(&'a AtomicBool);
        impl Drop for Set<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stop_even_after_a_failure = Set(&stop);
            for number in 1..=count {
                let stop = &stop;
                scope.spawn(move || {
                    let mut scratch = Scratch::default();
                    while !stop.load(Ordering::Relaxed) {
                        job.help(number, &mut scratch);
                        std::thread::yield_now();
                    }
                });
            }
            then();
        });
    }

    #[test]
    fn borrowed_work_is_done_by_others_and_over_when_run_returns() {
        let job = ScopedJob::default();
        helpers(&job, 3, || {
            for round in 0..200 {
                // On this stack frame, gone after the round.
                let (entered, left) = (AtomicU32::new(0), AtomicU32::new(0));
                let work = |number: usize, _: &mut Scratch| {
                    assert!((1..=3).contains(&number));
                    entered.fetch_add(1, Ordering::Relaxed);
                    left.fetch_add(1, Ordering::Release);
                };
                job.run(&work, |is_shared| {
                    assert!(is_shared, "round {round}");
                    while entered.load(Ordering::Relaxed) == 0 {
                        std::thread::yield_now();
                    }
                })
                .unwrap();
                let left = left.load(Ordering::Acquire);
                assert_eq!(left, entered.load(Ordering::Relaxed), "round {round}");
            }
        });
    }

    #[test]
    fn one_piece_of_work_at_a_time() {
        let job = ScopedJob::default();
        let work = |_: usize, _: &mut Scratch| {};
        let mut inner = None;
        job.run(&work, |outer| {
            assert!(outer);
            job.run(&work, |is_shared| inner = Some(is_shared)).unwrap();
        })
        .unwrap();
        assert_eq!(inner, Some(false));
        job.run(&work, |is_shared| assert!(is_shared, "free again")).unwrap();
    }

    #[test]
    fn a_helper_that_is_held_up_is_told_from_one_that_is_not() {
        let job = ScopedJob::default();
        assert_eq!(job.run(&|_, _| {}, |_| {}), Ok(HelperDelay::Short), "nobody came");
        helpers(&job, 1, || {
            let entered = AtomicBool::new(false);
            let slow = |_: usize, _: &mut Scratch| {
                entered.store(true, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_secs(1));
            };
            let wait = |_| {
                while !entered.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            };
            assert_eq!(job.run(&slow, wait), Ok(HelperDelay::Long));
        });
    }

    #[test]
    fn a_helpers_panic_is_an_error_and_the_next_work_is_not_touched_by_it() {
        let job = ScopedJob::default();
        helpers(&job, 1, || {
            let entered = AtomicBool::new(false);
            let bad = |_: usize, _: &mut Scratch| {
                entered.store(true, Ordering::Relaxed);
                panic!("on purpose");
            };
            let wait = |_| {
                while !entered.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            };
            assert_eq!(job.run(&bad, wait), Err(HelperPanicked));
            assert!(job.run(&|_, _| {}, |_| {}).is_ok());
        });
    }

    /// Many times, as whether another thread lends its work in between is up to the machine.
    #[test]
    fn a_helpers_panic_is_told_to_whoever_lent_the_work() {
        /// Panics of the work of each of two lenders.
        const PANICS: usize = 5_000;
        /// How often a lender looks whether a helper has come.
        const LOOKS: usize = 100;
        let job = ScopedJob::default();
        let lend = || {
            let mut panics = 0;
            while panics < PANICS {
                let helped = AtomicBool::new(false);
                let bad = |_: usize, _: &mut Scratch| {
                    helped.store(true, Ordering::Relaxed);
                    // Says nothing on the way, unlike `panic!`.
                    std::panic::resume_unwind(Box::new("on purpose"));
                };
                let wait = |is_shared| {
                    let looks = if is_shared { LOOKS } else { 0 };
                    for _ in 0..looks {
                        if helped.load(Ordering::Relaxed) {
                            break;
                        }
                        std::thread::yield_now();
                    }
                };
                let outcome = job.run(&bad, wait);
                let helped = helped.into_inner();
                assert_eq!(outcome.is_err(), helped, "after {panics} panics");
                panics += usize::from(helped);
            }
        };
        helpers(&job, 2, || {
            std::thread::scope(|scope| {
                scope.spawn(lend);
                scope.spawn(lend);
            });
        });
    }

    #[test]
    fn a_panic_of_the_caller_waits_for_the_helpers() {
        let job = ScopedJob::default();
        helpers(&job, 1, || {
            let entered = AtomicBool::new(false);
            let finished = AtomicBool::new(false);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let local = vec![7u8; 1000];
                let work = |_: usize, _: &mut Scratch| {
                    if !entered.swap(true, Ordering::Relaxed) {
                        for _ in 0..100 {
                            std::thread::yield_now();
                        }
                        assert_eq!(local.iter().map(|x| u32::from(*x)).sum::<u32>(), 7000);
                        finished.store(true, Ordering::Relaxed);
                    }
                };
                let _ = job.run(&work, |_| {
                    while !entered.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    panic!("on purpose");
                });
            }));
            assert!(caught.is_err());
            assert!(finished.load(Ordering::Relaxed));
            assert!(job.run(&|_, _| {}, |is_shared| assert!(is_shared)).is_ok());
        });
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p burst-driver --release --lib loom_`.
#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool as Flag;

    use super::*;

    /// Two lend work in which each helper panics.
    #[test]
    fn loom_a_helpers_panic_is_told_to_whoever_lent_the_work() {
        loom::model(|| {
            let job = Arc::new(ScopedJob::default());
            let lend = |job: &ScopedJob| {
                let helped = Flag::new(false);
                let bad = |_: usize, _: &mut Scratch| {
                    helped.store(true, Ordering::Relaxed);
                    std::panic::resume_unwind(Box::new("on purpose"));
                };
                let outcome = job.run(&bad, |_| {});
                assert_eq!(outcome.is_err(), helped.load(Ordering::Relaxed));
            };
            let helper = {
                let job = Arc::clone(&job);
                loom::thread::spawn(move || job.help(1, &mut Scratch::default()))
            };
            let other = {
                let job = Arc::clone(&job);
                loom::thread::spawn(move || lend(&job))
            };
            lend(&job);
            helper.join().unwrap();
            other.join().unwrap();
        });
    }

    /// The memory of the work is marked dead when `run` has returned; no helper may see the mark.
    #[test]
    fn loom_work_is_never_used_after_run_returned() {
        loom::model(|| {
            let job = Arc::new(ScopedJob::default());
            let helper = {
                let job = Arc::clone(&job);
                loom::thread::spawn(move || {
                    let mut scratch = Scratch::default();
                    job.help(1, &mut scratch);
                    job.help(1, &mut scratch);
                })
            };
            for _ in 0..2 {
                let dead = Arc::new(Flag::new(false));
                let work = |_: usize, _: &mut Scratch| {
                    assert!(!dead.load(Ordering::Relaxed));
                };
                job.run(&work, |is_shared| assert!(is_shared)).unwrap();
                dead.store(true, Ordering::Relaxed);
            }
            helper.join().unwrap();
        });
    }
}
