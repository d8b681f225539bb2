//! RSQRT: one over the square root, element by element.
//!
//! Input: a float tensor. Output: the same type and shape; infinite for 0, NaN below.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::RSQRT`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use super::unary;
use crate::op::types::{TF16, TF32};
use crate::op::{Form, OpDef, OpTraits, Plain, Run, Signature};
use crate::{OpError, SignatureError};

/// The definition of RSQRT.
pub static DEF: OpDef = OpDef {
    code: OperationType::Rsqrt,
    validate,
    body: &Plain { infer: unary::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(V1_2, &[TF32], &[TF32]), Form::new(V1_2, &[TF16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, |x| 1.0 / x.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::tests::{assert_close, floats};

    #[test]
    fn reciprocal_square_roots() {
        assert_close(&DEF, &[(4.0, 0.5), (2.0, std::f64::consts::FRAC_1_SQRT_2), (0.0625, 4.0)]);
    }

    #[test]
    fn zero_and_below_follow_ieee() {
        let (single, half) = floats(&DEF, &[0.0, -4.0]);
        assert_eq!((single[0], half[0]), (f32::INFINITY, f32::INFINITY));
        assert!(single[1].is_nan() && half[1].is_nan());
    }
}
