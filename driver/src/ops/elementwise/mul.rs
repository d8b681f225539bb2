//! MUL: the product of two tensors that broadcast, with a fused activation.
//!
//! Inputs: two tensors of one type, an INT32 scalar (the activation). Output: a tensor of the
//! broadcast shape. Quantized: the product of the stored values less their zero points, rescaled by
//! `a.scale * b.scale / out.scale`, which must be less than 1 for values without a sign. For those with one nothing
//! is said of it, and any that has a fixed-point form will do; products beyond 32 bits saturate.
//!
//! Source: NNAPI `types.hal`, `OperationType::MUL`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{FusedActivation, OperandType, OperationType};

use super::arithmetic::{self, Quantized};
use crate::kernels::quant::Multiplier;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Parsed, Run, Signature, WithAttributes};
use crate::ops::quantization::rules::quant8;
use crate::tensor::{Args, TensorInfo};
use crate::{OpError, SignatureError};

/// The definition of MUL.
pub static DEF: OpDef = OpDef {
    code: OperationType::Mul,
    validate,
    body: &WithAttributes { parse: arithmetic::parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, TF32, I32], &[TF32]),
    Form::new(V1_0, &[TQ8, TQ8, I32], &[TQ8]),
    Form::new(V1_2, &[TF16, TF16, I32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TQ8S, I32], &[TQ8S]),
    Form::new(V1_3, &[TI32, TI32, I32], &[TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)?;
    let [a, b] = [signature.input(0), signature.input(1)];
    let (Some(a), Some(b), Some(out)) = (a, b, signature.output(0)) else {
        return Err(signature.no_form());
    };
    signature.rule(
        out.ty != OperandType::TensorQuant8Asymm || out.scale > a.scale * b.scale,
        "the output scale must be greater than the product of the input scales",
    )
}

/// A factor that has no fixed-point form is found here, and so by whoever asks what is supported.
fn infer(args: &Args<'_>, activation: Parsed<'_, FusedActivation>) -> Result<Inferred, OpError> {
    let (a, b) = (args.input(0)?.info, args.input(1)?.info);
    let (out, _) = args.outputs.first().ok_or(OpError::Arity { want: 1, got: 0 })?;
    if quant8(out).is_some() {
        QuantizedProduct::new(a, b, out)?;
    }
    arithmetic::infer(args, activation)
}

fn execute(run: &mut Run<'_, '_>, activation: &FusedActivation) -> Result<(), OpError> {
    // Products that overflow INT32 wrap, as sums do.
    arithmetic::execute(run, *activation, |a, b| a * b, i32::wrapping_mul, QuantizedProduct::new)
}

/// The rule of quantized products.
struct QuantizedProduct {
    a_zero_point: i32,
    b_zero_point: i32,
    out_zero_point: i32,
    multiplier: Multiplier,
}

impl QuantizedProduct {
    fn new(a: &TensorInfo, b: &TensorInfo, out: &TensorInfo) -> Result<Self, OpError> {
        // The reference multiplies the scales in `f32` and divides in `f64`.
        let real = f64::from(a.scale * b.scale) / f64::from(out.scale);
        Ok(QuantizedProduct {
            a_zero_point: a.zero_point,
            b_zero_point: b.zero_point,
            out_zero_point: out.zero_point,
            multiplier: Multiplier::new(real)?,
        })
    }
}

impl Quantized for QuantizedProduct {
    #[inline]
    fn combine(&self, a: i32, b: i32) -> i32 {
        // Each factor has at most 9 bits.
        let product = (a - self.a_zero_point) * (b - self.b_zero_point);
        self.multiplier.apply(product).saturating_add(self.out_zero_point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, infer, run_one, validate};

    fn mul(a: Tensor, b: Tensor, activation: i32, out: Tensor) -> Tensor {
        run_one(&DEF, &[a, b, Tensor::scalar_i32(activation)], out).unwrap()
    }

    #[test]
    fn floats_broadcast_and_are_clamped() {
        let got = mul(
            Tensor::f32(&[2, 2], &[1.0, 2.0, -3.0, 4.0]),
            Tensor::f32(&[1, 2], &[2.0, 4.0]),
            3,
            Tensor::output(OperandType::TensorFloat32),
        );
        assert_eq!(got.values::<f32>(), [2.0, 6.0, 0.0, 6.0]);
    }

    #[test]
    fn halves_are_rounded_once() {
        let got = mul(
            Tensor::f16(&[1], &[1.0 + 1.0 / 1024.0]),
            Tensor::f16(&[1], &[1.0 + 1.0 / 1024.0]),
            0,
            Tensor::output(OperandType::TensorFloat16),
        );
        // 1 + 2/1024 + 1/1024^2: the last part is less than half of a step of 1/1024.
        assert_eq!(got.halves(), [1.0 + 2.0 / 1024.0]);
    }

    #[test]
    fn integers_wrap() {
        let got = mul(
            Tensor::i32(&[3], &[1 << 30, -7, i32::MIN]),
            Tensor::i32(&[3], &[4, 6, -1]),
            0,
            Tensor::output(OperandType::TensorInt32),
        );
        assert_eq!(got.values::<i32>(), [0, -42, i32::MIN]);
    }

    /// `0.5 * 0.5 / 1`: four steps of the product are one step of the output, as `2^30 / 2^31` and a
    /// shift by one. Each of the two rounds, so that a quarter becomes a half and then 1.
    #[test]
    fn quantized_products_are_rounded_twice() {
        let out = |activation| {
            mul(
                // 8/4  2/4  -2/4  1/4  127*255/4
                Tensor::u8(&[5], &[132, 130, 126, 129, 255], 0.5, 128),
                Tensor::u8(&[5], &[2, 1, 1, 1, 255], 0.5, 0),
                activation,
                Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0, 3),
            )
            .values::<u8>()
        };
        assert_eq!(out(0), [5, 4, 2, 4, 255]);
        assert_eq!(out(1), [5, 4, 3, 4, 255]);
        assert_eq!(out(2), [4, 4, 2, 4, 4]);
    }

    #[test]
    fn signed_products() {
        let got = mul(
            Tensor::i8(&[3], &[4, -2, 127], 0.5, 0),
            Tensor::i8(&[3], &[-126, -127, 127], 0.5, -128),
            0,
            Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(1.0, -100),
        );
        // 4 * 2 / 4, -2 * 1 / 4, 127 * 255 / 4
        assert_eq!(got.values::<i8>(), [-98, -101, 127]);
    }

    /// The specification demands it of values without a sign, and of others says nothing.
    #[test]
    fn an_unsigned_output_scale_must_exceed_the_product_of_the_input_scales() {
        for (ty, scale, fits) in [
            (OperandType::TensorQuant8Asymm, 0.26, true),
            (OperandType::TensorQuant8Asymm, 0.25, false),
            (OperandType::TensorQuant8AsymmSigned, 0.26, true),
            (OperandType::TensorQuant8AsymmSigned, 0.25, true),
            (OperandType::TensorQuant8AsymmSigned, 1e-6, true),
        ] {
            let input = Tensor::output(ty).quantized(0.5, 0);
            let inputs = [input.clone(), input, Tensor::scalar_i32(0)];
            let verdict = validate(&DEF, V1_3, &inputs, &[Tensor::output(ty).quantized(scale, 0)]);
            assert_eq!(verdict.is_ok(), fits, "{ty} {scale}");
        }
    }

    /// Factors of 1, of 4 and of 2^20: what does not fit 32 bits saturates, and with it the stored value.
    #[test]
    fn signed_products_grow_where_the_output_scale_is_small() {
        for (scale, want) in [
            (0.25, [6, 127, -128, 0, -3]),
            (0.0625, [24, 127, -128, 0, -12]),
            (2f32.powi(-22), [127, 127, -128, 0, -128]),
        ] {
            let got = mul(
                Tensor::i8(&[5], &[2, 127, -128, 0, 3], 0.5, 0),
                Tensor::i8(&[5], &[3, 127, 127, -128, -1], 0.5, 0),
                0,
                Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(scale, 0),
            );
            assert_eq!(got.values::<i8>(), want, "{scale}");
        }
    }

    /// What cannot be computed is said while planning.
    #[test]
    fn a_factor_without_a_fixed_point_form_is_refused() {
        let input = Tensor::i8(&[1], &[1], 1.0, 0);
        let inputs = [input.clone(), input, Tensor::scalar_i32(0)];
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(1e-10, 0);
        assert!(infer(&DEF, &inputs, &[out]).is_err());
    }
}
