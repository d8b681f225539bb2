//! How long the executions of a model take, and what that says of a deadline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{ErrorStatus, Model, Operation, OperationType, TimePoint};

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
/// All that is known may be one execution that something else held up. So after [`REFUSALS_IN_A_ROW`] refusals a
/// request is tried that would be refused: if it ends, it corrects what is known.
///
/// How long an execution takes says nothing of the next one where it depends on the inputs, because their size is
/// not known before or because there is a loop: see [`Pace::of`].
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
    /// Refusals for too little time since an execution ended or one was tried.
    refused: AtomicU64,
    /// Executions take what their inputs make them take.
    varies: bool,
}

/// By which part of the difference one execution moves the average.
const WEIGHT: u64 = 8;

/// After so many refusals of requests that had some time left, one is tried.
pub const REFUSALS_IN_A_ROW: u64 = 16;

/// How often a request that is tried is asked for: by whoever took it, a service or a launcher, and by the device.
const ASKED: u64 = 2;

impl Pace {
    /// Of this model. Where its executions take what their inputs make them take, because the shape of an input is not
    /// known or because it has an IF or a WHILE, only a request that came with no time left is refused, and only
    /// that persists.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let graph = &model.main;
        let is_open = |index: &u32| {
            let at = usize::try_from(*index).ok();
            let operand = at.and_then(|at| graph.operands.get(at));
            operand.is_some_and(|operand| {
                let dims = &operand.dimensions;
                dims.contains(&0) || (dims.is_empty() && operand.ty.is_tensor())
            })
        };
        let branches = |operation: &Operation| {
            matches!(operation.ty, OperationType::If | OperationType::While)
        };
        let varies =
            graph.input_indexes.iter().any(is_open) || graph.operations.iter().any(branches);
        Pace { varies, ..Pace::default() }
    }

    /// An execution has come to its end after so long.
    pub fn note(&self, took: Duration) {
        // Relaxed, as everything here: each value stands for itself, and where two executions end at
        // the same time the average may miss one of them.
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        if self.varies {
            return;
        }
        self.refused.store(0, Ordering::Relaxed);
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

    /// Nothing is known any more, as before the first execution.
    pub fn forget(&self) {
        for known in [&self.average, &self.quickest, &self.refused] {
            known.store(0, Ordering::Relaxed);
        }
    }

    /// Whether an execution that has so much time left is not worth beginning, and the status that says
    /// so. An estimate that refuses is lowered a little towards the quickest execution, and after
    /// [`REFUSALS_IN_A_ROW`] refusals a request is tried all the same: neither one slow hour nor one slow execution
    /// refuses for ever.
    #[must_use]
    pub fn refusal(&self, left: Duration) -> Option<ErrorStatus> {
        let average = self.average.load(Ordering::Relaxed);
        if !left.is_zero() && left >= Duration::from_nanos(average) {
            return None;
        }
        if !left.is_zero() && self.is_to_be_tried() {
            return None;
        }
        let quickest = self.quickest.load(Ordering::Relaxed);
        let lower = average - average.saturating_sub(quickest) / WEIGHT;
        self.average.store(lower, Ordering::Relaxed);
        Some(self.missed(left))
    }

    /// Counts a refusal, unless there were so many that this request is tried instead.
    fn is_to_be_tried(&self) -> bool {
        let refused = self.refused.fetch_add(1, Ordering::Relaxed);
        if refused + 1 >= REFUSALS_IN_A_ROW + ASKED {
            self.refused.store(0, Ordering::Relaxed);
        }
        refused >= REFUSALS_IN_A_ROW
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
    use crate::{ModelBuilder, OperandType, OutputSpec};

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
    fn what_is_quicker_than_ever_persists_and_is_tried_now_and_then() {
        let pace = Pace::default();
        (0..1_000).for_each(|_| pace.note(10 * MS));
        let persistent = Some(ErrorStatus::MissedDeadlinePersistent);
        for _ in 0..10 {
            (0..REFUSALS_IN_A_ROW).for_each(|_| assert_eq!(pace.refusal(9 * MS), persistent));
            // By whoever takes the request, and by the device.
            (0..ASKED).for_each(|_| assert_eq!(pace.refusal(9 * MS), None));
            assert_eq!(pace.missed(9 * MS), ErrorStatus::MissedDeadlinePersistent);
        }
        assert_eq!(pace.refusal(10 * MS), None);
    }

    #[test]
    fn what_is_forgotten_refuses_nobody() {
        let pace = Pace::default();
        pace.note(10 * MS);
        assert!(pace.refusal(MS).is_some());
        pace.forget();
        assert_eq!(pace.refusal(MS), None);
        assert_eq!(pace.missed(MS), ErrorStatus::MissedDeadlineTransient);
    }

    #[test]
    fn one_slow_execution_does_not_refuse_for_ever() {
        let pace = Pace::default();
        pace.note(119 * MS);
        let left = 69 * MS;
        let mut refused = 0;
        for _ in 0..1_000 {
            match pace.refusal(left) {
                Some(_) => refused += 1,
                None => pace.note(18 * MS),
            }
        }
        assert!((1..50).contains(&refused), "refused {refused} times");
    }

    #[test]
    fn what_depends_on_the_inputs_is_refused_only_when_no_time_is_left() {
        for (dimensions, is_refused) in [(vec![2], true), (vec![0], false), (vec![], false)] {
            let mut builder = ModelBuilder::new();
            let input = builder.input(OperandType::TensorFloat32, &dimensions);
            let floor = OperationType::Floor;
            let output = builder.result_of(floor, &[input], OutputSpec::f32(&dimensions));
            builder.output(output);
            let pace = Pace::of(&builder.build().unwrap());
            (0..100).for_each(|_| pace.note(1_000 * MS));
            let persistent = ErrorStatus::MissedDeadlinePersistent;
            assert_eq!(pace.refusal(MS), is_refused.then_some(persistent), "{dimensions:?}");
            let missed = if is_refused { persistent } else { ErrorStatus::MissedDeadlineTransient };
            assert_eq!(pace.missed(MS), missed);
            assert_eq!(pace.refusal(Duration::ZERO), Some(persistent));
        }
    }
}
