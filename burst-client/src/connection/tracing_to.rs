//! Where the spans of a connection go.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use burst_hal::trace::{Tracer, when_on};

use crate::waiting::lock;

/// A tracer, or none: then asking for it is one load.
#[derive(Debug, Default)]
pub(super) struct TracingTo {
    is_set: AtomicBool,
    tracer: Mutex<Option<Tracer>>,
}

impl TracingTo {
    pub(super) fn set(&self, tracer: Option<Tracer>) {
        let mut current = lock(&self.tracer);
        // Relaxed: who sees it takes the lock.
        self.is_set.store(tracer.is_some(), Ordering::Relaxed);
        let before = std::mem::replace(&mut *current, tracer);
        drop(current);
        drop(before); // the lock is let go of by now
    }

    #[inline]
    pub(super) fn get(&self) -> Option<Tracer> {
        if !self.is_set.load(Ordering::Relaxed) {
            return None;
        }
        lock(&self.tracer).as_ref().and_then(when_on)
    }
}
