//! Builds models in few lines: for importers, for tests, for applications.
//!
//! The builder hands out operand indexes and keeps track of what a [`Model`] has to say: where each
//! constant lies, how often each operand is read, which operands are the graph's inputs and outputs.

use crate::validate::{Limit, MAX_CONSTANT_BYTES, ValidationError, validate_model};
use crate::{
    DataLocation, Dimensions, ExtraParams, HalVersion, Model, Operand, OperandLifeTime,
    OperandType, Operation, OperationType, Pool, Subgraph,
};

/// Constants of at least a cache line start at a multiple of this, so that kernels may read them
/// in place with aligned loads where the storage itself is aligned.
const LARGE_ALIGNMENT: usize = 64;
/// Smaller constants start at a multiple of the largest scalar.
const SMALL_ALIGNMENT: usize = 8;

/// Type, dimensions and quantization of an operand, without its index in the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSpec {
    /// Its type.
    pub ty: OperandType,
    /// Its dimensions.
    pub dimensions: Dimensions,
    /// Real value of one quantization step; 0 where there is none.
    pub scale: f32,
    /// Stored value that stands for real 0.
    pub zero_point: i32,
    /// Per-channel scales or extension bytes.
    pub extra_params: ExtraParams,
}

impl OutputSpec {
    /// An operand without quantization.
    #[must_use]
    pub fn new(ty: OperandType, dimensions: &[u32]) -> Self {
        OutputSpec {
            ty,
            dimensions: Dimensions::from_slice(dimensions),
            scale: 0.0,
            zero_point: 0,
            extra_params: ExtraParams::None,
        }
    }

    /// A `TENSOR_FLOAT32` of these dimensions.
    #[must_use]
    pub fn f32(dimensions: &[u32]) -> Self {
        OutputSpec::new(OperandType::TensorFloat32, dimensions)
    }

    /// The same with one scale and zero point for all elements.
    #[must_use]
    pub fn quantized(mut self, scale: f32, zero_point: i32) -> Self {
        self.scale = scale;
        self.zero_point = zero_point;
        self
    }

    /// The same with one scale per index of `channel_dim`.
    #[must_use]
    pub fn per_channel(mut self, scales: &[f32], channel_dim: u32) -> Self {
        self.extra_params = ExtraParams::ChannelQuant { scales: scales.into(), channel_dim };
        self
    }

    fn into_operand(self, lifetime: OperandLifeTime) -> Operand {
        Operand {
            dimensions: self.dimensions,
            scale: self.scale,
            zero_point: self.zero_point,
            extra_params: self.extra_params,
            ..Operand::new(self.ty, lifetime)
        }
    }
}

/// A model under construction. Every method that adds an operand returns its index.
///
/// ```
/// use burst_hal::{ModelBuilder, OperandType, OperationType, OutputSpec};
///
/// let mut b = ModelBuilder::new();
/// let x = b.input(OperandType::TensorFloat32, &[1, 4]);
/// let bias = b.constant_f32(&[1, 4], &[1.0, 2.0, 3.0, 4.0]);
/// let no_activation = b.scalar_i32(0);
/// let sum = b.operation(OperationType::Add, &[x, bias, no_activation], &[OutputSpec::f32(&[1, 4])]);
/// b.output(sum[0]);
/// let model = b.build()?;
/// assert_eq!(model.main.output_indexes, [3]);
/// # Ok::<(), burst_hal::validate::ValidationError>(())
/// ```
#[derive(Debug, Default)]
pub struct ModelBuilder {
    /// The graph that methods add to: the main one, or the one [`Self::referenced`] is filling.
    graph: Subgraph,
    values: Vec<u8>,
    model: Model,
    /// The first constant that found no room; [`Self::build`] reports it.
    overflow: Option<ValidationError>,
}

impl ModelBuilder {
    /// An empty model.
    #[must_use]
    pub fn new() -> Self {
        ModelBuilder::default()
    }

    /// Adds an operand as it is. A lifetime of input or output does not list it; see
    /// [`Self::input`] and [`Self::output`].
    pub fn operand(&mut self, operand: Operand) -> u32 {
        self.graph.operands.push(operand);
        index_of_last(self.graph.operands.len())
    }

    /// A graph input.
    pub fn input(&mut self, ty: OperandType, dimensions: &[u32]) -> u32 {
        self.input_of(OutputSpec::new(ty, dimensions))
    }

    /// A quantized graph input.
    pub fn quant_input(
        &mut self,
        ty: OperandType,
        dimensions: &[u32],
        scale: f32,
        zero_point: i32,
    ) -> u32 {
        self.input_of(OutputSpec::new(ty, dimensions).quantized(scale, zero_point))
    }

    /// A graph input.
    pub fn input_of(&mut self, spec: OutputSpec) -> u32 {
        let index = self.operand(spec.into_operand(OperandLifeTime::SubgraphInput));
        self.graph.input_indexes.push(index);
        index
    }

    /// A temporary, to be written by an operation that [`Self::operation_into`] adds.
    pub fn temporary(&mut self, spec: OutputSpec) -> u32 {
        self.operand(spec.into_operand(OperandLifeTime::TemporaryVariable))
    }

    /// An optional operand that is left out.
    pub fn omitted(&mut self, ty: OperandType) -> u32 {
        self.operand(Operand::new(ty, OperandLifeTime::NoValue))
    }

    /// A constant of any type, by its stored bytes.
    pub fn constant_bytes(&mut self, spec: OutputSpec, bytes: &[u8]) -> u32 {
        let location = self.store(bytes);
        let operand = spec.into_operand(OperandLifeTime::ConstantCopy);
        self.operand(Operand { location, ..operand })
    }

    /// A `TENSOR_FLOAT32` constant.
    pub fn constant_f32(&mut self, dimensions: &[u32], values: &[f32]) -> u32 {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant_bytes(OutputSpec::f32(dimensions), &bytes)
    }

    /// A `TENSOR_INT32` constant without scale.
    pub fn constant_i32(&mut self, dimensions: &[u32], values: &[i32]) -> u32 {
        self.constant_i32_of(OutputSpec::new(OperandType::TensorInt32, dimensions), values)
    }

    /// A constant of 32-bit integers, such as a quantized bias.
    pub fn constant_i32_of(&mut self, spec: OutputSpec, values: &[i32]) -> u32 {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant_bytes(spec, &bytes)
    }

    /// A constant of signed bytes, such as per-channel weights.
    pub fn constant_i8(&mut self, spec: OutputSpec, values: &[i8]) -> u32 {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant_bytes(spec, &bytes)
    }

    /// A `TENSOR_BOOL8` constant.
    pub fn constant_bool(&mut self, dimensions: &[u32], values: &[bool]) -> u32 {
        let bytes: Vec<u8> = values.iter().map(|v| u8::from(*v)).collect();
        self.constant_bytes(OutputSpec::new(OperandType::TensorBool8, dimensions), &bytes)
    }

    /// A constant that lies in a pool added by [`Self::pool`].
    pub fn constant_in_pool(&mut self, spec: OutputSpec, location: DataLocation) -> u32 {
        let operand = spec.into_operand(OperandLifeTime::ConstantReference);
        self.operand(Operand { location, ..operand })
    }

    /// An `INT32` constant.
    pub fn scalar_i32(&mut self, value: i32) -> u32 {
        self.constant_bytes(OutputSpec::new(OperandType::Int32, &[]), &value.to_le_bytes())
    }

    /// A `UINT32` constant.
    pub fn scalar_u32(&mut self, value: u32) -> u32 {
        self.constant_bytes(OutputSpec::new(OperandType::Uint32, &[]), &value.to_le_bytes())
    }

    /// A `FLOAT32` constant.
    pub fn scalar_f32(&mut self, value: f32) -> u32 {
        self.constant_bytes(OutputSpec::new(OperandType::Float32, &[]), &value.to_le_bytes())
    }

    /// A `FLOAT16` constant, by the bits of its half-precision value.
    pub fn scalar_f16_bits(&mut self, bits: u16) -> u32 {
        self.constant_bytes(OutputSpec::new(OperandType::Float16, &[]), &bits.to_le_bytes())
    }

    /// A `BOOL` constant.
    pub fn scalar_bool(&mut self, value: bool) -> u32 {
        self.constant_bytes(OutputSpec::new(OperandType::Bool, &[]), &[u8::from(value)])
    }

    /// Adds an operation with new temporaries for its results; returns their indexes in order.
    pub fn operation(
        &mut self,
        ty: OperationType,
        inputs: &[u32],
        outputs: &[OutputSpec],
    ) -> Vec<u32> {
        let outputs: Vec<u32> = outputs.iter().map(|spec| self.temporary(spec.clone())).collect();
        self.operation_into(ty, inputs, &outputs);
        outputs
    }

    /// Adds an operation with one result; returns its index.
    pub fn result_of(&mut self, ty: OperationType, inputs: &[u32], output: OutputSpec) -> u32 {
        let output = self.temporary(output);
        self.operation_into(ty, inputs, &[output]);
        output
    }

    /// Adds an operation that writes operands which exist already.
    pub fn operation_into(&mut self, ty: OperationType, inputs: &[u32], outputs: &[u32]) {
        let operation = Operation { ty, inputs: inputs.to_vec(), outputs: outputs.to_vec() };
        self.graph.operations.push(operation);
    }

    /// Makes an operand a graph output. An index that no operand has is reported by
    /// [`Self::build`].
    pub fn output(&mut self, index: u32) {
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(operand) = self.graph.operands.get_mut(position) {
            operand.lifetime = OperandLifeTime::SubgraphOutput;
        }
        self.graph.output_indexes.push(index);
    }

    /// Adds a subgraph for IF or WHILE; inside of `fill` every method adds to it. Returns its
    /// number, for [`Self::subgraph`].
    pub fn referenced(&mut self, fill: impl FnOnce(&mut ModelBuilder)) -> u32 {
        let outer = std::mem::take(&mut self.graph);
        fill(self);
        let inner = std::mem::replace(&mut self.graph, outer);
        self.model.referenced.push(inner);
        index_of_last(self.model.referenced.len())
    }

    /// An operand that stands for a subgraph added by [`Self::referenced`].
    pub fn subgraph(&mut self, number: u32) -> u32 {
        let operand = Operand::new(OperandType::Subgraph, OperandLifeTime::Subgraph);
        let location = DataLocation { offset: number, ..DataLocation::default() };
        self.operand(Operand { location, ..operand })
    }

    /// Adds memory for [`Self::constant_in_pool`]; returns its index.
    pub fn pool(&mut self, pool: Pool) -> u32 {
        self.model.pools.push(pool);
        index_of_last(self.model.pools.len())
    }

    /// Whether float32 may be computed as float16.
    pub fn relaxed(&mut self, relaxed: bool) {
        self.model.relax_computation_float32_to_float16 = relaxed;
    }

    /// Gives an extension its prefix.
    pub fn extension(&mut self, name: &str, prefix: u16) {
        self.model.extension_name_to_prefix.push((name.to_owned(), prefix));
    }

    /// The finished model, legal by everything that holds for any operation.
    ///
    /// # Errors
    /// What [`validate_model`] finds at the newest HAL version; constants that are too large
    /// together.
    pub fn build(self) -> Result<Model, ValidationError> {
        let model = self.build_unvalidated()?;
        validate_model(&model, HalVersion::LATEST)?;
        Ok(model)
    }

    /// The finished model, legal or not.
    ///
    /// # Errors
    /// Constants that are too large together.
    pub fn build_unvalidated(self) -> Result<Model, ValidationError> {
        if let Some(error) = self.overflow {
            return Err(error);
        }
        let mut model =
            Model { main: self.graph, operand_values: self.values.into(), ..self.model };
        for graph in std::iter::once(&mut model.main).chain(&mut model.referenced) {
            let counts = graph.count_consumers();
            for (operand, count) in graph.operands.iter_mut().zip(counts) {
                operand.number_of_consumers = count;
            }
        }
        Ok(model)
    }

    /// Appends the bytes of a constant; remembers when they find no room.
    fn store(&mut self, bytes: &[u8]) -> DataLocation {
        let alignment =
            if bytes.len() >= LARGE_ALIGNMENT { LARGE_ALIGNMENT } else { SMALL_ALIGNMENT };
        let start = self.values.len().next_multiple_of(alignment);
        let total = (start as u64).saturating_add(bytes.len() as u64);
        let (Ok(offset), Ok(length)) = (u32::try_from(start), u32::try_from(bytes.len())) else {
            return self.no_room(total);
        };
        if total > MAX_CONSTANT_BYTES {
            return self.no_room(total);
        }
        self.values.resize(start, 0);
        self.values.extend_from_slice(bytes);
        DataLocation { pool_index: 0, offset, length }
    }

    fn no_room(&mut self, bytes: u64) -> DataLocation {
        let error = ValidationError::LimitExceeded { limit: Limit::ConstantBytes, found: bytes };
        self.overflow.get_or_insert(error);
        DataLocation::default()
    }
}

/// The index of the last of `len` elements. Validation refuses a model long before a count
/// leaves 32 bits, so a saturated index never reaches anybody.
fn index_of_last(len: usize) -> u32 {
    u32::try_from(len.saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_are_counted_by_use_and_constants_are_aligned() {
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[32]);
        let none = b.scalar_i32(0);
        let weights = b.constant_f32(&[32], &[0.5; 32]);
        let twice = b.result_of(OperationType::Add, &[x, x, none], OutputSpec::f32(&[32]));
        let y = b.result_of(OperationType::Mul, &[twice, weights, none], OutputSpec::f32(&[32]));
        b.output(y);
        let model = b.build().unwrap();
        let counts: Vec<u32> = model.main.operands.iter().map(|o| o.number_of_consumers).collect();
        assert_eq!(counts, [2, 2, 1, 1, 0]);
        assert_eq!(model.main.operands[1].location.length, 4);
        assert_eq!(
            model.main.operands[2].location,
            DataLocation { pool_index: 0, offset: 64, length: 128 }
        );
        assert_eq!(model.operand_values.len(), 192);
        assert_eq!(model.main.input_indexes, [0]);
        assert_eq!(model.main.output_indexes, [4]);
    }

    #[test]
    fn a_subgraph_has_operands_of_its_own_and_shares_the_constants() {
        let mut b = ModelBuilder::new();
        let condition = b.input(OperandType::TensorBool8, &[1]);
        let x = b.input(OperandType::TensorFloat32, &[2]);
        let branch = b.referenced(|b| {
            let x = b.input(OperandType::TensorFloat32, &[2]);
            let none = b.scalar_i32(0);
            let y = b.result_of(OperationType::Add, &[x, x, none], OutputSpec::f32(&[2]));
            b.output(y);
        });
        let then = b.subgraph(branch);
        let otherwise = b.subgraph(branch);
        let spec = OutputSpec::f32(&[2]);
        let y = b.result_of(OperationType::If, &[condition, then, otherwise, x], spec);
        b.output(y);
        let model = b.build().unwrap();
        assert_eq!(model.referenced.len(), 1);
        assert_eq!(model.referenced[0].operands.len(), 3);
        assert_eq!(model.referenced[0].operands[0].number_of_consumers, 2);
        assert_eq!(model.main.operands.len(), 5);
        assert_eq!(model.main.operands[2].location.offset, 0);
        assert_eq!(model.operand_values.len(), 4);
    }

    #[test]
    fn build_tells_of_an_output_that_does_not_exist() {
        let mut b = ModelBuilder::new();
        let x = b.input(OperandType::TensorFloat32, &[2]);
        b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[2]));
        b.output(99);
        assert!(b.build().is_err());
    }
}
