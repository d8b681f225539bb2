//! A compilation that is ready: the plan with every step prepared, and a place for each value between steps.

mod layout;
mod program;
mod renewal;

use std::sync::{Arc, OnceLock};

use burst_hal::validate::{Direction, RequestRules};
use burst_hal::{Model, PrepareOptions, ResultCode};

pub(crate) use self::layout::{Layout, Slot};
pub(crate) use self::program::{DeviceCode, GraphCode, IfCode, Port, StepCode, WhileCode};
use crate::devices::RuntimeDevice;
use crate::error::{Error, Result};
use crate::frame::Frames;
use crate::partition::Plan;
use crate::prepared::Prepared;

/// A compilation that is ready.
pub(crate) struct Compiled {
    pub(crate) model: Arc<Model>,
    pub(crate) rules: RequestRules,
    /// As the partitioner made it; its devices are `devices`.
    pub(crate) plan: Arc<Plan>,
    pub(crate) devices: Vec<Arc<RuntimeDevice>>,
    pub(crate) body: Body,
    /// Bytes of the values between steps, and what lies there from the beginning.
    pub(crate) temporaries: u64,
    pub(crate) constants: Vec<(u32, Vec<u8>)>,
    /// How its parts were prepared, and are again where a service was lost; without a deadline, which was for the
    /// compilation.
    pub(crate) options: PrepareOptions,
    /// Who runs what fails; `None` where what fails has failed.
    pub(crate) fallback: Option<Fallback>,
    /// Inputs and outputs of the whole model.
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) frames: Frames,
}

/// What is executed.
pub(crate) enum Body {
    /// One device runs the whole model.
    Simple(DeviceCode),
    /// Several steps.
    Compound(GraphCode),
}

/// The device of last resort, and how it prepares what fails elsewhere.
pub(crate) struct Fallback {
    pub(crate) device: Arc<RuntimeDevice>,
    /// As those of the compilation.
    options: PrepareOptions,
    /// The whole model, once it was needed.
    whole: OnceLock<Result<Prepared>>,
}

/// A part that a memory plays in a step.
pub(crate) struct StepRole<'a> {
    pub(crate) step: &'a DeviceCode,
    pub(crate) direction: Direction,
    pub(crate) position: u32,
}

impl Fallback {
    pub(crate) fn new(device: &Arc<RuntimeDevice>, options: PrepareOptions) -> Self {
        Fallback { device: Arc::clone(device), options, whole: OnceLock::new() }
    }

    /// Prepares a model on the device of last resort.
    fn prepare(&self, model: &Model) -> Result<Prepared> {
        Prepared::prepare(&self.device.live()?, model, &self.options, None)
    }

    /// A step's model, prepared when it is first needed.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn step(&self, step: &DeviceCode) -> Result<Prepared> {
        step.on_fallback.get_or_init(|| self.prepare(&step.model)).clone()
    }

    /// The whole model, prepared when it is first needed.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn whole(&self, model: &Model) -> Result<Prepared> {
        self.whole.get_or_init(|| self.prepare(model)).clone()
    }
}

impl Compiled {
    /// What a memory in this role does in the steps; `None` where a part of it is interpreted here.
    pub(crate) fn step_roles(
        &self,
        direction: Direction,
        position: u32,
    ) -> Option<Vec<StepRole<'_>>> {
        let list = match direction {
            Direction::Input => &self.model.main.input_indexes,
            Direction::Output => &self.model.main.output_indexes,
        };
        let operand = *list.get(usize::try_from(position).ok()?)?;
        let mut roles = Vec::new();
        match &self.body {
            Body::Simple(step) => step.roles_of(operand, &mut roles),
            Body::Compound(graph) => {
                for step in &graph.steps {
                    match step {
                        StepCode::Device(step) => step.roles_of(operand, &mut roles),
                        interpreted if interpreted.uses(operand) => return None,
                        StepCode::If(_) | StepCode::While(_) => {}
                    }
                }
            }
        }
        Some(roles)
    }

    /// Whether memory without a descriptor is of no use to one of the steps.
    pub(crate) fn has_remote_steps(&self) -> bool {
        match &self.body {
            Body::Simple(step) => step.device.is_remote(),
            Body::Compound(_) => self.devices.iter().any(|device| device.is_remote()),
        }
    }

    /// What an input or output is.
    ///
    /// # Errors
    /// BAD_DATA for one that there is not.
    pub(crate) fn port(&self, direction: Direction, index: i32) -> Result<(usize, &Port)> {
        let ports = match direction {
            Direction::Input => &self.inputs,
            Direction::Output => &self.outputs,
        };
        let position = usize::try_from(index).ok();
        let found = position.and_then(|position| Some((position, ports.get(position)?)));
        found.ok_or_else(|| {
            let count = ports.len();
            Error::new(ResultCode::BadData, format!("{direction} {index} of {count}"))
        })
    }
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").field("devices", &self.devices).finish_non_exhaustive()
    }
}
