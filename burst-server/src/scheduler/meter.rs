//! What is counted of runs that take turns, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::TimePoint;

/// Written under the lock of the claims, read at any time.
#[derive(Debug, Default)]
pub(crate) struct TurnMeter {
    waiting: AtomicU64,
    begun_beside: AtomicU64,
    beside: AtomicU64,
}

// Relaxed everywhere: each counts for itself.
impl TurnMeter {
    /// How many runs wait for their turn just now.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How often a run began to compute without a token.
    pub(crate) fn begun_beside(&self) -> u64 {
        self.begun_beside.load(Ordering::Relaxed)
    }

    /// How many do just now.
    pub(crate) fn beside(&self) -> u64 {
        self.beside.load(Ordering::Relaxed)
    }

    pub(super) fn note_waiting(&self, waiting: usize) {
        self.waiting.store(waiting as u64, Ordering::Relaxed);
    }

    pub(super) fn note_begun_beside(&self) {
        self.begun_beside.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_beside(&self, beside: usize) {
        self.beside.store(beside as u64, Ordering::Relaxed);
    }
}

/// How long one run has waited for its turn. Its thread writes, others look.
#[derive(Debug, Default)]
pub(super) struct Waited {
    /// When it began to wait, 0 where it does not.
    since: AtomicU64,
    /// Of the times before.
    total: AtomicU64,
}

// Relaxed: who looks in between sees a wait that has just ended counted or not yet counted.
impl Waited {
    pub(super) fn begin(&self) {
        self.since.store(TimePoint::now().nanos.max(1), Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        let total = self.ns();
        self.since.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    pub(super) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// In nanoseconds, up to now.
    pub(super) fn ns(&self) -> u64 {
        let total = self.total.load(Ordering::Relaxed);
        match self.since() {
            0 => total,
            since => total.saturating_add(TimePoint::now().nanos.saturating_sub(since)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_add_up_and_one_that_goes_on_counts_already() {
        let waited = Waited::default();
        assert_eq!((waited.since(), waited.ns()), (0, 0));
        waited.begin();
        let first = std::iter::repeat_with(|| waited.ns()).find(|ns| *ns > 0).unwrap();
        waited.end();
        let whole = waited.ns();
        assert!(waited.since() == 0 && whole >= first);
        assert_eq!(waited.ns(), whole, "it does not go on");
        waited.begin();
        waited.end();
        assert!(waited.ns() >= whole);
    }
}
