//! Starting executions that nobody waits for.

use std::num::NonZeroUsize;
use std::sync::Arc;

use burst_hal::validate::{RequestRules, UnspecifiedOutputs};
use burst_hal::{
    Caller, ErrorStatus, ExecutionCallback, ExecutionOptions, ExecutionResult, Failure, Fence,
    FencedExecution, FencedOptions, PreparedModel, Priority, Request, TimePoint,
};

use crate::LaunchError;
use crate::completion::{Completion, sooner};
use crate::fence::{CheckedFence, FenceState};
use crate::locks::guarded;
use crate::watcher::{FenceWatcher, WaitEnd, state_of_all};
use crate::workers::{Turn, Workers};

/// Executions that wait for a thread at once, unless somebody says otherwise: far more than a program that
/// waits for results has under way.
const WAITING: usize = 1024;

/// Bounds of a [`Launcher`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LauncherOptions {
    /// Threads that execute; by default as many as there are processors.
    pub threads: NonZeroUsize,
    /// Executions that may wait for one of them; those that wait for fences do not count.
    pub waiting: usize,
}

impl Default for LauncherOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        LauncherOptions { threads, waiting: WAITING }
    }
}

/// Starts asynchronous and fenced executions of any prepared model. It has a bounded number of threads
/// that execute, the most urgent first, and one that waits for fences; each starts when it is
/// needed first. Copies share them.
#[derive(Debug, Clone)]
pub struct Launcher(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    workers: Workers,
    watcher: FenceWatcher,
}

/// An execution on its way.
pub(crate) struct Run {
    pub(crate) model: Arc<dyn PreparedModel>,
    pub(crate) priority: Priority,
    pub(crate) request: Request,
    pub(crate) caller: Caller,
}

impl Default for Launcher {
    fn default() -> Self {
        Launcher::new(LauncherOptions::default())
    }
}

impl Launcher {
    /// A launcher within these bounds.
    #[must_use]
    pub fn new(options: LauncherOptions) -> Self {
        let LauncherOptions { threads, waiting } = options;
        let workers = Workers::new(threads.get(), waiting);
        Launcher(Arc::new(Parts { workers, watcher: FenceWatcher::new("launch-fences") }))
    }

    /// As [`PreparedModel::execute_asynchronously`], on a thread of this launcher.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a request that is not legal, as far as the model knows its
    /// [rules](PreparedModel::request_rules); RESOURCE_EXHAUSTED_TRANSIENT where too many wait already. The
    /// callback gets the same status.
    pub fn execute_asynchronously(
        &self,
        model: Arc<dyn PreparedModel>,
        priority: Priority,
        request: Request,
        options: ExecutionOptions,
        caller: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        let checked = check(model.request_rules(), &request, UnspecifiedOutputs::Allowed);
        let run = Run { model, priority, request, caller };
        self.start(run, checked, options, callback)
    }

    /// As [`PreparedModel::execute_fenced`], on a thread of this launcher.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a request that is not legal, an output of unknown size, a fence that has failed
    /// or is none; GENERAL_FAILURE where the model does not know its
    /// [rules](PreparedModel::request_rules); RESOURCE_EXHAUSTED_TRANSIENT where too many wait already.
    pub fn execute_fenced(
        &self,
        model: Arc<dyn PreparedModel>,
        priority: Priority,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        caller: Caller,
    ) -> Result<FencedExecution, Failure> {
        check_fenced(model.request_rules(), &request)?;
        let run = Run { model, priority, request, caller };
        self.start_fenced(run, wait_for, options)
    }

    /// Starts an execution whose request was found to be legal, or not.
    pub(crate) fn start(
        &self,
        run: Run,
        checked: Result<(), LaunchError>,
        options: ExecutionOptions,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        if let Err(error) = checked {
            drop(run);
            callback(ExecutionResult::of(error.status()));
            return Err(error.into());
        }
        let (priority, cancel) = (run.priority, run.caller.cancel_word().clone());
        // Where the queue gives the job back, whoever launches is told, and the callback too.
        let job = Box::new(move |turn| callback(run.take_turn(turn, options)));
        self.0.workers.push(priority, &cancel, job).map_err(|(error, job)| {
            job(Turn::Refused(error.status()));
            error.into()
        })
    }

    /// Starts a fenced execution whose request was found to be legal.
    pub(crate) fn start_fenced(
        &self,
        run: Run,
        wait_for: Vec<Fence>,
        options: FencedOptions,
    ) -> Result<FencedExecution, Failure> {
        let fences = CheckedFence::check_all(wait_for)?;
        let (completion, fence) = Completion::new(options.execution.measure_timing)?;
        let info = Arc::clone(&completion);
        let (cancel, deadline) = (run.caller.cancel_word().clone(), options.execution.deadline);
        let fenced = Fenced { parts: Arc::clone(&self.0), run, options, completion };
        if state_of_all(&fences) == FenceState::Done {
            fenced.ready()?;
        } else {
            let ended = move |end| fenced.waited(end);
            self.0.watcher.wait(&fences, deadline, &cancel, ended)?;
        }
        let fence = Some(fence).filter(|_| !info.has_ended_well());
        Ok(FencedExecution { fence, info })
    }
}

/// A fenced execution that has not begun.
struct Fenced {
    parts: Arc<Parts>,
    run: Run,
    options: FencedOptions,
    completion: Arc<Completion>,
}

impl Fenced {
    /// The wait for its fences has ended.
    fn waited(self, end: WaitEnd) {
        let status = match end {
            WaitEnd::Done => {
                let completion = Arc::clone(&self.completion);
                match self.ready() {
                    Ok(()) => return,
                    Err(error) => return completion.fail(error.status()),
                }
            }
            WaitEnd::MissedDeadline => ErrorStatus::MissedDeadlineTransient,
            WaitEnd::Failed | WaitEnd::Cancelled => ErrorStatus::GeneralFailure,
        };
        let Fenced { run, completion, .. } = self;
        drop(run); // its memories are free when its fence says that it has ended
        completion.fail(status);
    }

    /// All fences are done: the next thread that is free executes it.
    fn ready(self) -> Result<(), LaunchError> {
        let Fenced { parts, run, options, completion } = self;
        let fenced = TimePoint::now();
        let FencedOptions { execution, duration } = options;
        let deadline = sooner(execution.deadline, fenced, duration);
        let execution = ExecutionOptions { deadline, ..execution };
        let (priority, cancel) = (run.priority, run.caller.cancel_word().clone());
        let job = Box::new(move |turn| {
            let result = run.take_turn(turn, execution);
            completion.end(&result, Some(fenced));
        });
        parts.workers.push(priority, &cancel, job).map_err(|(error, job)| {
            job(Turn::Refused(error.status()));
            error
        })
    }
}

impl Run {
    /// Executes, where it is its turn; the memories of the request are let go of when this returns.
    fn take_turn(self, turn: Turn, options: ExecutionOptions) -> ExecutionResult {
        let Run { model, request, caller, .. } = self;
        let status = match turn {
            Turn::Refused(status) => status,
            Turn::CalledOff => ErrorStatus::GeneralFailure,
            Turn::Run if caller.is_cancelled() => ErrorStatus::GeneralFailure,
            Turn::Run if options.deadline.is_some_and(TimePoint::has_passed) => {
                ErrorStatus::MissedDeadlineTransient
            }
            Turn::Run => {
                let result = guarded(|| model.execute_for(&request, &options, &caller));
                return result.unwrap_or_else(|| {
                    tracing::error!("the driver panicked in an execution");
                    ExecutionResult::of(ErrorStatus::GeneralFailure)
                });
            }
        };
        ExecutionResult::of(status)
    }
}

/// Whether a request is legal, as far as is known what the model asks.
pub(crate) fn check(
    rules: Option<&RequestRules>,
    request: &Request,
    unspecified: UnspecifiedOutputs,
) -> Result<(), LaunchError> {
    rules.map_or(Ok(()), |rules| Ok(rules.check(request, unspecified)?))
}

/// Whether a request may be executed fenced, where it is known what the model asks.
pub(crate) fn check_fenced(rules: Option<&RequestRules>, request: &Request) -> Result<(), Failure> {
    if rules.is_none() {
        return Err(Failure::general("nobody knows what the model asks of a request"));
    }
    Ok(check(rules, request, UnspecifiedOutputs::Refused)?)
}
