//! What the metrics say of limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::limit::{Limit, LimitError};
use crate::heap::Heap;

/// How much of each limit is in use over all clients, how often it was reached, and how often
/// somebody came who may not use the service.
#[derive(Debug, Default)]
pub(crate) struct LimitMeters {
    used: [AtomicU64; Limit::ALL.len()],
    refused: [AtomicU64; Limit::ALL.len()],
    strangers: AtomicU64,
    /// Where the memory of all of them lies.
    heap: Arc<Heap>,
}

// Every ordering is relaxed: these are counts, which order no other memory.
impl LimitMeters {
    pub(crate) fn took(&self, what: Limit, amount: u64) {
        self.used[what as usize].fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn gave_back(&self, what: Limit, amount: u64) {
        self.used[what as usize].fetch_sub(amount, Ordering::Relaxed);
        if what == Limit::MemoryBytes {
            self.heap.freed(amount);
        }
    }

    /// A connection has ended, and what was held for it is given back.
    pub(crate) fn client_is_gone(&self) {
        self.heap.client_is_gone();
    }

    pub(crate) fn refused(&self, what: Limit) {
        self.refused[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn used(&self, what: Limit) -> u64 {
        self.used[what as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn refusals(&self, what: Limit) -> u64 {
        self.refused[what as usize].load(Ordering::Relaxed)
    }

    /// Somebody connected who may not use the service.
    pub(super) fn stranger(&self) {
        self.strangers.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`LimitError::NeverAllowed`] when it is over the limit by itself.
    pub(crate) fn within(&self, what: Limit, asked: u64, limit: u64) -> Result<(), LimitError> {
        if asked > limit {
            self.refused(what);
            return Err(LimitError::NeverAllowed { what, asked, limit });
        }
        Ok(())
    }
}
