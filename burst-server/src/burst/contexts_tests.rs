//! The turns of a burst that somebody else serves.

use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::time::Duration;

use burst_hal::validate::RequestRules;
use burst_hal::{
    CancelWord, ExecutionOptions, ExecutionResult, ModelBuilder, OperandType, OperationType,
    OutputSpec, Pace, PrepareOptions, Priority,
};

use super::*;
use crate::admission::{Budget, Limit};
use crate::metrics::tests::metrics;
use crate::scheduler::{Claimant, Patience, Scheduler, Work};

const PERSISTENT: ErrorStatus = ErrorStatus::MissedDeadlinePersistent;
const TRANSIENT: ErrorStatus = ErrorStatus::MissedDeadlineTransient;

/// A model whose executions took this long; it never executes.
struct Paced(Pace);

impl PreparedModel for Paced {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        unreachable!("nothing is executed here")
    }

    fn pace(&self) -> Option<&Pace> {
        Some(&self.0)
    }
}

fn entry(times: &[Duration]) -> Arc<PreparedEntry> {
    let pace = Pace::default();
    times.iter().for_each(|took| pace.note(*took));
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[1]);
    let y = b.result_of(OperationType::Relu, &[x], OutputSpec::f32(&[1]));
    b.output(y);
    let rules = RequestRules::new(&b.build().unwrap()).unwrap();
    let metrics = metrics();
    let charge = Budget::new(Limit::Models, 1, &metrics.limits).charge(1).unwrap();
    let meter = metrics.model_of(1, 0, "paced");
    let options = PrepareOptions::default();
    Arc::new(PreparedEntry::new(Arc::new(Paced(pace)), &options, rules, meter, charge))
}

fn turns(scheduler: &Arc<Scheduler>, times: &[Duration]) -> BurstTurns {
    let of = Claimant { user: 1, connection: 1, priority: Priority::Medium };
    let run = scheduler.run(of, Work::Burst(1), &CancelWord::default());
    BurstTurns { run, entry: entry(times) }
}

fn after(time: Duration) -> Option<TimePoint> {
    Some(TimePoint::after(time))
}

#[test]
fn a_deadline_is_refused_or_missed_by_the_pace_of_the_model() {
    let scheduler = Scheduler::new(Some(NonZeroUsize::MIN), Patience::default());
    let seconds = Duration::from_secs;
    // So long that what a busy machine takes for this test is nothing beside them.
    let mut slow = turns(&scheduler, &[seconds(1_000), seconds(100_000)]);
    let past = Some(TimePoint { nanos: 1 });
    for (deadline, want) in [
        (past, Err(PERSISTENT)),
        (after(seconds(500)), Err(PERSISTENT)),
        (after(seconds(5_000)), Err(TRANSIENT)),
        (after(seconds(1_000_000)), Ok(())),
        (None, Ok(())),
    ] {
        assert_eq!(slow.begin(deadline).map(drop), want);
    }
    // Where somebody else has the only token.
    let ((holds, held), (end, ends)) = (channel(), channel::<()>());
    let mut other = turns(&scheduler, &[]);
    let mut quick = turns(&scheduler, &[Duration::from_nanos(1)]);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let turn = other.begin(None);
            holds.send(turn.is_ok()).unwrap();
            let _ = ends.recv();
            drop(turn);
        });
        assert!(held.recv().unwrap());
        assert_eq!(quick.begin(past).map(drop), Err(PERSISTENT), "nothing was left when it came");
        // Where this machine has much to do it has passed when it comes: then the next one is tried.
        let is_transient = [5, 1_000, 20_000].into_iter().any(|ms| {
            let soon = after(Duration::from_millis(ms));
            let status = quick.begin(soon).map(drop).unwrap_err();
            assert!(soon.is_some_and(TimePoint::has_passed), "{status} before its deadline");
            assert!([PERSISTENT, TRANSIENT].contains(&status), "{status}");
            status == TRANSIENT
        });
        assert!(is_transient, "it passed while it waited");
        drop(end);
        assert_eq!(quick.begin(after(seconds(60))).map(drop), Ok(()), "a token came free");
    });
    quick.run.call_off();
    assert_eq!(quick.begin(past).map(drop), Err(ErrorStatus::GeneralFailure), "it has ended");
}
