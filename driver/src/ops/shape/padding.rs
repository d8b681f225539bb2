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
use crate::op::Run;
use crate::tensor::{Args, TensorInfo, TensorMut};

/// The paddings at input `index`: a pair (before, after) per dimension, in a tensor `[pairs, 2]`.
pub(super) fn pairs<'a>(
    args: &Args<'a>,
    index: usize,
    pairs: usize,
) -> Result<&'a [[i32; 2]], OpError> {
    let tensor = args.tensor(index)?;
    let wanted = [u32::try_from(pairs).unwrap_or(u32::MAX), 2];
    if tensor.dims != wanted {
        return Err(OpError::shape("shape of the paddings", tensor.dims, &wanted));
    }
    let (list, _) = tensor.i32()?.as_chunks();
    if let Some(bad) = list.iter().flatten().find(|padding| **padding < 0) {
        return Err(OpError::value("padding", *bad));
    }
    Ok(list)
}

/// The shape with its paddings.
pub(super) fn padded(dims: &[u32], pairs: &[[i32; 2]]) -> Result<Dimensions, OpError> {
    let sizes: SmallVec<[i64; 8]> = dims
        .iter()
        .zip(pairs)
        .map(|(dim, [before, after])| i64::from(*dim) + i64::from(*before) + i64::from(*after))
        .collect();
    common::shape_of(&sizes)
}

/// Puts input 0 into the middle of output 0, which holds the padding already. Input 1 says where.
pub(super) fn place(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let dims = run.input(0)?.dims;
    let (pairs, _) = run.input(1)?.i32()?.as_chunks::<2>();
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
