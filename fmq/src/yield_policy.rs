//! When a waiter yields its CPU (`sched_yield`) before it sleeps.
//!
//! Where both ends share a CPU, the peer cannot answer before the waiter lets go of it. A sleep lets
//! go, but costs two system calls for each message: one to sleep, and one of the peer to wake the
//! sleeper. A yield costs one, and as the waiter announces no sleep, the peer has nobody to wake.
//!
//! Elsewhere a yield does not pay: a peer on another CPU answers no sooner for it, and a third
//! process that computes on this CPU keeps it for a whole time slice, whereas the scheduler lets a
//! sleeper in ahead of it when the sleeper is woken. So each end learns from its own yields, and
//! backs off from those that do not pay.

use std::ops::RangeInclusive;

/// A yield that lasts longer has not paid, in nanoseconds: a third process used the CPU meanwhile,
/// or the answer took so long that the cost of a sleep would hardly have shown.
const MAX_USEFUL_YIELD_NS: u64 = 50_000;
/// What a round trip takes where both ends share a CPU, in nanoseconds. After a yield that did not
/// pay, the waiter goes without for as many waits as round trips fit into the time it took, so that
/// what yields cost stays a fixed part of the whole.
const ROUND_TRIP_NS: u64 = 4_000;
/// Waits without a yield after the first one that did not pay: at least and at most.
const FIRST_PAUSE: RangeInclusive<u64> = 16..=1024;
/// Waits without a yield after many consecutive ones that did not pay: at most.
const MAX_PAUSE: u64 = 1 << 16;
/// After so many consecutive answered yields, the peer counts as sharing this CPU: polling cannot help.
const MIN_ANSWERED_YIELDS: u64 = 4;
/// With more waits than this before the next yield, the peer no longer counts as sharing this CPU:
/// the scheduler may have moved it meanwhile.
const MAX_PAUSE_IF_SHARED: u64 = 256;

/// What one end has learned about yielding, and when it yields next.
#[derive(Debug)]
pub(crate) struct YieldBackoff {
    /// Waits until the next yield.
    waits_left: u64,
    /// Length of the last pause, in waits. As many consecutive yields must pay before `factor` is reset.
    pause: u64,
    /// The next pause in units of the first one; doubles with each yield that did not pay.
    factor: u64,
    /// Consecutive yields that paid.
    paid: u64,
    /// Consecutive yields that paid, not counting those that a third process made long: they say
    /// nothing about where the peer runs.
    answered: u64,
}

impl YieldBackoff {
    /// Nothing learned yet: the first wait yields.
    pub(crate) fn new() -> YieldBackoff {
        YieldBackoff { waits_left: 0, pause: 0, factor: 1, paid: 0, answered: 0 }
    }

    /// Whether this wait should yield before it sleeps. Counts the wait.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.waits_left == 0;
        self.waits_left = self.waits_left.saturating_sub(1);
        due
    }

    /// Takes in how a yield went: it lasted for `lasted_ns`, and the answer was there after it or not.
    pub(crate) fn learn(&mut self, lasted_ns: u64, answered: bool) {
        if answered && lasted_ns <= MAX_USEFUL_YIELD_NS {
            self.paid += 1;
            self.answered += 1;
            if self.paid >= self.pause {
                self.factor = 1;
            }
            return;
        }
        self.paid = 0;
        if lasted_ns <= MAX_USEFUL_YIELD_NS {
            self.answered = 0;
        }
        let first = (lasted_ns / ROUND_TRIP_NS).clamp(*FIRST_PAUSE.start(), *FIRST_PAUSE.end());
        self.pause = (first * self.factor).min(MAX_PAUSE);
        self.waits_left = self.pause;
        self.factor = (self.factor * 2).min(MAX_PAUSE);
    }

    /// Whether the peer is known to share this CPU.
    pub(crate) fn peer_shares_cpu(&self) -> bool {
        self.answered >= MIN_ANSWERED_YIELDS && self.waits_left <= MAX_PAUSE_IF_SHARED
    }
}

/// Yields this CPU to another thread that is ready to run on it.
#[cfg(not(loom))]
pub(crate) fn yield_now() {
    std::thread::yield_now();
}

#[cfg(loom)]
pub(crate) fn yield_now() {
    loom::thread::yield_now();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Number of waits before the next yield.
    fn pause(backoff: &mut YieldBackoff) -> u64 {
        (0..).find(|_| backoff.is_due()).unwrap_or(u64::MAX)
    }

    #[test]
    fn yields_that_pay_are_repeated_and_show_that_the_peer_shares_the_cpu() {
        let mut backoff = YieldBackoff::new();
        for n in 0..100 {
            assert!(backoff.is_due());
            assert_eq!(backoff.peer_shares_cpu(), n >= MIN_ANSWERED_YIELDS);
            backoff.learn(MAX_USEFUL_YIELD_NS, true);
        }
    }

    #[test]
    fn yields_that_do_not_pay_become_rare_and_never_stop() {
        let mut backoff = YieldBackoff::new();
        assert_eq!(pause(&mut backoff), 0);
        for expected in
            [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536]
        {
            backoff.learn(300, false);
            assert_eq!(pause(&mut backoff), expected);
        }
        (1..MAX_PAUSE).for_each(|_| backoff.learn(300, true));
        backoff.learn(300, false);
        assert_eq!(pause(&mut backoff), MAX_PAUSE, "one yield too few has paid");
        (0..MAX_PAUSE).for_each(|_| backoff.learn(300, true));
        backoff.learn(300, false);
        assert_eq!(
            pause(&mut backoff),
            *FIRST_PAUSE.start(),
            "as many yields that paid as the pause had waits reset it"
        );
    }

    #[test]
    fn an_answer_after_a_third_process_time_slice_does_not_pay() {
        let mut backoff = YieldBackoff::new();
        (0..MIN_ANSWERED_YIELDS).for_each(|_| backoff.learn(2_000, true));
        assert!(backoff.peer_shares_cpu());
        backoff.learn(1_000_000, true);
        assert!(backoff.peer_shares_cpu(), "a third process says nothing about the peer");
        assert_eq!(pause(&mut backoff), 250);
        backoff.learn(1_000_000, true);
        assert!(!backoff.peer_shares_cpu(), "the pause is so long that the peer may have moved");
        assert_eq!(pause(&mut backoff), 500);
        // A third process that sleeps now and then lets some yields pay in between.
        for expected in [3000, 6000, 12000, 24000, 48000, 65536, 65536] {
            (0..200).for_each(|_| backoff.learn(2_000, true));
            backoff.learn(3_000_000, true);
            assert_eq!(pause(&mut backoff), expected);
        }
    }

    #[test]
    fn a_short_yield_without_an_answer_shows_that_the_peer_is_on_another_cpu() {
        let mut backoff = YieldBackoff::new();
        (0..MIN_ANSWERED_YIELDS).for_each(|_| backoff.learn(2_000, true));
        backoff.learn(300, false);
        assert!(!backoff.peer_shares_cpu());
    }

    #[test]
    fn a_short_disturbance_costs_a_short_pause_each_time() {
        let mut backoff = YieldBackoff::new();
        for _ in 0..10 {
            (0..1000).for_each(|_| backoff.learn(2_000, true));
            backoff.learn(200_000, true);
            assert_eq!(pause(&mut backoff), 50);
        }
    }
}
