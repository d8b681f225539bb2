//! L2_POOL_2D: the root of the mean of squares of each window; padding does not count.
//!
//! Operands as for AVERAGE_POOL_2D, of float types. A window with a NaN gives NaN.
//!
//! Source: NNAPI `types.hal`, `OperationType::L2_POOL_2D`.

#![allow(clippy::cast_precision_loss, reason = "counts of pixels in a mean of floats")]

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::kernels::add_float::held;
use crate::kernels::pool::Rule;
use crate::kernels::quant::activation_range_f32;
use crate::op::types::{TF16, TF32};
use crate::op::{Inferred, OpDef, OpTraits, Parsed, Run, Signature, WithAttributes};
use crate::ops::attributes::PoolAttributes;
use crate::ops::pooling::window::{self, Window, pool_shared};
use crate::scratch::Scratch;
use crate::tensor::Args;

/// The definition of L2_POOL_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::L2Pool2d,
    validate,
    body: &WithAttributes { parse: PoolAttributes::parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    window::expect_forms(signature, &[(V1_0, &[TF32]), (V1_2, &[TF16])])
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, PoolAttributes>) -> Result<Inferred, OpError> {
    window::infer(args, attributes).map(|(_, inferred)| inferred)
}

fn execute(run: &mut Run<'_, '_>, attributes: &PoolAttributes) -> Result<(), OpError> {
    let input = run.input(0)?;
    let Window { pooling, .. } = Window::new(attributes, input.dims)?;
    let activation = attributes.activation;
    let (out, mut runner) = run.output_and_runner()?;
    let range = activation_range_f32(activation);
    let root = |sum: f32, count: usize| held((sum / count as f32).sqrt(), range);
    match out.info.ty {
        OperandType::TensorFloat32 => pool_shared(
            &mut runner,
            &pooling,
            input.f32()?,
            out.f32_mut()?,
            Scratch::f32,
            Rule { empty: 0.0, add: |sum: f32, x: f32| sum + x * x, finish: root },
        ),
        _ => pool_shared(
            &mut runner,
            &pooling,
            input.f16()?,
            out.f16_mut()?,
            Scratch::f32,
            Rule {
                empty: 0.0,
                add: |sum: f32, x: f16| sum + x.to_f32() * x.to_f32(),
                finish: |sum: f32, count: usize| f16::from_f32(root(sum, count)),
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};
    use burst_hal::HalVersion;

    #[test]
    fn root_of_the_mean_of_squares() {
        // Windows 1 1 / 7 7: mean of squares 25. At the right edge only 0 and 2 count: 2.
        let values = [1.0, 1.0, 0.0, -7.0, 7.0, 2.0];
        let scalars = [1, 2, 2, 2, 2, 0].map(Tensor::scalar_i32);
        let mut inputs = vec![Tensor::f32(&[1, 2, 3, 1], &values)];
        inputs.extend(scalars.clone());
        let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(got.values::<f32>(), [5.0, 2f32.sqrt()]);
        inputs[0] = Tensor::f16(&[1, 2, 3, 1], &values);
        inputs[6] = Tensor::scalar_i32(2);
        let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(got.halves(), [1.0, 1.0]);
    }

    #[test]
    fn nan_stays_nan() {
        for activation in 0..=3 {
            let mut inputs = vec![Tensor::f32(&[1, 1, 2, 1], &[f32::NAN, 1.0])];
            inputs.extend([2, 1, 1, 1, 1, activation].map(Tensor::scalar_i32));
            let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).unwrap();
            let got = got.values::<f32>();
            assert!(got[0].is_nan() && got[1] == 1.0, "activation {activation}: {got:?}");
            inputs[0] = Tensor::f16(&[1, 1, 2, 1], &[f32::NAN, 1.0]);
            let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat16)).unwrap();
            assert!(got.halves()[0].is_nan(), "activation {activation}");
        }
    }

    #[test]
    fn never_quantized() {
        let mut inputs = vec![OperandType::TensorQuant8Asymm];
        inputs.extend([OperandType::Int32; 6]);
        assert!(!has_form(&DEF, HalVersion::V1_3, &inputs, &inputs[..1]));
    }
}
