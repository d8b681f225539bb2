//! LOG: the natural logarithm, element by element.
//!
//! Input: a float tensor. Output: the same type and shape; minus infinity for 0, NaN below.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::LOG`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use super::unary;
use crate::kernels::functions;
use crate::op::types::{TF16, TF32};
use crate::op::{Form, OpDef, OpTraits, Plain, PrepareContext, Prepared, Run, Signature};
use crate::ops::float_map::FloatMap;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of LOG.
pub static DEF: OpDef = OpDef {
    code: OperationType::Log,
    validate,
    body: &Plain { infer: unary::infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(V1_2, &[TF32], &[TF32]), Form::new(V1_2, &[TF16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, functions::ln)
}

fn prepare(args: &Args<'_>, context: &PrepareContext<'_>) -> Result<Option<Prepared>, OpError> {
    FloatMap { function: functions::ln_all, name: "logarithm of floats" }.prepare(args, context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burst_hal::OperandType;

    use crate::ops::elementwise::unary::tests::{assert_close, floats};
    use crate::ops::testing::{Tensor, run_fast, run_one};

    #[test]
    fn natural_logarithms() {
        assert_close(
            &DEF,
            &[
                (1.0, 0.0),
                (2.0, std::f64::consts::LN_2),
                (10.0, std::f64::consts::LN_10),
                (0.5, -std::f64::consts::LN_2),
            ],
        );
    }

    #[test]
    fn a_kernel_of_floats_gives_the_same_bits() {
        let values: Vec<f32> = (0..2500u16).map(|x| f32::from(x) * 0.37 - 1.0).collect();
        let inputs = [Tensor::f32(&[2500], &values)];
        let out = Tensor::output(OperandType::TensorFloat32);
        let plain = run_one(&DEF, &inputs, out.clone()).unwrap();
        let fast = run_fast(&DEF, &inputs, &[out]).unwrap().unwrap();
        assert_eq!(fast[0].values::<u32>(), plain.values::<u32>());
    }

    #[test]
    fn zero_and_below_follow_ieee() {
        let (single, half) = floats(&DEF, &[0.0, -1.0]);
        assert_eq!((single[0], half[0]), (f32::NEG_INFINITY, f32::NEG_INFINITY));
        assert!(single[1].is_nan() && half[1].is_nan());
    }
}
