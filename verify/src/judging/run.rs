//! Many random models, several at a time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use burst_hal::{Device, OperationType};

use super::judge::Judge;
use super::lane::Lane;
use super::one::{Failed, Passed};
use super::record::record;
use super::report::{RandomFinding, RandomReport};
use super::shrink::{Shrunk, shrink};
use crate::error::RunError;
use crate::random::{Class, RandomModel, Sample};

/// What is to be judged.
#[derive(Debug, Clone)]
pub struct RandomPlan {
    /// The first seed; each model of a class has one more than the one before.
    pub seed: u64,
    /// Models of each class.
    pub models: u64,
    /// Which classes.
    pub classes: Vec<Class>,
    /// Only models with one of these operations; all where there are none.
    pub ops: Vec<OperationType>,
    /// Where models that fail are written to, made small.
    pub failures: Option<PathBuf>,
    /// Whether the first model that fails ends the run. With several workers, models that are being judged are
    /// judged to their end.
    pub is_over_at_first: bool,
}

impl RandomPlan {
    /// The models, class by class, each with what it comes from.
    fn sample(&self, number: u64) -> Option<Sample> {
        let class = usize::try_from(number / self.models.max(1)).ok()?;
        let (class, number) = (*self.classes.get(class)?, number % self.models.max(1));
        let only = match self.ops.as_slice() {
            [] => None,
            ops => ops.get(usize::try_from(number).ok()? % ops.len()).copied(),
        };
        Some(Sample { only, ..Sample::new(class, self.seed.wrapping_add(number)) })
    }
}

/// Judges random models on lanes, `workers` at a time, each worker with lanes of its own. `progress` is called
/// with every model that is done: whether it failed.
///
/// # Errors
/// A lane that cannot be opened, or a failing model that cannot be written.
pub fn run_random<'l, L>(
    plan: &RandomPlan,
    judge: &dyn Device,
    workers: usize,
    lanes: L,
    progress: impl Fn(bool) + Sync,
) -> Result<RandomReport, RunError>
where
    L: Fn() -> Result<Vec<Lane<'l>>, RunError> + Sync,
{
    let report = Mutex::new(None);
    run_random_into(&report, plan, judge, workers, lanes, progress)?;
    let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(report.unwrap_or_else(|| RandomReport::new(plan.seed, Vec::new())))
}

/// The same into a report that others may read meanwhile: it is there from the first model on, and has every one that
/// was judged so far, also where the run ends before its time.
///
/// # Errors
/// As [`run_random`].
pub fn run_random_into<'l, L>(
    report: &Mutex<Option<RandomReport>>,
    plan: &RandomPlan,
    judge: &dyn Device,
    workers: usize,
    lanes: L,
    progress: impl Fn(bool) + Sync,
) -> Result<(), RunError>
where
    L: Fn() -> Result<Vec<Lane<'l>>, RunError> + Sync,
{
    let work = Work {
        plan,
        judge: Judge::new(judge),
        next: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        report,
        error: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                if let Err(error) = work.work(&lanes, &progress) {
                    lock(&work.error).get_or_insert(error);
                }
            });
        }
    });
    if let Some(report) = &mut *lock(report) {
        report.findings.sort_by_key(|finding| (finding.class, finding.seed));
    }
    work.error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

struct Work<'a> {
    plan: &'a RandomPlan,
    judge: Judge<'a>,
    next: AtomicU64,
    /// Whether no further model is to be judged.
    is_over: AtomicBool,
    report: &'a Mutex<Option<RandomReport>>,
    /// The first error ends the work of all.
    error: Mutex<Option<RunError>>,
}

impl Work<'_> {
    fn work<'l>(
        &self,
        lanes: &impl Fn() -> Result<Vec<Lane<'l>>, RunError>,
        progress: &impl Fn(bool),
    ) -> Result<(), RunError> {
        let mut lanes = lanes()?;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(sample) = self.plan.sample(number) else { return Ok(()) };
            if self.is_over.load(Ordering::Relaxed) || lock(&self.error).is_some() {
                return Ok(());
            }
            let one = sample.model();
            let mut came = self.judge.judge_lanes(&one, &lanes);
            let objections = lanes
                .iter_mut()
                .filter_map(|lane| lane.lease.objection().map(|what| (lane.name.clone(), what)));
            if let (Some((lane, what)), Ok(_)) = (objections.last(), &came) {
                came = Err(Failed { lane, wrong: what.into() });
            }
            if came.is_err() && self.plan.is_over_at_first {
                self.is_over.store(true, Ordering::Relaxed);
            }
            let operations = one.model.main.operations.len();
            let came = self.told(sample, one, came, &mut lanes)?;
            let has_failed = came.is_err();
            let names = || lanes.iter().map(|lane| lane.name.clone()).collect();
            let mut report = lock(self.report);
            let whole = report.get_or_insert_with(|| RandomReport::new(self.plan.seed, names()));
            whole.add(sample.class, operations, came);
            drop(report);
            progress(has_failed);
        }
    }

    /// Makes a finding of a failure: the smallest model that fails, in a file.
    fn told(
        &self,
        sample: Sample,
        model: RandomModel,
        came: Result<Passed, Failed>,
        lanes: &mut [Lane<'_>],
    ) -> Result<Result<Passed, RandomFinding>, RunError> {
        let failed = match came {
            Ok(passed) => return Ok(Ok(passed)),
            Err(failed) => failed,
        };
        for lane in lanes.iter_mut() {
            lane.lease.repair()?;
        }
        let lane = failed.lane.clone();
        let Shrunk { model, failed } = shrink(self.judge, lanes, sample, Shrunk { model, failed });
        for lane in lanes {
            lane.lease.repair()?;
        }
        let Sample { class, seed, only, .. } = sample;
        let name = format!("random_{}_{seed}", class.name());
        let write = |folder: &PathBuf| {
            let written = record(folder, &name, &model, self.judge);
            written.map_err(|cause| RunError::File { path: folder.clone(), cause })
        };
        let file = self.plan.failures.as_ref().map(write).transpose()?;
        let operations = &model.model.main.operations;
        Ok(Err(RandomFinding {
            class,
            seed,
            only: only.map(OperationType::name),
            lane,
            what: failed.wrong.what,
            operations: operations.iter().map(|one| one.ty.name().to_owned()).collect(),
            file,
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
