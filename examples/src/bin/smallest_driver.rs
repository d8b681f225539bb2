//! The smallest driver: says what it runs, and runs it. Bursts and memories are seen to for it.
use std::sync::Arc;

use burst_hal::*;
use burst_server::{Listener, serve};

struct PlusOne;

impl Device for PlusOne {
    fn name(&self) -> &str {
        "plus-one"
    }
    fn version_string(&self) -> &str {
        "1"
    }
    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(model.main.operations.iter().map(|one| one.ty == OperationType::Relu).collect())
    }
    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(PlusOne))
    }
}

impl PreparedModel for PlusOne {
    fn execute_synchronously(&self, request: &Request, _: &ExecutionOptions) -> ExecutionResult {
        let mut bytes = Vec::new();
        let done = request.read_input(0, &mut bytes).and_then(|()| {
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            request.write_output(0, &bytes)
        });
        ExecutionResult::of(done.err().map_or(ErrorStatus::None, |failure| failure.status))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected: SOCKET")?;
    Ok(serve(Arc::new(PlusOne), &Listener::bind(path)?)?)
}
