//! What is counted of runs that take turns, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

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
