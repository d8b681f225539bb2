//! Payload as loom sees it: a word that panics when two threads touch it without being ordered.

#![allow(unsafe_code, reason = "shares a cell that loom watches")]

use loom::cell::UnsafeCell;

/// One word of payload in a loom model.
///
/// Real payload is copied without any ordering of its own; only a queue's counters order it. Here
/// loom checks that they do: it panics at a read or write that races with another.
#[derive(Debug)]
pub struct ModelWord(UnsafeCell<u64>);

// SAFETY: loom runs one thread of a model at a time, and ends the model at the first access that
// is not ordered after the conflicting ones before it.
unsafe impl Sync for ModelWord {}

impl ModelWord {
    /// A word with this value.
    pub fn new(value: u64) -> ModelWord {
        ModelWord(UnsafeCell::new(value))
    }

    /// Writes as a copy into shared memory does.
    pub fn write(&self, value: u64) {
        // SAFETY: the pointer is valid inside the closure; loom panicked before it if another
        // thread may be touching the word.
        self.0.with_mut(|word| unsafe { *word = value });
    }

    /// Reads as a copy out of shared memory does.
    pub fn read(&self) -> u64 {
        // SAFETY: as in `write`.
        self.0.with(|word| unsafe { *word })
    }
}
