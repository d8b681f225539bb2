//! Giving up executions whose results nobody will read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A word that is set when nobody wants the results any more: the client hung up, or was killed.
///
/// Whoever holds a copy may set it, once and for all; an execution that was given one looks at it
/// where it looks at its deadline.
#[derive(Debug, Clone, Default)]
pub struct CancelWord(Arc<AtomicBool>);

impl CancelWord {
    /// Asks every execution that looks at this word to give up.
    pub fn cancel(&self) {
        // Relaxed: the word stands for nothing but itself.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked for that.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
