//! For which types of its first input each NNAPI operation is defined.

use burst_hal::OperandType::{
    self, TensorBool8 as B8, TensorFloat16 as F16, TensorFloat32 as F32, TensorInt32 as I32,
    TensorQuant8Asymm as U8, TensorQuant8AsymmSigned as S8, TensorQuant8Symm as SY8,
    TensorQuant8SymmPerChannel as PC8,
};
use burst_hal::OperationType::{self, *};

/// The types that the first input of this operation may have, where the importer uses it.
pub(crate) fn main_types(operation: OperationType) -> &'static [OperandType] {
    match operation {
        Add | Sub | Mul => &[F32, U8, F16, S8, I32],
        Div => &[F32, F16, I32],
        Abs | Neg => &[F32, F16, I32],
        Exp
        | Log
        | Sqrt
        | Rsqrt
        | Sin
        | Floor
        | Elu
        | Pow
        | LogSoftmax
        | ReduceSum
        | ReduceProd
        | Svdf
        | Rnn
        | UnidirectionalSequenceLstm
        | DetectionPostprocessing
        | Quantize => &[F32, F16],
        AveragePool2d
        | MaxPool2d
        | Concatenation
        | Conv2d
        | DepthwiseConv2d
        | GroupedConv2d
        | DepthToSpace
        | SpaceToDepth
        | FullyConnected
        | Logistic
        | Relu
        | Relu1
        | Relu6
        | Reshape
        | ResizeBilinear
        | ResizeNearestNeighbor
        | Softmax
        | Tanh
        | Mean
        | Pad
        | PadV2
        | Squeeze
        | StridedSlice
        | Transpose
        | Prelu
        | HardSwish
        | L2Normalization
        | ReduceMax
        | ReduceMin
        | BatchToSpaceNd
        | SpaceToBatchNd => &[F32, U8, F16, S8],
        L2Pool2d => &[F32, F16],
        Argmax | Argmin | Gather | Split | Minimum | Maximum | Slice | Tile | ExpandDims => {
            &[F32, U8, F16, I32, S8]
        }
        Equal | NotEqual => &[B8, F16, F32, I32, U8, S8],
        Less | LessEqual | Greater | GreaterEqual => &[B8, F16, F32, I32, U8, S8],
        LogicalAnd | LogicalOr | LogicalNot | ReduceAll | ReduceAny => &[B8],
        Cast => &[F32, F16, I32, U8, B8, S8],
        Dequantize => &[U8, SY8, PC8, S8],
        QuantizedLstm => &[S8],
        _ => &[],
    }
}
