//! When to wake a client for its results, where several follow each other closely.

use std::time::Duration;

/// A shorter execution is over before a client that was woken gets to run.
const SHORT: Duration = Duration::from_micros(20);
/// Results that may wait for one wake-up.
const TOGETHER_MAX: u32 = 8;

/// Combines the wake-ups for results that follow each other at once.
#[derive(Debug, Default)]
pub(super) struct WakeCoalescer {
    deferred: u32,
}

impl WakeCoalescer {
    /// Whether to wake the client for a result now: `queued` says that another request is in the
    /// queue, `took` how long the last one took. A caller that gets `false` executes that request
    /// next, and asks again.
    pub(super) fn is_due(&mut self, queued: bool, took: Duration) -> bool {
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
        let mut coalescer = WakeCoalescer::default();
        assert!(coalescer.is_due(false, QUICK), "nothing follows");
        assert!(!coalescer.is_due(true, QUICK));
        assert!(coalescer.is_due(true, Duration::from_millis(1)), "the next one may take as long");
        let due: Vec<bool> = (0..16).map(|_| coalescer.is_due(true, QUICK)).collect();
        let at: Vec<usize> = due.iter().enumerate().filter(|one| *one.1).map(|one| one.0).collect();
        assert_eq!(at, [7, 15]);
        assert!(!coalescer.is_due(true, QUICK));
        assert!(coalescer.is_due(false, QUICK), "never left waiting");
    }
}
