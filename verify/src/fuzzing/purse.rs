//! The account of a judged device: what it charges it has to give back.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burst_hal::{ErrorStatus, Failure, MemoryAccount};

/// What one model with its executions may hold. Far more than any of these small models needs; an operation
/// that is asked for a huge result has to ask here first.
const BYTES_MAX: u64 = 64 << 20;

/// An account with a bound.
#[derive(Debug, Default)]
pub(super) struct Purse {
    held: Mutex<u64>,
    changed: Condvar,
}

impl Purse {
    /// Whether all was given back, waiting for threads of the device that are just about to.
    pub(super) fn is_settled(&self, patience: Duration) -> Result<(), String> {
        let held = self.lock();
        let is_open = |held: &mut u64| *held > 0;
        let waited = self.changed.wait_timeout_while(held, patience, is_open);
        let (held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match *held {
            0 => Ok(()),
            held => Err(format!("{held} bytes are still charged when all is dropped")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryAccount for Purse {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        let mut charged = self.lock();
        let held = charged.saturating_add(bytes);
        if held > BYTES_MAX {
            let status = match bytes > BYTES_MAX {
                true => ErrorStatus::ResourceExhaustedPersistent,
                false => ErrorStatus::ResourceExhaustedTransient,
            };
            return Err(Failure::new(status, "more than one judged model may hold"));
        }
        *charged = held;
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        let mut charged = self.lock();
        // No charge of the contract gives back more than it took.
        *charged = charged.saturating_sub(bytes);
        self.changed.notify_all();
    }
}
