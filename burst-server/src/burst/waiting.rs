//! How a burst's thread waits for requests: as its client asked, within what the operator allows, and
//! never polling for a client that has no requests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fmq::{Consumer, Wait};

use super::spin_shares::{SpinShares, SpinWish};

/// How long a burst polls without a request, before it sleeps until the next one. Far above the pauses
/// of a busy client (a camera's frame), so that only the idle pay for a wake-up.
const SPIN_PATIENCE: Duration = Duration::from_millis(50);

/// The way a burst waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// What its queue was told last.
    current: Wait,
    /// `None` for a burst that never polls without a pause.
    spin: Option<SpinWish>,
    /// It has polled in vain for [`SPIN_PATIENCE`], and sleeps until the next request.
    is_asleep: bool,
}

/// The lesser of two ways to wait, by what they cost the service.
pub(super) fn at_most(wait: Wait, most: Wait) -> Wait {
    match (wait, most) {
        (Wait::Sleep, _) | (_, Wait::Sleep) => Wait::Sleep,
        (Wait::Spin, most) => most,
        (wait, _) => wait,
    }
}

impl Waiting {
    /// For a burst of this user that should wait like this, on whose queue nothing is set so far.
    pub(super) fn new(wait: Wait, shares: &Arc<SpinShares>, uid: u32) -> Self {
        let spin = (wait == Wait::Spin).then(|| shares.wish(uid));
        // A burst without a place waits like this, too.
        let current = if spin.is_some() { Wait::default() } else { wait };
        Waiting { current, spin, is_asleep: false }
    }

    /// Where it may poll: whether it has a place for that now.
    pub(super) fn polls(&self) -> Option<Arc<AtomicBool>> {
        self.spin.as_ref().map(SpinWish::granted)
    }

    /// How its queues are to wait at first.
    pub(super) fn initial(&self) -> Wait {
        self.current
    }

    /// Before it waits: looks whether its user's share has changed.
    #[inline]
    pub(super) fn prepare(&mut self, requests: &mut Consumer) {
        if let Some(spin) = &self.spin {
            let wait = match (self.is_asleep, spin.is_granted()) {
                (true, _) => Wait::Sleep,
                (false, true) => Wait::Spin,
                (false, false) => Wait::default(),
            };
            if wait != self.current {
                self.current = wait;
                requests.set_wait(wait);
            }
        }
    }

    /// How long it may wait like this at most.
    pub(super) fn patience(&self) -> Option<Duration> {
        (self.current == Wait::Spin).then_some(SPIN_PATIENCE)
    }

    /// No request came in that time; gives whether it polled until now, and sleeps from now on.
    pub(super) fn fall_asleep(&mut self) -> bool {
        let Some(spin) = self.spin.as_mut().filter(|_| self.current == Wait::Spin) else {
            return false;
        };
        spin.withdraw();
        self.is_asleep = true;
        true
    }

    /// A request came.
    #[inline]
    pub(super) fn wake_up(&mut self) {
        if self.is_asleep {
            self.is_asleep = false;
            if let Some(spin) = &mut self.spin {
                spin.renew();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fmq::QueueConfig;

    use super::*;

    #[test]
    fn the_operator_caps_what_clients_ask_for() {
        let adaptive = Wait::default();
        for (asked, most, want) in [
            (Wait::Spin, Wait::Spin, Wait::Spin),
            (Wait::Spin, adaptive, adaptive),
            (Wait::Spin, Wait::Sleep, Wait::Sleep),
            (adaptive, Wait::Spin, adaptive),
            (adaptive, Wait::Sleep, Wait::Sleep),
            (Wait::Sleep, Wait::Spin, Wait::Sleep),
        ] {
            assert_eq!(at_most(asked, most), want, "{asked:?} {most:?}");
        }
    }

    #[test]
    fn a_burst_that_polls_in_vain_sleeps_until_the_next_request_and_may_poll_again() {
        let shares = SpinShares::new(2);
        let mut requests = Consumer::create(&QueueConfig::new(24, 8)).unwrap();
        let mut waiting = Waiting::new(Wait::Spin, &shares, 7);
        let mut other = Waiting::new(Wait::Spin, &shares, 7);
        waiting.prepare(&mut requests);
        assert_eq!((waiting.current, waiting.patience()), (Wait::Spin, Some(SPIN_PATIENCE)));
        other.prepare(&mut requests);
        assert_eq!((other.current, other.patience()), (Wait::default(), None), "no place is left");
        assert!(!other.fall_asleep(), "adaptive waiting sleeps by itself");

        assert!(waiting.fall_asleep());
        waiting.prepare(&mut requests);
        other.prepare(&mut requests);
        assert_eq!((waiting.current, waiting.patience()), (Wait::Sleep, None));
        assert_eq!(other.current, Wait::Spin, "its place is for others");
        assert!(!waiting.fall_asleep());
        drop(other);
        waiting.wake_up();
        waiting.prepare(&mut requests);
        assert_eq!(waiting.current, Wait::Spin);
    }

    #[test]
    fn who_asks_for_less_is_never_told_to_poll() {
        let shares = SpinShares::new(8);
        let mut requests = Consumer::create(&QueueConfig::new(24, 8)).unwrap();
        for wait in [Wait::default(), Wait::Sleep] {
            let mut waiting = Waiting::new(wait, &shares, 7);
            waiting.prepare(&mut requests);
            waiting.wake_up();
            assert_eq!((waiting.initial(), waiting.current), (wait, wait));
            assert!(waiting.patience().is_none() && !waiting.fall_asleep());
        }
    }
}
