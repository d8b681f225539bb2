//! PRELU: `x` where it is not negative, `alpha * x` below.
//!
//! Inputs: two tensors of one type that broadcast, the values and `alpha`. Output: a tensor of the
//! broadcast shape. Quantized: `x` less its zero point is rescaled by `x.scale / out.scale`, or its
//! product with `alpha` less its zero point by `x.scale * alpha.scale / out.scale`.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::PRELU`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "stored values are clamped to their type before they are narrowed"
)]

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::kernels::quant::{Multiplier, type_range};
use crate::op::types::{TF16, TF32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::ops::broadcast::{Side, broadcast_shape, zip};
use crate::ops::quantization::rules::quant8;
use crate::tensor::{Args, TensorInfo};
use crate::{OpError, SignatureError};

/// The definition of PRELU.
pub static DEF: OpDef = OpDef {
    code: OperationType::Prelu,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TF32], &[TF32]),
    Form::new(V1_2, &[TF16, TF16], &[TF16]),
    Form::new(V1_2, &[TQ8, TQ8], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TQ8S], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let (out, _) = args.outputs.first().ok_or(OpError::Arity { want: 1, got: 0 })?;
    if quant8(out).is_some() {
        // Scales that cannot be computed with are no answer to whoever asks what is supported.
        QuantizedPrelu::new(args.input(0)?.info, args.input(1)?.info, out)?;
    }
    Ok(Inferred::one(broadcast_shape(args.dims(0)?, args.dims(1)?)?))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let (x, alpha) = (run.input(0)?, run.input(1)?);
    let (out, mut runner) = run.output_and_runner()?;
    let (low, high) = type_range(out.info.ty);
    match out.info.ty {
        OperandType::TensorFloat32 => {
            let x = Side { values: x.f32()?, dims: x.dims };
            let alpha = Side { values: alpha.f32()?, dims: alpha.dims };
            zip(&mut runner, out.f32_mut()?, x, alpha, prelu)
        }
        OperandType::TensorFloat16 => {
            let x = Side { values: x.f16()?, dims: x.dims };
            let alpha = Side { values: alpha.f16()?, dims: alpha.dims };
            zip(&mut runner, out.f16_mut()?, x, alpha, |x: f16, alpha: f16| {
                f16::from_f32(prelu(x.to_f32(), alpha.to_f32()))
            })
        }
        OperandType::TensorQuant8Asymm => {
            let rule = QuantizedPrelu::new(x.info, alpha.info, out.info)?;
            let x = Side { values: x.u8()?, dims: x.dims };
            let alpha = Side { values: alpha.u8()?, dims: alpha.dims };
            zip(&mut runner, out.u8_mut()?, x, alpha, |x, alpha| {
                rule.apply(x.into(), alpha.into()).clamp(low, high) as u8
            })
        }
        OperandType::TensorQuant8AsymmSigned => {
            let rule = QuantizedPrelu::new(x.info, alpha.info, out.info)?;
            let x = Side { values: x.i8()?, dims: x.dims };
            let alpha = Side { values: alpha.i8()?, dims: alpha.dims };
            zip(&mut runner, out.i8_mut()?, x, alpha, |x, alpha| {
                rule.apply(x.into(), alpha.into()).clamp(low, high) as i8
            })
        }
        got => Err(OpError::Type { want: "a type of PRELU", got }),
    }
}

fn prelu(x: f32, alpha: f32) -> f32 {
    if x >= 0.0 { x } else { alpha * x }
}

struct QuantizedPrelu {
    x_zero_point: i32,
    alpha_zero_point: i32,
    out_zero_point: i32,
    positive: Multiplier,
    negative: Multiplier,
}

impl QuantizedPrelu {
    fn new(x: &TensorInfo, alpha: &TensorInfo, out: &TensorInfo) -> Result<Self, OpError> {
        // The reference computes the first quotient in `f32`, and the product of the second.
        let positive = f64::from(x.scale / out.scale);
        let negative = f64::from(x.scale * alpha.scale) / f64::from(out.scale);
        Ok(QuantizedPrelu {
            x_zero_point: x.zero_point,
            alpha_zero_point: alpha.zero_point,
            out_zero_point: out.zero_point,
            positive: Multiplier::new(positive)?,
            negative: Multiplier::new(negative)?,
        })
    }

    #[inline]
    fn apply(&self, x: i32, alpha: i32) -> i32 {
        let x = x - self.x_zero_point;
        let scaled = if x >= 0 {
            self.positive.apply(x)
        } else {
            self.negative.apply(x * (alpha - self.alpha_zero_point))
        };
        scaled.saturating_add(self.out_zero_point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    #[test]
    fn alpha_broadcasts() {
        let (x, alpha) = ([1.0, -2.0, -4.0, 8.0], [0.5, 0.25]);
        let want = [1.0, -0.5, -2.0, 8.0];
        let got = run_one(
            &DEF,
            &[Tensor::f32(&[2, 2], &x), Tensor::f32(&[2], &alpha)],
            Tensor::output(OperandType::TensorFloat32),
        );
        assert_eq!(got.unwrap().values::<f32>(), want);
        let got = run_one(
            &DEF,
            &[Tensor::f16(&[2, 2], &x), Tensor::f16(&[2], &alpha)],
            Tensor::output(OperandType::TensorFloat16),
        );
        assert_eq!(got.unwrap().halves(), want);
    }

    /// Scales 1/2, 1/4 and 1/4: doubled above zero, halved steps of the product below.
    #[test]
    fn quantized_values_have_a_scale_on_each_side() {
        let got = run_one(
            &DEF,
            &[
                //                  2    0    -2    -3    127 (does not fit)
                Tensor::u8(&[5], &[130, 128, 126, 125, 255], 0.5, 128),
                Tensor::u8(&[5], &[0, 0, 8, 5, 0], 0.25, 4),
            ],
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 100),
        );
        // 2 * 2, 0, -2 * 4 / 2, and -3 * 1 / 2: the high product rounds a tie upwards, to -1.
        assert_eq!(got.unwrap().values::<u8>(), [104, 100, 96, 99, 255]);
        let got = run_one(
            &DEF,
            &[
                Tensor::i8(&[5], &[2, 0, -2, -3, 127], 0.5, 0),
                Tensor::i8(&[5], &[-128, -128, -120, -123, -128], 0.25, -124),
            ],
            Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.25, -28),
        );
        assert_eq!(got.unwrap().values::<i8>(), [-24, -28, -32, -29, 127]);
    }

    /// Where `alpha` is negative too, the product is positive and can be too large; the result is
    /// held at the end of the type instead of being cut to its low byte.
    #[test]
    fn a_result_beyond_the_type_is_held_at_its_end() {
        let got = run_one(
            &DEF,
            &[Tensor::u8(&[1], &[0], 1.0, 255), Tensor::u8(&[1], &[0], 1.0, 255)],
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0, 0),
        );
        assert_eq!(got.unwrap().values::<u8>(), [255]);
    }

    #[test]
    fn scales_too_far_apart_are_an_error_and_no_overflow() {
        let got = run_one(
            &DEF,
            &[Tensor::u8(&[1], &[9], 1e30, 0), Tensor::u8(&[1], &[0], 1.0, 0)],
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(1e-30, 0),
        );
        assert!(got.is_err());
    }
}
