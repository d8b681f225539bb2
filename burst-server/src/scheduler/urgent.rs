//! Lets threads run that the kernel has queued behind one that computes for a less urgent model of the same
//! user.
//!
//! A run token says who computes; who gets a core is the kernel's decision. With all cores busy it
//! queues a thread that is woken behind one that computes, until that one's time slice is over: milliseconds, in
//! which the thread of a burst with a request cannot even ask for a token, nor a client read its answer. So a run that computes
//! looks, between two steps, whether a more urgent burst of its user has a request that its thread has not
//! begun, or a token that its thread has not taken, or has just ended, and lets whoever waits for the core have it. Where no burst is
//! more urgent than another run of its user, nobody looks. Why it is so:
//! `docs/decisions/0035-a-core-for-the-urgent.md`.
//!
//! Whether there are requests says a word that the client can write, in memory whose pages it can take away: to
//! look there may take as long as the client likes. So it is looked at with no lock held, and only by runs of
//! the same user; users share nothing here but the table of who there is.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use burst_hal::Priority;
use fmq::Gauge;

use crate::panics::lock;

/// So often a run that computes looks at most: a look costs a cache miss for each burst that it looks at.
pub(super) const LOOK_EVERY_NS: u64 = 50_000;
/// So long after an answer of an urgent burst a run yields at each look. The kernel does not take a client that has
/// just polled for its answer at the first yield: it has had its share for the moment.
pub(super) const CLIENTS_TURN_NS: u64 = 2_000_000;
/// So many bursts are looked at in one look. Those beyond wait for the kernel, as they would without it.
const LOOKED_AT_MAX: usize = 16;

/// What a thread waits for, which the kernel may have queued behind one that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// It has its token.
    Core,
    /// Its burst has a request, which it has not begun.
    CoreAndToken,
}

/// What a run that computes has to know of the more urgent bursts of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct News {
    /// What their threads need.
    pub(super) need: Option<Need>,
    /// How often they have ended what they had begun. Where it changes, a client may wait for a core to
    /// read its answer on.
    pub(super) ends: u64,
}

/// What is looked at: the run of a burst.
pub(super) trait Watched: fmt::Debug + Send + Sync {
    /// What its thread needs; `has_requests` looks whether there are any.
    fn needs(&self, has_requests: &dyn Fn() -> bool) -> Option<Need>;

    /// How often it ended so far.
    fn ends(&self) -> u64;
}

/// The users whose runs there are, each with its bursts.
#[derive(Debug, Default)]
pub(super) struct Users(Mutex<HashMap<u32, Weak<Urgent>>>);

impl Users {
    /// The bursts of this user.
    pub(super) fn of(&self, user: u32) -> Arc<Urgent> {
        let mut known = lock(&self.0);
        if let Some(urgent) = known.get(&user).and_then(Weak::upgrade) {
            return urgent;
        }
        known.retain(|_, urgent| urgent.strong_count() > 0);
        let urgent = Arc::default();
        known.insert(user, Arc::downgrade(&urgent));
        urgent
    }
}

/// Bursts of one user that its less urgent runs may have to let run.
#[derive(Debug, Default)]
pub(super) struct Urgent {
    /// Of HIGH priority.
    high: AtomicU32,
    /// Of MEDIUM priority.
    medium: AtomicU32,
    bursts: Mutex<Vec<Burst>>,
}

#[derive(Debug)]
struct Burst {
    number: u64,
    priority: Priority,
    run: Weak<dyn Watched>,
    requests: Gauge,
}

impl Urgent {
    /// This run is one of a burst with these requests.
    pub(super) fn add(
        &self,
        number: u64,
        priority: Priority,
        run: Weak<dyn Watched>,
        requests: Gauge,
    ) {
        let Some(count) = self.count(priority) else { return };
        lock(&self.bursts).push(Burst { number, priority, run, requests });
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The run with this number is gone, if it was one of a burst.
    pub(super) fn forget(&self, number: u64) {
        let mut bursts = lock(&self.bursts);
        let Some(at) = bursts.iter().position(|burst| burst.number == number) else { return };
        let forgotten = bursts.swap_remove(at);
        drop(bursts); // unmapping its queue takes its time
        if let Some(count) = self.count(forgotten.priority) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether there may be a more urgent burst than this.
    #[inline]
    pub(super) fn is_above(&self, priority: Priority) -> bool {
        // Relaxed, as all here: a look that comes a step too late is as good.
        let is_there = |count: &AtomicU32| count.load(Ordering::Relaxed) != 0;
        match priority {
            Priority::High => false,
            Priority::Medium => is_there(&self.high),
            Priority::Low => is_there(&self.high) || is_there(&self.medium),
        }
    }

    /// How the bursts are that are more urgent than this.
    pub(super) fn news(&self, priority: Priority) -> News {
        let bursts = lock(&self.bursts);
        let above = bursts.iter().filter(|burst| burst.priority > priority);
        let with_gauge = |burst: &Burst| Some((burst.run.upgrade()?, burst.requests.clone()));
        let runs: Vec<(Arc<dyn Watched>, Gauge)> =
            above.take(LOOKED_AT_MAX).filter_map(with_gauge).collect();
        // Before the client's words are looked at. And a run whose last reference is dropped here asks for
        // the lock.
        drop(bursts);
        let needs =
            |(run, requests): &(Arc<dyn Watched>, Gauge)| run.needs(&|| requests.items() != 0);
        News {
            need: runs.iter().filter_map(needs).max(),
            ends: runs.iter().fold(0, |ends, (run, _)| ends.wrapping_add(run.ends())),
        }
    }

    fn count(&self, priority: Priority) -> Option<&AtomicU32> {
        match priority {
            Priority::High => Some(&self.high),
            Priority::Medium => Some(&self.medium),
            Priority::Low => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at its requests with something done just before.
    struct Looked {
        before: Mutex<Box<dyn FnMut() + Send>>,
    }

    impl fmt::Debug for Looked {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Looked").finish_non_exhaustive()
        }
    }

    impl Watched for Looked {
        fn needs(&self, has_requests: &dyn Fn() -> bool) -> Option<Need> {
            (lock(&self.before))();
            has_requests().then_some(Need::CoreAndToken)
        }

        fn ends(&self) -> u64 {
            0
        }
    }

    #[test]
    fn the_words_of_a_client_are_looked_at_with_no_lock_held() {
        let urgent = Arc::new(Urgent::default());
        let (mut requests, served) = fmq::pair(&fmq::QueueConfig::new(8, 4)).unwrap();
        let of_user = Arc::clone(&urgent);
        let before = Box::new(move || {
            // What other threads of the user do meanwhile, and what only a later look can find.
            of_user.forget(8);
            requests.write(&[0; 8]).unwrap();
        });
        let looked = Arc::new(Looked { before: Mutex::new(before) });
        let weak = Arc::downgrade(&looked) as Weak<dyn Watched>;
        urgent.add(7, Priority::High, weak.clone(), served.gauge());
        urgent.add(8, Priority::Medium, weak, served.gauge());
        assert_eq!(urgent.news(Priority::Medium).need, Some(Need::CoreAndToken));
    }
}
