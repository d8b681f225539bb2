//! SQRT: the square root, element by element.
//!
//! Input: a float tensor. Output: the same type and shape; NaN below 0.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::SQRT`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use super::unary;
use crate::op::types::{TF16, TF32};
use crate::op::{Form, OpDef, OpTraits, Plain, Run, Signature};
use crate::{OpError, SignatureError};

/// The definition of SQRT.
pub static DEF: OpDef = OpDef {
    code: OperationType::Sqrt,
    validate,
    body: &Plain { infer: unary::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(V1_2, &[TF32], &[TF32]), Form::new(V1_2, &[TF16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, f32::sqrt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::tests::{assert_close, floats};

    #[test]
    fn square_roots() {
        assert_close(&DEF, &[(4.0, 2.0), (2.0, std::f64::consts::SQRT_2), (0.0, 0.0), (0.25, 0.5)]);
    }

    #[test]
    fn below_zero_there_is_none() {
        let (single, half) = floats(&DEF, &[-1.0]);
        assert!(single[0].is_nan() && half[0].is_nan());
    }
}
