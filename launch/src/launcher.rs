//! Starting executions that nobody waits for.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use burst_hal::validate::{RequestRules, UnspecifiedOutputs};
use burst_hal::{
    Caller, CancelWord, ErrorStatus, ExecutionCallback, ExecutionOptions, ExecutionResult, Failure,
    Fence, FencedExecution, FencedOptions, Pace, PreparedModel, Priority, Request, TimePoint,
};

use crate::LaunchError;
use crate::completion::{Completion, sooner};
use crate::fence::{CheckedFence, FenceState};
use crate::locks::guarded;
use crate::watcher::{Alarm, FenceWatcher, WaitEnd, state_of_all};
use crate::workers::{Job, Turn, Workers};

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
/// that execute, the most urgent first, one that waits for fences, and one that ends what waits for a thread
/// when its deadline passes; each starts when it is needed first. Copies share them.
///
/// An execution whose deadline is hopeless, by the model's [`Pace`], is ended before it waits for anything.
/// What a missed deadline is called goes by that pace and the time that was left when the execution came.
#[derive(Debug, Clone)]
pub struct Launcher(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    workers: Workers,
    watcher: FenceWatcher,
    /// Not the same thread: this one calls callbacks of others, which may take their time.
    deadlines: FenceWatcher,
}

/// An execution on its way.
pub(crate) struct Run {
    model: Arc<dyn PreparedModel>,
    priority: Priority,
    pub(crate) request: Request,
    caller: Caller,
    /// Until its deadline when it came.
    left: Option<Duration>,
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
        Launcher(Arc::new(Parts {
            workers: Workers::new(threads.get(), waiting),
            watcher: FenceWatcher::new("launch-fences"),
            deadlines: FenceWatcher::new("launch-late"),
        }))
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
        let run = Run::new(model, priority, request, caller, &options);
        let rules = run.model.request_rules();
        let checked = check(rules, &run.request, UnspecifiedOutputs::Allowed);
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
        let run = Run::new(model, priority, request, caller, &options.execution);
        check_fenced(run.model.request_rules(), &run.request)?;
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
        if let Some(hopeless) = run.refusal() {
            drop(run);
            callback(ExecutionResult::of(hopeless));
            return Ok(());
        }
        let (priority, cancel) = (run.priority, run.caller.cancel_word().clone());
        let job = Box::new(move |turn| callback(run.take_turn(turn, options)));
        Ok(self.0.queue(priority, &cancel, options.deadline, job)?)
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
        let hopeless = run.refusal();
        let fenced = Fenced { parts: Arc::clone(&self.0), run, options, completion };
        if let Some(hopeless) = hopeless {
            fenced.fail(hopeless);
        } else if state_of_all(&fences) == FenceState::Done {
            fenced.ready()?;
        } else {
            let ended = move |end| fenced.waited(end);
            self.0.watcher.wait(&fences, deadline, &cancel, ended)?;
        }
        let fence = Some(fence).filter(|_| !info.has_ended_well());
        Ok(FencedExecution { fence, info })
    }
}

impl Parts {
    /// Has a job done when it is its turn. Until then it leaves the queue when it is cancelled, and when its
    /// deadline passes. A job that is refused is told so, too.
    fn queue(
        &self,
        priority: Priority,
        cancel: &CancelWord,
        deadline: Option<TimePoint>,
        job: Job,
    ) -> Result<(), LaunchError> {
        let place = self.workers.push(priority, cancel, job).map_err(|(error, job)| {
            job(Turn::Refused(error.status()));
            error
        })?;
        let Some(at) = deadline else { return Ok(()) };
        let own = place.clone();
        let passes = move |end| {
            if end == WaitEnd::MissedDeadline {
                own.leave(Turn::TooLate);
            }
        };
        match self.deadlines.alarm(at, passes) {
            Ok(waiting) => place.keep(Alarm(waiting)),
            // Then it is noticed when its turn comes.
            Err(error) => tracing::warn!(%error, "no alarm for a deadline"),
        }
        Ok(())
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
            WaitEnd::MissedDeadline => self.run.missed(),
            WaitEnd::Failed | WaitEnd::Cancelled => ErrorStatus::GeneralFailure,
        };
        self.fail(status);
    }

    /// It is not begun.
    fn fail(self, status: ErrorStatus) {
        let Fenced { run, completion, .. } = self;
        drop(run); // its memories are free when its fence says that it has ended
        completion.fail(status);
    }

    /// All fences are done: the next thread that is free executes it.
    fn ready(self) -> Result<(), LaunchError> {
        let fenced = TimePoint::now();
        let FencedOptions { execution, duration } = self.options;
        let deadline = sooner(execution.deadline, fenced, duration);
        if deadline.is_some_and(|at| at <= fenced) {
            let missed = self.run.missed();
            self.fail(missed);
            return Ok(());
        }
        let Fenced { parts, run, completion, .. } = self;
        let execution = ExecutionOptions { deadline, ..execution };
        let (priority, cancel) = (run.priority, run.caller.cancel_word().clone());
        let job = Box::new(move |turn| {
            let result = run.take_turn(turn, execution);
            completion.end(&result, Some(fenced));
        });
        parts.queue(priority, &cancel, deadline, job)
    }
}

impl Run {
    /// An execution that comes now.
    pub(crate) fn new(
        model: Arc<dyn PreparedModel>,
        priority: Priority,
        request: Request,
        caller: Caller,
        options: &ExecutionOptions,
    ) -> Self {
        let left = options.deadline.map(|deadline| deadline.since(TimePoint::now()));
        Run { model, priority, request, caller, left }
    }

    /// The status of an execution that need not wait for anything, as its deadline is hopeless.
    fn refusal(&self) -> Option<ErrorStatus> {
        self.model.pace().unwrap_or(&Pace::default()).refusal(self.left?)
    }

    /// The status of one that has missed its deadline, or did not end within its duration.
    fn missed(&self) -> ErrorStatus {
        let left = self.left.unwrap_or(Duration::MAX);
        self.model.pace().unwrap_or(&Pace::default()).missed(left)
    }

    /// Executes, where it is its turn; the memories of the request are let go of when this returns.
    fn take_turn(self, turn: Turn, options: ExecutionOptions) -> ExecutionResult {
        let status = match turn {
            Turn::Refused(status) => status,
            Turn::CalledOff => ErrorStatus::GeneralFailure,
            Turn::TooLate => self.missed(),
            Turn::Run if self.caller.is_cancelled() => ErrorStatus::GeneralFailure,
            Turn::Run if options.deadline.is_some_and(TimePoint::has_passed) => self.missed(),
            Turn::Run => return self.execute(&options),
        };
        ExecutionResult::of(status)
    }

    fn execute(&self, options: &ExecutionOptions) -> ExecutionResult {
        let Run { model, request, caller, .. } = self;
        let Some(mut result) = guarded(|| model.execute_for(request, options, caller)) else {
            tracing::error!("the driver panicked in an execution");
            return ExecutionResult::of(ErrorStatus::GeneralFailure);
        };
        // A device says it of the time that was left when the execution got its turn; whoever launched it is
        // told what holds for the time when it came.
        if result.status == ErrorStatus::MissedDeadlinePersistent && model.pace().is_some() {
            result.status = self.missed();
        }
        result
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
