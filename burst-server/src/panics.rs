//! Keeps a panic in one thread from affecting the others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The code that was run panicked. The panic itself is on standard error already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Runs code of a device, or the whole of a thread; a panic in it fails this one call, or ends this
/// one thread in order.
pub(crate) fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Unwind safety: a device is responsible for its own state after a panic, and callers that get
    // `Panicked` do not use again what they lent to the code.
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| Panicked)
}

/// Locks a mutex, also after a thread panicked while it held it: each of ours guards data that is
/// complete after every statement.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
