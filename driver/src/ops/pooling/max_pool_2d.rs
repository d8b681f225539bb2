//! MAX_POOL_2D: the largest value of each window of a picture; padding does not count.
//!
//! Operands as for AVERAGE_POOL_2D. A NaN does not count, as in the comparisons of the reference: a window of NaN
//! alone gives the lowest value there is, minus infinity or where the activation begins.
//!
//! Source: NNAPI `types.hal`, `OperationType::MAX_POOL_2D`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are clamped to their 8-bit type before they are narrowed"
)]

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::kernels::pool::Rule;
use crate::kernels::quant::{activation_range, activation_range_f32};
use crate::op::types::{TF16, TF32, TQ8, TQ8S};
use crate::op::{Inferred, OpDef, OpTraits, Parsed, Run, Signature, WithAttributes};
use crate::ops::attributes::PoolAttributes;
use crate::ops::pooling::window::{self, Window, pool_shared};
use crate::scratch::Scratch;
use crate::tensor::Args;

/// The definition of MAX_POOL_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::MaxPool2d,
    validate,
    body: &WithAttributes { parse: PoolAttributes::parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    window::expect_forms(
        signature,
        &[(V1_0, &[TF32]), (V1_0, &[TQ8]), (V1_2, &[TF16]), (V1_3, &[TQ8S])],
    )
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, PoolAttributes>) -> Result<Inferred, OpError> {
    window::infer(args, attributes).map(|(_, inferred)| inferred)
}

fn execute(run: &mut Run<'_, '_>, attributes: &PoolAttributes) -> Result<(), OpError> {
    let input = run.input(0)?;
    let Window { pooling, .. } = Window::new(attributes, input.dims)?;
    let activation = attributes.activation;
    let (out, mut runner) = run.output_and_runner()?;
    let info = out.info;
    let (low, high) = activation_range_f32(activation);
    let (first, last) = activation_range(activation, info.ty, info.scale, info.zero_point);
    match info.ty {
        OperandType::TensorFloat32 => pool_shared(
            &mut runner,
            &pooling,
            input.f32()?,
            out.f32_mut()?,
            Scratch::f32,
            Rule {
                empty: f32::NEG_INFINITY,
                add: f32::max,
                finish: |max: f32, _: usize| max.max(low).min(high),
            },
        ),
        OperandType::TensorFloat16 => pool_shared(
            &mut runner,
            &pooling,
            input.f16()?,
            out.f16_mut()?,
            Scratch::f32,
            Rule {
                empty: f32::NEG_INFINITY,
                add: |max: f32, x: f16| max.max(x.to_f32()),
                finish: |max: f32, _: usize| f16::from_f32(max.max(low).min(high)),
            },
        ),
        OperandType::TensorQuant8AsymmSigned => pool_shared(
            &mut runner,
            &pooling,
            input.i8()?,
            out.i8_mut()?,
            Scratch::i8,
            Rule {
                empty: i8::MIN,
                add: i8::max,
                finish: |max: i8, _: usize| i32::from(max).max(first).min(last) as i8,
            },
        ),
        _ => pool_shared(
            &mut runner,
            &pooling,
            input.u8()?,
            out.u8_mut()?,
            Scratch::u8,
            Rule {
                empty: u8::MIN,
                add: u8::max,
                finish: |max: u8, _: usize| i32::from(max).max(first).min(last) as u8,
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn implicit(input: Tensor, parameters: [i32; 6], out: Tensor) -> Tensor {
        let mut inputs = vec![input];
        inputs.extend(parameters.map(Tensor::scalar_i32));
        run_one(&DEF, &inputs, out).unwrap()
    }

    #[test]
    fn the_largest_of_each_window() {
        let values = [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0];
        let input = Tensor::f32(&[1, 3, 3, 1], &values);
        let got = implicit(input, [1, 2, 2, 2, 2, 0], Tensor::output(OperandType::TensorFloat32));
        assert_eq!(got.values::<f32>(), [-1.0, -3.0, -7.0, -9.0]);
        let input = Tensor::f16(&[1, 3, 3, 1], &values);
        let got = implicit(input, [2, 1, 1, 2, 2, 1], Tensor::output(OperandType::TensorFloat16));
        assert_eq!(got.halves(), [0.0; 4]);
    }

    #[test]
    fn a_nan_does_not_count() {
        let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
        let values = [nan, 1.0, -2.0, nan, nan, nan];
        for (activation, want) in
            [(0, [1.0, -2.0, low]), (1, [1.0, 0.0, 0.0]), (2, [1.0, -1.0, -1.0])]
        {
            let parameters = [2, 2, 1, 2, 1, activation];
            let input = Tensor::f32(&[1, 1, 6, 1], &values);
            let got = implicit(input, parameters, Tensor::output(OperandType::TensorFloat32));
            assert_eq!(got.values::<f32>(), want);
            let input = Tensor::f16(&[1, 1, 6, 1], &values);
            let got = implicit(input, parameters, Tensor::output(OperandType::TensorFloat16));
            assert_eq!(got.halves(), want);
        }
    }

    #[test]
    fn stored_values_are_compared_as_they_are() {
        let input = Tensor::u8(&[1, 2, 2, 2], &[1, 200, 3, 100, 7, 5, 2, 255], 0.5, 100);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 100);
        assert_eq!(implicit(input, [2, 1, 1, 2, 2, 0], out).values::<u8>(), [7, 255]);
        let input = Tensor::i8(&[1, 2, 2, 1], &[-128, -100, -30, -50], 0.5, -20);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, -20);
        // Below real 0, which is stored as -20: RELU lifts it.
        assert_eq!(implicit(input, [2, 1, 1, 2, 2, 1], out).values::<i8>(), [-20]);
    }
}
