//! How long a service has clients: what it waits for when it ends.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::panics::lock;

/// Held, in copies, by everything that works for a client.
#[derive(Debug)]
pub(crate) struct Running(Arc<Holders>);

#[derive(Debug, Default)]
struct Holders {
    count: Mutex<usize>,
    none: Condvar,
}

impl Running {
    /// One copy, for the one who is going to wait.
    pub(crate) fn new() -> Self {
        let holders = Arc::new(Holders::default());
        *lock(&holders.count) = 1;
        Running(holders)
    }

    /// Waits until this is the only copy left, for `patience` at most; gives whether it is.
    pub(crate) fn wait_for_all_others(&self, patience: Duration) -> bool {
        let until = Instant::now().checked_add(patience);
        let mut count = lock(&self.0.count);
        while *count > 1 {
            let left =
                until.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            let waited = self.0.none.wait_timeout(count, left);
            count = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Clone for Running {
    fn clone(&self) -> Self {
        *lock(&self.0.count) += 1;
        Running(Arc::clone(&self.0))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut count = lock(&self.0.count);
        *count -= 1;
        if *count == 1 {
            self.0.none.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_waits_for_all_copies_but_no_longer_than_it_is_willing_to() {
        let running = Running::new();
        assert!(running.wait_for_all_others(Duration::ZERO));
        let (one, other) = (running.clone(), running.clone());
        drop(one);
        assert!(!running.wait_for_all_others(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| running.wait_for_all_others(Duration::MAX));
            drop(other);
            assert!(waiting.join().unwrap());
        });
    }
}
