//! Which status an execution ends with that cannot give what was asked for: INVALID_ARGUMENT for what can be seen of
//! the request, GENERAL_FAILURE for what only the values or the computed shapes say. Both devices, each way to
//! execute, and nothing of a failed execution is copied out.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;

use burst_driver::{CpuDevice, ReferenceDevice};
use burst_hal::{
    BufferRequest, BufferRole, Caller, DataLocation, Device, Dimensions, ErrorStatus,
    ExecutionOptions, ExecutionResult, HeapMemory, Model, ModelBuilder, OperandType, OperationType,
    OutputSpec, Pool, PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool,
};

const F32: OperandType = OperandType::TensorFloat32;
const I32: OperandType = OperandType::TensorInt32;
const NONE: ErrorStatus = ErrorStatus::None;
const GENERAL: ErrorStatus = ErrorStatus::GeneralFailure;
const INVALID: ErrorStatus = ErrorStatus::InvalidArgument;

/// What an output's memory holds before.
const UNTOUCHED: u8 = 0xEE;

fn devices() -> [Box<dyn Device>; 2] {
    [Box::new(CpuDevice::default()), Box::new(ReferenceDevice::default())]
}

fn prepare(device: &dyn Device, model: &Model) -> Arc<dyn PreparedModel> {
    device.prepare_model(model, &PrepareOptions::default()).unwrap()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// Each argument in memory of its own: inputs with these dimensions and bytes, outputs with these dimensions and so
/// much room.
fn request(
    inputs: &[(&[u32], Vec<u8>)],
    outputs: &[(&[u32], usize)],
) -> (Request, Vec<Arc<HeapMemory>>) {
    let (mut request, mut memories) = (Request::default(), Vec::new());
    let mut add = |dims: &[u32], bytes: Vec<u8>| {
        let length = u32::try_from(bytes.len()).unwrap();
        let pool_index = u32::try_from(request.pools.len()).unwrap();
        let memory = Arc::new(HeapMemory::new(bytes));
        request.pools.push(RequestPool::Memory(Arc::clone(&memory) as Pool));
        memories.push(memory);
        RequestArgument {
            has_no_value: false,
            location: DataLocation { pool_index, offset: 0, length },
            dimensions: Dimensions::from_slice(dims),
        }
    };
    let read: Vec<_> = inputs.iter().map(|(dims, bytes)| add(dims, bytes.clone())).collect();
    let written: Vec<_> =
        outputs.iter().map(|(dims, room)| add(dims, vec![UNTOUCHED; *room])).collect();
    (request.inputs, request.outputs) = (read, written);
    (request, memories.split_off(inputs.len()))
}

/// What the request ends with, in every way; a failure leaves the memory of all outputs as it was.
fn ends(
    model: &Arc<dyn PreparedModel>,
    inputs: &[(&[u32], Vec<u8>)],
    outputs: &[(&[u32], usize)],
) -> ErrorStatus {
    let options = ExecutionOptions::default();
    let mut burst = Arc::clone(model).open_burst().unwrap();
    let mut in_burst = |request: &Request| {
        let mut result = ExecutionResult::of(NONE);
        burst.execute(request, &options, &mut result);
        result
    };
    let alone = |request: &Request| model.execute_synchronously(request, &options);
    let statuses = ["alone", "in a burst"].map(|way| {
        let (request, memories) = request(inputs, outputs);
        let result = if way == "alone" { alone(&request) } else { in_burst(&request) };
        if result.status != NONE {
            assert!(result.output_shapes.is_empty(), "{way}");
            for memory in memories {
                assert!(memory.to_vec().iter().all(|byte| *byte == UNTOUCHED), "{way}");
            }
        }
        result.status
    });
    assert_eq!(statuses[0], statuses[1]);
    statuses[0]
}

/// FLOOR and ABS of `x`, with outputs that the model leaves open.
fn two_of(x: &[u32], declared: &[u32]) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, x);
    for ty in [OperationType::Floor, OperationType::Abs] {
        let y = b.result_of(ty, &[x], OutputSpec::f32(declared));
        b.output(y);
    }
    b.build().unwrap()
}

#[test]
fn an_output_of_other_dimensions_than_the_request_says_is_a_failure() {
    for device in devices() {
        for (x, declared) in [(&[0][..], &[0][..]), (&[4], &[0]), (&[4], &[])] {
            let model = prepare(&*device, &two_of(x, declared));
            let input = [(&[4][..], floats(&[1.5; 4]))];
            for (asked, want) in [
                (&[5][..], GENERAL),
                (&[3], GENERAL),
                (&[4], NONE),
                (&[0], NONE),
                (&[], NONE),
                // Of another rank than the model says, where it says one.
                (&[2, 2], if declared.is_empty() { GENERAL } else { INVALID }),
            ] {
                let name = device.name();
                // The one that fits is not copied either, whichever of the two it is.
                let said = ends(&model, &input, &[(asked, 20), (&[4], 20)]);
                assert_eq!(said, want, "{name}: {declared:?} {asked:?}");
                let said = ends(&model, &input, &[(&[4], 20), (asked, 20)]);
                assert_eq!(said, want, "{name}: {declared:?} {asked:?}");
            }
            // Too little room is no excuse for other dimensions.
            let said = ends(&model, &input, &[(&[4], 4), (&[5], 20)]);
            assert_eq!(said, GENERAL, "{}", device.name());
        }
    }
}

#[test]
fn a_buffer_keeps_no_value_of_other_dimensions_than_the_request_or_its_roles_say() {
    let device = CpuDevice::default();
    let model = prepare(&device, &two_of(&[0], &[0]));
    let role = BufferRole { model: 0, position: 1, frequency: 1.0 };
    for (of_buffer, of_request) in [(&[][..], &[5][..]), (&[5], &[]), (&[5], &[5])] {
        let asked = BufferRequest {
            dimensions: Dimensions::from_slice(of_buffer),
            models: vec![Arc::clone(&model)],
            outputs: vec![role],
            ..BufferRequest::default()
        };
        let buffer = device.allocate(&asked, &Caller::default()).unwrap();
        let (mut request, memories) =
            request(&[(&[4], floats(&[1.5; 4]))], &[(&[], 16), (of_request, 1)]);
        request.outputs[1].location = DataLocation { pool_index: 2, offset: 0, length: 0 };
        request.pools[2] = RequestPool::Token(buffer.token());
        let status = model.execute_synchronously(&request, &ExecutionOptions::default()).status;
        assert_eq!(status, GENERAL, "{of_buffer:?} {of_request:?}");
        assert_eq!(memories[0].to_vec(), [UNTOUCHED; 16], "the other output");
        let copy: Pool = Arc::new(HeapMemory::new(vec![0; 20]));
        assert_eq!(buffer.copy_to(&copy).unwrap_err().status, GENERAL, "there is no value");
    }
}

/// GATHER of `[1, 2, 3, 4]` at an index that comes with the request.
fn gather() -> Model {
    let mut b = ModelBuilder::new();
    let x = b.constant_f32(&[4], &[1.0, 2.0, 3.0, 4.0]);
    let (axis, index) = (b.scalar_i32(0), b.input(I32, &[1]));
    let y = b.result_of(OperationType::Gather, &[x, axis, index], OutputSpec::f32(&[1]));
    b.output(y);
    b.build().unwrap()
}

/// Row of a table at an index that comes with the request.
fn lookup() -> Model {
    let mut b = ModelBuilder::new();
    let (index, table) = (b.input(I32, &[1]), b.constant_f32(&[2, 1], &[1.0, 2.0]));
    let y = b.result_of(OperationType::EmbeddingLookup, &[index, table], OutputSpec::f32(&[1, 1]));
    b.output(y);
    b.build().unwrap()
}

/// Sum of two lists of which the model does not know how long they are.
fn open_sum() -> Model {
    let mut b = ModelBuilder::new();
    let (x, y, none) = (b.input(F32, &[0]), b.input(F32, &[0]), b.scalar_i32(0));
    let sum = b.result_of(OperationType::Add, &[x, y, none], OutputSpec::f32(&[0]));
    b.output(sum);
    b.build().unwrap()
}

#[test]
fn what_only_the_values_say_is_no_fault_of_an_argument() {
    for device in devices() {
        let name = device.name();
        for (model, last) in [(gather(), 3), (lookup(), 1)] {
            let model = prepare(&*device, &model);
            for (index, want) in
                [(0, NONE), (last, NONE), (last + 1, GENERAL), (-1, GENERAL), (i32::MIN, GENERAL)]
            {
                let said = ends(&model, &[(&[], ints(&[index]))], &[(&[], 4)]);
                assert_eq!(said, want, "{name}: {index}");
            }
        }
        let sum = prepare(&*device, &open_sum());
        let of = |x: u32, y: u32| {
            let list = |count| floats(&vec![1.0; count as usize]);
            ends(&sum, &[(&[x], list(x)), (&[y], list(y))], &[(&[], 12)])
        };
        assert_eq!((of(3, 1), of(3, 2)), (NONE, GENERAL), "{name}");
    }
}

#[test]
fn no_output_may_be_left_out() {
    for device in devices() {
        let model = prepare(&*device, &two_of(&[4], &[4]));
        for index in 0..2 {
            let (mut request, memories) =
                request(&[(&[], floats(&[1.5; 4]))], &[(&[], 16), (&[], 16)]);
            request.outputs[index] =
                RequestArgument { has_no_value: true, ..RequestArgument::default() };
            let status = model.execute_synchronously(&request, &ExecutionOptions::default()).status;
            assert_eq!(status, INVALID, "{}: {index}", device.name());
            assert!(memories.iter().all(|memory| memory.to_vec() == [UNTOUCHED; 16]));
        }
    }
}

#[test]
fn outputs_do_not_lie_in_the_same_bytes() {
    for device in devices() {
        let model = prepare(&*device, &two_of(&[4], &[4]));
        let (mut request, memories) = request(&[(&[], floats(&[1.5; 4]))], &[(&[], 32), (&[], 16)]);
        let execute = |request: &Request| {
            model.execute_synchronously(request, &ExecutionOptions::default()).status
        };
        for (offset, want) in [(0, INVALID), (15, INVALID), (16, NONE)] {
            request.outputs[0].location = DataLocation { pool_index: 1, offset: 0, length: 16 };
            request.outputs[1].location = DataLocation { pool_index: 1, offset, length: 16 };
            assert_eq!(execute(&request), want, "{}: {offset}", device.name());
        }
        assert_eq!(memories[0].to_vec(), floats(&[1.0, 1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 1.5]));
        request.outputs[0].location.pool_index = 0;
        assert_eq!(execute(&request), INVALID, "{}: the input", device.name());
    }
}
