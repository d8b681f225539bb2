//! States of a model in this process.

use std::sync::Arc;

use burst_hal::{
    ExecutionResult, Failure, Model, Operand, OperandLifeTime, OperandType, PreparedModel, Request,
    Subgraph,
};
use burst_tflite::StatePair;

use super::*;
use crate::stream::path::Path;

/// Every output is the input of the same number, each byte 1 higher.
struct PlusOne;

impl Device for PlusOne {
    fn name(&self) -> &str {
        "plus-one"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, _model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(Vec::new())
    }

    fn prepare_model(
        &self,
        _model: &Model,
        _options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Ok(Arc::new(PlusOne))
    }
}

impl PreparedModel for PlusOne {
    fn execute_synchronously(
        &self,
        request: &Request,
        _options: &ExecutionOptions,
    ) -> ExecutionResult {
        let mut bytes = Vec::new();
        for index in 0..request.inputs.len() {
            request.read_input(index, &mut bytes).unwrap();
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            request.write_output(index, &bytes).unwrap();
        }
        ExecutionResult::of(ErrorStatus::None)
    }
}

/// One input and output of 3 bytes, and a state of 2 elements.
fn imported() -> Imported {
    let tensor = |ty, dimensions: &[u32], lifetime| Operand {
        dimensions: dimensions.into(),
        zero_point: 0x0A0B,
        ..Operand::new(ty, lifetime)
    };
    let mut main = Subgraph::default();
    for lifetime in [OperandLifeTime::SubgraphInput, OperandLifeTime::SubgraphOutput] {
        main.operands.push(tensor(OperandType::TensorBool8, &[3], lifetime));
        main.operands.push(tensor(OperandType::TensorQuant16Asymm, &[2], lifetime));
    }
    (main.input_indexes, main.output_indexes) = (vec![0, 1], vec![2, 3]);
    Imported {
        model: Model { main, ..Model::default() },
        inputs: Vec::new(),
        outputs: Vec::new(),
        states: vec![StatePair { input_index: 1, output_index: 1 }],
        verdicts: Vec::new(),
    }
}

#[test]
fn a_state_of_quant16_asymm_begins_at_its_zero_point() {
    let mut path =
        InProcess::on(&PlusOne, &imported(), PrepareOptions::default(), Caller::default()).unwrap();
    for _ in 0..2 {
        for runs in 1..=4_u8 {
            path.input().fill(40 + runs);
            let (status, _) = path.execute(Duration::from_secs(60)).unwrap();
            assert_eq!(status, ErrorStatus::None);
            assert_eq!(path.output(0).unwrap(), [41 + runs; 3]);
            let element = 0x0A0B_u16.to_ne_bytes().map(|byte| byte + runs);
            assert_eq!(path.output(1).unwrap(), element.repeat(2), "run {runs}");
        }
        path.reset_states();
    }
}
