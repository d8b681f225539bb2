//! A model with its states, and what comes out of it.

use burst_hal::session::StateBinding;
use burst_hal::{Dimensions, Model, Operand, OperandType};

/// A model, and which of its inputs and outputs are states.
#[derive(Debug, Clone)]
pub struct StatefulModel {
    /// The model.
    pub model: Model,
    /// Its states.
    pub states: Vec<StateBinding>,
}

impl StatefulModel {
    /// The operands of the inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Operand> {
        let main = &self.model.main;
        let operand = |index: &u32| main.operands.get(usize::try_from(*index).ok()?);
        main.input_indexes.iter().filter_map(operand)
    }
}

/// An output of an execution, or a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTensor {
    /// Its type.
    pub ty: OperandType,
    /// Its shape, as the execution told it; the model's where it told none.
    pub dimensions: Dimensions,
    /// Its elements.
    pub bytes: Vec<u8>,
}
