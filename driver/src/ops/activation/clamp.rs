//! What RELU, RELU1 and RELU6 share: values held between two bounds.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounds lie in the range of the type they are narrowed to"
)]

use burst_hal::FusedActivation;
use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::OperandType;
use half::f16;

use crate::OpError;
use crate::kernels::lut::{self, Table};
use crate::kernels::quant::{Multiplier, activation_range, activation_range_f32};
use crate::op::types::{TF16, TF32, TQ8, TQ8S};
use crate::op::{Form, Inferred, Prepared, Run, Signature};
use crate::ops::activation::{MAX_RANK, unary};
use crate::ops::quantization::rules::{means_the_same, quant8};
use crate::tensor::{Args, TensorInfo};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32], &[TF32]),
    Form::new(V1_0, &[TQ8], &[TQ8]),
    Form::new(V1_2, &[TF16], &[TF16]),
    Form::new(V1_3, &[TQ8S], &[TQ8S]),
];

pub(super) fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

/// A scale that cannot be reached is found here, and so by whoever asks what is supported.
pub(super) fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let (input, output) = (args.input(0)?.info, unary::output_info(args)?);
    if quant8(input).is_some() && !means_the_same(input, output) {
        rescaling(input, output)?;
    }
    unary::infer(args, MAX_RANK)
}

pub(super) fn execute(run: &mut Run<'_, '_>, activation: FusedActivation) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (out, mut runner) = run.output_and_runner()?;
    let (low, high) = activation_range_f32(activation);
    match out.info.ty {
        OperandType::TensorFloat32 => {
            runner.map(input.f32()?, out.f32_mut()?, 1, |x| clamp(x, low, high))
        }
        OperandType::TensorFloat16 => {
            let half = |x: f16| f16::from_f32(clamp(x.to_f32(), low, high));
            runner.map(input.f16()?, out.f16_mut()?, 1, half)
        }
        _ if !means_the_same(input.info, out.info) => {
            let table = table(input.info, out.info, activation)?;
            unary::look_up(&table, input.u8()?, out.u8_mut()?, &mut runner)
        }
        OperandType::TensorQuant8AsymmSigned => {
            let (low, high) = stored_bounds(out.info, activation);
            let (low, high) = (low as i8, high as i8);
            runner.map(input.i8()?, out.i8_mut()?, 1, |x| x.max(low).min(high))
        }
        _ => {
            let (low, high) = stored_bounds(out.info, activation);
            let (low, high) = (low as u8, high as u8);
            runner.map(input.u8()?, out.u8_mut()?, 1, |x| x.max(low).min(high))
        }
    }
}

/// A table where the output has a scale of its own; everything else is fast as it is.
pub(super) fn prepare(
    args: &Args<'_>,
    table: unary::MakeTable,
) -> Result<Option<Prepared>, OpError> {
    if means_the_same(args.input(0)?.info, unary::output_info(args)?) {
        return Ok(None);
    }
    unary::prepare(args, table)
}

/// Clamping to an output of another scale. NNAPI's operations keep the scale; TFLite's rescale,
/// and models are converted that way, so both work here.
pub(super) fn table(
    input: &TensorInfo,
    output: &TensorInfo,
    activation: FusedActivation,
) -> Result<Table, OpError> {
    let (Some(from), Some(to)) = (quant8(input), quant8(output)) else {
        return Err(OpError::Type { want: "an 8-bit asymmetric type", got: output.ty });
    };
    let rescale = rescaling(input, output)?;
    let (low, high) = stored_bounds(output, activation);
    Ok(lut::table(from, to, |stored| {
        let steps = rescale.apply(stored - from.zero_point);
        steps.saturating_add(to.zero_point).max(low).min(high)
    }))
}

/// From steps of the input to those of the output.
fn rescaling(input: &TensorInfo, output: &TensorInfo) -> Result<Multiplier, OpError> {
    Multiplier::new(f64::from(input.scale / output.scale))
}

/// The bounds as stored values, held in the type's range on both sides.
fn stored_bounds(info: &TensorInfo, activation: FusedActivation) -> (i32, i32) {
    let (low, high) = activation_range(activation, info.ty, info.scale, info.zero_point);
    let (first, last) = crate::kernels::quant::type_range(info.ty);
    (low.clamp(first, last), high.clamp(first, last))
}

/// `x` held between two bounds; NaN stays NaN.
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}
