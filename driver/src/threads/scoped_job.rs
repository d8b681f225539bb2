//! Lends a borrowed piece of work to threads that live longer than the borrow.
//!
//! The only place outside of the kernels where this crate needs `unsafe`: a thread that waits for
//! work across executions cannot name the lifetime of what it will be given. Every thread pool
//! erases that lifetime somewhere. Here it is one function, and everything the proof rests on is in
//! this file. Why not a library: `docs/decisions/0008-threads.md`.
//!
//! 1. The work stands in `offer` only between the two places in [`Lending::lend`] where it is put
//!    there and taken away again.
//! 2. A helper counts itself in `inside` before it lets go of the lock under which it found the
//!    work, and out after its last use of it.
//! 3. `lend` takes the work away under that lock and then waits until `inside` is 0, also when
//!    the caller's own share panics: nobody can come in any more, and everybody has left.
#![allow(unsafe_code, reason = "the lifetime of lent work; see above")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use super::sync::{AtomicBool, AtomicUsize, Mutex, lock, spin_loop, yield_now};
use crate::scratch::Scratch;

/// Work that several threads do together: called by each with its number and its working memory.
/// Number 0 is the thread that lends.
pub(super) type Work<'w> = dyn Fn(usize, &mut Scratch) + Sync + 'w;

/// A helper panicked in lent work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HelperPanicked;

/// Looks at the count of helpers before the thread that waits for them gives its core away: several
/// times what a tile takes.
const SPINS_BEFORE_YIELD: u32 = 10_000;

/// How it was to wait for the helpers in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// They had left, or left soon.
    Short,
    /// Longer than their work takes: one of them does not have its CPU for itself.
    Long,
}

/// A place where one piece of work at a time is lent out.
#[derive(Default)]
pub(super) struct Lending {
    offer: Mutex<Option<&'static Work<'static>>>,
    /// Helpers that took the work up and have not put it down.
    inside: AtomicUsize,
    panicked: AtomicBool,
}

impl Lending {
    /// Runs `own` while helpers may take up `work`; returns when none of them is in it any more.
    /// `own` is told whether the work is lent: it is not while another thread lends here.
    ///
    /// # Errors
    /// [`HelperPanicked`], after everybody has left.
    pub(super) fn lend(
        &self,
        work: &Work<'_>,
        own: impl FnOnce(bool),
    ) -> Result<Wait, HelperPanicked> {
        let end = self.put(work).then(|| End(self));
        own(end.is_some());
        let Some(end) = end else { return Ok(Wait::Short) };
        let wait = self.end();
        // Once only: the next offer here may be another thread's.
        std::mem::forget(end);
        // Written by a helper before it left, which the wait has seen (Acquire).
        if self.panicked.load(Ordering::Relaxed) { Err(HelperPanicked) } else { Ok(wait) }
    }

    /// Offers the work unless there is some already. Who gets `true` has to end the offer, whatever
    /// happens, before `work` is gone.
    fn put(&self, work: &Work<'_>) -> bool {
        let mut offer = lock(&self.offer);
        // Pairs with the Release of helpers that leave: what they did is over.
        if offer.is_some() || self.inside.load(Ordering::Acquire) > 0 {
            return false;
        }
        self.panicked.store(false, Ordering::Relaxed);
        // SAFETY: only the lifetime changes. The reference is used by helpers between `take_up`
        // and `leave` alone, and `lend`, the only caller, ends the offer before it returns or
        // unwinds, which waits for them (1 to 3 above): `work` outlives every use.
        *offer = Some(unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) });
        true
    }

    /// Does a helper's share of the work that is offered, if there is any.
    pub(super) fn help(&self, number: usize, scratch: &mut Scratch) {
        let work = {
            let offer = lock(&self.offer);
            let Some(work) = *offer else { return };
            // Under the lock: who takes the offer away sees it in the count.
            self.inside.fetch_add(1, Ordering::Relaxed);
            work
        };
        if catch_unwind(AssertUnwindSafe(|| work(number, scratch))).is_err() {
            self.panicked.store(true, Ordering::Relaxed);
        }
        // The last use of `work` is behind us. Pairs with the Acquire in `end`: the owner of the
        // work sees everything that was done to it.
        self.inside.fetch_sub(1, Ordering::Release);
    }

    fn end(&self) -> Wait {
        *lock(&self.offer) = None;
        let mut spins = 0;
        // Pairs with the Release in `help`.
        while self.inside.load(Ordering::Acquire) > 0 {
            if spins < SPINS_BEFORE_YIELD {
                spins += 1;
                spin_loop();
            } else {
                yield_now();
            }
        }
        if spins < SPINS_BEFORE_YIELD { Wait::Short } else { Wait::Long }
    }
}

/// Ends an offer, also when the lender's own share panics.
struct End<'a>(&'a Lending);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Helps until told to stop.
    fn helpers(lending: &Lending, count: usize, then: impl FnOnce()) {
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
                        lending.help(number, &mut scratch);
                        std::thread::yield_now();
                    }
                });
            }
            then();
        });
    }

    #[test]
    fn borrowed_work_is_done_by_others_and_over_when_lend_returns() {
        let lending = Lending::default();
        helpers(&lending, 3, || {
            for round in 0..200 {
                // On this stack frame, gone after the round.
                let (entered, left) = (AtomicU32::new(0), AtomicU32::new(0));
                let work = |number: usize, _: &mut Scratch| {
                    assert!((1..=3).contains(&number));
                    entered.fetch_add(1, Ordering::Relaxed);
                    left.fetch_add(1, Ordering::Release);
                };
                lending
                    .lend(&work, |lent| {
                        assert!(lent, "round {round}");
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
        let lending = Lending::default();
        let work = |_: usize, _: &mut Scratch| {};
        let mut inner = None;
        lending
            .lend(&work, |outer| {
                assert!(outer);
                lending.lend(&work, |lent| inner = Some(lent)).unwrap();
            })
            .unwrap();
        assert_eq!(inner, Some(false));
        lending.lend(&work, |lent| assert!(lent, "free again")).unwrap();
    }

    #[test]
    fn a_helper_that_is_held_up_is_told_from_one_that_is_not() {
        let lending = Lending::default();
        assert_eq!(lending.lend(&|_, _| {}, |_| {}), Ok(Wait::Short), "nobody came");
        helpers(&lending, 1, || {
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
            assert_eq!(lending.lend(&slow, wait), Ok(Wait::Long));
        });
    }

    #[test]
    fn a_helpers_panic_is_an_error_and_the_next_work_is_not_touched_by_it() {
        let lending = Lending::default();
        helpers(&lending, 1, || {
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
            assert_eq!(lending.lend(&bad, wait), Err(HelperPanicked));
            assert!(lending.lend(&|_, _| {}, |_| {}).is_ok());
        });
    }

    #[test]
    fn a_panic_of_the_lender_waits_for_the_helpers() {
        let lending = Lending::default();
        helpers(&lending, 1, || {
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
                let _ = lending.lend(&work, |_| {
                    while !entered.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    panic!("on purpose");
                });
            }));
            assert!(caught.is_err());
            assert!(finished.load(Ordering::Relaxed));
            assert!(lending.lend(&|_, _| {}, |lent| assert!(lent)).is_ok());
        });
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p burst-driver --release --lib loom_`.
#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool as Flag;

    use super::*;

    /// The memory of the work is marked dead when `lend` has returned; no helper may see the mark.
    #[test]
    fn loom_work_is_never_used_after_lend_returned() {
        loom::model(|| {
            let lending = Arc::new(Lending::default());
            let helper = {
                let lending = Arc::clone(&lending);
                loom::thread::spawn(move || {
                    let mut scratch = Scratch::default();
                    lending.help(1, &mut scratch);
                    lending.help(1, &mut scratch);
                })
            };
            for _ in 0..2 {
                let dead = Arc::new(Flag::new(false));
                let work = |_: usize, _: &mut Scratch| {
                    assert!(!dead.load(Ordering::Relaxed));
                };
                lending.lend(&work, |lent| assert!(lent)).unwrap();
                dead.store(true, Ordering::Relaxed);
            }
            helper.join().unwrap();
        });
    }
}
