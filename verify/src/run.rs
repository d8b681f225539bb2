//! Many tests on many devices at once.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use burst_hal::Route;

use crate::deadlines;
use crate::error::{RunError, VectorError};
use crate::execute::Ready;
use crate::interface::Interface;
use crate::outcome::{Miss, Outcome};
use crate::report::{MODEL, Report, TestResult};
use crate::subject::Target;
use crate::suite::Suite;
use crate::validation::wrong_models_through;
use crate::vectors::{Spec, Test, Vectors, open};

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How requests travel to the driver.
    pub routes: Vec<Route>,
    /// Which suites.
    pub suites: Vec<Suite>,
    /// Only tests of these operations; all where it is `None`.
    pub ops: Option<BTreeSet<String>>,
    /// Only this fixed part of the tests: one in so many, spread over all specs.
    pub one_in: usize,
}

impl Plan {
    /// Everything, over these routes.
    #[must_use]
    pub fn everything(routes: &[Route]) -> Self {
        Plan { routes: routes.to_vec(), suites: Suite::ALL.to_vec(), ops: None, one_in: 1 }
    }

    /// Visits the tests of these specs that are run.
    ///
    /// # Errors
    /// Vectors that cannot be read; what `visit` says, with which the visits end.
    pub fn visit<E: From<VectorError>>(
        &self,
        specs: &[Spec],
        mut visit: impl FnMut(&Vectors, &Test) -> Result<(), E>,
    ) -> Result<(), E> {
        for (number, spec) in specs.iter().enumerate() {
            let vectors = open(spec)?;
            let tests = vectors.tests.iter().enumerate();
            for (_, test) in tests.filter(|(index, test)| self.wants(number, *index, test)) {
                visit(&vectors, test)?;
            }
        }
        Ok(())
    }

    fn wants(&self, spec: usize, index: usize, test: &Test) -> bool {
        let ops = test.ops();
        (spec + index).is_multiple_of(self.one_in.max(1))
            && self.ops.as_ref().is_none_or(|wanted| ops.iter().any(|op| wanted.contains(*op)))
            && test.suites().any(|suite| self.suites.contains(&suite))
    }
}

/// A device that one worker has to itself for as long as it works.
pub trait DeviceLease {
    /// What to run on.
    fn target(&self) -> Target<'_>;

    /// The interface that leads to the device.
    fn interface(&self) -> Interface {
        Interface::Hal
    }

    /// Called after every suite that passed: returns a reason not to count the pass, if there is one.
    fn objection(&mut self) -> Option<String> {
        None
    }

    /// Called after every test that failed: makes sure that the next one has a device.
    ///
    /// # Errors
    /// No device is left; the run ends.
    fn repair(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

/// A device that can be shared: every worker runs on the same one.
impl DeviceLease for Target<'_> {
    fn target(&self) -> Target<'_> {
        *self
    }
}

/// Runs the tests of `specs`, `workers` at a time, each worker with a lease of its own. `progress`
/// is called for every spec that is done, with the number of its tests that ran and that failed.
///
/// # Errors
/// Vectors that cannot be read, or no device.
pub fn run<L: DeviceLease>(
    specs: &[Spec],
    plan: &Plan,
    workers: usize,
    lease: impl Fn() -> Result<L, RunError> + Sync,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Report, RunError> {
    match run_while(specs, plan, workers, lease, progress, &|| true) {
        (report, None) => Ok(report),
        (_, Some(error)) => Err(error),
    }
}

/// The same for as long as `go_on` says so: it is asked before and after each test. A test that was under way when
/// it said no does not count, whatever came of it, and neither does an error: what asked for the end may have ended
/// the device too.
///
/// Gives what came of the tests that were run, and what ended the run before its time: the errors of [`run()`].
pub fn run_while<L: DeviceLease>(
    specs: &[Spec],
    plan: &Plan,
    workers: usize,
    lease: impl Fn() -> Result<L, RunError> + Sync,
    progress: impl Fn(u64, u64) + Sync,
    go_on: &(dyn Fn() -> bool + Sync),
) -> (Report, Option<RunError>) {
    let queue = Queue { specs, next: AtomicUsize::new(0), error: Mutex::new(None), go_on };
    let mut results = std::thread::scope(|scope| {
        let work = || queue.work(plan, &lease, &progress);
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
    let error = queue.error.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(position, _)| *position);
    let results = results.into_iter().map(|(_, result)| result);
    (Report::of(&plan.suites, &plan.routes, results), error.filter(|_| go_on()))
}

/// Where a test stands among all: spec, then index.
type Position = (usize, usize);

struct Queue<'a> {
    specs: &'a [Spec],
    next: AtomicUsize,
    /// The first error ends the work of all.
    error: Mutex<Option<RunError>>,
    /// Whether to take up further tests.
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl Queue<'_> {
    fn work<L: DeviceLease>(
        &self,
        plan: &Plan,
        lease: &(impl Fn() -> Result<L, RunError> + Sync),
        progress: &(impl Fn(u64, u64) + Sync),
    ) -> Vec<(Position, TestResult)> {
        let mut results = Vec::new();
        if let Err(error) = self.try_work(plan, lease, progress, &mut results) {
            self.lock().get_or_insert(error);
        }
        results
    }

    fn try_work<L: DeviceLease>(
        &self,
        plan: &Plan,
        lease: &(impl Fn() -> Result<L, RunError> + Sync),
        progress: &(impl Fn(u64, u64) + Sync),
        results: &mut Vec<(Position, TestResult)>,
    ) -> Result<(), RunError> {
        let mut lease = lease()?;
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
                if !(self.go_on)() {
                    return Ok(());
                }
                let result = run_test(&mut lease, plan, &vectors, test);
                if !(self.go_on)() {
                    return Ok(());
                }
                ran += 1;
                let has_failed = result.has_failed();
                // Before the repair: where no device is left, it may be this test that it did not survive.
                results.push(((number, index), result));
                if has_failed {
                    failed += 1;
                    lease.repair()?;
                }
            }
            progress(ran, failed);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<RunError>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs one test in every suite of the plan that it belongs to, over every route of the plan that the suite
/// has.
fn run_test(
    lease: &mut impl DeviceLease,
    plan: &Plan,
    vectors: &Vectors,
    test: &Test,
) -> TestResult {
    let mut result = TestResult::new(test);
    let interface = lease.interface();
    for suite in test.suites().filter(|suite| plan.suites.contains(suite)) {
        result.add_suite(suite);
        if suite.has_models() {
            let run = |target: Target<'_>| match suite {
                Suite::Validation => wrong_models_through(interface, target.device, vectors, test),
                _ => deadlines::prepare(target, vectors, test, interface),
            };
            result.add(suite, MODEL, guarded(lease, run));
        }
        let mut routes =
            plan.routes.iter().filter(|route| suite.routes().contains(route)).peekable();
        if routes.peek().is_none() {
            continue;
        }
        // One prepared model for all routes, as in the original.
        let ready = caught(|| Ready::prepare(lease.target(), vectors, test, suite, interface));
        for route in routes {
            let outcome = match &ready {
                Ok(ready) => guarded(lease, |target| ready.run(target, *route)),
                Err(miss) => Err(miss.clone()),
            };
            result.add(suite, route.name(), outcome);
        }
    }
    result
}

/// A device in this process may panic: the panic fails its test and no other.
fn guarded(lease: &mut impl DeviceLease, run: impl FnOnce(Target<'_>) -> Outcome) -> Outcome {
    let done = caught(|| run(lease.target()))?;
    match lease.objection() {
        None => Ok(done),
        Some(what) => Err(what.into()),
    }
}

fn caught<T>(run: impl FnOnce() -> Result<T, Miss>) -> Result<T, Miss> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(format!("panicked: {}", message(&*panic)).into()))
}

pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
