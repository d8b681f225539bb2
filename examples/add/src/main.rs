//! A driver of one operation: ADD of floats, with broadcasting and activations.
use std::sync::Arc;

use burst_hal::validate::validate_model_of;
use burst_hal::*;
use burst_server::{Listener, serve};

struct AddDriver;

impl Device for AddDriver {
    fn name(&self) -> &str {
        "add"
    }
    fn version_string(&self) -> &str {
        "1"
    }
    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        validate_model_of(model, HalVersion::LATEST)?;
        let output = |operation: &Operation| &model.main.operands[operation.outputs[0] as usize];
        let is_ours = |operation: &Operation| {
            operation.ty == OperationType::Add && output(operation).ty == OperandType::TensorFloat32
        };
        Ok(model.main.operations.iter().map(is_ours).collect())
    }
    fn prepare_model(&self, model: &Model, _: &PrepareOptions) -> PrepareResult {
        if self.supported_operations(model)?.contains(&false) {
            return Err(Failure::general("this driver only adds floats"));
        }
        Ok(Arc::new(Sums(model.main.operations.clone(), GraphValues::new(model)?)))
    }
}

struct Sums(Vec<Operation>, GraphValues); // what to do, and the constants

impl Sums {
    fn run(&self, request: &Request) -> Result<ExecutionResult, Failure> {
        let mut values = self.1.clone();
        values.read_inputs(request)?;
        for Operation { inputs, outputs, .. } in &self.0 {
            let (a, b) = (values.tensor::<f32>(inputs[0])?, values.tensor::<f32>(inputs[1])?);
            let activation = FusedActivation::from_code(values.scalar(inputs[2])?)
                .ok_or_else(|| Failure::invalid("an activation that there is not"))?;
            let (dimensions, pairs) = a.broadcast(&b)?;
            values.put(outputs[0], &dimensions, pairs.map(|(a, b)| activation.apply(a + b)))?;
        }
        values.write_outputs(request)
    }
}

impl PreparedModel for Sums {
    fn execute_synchronously(&self, request: &Request, _: &ExecutionOptions) -> ExecutionResult {
        self.run(request).unwrap_or_else(|failure| ExecutionResult::of(failure.status))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected: SOCKET")?;
    Ok(serve(Arc::new(AddDriver), &Listener::bind(path)?)?)
}
