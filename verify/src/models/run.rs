//! Every golden of a folder, over every route that is asked for.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::device_route::DeviceRoute;
use super::manifest::Folder;
use super::model_run::ModelRun;
use super::pipeline::Importer;
use super::report::{GoldenReport, GoldenResult};
use crate::error::RunError;

/// Runs every golden over every route, `repetitions` times each, `workers` models at a time, each
/// worker with routes of its own. All outputs of a golden have to be the same bytes over all routes
/// and repetitions. `progress` hears of every golden that is done.
///
/// # Errors
/// A model file cannot be read, or there is no device.
pub fn run_goldens<'a>(
    folder: &Folder,
    importer: &dyn Importer,
    repetitions: usize,
    workers: usize,
    routes: impl Fn() -> Result<Vec<DeviceRoute<'a>>, RunError> + Sync,
    progress: impl Fn(&GoldenResult) + Sync,
) -> Result<GoldenReport, RunError> {
    match run_goldens_while(folder, importer, (repetitions, workers), routes, progress, &|| true) {
        (report, None) => Ok(report),
        (_, Some(error)) => Err(error),
    }
}

/// The same with so many repetitions and workers for as long as `go_on` says so: it is asked before and after each
/// golden. One that was under way when it said no does not count, whatever came of it, and neither does an error: what
/// asked for the end may have ended the device too.
///
/// Gives what came of the goldens that were run, and what ended the run before its time: the errors of
/// [`run_goldens`].
pub fn run_goldens_while<'a>(
    folder: &Folder,
    importer: &dyn Importer,
    (repetitions, workers): (usize, usize),
    routes: impl Fn() -> Result<Vec<DeviceRoute<'a>>, RunError> + Sync,
    progress: impl Fn(&GoldenResult) + Sync,
    go_on: &(dyn Fn() -> bool + Sync),
) -> (GoldenReport, Option<RunError>) {
    let queue = Queue { folder, next: AtomicUsize::new(0), done: Mutex::default() };
    let work = || -> Result<(), RunError> {
        let mut routes = routes()?;
        while let Some((number, model)) = queue.take().filter(|_| go_on()) {
            let run = ModelRun::new(model, importer, repetitions)?;
            // Kept as they come: where there is no device any more, those before are all there are.
            let results = RefCell::new(Vec::new());
            let keep = |result: &GoldenResult| {
                results.borrow_mut().push(result.clone());
                progress(result);
            };
            let ended = run.goldens(&mut routes, &keep, go_on);
            queue.lock().results.push((number, results.into_inner()));
            ended?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                if let Err(error) = work() {
                    queue.lock().error.get_or_insert(error);
                }
            });
        }
    });
    let Done { mut results, error } =
        queue.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    let results = results.into_iter().flat_map(|(_, results)| results).collect();
    (GoldenReport::of(results), error.filter(|_| go_on()))
}

/// Models that wait for a worker, and what came of the others.
struct Queue<'f> {
    folder: &'f Folder,
    next: AtomicUsize,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    /// Of each model, by its index in the manifest.
    results: Vec<(usize, Vec<GoldenResult>)>,
    /// The first error ends the work of all.
    error: Option<RunError>,
}

impl<'f> Queue<'f> {
    fn take(&self) -> Option<(usize, &'f super::manifest::ModelEntry)> {
        // Relaxed: the number alone is shared, nothing is published with it.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let model = self.folder.models.get(number)?;
        self.lock().error.is_none().then_some((number, model))
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
