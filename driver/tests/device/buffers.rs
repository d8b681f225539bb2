//! Buffers of the device from the outside: what executions read and write without a copy, and what they
//! leave behind when they fail.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::{Arc, Barrier};

use burst_driver::CpuDevice;
use burst_hal::{
    Buffer, BufferRequest, BufferRole, Caller, DataLocation, Device, ErrorStatus, ExecutionOptions,
    ExecutionResult, HeapMemory, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool,
    PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool, TimePoint,
};

const F32: OperandType = OperandType::TensorFloat32;
const NONE: ErrorStatus = ErrorStatus::None;
const GENERAL: ErrorStatus = ErrorStatus::GeneralFailure;
const INVALID: ErrorStatus = ErrorStatus::InvalidArgument;

/// `x + 1` on so many floats, their number known to the model or not.
fn plus_one(declared: &[u32]) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, declared);
    let (one, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
    let y = b.result_of(OperationType::Add, &[x, one, none], OutputSpec::new(F32, declared));
    b.output(y);
    b.build().unwrap()
}

fn prepare(device: &CpuDevice, model: &Model) -> Arc<dyn PreparedModel> {
    device.prepare_model(model, &PrepareOptions::default()).unwrap()
}

fn role(model: u32, position: u32) -> BufferRole {
    BufferRole { model, position, frequency: 1.0 }
}

/// A buffer for these inputs and outputs of the models.
fn allocate(
    device: &CpuDevice,
    models: &[&Arc<dyn PreparedModel>],
    [inputs, outputs]: [&[(u32, u32)]; 2],
    dimensions: &[u32],
) -> Arc<dyn Buffer> {
    let list = |roles: &[(u32, u32)]| roles.iter().map(|(m, p)| role(*m, *p)).collect();
    let request = BufferRequest {
        dimensions: dimensions.into(),
        models: models.iter().map(|model| Arc::clone(model)).collect(),
        inputs: list(inputs),
        outputs: list(outputs),
    };
    device.allocate(&request, &Caller::default()).unwrap()
}

fn whole(pool_index: u32) -> RequestArgument {
    let location = DataLocation { pool_index, offset: 0, length: 0 };
    RequestArgument { location, ..RequestArgument::default() }
}

fn token(buffer: &Arc<dyn Buffer>) -> RequestPool {
    RequestPool::Token(buffer.token())
}

/// Inputs and outputs in pools of their own, in order.
fn request(inputs: Vec<RequestPool>, outputs: Vec<RequestPool>) -> Request {
    let count = u32::try_from(inputs.len()).unwrap();
    let all = count + u32::try_from(outputs.len()).unwrap();
    Request {
        inputs: (0..count).map(whole).collect(),
        outputs: (count..all).map(whole).collect(),
        pools: inputs.into_iter().chain(outputs).collect(),
    }
}

fn execute(model: &Arc<dyn PreparedModel>, request: &Request) -> ExecutionResult {
    model.execute_synchronously(request, &ExecutionOptions::default())
}

fn pool(values: &[f32]) -> Pool {
    Arc::new(HeapMemory::new(values.iter().flat_map(|v| v.to_ne_bytes()).collect()))
}

fn memory(values: &[f32]) -> RequestPool {
    RequestPool::Memory(pool(values))
}

fn value(buffer: &Arc<dyn Buffer>, count: usize) -> Vec<f32> {
    let copy = Arc::new(HeapMemory::new(vec![0; count * 4]));
    buffer.copy_to(&(Arc::clone(&copy) as Pool)).unwrap();
    copy.to_vec().chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn a_value_goes_from_one_model_to_the_next_also_where_the_models_do_not_know_its_size() {
    for declared in [&[4][..], &[0], &[]] {
        let device = CpuDevice::default();
        let models = [(); 3].map(|()| prepare(&device, &plus_one(declared)));
        let between =
            |from, to| allocate(&device, &models.each_ref(), [&[(to, 0)], &[(from, 0)]], &[4]);
        let (first, second) = (between(0, 1), between(1, 2));
        for round in 0..4_u8 {
            let start = f32::from(round);
            let input = memory(&[start, 0.0, -1.0, 0.5]);
            let mut request = request(vec![input], vec![token(&first)]);
            request.inputs[0].dimensions = [4].as_slice().into();
            let shapes = execute(&models[0], &request).output_shapes;
            assert_eq!(shapes[0].dimensions.as_slice(), [4], "{declared:?}");
            let step = self::request(vec![token(&first)], vec![token(&second)]);
            assert_eq!(execute(&models[1], &step).status, NONE, "{declared:?}");
            let output = Arc::new(HeapMemory::new(vec![0; 16]));
            let output_pool = RequestPool::Memory(Arc::clone(&output) as Pool);
            let last = self::request(vec![token(&second)], vec![output_pool]);
            assert_eq!(execute(&models[2], &last).status, NONE, "{declared:?}");
            let want = [start + 3.0, 3.0, 2.0, 3.5].map(f32::to_ne_bytes).concat();
            assert_eq!(output.to_vec(), want, "{declared:?}, round {round}");
            assert_eq!(value(&first, 4), [start + 1.0, 1.0, 0.0, 1.5]);
        }
    }
}

#[test]
fn a_burst_uses_buffers_and_memory_in_turns() {
    let device = CpuDevice::default();
    let model = prepare(&device, &plus_one(&[4]));
    let [one, two] = [(); 2].map(|()| allocate(&device, &[&model], [&[(0, 0)], &[(0, 0)]], &[]));
    one.copy_from(&pool(&[0.0; 4]), &[]).unwrap();
    let mut burst = Arc::clone(&model).open_burst().unwrap();
    let mut result = ExecutionResult::of(GENERAL);
    let output = Arc::new(HeapMemory::new(vec![0; 16]));
    let plain =
        request(vec![memory(&[7.0; 4])], vec![RequestPool::Memory(Arc::clone(&output) as Pool)]);
    for round in 0..6_u8 {
        let (from, to) = if round % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let lent = request(vec![token(from)], vec![token(to)]);
        for request in [&lent, &plain] {
            burst.execute(request, &ExecutionOptions::default(), &mut result);
            assert_eq!(result.status, NONE);
        }
        assert_eq!(value(to, 4), [f32::from(round) + 1.0; 4]);
        assert_eq!(output.to_vec(), [8.0_f32; 4].map(f32::to_ne_bytes).concat());
    }
}

#[test]
fn outputs_of_control_flow_and_constant_ones_arrive_too() {
    let mut b = ModelBuilder::new();
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let x = b.input(F32, &[2]);
    let branch = |b: &mut ModelBuilder, value| {
        b.referenced(|b| {
            let x = b.input(F32, &[2]);
            let (constant, none) = (b.constant_f32(&[1], &[value]), b.scalar_i32(0));
            let sum = b.result_of(OperationType::Add, &[x, constant, none], OutputSpec::f32(&[2]));
            b.output(sum);
        })
    };
    let (then, otherwise) = (branch(&mut b, 10.0), branch(&mut b, 20.0));
    let [then, otherwise] = [then, otherwise].map(|graph| b.subgraph(graph));
    let operands = [condition, then, otherwise, x];
    let chosen = b.result_of(OperationType::If, &operands, OutputSpec::f32(&[2]));
    b.output(chosen);
    let (three, four, none) =
        (b.constant_f32(&[2], &[3.0; 2]), b.constant_f32(&[2], &[4.0, 5.0]), b.scalar_i32(0));
    let seven = b.result_of(OperationType::Add, &[three, four, none], OutputSpec::f32(&[2]));
    b.output(seven);
    let device = CpuDevice::default();
    let model = prepare(&device, &b.build().unwrap());
    let input = allocate(&device, &[&model], [&[(0, 1)], &[]], &[]);
    let outputs = [0, 1].map(|output| allocate(&device, &[&model], [&[], &[(0, output)]], &[]));
    input.copy_from(&pool(&[1.0, 2.0]), &[]).unwrap();
    for (condition, want) in [(1, [11.0, 12.0]), (0, [21.0, 22.0]), (1, [11.0, 12.0])] {
        let condition = RequestPool::Memory(Arc::new(HeapMemory::new(vec![condition])));
        let request = request(vec![condition, token(&input)], outputs.iter().map(token).collect());
        assert_eq!(execute(&model, &request).status, NONE);
        assert_eq!(value(&outputs[0], 2), want);
        assert_eq!(value(&outputs[1], 2), [7.0, 8.0]);
    }
}

#[test]
fn an_execution_that_fails_leaves_its_outputs_without_a_value_and_one_that_is_refused_as_they_were()
{
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[0]);
    let (one, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
    let outputs = [(); 2]
        .map(|()| b.result_of(OperationType::Add, &[x, one, none], OutputSpec::new(F32, &[0])));
    outputs.into_iter().for_each(|output| b.output(output));
    let device = CpuDevice::default();
    let model = prepare(&device, &b.build().unwrap());
    let buffer = allocate(&device, &[&model], [&[], &[(0, 0)]], &[4]);
    let run = |values: &[f32], room: usize, options: &ExecutionOptions| {
        let output = RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; room])));
        let mut request = request(vec![memory(values)], vec![token(&buffer), output]);
        request.inputs[0].dimensions = [u32::try_from(values.len()).unwrap()].as_slice().into();
        let result = model.execute_synchronously(&request, options);
        assert!(
            result.status == NONE
                || result.status == ErrorStatus::OutputInsufficientSize
                || result.output_shapes.is_empty()
        );
        result.status
    };
    let plain = ExecutionOptions::default();
    let fill = || buffer.copy_from(&pool(&[9.0; 4]), &[]).unwrap();
    let has_value = || buffer.copy_to(&pool(&[0.0; 4])).is_ok();
    fill();
    assert_eq!(run(&[1.0; 4], 16, &plain), NONE);
    assert_eq!(value(&buffer, 4), [2.0; 4]);
    assert_eq!(run(&[1.0; 5], 20, &plain), GENERAL, "five values do not fit a buffer of four");
    assert!(!has_value());
    fill();
    assert_eq!(run(&[1.0; 4], 12, &plain), ErrorStatus::OutputInsufficientSize, "the other one");
    assert!(!has_value());
    fill();
    let late = ExecutionOptions { deadline: Some(TimePoint { nanos: 1 }), ..plain };
    assert_eq!(run(&[1.0; 4], 16, &late), ErrorStatus::MissedDeadlinePersistent);
    assert!(has_value(), "it has not begun");
    assert_eq!(run(&[1.0; 4], 16, &plain), NONE);
    assert_eq!(value(&buffer, 4), [2.0; 4]);
}

#[test]
fn requests_name_buffers_only_as_they_were_allocated() {
    let device = CpuDevice::default();
    let [model, other] = [(); 2].map(|()| prepare(&device, &plus_one(&[4])));
    let input = allocate(&device, &[&model], [&[(0, 0)], &[]], &[]);
    let output = allocate(&device, &[&model], [&[], &[(0, 0)]], &[]);
    let good = request(vec![token(&input)], vec![token(&output)]);
    assert_eq!(execute(&model, &good).status, GENERAL, "no value");
    input.copy_from(&pool(&[0.0; 4]), &[]).unwrap();
    assert_eq!(execute(&model, &good).status, NONE);
    assert_eq!(execute(&other, &good).status, INVALID);
    let swapped = request(vec![token(&output)], vec![token(&input)]);
    assert_eq!(execute(&model, &swapped).status, INVALID);
    let stranger = request(vec![RequestPool::Token(u32::MAX)], vec![token(&output)]);
    assert_eq!(execute(&model, &stranger).status, INVALID);
    // A buffer of another device, and a role in a model of another device.
    let elsewhere = CpuDevice::default();
    let foreign = BufferRequest {
        models: vec![Arc::clone(&model)],
        inputs: vec![role(0, 0)],
        ..BufferRequest::default()
    };
    let refused = elsewhere.allocate(&foreign, &Caller::default()).err().unwrap();
    assert_eq!(refused.status, INVALID);
    let released = input.token();
    drop(input);
    let gone = request(vec![RequestPool::Token(released)], vec![token(&output)]);
    assert_eq!(execute(&model, &gone).status, INVALID);
}

#[test]
fn a_buffer_of_open_size_has_the_size_of_each_value() {
    for declared in [&[0][..], &[]] {
        let device = CpuDevice::default();
        let [first, second] = [(); 2].map(|()| prepare(&device, &plus_one(declared)));
        let models = [&first, &second];
        let from = allocate(&device, &models, [&[(0, 0)], &[]], &[]);
        let between = allocate(&device, &models, [&[(1, 0)], &[(0, 0)]], &[]);
        let to = allocate(&device, &models, [&[], &[(1, 0)]], &[]);
        for count in [4_u8, 7, 1, 100] {
            let values: Vec<f32> = (0..count).map(f32::from).collect();
            from.copy_from(&pool(&values), &[u32::from(count)]).unwrap();
            for (model, source, target) in [(&first, &from, &between), (&second, &between, &to)] {
                let result = execute(model, &request(vec![token(source)], vec![token(target)]));
                assert_eq!(result.status, NONE, "{declared:?}, {count} values");
                assert_eq!(result.output_shapes[0].dimensions.as_slice(), [u32::from(count)]);
            }
            let want: Vec<f32> = values.iter().map(|value| value + 2.0).collect();
            assert_eq!(value(&to, usize::from(count)), want, "{declared:?}");
            for other in [count - 1, count + 1] {
                let wrong = to.copy_to(&pool(&vec![0.0; other.into()])).unwrap_err();
                assert_eq!(wrong.status, INVALID, "{count} values into a pool for {other}");
            }
            // What a request says of an input has to be so.
            let mut lying = request(vec![token(&from)], vec![token(&between)]);
            lying.inputs[0].dimensions = [u32::from(count) + 1].as_slice().into();
            assert_eq!(execute(&first, &lying).status, INVALID);
        }
    }
}

#[test]
fn the_size_of_an_open_buffer_may_be_known_to_the_plan_alone() {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[4]);
    let (one, none) = (b.constant_f32(&[1], &[1.0]), b.scalar_i32(0));
    let y = b.result_of(OperationType::Add, &[x, one, none], OutputSpec::new(F32, &[0]));
    let (two, three) = (b.constant_f32(&[2], &[2.0; 2]), b.constant_f32(&[2], &[3.0; 2]));
    let constant = b.result_of(OperationType::Add, &[two, three, none], OutputSpec::new(F32, &[0]));
    b.output(y);
    b.output(constant);
    let device = CpuDevice::default();
    let model = prepare(&device, &b.build().unwrap());
    let outputs = [0, 1].map(|output| allocate(&device, &[&model], [&[], &[(0, output)]], &[]));
    for round in 0..3_u8 {
        let input = memory(&[f32::from(round); 4]);
        let request = request(vec![input], outputs.iter().map(token).collect());
        assert_eq!(execute(&model, &request).status, NONE);
        assert_eq!(value(&outputs[0], 4), [f32::from(round) + 1.0; 4]);
        assert_eq!(value(&outputs[1], 2), [5.0; 2]);
    }
}

#[test]
fn a_value_for_an_open_buffer_has_a_shape_and_no_more_bytes_than_there_can_be() {
    let device = CpuDevice::default();
    let model = prepare(&device, &plus_one(&[]));
    let buffer = allocate(&device, &[&model], [&[(0, 0)], &[]], &[]);
    for wrong in [&[][..], &[0], &[3], &[4, 0], &[5], &[u32::MAX], &[u32::MAX; 8]] {
        buffer.copy_from(&pool(&[1.0; 4]), &[2, 2]).unwrap();
        let refused = buffer.copy_from(&pool(&[1.0; 4]), wrong).unwrap_err();
        assert_eq!(refused.status, INVALID, "{wrong:?}: {refused}");
        let gone = buffer.copy_to(&pool(&[0.0; 4])).unwrap_err();
        assert_eq!(gone.status, GENERAL, "{wrong:?} leaves no value");
    }
    // One that is asked for with all sizes is reserved at once.
    let huge = BufferRequest {
        dimensions: [u32::MAX].as_slice().into(),
        models: vec![model],
        inputs: vec![role(0, 0)],
        outputs: Vec::new(),
    };
    let refused = device.allocate(&huge, &Caller::default()).err().unwrap();
    assert_eq!(refused.status, ErrorStatus::ResourceExhaustedPersistent);
}

/// Executions that want the same two buffers in opposite order, again and again, with bursts beside:
/// nobody waits for anybody, and every value is one that some execution made whole.
#[test]
fn executions_at_the_same_time_never_wait_for_each_others_buffers() {
    const ROUNDS: usize = 300;
    let device = CpuDevice::default();
    let model = prepare(&device, &plus_one(&[256]));
    let both: [&[(u32, u32)]; 2] = [&[(0, 0)], &[(0, 0)]];
    let buffers = [(); 2].map(|()| allocate(&device, &[&model], both, &[]));
    for buffer in &buffers {
        buffer.copy_from(&pool(&[0.0; 256]), &[]).unwrap();
    }
    let begin = Barrier::new(5);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (model, buffers, begin) = (&model, &buffers, &begin);
            scope.spawn(move || {
                begin.wait();
                let (from, to) = (&buffers[thread % 2], &buffers[1 - thread % 2]);
                for _ in 0..ROUNDS {
                    let result = execute(model, &request(vec![token(from)], vec![token(to)]));
                    // The other ones may be writing the input just now: then it has no value.
                    assert!(matches!(result.status, NONE | GENERAL), "{result:?}");
                }
            });
        }
        begin.wait();
        for _ in 0..ROUNDS {
            let copy = Arc::new(HeapMemory::new(vec![0; 1024]));
            if buffers[0].copy_to(&(Arc::clone(&copy) as Pool)).is_ok() {
                let bytes = copy.to_vec();
                assert!(bytes.chunks_exact(4).all(|four| four == &bytes[..4]), "torn");
            }
        }
    });
}
