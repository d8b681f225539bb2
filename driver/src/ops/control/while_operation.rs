//! WHILE: a graph that runs again and again, as long as another one says so.
//!
//! Inputs: the condition graph (its one output is TENSOR_BOOL8 of shape `[1]`), the body graph, then
//! the values the loop begins with: first those that the body replaces (as many as it has outputs),
//! then those that stay. Both graphs take all of them. Outputs: the first of the values when the
//! condition no longer holds; the initial ones where it never did.
//!
//! The contract asks drivers to refuse values of unknown size here (not in IF). We take them: the
//! shapes of a state may change from round to round, and Android's own tests for its runtime do so.
//!
//! A loop that runs longer than its time-out ends the execution.
//!
//! Source: NNAPI 1.3 `types.hal`, `OperationType::WHILE`.

use burst_hal::{OperandType, OperationType};

use crate::SignatureError;
use crate::op::{OpDef, OpTraits, Plain, Signature};
use crate::ops::control::boundary::expect_version;
use crate::ops::control::{execute, infer};

/// The definition of WHILE. Values without elements are handed over like all others.
pub static DEF: OpDef = OpDef {
    code: OperationType::While,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    expect_version(signature)?;
    let graphs = signature.inputs().take(2).filter(|o| o.ty == OperandType::Subgraph).count();
    let values = signature.inputs().skip(2).chain(signature.outputs());
    let only_values = values.into_iter().all(|operand| operand.ty != OperandType::Subgraph);
    let has_values = signature.inputs().len() > 2 && signature.outputs().len() > 0;
    if graphs == 2 && only_values && has_values { Ok(()) } else { Err(signature.no_form()) }
}

#[cfg(test)]
mod tests {
    use burst_hal::HalVersion;

    use super::*;
    use crate::ops::testing::has_form;

    #[test]
    fn takes_two_graphs_and_at_least_one_value() {
        use OperandType::{Subgraph, TensorBool8, TensorFloat32 as F32};
        let form = |inputs: &[OperandType], outputs: &[OperandType]| {
            has_form(&DEF, HalVersion::V1_3, inputs, outputs)
        };
        assert!(form(&[Subgraph, Subgraph, F32], &[F32]));
        assert!(form(&[Subgraph, Subgraph, F32, TensorBool8], &[F32, TensorBool8]));
        assert!(!form(&[Subgraph, Subgraph], &[F32]));
        assert!(!form(&[Subgraph, Subgraph, F32], &[]));
        assert!(!form(&[Subgraph, F32, F32], &[F32]));
        assert!(!form(&[Subgraph, Subgraph, Subgraph], &[F32]));
        assert!(!has_form(&DEF, HalVersion::V1_2, &[Subgraph, Subgraph, F32], &[F32]));
    }
}
