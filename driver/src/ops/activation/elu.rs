//! ELU: `x` where it is not below 0, else `alpha * (e^x - 1)`.
//!
//! Inputs: a float tensor, a float scalar (alpha). Output: the same shape.
//!
//! Source: NNAPI `types.hal`, `OperationType::ELU`.

use burst_hal::HalVersion::V1_3;
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::op::types::{F16, F32, TF16, TF32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::activation::unary::NANOS_PER_FUNCTION;
use crate::tensor::Args;

/// The definition of ELU.
pub static DEF: OpDef = OpDef {
    code: OperationType::Elu,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] =
    &[Form::new(V1_3, &[TF32, F32], &[TF32]), Form::new(V1_3, &[TF16, F16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

/// Alpha.
fn parse(operands: &dyn Operands) -> Result<f32, OpError> {
    operands.float(1)
}

fn infer(args: &Args<'_>, _: Parsed<'_, f32>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(args.dims(0)?))
}

fn execute(run: &mut Run<'_, '_>, alpha: &f32) -> Result<(), OpError> {
    let input = run.input(0)?;
    let elu = |x: f32| if x >= 0.0 { x } else { alpha * x.exp_m1() };
    let (out, mut runner) = run.output_and_runner()?;
    match out.info.ty {
        OperandType::TensorFloat32 => {
            runner.map(input.f32()?, out.f32_mut()?, NANOS_PER_FUNCTION, elu)
        }
        _ => {
            let half = |x: f16| f16::from_f32(elu(x.to_f32()));
            runner.map(input.f16()?, out.f16_mut()?, NANOS_PER_FUNCTION, half)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    #[test]
    fn both_sides_of_zero() {
        let inputs =
            [Tensor::f32(&[4], &[2.0, 0.0, -(2f32.ln()), -1000.0]), Tensor::scalar_f32(3.0)];
        let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).unwrap();
        let got = got.values::<f32>();
        assert_eq!([got[0], got[1], got[3]], [2.0, 0.0, -3.0]);
        assert!((got[2] + 1.5).abs() < 1e-6);
        let inputs = [Tensor::f16(&[2], &[0.5, -100.0]), Tensor::scalar_f16(0.5)];
        let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(got.halves(), [0.5, -0.5]);
    }
}
