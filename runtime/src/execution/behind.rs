//! Starting an execution that waits for others first.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use burst_hal::{ExecutionOptions, Fence, FencedExecution, FencedOptions, OutputShape, ResultCode};
use burst_launch::FenceState;

use super::arguments::{Argument, Bound};
use super::fenced::Handed;
use super::job::{Job, Outcome};
use super::{Execution, Fenced, State, fenced, launch};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::process::check_process;
use crate::remote::Remote;

impl Execution {
    /// Starts it once all of these have ended. `duration`, from then on, is in nanoseconds; 0 for any time.
    ///
    /// Events without a fence are waited for before this returns; fences are waited for by the device, or by one
    /// thread of the framework for all executions.
    ///
    /// # Errors
    /// As [`Execution::start_compute`]; BAD_DATA for an output of unknown size, and for a duration unless
    /// the compilation is for exactly one named device; OP_FAILED where one of the events has failed;
    /// MISSED_DEADLINE_TRANSIENT where the device has not answered by the deadline.
    pub fn start_compute_with_dependencies(
        self: &Arc<Self>,
        dependencies: &[Arc<Event>],
        duration: u64,
    ) -> Result<Arc<Event>> {
        check_process()?;
        if duration > 0 {
            self.check_one_device()?;
        }
        let shapes = self.known_shapes()?;
        let before = Before::of(dependencies)?;
        let job = self.start(false)?;
        let duration = (duration > 0).then(|| Duration::from_nanos(duration));
        let fenced = self.launch_fenced(job, before, duration, shapes);
        let mut inner = self.lock();
        match fenced {
            Ok(fenced) => {
                let event = Arc::clone(&fenced.event);
                inner.state = State::Fenced(fenced);
                Ok(event)
            }
            Err(error) => {
                inner.state = State::Completed(Outcome::of(error.code));
                Err(error)
            }
        }
    }

    fn launch_fenced(
        self: &Arc<Self>,
        mut job: Job,
        before: Before,
        duration: Option<Duration>,
        shapes: Vec<OutputShape>,
    ) -> Result<Fenced> {
        let (outcome, code) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
        let Before { mut fences, mut services } = before;
        let outputs = job.outputs.clone();
        let fenced = |event: Arc<Event>, outcome| {
            for (output, shape) in outputs.iter().zip(&shapes) {
                if let Some(roled) = output.roled() {
                    roled.will_be_written(shape.dimensions.clone(), &event);
                }
            }
            Fenced { event, outcome, shapes }
        };
        // What the framework runs leaves the chain that it runs after alone until then.
        let mut earlier = None;
        match fenced::launch(&job, &fences, duration) {
            Handed::Whole { execution, services: own } => {
                job.has_run = true;
                services.extend(own);
                return Ok(fenced(Event::of_fenced(execution, code, services)?, outcome));
            }
            Handed::Not => {}
            Handed::Late(failure) => return Err(failure.into()),
            Handed::After(FencedExecution { fence, info }) => {
                fences = fence.into_iter().collect();
                earlier = Some(info);
            }
        }
        let options = ExecutionOptions {
            measure_timing: job.options.measure,
            deadline: job.options.deadline,
            loop_timeout: None,
        };
        let options = FencedOptions { execution: options, duration };
        let (execution, told, said) = (Arc::clone(self), Arc::clone(&outcome), Arc::clone(&code));
        let priority = self.compiled.options.priority;
        let body = Box::new(move |deadline| {
            drop(earlier);
            job.options.deadline = deadline;
            let outcome = execution.perform(job);
            let (code, timing) = (outcome.code, outcome.timing_launched);
            // Nobody else sets them.
            let _ = (said.set(code), told.set(outcome));
            (code, timing)
        });
        let started = launch::start_behind(priority, fences, options, body)?;
        Ok(fenced(Event::of_fenced(started, code, services)?, outcome))
    }

    /// Shapes of the outputs, for an execution that may not find them out.
    fn known_shapes(&self) -> Result<Vec<OutputShape>> {
        let inner = self.lock();
        let outputs = inner.outputs.iter().zip(&self.compiled.outputs).enumerate();
        let shape = |(index, (output, port)): (usize, (&Option<Bound>, &_))| {
            let port: &crate::compiled::Port = port;
            let Some(bound) = output else {
                return Err(Error::bad_data(format!("output {index} was not set")));
            };
            let is_omitted = matches!(bound.argument, Argument::Omitted);
            let known = bound.roled().map_or_else(
                || Ok(bound.dimensions.clone()),
                |roled| roled.takes(&bound.dimensions, None),
            )?;
            if !is_omitted && port.element_bytes.is_some() && port.bytes(&known).is_none() {
                return Err(Error::bad_data(format!("output {index} is of unknown size")));
            }
            Ok(OutputShape { dimensions: known, is_sufficient: true })
        };
        outputs.map(shape).collect()
    }
}

/// What an execution waits for.
struct Before {
    fences: Vec<Fence>,
    /// Services without which these fences would never be done.
    services: Vec<Remote>,
}

impl Before {
    /// The fences of events; those without are waited for.
    fn of(events: &[Arc<Event>]) -> Result<Self> {
        let failed = |code| Error::op_failed(format!("what it depends on has failed: {code}"));
        let (mut fences, mut services) = (Vec::new(), Vec::new());
        for event in events {
            match event.fence() {
                Some(fence) if fence.state() == FenceState::Pending => {
                    fences.push(fence.fence());
                    services.extend_from_slice(event.services());
                }
                // Done or failed already, or without a fence.
                _ => match event.wait() {
                    ResultCode::NoError => {}
                    code => return Err(failed(code)),
                },
            }
        }
        Ok(Before { fences, services })
    }
}
