//! When work is given up: cancelled, past its deadline, or in a loop that takes too long.

use std::time::Duration;

use burst_hal::trace::SpanSink;
use burst_hal::{Caller, TimePoint};

use crate::OpError;

/// When an execution or a preparation has to give up. Long kernels check it between tiles, other
/// long loops at [checkpoints](Stop::checkpoints).
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop<'a> {
    /// For whom it computes: who can cancel it, and whose turn it is.
    pub caller: Option<&'a Caller>,
    /// After this point in time the caller no longer wants the result.
    pub deadline: Option<TimePoint>,
    /// The point in time at which a loop around this operation has run too long.
    pub loop_deadline: Option<TimePoint>,
}

impl<'a> Stop<'a> {
    /// Checks of a loop that begins now, one for so many steps of work that it comes every few
    /// milliseconds at the latest.
    #[must_use]
    pub fn checkpoints(self) -> Checkpoints<'a> {
        Checkpoints { stop: self, steps: 0 }
    }

    /// Lets other callers compute first where it is their turn. Then fails once the work is cancelled,
    /// the deadline passed, or the time-out of a loop.
    ///
    /// It comes between steps, and within long ones between tiles: else one convolution of a second
    /// would keep all others waiting for as long. The callers hold no lock. On a helper's thread it never
    /// waits: only the thread that executes has a turn to give away.
    ///
    /// # Errors
    /// [`OpError::Cancelled`], [`OpError::Deadline`], [`OpError::LoopTimeout`].
    pub fn check(&self) -> Result<(), OpError> {
        if self.caller.is_some_and(Caller::is_cancelled) {
            return Err(OpError::Cancelled);
        }
        if let Some(caller) = self.caller {
            caller.give_way();
            if caller.is_cancelled() {
                return Err(OpError::Cancelled); // while it waited for its turn
            }
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

    /// Where spans of the work go, while somebody wants them.
    pub(crate) fn tracing(&self) -> Option<&'a dyn SpanSink> {
        self.caller.and_then(Caller::tracing)
    }

    /// The limits inside a loop that begins now and may run for `timeout`.
    #[must_use]
    pub(crate) fn within_loop(self, timeout: Duration) -> Self {
        let own = TimePoint::after(timeout);
        let loop_deadline = self.loop_deadline.map_or(own, |outer| outer.min(own));
        Stop { loop_deadline: Some(loop_deadline), ..self }
    }
}

/// Steps of work between two checks. A step is some nanoseconds, such as a function of one value: a
/// check comes every few milliseconds at the latest.
pub(crate) const STEPS_PER_CHECK: usize = 1 << 17;

/// Checks a [`Stop`] whenever enough work was done.
#[derive(Debug)]
pub struct Checkpoints<'a> {
    stop: Stop<'a>,
    /// Done since the last check.
    steps: usize,
}

impl Checkpoints<'_> {
    /// Counts work that is done or about to be. Loops call it once per row, or per part of a long one,
    /// and not for each value.
    ///
    /// # Errors
    /// As [`Stop::check`].
    #[inline]
    pub fn after(&mut self, steps: usize) -> Result<(), OpError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps < STEPS_PER_CHECK {
            return Ok(());
        }
        self.steps = 0;
        self.stop.check()
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::CancelWord;

    use super::*;

    #[test]
    fn checkpoints_check_once_enough_was_done() {
        let word = CancelWord::default();
        let caller = Caller::new(&word);
        let stop = Stop { caller: Some(&caller), ..Stop::default() };
        word.cancel();
        let mut checkpoints = stop.checkpoints();
        assert_eq!(checkpoints.after(STEPS_PER_CHECK - 1), Ok(()));
        assert_eq!(checkpoints.after(1), Err(OpError::Cancelled));
        assert_eq!(checkpoints.after(1), Ok(()), "counted from the check on");
        assert_eq!(checkpoints.after(usize::MAX), Err(OpError::Cancelled));
    }
}
