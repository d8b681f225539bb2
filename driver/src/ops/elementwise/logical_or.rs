//! LOGICAL_OR: whether at least one of two truth values holds, element by element.
//!
//! Inputs: two BOOL8 tensors that broadcast. Output: BOOL8.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::LOGICAL_OR`.

use burst_hal::OperationType;

use super::logic;
use crate::OpError;
use crate::op::{OpDef, OpTraits, Plain, Run};

/// The definition of LOGICAL_OR.
pub static DEF: OpDef = OpDef {
    code: OperationType::LogicalOr,
    validate: logic::validate,
    body: &Plain { infer: logic::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    logic::execute(run, |a, b| a || b)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::DEF;
    use crate::ops::testing::{Tensor, run_one};

    fn of(a: Tensor, b: Tensor) -> Vec<u8> {
        run_one(&DEF, &[a, b], Tensor::output(OperandType::TensorBool8)).unwrap().values()
    }

    #[test]
    fn truth_table() {
        let got = of(Tensor::bool8(&[4], &[0, 0, 1, 1]), Tensor::bool8(&[4], &[0, 1, 0, 1]));
        assert_eq!(got, [0, 1, 1, 1]);
        let got = of(Tensor::bool8(&[2, 1], &[1, 0]), Tensor::bool8(&[2], &[0, 1]));
        assert_eq!(got, [1, 1, 0, 1]);
    }

    #[test]
    fn any_byte_but_zero_is_true_and_true_is_written_as_one() {
        assert_eq!(of(Tensor::bool8(&[1], &[2]), Tensor::bool8(&[1], &[4])), [1]);
    }
}
