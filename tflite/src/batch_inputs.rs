//! Which inputs of an NNAPI operation decide the batch of its output.

use burst_hal::OperationType::{self, *};

/// How many of the first inputs decide the first size of the output: it is the largest of theirs,
/// where they have the output's rank. 0 where there is no such rule.
pub(crate) fn batch_inputs(operation: OperationType) -> usize {
    match operation {
        Add | Sub | Mul | Div | Minimum | Maximum => 2,
        Relu
        | Relu1
        | Relu6
        | Logistic
        | Tanh
        | Softmax
        | DepthToSpace
        | SpaceToDepth
        | ResizeBilinear
        | ResizeNearestNeighbor
        | AveragePool2d
        | MaxPool2d
        | L2Pool2d
        | HardSwish
        | Elu
        | Abs
        | Neg
        | Exp
        | Log
        | Sqrt
        | Rsqrt
        | Sin
        | Floor
        | Conv2d
        | DepthwiseConv2d
        | GroupedConv2d => 1,
        _ => 0,
    }
}
