//! Where each input, output and state of a model lies.

use super::elements::ElementType;
use super::error::LayoutError;
use super::pool_layout::{MAX_POOL_BYTES, PoolLayout, TensorSlot};
use super::state::{StateBinding, StatePhase, fill_with_zero};
use crate::{Dimensions, Extension, Model, Operand, OutputShape};

/// How the tensors of a model are laid out.
#[derive(Debug, Clone)]
pub struct LayoutOptions {
    /// Sets of inputs, so that one can be filled while another waits; at least one.
    pub frames: usize,
    /// Outputs that are inputs of the next run.
    pub states: Vec<StateBinding>,
    /// Bytes set aside at first for each output whose size the model does not know; without it
    /// such a model is refused.
    pub unknown_output_bytes: Option<u32>,
    /// Most bytes of a pool: sizes can come from a file.
    pub max_pool_bytes: u64,
    /// Extensions of the device, as it
    /// [says](crate::Device::supported_extensions): only they tell how long values of their types are.
    pub extensions: Vec<Extension>,
}

impl Default for LayoutOptions {
    fn default() -> Self {
        LayoutOptions {
            frames: 1,
            states: Vec::new(),
            unknown_output_bytes: None,
            max_pool_bytes: MAX_POOL_BYTES,
            extensions: Vec::new(),
        }
    }
}

/// Where each input, output and state of a model lies: inputs in one pool, once for each frame;
/// outputs in another, and behind them a second slot for each state.
#[derive(Debug, Clone)]
pub struct SessionLayout {
    input_operands: Vec<Operand>,
    output_operands: Vec<Operand>,
    output_types: Vec<ElementType>,
    states: Vec<StateBinding>,
    inputs: PoolLayout,
    /// The outputs, then the second slots of the states.
    outputs: PoolLayout,
    max_pool_bytes: u64,
}

impl SessionLayout {
    /// Lays out a model's tensors.
    ///
    /// # Errors
    /// A shape that is open, a type of an extension that is not among those of the options, pairs that are no
    /// states, or too many bytes.
    pub fn new(model: &Model, options: &LayoutOptions) -> Result<Self, LayoutError> {
        StateBinding::check(&options.states, model)?;
        let input_operands = operands(model, &model.main.input_indexes, "input")?;
        let output_operands = operands(model, &model.main.output_indexes, "output")?;
        let types = |operands: &[Operand]| ElementType::all(operands, model, &options.extensions);
        let (input_types, output_types) = (types(&input_operands), types(&output_operands));
        let unknown = options.unknown_output_bytes.map(u64::from);
        let input_lengths = lengths(&input_operands, &input_types, "input", None)?;
        let output_lengths = lengths(&output_operands, &output_types, "output", unknown)?;
        let states = options.states.clone();
        let max_pool_bytes = options.max_pool_bytes;
        Ok(SessionLayout {
            inputs: PoolLayout::new(&input_lengths, options.frames, max_pool_bytes)?,
            outputs: lay_out_outputs(output_lengths, &states, max_pool_bytes)?,
            input_operands,
            output_operands,
            output_types,
            states,
            max_pool_bytes,
        })
    }

    /// Sets of inputs.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.inputs.frames()
    }

    /// The operands of the inputs, in the model's order.
    #[must_use]
    pub fn inputs(&self) -> &[Operand] {
        &self.input_operands
    }

    /// The operands of the outputs, in the model's order.
    #[must_use]
    pub fn outputs(&self) -> &[Operand] {
        &self.output_operands
    }

    /// The states.
    #[must_use]
    pub fn states(&self) -> &[StateBinding] {
        &self.states
    }

    /// Bytes of the inputs' pool; 0 for a model without inputs.
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        self.inputs.bytes()
    }

    /// Bytes of the outputs' pool; 0 for a model without outputs.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        self.outputs.bytes()
    }

    /// Where an input of a frame lies in the inputs' pool; of a state, where its initial value
    /// lies.
    ///
    /// # Panics
    /// There is no such frame or input.
    #[must_use]
    pub fn input_slot(&self, frame: usize, input: usize) -> TensorSlot {
        self.inputs.slot(frame, input)
    }

    /// Where an output lies in the outputs' pool; of a state, where its value lies in this phase,
    /// and in [`StatePhase::Initial`] where its first one goes.
    ///
    /// # Panics
    /// There is no such output.
    #[must_use]
    pub fn output_slot(&self, output: usize, phase: StatePhase) -> TensorSlot {
        let state = self.states.iter().position(|state| state.output == output);
        match state.filter(|_| phase == StatePhase::Second) {
            Some(state) => self.outputs.slot(0, self.output_operands.len() + state),
            None => self.outputs.slot(0, output),
        }
    }

    /// The phases that this model's states go through: the first one alone where it has none.
    #[must_use]
    pub fn phases(&self) -> &'static [StatePhase] {
        if self.states.is_empty() { &StatePhase::ALL[..1] } else { &StatePhase::ALL }
    }

    /// Writes real 0 where the states of every frame have their initial values; `inputs` is all of
    /// the inputs' pool.
    ///
    /// # Panics
    /// `inputs` is shorter than [`SessionLayout::input_bytes`].
    pub fn write_initial_states(&self, inputs: &mut [u8]) {
        for frame in 0..self.frames() {
            for state in &self.states {
                let operand = &self.input_operands[state.input];
                let bytes = &mut inputs[self.input_slot(frame, state.input).range()];
                fill_with_zero(bytes, operand.ty, operand.zero_point);
            }
        }
    }

    /// Bytes of an output's value: as many as its shape needs, where the driver reported one; as
    /// many as its slot has otherwise, and never more.
    ///
    /// # Panics
    /// There is no such output.
    #[must_use]
    pub fn output_length(&self, output: usize, shape: Option<&OutputShape>) -> u32 {
        let (ty, slot) = (&self.output_types[output], self.outputs.slot(0, output).length);
        let reported = shape.filter(|shape| !ty.is_rank_open(&shape.dimensions));
        let needed = reported.and_then(|shape| ty.byte_length(&shape.dimensions));
        needed.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(slot).min(slot)
    }

    /// A layout with room for outputs of these shapes, as reported by an execution that had too
    /// little; `None` where it asks for no more than there is. The size of a state is the model's and does
    /// not grow.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`].
    pub fn grown(&self, shapes: &[OutputShape]) -> Result<Option<Self>, LayoutError> {
        let length_of = |output| u64::from(self.outputs.slot(0, output).length);
        let before: Vec<u64> = (0..self.output_operands.len()).map(length_of).collect();
        let mut lengths = before.clone();
        for (output, shape) in shapes.iter().enumerate().take(before.len()) {
            if self.states.iter().all(|state| state.output != output) {
                let needed = self.output_types[output].known_length(&shape.dimensions);
                lengths[output] = before[output].max(needed.unwrap_or(0));
            }
        }
        if lengths == before {
            return Ok(None);
        }
        let outputs = lay_out_outputs(lengths, &self.states, self.max_pool_bytes)?;
        Ok(Some(SessionLayout { outputs, ..self.clone() }))
    }
}

fn lay_out_outputs(
    mut lengths: Vec<u64>,
    states: &[StateBinding],
    limit: u64,
) -> Result<PoolLayout, LayoutError> {
    let second: Vec<u64> = states.iter().map(|state| lengths[state.output]).collect();
    lengths.extend(second);
    PoolLayout::new(&lengths, 1, limit)
}

fn operands(
    model: &Model,
    indexes: &[u32],
    what: &'static str,
) -> Result<Vec<Operand>, LayoutError> {
    let operand = |(index, operand): (usize, &u32)| {
        let found = model.main.operands.get(*operand as usize).cloned();
        found.ok_or(LayoutError::OpenShape { what, index, dimensions: Dimensions::new() })
    };
    indexes.iter().enumerate().map(operand).collect()
}

fn lengths(
    operands: &[Operand],
    types: &[ElementType],
    what: &'static str,
    unknown: Option<u64>,
) -> Result<Vec<u64>, LayoutError> {
    let length = |(index, (operand, ty)): (usize, (&Operand, &ElementType))| {
        let dimensions = &operand.dimensions;
        if ty.is_unknown() {
            return Err(LayoutError::UnknownType { what, index, ty: operand.ty });
        }
        let known = ty.known_length(dimensions).or(unknown);
        known.ok_or_else(|| LayoutError::OpenShape { what, index, dimensions: dimensions.clone() })
    };
    operands.iter().zip(types).enumerate().map(length).collect()
}
