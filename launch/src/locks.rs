//! Locks, and code of others that may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a thread panicked while it held it: what ours guard is complete after every
/// statement.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs code of a driver or of a caller; `None` where it panics, of which the panic itself tells.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    // Unwind safety: who gets `None` does not use again what it lent to the code.
    catch_unwind(AssertUnwindSafe(run)).ok()
}
