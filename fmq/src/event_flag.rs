//! The event word: 32 sticky notifications that two processes share, and sleep on.
//!
//! A set bit says "notified", or for the two bits of a queue "this end is awake". An end
//! that is about to sleep clears its bit; the other end, when it has news, sets that bit and calls the
//! kernel only if it was clear.
//!
//! # Why no wake-up is lost
//!
//! Both sides change the word by read-modify-writes, and these have one order. Let the waker store
//! its news and then set the bit; the sleeper clears the bit and then polls for news.
//! * Set before clear: the clear reads what the set wrote (Acquire meets Release), so the poll that
//!   follows finds the news.
//! * Clear before set: the set finds the bit clear and wakes. The kernel compares the word under a
//!   lock before it puts anybody to sleep, so the sleeper either sleeps already, and is woken, or
//!   finds the word changed.
//!
//! This holds for any number of sleepers on a bit, because of one rule: *who sets a bit wakes those who
//! sleep on it*, whatever for it was set. A bit that were set in silence would stop the next waker from
//! calling the kernel, and its sleepers would sleep on.
//!
//! The value of the word is a hint and no more: it decides who calls the kernel when, never what is
//! in the queue.

use std::num::NonZeroU32;

use burst_shm::Errno;

use crate::futex;
use crate::sync::{EventWord, Ordering};

/// The reader read something: the writer may go on. libfmq's value.
pub const NOT_FULL: u32 = 0x01;
/// The writer wrote something: the reader may go on. libfmq's value.
pub const NOT_EMPTY: u32 = 0x02;
/// One end was closed. Ours; libfmq knows nothing of it and leaves it alone.
pub const CLOSED: u32 = 1 << 31;

/// Sets `bits` and wakes their sleepers, if there can be any.
///
/// # Errors
/// What the kernel answers to the wake; a legal word gives none.
#[inline]
pub fn wake(word: &EventWord, bits: u32) -> Result<(), Errno> {
    // Release: pairs with Acquire in `announce_sleep`, see the module. It is always a
    // read-modify-write, never skipped after a plain load: a libfmq sleeper has no fence that a load
    // could rely on, and on x86 a load would need a full fence of the same price.
    let before = word.fetch_or(bits, Ordering::Release);
    if before & bits == bits { Ok(()) } else { wake_sleepers(word, bits) }
}

#[cold]
fn wake_sleepers(word: &EventWord, bits: u32) -> Result<(), Errno> {
    match NonZeroU32::new(bits) {
        Some(bits) => futex::wake(word, bits),
        None => Ok(()),
    }
}

/// Clears `bits` before sleeping; gives the word as it was. What was written before the bits were
/// last set is visible now.
#[inline]
pub fn announce_sleep(word: &EventWord, bits: u32) -> u32 {
    // Acquire: pairs with Release in `wake` and in `closer::close`, see the module.
    word.fetch_and(!bits, Ordering::Acquire)
}

/// Says that the end behind `bits` is awake, so that the other end need not call the kernel to wake it.
/// Wakes those who sleep on these bits, for another end or by another numbering of bits: they look and
/// sleep again.
///
/// # Errors
/// As [`wake`].
#[inline]
pub fn announce_awake(word: &EventWord, bits: u32) -> Result<(), Errno> {
    // Relaxed: it announces nothing else. After a wake-up the waker has set the bits already; where
    // a sleeper clears them right now, the next waker calls the kernel.
    if word.load(Ordering::Relaxed) & bits == bits { Ok(()) } else { wake(word, bits) }
}

#[cfg(not(loom))]
pub use alone::{EventError, EventFlag};

#[cfg(not(loom))]
mod alone {
    use std::num::NonZeroU32;
    use std::sync::Arc;

    use burst_shm::{Errno, Mapping, Memory, Shared, ShmError};

    use super::{announce_sleep, wake};
    use crate::clock::Deadline;
    use crate::futex::{self, Woken};
    use crate::rounds::IdleRounds;
    use crate::sync::EventWord;

    /// Why a wait on an [`EventFlag`] ended without a notification. What
    /// [`QueueError`](crate::QueueError) knows too has the same name there.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum EventError {
        /// No bit to wait for (`EINVAL`).
        #[error("event bits {bits:#x} cannot be waited for")]
        BadBits {
            /// The mask that was passed.
            bits: u32,
        },
        /// The word changed before we slept (`EAGAIN`).
        #[error("the word changed before the sleep")]
        Again,
        /// Woken without one of our bits: stolen by another waiter, or a signal (`EINTR`).
        #[error("woken without a notification")]
        Interrupted,
        /// The deadline passed (`ETIMEDOUT`).
        #[error("the deadline passed")]
        Timeout,
        /// A system call failed in a way it should not.
        #[error("{call}: {errno}")]
        System {
            /// The call.
            call: &'static str,
            /// Its error number.
            errno: Errno,
        },
    }

    fn failed(errno: Errno) -> EventError {
        EventError::System { call: "futex", errno }
    }

    /// The event word as a notification of its own, without a queue.
    ///
    /// Bits stay set until a waiter takes them. Two waiters on one bit steal from each other.
    #[derive(Debug, Clone)]
    pub struct EventFlag {
        word: Shared<EventWord>,
    }

    impl EventFlag {
        /// The word at `offset` of a mapping.
        ///
        /// # Errors
        /// [`ShmError::OutOfBounds`], [`ShmError::Misaligned`], [`ShmError::ReadOnly`].
        pub fn at(mapping: &Arc<Mapping>, offset: usize) -> Result<EventFlag, ShmError> {
            Ok(EventFlag::new(Shared::new(Arc::clone(mapping), offset)?))
        }

        /// A word in a memory of its own, and that memory, to be sent to the peer.
        ///
        /// # Errors
        /// What making and mapping the memory gives.
        pub fn create() -> Result<(EventFlag, Memory), ShmError> {
            let memory = Memory::create("fmq-event", size_of::<u64>())?;
            let mapping = Arc::new(Mapping::map(&memory)?);
            Ok((EventFlag::at(&mapping, 0)?, memory))
        }

        /// This word.
        pub fn new(word: Shared<EventWord>) -> EventFlag {
            EventFlag { word }
        }

        /// Sets `bits` and wakes the waiters for any of them. No bits: no effect. Calls the
        /// kernel only where a bit was clear.
        ///
        /// # Errors
        /// [`EventError::System`].
        pub fn wake(&self, bits: u32) -> Result<(), EventError> {
            wake(&self.word, bits).map_err(failed)
        }

        /// Takes those of `bits` that are set; sleeps first while none is. One sleep at most.
        ///
        /// # Errors
        /// Each variant of [`EventError`].
        pub fn wait_once(&self, bits: u32, deadline: Deadline) -> Result<u32, EventError> {
            let mask = NonZeroU32::new(bits).ok_or(EventError::BadBits { bits })?;
            let before = announce_sleep(&self.word, bits);
            if before & bits != 0 {
                return Ok(before & bits);
            }
            match futex::wait(&self.word, before, mask, deadline) {
                Ok(Woken::Woken) => match announce_sleep(&self.word, bits) & bits {
                    0 => Err(EventError::Interrupted),
                    taken => Ok(taken),
                },
                Ok(Woken::Changed) => Err(EventError::Again),
                Ok(Woken::Interrupted) => Err(EventError::Interrupted),
                Ok(Woken::TimedOut) => Err(EventError::Timeout),
                Err(errno) => Err(failed(errno)),
            }
        }

        /// Takes those of `bits` that are set, sleeping until one is.
        ///
        /// A peer that flips other bits without end makes this call look a thousand times a second;
        /// the deadline holds all the same.
        ///
        /// # Errors
        /// [`EventError::BadBits`], [`EventError::Timeout`], [`EventError::System`].
        pub fn wait(&self, bits: u32, deadline: Deadline) -> Result<u32, EventError> {
            let mut rounds = IdleRounds::default();
            loop {
                match self.wait_once(bits, deadline) {
                    Err(EventError::Again | EventError::Interrupted)
                        if rounds.go_on(0, deadline) => {}
                    Err(EventError::Again | EventError::Interrupted) => {
                        return Err(EventError::Timeout);
                    }
                    other => return other,
                }
            }
        }
    }
}
