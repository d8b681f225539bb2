//! ABS: `|x|`, element by element.
//!
//! Input: a float or INT32 tensor. Output: the same type and shape. The one INT32 whose absolute
//! value does not exist, -2^31, stays as it is.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::ABS`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use super::unary;
use crate::op::types::{TF16, TF32, TI32};
use crate::op::{Form, OpDef, OpTraits, Plain, Run, Signature};
use crate::{OpError, SignatureError};

/// The definition of ABS.
pub static DEF: OpDef = OpDef {
    code: OperationType::Abs,
    validate,
    body: &Plain { infer: unary::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32], &[TF32]),
    Form::new(V1_2, &[TF16], &[TF16]),
    Form::new(V1_3, &[TI32], &[TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute_with_int(run, f32::abs, i32::wrapping_abs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::tests::{floats, integers};

    #[test]
    fn signs_go() {
        let want = [1.5, 0.0, 2.0, f32::INFINITY];
        let (single, half) = floats(&DEF, &[-1.5, -0.0, 2.0, f32::NEG_INFINITY]);
        assert_eq!((single, half), (want.to_vec(), want.to_vec()));
        assert_eq!(integers(&DEF, &[-3, 0, 4, i32::MAX, -i32::MAX]), [3, 0, 4, i32::MAX, i32::MAX]);
    }

    /// The specification says nothing; wrapping is what two's complement hardware gives, and it
    /// neither stops the service nor invents a value.
    #[test]
    fn the_smallest_integer_stays() {
        assert_eq!(integers(&DEF, &[i32::MIN]), [i32::MIN]);
    }
}
