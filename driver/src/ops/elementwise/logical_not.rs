//! LOGICAL_NOT: whether a truth value does not hold, element by element.
//!
//! Input: a BOOL8 tensor. Output: BOOL8 of the same shape.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::LOGICAL_NOT`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use super::unary;
use crate::op::types::TB8;
use crate::op::{Form, OpDef, OpTraits, Plain, Run, Signature};
use crate::{OpError, SignatureError};

/// The definition of LOGICAL_NOT.
pub static DEF: OpDef = OpDef {
    code: OperationType::LogicalNot,
    validate,
    body: &Plain { infer: unary::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    const FORMS: &[Form] = &[Form::new(V1_2, &[TB8], &[TB8])];
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (out, mut runner) = run.output_and_runner()?;
    runner.map(input.u8()?, out.u8_mut()?, unary::NANOS_PER_VALUE, |x| u8::from(x == 0))
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::DEF;
    use crate::ops::testing::{Tensor, run_one};

    #[test]
    fn any_byte_but_zero_is_true() {
        let input = Tensor::bool8(&[2, 2], &[0, 1, 2, 255]);
        let got = run_one(&DEF, &[input], Tensor::output(OperandType::TensorBool8)).unwrap();
        assert_eq!(got.values::<u8>(), [1, 0, 0, 0]);
        assert_eq!(got.dims.as_slice(), [2, 2]);
    }
}
