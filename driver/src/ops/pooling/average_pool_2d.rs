//! AVERAGE_POOL_2D: the mean of each window of a picture; padding does not count.
//!
//! Inputs: a tensor of 4 dimensions; then padding (a scheme, or left, right, top, bottom), strides
//! and filter sizes (width, height), the activation, and optionally the layout. Output: NHWC or NCHW
//! as the input. The mean of values with a NaN among them is NaN.
//!
//! Source: NNAPI `types.hal`, `OperationType::AVERAGE_POOL_2D`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "values are clamped to their 8-bit type before they are narrowed; counts are below 2^23"
)]

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::kernels::add_float::held;
use crate::kernels::pool::Rule;
use crate::kernels::quant::{activation_range, activation_range_f32};
use crate::op::types::{TF16, TF32, TQ8, TQ8S};
use crate::op::{Inferred, OpDef, OpTraits, Parsed, Run, Signature, WithAttributes};
use crate::ops::attributes::PoolAttributes;
use crate::ops::pooling::window::{self, Window, pool_shared};
use crate::ops::quantization::rules::quant8;
use crate::scratch::Scratch;
use crate::tensor::Args;

/// The definition of AVERAGE_POOL_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::AveragePool2d,
    validate,
    body: &WithAttributes { parse: PoolAttributes::parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

/// Most 8-bit values that go into one mean: their sum must fit in 32 bits.
const MAX_COUNT: usize = 1 << 23;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    window::expect_forms(
        signature,
        &[(V1_0, &[TF32]), (V1_0, &[TQ8]), (V1_2, &[TF16]), (V1_3, &[TQ8S])],
    )
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, PoolAttributes>) -> Result<Inferred, OpError> {
    let (window, inferred) = window::infer(args, attributes)?;
    if quant8(args.input(0)?.info).is_some() && window.most_covered() > MAX_COUNT {
        return Err(OpError::Range { what: "number of values in a quantized mean" });
    }
    Ok(inferred)
}

fn execute(run: &mut Run<'_, '_>, attributes: &PoolAttributes) -> Result<(), OpError> {
    let input = run.input(0)?;
    let Window { pooling, .. } = Window::new(attributes, input.dims)?;
    let activation = attributes.activation;
    let (out, mut runner) = run.output_and_runner()?;
    let info = out.info;
    let range = activation_range_f32(activation);
    let (first, last) = activation_range(activation, info.ty, info.scale, info.zero_point);
    match info.ty {
        OperandType::TensorFloat32 => pool_shared(
            &mut runner,
            &pooling,
            input.f32()?,
            out.f32_mut()?,
            Scratch::f32,
            Rule {
                empty: 0.0,
                add: |sum: f32, x: f32| sum + x,
                finish: |sum: f32, count: usize| held(sum / count as f32, range),
            },
        ),
        OperandType::TensorFloat16 => pool_shared(
            &mut runner,
            &pooling,
            input.f16()?,
            out.f16_mut()?,
            Scratch::f32,
            Rule {
                empty: 0.0,
                add: |sum: f32, x: f16| sum + x.to_f32(),
                finish: |sum: f32, count: usize| f16::from_f32(held(sum / count as f32, range)),
            },
        ),
        OperandType::TensorQuant8AsymmSigned => pool_shared(
            &mut runner,
            &pooling,
            input.i8()?,
            out.i8_mut()?,
            Scratch::i32,
            Rule {
                empty: 0,
                add: |sum: i32, x: i8| sum + i32::from(x),
                finish: |sum: i32, count: usize| {
                    nearest(sum, count as i32).max(first).min(last) as i8
                },
            },
        ),
        _ => pool_shared(
            &mut runner,
            &pooling,
            input.u8()?,
            out.u8_mut()?,
            Scratch::i32,
            Rule {
                empty: 0,
                add: |sum: i32, x: u8| sum + i32::from(x),
                finish: |sum: i32, count: usize| {
                    nearest(sum, count as i32).max(first).min(last) as u8
                },
            },
        ),
    }
}

/// `sum / count`, rounded to nearest with ties away from zero. `count` is above 0.
#[inline]
fn nearest(sum: i32, count: i32) -> i32 {
    let half = if sum > 0 { count / 2 } else { -(count / 2) };
    (sum + half) / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};
    use burst_hal::HalVersion;

    fn scalars(values: &[i32]) -> Vec<Tensor> {
        values.iter().map(|value| Tensor::scalar_i32(*value)).collect()
    }

    fn implicit(input: Tensor, parameters: [i32; 6], out: Tensor) -> Result<Tensor, OpError> {
        let mut inputs = vec![input];
        inputs.extend(scalars(&parameters));
        run_one(&DEF, &inputs, out)
    }

    #[test]
    fn padding_does_not_count() {
        // 1 2 3
        // 4 5 6
        // 7 8 9   with windows of 2, stride 2, SAME: the last ones are cut at the edge.
        let values: Vec<f32> = (1..=9u8).map(f32::from).collect();
        let input = Tensor::f32(&[1, 3, 3, 1], &values);
        let out = Tensor::output(OperandType::TensorFloat32);
        let got = implicit(input, [1, 2, 2, 2, 2, 0], out).unwrap();
        assert_eq!(got.dims.as_slice(), [1, 2, 2, 1]);
        assert_eq!(got.values::<f32>(), [3.0, 4.5, 7.5, 9.0]);
    }

    #[test]
    fn explicit_padding_strides_and_both_layouts() {
        // Two channels, 2 high, 3 wide; padded by one on the left and at the top.
        let nhwc = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0, 5.0, 50.0, 6.0, 60.0];
        let nchw = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0];
        let parameters = scalars(&[1, 0, 1, 0, 2, 1, 2, 2, 0]);
        let run = |dims: &[u32], values: &[f32], channels_first| {
            let mut inputs = vec![Tensor::f32(dims, values)];
            inputs.extend(parameters.clone());
            inputs.push(Tensor::scalar_bool(channels_first));
            run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).unwrap()
        };
        let got = run(&[1, 2, 3, 2], &nhwc, false);
        assert_eq!(got.dims.as_slice(), [1, 2, 2, 2]);
        assert_eq!(got.values::<f32>(), [1.0, 10.0, 2.5, 25.0, 2.5, 25.0, 4.0, 40.0]);
        let got = run(&[1, 2, 2, 3], &nchw, true);
        assert_eq!(got.dims.as_slice(), [1, 2, 2, 2]);
        assert_eq!(got.values::<f32>(), [1.0, 2.5, 2.5, 4.0, 10.0, 25.0, 25.0, 40.0]);
    }

    #[test]
    fn quantized_means_are_rounded_away_from_stored_zero() {
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 3);
        let input = Tensor::u8(&[1, 1, 4, 1], &[1, 2, 255, 255], 0.5, 3);
        let got = implicit(input, [2, 2, 1, 2, 1, 0], out).unwrap();
        assert_eq!(got.values::<u8>(), [2, 255]);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, 3);
        let input = Tensor::i8(&[1, 1, 4, 1], &[-1, -2, 1, 2], 0.5, 3);
        let got = implicit(input, [2, 2, 1, 2, 1, 0], out).unwrap();
        assert_eq!(got.values::<i8>(), [-2, 2]);
    }

    #[test]
    fn the_activation_is_applied_in_steps_of_the_output() {
        // Scale 0.5, zero point 100: 6 is stored as 112.
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 100);
        let input = Tensor::u8(&[1, 1, 3, 1], &[50, 110, 200], 0.5, 100);
        let got = implicit(input, [2, 1, 1, 1, 1, 3], out).unwrap();
        assert_eq!(got.values::<u8>(), [100, 110, 112]);
        let out = Tensor::output(OperandType::TensorFloat16);
        let input = Tensor::f16(&[1, 1, 3, 1], &[-2.0, 0.5, 2.0]);
        let got = implicit(input, [2, 1, 1, 1, 1, 2], out).unwrap();
        assert_eq!(got.halves(), [-1.0, 0.5, 1.0]);
    }

    /// A NaN in the picture shows, whatever the activation: -inf or 0 would look like an answer.
    #[test]
    fn the_mean_of_nan_is_nan() {
        for activation in 0..=3 {
            let values = [f32::NAN, 1.0, 2.0, 4.0];
            let parameters = [2, 2, 1, 2, 1, activation];
            let input = Tensor::f32(&[1, 1, 4, 1], &values);
            let out = Tensor::output(OperandType::TensorFloat32);
            let got = implicit(input, parameters, out).unwrap().values::<f32>();
            assert!(got[0].is_nan() && !got[1].is_nan(), "activation {activation}: {got:?}");
            let input = Tensor::f16(&[1, 1, 4, 1], &values);
            let out = Tensor::output(OperandType::TensorFloat16);
            let got = implicit(input, parameters, out).unwrap().halves();
            assert!(got[0].is_nan() && !got[1].is_nan(), "activation {activation}: {got:?}");
        }
    }

    /// Division by zero: no legal padding leaves a window without pixels.
    #[test]
    fn parameters_without_sense_are_refused() {
        let input = || Tensor::f32(&[1, 2, 2, 1], &[1.0; 4]);
        let out = || Tensor::output(OperandType::TensorFloat32);
        for bad in [
            [0, 1, 1, 1, 1, 0],
            [3, 1, 1, 1, 1, 0],
            [1, 0, 1, 1, 1, 0],
            [1, 1, -1, 1, 1, 0],
            [1, 1, 1, 0, 1, 0],
            [2, 1, 1, 3, 1, 0],
            [1, 1, 1, 1, 1, 4],
        ] {
            assert!(implicit(input(), bad, out()).is_err(), "{bad:?}");
        }
        let mut inputs = vec![input()];
        inputs.extend(scalars(&[2, 0, 0, 0, 1, 1, 2, 2, 0]));
        assert!(run_one(&DEF, &inputs, out()).is_err(), "padding as large as the filter");
    }

    #[test]
    fn another_output_scale_is_refused() {
        let input = Tensor::u8(&[1, 1, 1, 1], &[50], 0.5, 100);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 100);
        assert!(implicit(input, [1, 1, 1, 1, 1, 0], out).is_err());
    }

    #[test]
    fn forms_by_version() {
        let form = |ty, count: usize, layout: bool, version| {
            let mut inputs = vec![ty];
            inputs.extend(vec![OperandType::Int32; count]);
            inputs.extend(layout.then_some(OperandType::Bool));
            has_form(&DEF, version, &inputs, &[ty])
        };
        let f32 = OperandType::TensorFloat32;
        for count in [6, 9] {
            assert!(form(f32, count, false, HalVersion::V1_0));
            assert!(!form(f32, count, true, HalVersion::V1_1));
            assert!(form(f32, count, true, HalVersion::V1_2));
            assert!(form(OperandType::TensorQuant8Asymm, count, false, HalVersion::V1_0));
            assert!(!form(OperandType::TensorFloat16, count, false, HalVersion::V1_1));
            assert!(!form(OperandType::TensorQuant8AsymmSigned, count, false, HalVersion::V1_2));
            assert!(form(OperandType::TensorQuant8AsymmSigned, count, true, HalVersion::V1_3));
            assert!(!form(OperandType::TensorInt32, count, true, HalVersion::V1_3));
        }
        assert!(!form(f32, 7, false, HalVersion::V1_3));
        assert!(!form(f32, 8, false, HalVersion::V1_3));
    }
}
