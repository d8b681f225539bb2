//! EXP: `e^x`, element by element.
//!
//! Input: a float tensor. Output: the same type and shape; infinite where it is too large.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::EXP`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use super::unary;
use crate::kernels::functions;
use crate::op::types::{TF16, TF32};
use crate::op::{Form, OpDef, OpTraits, Plain, PrepareContext, Prepared, Run, Signature};
use crate::ops::float_map::FloatMap;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of EXP.
pub static DEF: OpDef = OpDef {
    code: OperationType::Exp,
    validate,
    body: &Plain { infer: unary::infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(V1_2, &[TF32], &[TF32]), Form::new(V1_2, &[TF16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn prepare(args: &Args<'_>, context: &PrepareContext<'_>) -> Result<Option<Prepared>, OpError> {
    let map = FloatMap { function: functions::exp_all, name: "exponential of floats" };
    map.prepare(args, context)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, functions::exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::tests::{assert_close, floats};

    #[test]
    fn powers_of_e() {
        assert_close(
            &DEF,
            &[
                (0.0, 1.0),
                (1.0, std::f64::consts::E),
                (-1.0, 0.367_879_441_171_442_3),
                (10.0, 22_026.465_794_806_718),
            ],
        );
    }

    #[test]
    fn what_is_too_large_is_infinite_and_what_is_too_small_zero() {
        let (single, half) = floats(&DEF, &[100.0, -200.0, f32::NAN]);
        assert_eq!(single[..2], [f32::INFINITY, 0.0]);
        assert_eq!(half[..2], [f32::INFINITY, 0.0]);
        assert!(single[2].is_nan() && half[2].is_nan());
    }
}
