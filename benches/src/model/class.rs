//! What kind of model it is.

use burst_hal::{OperandType, Operation, OperationType};
use burst_harness::model::Workload;
use serde::Serialize;

/// Models that are held to the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Convolutions of floats.
    FloatConvolution,
    /// Convolutions with one scale per channel, signed.
    Int8PerChannel,
    /// Convolutions with one scale per tensor, unsigned.
    Uint8,
    /// A recurrent model of floats.
    FloatLstm,
    /// None of these.
    Other,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 5] = [
        Class::FloatConvolution,
        Class::Int8PerChannel,
        Class::Uint8,
        Class::FloatLstm,
        Class::Other,
    ];

    /// By what the model's convolutions and recurrent layers compute with.
    #[must_use]
    pub fn of(workload: &Workload) -> Class {
        use OperationType::{Conv2d, UnidirectionalSequenceLstm};
        let graph = &workload.imported.model.main;
        let find = |ty: OperationType| graph.operations.iter().find(move |op| op.ty == ty);
        let weights = |op: &Operation| {
            let operand = op.inputs.get(1).and_then(|index| graph.operands.get(*index as usize));
            operand.map(|operand| operand.ty)
        };
        match (find(Conv2d).and_then(weights), find(UnidirectionalSequenceLstm)) {
            (Some(OperandType::TensorFloat32), _) => Class::FloatConvolution,
            (Some(OperandType::TensorQuant8SymmPerChannel), _) => Class::Int8PerChannel,
            (Some(OperandType::TensorQuant8Asymm), _) => Class::Uint8,
            (_, Some(lstm)) if weights(lstm) == Some(OperandType::TensorFloat32) => {
                Class::FloatLstm
            }
            _ => Class::Other,
        }
    }

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::FloatConvolution => "float conv",
            Class::Int8PerChannel => "int8 per channel",
            Class::Uint8 => "uint8",
            Class::FloatLstm => "float LSTM",
            Class::Other => "other",
        }
    }
}
