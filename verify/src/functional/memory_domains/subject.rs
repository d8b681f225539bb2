//! What the checks work on: small models, requests in which every argument has a pool of its own, buffers.

use std::sync::Arc;

use burst_hal::{
    Buffer, BufferRequest, BufferRole, Caller, DataLocation, Device, ErrorStatus, Failure, Model,
    ModelBuilder, OperandType, OperationType, OutputSpec, Pool, PrepareOptions, PreparedModel,
    Request, RequestArgument, RequestPool,
};

use crate::functional::shared_memory::SharedMemory;
use crate::functional::{Verdict, refused};

/// Values of an operand of most models here, and their bytes.
pub(super) const DIMENSIONS: [u32; 2] = [2, 4];
pub(super) const COUNT: usize = 8;
pub(super) const BYTES: usize = COUNT * 4;

/// What a check gives.
pub(super) type Checked = Result<Verdict, String>;

/// A model ready to execute, with room for how it is called here.
pub(super) type Prepared = Arc<dyn PreparedModel>;

/// `max(0, x)` on values of this meaning.
pub(super) fn relu(spec: &OutputSpec) -> Result<Model, String> {
    let mut builder = ModelBuilder::new();
    let input = builder.input_of(spec.clone());
    let output = builder.result_of(OperationType::Relu, &[input], spec.clone());
    builder.output(output);
    builder.build().map_err(|error| error.to_string())
}

/// `x + y`, and the same again as a second output; the activation is an input, too.
pub(super) fn sums(dimensions: &[u32]) -> Result<Model, String> {
    let mut builder = ModelBuilder::new();
    let inputs = [(); 2].map(|()| builder.input(OperandType::TensorFloat32, dimensions));
    let activation = builder.input(OperandType::Int32, &[]);
    let operands = [inputs[0], inputs[1], activation];
    for _ in 0..2 {
        let spec = OutputSpec::new(OperandType::TensorFloat32, dimensions);
        let sum = builder.result_of(OperationType::Add, &operands, spec);
        builder.output(sum);
    }
    builder.build().map_err(|error| error.to_string())
}

pub(super) fn prepare(device: &dyn Device, model: &Model) -> Result<Prepared, String> {
    device.prepare_model(model, &PrepareOptions::default()).map_err(refused("preparing"))
}

/// The RELU of floats that most checks use.
pub(super) fn floats(device: &dyn Device) -> Result<Prepared, String> {
    prepare(device, &relu(&OutputSpec::f32(&DIMENSIONS))?)
}

pub(super) fn role(model: u32, position: u32) -> BufferRole {
    BufferRole { model, position, frequency: 1.0 }
}

/// A buffer for these inputs and outputs.
pub(super) fn wanted(
    models: &[&Prepared],
    inputs: &[BufferRole],
    outputs: &[BufferRole],
    dimensions: &[u32],
) -> BufferRequest {
    BufferRequest {
        dimensions: dimensions.into(),
        models: models.iter().map(|model| Arc::clone(model)).collect(),
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
    }
}

pub(super) fn allocate(
    device: &dyn Device,
    request: &BufferRequest,
) -> Result<Arc<dyn Buffer>, Failure> {
    device.allocate(request, &Caller::default())
}

/// A legal buffer; `Err(Ok(_))` where the device makes none such.
pub(super) fn legal(
    device: &dyn Device,
    request: &BufferRequest,
) -> Result<Arc<dyn Buffer>, Checked> {
    match allocate(device, request) {
        Ok(buffer) if buffer.token() == 0 => Err(Err("a buffer with token 0".to_owned())),
        Ok(buffer) => Ok(buffer),
        Err(failure) if failure.status == ErrorStatus::GeneralFailure => {
            Err(Ok(Verdict::DoesNotApply(failure.to_string())))
        }
        Err(failure) => Err(Err(format!("a legal buffer: {failure}"))),
    }
}

/// Goes on with a legal buffer, or ends the check.
macro_rules! buffer {
    ($device:expr, $request:expr) => {
        match $crate::functional::memory_domains::subject::legal($device, &$request) {
            Ok(buffer) => buffer,
            Err(ended) => return ended,
        }
    };
}
pub(super) use buffer;

pub(super) fn pool(values: &[f32]) -> Pool {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    Arc::new(SharedMemory::new(&bytes))
}

/// A pool of so many zero bytes.
pub(super) fn bytes(count: usize) -> Pool {
    Arc::new(SharedMemory::new(&vec![0; count]))
}

pub(super) fn memory(values: &[f32]) -> RequestPool {
    RequestPool::Memory(pool(values))
}

/// Room for an output.
pub(super) fn room() -> RequestPool {
    RequestPool::Memory(bytes(BYTES))
}

/// The scalar that says: no activation.
pub(super) fn no_activation() -> RequestPool {
    RequestPool::Memory(bytes(4))
}

pub(super) fn token(buffer: &Arc<dyn Buffer>) -> RequestPool {
    RequestPool::Token(buffer.token())
}

/// Every argument is the whole of a pool of its own.
pub(super) fn request(inputs: &[RequestPool], outputs: &[RequestPool]) -> Request {
    let pools: Vec<RequestPool> = inputs.iter().chain(outputs).cloned().collect();
    let mut arguments = (0..).zip(&pools).map(|(pool_index, _)| RequestArgument {
        location: DataLocation { pool_index, offset: 0, length: 0 },
        ..RequestArgument::default()
    });
    Request {
        inputs: arguments.by_ref().take(inputs.len()).collect(),
        outputs: arguments.collect(),
        pools: pools.clone(),
    }
}

/// Asserts that a buffer's value is this.
pub(super) fn expect_value(
    what: &str,
    buffer: &Arc<dyn Buffer>,
    want: &[f32],
) -> Result<(), String> {
    let copy = bytes(want.len() * 4);
    buffer.copy_to(&copy).map_err(refused(what))?;
    let mut got = vec![0; want.len() * 4];
    copy.read(0, &mut got).map_err(|error| error.to_string())?;
    let wanted: Vec<u8> = want.iter().flat_map(|value| value.to_ne_bytes()).collect();
    match got == wanted {
        true => Ok(()),
        false => Err(format!("{what}: {got:?} is not {want:?}")),
    }
}
