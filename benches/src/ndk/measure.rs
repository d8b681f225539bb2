//! The rows of one part, in the process that loads the library.

use std::time::Duration;

use burst_client::{BurstOptions, Client, SharedAllocator};
use burst_driver::CpuDevice;
use burst_hal::session::{HeapAllocator, LayoutOptions, SessionLayout, SessionTensors};
use burst_hal::{
    Device, ExecutionOptions, Model, ModelBuilder, OperationType, OutputSpec, PrepareOptions,
    Request, RequestPool,
};
use burst_harness::HarnessError;
use burst_harness::model::Workload;
use neuralnetworks::c::client::{Call, Inference, Library, NdkDevice, Place};

use super::{Args, Part, Row};
use crate::costs::BUILT_IN;
use crate::costs::models::tensors;
use crate::costs::pairs::{Effort, Side, compare};
use crate::costs::service::{check, patience};

/// The shape of the ADD's tensors, and how many elements that is.
const SHAPE: [u32; 1] = [4];
const LENGTH: usize = 4;

/// The ways that are measured.
pub(super) const WAYS: [(Place, Call, &str); 4] = [
    (Place::Buffers, Call::Compute, "C, buffers, compute"),
    (Place::Memories, Call::Compute, "C, memories, compute"),
    (Place::Buffers, Call::Burst, "C, buffers, burstCompute"),
    (Place::Memories, Call::Burst, "C, memories, burstCompute"),
];

pub(super) fn rows(args: &Args, part: Part) -> Result<Vec<Row>, HarnessError> {
    let effort = Effort { pairs: args.pairs, time: Duration::from_secs(args.seconds) };
    let file = args.library.clone().unwrap_or_else(Library::beside_program);
    let library = Library::load(&file).map_err(HarnessError::peer)?;
    let devices = NdkDevice::all(&library).map_err(HarnessError::peer)?;
    let device = devices.iter().find(|device| device.name() == "cpu");
    let device = device.ok_or_else(|| HarnessError::peer("the library has no device cpu"))?;
    match part {
        Part::InProcess => in_process(device, effort),
        Part::Service => {
            let mut rows = Vec::new();
            for workload in args.workloads()? {
                rows.extend(over_service(device, &workload, effort)?);
            }
            Ok(rows)
        }
    }
}

impl Args {
    fn workloads(&self) -> Result<Vec<Workload>, HarnessError> {
        if self.models.is_empty() {
            return Ok(vec![Workload::of_bytes("built-in shapes", BUILT_IN)?]);
        }
        self.models.iter().map(|path| Workload::read(path)).collect()
    }
}

/// x + y.
fn sum() -> Result<Model, HarnessError> {
    let mut builder = ModelBuilder::new();
    let spec = || OutputSpec::f32(&SHAPE);
    let (x, y) = (builder.input_of(spec()), builder.input_of(spec()));
    let none = builder.scalar_i32(0);
    let z = builder.result_of(OperationType::Add, &[x, y, none], spec());
    builder.output(z);
    builder.build().map_err(HarnessError::peer)
}

/// An ADD: the C functions beside the HAL, both in this process.
fn in_process(device: &NdkDevice, effort: Effort) -> Result<Vec<Row>, HarnessError> {
    let model = sum()?;
    let bytes = |values: [f32; LENGTH]| values.map(f32::to_ne_bytes).concat();
    let inputs = vec![bytes([1.0, 2.0, 3.0, 4.0]), bytes([10.0, 20.0, 30.0, 40.0])];
    let prepared = CpuDevice::default().prepare_model(&model, &PrepareOptions::default());
    let prepared = prepared.map_err(HarnessError::peer)?;
    let layout = SessionLayout::new(&model, &LayoutOptions::default());
    let layout = layout.map_err(HarnessError::peer)?;
    let local = SessionTensors::allocate(layout, &HeapAllocator).map_err(HarnessError::peer)?;
    for (index, input) in inputs.iter().enumerate() {
        local.write_input(0, index, input).map_err(HarnessError::peer)?;
    }
    let options = ExecutionOptions::default();
    let hal = |request: &Request| check(prepared.execute_synchronously(request, &options).status);
    hal(local.request(0))?;
    let expected = output_bytes(&model, local.request(0))?;
    let lengths: Vec<usize> = expected.iter().map(Vec::len).collect();
    let mut c = Inference::new(device, &model, &inputs, &lengths).map_err(HarnessError::peer)?;
    let mut rows = Vec::new();
    for (place, call, first) in WAYS {
        same(&mut c, place, call, &expected)?;
        let measured = compare(effort, |side| match side {
            Side::First => c.run(place, call).map_err(HarnessError::peer),
            Side::Second => hal(local.request(0)),
        })?;
        let model = format!("ADD of {LENGTH} floats, in process");
        rows.push(Row::new(Part::InProcess, model, first, measured));
    }
    Ok(rows)
}

/// A model over a service: the C functions beside the Rust client, each with a burst of its own.
fn over_service(
    device: &NdkDevice,
    workload: &Workload,
    effort: Effort,
) -> Result<Vec<Row>, HarnessError> {
    let model = &workload.imported.model;
    let socket = std::env::var_os("BURST_SOCKET").unwrap_or_default();
    let client = Client::connect(&socket).map_err(HarnessError::peer)?;
    let remote = client.device("cpu").map_err(HarnessError::peer)?;
    let prepared = remote.prepare(model, &PrepareOptions::default());
    let prepared = prepared.map_err(HarnessError::peer)?;
    let burst = prepared.configure_burst(&BurstOptions::default());
    let mut burst = burst.map_err(HarnessError::peer)?;
    let tensors = tensors(workload, &SharedAllocator)?;
    let options = ExecutionOptions::default();
    // Where C has its values in buffers of its own the Rust client has, too: both copy them.
    let mut rust = |place: Place| {
        if matches!(place, Place::Buffers) {
            for (index, input) in workload.inputs.iter().enumerate() {
                tensors.write_input(0, index, input).map_err(HarnessError::peer)?;
            }
        }
        let result = burst.execute(tensors.request(0), &options, patience());
        check(result.map_err(HarnessError::peer)?.status)?;
        if matches!(place, Place::Buffers) {
            output_bytes(model, tensors.request(0))?;
        }
        Ok(())
    };
    rust(Place::Buffers)?;
    let expected = output_bytes(model, tensors.request(0))?;
    let lengths: Vec<usize> = expected.iter().map(Vec::len).collect();
    let c = Inference::new(device, model, &workload.inputs, &lengths);
    let mut c = c.map_err(HarnessError::peer)?;
    let mut rows = Vec::new();
    for (place, call, first) in WAYS {
        same(&mut c, place, call, &expected)?;
        let measured = compare(effort, |side| match side {
            Side::First => c.run(place, call).map_err(HarnessError::peer),
            Side::Second => rust(place),
        })?;
        let model = format!("{}, over a service", workload.name);
        rows.push(Row::new(Part::Service, model, first, measured));
    }
    Ok(rows)
}

/// Runs once in this way: the outputs have to be those.
fn same(
    c: &mut Inference,
    place: Place,
    call: Call,
    expected: &[Vec<u8>],
) -> Result<(), HarnessError> {
    c.run(place, call).map_err(HarnessError::peer)?;
    if c.outputs(place).map_err(HarnessError::peer)? != expected {
        return Err(HarnessError::peer(format!("{call:?} with {place:?}: other outputs")));
    }
    Ok(())
}

/// The bytes of a request's outputs.
fn output_bytes(model: &Model, request: &Request) -> Result<Vec<Vec<u8>>, HarnessError> {
    let outputs = request.outputs.iter().zip(&model.main.output_indexes);
    let bytes = outputs.map(|(argument, index)| {
        let operand = &model.main.operands[*index as usize];
        let length = operand.ty.byte_length(&operand.dimensions).filter(|length| *length > 0);
        let length = length.ok_or_else(|| HarnessError::peer("an output of open size"))?;
        let mut bytes = vec![0; usize::try_from(length).map_err(HarnessError::peer)?];
        let pool = request.pools.get(argument.location.pool_index as usize);
        let Some(RequestPool::Memory(pool)) = pool else {
            return Err(HarnessError::peer("an output in no memory"));
        };
        let read = pool.read(argument.location.offset.into(), &mut bytes);
        read.map_err(HarnessError::peer)?;
        Ok(bytes)
    });
    bytes.collect()
}
