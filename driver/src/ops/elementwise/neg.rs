//! NEG: `-x`, element by element.
//!
//! Input: a float or INT32 tensor. Output: the same type and shape. The one INT32 whose negative
//! does not exist, -2^31, stays as it is.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::NEG`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use super::unary;
use crate::op::types::{TF16, TF32, TI32};
use crate::op::{Form, OpDef, OpTraits, Plain, Run, Signature};
use crate::{OpError, SignatureError};

/// The definition of NEG.
pub static DEF: OpDef = OpDef {
    code: OperationType::Neg,
    validate,
    body: &Plain { infer: unary::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32], &[TF32]),
    Form::new(V1_2, &[TF16], &[TF16]),
    Form::new(V1_2, &[TI32], &[TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute_with_int(run, |x| -x, i32::wrapping_neg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::tests::{floats, integers};

    #[test]
    fn signs_change() {
        let (single, half) = floats(&DEF, &[-1.5, 2.0, 0.0]);
        assert_eq!(
            (single.as_slice(), half.as_slice()),
            (&[1.5, -2.0, 0.0][..], &[1.5, -2.0, 0.0][..])
        );
        assert!(single[2].is_sign_negative(), "minus zero");
        assert_eq!(integers(&DEF, &[-3, 0, i32::MAX]), [3, 0, -i32::MAX]);
    }

    /// As for ABS: the specification says nothing, wrapping is what the hardware gives.
    #[test]
    fn the_smallest_integer_stays() {
        assert_eq!(integers(&DEF, &[i32::MIN]), [i32::MIN]);
    }
}
