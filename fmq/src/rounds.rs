//! Rounds of a sleep that brought nothing: the deadline is looked at after each, and a peer that
//! causes too many of them is answered with naps.

#[cfg(not(loom))]
use std::time::Duration;

use crate::clock::{self, Deadline};

/// Rounds without progress that a peer may cause before the sleeper naps instead. An honest peer changes
/// the word twice per message at most.
pub(crate) const IDLE_ROUNDS_MAX: u32 = 64;
/// Length of such a nap: a hostile peer can make the sleeper look a thousand times a second, no more.
#[cfg(not(loom))]
pub(crate) const NAP: Duration = Duration::from_millis(1);

/// Counts the rounds of one sleep after which there was no answer and the other end's counter was no
/// further than before.
#[derive(Debug, Default)]
pub(crate) struct IdleRounds {
    count: u32,
    furthest: u64,
}

impl IdleRounds {
    /// A round is over, without an answer; `progress` is how far the other end's counter is. Naps where
    /// there were too many rounds of no progress. False when `until` has passed.
    pub(crate) fn go_on(&mut self, progress: u64, until: Deadline) -> bool {
        if progress > self.furthest {
            self.furthest = progress;
        } else {
            self.count = self.count.saturating_add(1);
        }
        if has_passed(until) {
            return false;
        }
        if self.count > IDLE_ROUNDS_MAX {
            nap(until);
            return !has_passed(until);
        }
        true
    }
}

/// As [`Deadline::has_passed`] now, without a look at the clock where there is no deadline.
pub(crate) fn has_passed(until: Deadline) -> bool {
    until.as_ns().is_some() && until.has_passed(clock::now_ns())
}

/// Sleeps without the word for a moment, since the peer does not let this end sleep on it; not beyond
/// `until`.
#[cfg(not(loom))]
pub(crate) fn nap(until: Deadline) {
    let left = until.as_ns().map(|at| Duration::from_nanos(at.saturating_sub(clock::now_ns())));
    std::thread::sleep(left.map_or(NAP, |left| left.min(NAP)));
}

/// As above: others run meanwhile.
#[cfg(loom)]
pub(crate) fn nap(_: Deadline) {
    loom::thread::yield_now();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_looked_at_after_the_first_round_already() {
        let mut rounds = IdleRounds::default();
        assert!(!rounds.go_on(0, Deadline::at_ns(1)));
        assert!(!IdleRounds::default().go_on(1, Deadline::at_ns(1)), "progress is no excuse");
        assert!(rounds.go_on(0, Deadline::after(Duration::from_secs(60))));
    }

    #[test]
    fn only_rounds_in_which_the_counter_got_further_are_not_counted() {
        let mut rounds = IdleRounds::default();
        for (progress, count) in [(8, 0), (16, 0), (16, 1), (8, 2), (16, 3), (24, 3)] {
            assert!(rounds.go_on(progress, Deadline::never()));
            assert_eq!(rounds.count, count, "at {progress}");
        }
    }

    #[test]
    fn each_round_over_the_limit_costs_a_nap_but_none_lasts_beyond_the_deadline() {
        let mut rounds = IdleRounds { count: IDLE_ROUNDS_MAX - 1, furthest: 0 };
        assert!(rounds.go_on(0, Deadline::never()));
        let before = clock::now_ns();
        assert!(rounds.go_on(0, Deadline::never()));
        assert!(clock::now_ns() - before >= 1_000_000);
        let soon = Deadline::after(Duration::from_micros(50));
        assert!(!rounds.go_on(0, soon), "it slept up to the deadline and no further");
    }
}
