//! A lane runs a model; a turn of it is a life of its own, timed execution by execution.

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::times::Times;
use crate::error::HarnessError;
use crate::machine::Pins;

/// Who runs a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The way to a driver, or another library.
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

/// How long a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// Executions between the first one and those that count.
    pub warm_up: u32,
    /// Executions that count.
    pub executions: u32,
}

/// What a turn found.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// Preparing the model and setting up what its executions need.
    pub prepare: Duration,
    /// The first execution.
    pub first: Duration,
    /// The executions that count.
    pub times: Times,
    /// What those took beyond the time that the driver itself measured.
    pub transport: Times,
    /// Copies of the inputs' bytes out of shared memory, where the lane makes them.
    pub copies: Times,
    /// Outputs of the first execution, without states.
    pub outputs: Vec<Vec<u8>>,
}

/// Somebody who can run one model.
pub trait Lane {
    /// Who.
    fn label(&self) -> &Label;

    /// Prepares the model, runs it, and gives everything back.
    ///
    /// # Errors
    /// Whatever stops it.
    fn turn(&mut self, length: Length) -> Result<Turn, HarnessError>;
}

/// A lane that computes on one CPU with one thread. A lane with another process starts that during
/// its turn, so that it inherits the place, and then moves away itself.
pub struct Pinned<L> {
    lane: L,
    pins: Pins,
}

impl<L: Lane> Pinned<L> {
    /// Keeps `lane` where `pins` says.
    pub fn new(lane: L, pins: Pins) -> Pinned<L> {
        Pinned { lane, pins }
    }
}

impl<L: Lane> Lane for Pinned<L> {
    fn label(&self) -> &Label {
        self.lane.label()
    }

    fn turn(&mut self, length: Length) -> Result<Turn, HarnessError> {
        self.pins.compute()?;
        let turn = self.lane.turn(length);
        self.pins.release()?;
        turn
    }
}

/// A model that is prepared and can be run.
pub trait Runs {
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

/// One turn: `prepare` says how long it took to come so far.
///
/// # Errors
/// Those of the executions.
pub fn take_turn(
    runs: &mut dyn Runs,
    prepare: Duration,
    length: Length,
) -> Result<Turn, HarnessError> {
    let (first, _) = once(runs)?;
    let outputs = runs.outputs()?;
    for _ in 0..length.warm_up {
        once(runs)?;
    }
    let mut times = Vec::with_capacity(length.executions as usize);
    let mut transport = Vec::with_capacity(length.executions as usize);
    for _ in 0..length.executions {
        let (took, driver) = once(runs)?;
        times.push(nanos(took));
        transport.extend(driver.map(|driver| nanos(took.saturating_sub(driver))));
    }
    Ok(Turn {
        prepare,
        first,
        times: Times::new(times),
        transport: Times::new(transport),
        copies: Times::default(),
        outputs,
    })
}

fn once(runs: &mut dyn Runs) -> Result<(Duration, Option<Duration>), HarnessError> {
    runs.fill()?;
    let started = Instant::now();
    let driver = runs.run()?;
    Ok((started.elapsed(), driver))
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
