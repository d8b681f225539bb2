//! Ending a queue from outside: the peer died, or this end is shutting down.

use crate::sync::{AtomicBool, Ordering};

/// The truth about closing: a flag of our own process, which no peer can touch.
#[derive(Debug)]
pub struct Closed(AtomicBool);

impl Closed {
    /// Open.
    pub fn new() -> Closed {
        Closed(AtomicBool::new(false))
    }

    /// Whether the end was closed.
    #[inline]
    pub fn get(&self) -> bool {
        // Acquire: pairs with Release in `set`; whoever sees the flag sees what led to it.
        self.0.load(Ordering::Acquire)
    }

    /// Closes, for ever. The waker still has to set bits in the event word.
    pub fn set(&self) {
        // Release: pairs with Acquire in `get`.
        self.0.store(true, Ordering::Release);
    }
}

impl Default for Closed {
    fn default() -> Closed {
        Closed::new()
    }
}

/// Closes, then makes sleepers look: both ends' bits, so that a libfmq peer wakes too, and the
/// courtesy bit that tells a peer of our kind why.
pub fn close(closed: &Closed, word: Option<&crate::sync::EventWord>) {
    use crate::event_flag::{CLOSED, NOT_EMPTY, NOT_FULL};
    closed.set();
    if let Some(word) = word {
        // Release: pairs with Acquire in `announce_sleep`. A sleeper that clears its bit after this
        // sees the flag; one that cleared it before finds the word changed or is woken below.
        word.fetch_or(NOT_FULL | NOT_EMPTY | CLOSED, Ordering::Release);
        // All bits: sleepers may wait for bits of their caller's choice. A failed call leaves
        // nothing to be done; the word is ours and mapped, so there is no reason to fail.
        let _ = crate::futex::wake(word, std::num::NonZeroU32::MAX);
    }
}

#[cfg(not(loom))]
mod handle {
    use std::sync::Arc;

    use burst_shm::Shared;

    use super::{Closed, close};
    use crate::sync::EventWord;

    /// Ends the blocking calls of one end of a queue, from any thread.
    ///
    /// After [`close`](Closer::close) each of them returns
    /// [`QueueError::PeerDied`](crate::QueueError::PeerDied) as soon as it would have to wait;
    /// what is readable already is still handed out.
    #[derive(Debug, Clone)]
    pub struct Closer {
        pub(crate) closed: Arc<Closed>,
        pub(crate) event: Option<Shared<EventWord>>,
    }

    impl Closer {
        /// Closes, and wakes all sleepers of the queue, on both sides.
        pub fn close(&self) {
            close(&self.closed, self.event.as_deref());
        }

        /// Whether somebody closed this end.
        pub fn is_closed(&self) -> bool {
            self.closed.get()
        }
    }
}

#[cfg(not(loom))]
pub use handle::Closer;
