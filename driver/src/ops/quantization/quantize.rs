//! QUANTIZE: from real numbers to 8-bit steps.
//!
//! Input: a float tensor. Output: a quantized tensor of the same shape,
//! `zero point + round(x / scale)` held in the type's range; ties are rounded away from zero.
//!
//! Source: NNAPI `types.hal`, `OperationType::QUANTIZE`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are clamped to their 8-bit type before they are narrowed"
)]

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{OperandType, OperationType};

use crate::OpError;
use crate::kernels::lut::Quant8;
use crate::op::types::{TF16, TF32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::ops::quantization::rules::quant8;
use crate::tensor::{Args, TensorMut};
use crate::threads::TileRunner;

/// The definition of QUANTIZE.
pub static DEF: OpDef = OpDef {
    code: OperationType::Quantize,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] =
    &[Form::new(V1_2, &[TF32.or(TF16)], &[TQ8]), Form::new(V1_3, &[TF32.or(TF16)], &[TQ8S])];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(args.dims(0)?))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (out, mut runner) = run.output_and_runner()?;
    match input.info.ty {
        OperandType::TensorFloat32 => store(&mut runner, input.f32()?, out, |x| x),
        _ => store(&mut runner, input.f16()?, out, half::f16::to_f32),
    }
}

fn store<T: Copy + Sync>(
    runner: &mut TileRunner<'_>,
    input: &[T],
    out: &mut TensorMut<'_>,
    load: impl Fn(T) -> f32 + Sync,
) -> Result<(), OpError> {
    let quant = quant8(out.info)
        .ok_or(OpError::Type { want: "an 8-bit asymmetric type", got: out.info.ty })?;
    let out = out.u8_mut()?;
    if quant.signed {
        runner.map(input, out, 1, |x| (step(load(x), quant) as i8).cast_unsigned())
    } else {
        runner.map(input, out, 1, |x| step(load(x), quant) as u8)
    }
}

/// The stored value nearest to `x`. Not a number becomes the zero point.
#[inline]
fn step(x: f32, quant: Quant8) -> i32 {
    let (low, high) = quant.range();
    // The cast saturates; the sum then cannot leave 32 bits by much.
    round_away(x / quant.scale).saturating_add(quant.zero_point).max(low).min(high)
}

/// `x.round() as i32` without the call into the mathematics library that keeps a loop from being
/// turned into vector code: adding the largest number below one half and truncating gives the same.
#[inline]
fn round_away(x: f32) -> i32 {
    const BELOW_HALF: f32 = 0.499_999_97;
    (x + BELOW_HALF.copysign(x)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};
    use burst_hal::HalVersion;

    #[test]
    fn rounding_equals_the_library_function() {
        let near = [0.0, 0.5, 1.5, 2.5, 8_388_607.5, 8_388_608.0, 8_388_609.0, 16_777_215.0];
        let far = [1e9, 2_147_483_500.0, 2_147_483_648.0, 1e20, f32::INFINITY];
        for x in near.into_iter().chain(far) {
            for x in [x.next_down(), x, x.next_up()] {
                assert_eq!(round_away(x), x.round() as i32, "{x}");
                assert_eq!(round_away(-x), (-x).round() as i32, "-{x}");
            }
        }
        let mut x = -300.0f32;
        while x < 300.0 {
            assert_eq!(round_away(x), x.round() as i32, "{x}");
            x += 0.003;
        }
    }

    #[test]
    fn ties_go_away_from_zero_and_ends_are_clamped() {
        let values = [0.0, 0.25, -0.25, 0.24, 1.0, -1000.0, 1000.0, f32::NAN];
        let input = Tensor::f32(&[8], &values);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 10);
        let got = run_one(&DEF, std::slice::from_ref(&input), out).unwrap();
        assert_eq!(got.values::<u8>(), [10, 11, 9, 10, 12, 0, 255, 10]);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, -118);
        let got = run_one(&DEF, &[input], out).unwrap();
        assert_eq!(got.values::<i8>(), [-118, -117, -119, -118, -116, -128, 127, -118]);
        let half = Tensor::f16(&[2], &[1.0, -1.5]);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0, 100);
        assert_eq!(run_one(&DEF, &[half], out).unwrap().values::<u8>(), [101, 98]);
    }

    #[test]
    fn the_output_decides_the_version() {
        let inputs = [OperandType::TensorFloat32];
        let signed = [OperandType::TensorQuant8AsymmSigned];
        assert!(has_form(&DEF, HalVersion::V1_2, &inputs, &[OperandType::TensorQuant8Asymm]));
        assert!(!has_form(&DEF, HalVersion::V1_2, &inputs, &signed));
        assert!(has_form(&DEF, HalVersion::V1_3, &inputs, &signed));
    }
}
