//! LOG_SOFTMAX: the logarithm of SOFTMAX, without its loss of precision.
//!
//! Inputs: a tensor, a float scalar (beta, above 0), an INT32 scalar (the axis). Output: the same
//! shape, `beta * (x - max) - log(sum of exponentials)`.
//!
//! Source: NNAPI `types.hal`, `OperationType::LOG_SOFTMAX`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::softmax::log_softmax_lane;
use crate::op::types::{F16, F32, I32, TF16, TF32};
use crate::op::{
    Form, Inferred, Kernel, OpDef, OpTraits, Parsed, PrepareContext, Prepared, Run, Signature,
    WithAttributes,
};
use crate::ops::activation::float_lanes::FloatLanes;
use crate::ops::activation::{SoftmaxAttributes, unary};
use crate::ops::attributes::MAX_RANK;
use crate::tensor::Args;

/// The definition of LOG_SOFTMAX.
pub static DEF: OpDef = OpDef {
    code: OperationType::LogSoftmax,
    validate,
    body: &WithAttributes {
        parse: SoftmaxAttributes::parse,
        infer,
        prepare: Some(prepare),
        execute,
    },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] =
    &[Form::new(V1_2, &[TF32, F32, I32], &[TF32]), Form::new(V1_2, &[TF16, F16, I32], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, SoftmaxAttributes>) -> Result<Inferred, OpError> {
    let shape = unary::infer(args, MAX_RANK)?;
    attributes?.axis.position(args.dims(0)?.len())?;
    Ok(shape)
}

fn prepare(
    _: &Args<'_>,
    attributes: &SoftmaxAttributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    Ok(Some(floats(*attributes, context.isa).prepared()))
}

fn execute(run: &mut Run<'_, '_>, attributes: &SoftmaxAttributes) -> Result<(), OpError> {
    floats(*attributes, Isa::PORTABLE).run(run)
}

fn floats(attributes: SoftmaxAttributes, isa: Isa) -> FloatLanes {
    FloatLanes {
        function: log_softmax_lane,
        attributes,
        isa,
        name: "logarithm of softmax of floats",
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    #[test]
    fn logarithms_of_shares() {
        let values = [0.0, 3f32.ln(), 2f32.ln(), 2f32.ln()];
        let run = |axis: i32, beta: f32| {
            let inputs =
                [Tensor::f32(&[2, 2], &values), Tensor::scalar_f32(beta), Tensor::scalar_i32(axis)];
            run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32))
        };
        for (axis, beta, shares) in [
            (1, 1.0, [0.25f32, 0.75, 0.5, 0.5]),
            (-2, 1.0, [1.0 / 3.0, 0.6, 2.0 / 3.0, 0.4]),
            (-1, 2.0, [0.1, 0.9, 0.5, 0.5]),
        ] {
            for (got, share) in run(axis, beta).unwrap().values::<f32>().iter().zip(shares) {
                assert!((got - share.ln()).abs() < 1e-6, "{got} {share}");
            }
        }
        assert!(run(2, 1.0).is_err());
        assert!(run(0, 0.0).is_err());
    }

    #[test]
    fn far_differences_do_not_become_minus_infinity() {
        let inputs =
            [Tensor::f16(&[2], &[0.0, 1000.0]), Tensor::scalar_f16(1.0), Tensor::scalar_i32(0)];
        let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(got.halves(), [-1000.0, 0.0]);
    }
}
