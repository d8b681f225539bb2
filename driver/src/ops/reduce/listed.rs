//! What the REDUCE operations share: axes in a list, a BOOL scalar that keeps them with size 1.

use burst_hal::OperandType;
use half::f16;

use crate::OpError;
use crate::kernels::reduce::Reduction;
use crate::op::{Inferred, Run, Signature};
use crate::ops::quantization::rules::expect_same;
use crate::ops::reduce::axes::AxisSet;
use crate::ops::reduce::{MAX_RANK, expect_input_rank, reduced_shape};
use crate::tensor::Args;

/// Forms with a list of axes: only the type of the values differs.
pub(super) fn validate(
    signature: &Signature<'_>,
    rows: &[crate::op::Row],
) -> Result<(), crate::SignatureError> {
    signature.expect_rows(rows)?;
    expect_input_rank(signature)
}

/// The input's shape without the axes. Stored values are compared as they are, so that the output
/// must mean the same as the input.
pub(super) fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let dims = args.dims(0)?;
    let axes = AxisSet::listed(&args.tensor(1)?, dims.len())?;
    let shape = reduced_shape(dims, MAX_RANK, axes, args.bool(2)?)?;
    if let Some((output, _)) = args.outputs.first() {
        expect_same(args.input(0)?.info, output)?;
    }
    Ok(Inferred::one(shape))
}

/// How the axes of this run fold its input.
fn reduction(run: &Run<'_, '_>) -> Result<Reduction, OpError> {
    let input = run.input(0)?;
    let axes = AxisSet::listed(&run.input(1)?, input.dims.len())?;
    Ok(Reduction::new(input.dims, |axis| axes.has(axis)))
}

/// Folds float32, and float16 in float32 with one rounding at the end.
pub(super) fn fold_float(
    run: &mut Run<'_, '_>,
    start: f32,
    step: impl Fn(f32, f32) -> f32 + Copy,
) -> Result<(), OpError> {
    let reduction = reduction(run)?;
    let input = run.input(0)?;
    let Run { outputs, scratch, .. } = run;
    let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    if out.info.ty == OperandType::TensorFloat32 {
        let results = out.f32_mut()?;
        results.fill(start);
        reduction.fold(input.f32()?, results, step);
        return Ok(());
    }
    let out = out.f16_mut()?;
    let results = scratch.f32(out.len());
    results.fill(start);
    reduction.fold(input.f16()?, results, |sum, x: f16| step(sum, x.to_f32()));
    for (out, result) in out.iter_mut().zip(results) {
        *out = f16::from_f32(*result);
    }
    Ok(())
}

/// Folds unsigned or signed bytes.
pub(super) fn fold_bytes(
    run: &mut Run<'_, '_>,
    unsigned: (u8, impl Fn(u8, u8) -> u8 + Copy),
    signed: (i8, impl Fn(i8, i8) -> i8 + Copy),
) -> Result<(), OpError> {
    let reduction = reduction(run)?;
    let input = run.input(0)?;
    let out = run.output(0)?;
    if out.info.ty == OperandType::TensorQuant8AsymmSigned {
        let results = out.i8_mut()?;
        results.fill(signed.0);
        reduction.fold(input.i8()?, results, signed.1);
    } else {
        let results = out.u8_mut()?;
        results.fill(unsigned.0);
        reduction.fold(input.u8()?, results, unsigned.1);
    }
    Ok(())
}

/// Whether the values of this run are stored in single bytes.
pub(super) fn is_bytes(run: &Run<'_, '_>) -> Result<bool, OpError> {
    Ok(run.input(0)?.info.ty.element_bytes() == Some(1))
}
