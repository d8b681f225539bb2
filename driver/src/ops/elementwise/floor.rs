//! FLOOR: the largest whole number that is not greater, element by element.
//!
//! Input: a float tensor. Output: the same type and shape.
//!
//! Source: NNAPI `types.hal`, `OperationType::FLOOR`.

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::OperationType;

use super::unary;
use crate::op::types::{TF16, TF32};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of FLOOR.
pub static DEF: OpDef = OpDef {
    code: OperationType::Floor,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(V1_0, &[TF32], &[TF32]), Form::new(V1_2, &[TF16], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(dims_up_to_four(args, 0)?))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, f32::floor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::tests::floats;

    #[test]
    fn downwards_on_both_sides_of_zero() {
        let want = [1.0, -2.0, -1.0, 0.0, 3.0];
        let (single, half) = floats(&DEF, &[1.75, -1.25, -0.5, 0.25, 3.0]);
        assert_eq!((single, half), (want.to_vec(), want.to_vec()));
    }
}
