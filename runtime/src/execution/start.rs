//! Starting an execution, on this thread or one of the framework's, and its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use burst_hal::validate::Direction;
use burst_hal::{ResultCode, TimePoint};

use super::arguments::Bound;
use super::job::{Job, Outcome, RunOptions};
use super::{Execution, Settings, State, launch, run};
use crate::burst::Burst;
use crate::error::{Error, Result};
use crate::event::{Event, Signal};
use crate::frame::Frame;
use crate::process::check_process;

impl Execution {
    /// Runs it and waits for the end.
    ///
    /// # Errors
    /// BAD_STATE where it was started before; BAD_DATA for an argument that is missing; how it ended.
    pub fn compute(&self) -> Result<()> {
        let job = self.start(false)?;
        let outcome = self.perform(job);
        self.complete(outcome)
    }

    /// Runs it on this thread.
    pub(super) fn perform(&self, job: Job) -> Outcome {
        let mut frame = self.compiled.frames.take();
        match perform(job, &mut frame) {
            Some(outcome) => {
                self.compiled.frames.give_back(frame);
                outcome
            }
            // The frame may be in any state.
            None => Outcome::of(ResultCode::OpFailed),
        }
    }

    /// Runs it with the resources of a burst and waits for the end.
    ///
    /// # Errors
    /// As [`Execution::compute`]; BAD_DATA for a burst of another compilation, BAD_STATE for one in use.
    pub fn burst_compute(&self, burst: &Arc<Burst>) -> Result<()> {
        check_process()?;
        let mut frame = burst.take(&self.compilation)?;
        let job = self.start(true)?;
        let outcome = perform(job, &mut frame);
        match outcome {
            Some(_) => frame.renew(),
            None => *frame = Frame::default(),
        }
        drop(frame);
        self.complete(outcome.unwrap_or_else(|| Outcome::of(ResultCode::OpFailed)))
    }

    /// Starts it on one of the framework's threads.
    ///
    /// # Errors
    /// As [`Execution::compute`], where it was not started; RESOURCE_EXHAUSTED_TRANSIENT where too much waits for a
    /// thread.
    pub fn start_compute(self: &Arc<Self>) -> Result<Arc<Event>> {
        let signal = Arc::new(Signal::default());
        let event = Event::of_signal(&signal);
        let job = self.start(false)?;
        let (execution, done) = (Arc::clone(self), Arc::clone(&signal));
        let body: launch::Body = Box::new(move |_| {
            let outcome = execution.perform(job);
            let (code, timing) = (outcome.code, outcome.timing_launched);
            drop(execution.complete(outcome));
            done.end(code);
            (code, timing)
        });
        if self.compilation.switches().sync_runtime {
            body(None);
            return Ok(event);
        }
        let (execution, priority) = (Arc::clone(self), self.compiled.options.priority);
        launch::start(priority, body, move |code| {
            // Where no thread has run it, this says why.
            execution.complete_if_running(code);
            signal.end(code);
        })?;
        Ok(event)
    }

    /// Begins: what is set now holds.
    pub(super) fn start(&self, all_bursts: bool) -> Result<Job> {
        check_process()?;
        let mut inner = self.resolved();
        match &inner.state {
            State::Preparation => {}
            State::Completed(_) if inner.settings.is_reusable => {}
            State::Completed(_) => return Err(Error::bad_state("the execution has ended")),
            State::Running | State::Fenced(_) => {
                return Err(Error::bad_state("the execution runs"));
            }
        }
        let all = |direction: Direction, arguments: &[Option<Bound>]| -> Result<Vec<Bound>> {
            let numbered = arguments.iter().enumerate();
            let argument = |(index, argument): (usize, &Option<Bound>)| {
                let missing = || Error::bad_data(format!("{direction} {index} was not set"));
                argument.clone().ok_or_else(missing)
            };
            numbered.map(argument).collect()
        };
        let inputs = all(Direction::Input, &inner.inputs)?;
        let outputs = all(Direction::Output, &inner.outputs)?;
        for input in &inputs {
            input.input_dimensions()?;
        }
        let Settings { measure, timeout, loop_timeout, .. } = inner.settings;
        let options = RunOptions {
            measure,
            deadline: timeout.map(TimePoint::after),
            loop_timeout,
            all_bursts,
            switches: self.compilation.switches(),
        };
        inner.state = State::Running;
        let compiled = Arc::clone(&self.compiled);
        Ok(Job { compiled, inputs, outputs, options, has_run: false })
    }

    /// It has ended.
    fn complete(&self, outcome: Outcome) -> Result<()> {
        let code = outcome.code;
        self.lock().state = State::Completed(outcome);
        match code {
            ResultCode::NoError => Ok(()),
            code => Err(Error::new(code, "the execution has failed")),
        }
    }

    fn complete_if_running(&self, code: ResultCode) {
        let mut inner = self.lock();
        if matches!(inner.state, State::Running) {
            inner.state = State::Completed(Outcome::of(code));
        }
    }
}

/// Runs an execution; `None` where that panicked, which a driver in this process may.
fn perform(job: Job, frame: &mut Frame) -> Option<Outcome> {
    let outcome = catch_unwind(AssertUnwindSafe(|| run::run(job, frame)));
    outcome.inspect_err(|_| tracing::error!("a driver panicked in an execution")).ok()
}
