//! The steps of a plan with everything that executing them needs.

use std::sync::{Arc, OnceLock};

use burst_hal::validate::Direction;
use burst_hal::{
    Dimensions, ExtensionOperandType, Model, Operand, OperandType, PrepareOptions, Subgraph,
    TimePoint,
};

use super::StepRole;
use super::layout::{Slot, element_bytes, known_bytes};
use super::renewal::{self, Renewal};
use crate::devices::RuntimeDevice;
use crate::error::Result;
use crate::prepared::Prepared;

/// A graph as steps.
#[derive(Default)]
pub(crate) struct GraphCode {
    pub(crate) steps: Vec<StepCode>,
    /// Where values between its steps lie, and constants that interpreted steps read; by operand.
    pub(crate) slots: Vec<(u32, Slot, Dimensions)>,
    /// Operands that its inputs and outputs are.
    pub(crate) inputs: Vec<u32>,
    pub(crate) outputs: Vec<u32>,
}

/// One step.
pub(crate) enum StepCode {
    Device(DeviceCode),
    If(IfCode),
    While(WhileCode),
}

/// A model that one device executes.
pub(crate) struct DeviceCode {
    /// Which of all device steps of the compilation.
    pub(crate) number: usize,
    pub(crate) device: Arc<RuntimeDevice>,
    pub(crate) model: Arc<Model>,
    prepared: Renewal,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    /// The same on the device of last resort, once it was needed.
    pub(super) on_fallback: OnceLock<Result<Prepared>>,
}

/// An input or output of a model.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    /// Which operand of the surrounding graph it is.
    pub(crate) operand: u32,
    pub(crate) ty: OperandType,
    /// As the model knows them.
    pub(crate) dimensions: Dimensions,
    /// Bytes of an element, where they are known.
    pub(crate) element_bytes: Option<u64>,
    /// Whether an execution says dimensions, because the model does not.
    pub(crate) is_open: bool,
}

/// An IF that is interpreted.
pub(crate) struct IfCode {
    pub(crate) condition: u32,
    pub(crate) then: GraphCode,
    pub(crate) otherwise: GraphCode,
    pub(crate) inputs: Vec<u32>,
    pub(crate) outputs: Vec<u32>,
}

/// A WHILE that is interpreted.
pub(crate) struct WhileCode {
    pub(crate) condition: GraphCode,
    pub(crate) body: GraphCode,
    pub(crate) inputs: Vec<u32>,
    pub(crate) outputs: Vec<u32>,
    /// Where the condition's answer goes.
    pub(crate) answer: Slot,
    /// For each output of the body two places: one holds what it reads, the other what it writes.
    pub(crate) states: Vec<[Slot; 2]>,
}

impl Port {
    pub(crate) fn new(index: u32, operand: &Operand, element_bytes: Option<u64>) -> Self {
        let dimensions = operand.dimensions.clone();
        let is_open = (operand.ty.is_tensor() && dimensions.is_empty()) || dimensions.contains(&0);
        Port { operand: index, ty: operand.ty, dimensions, element_bytes, is_open }
    }

    /// Inputs or outputs of a graph.
    pub(crate) fn list(
        graph: &Subgraph,
        indexes: &[u32],
        extension_types: &[(OperandType, ExtensionOperandType)],
    ) -> Vec<Port> {
        let port = |index: &u32| {
            let operand = &graph.operands[*index as usize];
            Port::new(*index, operand, element_bytes(operand.ty, extension_types))
        };
        indexes.iter().map(port).collect()
    }

    /// Bytes of a value of these dimensions; `None` where a size is not known.
    pub(crate) fn bytes(&self, dimensions: &Dimensions) -> Option<u64> {
        known_bytes(self.ty, dimensions, self.element_bytes)
    }
}

impl DeviceCode {
    pub(crate) fn new(
        number: usize,
        device: &Arc<RuntimeDevice>,
        (model, prepared): (Arc<Model>, Prepared),
        (inputs, outputs): (Vec<Port>, Vec<Port>),
    ) -> Self {
        let device = Arc::clone(device);
        let (prepared, on_fallback) = (Renewal::new(prepared), OnceLock::new());
        DeviceCode { number, device, model, prepared, inputs, outputs, on_fallback }
    }

    pub(crate) fn device(&self) -> &Arc<RuntimeDevice> {
        &self.device
    }

    /// The model as the device has prepared it last, whether its service lives or not.
    pub(crate) fn prepared(&self) -> Prepared {
        self.prepared.current()
    }

    /// The same for an execution with this deadline: where the service was lost and is back, prepared again.
    pub(crate) fn ready(&self, options: &PrepareOptions, deadline: Option<TimePoint>) -> Prepared {
        self.prepared.ready(&self.device, &self.model, &renewal::by(options, deadline))
    }

    /// What the value of this operand is here.
    pub(super) fn roles_of<'a>(&'a self, operand: u32, roles: &mut Vec<StepRole<'a>>) {
        let lists = [(Direction::Input, &self.inputs), (Direction::Output, &self.outputs)];
        for (direction, ports) in lists {
            for (position, port) in (0..).zip(ports) {
                if port.operand == operand {
                    roles.push(StepRole { step: self, direction, position });
                }
            }
        }
    }
}

impl StepCode {
    /// The step of a device; `None` for one that is interpreted.
    pub(crate) fn of_device(&self) -> Option<&DeviceCode> {
        match self {
            StepCode::Device(step) => Some(step),
            StepCode::If(_) | StepCode::While(_) => None,
        }
    }

    /// Whether the step reads or writes this operand.
    pub(super) fn uses(&self, operand: u32) -> bool {
        match self {
            StepCode::Device(step) => {
                step.inputs.iter().chain(&step.outputs).any(|port| port.operand == operand)
            }
            StepCode::If(step) => {
                step.condition == operand
                    || step.inputs.contains(&operand)
                    || step.outputs.contains(&operand)
            }
            StepCode::While(step) => {
                step.inputs.contains(&operand) || step.outputs.contains(&operand)
            }
        }
    }
}
