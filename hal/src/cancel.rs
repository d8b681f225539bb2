//! Giving up executions whose results nobody will read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the service sets when nobody wants the results any more: the client hung up, or was
/// killed.
///
/// All copies share one flag. Any copy can set it, and it stays set. An execution that holds a copy
/// checks it wherever it checks its deadline.
#[derive(Debug, Clone, Default)]
pub struct CancelWord(Arc<AtomicBool>);

impl CancelWord {
    /// Asks every execution that holds a copy to give up.
    pub fn cancel(&self) {
        // Relaxed: no other memory is published through this flag.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](CancelWord::cancel) was called on any copy.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
