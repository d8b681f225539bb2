//! What is asked of an operation beside its types: of some in every version, of others in 1.0 and 1.1.

use super::mismatch::FormMismatch;
use crate::OperandType::TensorQuant8Asymm;
use crate::{Operand, OperationType};

/// The rule that these operands, which have a form otherwise, break in every version. Not called with fewer
/// operands than the shortest form has.
pub(super) fn broken(
    ty: OperationType,
    inputs: &[&Operand],
    outputs: &[&Operand],
) -> Option<FormMismatch> {
    let rule = match (ty, inputs, outputs) {
        (OperationType::FullyConnected, [input, weights, bias, ..], _) => {
            broken_shapes(&input.dimensions, &weights.dimensions, &bias.dimensions)
        }
        // Of values with a sign nothing is asked.
        (OperationType::Mul, [a, b, ..], [output, ..]) => {
            let is_broken = output.ty == TensorQuant8Asymm && output.scale <= a.scale * b.scale;
            is_broken.then_some("the scale of the output is not above the product of the inputs'")
        }
        _ => None,
    };
    rule.map(|what| FormMismatch::Rule { what })
}

/// What is wrong with the shapes of a fully connected layer, of which nothing is said unless all three ranks are known,
/// and then of each number only where it is.
fn broken_shapes(input: &[u32], weights: &[u32], bias: &[u32]) -> Option<&'static str> {
    if input.is_empty() || weights.is_empty() || bias.is_empty() {
        return None;
    }
    if !(2..=4).contains(&input.len()) {
        return Some("the input has not 2 to 4 dimensions");
    }
    let (&[units, inputs], &[biases]) = (weights, bias) else {
        return Some("the weights have not 2 dimensions, or the bias not 1");
    };
    if units != biases && units != 0 && biases != 0 {
        return Some("the bias has not one number for each unit");
    }
    // Four sizes of 32 bits, of which 0 stands for any.
    let elements: u128 = input.iter().map(|size| u128::from(*size)).product();
    let is_left_over = inputs != 0 && !elements.is_multiple_of(inputs.into());
    is_left_over.then_some("the input is no whole number of batches")
}

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
        OperationType::Conv2d | OperationType::DepthwiseConv2d => {
            is_bytes && inputs.get(1).is_some_and(|filter| !is_below_one(filter))
        }
        OperationType::FullyConnected => {
            is_bytes && inputs.get(1).is_some_and(|filter| !shrinks(input, filter, output))
        }
        _ => false,
    }
}

/// Whether two tensors of bytes stand for other numbers. The axis of a concatenation is none.
fn differ(one: &Operand, output: &Operand) -> bool {
    one.ty == output.ty && (one.scale != output.scale || one.zero_point != output.zero_point)
}

/// What Android's check comes to for convolutions: it takes the scale of the input where the output's belongs, and
/// asks whether that is above the product of input and filter. The models that it let through are those of 1.0.
fn is_below_one(filter: &Operand) -> bool {
    filter.ty != TensorQuant8Asymm || filter.scale < 1.0
}

/// Whether the output's step is larger than the products': its multiplier is below one then.
fn shrinks(input: &Operand, filter: &Operand, output: &Operand) -> bool {
    filter.ty != TensorQuant8Asymm || output.scale > input.scale * filter.scale
}
