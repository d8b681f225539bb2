//! What every wait needs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burst_hal::TimePoint;
use fmq::Deadline;

/// A deadline of the HAL as the waits of queues take it: both count from the machine's start. None is never.
#[must_use]
pub fn deadline_at(at: Option<TimePoint>) -> Deadline {
    at.map_or(Deadline::never(), |at| Deadline::at_ns(at.nanos))
}

/// Time left until a deadline; `None` for never.
pub(crate) fn remaining(deadline: Deadline) -> Option<Duration> {
    let at = deadline.as_ns()?;
    Some(Duration::from_nanos(at.saturating_sub(fmq::clock::now_ns())))
}

/// Locks, also after a thread panicked with the lock: what these locks guard is never half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
