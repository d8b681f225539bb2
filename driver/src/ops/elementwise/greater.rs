//! GREATER: whether the first of two values is greater, element by element.
//!
//! Inputs: two tensors of one type that broadcast; quantized ones may have scales and zero points of
//! their own, and are compared by their real values. Output: BOOL8, `a > b`.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::GREATER`.

use burst_hal::OperationType;

use super::comparison;
use crate::OpError;
use crate::op::{OpDef, OpTraits, Plain, Run};

/// The definition of GREATER.
pub static DEF: OpDef = OpDef {
    code: OperationType::Greater,
    validate: comparison::validate,
    body: &Plain { infer: comparison::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    comparison::execute(run, |a, b| a > b, |a, b| a > b)
}

#[cfg(test)]
mod tests {
    use super::DEF;
    use crate::ops::elementwise::comparison::tests::{assert_answers, assert_nan};

    #[test]
    fn every_type_has_the_same_order() {
        assert_answers(&DEF, [0, 0, 1]);
    }

    #[test]
    fn nothing_holds_of_a_nan() {
        assert_nan(&DEF, 0);
    }
}
