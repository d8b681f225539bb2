//! Giving the CPU away once before a sleep.
//!
//! Where both ends share a CPU, the peer cannot answer before we let go of it, and a sleep and the
//! wake-up that ends it are the dear way of doing so: two futex calls for each message, where one
//! `sched_yield` does. Nobody announces a sleep then, so nobody has to be woken.
//!
//! Whether it pays is learned, because elsewhere it does not: a peer on another CPU answers no
//! sooner for it, and a stranger who computes on our CPU keeps it for its whole time slice, while
//! somebody who sleeps is let in front when woken.

use std::ops::RangeInclusive;

/// A turn that lasted longer was a stranger's, or the answer took so long that a sleep would hardly
/// have shown.
const LONGEST_NS: u64 = 50_000;
/// After a turn that did not pay there is one wait without for so many nanoseconds that it took:
/// about what a round trip takes on one CPU.
const PER_WAIT_NS: u64 = 4_000;
/// But so many waits at least and at most.
const FIRST_PAUSE: RangeInclusive<u64> = 16..=1024;
/// Most waits without a turn, after many in vain.
const LONGEST_PAUSE: u64 = 1 << 16;
/// So many turns in a row paid: the peer does share our CPU, and polling cannot help.
const CERTAIN: u64 = 4;
/// With more waits before the next turn, that is no longer certain: the peer may have moved.
const FORGOTTEN: u64 = 256;

/// What was learned about giving turns.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Waits left that go without.
    left: u64,
    /// How long the last pause was. As many turns in a row must pay before it is forgotten.
    pause: u64,
    /// The next pause is so many times the first one; doubles with each turn in vain.
    factor: u64,
    /// Turns in a row that paid.
    paid: u64,
    /// The same, not counting those that a stranger took: they say nothing of the peer.
    met: u64,
}

impl Turns {
    /// Nothing learned yet: the first wait tries it.
    pub(crate) fn new() -> Turns {
        Turns { left: 0, pause: 0, factor: 1, paid: 0, met: 0 }
    }

    /// Whether this wait should give its CPU away before it sleeps.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    /// A turn lasted for `lasted_ns`, and the answer was there after it or not.
    pub(crate) fn learn(&mut self, lasted_ns: u64, answered: bool) {
        if answered && lasted_ns <= LONGEST_NS {
            self.paid += 1;
            self.met += 1;
            if self.paid >= self.pause {
                self.factor = 1;
            }
            return;
        }
        self.paid = 0;
        if lasted_ns <= LONGEST_NS {
            self.met = 0;
        }
        let first = (lasted_ns / PER_WAIT_NS).clamp(*FIRST_PAUSE.start(), *FIRST_PAUSE.end());
        self.pause = (first * self.factor).min(LONGEST_PAUSE);
        self.left = self.pause;
        self.factor = (self.factor * 2).min(LONGEST_PAUSE);
    }

    /// Whether the peer is known to share our CPU.
    pub(crate) fn share_a_cpu(&self) -> bool {
        self.met >= CERTAIN && self.left <= FORGOTTEN
    }
}

/// Gives the CPU to whoever else wants it.
#[cfg(not(loom))]
pub(crate) fn give() {
    std::thread::yield_now();
}

#[cfg(loom)]
pub(crate) fn give() {
    loom::thread::yield_now();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Waits until a turn is due again.
    fn pause(turns: &mut Turns) -> u64 {
        (0..).find(|_| turns.is_due()).unwrap_or(u64::MAX)
    }

    #[test]
    fn turns_that_pay_are_taken_each_time_and_show_that_a_cpu_is_shared() {
        let mut turns = Turns::new();
        for n in 0..100 {
            assert!(turns.is_due());
            assert_eq!(turns.share_a_cpu(), n >= CERTAIN);
            turns.learn(LONGEST_NS, true);
        }
    }

    #[test]
    fn turns_in_vain_become_rare_and_are_never_given_up() {
        let mut turns = Turns::new();
        assert_eq!(pause(&mut turns), 0);
        for expected in
            [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536]
        {
            turns.learn(300, false);
            assert_eq!(pause(&mut turns), expected);
        }
        (1..LONGEST_PAUSE).for_each(|_| turns.learn(300, true));
        turns.learn(300, false);
        assert_eq!(pause(&mut turns), LONGEST_PAUSE, "too few that paid");
        (0..LONGEST_PAUSE).for_each(|_| turns.learn(300, true));
        turns.learn(300, false);
        assert_eq!(pause(&mut turns), *FIRST_PAUSE.start(), "as many that paid make up for all");
    }

    #[test]
    fn an_answer_after_a_strangers_time_slice_is_no_success() {
        let mut turns = Turns::new();
        (0..CERTAIN).for_each(|_| turns.learn(2_000, true));
        assert!(turns.share_a_cpu());
        turns.learn(1_000_000, true);
        assert!(turns.share_a_cpu(), "a stranger says nothing of the peer");
        assert_eq!(pause(&mut turns), 250);
        turns.learn(1_000_000, true);
        assert!(!turns.share_a_cpu(), "the pause is so long that the peer may have moved");
        assert_eq!(pause(&mut turns), 500);
        // A stranger with a short breath lets some turns pay in between.
        for expected in [3000, 6000, 12000, 24000, 48000, 65536, 65536] {
            (0..200).for_each(|_| turns.learn(2_000, true));
            turns.learn(3_000_000, true);
            assert_eq!(pause(&mut turns), expected);
        }
    }

    #[test]
    fn a_short_turn_without_an_answer_shows_that_the_peer_is_elsewhere() {
        let mut turns = Turns::new();
        (0..CERTAIN).for_each(|_| turns.learn(2_000, true));
        turns.learn(300, false);
        assert!(!turns.share_a_cpu());
    }

    #[test]
    fn a_short_disturbance_costs_a_short_pause_each_time() {
        let mut turns = Turns::new();
        for _ in 0..10 {
            (0..1000).for_each(|_| turns.learn(2_000, true));
            turns.learn(200_000, true);
            assert_eq!(pause(&mut turns), 50);
        }
    }
}
