//! POW: a base to the power of an exponent, element by element.
//!
//! Inputs: two float tensors of one type that broadcast. Output: a tensor of the broadcast shape. As
//! IEEE 754 `pow`: a negative base to a broken power is NaN, anything to the power of 0 is 1.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::POW`.

use burst_hal::HalVersion::V1_2;
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::op::types::{TF16, TF32};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::ops::broadcast::{Side, broadcast_shape, zip};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of POW.
pub static DEF: OpDef = OpDef {
    code: OperationType::Pow,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] =
    &[Form::new(V1_2, &[TF32, TF32], &[TF32]), Form::new(V1_2, &[TF16, TF16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(broadcast_shape(args.dims(0)?, args.dims(1)?)?))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let (base, exponent) = (run.input(0)?, run.input(1)?);
    let (out, mut runner) = run.output_and_runner()?;
    match out.info.ty {
        OperandType::TensorFloat32 => {
            let base = Side { values: base.f32()?, dims: base.dims };
            let exponent = Side { values: exponent.f32()?, dims: exponent.dims };
            zip(&mut runner, out.f32_mut()?, base, exponent, f32::powf)
        }
        OperandType::TensorFloat16 => {
            let base = Side { values: base.f16()?, dims: base.dims };
            let exponent = Side { values: exponent.f16()?, dims: exponent.dims };
            zip(&mut runner, out.f16_mut()?, base, exponent, |x: f16, y: f16| {
                f16::from_f32(x.to_f32().powf(y.to_f32()))
            })
        }
        got => Err(OpError::Type { want: "a float tensor", got }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    #[test]
    fn powers_broadcast() {
        let (base, exponent) = ([2.0, 9.0, 4.0, 0.5], [3.0, 0.5]);
        let want = [8.0, 3.0, 64.0, 0.707_106_77];
        let got = run_one(
            &DEF,
            &[Tensor::f32(&[2, 2], &base), Tensor::f32(&[2], &exponent)],
            Tensor::output(OperandType::TensorFloat32),
        );
        for (got, want) in got.unwrap().values::<f32>().into_iter().zip(want) {
            assert!((got - want).abs() <= 2e-7 * want, "{got} {want}");
        }
        let got = run_one(
            &DEF,
            &[Tensor::f16(&[2, 2], &base), Tensor::f16(&[2], &exponent)],
            Tensor::output(OperandType::TensorFloat16),
        );
        // The half nearest to 0.70710677 is 1448/2048.
        assert_eq!(got.unwrap().halves(), [8.0, 3.0, 64.0, 0.707_031_25]);
    }

    #[test]
    fn edges_follow_ieee() {
        let got = run_one(
            &DEF,
            &[
                Tensor::f32(&[5], &[-8.0, -2.0, 0.0, 0.0, f32::NAN]),
                Tensor::f32(&[5], &[1.0 / 3.0, 3.0, -1.0, 0.0, 0.0]),
            ],
            Tensor::output(OperandType::TensorFloat32),
        );
        let got = got.unwrap().values::<f32>();
        assert!(got[0].is_nan(), "a negative base to a broken power");
        assert_eq!(got[1..], [-8.0, f32::INFINITY, 1.0, 1.0]);
    }
}
