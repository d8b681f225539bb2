//! A step's model, prepared again where its service was lost and is back.

use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use burst_hal::{Model, PrepareOptions, TimePoint};

use crate::devices::RuntimeDevice;
use crate::error::Result;
use crate::prepared::Prepared;

/// An attempt that failed is repeated after so many times the time that it took: at most a tenth of the time of
/// executions goes into looking for a service that is not there.
const PAUSE_PER_ATTEMPT: u32 = 9;
/// And after this at the latest.
const PAUSE_LONGEST: Duration = Duration::from_secs(30);

/// A prepared model that outlives its service.
pub(super) struct Renewal {
    prepared: Mutex<Prepared>,
    /// Held by the one thread that makes it again. What its last attempt came to, where it failed.
    failure: Mutex<Option<Failure>>,
}

/// An attempt that failed.
#[derive(Debug, Clone, Copy)]
struct Failure {
    /// Before that there is no other one...
    pause_ends: Instant,
    /// ... unless the service was missing then and is there now.
    was_connected: bool,
}

impl Failure {
    fn new(took: Duration, was_connected: bool) -> Self {
        let pause = took.saturating_mul(PAUSE_PER_ATTEMPT).min(PAUSE_LONGEST);
        Failure { pause_ends: Instant::now() + pause, was_connected }
    }

    /// Whether it is time for another attempt.
    fn is_over(self, is_connected: bool) -> bool {
        (is_connected && !self.was_connected) || Instant::now() >= self.pause_ends
    }
}

impl Renewal {
    pub(super) fn new(prepared: Prepared) -> Self {
        Renewal { prepared: Mutex::new(prepared), failure: Mutex::default() }
    }

    /// As it is now, whether its service lives or not.
    pub(super) fn current(&self) -> Prepared {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same; where its service is gone, prepared by the one that has come back. Others that come meanwhile, and
    /// whoever comes in a pause, get it as it is.
    pub(super) fn ready(
        &self,
        device: &RuntimeDevice,
        model: &Model,
        options: &PrepareOptions,
    ) -> Prepared {
        let current = self.current();
        if current.is_alive() {
            return current;
        }
        let mut failure = match self.failure.try_lock() {
            Ok(failure) => failure,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return current,
        };
        let current = self.current();
        if current.is_alive() || failure.is_some_and(|last| !last.is_over(device.is_connected())) {
            return current;
        }
        let begun = Instant::now();
        match prepare_again(device, model, options) {
            Ok(prepared) => {
                tracing::info!(?device, "the service is back, and a step was prepared again");
                *failure = None;
                *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = prepared.clone();
                prepared
            }
            Err(error) => {
                tracing::debug!(?device, %error, "the service is still gone");
                *failure = Some(Failure::new(begun.elapsed(), device.is_connected()));
                current
            }
        }
    }
}

fn prepare_again(
    device: &RuntimeDevice,
    model: &Model,
    options: &PrepareOptions,
) -> Result<Prepared> {
    Prepared::prepare(&device.live_at_once(options.deadline)?, model, options, None)
}

/// Options for preparing a model again, with an execution's deadline.
pub(super) fn by(options: &PrepareOptions, deadline: Option<TimePoint>) -> PrepareOptions {
    PrepareOptions { deadline, ..*options }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_as_long_as_the_attempt_was_worth_and_ends_when_the_service_is_there() {
        let quick = Failure::new(Duration::ZERO, false);
        assert!(quick.is_over(false));
        let slow = Failure::new(Duration::from_secs(1000), false);
        assert!(slow.pause_ends <= Instant::now() + PAUSE_LONGEST);
        assert!(!slow.is_over(false), "it is still missing");
        assert!(slow.is_over(true), "it is there");
        let refused = Failure::new(Duration::from_secs(1000), true);
        assert!(!refused.is_over(true), "it was there, and would not");
    }
}
