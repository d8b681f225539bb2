//! One execution: arguments, options, state, results.
//!
//! | file | what a reader finds there |
//! |---|---|
//! | `arguments.rs` | what an argument has to be |
//! | `start.rs`, `behind.rs`, `results.rs` | how it is started, at once or behind fences, and what is known when it has ended |
//! | `job.rs`, `run.rs` | an execution from its start to its outcome |
//! | `staging.rs`, `value.rs`, `request.rs` | arguments as values, and values as requests to devices |
//! | `graph.rs`, `step.rs`, `judge.rs` | steps, branches and loops; which device runs a step, and what its answer is worth |
//! | `launch.rs`, `fenced.rs` | executions that nobody waits for: on threads of the framework, and in devices that wait for fences themselves |

mod arguments;
mod behind;
mod fenced;
mod graph;
mod job;
mod judge;
mod launch;
mod request;
mod results;
mod run;
mod staging;
mod start;
mod step;
mod value;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use burst_hal::validate::Direction;
use burst_hal::{LOOP_TIMEOUT_MAXIMUM, OutputShape, ResultCode};

pub use self::arguments::Argument;
use self::arguments::{Bound, Target};
use self::job::Outcome;
use crate::compilation::{Compilation, no_attribute, not_for_one_device};
use crate::compiled::Compiled;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::model::OperandTypeDesc;
use crate::process::check_process;

/// One execution of a compilation.
#[derive(Debug)]
pub struct Execution {
    compilation: Arc<Compilation>,
    compiled: Arc<Compiled>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    inputs: Vec<Option<Bound>>,
    outputs: Vec<Option<Bound>>,
    settings: Settings,
    state: State,
}

/// What was set before it starts.
#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    measure: bool,
    timeout: Option<Duration>,
    loop_timeout: Option<Duration>,
    is_reusable: bool,
    has_padding: bool,
}

#[derive(Debug)]
enum State {
    Preparation,
    Running,
    /// It runs, or has run, behind fences.
    Fenced(Fenced),
    Completed(Outcome),
}

/// A fenced execution, which is looked at when somebody asks.
#[derive(Debug, Clone)]
struct Fenced {
    event: Arc<Event>,
    /// Set by the framework's own executions.
    outcome: Arc<OnceLock<Outcome>>,
    /// Dimensions of the outputs, all of which were known before.
    shapes: Vec<OutputShape>,
}

impl Execution {
    /// An execution of a compilation.
    ///
    /// # Errors
    /// BAD_STATE for one that is not finished, or failed.
    pub fn new(compilation: &Arc<Compilation>) -> Result<Arc<Self>> {
        let compiled = compilation.compiled()?;
        let inner = Inner {
            inputs: vec![None; compiled.inputs.len()],
            outputs: vec![None; compiled.outputs.len()],
            settings: Settings::default(),
            state: State::Preparation,
        };
        let compilation = Arc::clone(compilation);
        Ok(Arc::new(Execution { compilation, compiled, inner: Mutex::new(inner) }))
    }

    /// Says where an input lies, and what of its type the model leaves open.
    ///
    /// # Errors
    /// BAD_STATE after the start, and for an input that was set; BAD_DATA for whatever does not fit the model.
    pub fn set_input(
        &self,
        index: i32,
        ty: Option<&OperandTypeDesc>,
        argument: Argument,
    ) -> Result<()> {
        self.set(Direction::Input, index, ty, argument)
    }

    /// Says where an output goes, and what of its type the model leaves open.
    ///
    /// # Errors
    /// As [`Execution::set_input`].
    pub fn set_output(
        &self,
        index: i32,
        ty: Option<&OperandTypeDesc>,
        argument: Argument,
    ) -> Result<()> {
        self.set(Direction::Output, index, ty, argument)
    }

    fn set(
        &self,
        direction: Direction,
        index: i32,
        ty: Option<&OperandTypeDesc>,
        argument: Argument,
    ) -> Result<()> {
        let mut inner = self.preparing()?;
        let (position, port) = self.compiled.port(direction, index)?;
        let may_be_longer = inner.settings.has_padding;
        let place = match direction {
            Direction::Input => &mut inner.inputs[position],
            Direction::Output => &mut inner.outputs[position],
        };
        if place.is_some() {
            return Err(Error::bad_state(format!("{direction} {index} was set before")));
        }
        let compilation = &*self.compilation;
        let target = Target { compilation, direction, position, port, may_be_longer };
        *place = Some(target.bind(ty, argument)?);
        Ok(())
    }

    /// Whether to measure how long it takes.
    ///
    /// # Errors
    /// BAD_STATE after the start; BAD_DATA unless the compilation is for exactly one named device.
    pub fn set_measure_timing(&self, measure: bool) -> Result<()> {
        let mut inner = self.preparing()?;
        self.check_one_device()?;
        inner.settings.measure = measure;
        Ok(())
    }

    /// How long it may take from its start on; 0 for any time.
    ///
    /// # Errors
    /// As [`Execution::set_measure_timing`].
    pub fn set_timeout(&self, nanos: u64) -> Result<()> {
        let mut inner = self.preparing()?;
        self.check_one_device()?;
        inner.settings.timeout = (nanos > 0).then(|| Duration::from_nanos(nanos));
        Ok(())
    }

    /// How long one loop may take; longer than [`LOOP_TIMEOUT_MAXIMUM`] counts as that.
    ///
    /// # Errors
    /// BAD_STATE after the start.
    pub fn set_loop_timeout(&self, nanos: u64) -> Result<()> {
        let timeout = Duration::from_nanos(nanos).min(LOOP_TIMEOUT_MAXIMUM);
        self.preparing()?.settings.loop_timeout = Some(timeout);
        Ok(())
    }

    /// Whether it may be started again once it has ended.
    ///
    /// # Errors
    /// BAD_STATE after the start.
    pub fn set_reusable(&self, reusable: bool) -> Result<()> {
        self.preparing()?.settings.is_reusable = reusable;
        Ok(())
    }

    /// Whether arguments may be longer than their values.
    ///
    /// # Errors
    /// BAD_STATE after the first argument, and after the start.
    pub fn enable_input_and_output_padding(&self, enable: bool) -> Result<()> {
        let mut inner = self.preparing()?;
        if inner.inputs.iter().chain(&inner.outputs).any(Option::is_some) {
            return Err(Error::bad_state("an argument was set before"));
        }
        inner.settings.has_padding = enable;
        Ok(())
    }

    /// Sets an attribute that an extension defines for executions.
    ///
    /// # Errors
    /// BAD_STATE after the start; otherwise BAD_DATA: no extension of any device has attributes.
    pub fn add_extension_attribute(&self, extension: &str, code: u16) -> Result<()> {
        let _preparing = self.preparing()?;
        Err(no_attribute(extension, code))
    }

    fn check_one_device(&self) -> Result<()> {
        match self.compilation.is_for_one_device() {
            true => Ok(()),
            false => Err(not_for_one_device()),
        }
    }

    /// What is set before the start.
    fn preparing(&self) -> Result<MutexGuard<'_, Inner>> {
        check_process()?;
        let inner = self.lock();
        match inner.state {
            State::Preparation => Ok(inner),
            _ => Err(Error::bad_state("the execution has been started")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As it is now, where a fenced execution may have ended meanwhile. It is asked about without the lock, which
    /// keeps nobody else waiting.
    fn resolved(&self) -> MutexGuard<'_, Inner> {
        let inner = self.lock();
        let State::Fenced(fenced) = &inner.state else { return inner };
        let asked = fenced.clone();
        drop(inner);
        let outcome = asked.outcome();
        let mut inner = self.lock();
        if let Some(outcome) = outcome
            && let State::Fenced(fenced) = &inner.state
            && Arc::ptr_eq(&fenced.event, &asked.event)
        {
            inner.state = State::Completed(outcome);
        }
        inner
    }
}

impl Fenced {
    /// What came of it; `None` while it has not ended. A service may be asked, which takes its time.
    fn outcome(&self) -> Option<Outcome> {
        let code = self.event.ended()?;
        let mut outcome = match self.outcome.get() {
            Some(outcome) => outcome.clone(),
            None if code == ResultCode::NoError => {
                Outcome { outputs: self.shapes.clone(), ..Outcome::of(code) }
            }
            None => Outcome::of(code),
        };
        if code == ResultCode::NoError
            && let Some((launched, fenced)) = self.event.timings()
        {
            (outcome.timing_launched, outcome.timing_fenced) = (launched, fenced);
        }
        Some(outcome)
    }
}
