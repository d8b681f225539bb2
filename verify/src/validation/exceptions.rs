//! Changes that leave a model legal, because the operation allows both forms.

use burst_hal::OperandType::{
    self, TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    TensorQuant8Symm, TensorQuant8SymmPerChannel,
};
use burst_hal::{Model, Operation, OperationType as Op};

/// Whether some operation takes `operand` in the type `ty` as well, whatever its other operands
/// are.
pub(super) fn takes_type(model: &Model, operand: u32, ty: OperandType) -> bool {
    model.main.operations.iter().any(|operation| operation_takes(model, operation, operand, ty))
}

const ANY_NUMBER: [OperandType; 5] =
    [TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned];
const FLOATS: [OperandType; 2] = [TensorFloat16, TensorFloat32];
const QUANT8: [OperandType; 2] = [TensorQuant8Asymm, TensorQuant8AsymmSigned];
const DEQUANTIZABLE: [OperandType; 4] =
    [TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant8SymmPerChannel];

fn operation_takes(model: &Model, operation: &Operation, operand: u32, ty: OperandType) -> bool {
    let input = |position: usize| operation.inputs.get(position) == Some(&operand);
    let output = operation.outputs.first() == Some(&operand);
    match operation.ty {
        Op::LshProjection => input(1),
        Op::Cast => (input(0) || output) && ANY_NUMBER.contains(&ty),
        Op::Argmax | Op::Argmin => input(0) && ANY_NUMBER.contains(&ty),
        Op::Quantize => (input(0) && FLOATS.contains(&ty)) || (output && QUANT8.contains(&ty)),
        Op::RandomMultinomial => input(0) && FLOATS.contains(&ty),
        Op::Dequantize => {
            (input(0) && DEQUANTIZABLE.contains(&ty)) || (output && FLOATS.contains(&ty))
        }
        Op::Conv2d | Op::DepthwiseConv2d | Op::GroupedConv2d | Op::TransposeConv2d => {
            input(1) && filter_may_be(model, operation, ty)
        }
        Op::AxisAlignedBboxTransform => input(1) && QUANT8.contains(&ty),
        Op::Rank => input(0) && ty.is_tensor(),
        _ => false,
    }
}

/// A quantized filter has scales per channel, or the type of the input.
fn filter_may_be(model: &Model, operation: &Operation, ty: OperandType) -> bool {
    let input = operation.inputs.first().and_then(|index| model.main.operands.get(*index as usize));
    ty == TensorQuant8SymmPerChannel
        || ty == TensorQuant8Asymm
        || input.is_some_and(|input| input.ty == ty)
}

/// Whether the operation has a shorter form without this input.
pub(super) fn input_is_optional(operation: &Operation, input: usize) -> bool {
    let count = operation.inputs.len();
    let is = |forms: &[(usize, usize)]| forms.contains(&(count, input));
    match operation.ty {
        Op::Concatenation => count > 2 && input != count - 1,
        Op::DepthwiseConv2d => is(&[(12, 11), (9, 8)]),
        Op::Conv2d | Op::AveragePool2d | Op::MaxPool2d | Op::L2Pool2d => is(&[(11, 10), (8, 7)]),
        Op::ResizeBilinear => count >= 4 && input >= 3,
        Op::ResizeNearestNeighbor => count >= 5 && input >= 3,
        Op::SpaceToDepth | Op::DepthToSpace | Op::BatchToSpaceNd => is(&[(3, 2)]),
        Op::SpaceToBatchNd => is(&[(4, 3)]),
        Op::L2Normalization => is(&[(2, 1)]),
        Op::LocalResponseNormalization => is(&[(6, 5)]),
        Op::Softmax => is(&[(3, 2)]),
        _ => false,
    }
}

/// Whether the operation has a longer form with one more INT32 (or, for resizing, may have).
pub(super) fn input_may_be_added(operation: &Operation) -> bool {
    let count = operation.inputs.len();
    match operation.ty {
        Op::L2Normalization => count == 1,
        Op::LocalResponseNormalization => count == 5,
        Op::Softmax => count == 2,
        Op::ResizeBilinear | Op::ResizeNearestNeighbor => count < 6,
        _ => false,
    }
}

/// Whether the number of the operation's outputs is not fixed by its type.
pub(super) fn outputs_vary(operation: &Operation) -> bool {
    matches!(
        operation.ty,
        Op::Split
            | Op::UnidirectionalSequenceLstm
            | Op::UnidirectionalSequenceRnn
            | Op::BidirectionalSequenceLstm
            | Op::BidirectionalSequenceRnn
    )
}
