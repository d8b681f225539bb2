//! How many slow calls a client may have with the service at once: as many as the service states.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use burst_wire::control::SLOW_CALLS_MAX;

use crate::ClientError;
use crate::waiting::{Patience, lock, remaining};

/// Permits for slow calls. The service refuses a slow call above its limit, so callers wait here
/// until one of the calls before theirs is answered.
#[derive(Debug)]
pub(super) struct SlowCallPermits {
    free: Mutex<usize>,
    changed: Condvar,
}

/// Permission to make one slow call; given back when dropped.
#[derive(Debug)]
pub(super) struct SlowCallPermit(Arc<SlowCallPermits>);

impl SlowCallPermits {
    /// As many as the service states. Of a service that permits none a single one asks all the same:
    /// its refusal says why.
    pub(super) fn new(stated: Option<u64>) -> Self {
        let stated = stated.map(|stated| usize::try_from(stated).unwrap_or(usize::MAX));
        let free = stated.unwrap_or(SLOW_CALLS_MAX).max(1);
        SlowCallPermits { free: Mutex::new(free), changed: Condvar::new() }
    }

    /// Waits for a permit. One that is free is taken, also by a caller who called it off: so none is lost.
    pub(super) fn acquire(
        self: &Arc<Self>,
        patience: Patience<'_>,
    ) -> Result<SlowCallPermit, ClientError> {
        let left = remaining(patience.until());
        let until = left.and_then(|left| Instant::now().checked_add(left));
        let _hook = patience.when_cancelled(self, SlowCallPermits::look_again);
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
        Ok(SlowCallPermit(Arc::clone(self)))
    }

    /// Wakes who waits, one of whom called it off.
    fn look_again(&self) {
        // Under the lock, so that this cannot fall between somebody's last look and the wait.
        let _guard = lock(&self.free);
        self.changed.notify_all();
    }
}

impl Drop for SlowCallPermit {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.changed.notify_one();
    }
}
