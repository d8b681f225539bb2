//! Ending a queue from outside: the peer died, or this end is shutting down.

use std::num::NonZeroU32;

use crate::sync::{AtomicBool, AtomicU32, EventWord, Ordering, fence};

/// The truth about closing: flags of our own process, which no peer can touch.
#[derive(Debug)]
pub struct Closed {
    closed: AtomicBool,
    /// Threads of this end that sleep, or are about to, or have just woken up.
    asleep: AtomicU32,
}

impl Closed {
    /// Open, and awake.
    pub fn new() -> Closed {
        Closed { closed: AtomicBool::new(false), asleep: AtomicU32::new(0) }
    }

    /// Whether the end was closed.
    #[inline]
    pub fn get(&self) -> bool {
        // Acquire: pairs with Release in `set`; a thread that sees the flag also sees what was written before it was set.
        self.closed.load(Ordering::Acquire)
    }

    /// Closes, for ever. The waker still has to set bits in the event word.
    pub fn set(&self) {
        // Release: pairs with Acquire in `get`.
        self.closed.store(true, Ordering::Release);
    }

    /// Announces a sleep to the closers of this process; false where the end is closed already. Either
    /// way [`wake_up`](Closed::wake_up) comes after it.
    #[inline]
    pub fn fall_asleep(&self) -> bool {
        // Relaxed: the fence orders it.
        self.asleep.fetch_add(1, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `is_asleep`. Of a closer and a sleeper at least one sees what
        // the other wrote.
        fence(Ordering::SeqCst);
        !self.get()
    }

    /// The sleep is over, or did not happen.
    #[inline]
    pub fn wake_up(&self) {
        // Release: pairs with Acquire in `is_asleep`; all that happens in the sleep comes before.
        self.asleep.fetch_sub(1, Ordering::Release);
    }

    /// Whether a thread may be asleep that does not know that the end was closed. For who closed it.
    fn is_asleep(&self) -> bool {
        // SeqCst: pairs with the fence in `fall_asleep`; our own `set` comes before.
        fence(Ordering::SeqCst);
        // Acquire: pairs with Release in `wake_up`.
        self.asleep.load(Ordering::Acquire) != 0
    }
}

impl Default for Closed {
    fn default() -> Closed {
        Closed::new()
    }
}

/// Closes, then wakes the sleepers of both ends by their bits, which a libfmq peer understands too; the
/// CLOSED bit tells a peer that uses this library why.
pub fn close(closed: &Closed, word: Option<&EventWord>) {
    use crate::event_flag::{CLOSED, NOT_EMPTY, NOT_FULL};
    closed.set();
    if let Some(word) = word {
        // Release: pairs with Acquire in `announce_sleep`. A sleeper that clears its bit after this
        // sees the flag; one that cleared it before finds the word changed or is woken below.
        word.fetch_or(NOT_FULL | NOT_EMPTY | CLOSED, Ordering::Release);
        // All bits: sleepers may wait for bits of their caller's choice. A failed call leaves
        // nothing to be done; the word is ours and mapped, so there is no reason to fail.
        let _ = crate::futex::wake(word, NonZeroU32::MAX);
    }
}

/// Times that a closer wakes sleepers again before it gives up. It takes a thread that does not get to
/// run for a second, or that stayed behind in a process which forked.
pub(crate) const REPEATS_MAX: u32 = 110;

/// As [`close`], and wakes the sleepers of this end again and again until all say that they are awake:
/// a peer can undo what was done to the word in the instant between a sleeper's last poll and its
/// sleep. `pause` rests before each time; it is given how many there were.
pub fn close_and_insist(closed: &Closed, word: Option<&EventWord>, mut pause: impl FnMut(u32)) {
    close(closed, word);
    let Some(word) = word else { return };
    for repeat in 0..REPEATS_MAX {
        if !closed.is_asleep() {
            return;
        }
        pause(repeat);
        // It fails for no word that is mapped.
        let _ = crate::futex::wake(word, NonZeroU32::MAX);
    }
}

#[cfg(not(loom))]
mod handle {
    use std::sync::Arc;
    use std::time::Duration;

    use burst_shm::Shared;

    use super::{Closed, close_and_insist};
    use crate::sync::EventWord;

    /// First pause before a sleeper that did not wake up is woken again; each is twice the last.
    const FIRST_PAUSE: Duration = Duration::from_micros(20);
    /// Longest of these pauses; all of them together take a second.
    const LONGEST_PAUSE: Duration = Duration::from_millis(10);

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
        /// Closes, and wakes all sleepers of the queue, on both sides. Returns when the threads of
        /// this end, where any slept, are awake.
        ///
        /// A hostile peer can undo what this does to the event word in the instant between the
        /// sleeper's last poll and its sleep. So the closer wakes the sleeper again and again until
        /// that says it is awake; once awake it reads the flag of its own process, which no peer can
        /// touch. That is why sleeps need no limit of their own.
        pub fn close(&self) {
            close_and_insist(&self.closed, self.event.as_deref(), |repeat| {
                std::thread::sleep(pause(repeat));
            });
        }

        /// Whether this end was closed.
        pub fn is_closed(&self) -> bool {
            self.closed.get()
        }
    }

    /// How long to rest before a sleeper is woken again.
    pub(crate) fn pause(repeat: u32) -> Duration {
        FIRST_PAUSE.saturating_mul(1 << repeat.min(16)).min(LONGEST_PAUSE)
    }
}

#[cfg(not(loom))]
pub use handle::Closer;
#[cfg(not(loom))]
pub(crate) use handle::pause;
