//! Permits, for which callers wait no longer than they have patience: slow calls have as many as the service states,
//! giving back dropped memories has one.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use burst_wire::control::SLOW_CALLS_MAX;

use crate::ClientError;
use crate::waiting::{Patience, lock, remaining};

/// Permits. The service refuses a slow call above its limit, so callers wait here until one of the calls
/// before theirs is answered.
#[derive(Debug)]
pub(super) struct Permits {
    free: Mutex<usize>,
    changed: Condvar,
}

/// One of them; given back when dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<Permits>);

impl Permits {
    /// As many slow calls as the service states. Of a service that permits none a single one asks all the
    /// same: its refusal says why.
    pub(super) fn of_slow_calls(stated: Option<u64>) -> Arc<Self> {
        let stated = stated.map(|stated| usize::try_from(stated).unwrap_or(usize::MAX));
        Self::new(stated.unwrap_or(SLOW_CALLS_MAX).max(1))
    }

    /// So many.
    pub(super) fn new(free: usize) -> Arc<Self> {
        Arc::new(Permits { free: Mutex::new(free), changed: Condvar::new() })
    }

    /// Waits for a permit. One that is free is taken, also by a caller who called it off: so none is lost.
    pub(super) fn acquire(self: &Arc<Self>, patience: Patience<'_>) -> Result<Permit, ClientError> {
        let left = remaining(patience.until());
        let until = left.and_then(|left| Instant::now().checked_add(left));
        let _hook = patience.when_cancelled(self, Permits::look_again);
        let mut free = lock(&self.free);
        while *free == 0 {
            patience.check()?;
            free = match until {
                None => self.changed.wait(free).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(ClientError::Timeout);
                    }
                    let waited = self.changed.wait_timeout(free, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *free -= 1;
        drop(free);
        Ok(Permit(Arc::clone(self)))
    }

    /// Wakes who waits, one of whom called it off.
    fn look_again(&self) {
        // Under the lock, so that this cannot fall between somebody's last look and the wait.
        let _guard = lock(&self.free);
        self.changed.notify_all();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.changed.notify_one();
    }
}
