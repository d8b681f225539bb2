//! When a client is woken for its results, where several are on their way.

use std::time::Duration;

/// An execution that is shorter than this is over before a woken client would have run.
const SHORT: Duration = Duration::from_micros(20);
/// Results that may wait for one wake-up.
const TOGETHER_MAX: u32 = 8;

/// Puts wake-ups off while the next result follows at once.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    deferred: u32,
}

impl Wakes {
    /// Whether to wake the client for a result now: `queued` says that another request is there,
    /// `took` how long the last one did. Whoever gets a `false` executes that request next, and
    /// asks again.
    pub(crate) fn is_due(&mut self, queued: bool, took: Duration) -> bool {
        let put_off = queued && took < SHORT && self.deferred + 1 < TOGETHER_MAX;
        self.deferred = if put_off { self.deferred + 1 } else { 0 };
        !put_off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(3);

    #[test]
    fn a_client_is_woken_for_the_last_result_for_long_ones_and_for_every_eighth() {
        let mut wakes = Wakes::default();
        assert!(wakes.is_due(false, QUICK), "nothing follows");
        assert!(!wakes.is_due(true, QUICK));
        assert!(wakes.is_due(true, Duration::from_millis(1)), "the next one may take as long");
        let due: Vec<bool> = (0..16).map(|_| wakes.is_due(true, QUICK)).collect();
        let at: Vec<usize> = due.iter().enumerate().filter(|one| *one.1).map(|one| one.0).collect();
        assert_eq!(at, [7, 15]);
        assert!(!wakes.is_due(true, QUICK));
        assert!(wakes.is_due(false, QUICK), "never left waiting");
    }
}
