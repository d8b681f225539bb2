//! What PAD, PAD_V2 and SPACE_TO_BATCH_ND share: room around a tensor.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "zero points were checked against the range of their type"
)]

use burst_hal::{Dimensions, OperandType};
use smallvec::SmallVec;

use super::common;
use crate::OpError;
use crate::kernels::quant::type_range;
use crate::kernels::strided::{Move, steps};
use crate::op::{Inferred, Operands, Parsed, Run};
use crate::ops::attributes::{Pairs, pairs};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::{Args, TensorInfo, TensorMut};

/// The paddings: a pair (before, after) per dimension.
pub(super) fn parse(operands: &dyn Operands) -> Result<Pairs, OpError> {
    pairs(operands, 1)
}

/// The input's shape with its paddings. A quantized output must mean the same as the input.
pub(super) fn infer(args: &Args<'_>, pairs: Parsed<'_, Pairs>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = dims_up_to_four(args, 0)?;
    let pairs = pairs?;
    if pairs.len() != dims.len() {
        let count = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
        return Err(OpError::shape("a pair of paddings per dimension", &[count, 2], dims));
    }
    Ok(Inferred::one(padded(dims, pairs)?))
}

/// The shape with its paddings.
fn padded(dims: &[u32], pairs: &[[i32; 2]]) -> Result<Dimensions, OpError> {
    let sizes: SmallVec<[i64; 8]> = dims
        .iter()
        .zip(pairs)
        .map(|(dim, [before, after])| i64::from(*dim) + i64::from(*before) + i64::from(*after))
        .collect();
    common::shape_of(&sizes)
}

/// Puts input 0 into the middle of output 0, which holds the padding already.
pub(super) fn copy_behind_padding(run: &mut Run<'_, '_>, pairs: &Pairs) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let dims = run.input(0)?.dims;
    let to = steps(run.output(0)?.dims);
    let mut moves = Move::default();
    for (((size, from), to), [before, _]) in dims.iter().zip(steps(dims)).zip(to).zip(pairs) {
        let before = usize::try_from(*before).map_err(|_| OpError::value("padding", *before))?;
        moves.to += before * to.unsigned_abs();
        moves.axis(*size as usize, from, to);
    }
    common::apply(run, &moves)
}

/// Writes what stands for real 0 to all of the output.
pub(super) fn fill_zero(out: &mut TensorMut<'_>) {
    let byte = zero(out.info);
    out.bytes_mut().fill(byte);
}

/// The byte that every element of real 0 consists of.
fn zero(info: &TensorInfo) -> u8 {
    match info.ty {
        OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => {
            let (low, high) = type_range(info.ty);
            info.zero_point.clamp(low, high) as u8
        }
        _ => 0,
    }
}
