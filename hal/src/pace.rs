//! How long the executions of a model take, and what that says of a deadline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{ErrorStatus, TimePoint};

/// How long the executions of a prepared model have taken, so that one whose deadline is hopeless is
/// refused before it begins.
///
/// Whoever refuses, or gives up midway, takes the status from here. So it is the same whichever way a
/// request came:
///
/// | the time that was left when it came | status |
/// |---|---|
/// | none, or less than the quickest execution so far took | MISSED_DEADLINE_PERSISTENT: no retry of it helps |
/// | more, or nothing is known yet | MISSED_DEADLINE_TRANSIENT: others were in its way, or it is slow today |
///
/// ```
/// use std::time::Duration;
/// use burst_hal::{ErrorStatus, Pace};
///
/// let pace = Pace::default();
/// let ms = Duration::from_millis;
/// assert_eq!(pace.refusal(ms(1)), None, "nothing is known yet");
/// pace.note(ms(10));
/// pace.note(ms(30));
/// assert_eq!(pace.refusal(ms(5)), Some(ErrorStatus::MissedDeadlinePersistent));
/// assert_eq!(pace.refusal(ms(11)), Some(ErrorStatus::MissedDeadlineTransient));
/// assert_eq!(pace.refusal(ms(30)), None);
/// ```
#[derive(Debug, Default)]
pub struct Pace {
    /// A moving average, in nanoseconds; 0 for not known.
    average: AtomicU64,
    /// Likewise.
    quickest: AtomicU64,
}

/// By which part of the difference one execution moves the average.
const WEIGHT: u64 = 8;

impl Pace {
    /// An execution has come to its end after so long.
    pub fn note(&self, took: Duration) {
        // Relaxed, as everything here: each value stands for itself, and where two executions end at
        // the same time the average may miss one of them.
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let average = match self.average.load(Ordering::Relaxed) {
            0 => took,
            average => average - average / WEIGHT + took / WEIGHT,
        };
        self.average.store(average.max(1), Ordering::Relaxed);
        let quickest = self.quickest.load(Ordering::Relaxed);
        if quickest == 0 || took < quickest {
            self.quickest.store(took, Ordering::Relaxed);
        }
    }

    /// Whether an execution that has so much time left is not worth beginning, and the status that says
    /// so. An estimate that refuses is lowered a little, so that one slow hour does not refuse for ever.
    #[must_use]
    pub fn refusal(&self, left: Duration) -> Option<ErrorStatus> {
        let average = self.average.load(Ordering::Relaxed);
        if !left.is_zero() && left >= Duration::from_nanos(average) {
            return None;
        }
        let quickest = self.quickest.load(Ordering::Relaxed);
        let lower = average - average.saturating_sub(quickest) / WEIGHT;
        self.average.store(lower, Ordering::Relaxed);
        Some(self.missed(left))
    }

    /// The status of an execution that did not meet its deadline; when it came, so much time was left.
    #[must_use]
    pub fn missed(&self, left: Duration) -> ErrorStatus {
        let quickest = Duration::from_nanos(self.quickest.load(Ordering::Relaxed));
        if left.is_zero() || left < quickest {
            return ErrorStatus::MissedDeadlinePersistent;
        }
        ErrorStatus::MissedDeadlineTransient
    }

    /// As [`refusal`](Pace::refusal), for an execution that came at `arrived`; none without a deadline.
    #[must_use]
    pub fn refusal_until(
        &self,
        deadline: Option<TimePoint>,
        arrived: TimePoint,
    ) -> Option<ErrorStatus> {
        self.refusal(deadline?.since(arrived))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_deadline_that_has_passed_is_refused_whatever_is_known() {
        let pace = Pace::default();
        let persistent = Some(ErrorStatus::MissedDeadlinePersistent);
        assert_eq!(pace.refusal(Duration::ZERO), persistent);
        let now = TimePoint { nanos: 1_000 };
        assert_eq!(pace.refusal_until(Some(TimePoint { nanos: 999 }), now), persistent);
        assert_eq!(pace.refusal_until(Some(TimePoint { nanos: 1_001 }), now), None);
        assert_eq!(pace.refusal_until(None, now), None);
    }

    #[test]
    fn a_slow_hour_does_not_refuse_for_ever() {
        let pace = Pace::default();
        pace.note(10 * MS);
        (0..100).for_each(|_| pace.note(1_000 * MS));
        let left = 20 * MS;
        let refused = (0..1_000).take_while(|_| pace.refusal(left).is_some()).count();
        assert!((2..100).contains(&refused), "refused {refused} times");
        assert_eq!(pace.missed(left), ErrorStatus::MissedDeadlineTransient);
        assert_eq!(pace.missed(9 * MS), ErrorStatus::MissedDeadlinePersistent);
    }

    #[test]
    fn what_is_quicker_than_ever_persists() {
        let pace = Pace::default();
        (0..1_000).for_each(|_| pace.note(10 * MS));
        (0..1_000).for_each(|_| assert!(pace.refusal(9 * MS).is_some()));
        assert_eq!(pace.refusal(10 * MS), None);
    }
}
