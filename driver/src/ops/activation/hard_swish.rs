//! HARD_SWISH: `x * max(0, min(6, x + 3)) / 6`.
//!
//! Input: a tensor. Output: the same shape; a quantized output has a scale of its own, above 1/128
//! of the input's.
//!
//! Source: NNAPI `types.hal`, `OperationType::HARD_SWISH`.

#![allow(
    clippy::cast_possible_truncation,
    reason = "16-bit fixed point; each cast follows a clamp or keeps a value that fits"
)]

use burst_hal::HalVersion::V1_3;
use burst_hal::OperationType;

use crate::OpError;
use crate::kernels::lut::{self, Quant8, Table};
use crate::kernels::quant::{Multiplier, rounding_divide_by_power_of_two};
use crate::op::types::{TF16, TF32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, PrepareContext, Prepared, Run, Signature};
use crate::ops::activation::unary;
use crate::ops::attributes;
use crate::ops::quantization::rules::quant8;
use crate::tensor::{Args, TensorInfo};

/// The definition of HARD_SWISH.
pub static DEF: OpDef = OpDef {
    code: OperationType::HardSwish,
    validate,
    body: &Plain { infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_3, &[TF32], &[TF32]),
    Form::new(V1_3, &[TF16], &[TF16]),
    Form::new(V1_3, &[TQ8], &[TQ8]),
    Form::new(V1_3, &[TQ8S], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    if let (Some(input), Some(output)) =
        (quant8(args.input(0)?.info), quant8(unary::output_info(args)?))
    {
        Fixed::new(input, output)?;
    }
    unary::infer(args, attributes::MAX_RANK)
}

fn prepare(args: &Args<'_>, _: &PrepareContext<'_>) -> Result<Option<Prepared>, OpError> {
    unary::prepare(args, table)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0, table)
}

fn table(input: &TensorInfo, output: &TensorInfo) -> Result<Table, OpError> {
    let (Some(from), Some(to)) = (quant8(input), quant8(output)) else {
        return Err(OpError::Type { want: "an 8-bit asymmetric type", got: input.ty });
    };
    let fixed = Fixed::new(from, to)?;
    Ok(lut::table(from, to, |stored| fixed.apply(stored)))
}

/// A real factor as a 16-bit fraction and a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Factor {
    fraction: i16,
    exponent: i32,
}

impl Factor {
    fn new(real: f32) -> Result<Self, OpError> {
        let Multiplier { multiplier, shift } = Multiplier::new(f64::from(real))?;
        // Rounded to the upper half; the largest fractions would round to 1 and stay below.
        let fraction = ((i64::from(multiplier) + (1 << 15)) >> 16).min(i64::from(i16::MAX)) as i16;
        Ok(Factor { fraction, exponent: shift })
    }
}

/// The function in 16-bit fixed point, as the answers of quantized models are defined by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fixed {
    input_zero: i32,
    output_zero: i32,
    /// From 128ths of input steps to output steps.
    to_output: Factor,
    /// From 128ths of input steps to 3 / 2^15, in which `x + 3` covers the 16-bit range.
    to_thirds: Factor,
}

impl Fixed {
    fn new(input: Quant8, output: Quant8) -> Result<Self, OpError> {
        let fine = 1.0 / 128.0 * input.scale;
        let to_output = Factor::new(fine / output.scale)?;
        if to_output.exponent > 0 {
            return Err(OpError::Range { what: "input scale over 128 times the output scale" });
        }
        let to_thirds = Factor::new(fine / (3.0 / 32768.0))?;
        let (input_zero, output_zero) = (input.zero_point, output.zero_point);
        Ok(Fixed { input_zero, output_zero, to_output, to_thirds })
    }

    fn apply(&self, stored: i32) -> i32 {
        let fine = ((stored - self.input_zero) * 128) as i16;
        let unscaled = high_mul(fine, self.to_output.fraction, 1 << 14);
        // `x / 3`, saturating, then `(x / 3 + 1) / 2`: 0 to 1 where x goes from -3 to 3.
        let Factor { fraction, exponent } = self.to_thirds;
        let mut thirds = fine;
        if exponent > 0 {
            // The last bit is shifted after the product, which keeps it from saturating early.
            thirds = shift_left(thirds, exponent - 1);
        }
        thirds = high_mul(thirds, fraction, 1 << 14);
        if exponent > 0 {
            thirds = shift_left(thirds, 1);
        } else if exponent < 0 {
            thirds = rounding_divide_by_power_of_two(i32::from(thirds), (-exponent).min(31)) as i16;
        }
        let gate = ((i32::from(thirds) + (1 << 15)) >> 1) as i16;
        let product = high_mul(gate, unscaled, 0);
        let exponent = (-self.to_output.exponent).min(31);
        rounding_divide_by_power_of_two(i32::from(product), exponent) + self.output_zero
    }
}

/// The high half of twice a product, saturating; `nudge` rounds it.
fn high_mul(a: i16, b: i16, nudge: i32) -> i16 {
    if a == i16::MIN && b == i16::MIN {
        return i16::MAX;
    }
    let product = i32::from(a) * i32::from(b);
    let nudge = if product < 0 && nudge > 0 { 1 - nudge } else { nudge };
    ((product + nudge) / (1 << 15)) as i16
}

fn shift_left(x: i16, bits: i32) -> i16 {
    let wide = i64::from(x) << bits.clamp(0, 31);
    wide.clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};
    use burst_hal::OperandType;

    #[test]
    fn floats() {
        let values = [-4.0, -3.0, -1.5, 0.0, 1.5, 3.0, 4.0];
        let want = [0.0, 0.0, -0.375, 0.0, 1.125, 3.0, 4.0];
        let out = Tensor::output(OperandType::TensorFloat32);
        let got = run_one(&DEF, &[Tensor::f32(&[7], &values)], out).unwrap();
        assert_eq!(got.values::<f32>(), want);
        let out = Tensor::output(OperandType::TensorFloat16);
        let got = run_one(&DEF, &[Tensor::f16(&[7], &values)], out).unwrap();
        assert_eq!(got.halves(), want);
    }

    #[test]
    fn quantized_values_follow_the_real_function() {
        for (input_scale, output_scale) in [(0.0625, 0.0625), (0.05, 0.03), (0.001, 0.0005)] {
            let input = Quant8 { signed: true, scale: input_scale, zero_point: -3 };
            let output = Quant8 { signed: true, scale: output_scale, zero_point: 5 };
            let fixed = Fixed::new(input, output).unwrap();
            for stored in -128i8..=127 {
                let x = input_scale * (f32::from(stored) + 3.0);
                let real = x * (x + 3.0).clamp(0.0, 6.0) / 6.0;
                let want = (real / output_scale).round() as i32 + 5;
                let got = fixed.apply(i32::from(stored));
                let (want, got) = (want.clamp(-128, 127), got.clamp(-128, 127));
                assert!((want - got).abs() <= 1, "{input_scale} {stored}: {got}, {want}");
            }
        }
    }

    /// Scale rule: input scale / (128 * output scale) must be below 1.
    #[test]
    fn the_output_scale_has_a_lower_bound() {
        let run = |scale: f32| {
            let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(scale, 0);
            run_one(&DEF, &[Tensor::u8(&[1], &[0], 1.0, 0)], out)
        };
        assert!(run(1.0 / 127.0).is_ok());
        assert!(run(1.0 / 128.0).is_err());
    }
}
