//! Many tests on many devices at once.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::case::{Mode, Target};
use crate::error::RunError;
use crate::execute::run_suite;
use crate::outcome::Outcome;
use crate::report::{Report, TestResult};
use crate::suite::Suite;
use crate::validation::wrong_models;
use crate::vectors::{Spec, Test, Vectors, open};

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How executions reach the driver.
    pub modes: Vec<Mode>,
    /// Which suites.
    pub suites: Vec<Suite>,
    /// Only tests of these operations; all where it is `None`.
    pub ops: Option<BTreeSet<String>>,
    /// Only this fixed part of the tests: one in so many, spread over all specs.
    pub one_in: usize,
}

impl Plan {
    /// Everything, in these modes.
    #[must_use]
    pub fn everything(modes: &[Mode]) -> Self {
        Plan { modes: modes.to_vec(), suites: Suite::ALL.to_vec(), ops: None, one_in: 1 }
    }

    fn wants(&self, spec: usize, index: usize, test: &Test) -> bool {
        let ops = test.ops();
        (spec + index).is_multiple_of(self.one_in.max(1))
            && self.ops.as_ref().is_none_or(|wanted| ops.iter().any(|op| wanted.contains(*op)))
            && Suite::of(test).any(|suite| self.suites.contains(&suite))
    }
}

/// A device that one worker has to itself.
pub trait Lane {
    /// What to run on.
    fn target(&self) -> Target<'_>;

    /// Asked after every suite that passed: something that makes the pass worth nothing.
    fn objection(&mut self) -> Option<String> {
        None
    }

    /// Called after every test that failed: makes sure that the next one has a device.
    ///
    /// # Errors
    /// There is none to be had any more; the run ends.
    fn repair(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

/// Runs the tests of `specs`, `workers` at a time, each worker on a lane of its own. `progress`
/// hears of every spec that is done, with the number of its tests that ran and that failed.
///
/// # Errors
/// Vectors that cannot be read, or no device.
pub fn run<L: Lane>(
    specs: &[Spec],
    plan: &Plan,
    workers: usize,
    lane: impl Fn() -> Result<L, RunError> + Sync,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Report, RunError> {
    let queue = Queue { specs, next: AtomicUsize::new(0), error: Mutex::new(None) };
    let mut results = std::thread::scope(|scope| {
        let work = || queue.work(plan, &lane, &progress);
        let threads: Vec<_> = (0..workers.max(1)).map(|_| scope.spawn(work)).collect();
        let mut results = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(more) => results.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    if let Some(error) = queue.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    results.sort_by_key(|(position, _)| *position);
    Ok(Report::of(results.into_iter().map(|(_, result)| result)))
}

/// Where a test stands among all: spec, then index.
type Position = (usize, usize);

struct Queue<'a> {
    specs: &'a [Spec],
    next: AtomicUsize,
    /// The first error ends the work of all.
    error: Mutex<Option<RunError>>,
}

impl Queue<'_> {
    fn work<L: Lane>(
        &self,
        plan: &Plan,
        lane: &(impl Fn() -> Result<L, RunError> + Sync),
        progress: &(impl Fn(u64, u64) + Sync),
    ) -> Vec<(Position, TestResult)> {
        let mut results = Vec::new();
        if let Err(error) = self.try_work(plan, lane, progress, &mut results) {
            self.lock().get_or_insert(error);
        }
        results
    }

    fn try_work<L: Lane>(
        &self,
        plan: &Plan,
        lane: &(impl Fn() -> Result<L, RunError> + Sync),
        progress: &(impl Fn(u64, u64) + Sync),
        results: &mut Vec<(Position, TestResult)>,
    ) -> Result<(), RunError> {
        let mut lane = lane()?;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(spec) = self.specs.get(number).filter(|_| self.lock().is_none()) else {
                return Ok(());
            };
            let vectors = open(spec)?;
            let (mut ran, mut failed) = (0, 0);
            for (index, test) in vectors.tests.iter().enumerate() {
                if !plan.wants(number, index, test) {
                    continue;
                }
                let result = run_test(&mut lane, plan, &vectors, test);
                ran += 1;
                if result.has_failed() {
                    failed += 1;
                    lane.repair()?;
                }
                results.push(((number, index), result));
            }
            progress(ran, failed);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<RunError>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs one test in every suite and mode of the plan that it belongs to.
fn run_test(lane: &mut impl Lane, plan: &Plan, vectors: &Vectors, test: &Test) -> TestResult {
    let mut result = TestResult::new(test);
    for suite in Suite::of(test).filter(|suite| plan.suites.contains(suite)) {
        if suite == Suite::Validation {
            let run = |lane: Target<'_>| wrong_models(lane.device, vectors, test);
            result.add(suite, MODEL, guarded(lane, run));
        }
        for mode in &plan.modes {
            let run = |target: Target<'_>| run_suite(target, vectors, test, suite, *mode);
            result.add(suite, mode.name(), guarded(lane, run));
        }
    }
    result
}

/// Stands in place of a mode where nothing is executed: broken models that were refused.
pub(crate) const MODEL: &str = "model";

/// A device in this process may panic: that fails its test, and no other.
fn guarded(lane: &mut impl Lane, run: impl FnOnce(Target<'_>) -> Outcome) -> Outcome {
    let outcome = catch_unwind(AssertUnwindSafe(|| run(lane.target())))
        .unwrap_or_else(|panic| Err(format!("panicked: {}", message(&*panic)).into()));
    let executions = outcome?;
    match lane.objection() {
        None => Ok(executions),
        Some(what) => Err(what.into()),
    }
}

pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
