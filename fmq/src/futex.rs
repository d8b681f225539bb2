//! Sleeping on the event word and waking its sleepers. Never with the private flag: the other side
//! is another process.

use burst_shm::Errno;

use crate::clock::Deadline;
use crate::sync::EventWord;

/// How a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The waker called the kernel, or this is a spurious wake-up.
    Woken,
    /// The word was not what we expected: we did not sleep.
    Changed,
    /// A signal came.
    Interrupted,
    /// The deadline passed.
    TimedOut,
}

#[cfg(not(loom))]
mod kernel {
    use super::{Deadline, Errno, EventWord, Woken};
    use rustix::thread::futex::{self, Flags, Timespec};
    use std::num::NonZeroU32;

    /// The kernel's form of a deadline. A time behind its range means never.
    pub(crate) fn timespec(deadline: Deadline) -> Option<Timespec> {
        let ns = deadline.as_ns()?;
        Some(Timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).ok()?,
            tv_nsec: i64::try_from(ns % 1_000_000_000).ok()?,
        })
    }

    /// Sleeps while the word is `expected`, until a waker names one of `bits`.
    pub fn wait(
        word: &EventWord,
        expected: u32,
        bits: NonZeroU32,
        deadline: Deadline,
    ) -> Result<Woken, Errno> {
        // With FUTEX_WAIT_BITSET the time is absolute, and of CLOCK_MONOTONIC unless asked
        // otherwise.
        let timeout = timespec(deadline);
        match futex::wait_bitset(word, Flags::empty(), expected, timeout.as_ref(), bits) {
            Ok(()) => Ok(Woken::Woken),
            Err(Errno::AGAIN) => Ok(Woken::Changed),
            Err(Errno::INTR) => Ok(Woken::Interrupted),
            Err(Errno::TIMEDOUT) => Ok(Woken::TimedOut),
            Err(errno) => Err(errno),
        }
    }

    /// Wakes all that sleep on one of `bits`.
    pub fn wake(word: &EventWord, bits: NonZeroU32) -> Result<(), Errno> {
        const ALL: u32 = i32::MAX as u32;
        futex::wake_bitset(word, Flags::empty(), ALL, bits).map(|_| ())
    }
}

#[cfg(loom)]
mod kernel {
    use super::{Deadline, Errno, EventWord, Woken};
    use std::num::NonZeroU32;

    /// Sleeps while the word is `expected`. A wake for other bits shows as a spurious one.
    pub fn wait(
        word: &EventWord,
        expected: u32,
        _bits: NonZeroU32,
        _deadline: Deadline,
    ) -> Result<Woken, Errno> {
        Ok(if word.sleep_if(expected) { Woken::Woken } else { Woken::Changed })
    }

    /// Wakes all.
    pub fn wake(word: &EventWord, _bits: NonZeroU32) -> Result<(), Errno> {
        word.wake_all();
        Ok(())
    }
}

#[cfg(not(loom))]
pub(crate) use kernel::timespec;
pub use kernel::{wait, wake};
