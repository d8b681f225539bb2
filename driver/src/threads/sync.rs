//! The primitives of the protocol between threads: those of `std`, or loom's under `--cfg loom`, so
//! that a loom model runs the code that ships.

#[cfg(not(loom))]
pub(super) use std::hint::spin_loop;
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize};
#[cfg(not(loom))]
pub(super) use std::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::thread::yield_now;

#[cfg(loom)]
pub(super) use loom::hint::spin_loop;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize};
#[cfg(loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(loom)]
pub(super) use loom::thread::yield_now;

/// Locks a mutex and ignores poisoning: no code here panics while it holds a lock, and the guarded
/// data is consistent after every statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
