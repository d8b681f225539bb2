#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use super::*;
use crate::{
    BufferRole, DataLocation, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory,
    ModelBuilder, OperandType, OperationType, OutputSpec,
};

/// A model of two inputs and an output of `[2, ?]` floats that never runs.
struct Idle(RequestRules);

impl PreparedModel for Idle {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::GeneralFailure)
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.0)
    }
}

fn model() -> Arc<dyn PreparedModel> {
    let mut builder = ModelBuilder::new();
    let inputs = [(); 2].map(|()| builder.input(OperandType::TensorFloat32, &[2, 0]));
    let none = builder.scalar_i32(0);
    let operands = [inputs[0], inputs[1], none];
    let sum = builder.result_of(OperationType::Add, &operands, OutputSpec::f32(&[2, 0]));
    builder.output(sum);
    Arc::new(Idle(RequestRules::new(&builder.build().unwrap()).unwrap()))
}

fn role(position: u32) -> BufferRole {
    BufferRole { model: 0, position, frequency: 1.0 }
}

fn roles(model: &Arc<dyn PreparedModel>, inputs: &[u32], outputs: &[u32]) -> BufferRoles {
    let list = |positions: &[u32]| positions.iter().copied().map(role).collect();
    let (inputs, outputs) = (list(inputs), list(outputs));
    let models = vec![Arc::clone(model)];
    BufferRoles::new(&BufferRequest { dimensions: Dimensions::new(), models, inputs, outputs })
        .unwrap()
}

fn argument(pool_index: u32) -> RequestArgument {
    let location = DataLocation { pool_index, offset: 0, length: 0 };
    RequestArgument { location, ..RequestArgument::default() }
}

fn request(tokens: [u32; 3]) -> Request {
    Request {
        inputs: vec![argument(0), argument(1)],
        outputs: vec![argument(2)],
        pools: tokens.map(RequestPool::Token).to_vec(),
    }
}

fn status<T: fmt::Debug>(result: Result<T, Failure>) -> ErrorStatus {
    result.unwrap_err().status
}

const INVALID: ErrorStatus = ErrorStatus::InvalidArgument;
const GENERAL: ErrorStatus = ErrorStatus::GeneralFailure;

#[test]
fn a_request_finds_the_buffers_that_were_allocated_for_its_arguments_and_no_others() {
    let (model, other) = (model(), model());
    let tracker = BufferTracker::<()>::default();
    let both = tracker.add(roles(&model, &[0, 1], &[]), ());
    let result = tracker.add(roles(&model, &[], &[0]), ());
    let (from, to) = (both.token(), result.token());
    let find = |tokens| tracker.find(&*model, &request(tokens));
    assert_eq!(status(find([from, from, to])), GENERAL, "no value");
    both.lock().set([2, 3].as_slice().into());
    let found = find([from, from, to]).unwrap();
    assert_eq!(found.of(&argument(0)).unwrap().token(), from);
    assert_eq!(found.of(&argument(2)).unwrap().token(), to);
    let left_out = RequestArgument { has_no_value: true, ..argument(0) };
    assert!(found.of(&left_out).is_none() && found.of(&argument(3)).is_none());
    assert_eq!(status(find([from, from, 99])), INVALID, "no such token");
    assert_eq!(status(find([from, to, to])), INVALID, "not for that argument");
    assert_eq!(status(find([from, from, from])), INVALID, "not for that direction");
    let of_other = tracker.find(&*other, &request([from, from, to]));
    assert_eq!(status(of_other), INVALID, "not for that model");
    let mut part = request([from, from, to]);
    part.inputs[1].location.length = 4;
    assert_eq!(status(tracker.find(&*model, &part)), INVALID);
    drop(both);
    assert_eq!(status(find([from, from, to])), INVALID, "it is gone");
    assert_eq!(found.of(&argument(0)).unwrap().token(), from, "who found it keeps it");
    let next = tracker.add(roles(&model, &[0], &[]), ());
    assert!(next.token() > to, "no token comes twice");
}

#[test]
fn what_a_request_writes_it_uses_once_and_what_it_reads_as_often_as_it_likes() {
    let model = model();
    let tracker = BufferTracker::<()>::default();
    let any = tracker.add(roles(&model, &[0, 1], &[0]), ());
    let other = tracker.add(roles(&model, &[0, 1], &[0]), ());
    for buffer in [&any, &other] {
        buffer.lock().set([2, 1].as_slice().into());
    }
    let (one, two) = (any.token(), other.token());
    let find = |tokens| tracker.find(&*model, &request(tokens));
    find([one, one, two]).unwrap();
    assert_eq!(status(find([one, two, one])), INVALID);
    assert_eq!(status(find([two, one, one])), INVALID);
}

#[test]
fn dimensions_go_with_the_value_of_an_input_and_with_the_buffer_of_an_output() {
    let model = model();
    let tracker = BufferTracker::<()>::default();
    let input = tracker.add(roles(&model, &[0, 1], &[]), ());
    let output = tracker.add(roles(&model, &[], &[0]), ());
    input.lock().set([2, 3].as_slice().into());
    output.lock().set([2, 9].as_slice().into());
    let find = |of_input: &[u32], of_output: &[u32]| {
        let mut request = request([input.token(), input.token(), output.token()]);
        request.inputs[1].dimensions = of_input.into();
        request.outputs[0].dimensions = of_output.into();
        tracker.find(&*model, &request)
    };
    find(&[], &[]).unwrap();
    find(&[2, 3], &[2, 3]).unwrap();
    assert_eq!(status(find(&[2, 4], &[])), INVALID, "not the value's");
    assert_eq!(status(find(&[6], &[])), INVALID, "not the value's rank");
    find(&[], &[2, 4]).expect("its old value does not matter");
    assert_eq!(status(find(&[], &[3, 3])), INVALID);
    output.check_computed(&[2, 7]).unwrap();
    assert_eq!(status(output.check_computed(&[1, 7])), GENERAL);
    assert_eq!(status(output.check_computed(&[0, 7])), GENERAL, "no elements are not two");
}

#[test]
fn copies_need_a_value_its_size_and_dimensions_that_are_known() {
    let model = model();
    let tracker = BufferTracker::<()>::default();
    let buffer = tracker.add(roles(&model, &[0], &[]), ());
    let copy_to = |bytes| buffer.check_copy_to(&buffer.lock(), bytes);
    assert_eq!(status(copy_to(24)), GENERAL, "no value");
    assert_eq!(status(buffer.check_copy_from(24, &[])), INVALID, "how long?");
    assert_eq!(status(buffer.check_copy_from(24, &[2, 0])), INVALID);
    assert_eq!(status(buffer.check_copy_from(24, &[3, 2])), INVALID, "another size");
    assert_eq!(status(buffer.check_copy_from(23, &[2, 3])), INVALID, "another length");
    let value = buffer.check_copy_from(24, &[2, 3]).unwrap();
    buffer.lock().set(value);
    assert_eq!(buffer.lock().dimensions(), Some(&[2, 3][..]));
    copy_to(24).unwrap();
    assert_eq!(status(copy_to(25)), INVALID);
    buffer.lock().clear();
    assert_eq!(status(copy_to(24)), GENERAL);
}

#[test]
fn a_destination_that_no_value_fits_is_told_before_the_value_is_missed() {
    let model = model();
    let tracker = BufferTracker::<()>::default();
    let request = BufferRequest {
        dimensions: [2, 3].as_slice().into(),
        models: vec![Arc::clone(&model)],
        inputs: vec![role(0)],
        ..BufferRequest::default()
    };
    let buffer = tracker.add(BufferRoles::new(&request).unwrap(), ());
    let copy_to = |bytes| status(buffer.check_copy_to(&buffer.lock(), bytes));
    assert_eq!((copy_to(24), copy_to(23)), (GENERAL, INVALID));
}

#[test]
fn a_model_that_says_nothing_of_its_arguments_has_no_buffers() {
    struct Silent;
    impl PreparedModel for Silent {
        fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
            ExecutionResult::of(ErrorStatus::GeneralFailure)
        }
    }
    let models: Vec<Arc<dyn PreparedModel>> = vec![Arc::new(Silent)];
    let request = BufferRequest { models, inputs: vec![role(0)], ..BufferRequest::default() };
    assert_eq!(status(BufferRoles::new(&request)), GENERAL);
}

#[test]
fn requests_in_memory_ask_for_nothing() {
    let tracker = BufferTracker::<()>::default();
    let pool = RequestPool::Memory(Arc::new(HeapMemory::new(vec![1])));
    let request = Request { pools: vec![pool], ..Request::default() };
    assert!(tracker.find(&*model(), &request).unwrap().is_empty());
}
