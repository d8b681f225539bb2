//! LOG: the natural logarithm, element by element.
//!
//! Input: a float tensor. Output: the same type and shape; minus infinity for 0, NaN below.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::LOG`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use super::unary;
use crate::op::types::{TF16, TF32};
use crate::op::{Form, OpDef, OpTraits, Plain, Run, Signature};
use crate::{OpError, SignatureError};

/// The definition of LOG.
pub static DEF: OpDef = OpDef {
    code: OperationType::Log,
    validate,
    body: &Plain { infer: unary::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(V1_2, &[TF32], &[TF32]), Form::new(V1_2, &[TF16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, f32::ln)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::tests::{assert_close, floats};

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
    fn zero_and_below_follow_ieee() {
        let (single, half) = floats(&DEF, &[0.0, -1.0]);
        assert_eq!((single[0], half[0]), (f32::NEG_INFINITY, f32::NEG_INFINITY));
        assert!(single[1].is_nan() && half[1].is_nan());
    }
}
