//! Older versions: what is converted, sliced, adapted and limited.

mod adapted;
mod converted;
mod limited;

use std::sync::Arc;

use crate::{
    DataLocation, HeapMemory, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool,
    Request, RequestArgument, RequestPool,
};

/// RELU of two floats.
fn relu() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[2]);
    let y = b.result_of(OperationType::Relu, &[x], OutputSpec::f32(&[2]));
    b.output(y);
    b.build().unwrap()
}

/// A request for it: 8 bytes of input at 0, `output` bytes of output at 8.
fn request(output: u32) -> (Request, Arc<HeapMemory>) {
    let values = [-1.0_f32, 3.0, 9.0, 9.0].map(f32::to_le_bytes).concat();
    let memory = Arc::new(HeapMemory::new(values));
    let argument = |offset, length| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0, 8)],
        outputs: vec![argument(8, output)],
        pools: vec![RequestPool::Memory(Arc::clone(&memory) as Pool)],
    };
    (request, memory)
}
