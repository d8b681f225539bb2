//! How close results have to be: the classes of the original random tests.

use burst_hal::{OperandType, OperationType as Op};

/// How close the results of an operation, or of a whole graph, come to those of the judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accuracy {
    /// What only moves elements, compares or counts.
    Strict,
    /// What rounds once.
    Medium,
    /// What sums up, or computes a function.
    Relaxed,
    /// What sums up products under a window.
    Conv,
    /// A graph of a few operations.
    SmallGraph,
    /// A graph of dozens.
    LargeGraph,
}

/// Limits of the differences between results: of their mean and of the mean of their squares, where there are
/// at least [`Criterion::MANY`], each relative to values beyond 1; and of each,
/// `absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criterion {
    /// Of the mean difference.
    pub bias: f64,
    /// Of the mean of squares.
    pub mse: f64,
    /// Of each, absolute.
    pub absolute: f64,
    /// Of each, relative to the expected value.
    pub relative: f64,
}

impl Criterion {
    /// Elements from which on means say something.
    pub const MANY: u64 = 10;
}

const fn criterion(bias: f64, mse: f64, absolute: f64, relative: f64) -> Criterion {
    Criterion { bias, mse, absolute, relative }
}

impl Accuracy {
    /// That of an operation by itself.
    #[must_use]
    pub fn of(op: Op) -> Accuracy {
        match op {
            Op::DepthToSpace
            | Op::SpaceToDepth
            | Op::EmbeddingLookup
            | Op::HashtableLookup
            | Op::LshProjection
            | Op::Reshape
            | Op::BatchToSpaceNd
            | Op::SpaceToBatchNd
            | Op::Pad
            | Op::PadV2
            | Op::Squeeze
            | Op::StridedSlice
            | Op::Transpose
            | Op::Argmax
            | Op::Argmin
            | Op::ChannelShuffle
            | Op::Equal
            | Op::NotEqual
            | Op::Less
            | Op::LessEqual
            | Op::Greater
            | Op::GreaterEqual
            | Op::LogicalAnd
            | Op::LogicalOr
            | Op::LogicalNot
            | Op::ExpandDims
            | Op::Gather
            | Op::Select
            | Op::Slice
            | Op::Tile
            | Op::TopkV2
            | Op::Fill
            | Op::Rank => Accuracy::Strict,
            Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Div
            | Op::Concatenation
            | Op::Dequantize
            | Op::Quantize
            | Op::Relu
            | Op::Relu1
            | Op::Relu6
            | Op::Abs
            | Op::Neg
            | Op::Floor
            | Op::Maximum
            | Op::Minimum
            | Op::Prelu
            | Op::Cast
            | Op::Split
            | Op::Elu
            | Op::HardSwish => Accuracy::Medium,
            Op::Conv2d | Op::DepthwiseConv2d | Op::GroupedConv2d | Op::TransposeConv2d => {
                Accuracy::Conv
            }
            // Graphs of their own.
            Op::If | Op::While => Accuracy::SmallGraph,
            _ => Accuracy::Relaxed,
        }
    }

    /// That of a graph with so many operations, at its end.
    #[must_use]
    pub fn of_graph(operations: &[burst_hal::Operation]) -> Accuracy {
        match operations {
            [only] => Accuracy::of(only.ty),
            few if few.len() <= SMALL => Accuracy::SmallGraph,
            _ => Accuracy::LargeGraph,
        }
    }

    /// The limits for floats: `half` where 16 bits are precision enough.
    #[must_use]
    pub fn floats(self, half: bool) -> Criterion {
        match (self, half) {
            (Accuracy::Strict, false) => criterion(1e-7, 1e-10, 1e-6, 1e-6),
            (Accuracy::Strict, true) => criterion(1e-4, 1e-8, 1e-3, 1e-3),
            (Accuracy::Medium, false) => criterion(1e-6, 1e-8, 1e-5, 1e-5),
            (Accuracy::Medium, true) => criterion(1e-3, 1e-5, 1e-2, 1e-2),
            (Accuracy::Relaxed, false) => criterion(3e-5, 1e-6, 1e-3, 1e-3),
            (Accuracy::Relaxed, true) => criterion(5e-3, 1e-3, 1.0, 1.0),
            (Accuracy::Conv, false) => criterion(4e-4, 1e-5, 2e-2, 2e-2),
            (Accuracy::SmallGraph, false) => criterion(4e-4, 1e-5, 1e-2, 1e-2),
            (Accuracy::Conv | Accuracy::SmallGraph, true) => criterion(5e-2, 1e-2, 1.0, 1.0),
            (Accuracy::LargeGraph, false) => criterion(1e-2, 1e-4, 1e-1, 1e-1),
            (Accuracy::LargeGraph, true) => criterion(1e-1, 5e-2, 1.0, 1.0),
        }
    }
}

/// Operations of a graph that is still a small one. A generator adds a few to the five it is asked for.
const SMALL: usize = 12;

/// Whether results of an operation jump where its operands change a little, though they are floats.
pub(super) fn jumps(op: Op) -> bool {
    matches!(
        op,
        Op::Floor
            | Op::Cast
            | Op::If
            | Op::While
            | Op::BoxWithNmsLimit
            | Op::DetectionPostprocessing
            | Op::GenerateProposals
            | Op::HeatmapMaxKeypoint
            | Op::RoiAlign
            | Op::RoiPooling
            | Op::TopkV2
            | Op::HashtableLookup
            | Op::LshProjection
            | Op::RandomMultinomial
    )
}

/// Whether values of a type are judged by tolerances, and not by their bits.
pub(super) fn is_float(ty: OperandType) -> bool {
    use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
    matches!(ty, TensorFloat32 | TensorFloat16 | Float32 | Float16)
}

/// Whether what an operation writes here is not specified: room to work in.
pub(super) fn is_scratch(op: Op, output: usize) -> bool {
    op == Op::Lstm && output == 0
}
