//! The primitives of the protocol between threads: those of `std`, or loom's under `--cfg loom`, so
//! that a loom model runs the code that ships.

#[cfg(not(loom))]
pub(super) use std::hint::spin_loop;
#[cfg(not(loom))]
pub(super) use std::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(super) use std::thread::yield_now;

#[cfg(loom)]
pub(super) use loom::cell::UnsafeCell;
#[cfg(loom)]
pub(super) use loom::hint::spin_loop;
#[cfg(loom)]
pub(super) use loom::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(super) use loom::thread::yield_now;

/// [`std::cell::UnsafeCell`] with the two functions that loom's has: loom looks whether the accesses exclude each other.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(super) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    pub(super) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
