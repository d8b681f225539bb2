//! SIN: the sine of an angle in radians, element by element.
//!
//! Input: a float tensor. Output: the same type and shape.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::SIN`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use super::unary;
use crate::op::types::{TF16, TF32};
use crate::op::{Form, OpDef, OpTraits, Plain, Run, Signature};
use crate::{OpError, SignatureError};

/// The definition of SIN.
pub static DEF: OpDef = OpDef {
    code: OperationType::Sin,
    validate,
    body: &Plain { infer: unary::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(V1_2, &[TF32], &[TF32]), Form::new(V1_2, &[TF16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, f32::sin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::tests::assert_close;

    #[test]
    fn sines() {
        assert_close(
            &DEF,
            &[
                (0.0, 0.0),
                (0.5, 0.479_425_538_604_203),
                (1.0, 0.841_470_984_807_896_5),
                (-2.0, -0.909_297_426_825_681_7),
                (100.0, -0.506_365_641_109_758_8),
            ],
        );
    }
}
