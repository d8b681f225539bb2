//! The atomics of the protocol: those of `std`, or loom's under `--cfg loom`.
//!
//! Everything that another process or thread touches is named here and nowhere else, so that a
//! loom model runs the very code that ships.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

/// The 32-bit word that both processes set bits in and sleep on.
#[cfg(not(loom))]
pub type EventWord = AtomicU32;

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use model::EventWord;

/// A counter of the other end, which this end only loads. It may lie in memory that is mapped for
/// reading, where nothing but a relaxed load may touch it.
pub trait PeerCounter {
    /// Its value, by one relaxed load.
    fn load_relaxed(&self) -> u64;
}

impl PeerCounter for AtomicU64 {
    #[inline]
    fn load_relaxed(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

#[cfg(not(loom))]
impl PeerCounter for burst_shm::ReadOnlyWord {
    #[inline]
    fn load_relaxed(&self) -> u64 {
        burst_shm::ReadOnlyWord::load_relaxed(self)
    }
}

#[cfg(loom)]
mod model {
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};

    /// The event word with the kernel's part of a futex beside it: a lock that makes "compare and
    /// go to sleep" one step, as the lock of the kernel's hash bucket does.
    #[derive(Debug)]
    pub struct EventWord {
        word: AtomicU32,
        bucket: Mutex<()>,
        sleepers: Condvar,
    }

    impl EventWord {
        /// A word with this value.
        pub fn new(value: u32) -> EventWord {
            EventWord {
                word: AtomicU32::new(value),
                bucket: Mutex::new(()),
                sleepers: Condvar::new(),
            }
        }

        /// As on an atomic.
        pub fn load(&self, order: Ordering) -> u32 {
            self.word.load(order)
        }

        /// As on an atomic.
        pub fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
            self.word.fetch_or(value, order)
        }

        /// As on an atomic.
        pub fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
            self.word.fetch_and(value, order)
        }

        /// `FUTEX_WAIT`: false when the word was no longer `expected`.
        pub fn sleep_if(&self, expected: u32) -> bool {
            let bucket = self.bucket.lock().expect("a model does not panic");
            if self.word.load(Ordering::Relaxed) != expected {
                return false;
            }
            drop(self.sleepers.wait(bucket).expect("a model does not panic"));
            true
        }

        /// `FUTEX_WAKE` for all.
        pub fn wake_all(&self) {
            let bucket = self.bucket.lock().expect("a model does not panic");
            self.sleepers.notify_all();
            drop(bucket);
        }
    }
}
