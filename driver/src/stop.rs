//! When an execution gives up: cancelled, past its deadline, or in a loop that takes too long.

use std::time::Duration;

use burst_hal::{Caller, TimePoint};

use crate::OpError;

/// When an execution has to give up. Long kernels check it between tiles.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop<'a> {
    /// For whom it computes: who can cancel it, and whose turn it is.
    pub caller: Option<&'a Caller>,
    /// After this point in time the caller no longer wants the result.
    pub deadline: Option<TimePoint>,
    /// The point in time at which a loop around this operation has run too long.
    pub loop_deadline: Option<TimePoint>,
}

impl Stop<'_> {
    /// Fails once the execution is cancelled, the deadline passed, or the time-out of a loop.
    ///
    /// # Errors
    /// [`OpError::Cancelled`], [`OpError::Deadline`], [`OpError::LoopTimeout`].
    pub fn check(&self) -> Result<(), OpError> {
        if self.caller.is_some_and(Caller::is_cancelled) {
            return Err(OpError::Cancelled);
        }
        let passed = |deadline: Option<TimePoint>| deadline.is_some_and(TimePoint::has_passed);
        if passed(self.deadline) {
            return Err(OpError::Deadline);
        }
        if passed(self.loop_deadline) {
            return Err(OpError::LoopTimeout);
        }
        Ok(())
    }

    /// The limits inside a loop that begins now and may run for `timeout`.
    #[must_use]
    pub(crate) fn within_loop(self, timeout: Duration) -> Self {
        let own = TimePoint::after(timeout);
        let loop_deadline = self.loop_deadline.map_or(own, |outer| outer.min(own));
        Stop { loop_deadline: Some(loop_deadline), ..self }
    }
}
