//! What to do when the service is short of something.

use std::time::Duration;

use burst_hal::ErrorStatus;
use fmq::{Deadline, clock};

use crate::ClientError;
use crate::backoff::{Backoff, Pauses};

/// What a client does about RESOURCE_EXHAUSTED_TRANSIENT and RESOURCE_EXHAUSTED_PERSISTENT.
///
/// | outcome | what is done |
/// |---|---|
/// | RESOURCE_EXHAUSTED_TRANSIENT | try again after a pause, as long as `transient` says |
/// | RESOURCE_EXHAUSTED_PERSISTENT | give up: no waiting helps |
/// | either, when a burst is set up, at last | the control socket, where `fall_back` allows |
/// | a missed deadline, and everything else | give up: a retry is the caller's decision |
///
/// A service whose client does not speak the statuses of HAL 1.3 says GENERAL_FAILURE for all of
/// them; nothing is retried then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Pauses while something is short; `None` gives up at once.
    pub transient: Option<Backoff>,
    /// Whether requests go over the control socket where no burst can be had.
    pub fall_back: bool,
}

impl RetryPolicy {
    /// Every failure is the caller's at once.
    pub const NONE: RetryPolicy = RetryPolicy { transient: None, fall_back: false };

    /// Makes a call as often as the policy says.
    ///
    /// # Errors
    /// The last one of `attempt`.
    pub fn run<T>(
        &self,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut retries = Retries::new(*self, deadline);
        loop {
            let error = match attempt() {
                Err(error) => error,
                done => return done,
            };
            match retries.next(error.status(), clock::now_ns()) {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(error),
            }
        }
    }

    /// Whether what failed like this for a burst may go over the control socket instead.
    pub(crate) fn falls_back(&self, status: ErrorStatus) -> bool {
        use ErrorStatus::{ResourceExhaustedPersistent, ResourceExhaustedTransient};
        self.fall_back && matches!(status, ResourceExhaustedPersistent | ResourceExhaustedTransient)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy { transient: Some(Backoff::BUSY), fall_back: true }
    }
}

/// The attempts at one thing. Costs nothing before the first failure.
#[derive(Debug)]
pub(crate) struct Retries {
    policy: RetryPolicy,
    deadline: Deadline,
    pauses: Option<Pauses>,
}

impl Retries {
    pub(crate) fn new(policy: RetryPolicy, deadline: Deadline) -> Self {
        Retries { policy, deadline, pauses: None }
    }

    /// The pause before the next attempt; `None` to give up.
    pub(crate) fn next(&mut self, status: ErrorStatus, now_ns: u64) -> Option<Duration> {
        if status != ErrorStatus::ResourceExhaustedTransient {
            return None;
        }
        let backoff = self.policy.transient?;
        let deadline = self.deadline;
        self.pauses.get_or_insert_with(|| backoff.pauses(now_ns, deadline)).next(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSIENT: ErrorStatus = ErrorStatus::ResourceExhaustedTransient;
    const PERSISTENT: ErrorStatus = ErrorStatus::ResourceExhaustedPersistent;

    #[test]
    fn only_what_is_short_for_a_moment_is_tried_again() {
        for code in 0..=8 {
            let status = ErrorStatus::from_code(code).unwrap();
            let mut retries = Retries::new(RetryPolicy::default(), Deadline::never());
            assert_eq!(retries.next(status, 0).is_some(), status == TRANSIENT, "{status}");
            assert_eq!(Retries::new(RetryPolicy::NONE, Deadline::never()).next(status, 0), None);
        }
    }

    #[test]
    fn the_control_socket_is_for_bursts_that_cannot_be_had() {
        let policy = RetryPolicy::default();
        assert!(policy.falls_back(TRANSIENT) && policy.falls_back(PERSISTENT));
        assert!(!policy.falls_back(ErrorStatus::GeneralFailure));
        assert!(!RetryPolicy::NONE.falls_back(PERSISTENT));
    }

    #[test]
    fn attempts_go_on_until_it_works_and_end_with_the_time() {
        let backoff = Backoff {
            first: Duration::ZERO,
            longest: Duration::from_micros(1),
            total: Duration::from_secs(60),
        };
        let policy = RetryPolicy { transient: Some(backoff), fall_back: false };
        let mut left = 5;
        let outcome = policy.run(Deadline::never(), || {
            left -= 1;
            if left > 0 { Err(ClientError::Execution { status: TRANSIENT }) } else { Ok(left) }
        });
        assert_eq!(outcome.unwrap(), 0);
        let late: Result<(), _> = policy.run(Deadline::at_ns(1), || {
            Err(ClientError::Refused { status: TRANSIENT, detail: "full".into() })
        });
        assert!(matches!(late, Err(ClientError::Refused { .. })), "the reason, not a time-out");
    }
}
