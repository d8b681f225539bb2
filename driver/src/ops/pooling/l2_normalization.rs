//! L2_NORMALIZATION: each lane along an axis divided by its Euclidean length.
//!
//! Inputs: a tensor of up to 4 dimensions, an optional INT32 scalar (the axis; default: the last).
//! Output: the same shape; quantized types have scale 1/128 and the middle value as zero point.
//!
//! Source: NNAPI `types.hal`, `OperationType::L2_NORMALIZATION`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are clamped to their 8-bit type before they are narrowed"
)]

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{HalVersion, OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::kernels::lanes::{Lane, Lanes};
use crate::kernels::norm::{inverse_sqrt, l2_lane};
use crate::kernels::quant::Multiplier;
use crate::op::types::{I32, TF16, TF32, TQ8, TQ8S};
use crate::op::{
    Checkpoints, Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::Axis;
use crate::ops::pooling::{MAX_RANK, expect_lane_rank};
use crate::ops::quantization::rules::expect_fixed;
use crate::ops::rank_limit::expect_rank;
use crate::tensor::Args;

/// The definition of L2_NORMALIZATION.
pub static DEF: OpDef = OpDef {
    code: OperationType::L2Normalization,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const COUNTS: &[(usize, HalVersion)] = &[(1, V1_0), (2, V1_2)];

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, I32], &[TF32]).counts(COUNTS),
    Form::new(V1_2, &[TF16, I32], &[TF16]).counts(COUNTS),
    Form::new(V1_2, &[TQ8, I32], &[TQ8]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, I32], &[TQ8S]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    expect_lane_rank(signature)
}

fn parse(operands: &dyn Operands) -> Result<Axis, OpError> {
    Axis::optional(operands, 1)
}

fn infer(args: &Args<'_>, axis: Parsed<'_, Axis>) -> Result<Inferred, OpError> {
    if let Some((output, _)) = args.outputs.first() {
        expect_fixed(output, 1.0 / 128.0, 128)?;
    }
    let dims = args.dims(0)?;
    expect_rank(dims, MAX_RANK)?;
    axis?.position(dims.len())?;
    Ok(Inferred::one(dims))
}

fn execute(run: &mut Run<'_, '_>, axis: &Axis) -> Result<(), OpError> {
    let input = run.input(0)?;
    let lanes = Lanes::new(input.dims, axis.position(input.dims.len())?);
    let Run { outputs, scratch, stop, .. } = run;
    let mut checkpoints = stop.checkpoints();
    let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    let zero_point = input.info.zero_point;
    match out.info.ty {
        OperandType::TensorFloat32 => {
            let work = (scratch.f32(2 * lanes.len)?, checkpoints);
            lanes.map(input.f32()?, out.f32_mut()?, work, (|x| x, |x| x), l2_lane)
        }
        OperandType::TensorFloat16 => {
            let work = (scratch.f32(2 * lanes.len)?, checkpoints);
            let convert = (f16::to_f32, f16::from_f32);
            lanes.map(input.f16()?, out.f16_mut()?, work, convert, l2_lane)
        }
        OperandType::TensorQuant8AsymmSigned => {
            let (input, out) = (input.i8()?, out.i8_mut()?);
            lanes.for_each(|lane| {
                let away = |at: usize| i32::from(input[at]) - zero_point;
                // Times 128 by the shift: the signed kernel of the reference rounds once less.
                let Multiplier { multiplier, shift } =
                    inverse_length(lane, away, &mut checkpoints)?;
                let factor = Multiplier { multiplier, shift: shift + 7 };
                lane.for_each(&mut checkpoints, |at| {
                    out[at] = factor.apply(away(at)).clamp(-128, 127) as i8;
                })
            })
        }
        _ => {
            let (input, out) = (input.u8()?, out.u8_mut()?);
            lanes.for_each(|lane| {
                let away = |at: usize| i32::from(input[at]) - zero_point;
                let factor = inverse_length(lane, away, &mut checkpoints)?;
                lane.for_each(&mut checkpoints, |at| {
                    out[at] = (128 + factor.apply(128 * away(at))).clamp(0, 255) as u8;
                })
            })
        }
    }
}

/// One over the length of a lane of integers. A lane too long for 32 bits has the largest length.
fn inverse_length(
    lane: Lane,
    away: impl Fn(usize) -> i32,
    checkpoints: &mut Checkpoints<'_>,
) -> Result<Multiplier, OpError> {
    let mut square = 0_i64;
    lane.for_each(checkpoints, |at| square += i64::from(away(at) * away(at)))?;
    Ok(inverse_sqrt(i32::try_from(square).unwrap_or(i32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    #[test]
    fn along_the_last_axis_and_another() {
        let input = Tensor::f32(&[1, 1, 2, 2], &[3.0, 4.0, -4.0, 3.0]);
        let out = || Tensor::output(OperandType::TensorFloat32);
        let got = run_one(&DEF, std::slice::from_ref(&input), out()).unwrap();
        assert_eq!(got.values::<f32>(), [0.6, 0.8, -0.8, 0.6]);
        let got = run_one(&DEF, &[input, Tensor::scalar_i32(-2)], out()).unwrap();
        assert_eq!(got.values::<f32>(), [0.6, 0.8, -0.8, 0.6]);
        let half = Tensor::f16(&[2], &[0.0, -2.0]);
        let got = run_one(&DEF, &[half], Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(got.halves(), [0.0, -1.0]);
    }

    /// Division by zero: a lane of zeros stays zero.
    #[test]
    fn zeros_stay_zeros() {
        let out = Tensor::output(OperandType::TensorFloat32);
        let got = run_one(&DEF, &[Tensor::f32(&[2], &[0.0, 0.0])], out).unwrap();
        assert_eq!(got.values::<f32>(), [0.0, 0.0]);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0 / 128.0, 128);
        let got = run_one(&DEF, &[Tensor::u8(&[2], &[7, 7], 0.5, 7)], out).unwrap();
        assert_eq!(got.values::<u8>(), [128, 128]);
    }

    #[test]
    fn quantized_lanes() {
        // 30 and 40 steps: 0.6 and 0.8 of 128 are 76.8 and 102.4.
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0 / 128.0, 128);
        let got = run_one(&DEF, &[Tensor::u8(&[2], &[130, 60], 0.1, 100)], out).unwrap();
        assert_eq!(got.values::<u8>(), [205, 26]);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(1.0 / 128.0, 0);
        let got = run_one(&DEF, &[Tensor::i8(&[2], &[30, -40], 0.1, 0)], out).unwrap();
        assert_eq!(got.values::<i8>(), [77, -102]);
    }

    #[test]
    fn output_scale_and_axis_are_checked() {
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0 / 256.0, 128);
        assert!(run_one(&DEF, &[Tensor::u8(&[1], &[1], 0.1, 0)], out).is_err());
        let out = Tensor::output(OperandType::TensorFloat32);
        let inputs = [Tensor::f32(&[1], &[1.0]), Tensor::scalar_i32(1)];
        assert!(run_one(&DEF, &inputs, out).is_err());
        let types = [OperandType::TensorQuant8Asymm];
        assert!(!has_form(&DEF, HalVersion::V1_1, &types, &types));
    }
}
