//! The graph under construction: operands, constants, operations.

use std::collections::HashMap;

use burst_hal::{
    DataLocation, Dimensions, ExtraParams, Model, Operand, OperandLifeTime, OperandType,
    OperandValues, Operation, OperationType, Subgraph,
};

use crate::error::Refusal;
use crate::main_types;

/// Every constant begins at a multiple of this, so that kernels can load whole cache lines.
const CONSTANT_ALIGNMENT_BYTES: usize = 64;
/// A location in the model has 32 bits.
const MAX_CONSTANT_BYTES: u64 = u32::MAX as u64;

/// An operand's index in the model.
pub(crate) type OperandIndex = u32;

/// Scale and zero point of a whole tensor; zeros where it is not quantized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quant {
    pub(crate) scale: f32,
    pub(crate) zero_point: i32,
}

impl Quant {
    pub(crate) const NONE: Quant = Quant { scale: 0.0, zero_point: 0 };

    pub(crate) fn of(operand: &Operand) -> Self {
        Quant { scale: operand.scale, zero_point: operand.zero_point }
    }
}

/// Operands and operations so far, and the bytes of the constants.
#[derive(Default)]
pub(crate) struct Graph {
    operands: Vec<Operand>,
    operations: Vec<Operation>,
    values: Vec<u8>,
    /// Scalars already there, by type code and bits: each is kept once.
    scalars: HashMap<(i32, u32), OperandIndex>,
}

impl Graph {
    /// The operand with this index, which came from one of the methods below.
    pub(crate) fn operand(&self, index: OperandIndex) -> &Operand {
        static NOTHING: std::sync::LazyLock<Operand> = std::sync::LazyLock::new(|| {
            Operand::new(OperandType::TensorFloat32, OperandLifeTime::NoValue)
        });
        usize::try_from(index).ok().and_then(|at| self.operands.get(at)).unwrap_or(&NOTHING)
    }

    /// Adds an operand.
    pub(crate) fn add(&mut self, operand: Operand) -> Result<OperandIndex, Refusal> {
        let index = u32::try_from(self.operands.len())
            .map_err(|_| Refusal::TooManyBytes { limit: MAX_CONSTANT_BYTES })?;
        self.operands.push(operand);
        Ok(index)
    }

    /// Adds a value that one operation makes and others use.
    pub(crate) fn temporary(
        &mut self,
        ty: OperandType,
        dimensions: Dimensions,
        quant: Quant,
    ) -> Result<OperandIndex, Refusal> {
        let mut operand = Operand::new(ty, OperandLifeTime::TemporaryVariable);
        operand.dimensions = dimensions;
        operand.scale = quant.scale;
        operand.zero_point = quant.zero_point;
        self.add(operand)
    }

    /// Adds an operand that is left out. A quantized one needs a scale, whichever.
    pub(crate) fn absent(&mut self, ty: OperandType) -> Result<OperandIndex, Refusal> {
        let mut operand = Operand::new(ty, OperandLifeTime::NoValue);
        operand.scale = if ty.is_quantized() { 1.0 } else { 0.0 };
        self.add(operand)
    }

    /// Keeps these bytes and says where.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Result<DataLocation, Refusal> {
        let too_many = Refusal::TooManyBytes { limit: MAX_CONSTANT_BYTES };
        let offset = self.values.len().next_multiple_of(CONSTANT_ALIGNMENT_BYTES);
        let end = offset.checked_add(bytes.len()).ok_or(too_many.clone())?;
        if u32::try_from(end).is_err() {
            return Err(too_many);
        }
        self.values.resize(offset, 0);
        self.values.extend_from_slice(bytes);
        let narrow = |value: usize| u32::try_from(value).map_err(|_| too_many.clone());
        Ok(DataLocation { pool_index: 0, offset: narrow(offset)?, length: narrow(bytes.len())? })
    }

    /// Adds a constant whose bytes are kept already.
    pub(crate) fn constant(
        &mut self,
        ty: OperandType,
        dimensions: Dimensions,
        quant: Quant,
        extra_params: ExtraParams,
        location: DataLocation,
    ) -> Result<OperandIndex, Refusal> {
        let mut operand = Operand::new(ty, OperandLifeTime::ConstantCopy);
        operand.dimensions = dimensions;
        operand.scale = quant.scale;
        operand.zero_point = quant.zero_point;
        operand.extra_params = extra_params;
        operand.location = location;
        self.add(operand)
    }

    /// A constant list of integers.
    pub(crate) fn ints(&mut self, values: &[i32]) -> Result<OperandIndex, Refusal> {
        let count = u32::try_from(values.len())
            .map_err(|_| Refusal::TooManyBytes { limit: MAX_CONSTANT_BYTES })?;
        self.int_tensor(values, Dimensions::from_slice(&[count]))
    }

    /// A constant tensor of integers.
    pub(crate) fn int_tensor(
        &mut self,
        values: &[i32],
        dimensions: Dimensions,
    ) -> Result<OperandIndex, Refusal> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let location = self.keep(&bytes)?;
        self.constant(
            OperandType::TensorInt32,
            dimensions,
            Quant::NONE,
            ExtraParams::None,
            location,
        )
    }

    /// A constant INT32 scalar.
    pub(crate) fn int(&mut self, value: i32) -> Result<OperandIndex, Refusal> {
        self.scalar(OperandType::Int32, value.cast_unsigned(), 4)
    }

    /// A constant FLOAT32 scalar.
    pub(crate) fn float(&mut self, value: f32) -> Result<OperandIndex, Refusal> {
        self.scalar(OperandType::Float32, value.to_bits(), 4)
    }

    /// A constant FLOAT16 scalar.
    pub(crate) fn half(&mut self, value: f32) -> Result<OperandIndex, Refusal> {
        self.scalar(OperandType::Float16, half::f16::from_f32(value).to_bits().into(), 2)
    }

    /// A constant BOOL scalar.
    pub(crate) fn bool(&mut self, value: bool) -> Result<OperandIndex, Refusal> {
        self.scalar(OperandType::Bool, value.into(), 1)
    }

    fn scalar(
        &mut self,
        ty: OperandType,
        bits: u32,
        bytes: usize,
    ) -> Result<OperandIndex, Refusal> {
        if let Some(&known) = self.scalars.get(&(ty.code(), bits)) {
            return Ok(known);
        }
        let location = self.keep(bits.to_le_bytes().get(..bytes).unwrap_or_default())?;
        let index =
            self.constant(ty, Dimensions::new(), Quant::NONE, ExtraParams::None, location)?;
        self.scalars.insert((ty.code(), bits), index);
        Ok(index)
    }

    /// Fills in the shape of an operand for which the file has none.
    pub(crate) fn learn_shape(&mut self, index: OperandIndex, dimensions: &[u32]) {
        if let Some(operand) = usize::try_from(index).ok().and_then(|at| self.operands.get_mut(at))
            && operand.dimensions.is_empty()
        {
            operand.dimensions = Dimensions::from_slice(dimensions);
        }
    }

    /// Fills in the first size of an operand where the file leaves it open.
    pub(crate) fn learn_batch(&mut self, index: OperandIndex, batch: u32) {
        let operand = usize::try_from(index).ok().and_then(|at| self.operands.get_mut(at));
        if let Some(first) = operand.and_then(|operand| operand.dimensions.first_mut())
            && *first == 0
        {
            *first = batch;
        }
    }

    /// Adds an operation whose first input has a type that the operation is defined for.
    pub(crate) fn operation(
        &mut self,
        ty: OperationType,
        inputs: Vec<OperandIndex>,
        outputs: Vec<OperandIndex>,
    ) -> Result<(), Refusal> {
        let main = inputs.first().map(|&first| self.operand(first).ty);
        if let Some(main) = main
            && !main_types::main_types(ty).contains(&main)
        {
            return Err(Refusal::MainType { operation: ty, ty: main });
        }
        self.operations.push(Operation { ty, inputs, outputs });
        Ok(())
    }

    /// How many operations there are.
    pub(crate) fn operation_count(&self) -> usize {
        self.operations.len()
    }

    /// The operations from this one on.
    pub(crate) fn operations_since(
        &self,
        first: usize,
    ) -> impl Iterator<Item = OperationType> + '_ {
        self.operations.iter().skip(first).map(|operation| operation.ty)
    }

    /// The finished model.
    pub(crate) fn finish(mut self, inputs: Vec<OperandIndex>, outputs: Vec<OperandIndex>) -> Model {
        for &read in self.operations.iter().flat_map(|operation| &operation.inputs) {
            let operand = usize::try_from(read).ok().and_then(|at| self.operands.get_mut(at));
            if let Some(operand) = operand {
                operand.number_of_consumers += 1;
            }
        }
        Model {
            main: Subgraph {
                operands: self.operands,
                operations: self.operations,
                input_indexes: inputs,
                output_indexes: outputs,
            },
            operand_values: OperandValues::from(self.values),
            ..Model::default()
        }
    }
}
