//! A prepared model from the outside: shapes, missing room, left-out inputs, folding, concurrency.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;

use burst_driver::{CpuDevice, DeviceOptions, ReferenceDevice};
use burst_hal::{
    DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory, Model,
    ModelBuilder, OperandType, OperationType, OutputSpec, PrepareOptions, PreparedModel, Request,
    RequestArgument, RequestPool, TimePoint, Timing,
};

const F32: OperandType = OperandType::TensorFloat32;

/// `(x + y) + [1, 2]`, with the shape of `x` as given.
fn sums(x_dims: &[u32]) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, x_dims);
    let y = b.input(F32, &[2]);
    let none = b.scalar_i32(0);
    let constant = b.constant_f32(&[2], &[1.0, 2.0]);
    let sum = b.result_of(OperationType::Add, &[x, y, none], OutputSpec::new(F32, &[]));
    let out = b.result_of(OperationType::Add, &[sum, constant, none], OutputSpec::new(F32, &[]));
    b.output(out);
    b.build().expect("a legal model")
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn to_floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect()
}

struct Io {
    request: Request,
    output: Arc<HeapMemory>,
}

/// A request with one pool per argument.
fn request(inputs: &[(&[u32], Vec<u8>)], output_len: usize) -> Io {
    let output = Arc::new(HeapMemory::new(vec![0xAA; output_len]));
    let mut request = Request::default();
    for (index, (dims, bytes)) in inputs.iter().enumerate() {
        request.inputs.push(RequestArgument {
            has_no_value: false,
            location: DataLocation {
                pool_index: u32::try_from(index).unwrap(),
                offset: 0,
                length: u32::try_from(bytes.len()).unwrap(),
            },
            dimensions: (*dims).into(),
        });
        request.pools.push(RequestPool::Memory(Arc::new(HeapMemory::new(bytes.clone()))));
    }
    request.outputs.push(RequestArgument {
        has_no_value: false,
        location: DataLocation {
            pool_index: u32::try_from(inputs.len()).unwrap(),
            offset: 0,
            length: u32::try_from(output_len).unwrap(),
        },
        ..RequestArgument::default()
    });
    request.pools.push(RequestPool::Memory(output.clone()));
    Io { request, output }
}

fn prepare(model: &Model) -> Arc<dyn PreparedModel> {
    CpuDevice::default().prepare_model(model, &PrepareOptions::default()).unwrap()
}

fn run(model: &Arc<dyn PreparedModel>, request: &Request) -> ExecutionResult {
    model.execute_synchronously(request, &ExecutionOptions::default())
}

#[test]
fn a_model_with_known_shapes_computes() {
    let io = request(&[(&[], floats(&[1.0, 2.0, 3.0, 4.0])), (&[], floats(&[10.0, 20.0]))], 16);
    let model = prepare(&sums(&[2, 2]));
    for _ in 0..3 {
        let result = run(&model, &io.request);
        assert_eq!(result.status, ErrorStatus::None);
        assert_eq!(result.output_shapes[0].dimensions.as_slice(), [2, 2]);
        assert!(result.output_shapes[0].is_sufficient);
        assert_eq!(result.timing, Timing::UNAVAILABLE);
        assert_eq!(to_floats(&io.output.to_vec()), [12.0, 24.0, 14.0, 26.0]);
    }
}

/// `max(x + y, 0)` or `x + y`: which one, each request says.
#[test]
fn an_attribute_may_be_given_with_the_request() {
    let mut b = ModelBuilder::new();
    let [x, y] = [b.input(F32, &[2]), b.input(F32, &[2])];
    let activation = b.input(OperandType::Int32, &[]);
    let sum = b.result_of(OperationType::Add, &[x, y, activation], OutputSpec::new(F32, &[]));
    b.output(sum);
    let model = prepare(&b.build().expect("a legal model"));
    for (code, want) in
        [(0i32, Some([-3.0, 5.0])), (1, Some([0.0, 5.0])), (9, None), (0, Some([-3.0, 5.0]))]
    {
        let io = request(
            &[
                (&[], floats(&[-4.0, 2.0])),
                (&[], floats(&[1.0, 3.0])),
                (&[], code.to_ne_bytes().to_vec()),
            ],
            8,
        );
        let result = run(&model, &io.request);
        match want {
            Some(want) => {
                assert_eq!(result.status, ErrorStatus::None);
                assert_eq!(to_floats(&io.output.to_vec()), want, "activation {code}");
            }
            None => assert_eq!(result.status, ErrorStatus::GeneralFailure),
        }
    }
}

#[test]
fn shapes_given_with_the_request_are_inferred_anew_each_time() {
    let model = prepare(&sums(&[0, 2]));
    for rows in [1u32, 3, 2] {
        let x: Vec<f32> = (0..rows * 2).map(|i| f32::from(u8::try_from(i).unwrap())).collect();
        let io = request(&[(&[rows, 2], floats(&x)), (&[], floats(&[0.0, 0.0]))], 64);
        let result = run(&model, &io.request);
        assert_eq!(result.status, ErrorStatus::None);
        assert_eq!(result.output_shapes[0].dimensions.as_slice(), [rows, 2]);
        let want: Vec<f32> =
            x.iter().enumerate().map(|(i, v)| v + if i % 2 == 0 { 1.0 } else { 2.0 }).collect();
        assert_eq!(to_floats(&io.output.to_vec())[..want.len()], want);
    }
    // Without dimensions the input is not fully specified.
    let io = request(&[(&[], floats(&[1.0, 2.0])), (&[], floats(&[0.0, 0.0]))], 64);
    assert_eq!(run(&model, &io.request).status, ErrorStatus::InvalidArgument);
}

#[test]
fn too_little_room_says_how_much_is_needed_and_writes_nothing() {
    let model = prepare(&sums(&[2, 2]));
    let io = request(&[(&[], floats(&[1.0; 4])), (&[], floats(&[1.0; 2]))], 15);
    let result = model.execute_synchronously(
        &io.request,
        &ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() },
    );
    assert_eq!(result.status, ErrorStatus::OutputInsufficientSize);
    assert_eq!(result.output_shapes[0].dimensions.as_slice(), [2, 2]);
    assert!(!result.output_shapes[0].is_sufficient);
    assert_eq!(result.timing, Timing::UNAVAILABLE);
    assert_eq!(io.output.to_vec(), vec![0xAA; 15]);
}

#[test]
fn an_input_that_must_be_given_cannot_be_left_out() {
    let model = prepare(&sums(&[2, 2]));
    let mut io = request(&[(&[], floats(&[1.0; 4])), (&[], floats(&[1.0; 2]))], 16);
    io.request.inputs[1] = RequestArgument { has_no_value: true, ..RequestArgument::default() };
    let result = run(&model, &io.request);
    assert_eq!(result.status, ErrorStatus::InvalidArgument);
    assert!(result.output_shapes.is_empty());
}

#[test]
fn a_deadline_that_has_passed_is_missed() {
    let model = prepare(&sums(&[2, 2]));
    let io = request(&[(&[], floats(&[1.0; 4])), (&[], floats(&[1.0; 2]))], 16);
    let past =
        ExecutionOptions { deadline: Some(TimePoint { nanos: 1 }), ..ExecutionOptions::default() };
    let status = model.execute_synchronously(&io.request, &past).status;
    assert_eq!(status, ErrorStatus::MissedDeadlinePersistent);
}

#[test]
fn timing_is_told_when_asked_for() {
    let model = prepare(&sums(&[2, 2]));
    let io = request(&[(&[], floats(&[1.0; 4])), (&[], floats(&[1.0; 2]))], 16);
    let measured = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
    let timing = model.execute_synchronously(&io.request, &measured).timing;
    assert_ne!(timing, Timing::UNAVAILABLE);
    assert!(timing.time_on_device_us <= timing.time_in_driver_us);
}

#[test]
fn constants_are_folded() {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[2]);
    let none = b.scalar_i32(0);
    let one = b.constant_f32(&[2], &[1.0, 2.0]);
    let two = b.constant_f32(&[1], &[10.0]);
    let folded = b.result_of(OperationType::Add, &[one, two, none], OutputSpec::new(F32, &[2]));
    let out = b.result_of(OperationType::Add, &[x, folded, none], OutputSpec::new(F32, &[2]));
    b.output(out);
    let model = b.build().unwrap();
    let prepared = CpuDevice::new(DeviceOptions::default()).prepare(&model).unwrap();
    // One step is left: the input, the folded constant (64 bytes each, aligned) and the scalar.
    assert!(prepared.plan().held_bytes() <= 128, "{}", prepared.plan().held_bytes());
    let io = request(&[(&[], floats(&[100.0, 200.0]))], 8);
    assert_eq!(run(&(Arc::new(prepared) as _), &io.request).status, ErrorStatus::None);
    assert_eq!(to_floats(&io.output.to_vec()), [111.0, 212.0]);
}

#[test]
fn an_operation_that_is_not_there_is_refused_by_name_and_not_reported_as_supported() {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[2]);
    let y = b.input(F32, &[2]);
    let none = b.scalar_i32(0);
    let sum = b.result_of(OperationType::Add, &[x, y, none], OutputSpec::new(F32, &[2]));
    let oem = b.result_of(OperationType::OemOperation, &[sum], OutputSpec::new(F32, &[2]));
    b.output(oem);
    let model = b.build().unwrap();
    let device = CpuDevice::default();
    assert_eq!(device.supported_operations(&model).unwrap(), [true, false]);
    let Err(failure) = device.prepare_model(&model, &PrepareOptions::default()) else {
        panic!("an OEM operation was prepared");
    };
    assert_eq!(failure.status, ErrorStatus::GeneralFailure);
    let text = failure.to_string();
    assert!(text.contains("operation 1 (OEM_OPERATION)"), "{text}");
}

#[test]
fn a_wrong_signature_makes_the_model_invalid() {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[2]);
    let y = b.input(OperandType::TensorInt32, &[2]);
    let none = b.scalar_i32(0);
    let sum = b.result_of(OperationType::Add, &[x, y, none], OutputSpec::new(F32, &[2]));
    b.output(sum);
    let model = b.build().unwrap();
    let device = CpuDevice::default();
    assert_eq!(
        device.supported_operations(&model).unwrap_err().status,
        ErrorStatus::InvalidArgument
    );
    assert!(device.prepare_model(&model, &PrepareOptions::default()).is_err());
}

#[test]
fn executions_of_one_model_run_at_the_same_time_without_mixing() {
    let model = prepare(&sums(&[2, 2]));
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let model = &model;
            scope.spawn(move || {
                let base = f32::from(thread) * 100.0;
                for round in 0..200u8 {
                    let x = base + f32::from(round);
                    let io = request(&[(&[], floats(&[x; 4])), (&[], floats(&[0.0, 0.0]))], 16);
                    assert_eq!(run(model, &io.request).status, ErrorStatus::None);
                    let want = [x + 1.0, x + 2.0, x + 1.0, x + 2.0];
                    assert_eq!(to_floats(&io.output.to_vec()), want);
                }
            });
        }
    });
}

#[test]
fn leave_to_compute_with_less_precision_changes_no_bit() {
    let run = |relaxed: bool| {
        let mut b = ModelBuilder::new();
        b.relaxed(relaxed);
        let x = b.input(F32, &[1, 3]);
        let weights = b.constant_f32(&[2, 3], &[0.1, 0.2, 0.3, 1.1, -0.7, 1e-3]);
        let (bias, none) = (b.constant_f32(&[2], &[1e-4, 3.3]), b.scalar_i32(0));
        let operands = [x, weights, bias, none];
        let y = b.result_of(OperationType::FullyConnected, &operands, OutputSpec::f32(&[1, 2]));
        b.output(y);
        let model = b.build().unwrap();
        assert_eq!(model.relax_computation_float32_to_float16, relaxed);
        let prepared = CpuDevice::default().prepare(&model).unwrap();
        let values = [0.333_333_f32, 1.0e-3, 7.7, 0.0, 0.0].map(f32::to_ne_bytes).concat();
        let memory = Arc::new(HeapMemory::new(values));
        let argument = |offset, length| RequestArgument {
            location: DataLocation { pool_index: 0, offset, length },
            ..RequestArgument::default()
        };
        let request = Request {
            inputs: vec![argument(0, 12)],
            outputs: vec![argument(12, 8)],
            pools: vec![RequestPool::Memory(memory.clone())],
        };
        let result = prepared.execute_synchronously(&request, &ExecutionOptions::default());
        assert_eq!(result.status, ErrorStatus::None);
        memory.to_vec()
    };
    assert_eq!(run(true), run(false));
}

/// How many of two boxes are left, where the model declares two scores for output 0.
#[test]
fn shapes_that_values_decide_agree_with_what_the_model_declares() {
    let mut b = ModelBuilder::new();
    let scores = b.input(F32, &[2, 2]);
    let apart = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0];
    let boxes = b.constant_f32(&[2, 8], &[apart, apart.map(|at| at + 4.0)].concat());
    let split = b.constant_i32(&[2], &[0, 0]);
    let half = b.scalar_f32(0.5);
    let (no_limit, hard) = (b.scalar_i32(-1), b.scalar_i32(0));
    let left = b.operation(
        OperationType::BoxWithNmsLimit,
        &[scores, boxes, split, half, no_limit, hard, half, half, half],
        &[
            OutputSpec::new(F32, &[2]),
            OutputSpec::new(F32, &[0, 4]),
            OutputSpec::new(OperandType::TensorInt32, &[0]),
            OutputSpec::new(OperandType::TensorInt32, &[0]),
        ],
    );
    b.output(left[0]);
    let model = b.build().unwrap();
    let reference = ReferenceDevice::default();
    let devices: [&dyn Device; 2] = [&CpuDevice::default(), &reference];
    for device in devices {
        let prepared = device.prepare_model(&model, &PrepareOptions::default()).unwrap();
        let both = request(&[(&[], floats(&[0.0, 0.9, 0.0, 0.8]))], 8);
        assert_eq!(run(&prepared, &both.request).status, ErrorStatus::None);
        assert_eq!(to_floats(&both.output.to_vec()), [0.9, 0.8]);
        let one = request(&[(&[], floats(&[0.0, 0.9, 0.0, 0.1]))], 8);
        let result = run(&prepared, &one.request);
        assert_eq!(result.status, ErrorStatus::GeneralFailure, "{}", device.name());
        assert!(result.output_shapes.is_empty());
        assert_eq!(one.output.to_vec(), [0xAA; 8]);
    }
}
