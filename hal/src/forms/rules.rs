//! What HAL 1.0 and 1.1 asked of an operation beside its types.

use crate::OperandType::TensorQuant8Asymm;
use crate::{Operand, OperationType};

/// Whether these operands, which have a form, mean something only since HAL 1.2. Not called with
/// fewer operands than the shortest form has.
pub(super) fn need_1_2(ty: OperationType, inputs: &[&Operand], outputs: &[&Operand]) -> bool {
    let ([input, ..], [output, ..]) = (inputs, outputs) else { return false };
    let rank = input.dimensions.len();
    let is_bytes = input.ty == TensorQuant8Asymm;
    match ty {
        OperationType::L2Normalization | OperationType::LocalResponseNormalization => rank != 4,
        OperationType::Softmax => !matches!(rank, 2 | 4),
        // Padded with the byte 0, whatever that stands for.
        OperationType::Pad | OperationType::SpaceToBatchNd => is_bytes && input.zero_point != 0,
        OperationType::Concatenation => is_bytes && inputs.iter().any(|one| differ(one, output)),
        OperationType::Conv2d | OperationType::DepthwiseConv2d | OperationType::FullyConnected => {
            is_bytes && inputs.get(1).is_some_and(|filter| !shrinks(input, filter, output))
        }
        _ => false,
    }
}

/// Whether two tensors of bytes stand for other numbers. The axis of a concatenation is none.
fn differ(one: &Operand, output: &Operand) -> bool {
    one.ty == output.ty && (one.scale != output.scale || one.zero_point != output.zero_point)
}

/// Whether the output's step is larger than the products': its multiplier is below one then.
fn shrinks(input: &Operand, filter: &Operand, output: &Operand) -> bool {
    filter.ty != TensorQuant8Asymm || output.scale > input.scale * filter.scale
}
