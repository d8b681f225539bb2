//! What ARGMAX and ARGMIN share: the index of the best value along one axis.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{Dimensions, OperandType};
use half::f16;

use crate::OpError;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Inferred, Row, Run, Signature};
use crate::ops::reduce::axes;
use crate::tensor::Args;

const ROWS: &[Row] = &[
    Row::new(V1_2, &[TF32, I32], &[TI32]),
    Row::new(V1_2, &[TF16, I32], &[TI32]),
    Row::new(V1_2, &[TI32, I32], &[TI32]),
    Row::new(V1_2, &[TQ8, I32], &[TI32]),
    Row::new(V1_3, &[TQ8S, I32], &[TI32]),
];

pub(super) fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_rows(ROWS)
}

/// The input's shape without the axis; `[1]` for a vector.
pub(super) fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let dims = args.dims(0)?;
    let axis = axes::resolve(args.i32(1)?, dims.len())?;
    if dims.contains(&0) {
        return Err(OpError::shape("an input that must not be empty", dims, &[]));
    }
    if i32::try_from(dims[axis]).is_err() {
        return Err(OpError::Range { what: "an index along the axis" });
    }
    let mut left: Dimensions = dims.into();
    left.remove(axis);
    if left.is_empty() {
        left.push(1);
    }
    Ok(Inferred::one(left))
}

/// Which of two values wins; of equal ones the first stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Best {
    Largest,
    Smallest,
}

pub(super) fn execute(run: &mut Run<'_, '_>, best: Best) -> Result<(), OpError> {
    let input = run.input(0)?;
    let axis = axes::resolve(run.i32(1)?, input.dims.len())?;
    let size = |dims: &[u32]| dims.iter().map(|dim| *dim as usize).product::<usize>();
    let (length, inner) = (input.dims[axis] as usize, size(&input.dims[axis + 1..]));
    let out = run.output(0)?.i32_mut()?;
    match input.info.ty {
        OperandType::TensorFloat32 => find(input.f32()?, out, length, inner, best),
        OperandType::TensorFloat16 => find::<f16>(input.f16()?, out, length, inner, best),
        OperandType::TensorInt32 => find(input.i32()?, out, length, inner, best),
        OperandType::TensorQuant8AsymmSigned => find(input.i8()?, out, length, inner, best),
        _ => find(input.u8()?, out, length, inner, best),
    }
    Ok(())
}

fn find<T: PartialOrd + Copy>(
    input: &[T],
    out: &mut [i32],
    length: usize,
    inner: usize,
    best: Best,
) {
    match best {
        Best::Largest => indexes(input, out, length, inner, |new, old| new > old),
        Best::Smallest => indexes(input, out, length, inner, |new, old| new < old),
    }
}

/// `input` is `[outer, length, inner]`, `out` is `[outer, inner]`.
fn indexes<T: Copy>(
    input: &[T],
    out: &mut [i32],
    length: usize,
    inner: usize,
    beats: impl Fn(T, T) -> bool,
) {
    if length == 0 || inner == 0 {
        return;
    }
    for (block, out) in input.chunks_exact(length * inner).zip(out.chunks_exact_mut(inner)) {
        for (lane, out) in out.iter_mut().enumerate() {
            let mut holder = (0, block[lane]);
            for (index, value) in (0..).zip(block[lane..].iter().step_by(inner)) {
                // Without a branch: which value wins is hard to foresee.
                let wins = beats(*value, holder.1);
                holder.0 = if wins { index } else { holder.0 };
                holder.1 = if wins { *value } else { holder.1 };
            }
            *out = holder.0;
        }
    }
}
