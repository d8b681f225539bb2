//! When an execution was asked for, and what that makes of its result.

use std::time::{Duration, Instant};

use burst_hal::{
    ErrorStatus, ExecutionOptions, ExecutionResult, LOOP_TIMEOUT_DEFAULT, LOOP_TIMEOUT_MAXIMUM,
    Pace, TimePoint, Timing,
};

use crate::error::DriverError;

/// The moment at which an execution was asked for.
pub(crate) struct Entry {
    /// `None` where nobody wants to know how long it takes.
    entered: Option<Instant>,
    /// Until its deadline, where it has one.
    left: Option<Duration>,
}

impl Entry {
    /// It is asked for now.
    pub(crate) fn now(options: &ExecutionOptions) -> Self {
        let left = options.deadline.map(|deadline| deadline.since(TimePoint::now()));
        Entry { entered: options.measure_timing.then(Instant::now), left }
    }

    /// The status to refuse it with, where the model's pace says that its deadline cannot be met.
    pub(crate) fn refusal(&self, pace: &Pace) -> Option<ErrorStatus> {
        let status = self.left.and_then(|left| pace.refusal(left));
        status.inspect(|_| tracing::debug!(left = ?self.left, "the deadline cannot be met"))
    }

    /// Puts into the result what came of it: how long the operations took, where that is wanted and it went
    /// well, or why it failed.
    pub(crate) fn settle(
        &self,
        outcome: Result<Duration, DriverError>,
        pace: &Pace,
        result: &mut ExecutionResult,
    ) {
        match outcome {
            Ok(computed) => {
                if let Some(entered) = self.entered.filter(|_| result.status == ErrorStatus::None) {
                    result.timing = Timing {
                        time_on_device_us: micros(computed),
                        time_in_driver_us: micros(entered.elapsed()),
                    };
                }
            }
            Err(error) => {
                tracing::debug!(%error, "execution failed");
                result.reset(match (&error, self.left) {
                    (DriverError::Deadline, Some(left)) => pace.missed(left),
                    _ => error.status(),
                });
            }
        }
    }
}

/// How long each loop may take: the client's choice, clamped to the HAL's range.
pub(crate) fn loop_timeout(options: &ExecutionOptions) -> Duration {
    options.loop_timeout.unwrap_or(LOOP_TIMEOUT_DEFAULT).min(LOOP_TIMEOUT_MAXIMUM)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_may_take_what_the_client_says_up_to_the_maximum() {
        let with = |loop_timeout| {
            super::loop_timeout(&ExecutionOptions { loop_timeout, ..ExecutionOptions::default() })
        };
        assert_eq!(with(None), Duration::from_secs(2));
        assert_eq!(with(Some(Duration::from_millis(1))), Duration::from_millis(1));
        assert_eq!(with(Some(Duration::MAX)), Duration::from_secs(15));
    }
}
