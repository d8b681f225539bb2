//! The reference device: what it says of itself, requests, control flow, who pays, what ends it.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;
use std::time::Duration;

use burst_driver::ReferenceDevice;
use burst_hal::{
    Caller, CancelWord, DataLocation, Device, DeviceType, Dimensions, ErrorStatus,
    ExecutionOptions, ExecutionResult, HeapMemory, Model, ModelBuilder, OperandType, OperationType,
    OutputSpec, PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool, TimePoint,
};

use crate::paying::Purse;

const I32: OperandType = OperandType::TensorInt32;
const F32: OperandType = OperandType::TensorFloat32;
const BOOL8: OperandType = OperandType::TensorBool8;

fn int() -> OutputSpec {
    OutputSpec::new(I32, &[1])
}

fn prepare(model: &Model) -> Arc<dyn PreparedModel> {
    ReferenceDevice::default().prepare_model(model, &PrepareOptions::default()).unwrap()
}

/// A request with these inputs and room for one output.
fn request(inputs: &[&[u8]], room: usize) -> (Request, Arc<HeapMemory>) {
    let output = Arc::new(HeapMemory::new(vec![0xEE; room]));
    let mut request = Request::default();
    let mut memories: Vec<Arc<HeapMemory>> =
        inputs.iter().map(|bytes| Arc::new(HeapMemory::new(bytes.to_vec()))).collect();
    memories.push(Arc::clone(&output));
    for (index, memory) in (0..).zip(memories) {
        let length = u32::try_from(memory.to_vec().len()).unwrap();
        let location = DataLocation { pool_index: index, offset: 0, length };
        let argument = RequestArgument { location, ..RequestArgument::default() };
        let list =
            if index as usize == inputs.len() { &mut request.outputs } else { &mut request.inputs };
        list.push(argument);
        request.pools.push(RequestPool::Memory(memory));
    }
    (request, output)
}

fn execute(model: &Arc<dyn PreparedModel>, request: &Request) -> ExecutionResult {
    model.execute_synchronously(request, &ExecutionOptions::default())
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// `FLOOR(x)` of any number of values.
fn floor() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[0]);
    let y = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&[0]));
    b.output(y);
    b.build().unwrap()
}

/// `x` grows by `step` while it is below the limit.
fn counting(step: i32) -> Model {
    let mut b = ModelBuilder::new();
    let condition = b.referenced(|b| {
        let (x, limit) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let less = b.result_of(OperationType::Less, &[x, limit], OutputSpec::new(BOOL8, &[1]));
        b.output(less);
    });
    let body = b.referenced(|b| {
        let (x, _) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let (step, none) = (b.constant_i32(&[1], &[step]), b.scalar_i32(0));
        let next = b.result_of(OperationType::Add, &[x, step, none], int());
        b.output(next);
    });
    let (x, limit) = (b.input(I32, &[1]), b.input(I32, &[1]));
    let graphs = [b.subgraph(condition), b.subgraph(body)];
    let out = b.result_of(OperationType::While, &[graphs[0], graphs[1], x, limit], int());
    b.output(out);
    b.build().unwrap()
}

#[test]
fn it_says_what_it_is() {
    let device = ReferenceDevice::default();
    assert_eq!((device.name(), device.device_type()), ("nnapi-reference", DeviceType::Cpu));
    assert_eq!(device.cache_files_needed().model + device.cache_files_needed().data, 0);
    let capabilities = device.capabilities().unwrap();
    let codes: Vec<i32> =
        capabilities.operand_performance.iter().map(|(ty, _)| ty.code()).collect();
    assert!(codes.is_sorted_by(|a, b| a < b) && !codes.contains(&OperandType::Subgraph.code()));
    let figures = capabilities.operand_performance.iter().map(|(_, info)| *info);
    let others = [
        capabilities.relaxed_float32_to_float16_scalar,
        capabilities.relaxed_float32_to_float16_tensor,
        capabilities.if_performance,
        capabilities.while_performance,
    ];
    for info in figures.chain(others) {
        assert_eq!((info.exec_time, info.power_usage), (1.0, 1.0));
    }
}

#[test]
fn shapes_of_a_request_are_inferred_anew_each_time() {
    let model = prepare(&floor());
    for values in [&[1.5_f32, -1.5][..], &[0.5], &[2.5, 3.5, 4.5]] {
        let (mut request, output) = request(&[&floats(values)], values.len() * 4);
        let count = u32::try_from(values.len()).unwrap();
        request.inputs[0].dimensions = Dimensions::from_slice(&[count]);
        let result = execute(&model, &request);
        assert_eq!(result.status, ErrorStatus::None);
        assert_eq!(result.output_shapes[0].dimensions.as_slice(), [count]);
        let want: Vec<f32> = values.iter().map(|value| value.floor()).collect();
        assert_eq!(output.to_vec(), floats(&want));
    }
}

#[test]
fn too_little_room_says_how_much_is_needed_and_writes_nothing() {
    let model = prepare(&floor());
    let (mut request, output) = request(&[&floats(&[1.5, 2.5])], 4);
    request.inputs[0].dimensions = Dimensions::from_slice(&[2]);
    let result = execute(&model, &request);
    assert_eq!(result.status, ErrorStatus::OutputInsufficientSize);
    assert!(!result.output_shapes[0].is_sufficient);
    assert_eq!(result.output_shapes[0].dimensions.as_slice(), [2]);
    assert_eq!(output.to_vec(), [0xEE; 4]);
    // Shapes that nobody knows are refused before anything is computed.
    request.inputs[0].dimensions = Dimensions::new();
    assert_eq!(execute(&model, &request).status, ErrorStatus::InvalidArgument);
}

#[test]
fn loops_run_until_their_condition_fails_or_their_time_is_over() {
    let model = prepare(&counting(3));
    for (begin, want) in [(0, 12), (10, 10)] {
        let (request, output) = request(&[&ints(&[begin]), &ints(&[10])], 4);
        assert_eq!(execute(&model, &request).status, ErrorStatus::None);
        assert_eq!(output.to_vec(), ints(&[want]));
    }
    let endless = prepare(&counting(0));
    let (request, _) = request(&[&ints(&[0]), &ints(&[10])], 4);
    let loop_timeout = Some(Duration::from_millis(1));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    let result = endless.execute_synchronously(&request, &options);
    assert_eq!(result.status, ErrorStatus::MissedDeadlineTransient);
}

#[test]
fn a_deadline_and_a_cancelled_caller_end_an_execution() {
    let endless = prepare(&counting(0));
    let (request, _) = request(&[&ints(&[0]), &ints(&[10])], 4);
    let deadline = Some(TimePoint::after(Duration::from_millis(5)));
    let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
    let result = endless.execute_synchronously(&request, &options);
    assert_eq!(result.status, ErrorStatus::MissedDeadlineTransient);
    let result = endless.execute_synchronously(&request, &options);
    assert_eq!(result.status, ErrorStatus::MissedDeadlinePersistent, "it was over before it began");
    let word = CancelWord::default();
    word.cancel();
    let result = endless.execute_for(&request, &ExecutionOptions::default(), &Caller::new(&word));
    assert_eq!(result.status, ErrorStatus::GeneralFailure);
    let passed = PrepareOptions { deadline: Some(TimePoint::now()), ..PrepareOptions::default() };
    let refused = ReferenceDevice::default().prepare_model(&counting(1), &passed).err().unwrap();
    assert_eq!(refused.status, ErrorStatus::MissedDeadlinePersistent);
}

/// Weights are paid for as long as the model is there, values as long as an execution needs them.
#[test]
fn what_it_holds_is_charged_to_its_caller_and_given_back() {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[64, 64]);
    let (weights, none) = (b.constant_f32(&[64, 64], &[1.0; 4096]), b.scalar_i32(0));
    let y = b.result_of(OperationType::Add, &[x, weights, none], OutputSpec::f32(&[64, 64]));
    b.output(y);
    let model = b.build().unwrap();
    let purse = Purse::new(u64::MAX / 2);
    let device = ReferenceDevice::default();
    let prepared =
        device.prepare_model_for(&model, &PrepareOptions::default(), &purse.caller()).unwrap();
    let held = purse.charged();
    assert!(held >= 4 * 4096, "the weights: {held} bytes");
    let (request, output) = request(&[&floats(&[0.5; 4096])], 4 * 4096);
    assert_eq!(execute(&prepared, &request).status, ErrorStatus::None);
    assert_eq!(output.to_vec(), floats(&[1.5; 4096]));
    assert_eq!(purse.charged(), held, "values are gone with the execution");
    // Enough for the model, but for none of its values.
    let small = Purse::new(held + 1000);
    let prepared =
        device.prepare_model_for(&model, &PrepareOptions::default(), &small.caller()).unwrap();
    let result = execute(&prepared, &request);
    assert_eq!(result.status, ErrorStatus::ResourceExhaustedTransient);
    drop(prepared);
    assert_eq!((small.charged(), purse.charged()), (0, held));
    let smaller = Purse::new(1000);
    let refused = device.prepare_model_for(&model, &PrepareOptions::default(), &smaller.caller());
    assert_eq!(refused.err().unwrap().status, ErrorStatus::ResourceExhaustedTransient);
    assert_eq!(smaller.charged(), 0);
    assert!(device.supported_operations_for(&model, &smaller.caller()).is_err());
}

#[test]
fn what_no_execution_can_compute_is_not_supported_and_named() {
    let mut b = ModelBuilder::new();
    let (x, y) = (b.input(F32, &[2]), b.input(F32, &[3]));
    let none = b.scalar_i32(0);
    let sum = b.result_of(OperationType::Add, &[x, y, none], OutputSpec::f32(&[3]));
    let floor = b.result_of(OperationType::Floor, &[sum], OutputSpec::f32(&[3]));
    b.output(floor);
    let model = b.build().unwrap();
    let device = ReferenceDevice::default();
    assert_eq!(device.supported_operations(&model).unwrap(), [false, true]);
    let failure = device.prepare_model(&model, &PrepareOptions::default()).err().unwrap();
    assert_eq!(failure.status, ErrorStatus::GeneralFailure);
    assert!(failure.to_string().contains("ADD"), "{failure}");
    let mut illegal = model;
    illegal.main.operations[0].inputs[0] = 77;
    let failure = device.supported_operations(&illegal).unwrap_err();
    assert_eq!(failure.status, ErrorStatus::InvalidArgument);
}

#[test]
fn buffers_of_a_driver_are_refused() {
    let model = prepare(&floor());
    let (mut request, _) = request(&[&floats(&[1.5])], 4);
    request.inputs[0].dimensions = Dimensions::from_slice(&[1]);
    request.inputs[0].location = DataLocation { pool_index: 0, ..DataLocation::default() };
    request.pools[0] = RequestPool::Token(1);
    assert_eq!(execute(&model, &request).status, ErrorStatus::InvalidArgument);
}

#[test]
fn an_execution_says_how_long_it_took_when_it_is_asked() {
    let model = prepare(&counting(1));
    let (request, _) = request(&[&ints(&[0]), &ints(&[3])], 4);
    let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
    let timing = model.execute_synchronously(&request, &options).timing;
    assert!(timing.time_on_device_us <= timing.time_in_driver_us);
    assert_ne!(timing.time_in_driver_us, u64::MAX);
    assert_eq!(execute(&model, &request).timing.time_in_driver_us, u64::MAX);
}
