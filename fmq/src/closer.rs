//! Ending a queue from outside: the peer died, or this end is shutting down.

use crate::sync::{AtomicBool, Ordering};

/// The truth about closing: flags of our own process, which no peer can touch.
#[derive(Debug)]
pub struct Closed {
    closed: AtomicBool,
    /// The thread of the end sleeps, or is about to, or has just woken up.
    asleep: AtomicBool,
}

impl Closed {
    /// Open, and awake.
    pub fn new() -> Closed {
        Closed { closed: AtomicBool::new(false), asleep: AtomicBool::new(false) }
    }

    /// Whether the end was closed.
    #[inline]
    pub fn get(&self) -> bool {
        // Acquire: pairs with SeqCst in `set`; a thread that sees the flag also sees what was written before it was set.
        self.closed.load(Ordering::Acquire)
    }

    /// Closes, for ever. The waker still has to set bits in the event word.
    pub fn set(&self) {
        // SeqCst: with those of `fall_asleep` and `is_asleep`. Of a closer and a sleeper at least one
        // sees what the other wrote.
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Announces a sleep to the closers of this process; false where the end is closed already.
    #[inline]
    pub fn fall_asleep(&self) -> bool {
        // SeqCst, both: see `set`.
        self.asleep.store(true, Ordering::SeqCst);
        !self.closed.load(Ordering::SeqCst)
    }

    /// The sleep is over, or did not happen.
    #[inline]
    pub fn wake_up(&self) {
        // Release: pairs with SeqCst in `is_asleep`; all that happens in the sleep comes before.
        self.asleep.store(false, Ordering::Release);
    }

    #[cfg(not(loom))]
    fn is_asleep(&self) -> bool {
        // SeqCst: see `set`.
        self.asleep.load(Ordering::SeqCst)
    }
}

impl Default for Closed {
    fn default() -> Closed {
        Closed::new()
    }
}

/// Closes, then wakes the sleepers of both ends by their bits, which a libfmq peer understands too; the
/// CLOSED bit tells a peer that uses this library why.
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
    use std::num::NonZeroU32;
    use std::sync::Arc;
    use std::time::Duration;

    use burst_shm::Shared;

    use super::{Closed, close};
    use crate::sync::EventWord;

    /// First pause before a sleeper that did not wake up is woken again; each is twice the last.
    const FIRST_PAUSE: Duration = Duration::from_micros(20);
    /// Longest of these pauses.
    const LONGEST_PAUSE: Duration = Duration::from_millis(10);
    /// Pauses before a closer gives up, a second in all. It takes a thread that does not get to run
    /// for so long, or that stayed behind in a process which forked.
    const PAUSES_MAX: u32 = 110;

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
        /// Closes, and wakes all sleepers of the queue, on both sides. Returns when the thread of
        /// this end, where it slept, is awake.
        ///
        /// A hostile peer can undo what this does to the event word in the instant between the
        /// sleeper's last poll and its sleep. So the closer wakes the sleeper again and again until
        /// that says it is awake; once awake it reads the flag of its own process, which no peer can
        /// touch. That is why sleeps need no limit of their own.
        pub fn close(&self) {
            close(&self.closed, self.event.as_deref());
            let Some(event) = self.event.as_deref() else { return };
            let mut pause = FIRST_PAUSE;
            for _ in 0..PAUSES_MAX {
                if !self.closed.is_asleep() {
                    return;
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
                // It fails for no word that is mapped.
                let _ = crate::futex::wake(event, NonZeroU32::MAX);
            }
        }

        /// Whether this end was closed.
        pub fn is_closed(&self) -> bool {
            self.closed.get()
        }
    }
}

#[cfg(not(loom))]
pub use handle::Closer;
