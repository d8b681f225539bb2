//! IF: one of two graphs, chosen by a condition.
//!
//! Inputs: the condition (TENSOR_BOOL8 of shape `[1]`), the graph that runs where it holds, the
//! graph that runs where it does not, then what either graph takes. Outputs: what either gives.
//!
//! Source: NNAPI 1.3 `types.hal`, `OperationType::IF`.

use burst_hal::{OperandType, OperationType};

use crate::SignatureError;
use crate::op::{OpDef, OpTraits, Plain, Signature};
use crate::ops::control::boundary::{expect_version, is_condition};
use crate::ops::control::{execute, infer};

/// The definition of IF. Values without elements are handed over like all others.
pub static DEF: OpDef = OpDef {
    code: OperationType::If,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    expect_version(signature)?;
    let is_graph = |index| signature.input(index).is_some_and(|o| o.ty == OperandType::Subgraph);
    let graphs_end = is_graph(1) && is_graph(2) && signature.outputs().len() > 0;
    let values = signature.inputs().skip(3).chain(signature.outputs());
    let only_values = values.into_iter().all(|operand| operand.ty != OperandType::Subgraph);
    let Some(condition) = signature.input(0).filter(|_| graphs_end && only_values) else {
        return Err(signature.no_form());
    };
    signature.rule(is_condition(condition), "the condition is not TENSOR_BOOL8 of shape [1]")
}

#[cfg(test)]
mod tests {
    use burst_hal::HalVersion;

    use super::*;
    use crate::ops::testing::{Tensor, has_form, validate as judge};

    #[test]
    fn takes_a_condition_two_graphs_and_any_values() {
        let graph = || Tensor::output(OperandType::Subgraph);
        let float = || Tensor::output(OperandType::TensorFloat32);
        let condition = || Tensor::bool8(&[1], &[1]);
        let judge = |inputs: &[Tensor], outputs: &[Tensor]| {
            judge(&DEF, HalVersion::V1_3, inputs, outputs).is_ok()
        };
        assert!(judge(&[condition(), graph(), graph()], &[float()]));
        assert!(judge(&[condition(), graph(), graph(), float(), float()], &[float(), float()]));
        assert!(!judge(&[condition(), graph(), graph()], &[]));
        assert!(!judge(&[condition(), graph(), float()], &[float()]));
        assert!(!judge(&[condition(), graph(), graph(), graph()], &[float()]));
        assert!(!judge(&[condition(), graph()], &[float()]));
        assert!(!judge(&[Tensor::bool8(&[2], &[1, 1]), graph(), graph()], &[float()]));
        assert!(!judge(&[Tensor::scalar_bool(true), graph(), graph()], &[float()]));
        // A condition whose shape is not declared.
        assert!(!judge(&[Tensor::output(OperandType::TensorBool8), graph(), graph()], &[float()]));
    }

    #[test]
    fn is_new_in_1_3() {
        use OperandType::{Subgraph, TensorBool8, TensorFloat32};
        let inputs = [TensorBool8, Subgraph, Subgraph];
        assert!(!has_form(&DEF, HalVersion::V1_2, &inputs, &[TensorFloat32]));
    }
}
