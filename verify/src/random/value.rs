//! What is known of a value in a random graph.

use burst_hal::{OperandType, OperationType, OutputSpec};

/// Types that most operations take.
pub(super) const COMMON: &[OperandType] = &[F32, F16, TQ8, TQ8S];
/// The same, and integers.
pub(super) const NUMBERS: &[OperandType] = &[F32, F16, TQ8, TQ8S, I32];
/// Types of what is not rounded to steps.
pub(super) const FLOATS: &[OperandType] = &[F32, F16];
/// Everything that operations here read.
pub(super) const ALL: &[OperandType] = &[F32, F16, TQ8, TQ8S, I32, BOOL8];

/// TENSOR_FLOAT32.
pub(super) const F32: OperandType = OperandType::TensorFloat32;
/// TENSOR_FLOAT16.
pub(super) const F16: OperandType = OperandType::TensorFloat16;
/// TENSOR_QUANT8_ASYMM.
pub(super) const TQ8: OperandType = OperandType::TensorQuant8Asymm;
/// TENSOR_QUANT8_ASYMM_SIGNED.
pub(super) const TQ8S: OperandType = OperandType::TensorQuant8AsymmSigned;
/// TENSOR_INT32.
pub(super) const I32: OperandType = OperandType::TensorInt32;
/// TENSOR_QUANT16_ASYMM.
pub(super) const Q16: OperandType = OperandType::TensorQuant16Asymm;
/// TENSOR_QUANT16_SYMM.
pub(super) const Q16S: OperandType = OperandType::TensorQuant16Symm;
/// TENSOR_QUANT8_SYMM.
pub(super) const Q8S: OperandType = OperandType::TensorQuant8Symm;
/// TENSOR_BOOL8.
pub(super) const BOOL8: OperandType = OperandType::TensorBool8;

/// A tensor of a graph that is growing.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) operand: u32,
    pub(super) ty: OperandType,
    pub(super) dims: Vec<u32>,
    pub(super) scale: f32,
    pub(super) zero_point: i32,
    /// No element is farther from 0 than this.
    pub(super) bound: f32,
    /// Whether the first size is only the largest that it can be.
    pub(super) is_bound: bool,
    /// Whether operations go on with it.
    pub(super) may_be_read: bool,
    /// Whether every device has the same bits here: no float was rounded on the way.
    pub(super) is_exact: bool,
}

impl Value {
    /// Type, dimensions and quantization.
    pub(super) fn spec(&self) -> OutputSpec {
        self.with(&self.dims)
    }

    /// The same in another shape.
    pub(super) fn with(&self, dims: &[u32]) -> OutputSpec {
        OutputSpec::new(self.ty, dims).quantized(self.scale, self.zero_point)
    }

    pub(super) fn elements(&self) -> u32 {
        self.dims.iter().product()
    }

    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }

    pub(super) fn is_quantized(&self) -> bool {
        self.ty.is_quantized()
    }

    /// Whether it is of the same type, shape and meaning.
    pub(super) fn is_alike(&self, other: &Value) -> bool {
        self.spec() == other.spec()
    }
}

/// Whether an operation gives every device the same floats for the same floats: it moves or picks them.
pub(super) fn rounds_nothing(op: OperationType) -> bool {
    use OperationType as Op;
    matches!(
        op,
        Op::Abs
            | Op::BatchToSpaceNd
            | Op::ChannelShuffle
            | Op::DepthToSpace
            | Op::EmbeddingLookup
            | Op::ExpandDims
            | Op::Fill
            | Op::Floor
            | Op::Gather
            | Op::HashtableLookup
            | Op::Maximum
            | Op::MaxPool2d
            | Op::Minimum
            | Op::Neg
            | Op::Pad
            | Op::PadV2
            | Op::ReduceMax
            | Op::ReduceMin
            | Op::Relu
            | Op::Relu1
            | Op::Relu6
            | Op::Reshape
            | Op::ResizeNearestNeighbor
            | Op::Select
            | Op::Slice
            | Op::SpaceToBatchNd
            | Op::SpaceToDepth
            | Op::Split
            | Op::Squeeze
            | Op::StridedSlice
            | Op::Tile
            | Op::TopkV2
            | Op::Transpose
    )
}

/// The farthest from 0 that a value of this type can be.
pub(super) fn bound_of(ty: OperandType, scale: f32, zero_point: i32) -> f32 {
    let (low, high) = stored_range(ty);
    let farthest = (low - zero_point).abs().max((high - zero_point).abs());
    scale * f32::from(i16::try_from(farthest).unwrap_or(i16::MAX))
}

/// The stored values of a type of bytes.
pub(super) fn stored_range(ty: OperandType) -> (i32, i32) {
    match ty {
        TQ8 => (0, 255),
        _ => (-128, 127),
    }
}

/// A quantized type's bytes begin here: what stands for the smallest value.
pub(super) fn lowest(ty: OperandType) -> i32 {
    stored_range(ty).0
}
