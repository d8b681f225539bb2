//! What the REDUCE operations share: axes in a list, a BOOL scalar that keeps them with size 1.

use burst_hal::OperandType;
use half::f16;

use crate::OpError;
use crate::kernels::reduce::Reduction;
use crate::op::{Inferred, Parsed, Run, Signature};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::ops::reduce::{MAX_RANK, ReduceAttributes, reduced_shape};
use crate::tensor::Args;

/// Forms with a list of axes: only the type of the values differs.
pub(super) fn validate(
    signature: &Signature<'_>,
    forms: &[crate::op::Form],
) -> Result<(), crate::SignatureError> {
    signature.expect_forms(forms)
}

/// The input's shape without the axes. Stored values are compared as they are, so that the output
/// must mean the same as the input.
pub(super) fn infer(
    args: &Args<'_>,
    attributes: Parsed<'_, ReduceAttributes>,
) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = args.dims(0)?;
    let ReduceAttributes { axes, keep } = *attributes?;
    Ok(Inferred::one(reduced_shape(dims, MAX_RANK, axes.of(dims.len())?, keep)?))
}

/// How the axes fold the input of this run.
fn reduction(run: &Run<'_, '_>, attributes: &ReduceAttributes) -> Result<Reduction, OpError> {
    let input = run.input(0)?;
    let axes = attributes.axes.of(input.dims.len())?;
    Ok(Reduction::new(input.dims, |axis| axes.has(axis)))
}

/// Folds float32, and float16 in float32 with one rounding at the end.
pub(super) fn fold_float(
    run: &mut Run<'_, '_>,
    attributes: &ReduceAttributes,
    start: f32,
    step: impl Fn(f32, f32) -> f32 + Copy,
) -> Result<(), OpError> {
    let reduction = reduction(run, attributes)?;
    let input = run.input(0)?;
    let Run { outputs, scratch, stop, .. } = run;
    let stop = *stop;
    let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    if out.info.ty == OperandType::TensorFloat32 {
        let results = out.f32_mut()?;
        results.fill(start);
        return reduction.fold(input.f32()?, results, stop, step);
    }
    let out = out.f16_mut()?;
    let results = scratch.f32(out.len())?;
    results.fill(start);
    reduction.fold(input.f16()?, results, stop, |sum, x: f16| step(sum, x.to_f32()))?;
    for (out, result) in out.iter_mut().zip(results) {
        *out = f16::from_f32(*result);
    }
    Ok(())
}

/// Folds unsigned or signed bytes.
pub(super) fn fold_bytes(
    run: &mut Run<'_, '_>,
    attributes: &ReduceAttributes,
    unsigned: (u8, impl Fn(u8, u8) -> u8 + Copy),
    signed: (i8, impl Fn(i8, i8) -> i8 + Copy),
) -> Result<(), OpError> {
    let reduction = reduction(run, attributes)?;
    let (input, stop) = (run.input(0)?, run.stop);
    let out = run.output(0)?;
    if out.info.ty == OperandType::TensorQuant8AsymmSigned {
        let results = out.i8_mut()?;
        results.fill(signed.0);
        reduction.fold(input.i8()?, results, stop, signed.1)
    } else {
        let results = out.u8_mut()?;
        results.fill(unsigned.0);
        reduction.fold(input.u8()?, results, stop, unsigned.1)
    }
}

/// Whether the values of this run are stored in single bytes.
pub(super) fn is_bytes(run: &Run<'_, '_>) -> Result<bool, OpError> {
    Ok(run.input(0)?.info.ty.element_bytes() == Some(1))
}
