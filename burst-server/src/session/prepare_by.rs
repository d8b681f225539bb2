//! By when a preparation is wanted, and what it is called where that cannot be.

use std::time::Duration;

use burst_hal::{Failure, Pace, TimePoint};

use crate::ServerError;
use crate::prepared::left_until;
use crate::scheduler::{NoToken, Run};

/// The deadline of a call that prepares something. Nobody knows how long a preparation takes: a missed deadline
/// is persistent where it had passed when the call came, and transient otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PrepareBy {
    deadline: Option<TimePoint>,
    /// Until then when the call came.
    left: Option<Duration>,
}

impl PrepareBy {
    /// Of a call that comes now.
    pub(super) fn now(deadline: Option<TimePoint>) -> Self {
        PrepareBy { deadline, left: left_until(deadline) }
    }

    /// Waits for the turn of what prepares.
    ///
    /// # Errors
    /// It must not begin: a missed deadline, or nobody wants it any more.
    pub(super) fn begin(self, run: &Run) -> Result<(), ServerError> {
        run.begin(self.deadline).map_err(|none| match none {
            NoToken::MissedDeadline => self.missed(),
            NoToken::CalledOff => none.into(),
        })
    }

    /// Whether there is still time for the device. Of a deadline that had passed when the call came the device
    /// tells: it looks first whether the call is legal.
    ///
    /// # Errors
    /// The deadline has passed meanwhile.
    pub(super) fn check(self) -> Result<(), ServerError> {
        let was_in_time = self.left.is_some_and(|left| !left.is_zero());
        match was_in_time && self.deadline.is_some_and(TimePoint::has_passed) {
            true => Err(self.missed()),
            false => Ok(()),
        }
    }

    fn missed(self) -> ServerError {
        Failure::from(Pace::default().missed(self.left.unwrap_or(Duration::MAX))).into()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::mpsc::channel;

    use burst_hal::{CancelWord, ErrorStatus, Priority};

    use super::*;
    use crate::scheduler::{Claimant, Patience, Scheduler, Work};

    #[test]
    fn a_deadline_of_a_preparation_is_called_by_what_was_left_when_it_came() {
        let scheduler = Scheduler::new(Some(NonZeroUsize::MIN), Patience::default());
        let of = Claimant { user: 1, connection: 1, priority: Priority::Medium };
        let run = || scheduler.run(of, Work::Preparation, &CancelWord::default());
        let ((holds, held), (end, ends)) = (channel(), channel::<()>());
        let holder = run();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _entered = holder.enter();
                holds.send(holder.begin(None)).unwrap();
                let _ = ends.recv();
            });
            held.recv().unwrap().unwrap();
            let waiting = run();
            let _entered = waiting.enter();
            let status = |by: PrepareBy| by.begin(&waiting).map_err(|error| error.status());
            let persistent = Err(ErrorStatus::MissedDeadlinePersistent);
            let past = PrepareBy::now(Some(TimePoint { nanos: 1 }));
            assert_eq!(status(past), persistent, "it came too late");
            assert!(past.check().is_ok(), "which the device tells, where it is its turn");
            // Where this machine has much to do it has passed when it comes: then the next one is tried.
            let is_transient = [5, 1_000, 20_000].into_iter().any(|ms| {
                let soon = PrepareBy::now(Some(TimePoint::after(Duration::from_millis(ms))));
                let begun = status(soon);
                assert!(soon.deadline.is_some_and(TimePoint::has_passed), "it waited until then");
                if begun == persistent {
                    return false;
                }
                assert_eq!(begun, Err(ErrorStatus::MissedDeadlineTransient));
                let late = soon.check().expect_err("nor may it go to the device");
                assert_eq!(late.status(), ErrorStatus::MissedDeadlineTransient);
                true
            });
            assert!(is_transient);
            drop(end);
            // As soon as it is its turn.
            let by = PrepareBy::now(Some(TimePoint::after(Duration::from_secs(60))));
            by.begin(&waiting).unwrap();
            by.check().unwrap();
            PrepareBy::default().check().unwrap();
        });
    }
}
