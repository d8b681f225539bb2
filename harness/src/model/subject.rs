//! A path over which a model runs, as a subject of the engine. A trial is a life of its own, timed
//! execution by execution.

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::{Length, Subject, Times, Trial};
use crate::error::HarnessError;
use crate::machine::Pins;

/// Which path, and how many threads compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The path to a driver, or another library.
    pub path: String,
    /// Threads that compute.
    pub threads: u32,
}

impl Label {
    /// A path with so many threads.
    #[must_use]
    pub fn new(path: &str, threads: u32) -> Label {
        Label { path: path.to_owned(), threads }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(f, "{}, {} thread{plural}", self.path, self.threads)
    }
}

/// What a trial found.
#[derive(Debug, Clone, Default)]
pub struct Executions {
    /// Preparing the model and setting up what its executions need.
    pub prepare: Duration,
    /// The first execution.
    pub first: Duration,
    /// The executions that count.
    pub times: Times,
    /// What those took beyond the time that the driver itself measured.
    pub transport: Times,
    /// Copies of the inputs' bytes out of shared memory, where the subject makes them.
    pub copies: Times,
    /// Outputs of the first execution, without states.
    pub outputs: Vec<Vec<u8>>,
    /// The most memory that the process which computes ever had resident, in KiB.
    pub memory_kib: Option<u64>,
}

impl Trial for Executions {
    fn p50_ns(&self) -> Option<f64> {
        self.times.p50()
    }
}

/// A subject that runs one model over one path. In each trial it prepares the model, runs it, and gives
/// everything back.
pub trait ModelSubject: Subject<Trial = Executions> {
    /// Which path.
    fn label(&self) -> &Label;
}

/// A subject that computes on one CPU with one thread. A subject with another process starts that
/// during its trial, so that the process inherits the CPU, and then moves away itself.
pub struct Pinned<S> {
    subject: S,
    pins: Pins,
}

impl<S: ModelSubject> Pinned<S> {
    /// Keeps `subject` on the CPUs that `pins` names.
    pub fn new(subject: S, pins: Pins) -> Pinned<S> {
        Pinned { subject, pins }
    }
}

impl<S: ModelSubject> Subject for Pinned<S> {
    type Trial = Executions;

    fn context(&self) -> String {
        self.subject.context()
    }

    fn trial(&mut self, length: Length) -> Result<Executions, HarnessError> {
        self.pins.compute()?;
        let trial = self.subject.trial(length);
        self.pins.release()?;
        trial
    }
}

impl<S: ModelSubject> ModelSubject for Pinned<S> {
    fn label(&self) -> &Label {
        self.subject.label()
    }
}

/// A model that is prepared and can be executed.
pub trait Executable {
    /// Writes the inputs. Not timed: an application does it in any case.
    ///
    /// # Errors
    /// Memory that cannot be written.
    fn fill(&mut self) -> Result<(), HarnessError>;

    /// Runs once on what was filled in; the time that the driver measured, where it did.
    ///
    /// # Errors
    /// An execution that fails.
    fn run(&mut self) -> Result<Option<Duration>, HarnessError>;

    /// The outputs of the last execution, without states.
    ///
    /// # Errors
    /// Memory that cannot be read.
    fn outputs(&mut self) -> Result<Vec<Vec<u8>>, HarnessError>;
}

/// Time that has passed since a beginning which does not matter.
pub type Clock<'c> = dyn Fn() -> Duration + Send + Sync + 'c;

/// The executions of one trial; `prepare` says how long it took to come so far.
///
/// # Errors
/// Those of the executions.
pub fn take_trial(
    model: &mut dyn Executable,
    prepare: Duration,
    length: Length,
) -> Result<Executions, HarnessError> {
    let begun = Instant::now();
    take_trial_by(&|| begun.elapsed(), model, prepare, length)
}

/// The same by another clock.
pub(super) fn take_trial_by(
    clock: &Clock<'_>,
    model: &mut dyn Executable,
    prepare: Duration,
    length: Length,
) -> Result<Executions, HarnessError> {
    let (first, _) = once(clock, model)?;
    let outputs = model.outputs()?;
    for _ in 0..length.warm_up {
        once(clock, model)?;
    }
    let mut times = Vec::with_capacity(length.counted as usize);
    let mut transport = Vec::with_capacity(length.counted as usize);
    for _ in 0..length.counted {
        let (took, driver) = once(clock, model)?;
        times.push(nanos(took));
        transport.extend(driver.map(|driver| nanos(took.saturating_sub(driver))));
    }
    Ok(Executions {
        prepare,
        first,
        times: Times::new(times),
        transport: Times::new(transport),
        copies: Times::default(),
        outputs,
        memory_kib: None,
    })
}

fn once(
    clock: &Clock<'_>,
    model: &mut dyn Executable,
) -> Result<(Duration, Option<Duration>), HarnessError> {
    model.fill()?;
    let started = clock();
    let driver = model.run()?;
    Ok((clock().saturating_sub(started), driver))
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
