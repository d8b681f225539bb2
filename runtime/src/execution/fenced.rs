//! Executions whose devices themselves wait for fences and give some: nothing of this process is needed then.
//!
//! The steps of a plan form a chain: the fence of each is what the next one waits for. Where a step fails, its fence
//! fails, and with it those of all that follow.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_hal::{
    ErrorStatus, ExecutionInfo, ExecutionOptions, Failure, Fence, FencedExecution, FencedInfo,
    FencedOptions, HalVersion, TimePoint, Timing,
};
use burst_launch::{CheckedFence, LaunchError};

use super::graph::Values;
use super::job::Job;
use super::request::request;
use super::staging::Staged;
use super::value::Value;
use crate::compiled::{Body, DeviceCode, GraphCode, StepCode};
use crate::frame::Frame;
use crate::remote::Remote;

/// What came of handing an execution to devices.
pub(super) enum Handed {
    /// All of it is theirs.
    Whole {
        execution: FencedExecution,
        /// The services of the steps.
        services: Vec<Remote>,
    },
    /// The framework has to run it.
    Not,
    /// Nobody has to: its deadline has passed while a service kept it waiting.
    Late(Failure),
    /// The framework has to run it, once this is over: steps that were started before one that was refused.
    After(FencedExecution),
}

/// Steps that were started, and what they work with as long as anybody may ask.
struct Chain {
    infos: Vec<Arc<dyn FencedInfo>>,
    _frame: Mutex<Frame>,
}

impl FencedInfo for Chain {
    /// The first step that failed says how the chain ended. Times of several devices add up to nothing.
    fn execution_info(&self) -> Result<ExecutionInfo, Failure> {
        let unknown = Timing::UNAVAILABLE;
        let mut last = ExecutionInfo {
            status: ErrorStatus::None,
            timing_launched: unknown,
            timing_fenced: unknown,
        };
        for info in &self.infos {
            last = info.execution_info()?;
            if last.status != ErrorStatus::None {
                break;
            }
        }
        if self.infos.len() > 1 {
            (last.timing_launched, last.timing_fenced) = (unknown, unknown);
        }
        Ok(last)
    }
}

/// Has the devices of the steps wait for the fences, and for each other. They do not where one of them cannot, where
/// a part is interpreted, and where arguments would be copied: what comes before may yet write the inputs, and
/// nobody here would be there for the outputs.
pub(super) fn launch(job: &Job, fences: &[Fence], duration: Option<Duration>) -> Handed {
    let Some(steps) = steps_of(&job.compiled.body) else { return Handed::Not };
    let mut frame = Frame::default();
    let staged = Staged::of(job, &mut frame).ok().filter(|staged| !staged.has_copies());
    let Some(staged) = staged else { return Handed::Not };
    let values = match &job.compiled.body {
        Body::Simple(_) => None,
        Body::Compound(graph) => {
            let (bytes, constants) = (job.compiled.temporaries, &job.compiled.constants);
            let Ok(temporaries) = frame.temporaries(bytes, constants) else { return Handed::Not };
            Some(Values::of_graph(graph, &staged.inputs, &staged.outputs, &temporaries))
        }
    };
    let mut chain = Started { fences: fences.to_vec(), infos: Vec::new(), services: Vec::new() };
    for step in &steps {
        let arguments = match &values {
            None => Ok((staged.inputs.clone(), staged.outputs.clone())),
            Some(values) => values.arguments(step),
        };
        let launched = arguments.map_err(|_| Failure::general("a value without a place"));
        let launched = launched.and_then(|arguments| chain.launch(job, step, arguments, duration));
        if let Err(error) = launched {
            tracing::debug!(step = step.number, %error, "the device does not wait for fences");
            if chain.infos.is_empty() {
                let has_passed = job.options.deadline.is_some_and(TimePoint::has_passed);
                return match error.status {
                    ErrorStatus::MissedDeadlineTransient if has_passed => Handed::Late(error),
                    _ => Handed::Not,
                };
            }
            if !chain.has_failed() {
                return Handed::After(chain.end(frame));
            }
            break; // a step before has failed already, and says why
        }
    }
    let services = std::mem::take(&mut chain.services);
    Handed::Whole { execution: chain.end(frame), services }
}

/// The steps, where each is one of a device that can wait for fences.
fn steps_of(body: &Body) -> Option<Vec<&DeviceCode>> {
    let steps: Vec<&DeviceCode> = match body {
        Body::Simple(step) => vec![step],
        Body::Compound(GraphCode { steps, .. }) => {
            steps.iter().map(StepCode::of_device).collect::<Option<_>>()?
        }
    };
    let can_wait = steps.iter().all(|step| step.device.hal_version() >= HalVersion::V1_3);
    can_wait.then_some(steps)
}

/// Steps that were started so far.
struct Started {
    /// What the next one waits for.
    fences: Vec<Fence>,
    infos: Vec<Arc<dyn FencedInfo>>,
    services: Vec<Remote>,
}

impl Started {
    fn launch(
        &mut self,
        job: &Job,
        step: &DeviceCode,
        (inputs, outputs): (Vec<Value>, Vec<Value>),
        duration: Option<Duration>,
    ) -> Result<(), Failure> {
        let execution = ExecutionOptions {
            measure_timing: job.options.measure,
            deadline: job.options.deadline,
            loop_timeout: job.options.loop_timeout,
        };
        let options = FencedOptions { execution, duration };
        let prepared = step.ready(&job.compiled.options, job.options.deadline);
        let asked = request((&step.inputs, &inputs), (&step.outputs, &outputs));
        if !inputs.iter().chain(&outputs).all(|value| value.may_go_to(&prepared)) {
            return Err(Failure::general("a buffer that was lost with its service"));
        }
        let FencedExecution { fence, info } =
            prepared.execute_fenced(asked, &self.fences, &options)?;
        // Without a fence it has ended well, and so has all before it.
        self.fences = fence.into_iter().collect();
        self.infos.push(info);
        self.services.extend(prepared.service().cloned());
        Ok(())
    }

    /// Whether the last step that was started has failed, or one before it.
    fn has_failed(&self) -> bool {
        let checked = CheckedFence::check_all(self.fences.clone());
        matches!(checked, Err(LaunchError::FailedFence { .. }))
    }

    fn end(mut self, frame: Frame) -> FencedExecution {
        let info = Arc::new(Chain { infos: self.infos, _frame: Mutex::new(frame) });
        FencedExecution { fence: self.fences.pop(), info }
    }
}
