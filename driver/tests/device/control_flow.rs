//! IF and WHILE from the outside: which graph runs, on what, how often, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;
use std::time::Duration;

use burst_driver::CpuDevice;
use burst_hal::{
    Caller, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory,
    Memory, MemoryError, Model, ModelBuilder, Operand, OperandLifeTime, OperandType, OperationType,
    OutputSpec, PrepareOptions, Request, RequestArgument, RequestPool, TimePoint,
};

const I32: OperandType = OperandType::TensorInt32;
const F32: OperandType = OperandType::TensorFloat32;
const BOOL8: OperandType = OperandType::TensorBool8;

fn int() -> OutputSpec {
    OutputSpec::new(I32, &[1])
}

fn truth() -> OutputSpec {
    OutputSpec::new(BOOL8, &[1])
}

/// Adds `x + constant`.
fn plus(b: &mut ModelBuilder, x: u32, constant: i32) -> u32 {
    let (constant, none) = (b.constant_i32(&[1], &[constant]), b.scalar_i32(0));
    b.result_of(OperationType::Add, &[x, constant, none], int())
}

/// A graph `(x, limit) -> x < limit`.
fn below(b: &mut ModelBuilder) -> u32 {
    b.referenced(|b| {
        let (x, limit) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let less = b.result_of(OperationType::Less, &[x, limit], truth());
        b.output(less);
    })
}

/// A graph `(x, limit) -> x + step`.
fn stepping(b: &mut ModelBuilder, step: i32) -> u32 {
    b.referenced(|b| {
        let (x, _) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let next = plus(b, x, step);
        b.output(next);
    })
}

/// A graph `x -> x + step`.
fn adding(b: &mut ModelBuilder, step: i32) -> u32 {
    b.referenced(|b| {
        let x = b.input(I32, &[1]);
        let next = plus(b, x, step);
        b.output(next);
    })
}

/// Puts an IF or WHILE on two graphs into the graph that is being built.
fn control(
    b: &mut ModelBuilder,
    ty: OperationType,
    before: &[u32],
    graphs: [u32; 2],
    values: &[u32],
    output: OutputSpec,
) -> u32 {
    let graphs = graphs.map(|graph| b.subgraph(graph));
    let inputs = [before, &graphs, values].concat();
    b.result_of(ty, &inputs, output)
}

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

struct Answer {
    status: ErrorStatus,
    dims: Vec<u32>,
    ints: Vec<i32>,
}

fn request(inputs: &[Vec<u8>], output_len: usize) -> (Request, Arc<HeapMemory>) {
    let output = Arc::new(HeapMemory::new(vec![0; output_len]));
    let mut request = Request::default();
    let argument = |pool: usize, length: usize| RequestArgument {
        location: DataLocation {
            pool_index: u32::try_from(pool).unwrap(),
            offset: 0,
            length: u32::try_from(length).unwrap(),
        },
        ..RequestArgument::default()
    };
    for (pool, bytes) in inputs.iter().enumerate() {
        request.inputs.push(argument(pool, bytes.len()));
        request.pools.push(RequestPool::Memory(Arc::new(HeapMemory::new(bytes.clone()))));
    }
    request.outputs.push(argument(inputs.len(), output_len));
    request.pools.push(RequestPool::Memory(output.clone()));
    (request, output)
}

/// Prepares and executes three times: what an execution leaves behind must not matter.
fn run_with(model: &Model, inputs: &[Vec<u8>], options: &ExecutionOptions) -> Answer {
    let prepared = CpuDevice::default().prepare_model(model, &PrepareOptions::default()).unwrap();
    let mut answers = (0..3).map(|_| {
        let (request, output) = request(inputs, 64);
        let result = prepared.execute_synchronously(&request, options);
        let dims = result.output_shapes.first().map_or(vec![], |s| s.dimensions.to_vec());
        let count = dims.iter().product::<u32>() as usize;
        let ints: Vec<i32> = output.to_vec()[..(count * 4).min(64)]
            .chunks_exact(4)
            .map(|b| i32::from_ne_bytes(b.try_into().unwrap()))
            .collect();
        (result.status, dims, ints)
    });
    let (status, dims, ints) = answers.next().unwrap();
    for again in answers {
        assert_eq!(again, (status, dims.clone(), ints.clone()));
    }
    Answer { status, dims, ints }
}

fn run(model: &Model, inputs: &[&[i32]]) -> Answer {
    let inputs: Vec<Vec<u8>> = inputs.iter().map(|values| bytes(values)).collect();
    run_with(model, &inputs, &ExecutionOptions::default())
}

#[test]
fn a_condition_chooses_the_graph() {
    let mut b = ModelBuilder::new();
    let (one, ten) = (adding(&mut b, 1), adding(&mut b, 10));
    let (condition, x) = (b.input(BOOL8, &[1]), b.input(I32, &[1]));
    let out = control(&mut b, OperationType::If, &[condition], [one, ten], &[x], int());
    b.output(out);
    let model = b.build().unwrap();
    let options = ExecutionOptions::default();
    assert_eq!(run_with(&model, &[vec![1], bytes(&[5])], &options).ints, [6]);
    assert_eq!(run_with(&model, &[vec![0], bytes(&[5])], &options).ints, [15]);
}

/// `x` grows by `step` while it is below the limit.
fn counting(step: i32) -> Model {
    let mut b = ModelBuilder::new();
    let (condition, body) = (below(&mut b), stepping(&mut b, step));
    let (x, limit) = (b.input(I32, &[1]), b.input(I32, &[1]));
    let out = control(&mut b, OperationType::While, &[], [condition, body], &[x, limit], int());
    b.output(out);
    b.build().unwrap()
}

#[test]
fn a_loop_runs_until_its_condition_fails_or_not_at_all() {
    assert_eq!(run(&counting(3), &[&[0], &[10]]).ints, [12]);
    assert_eq!(run(&counting(3), &[&[10], &[10]]).ints, [10]);
}

#[test]
fn the_state_beyond_the_outputs_is_kept_between_rounds() {
    // (a, b) -> (b, a + b) while b < limit; only `a` is given back.
    let mut b = ModelBuilder::new();
    let condition = b.referenced(|b| {
        let (_, y, limit) = (b.input(I32, &[1]), b.input(I32, &[1]), b.input(I32, &[1]));
        let less = b.result_of(OperationType::Less, &[y, limit], truth());
        b.output(less);
    });
    let body = b.referenced(|b| {
        let (x, y, _) = (b.input(I32, &[1]), b.input(I32, &[1]), b.input(I32, &[1]));
        let none = b.scalar_i32(0);
        let first = plus(b, y, 0);
        let second = b.result_of(OperationType::Add, &[x, y, none], int());
        b.output(first);
        b.output(second);
    });
    let values = [b.input(I32, &[1]), b.input(I32, &[1]), b.input(I32, &[1])];
    let out = control(&mut b, OperationType::While, &[], [condition, body], &values, int());
    b.output(out);
    // 0 1 1 2 3 5 8 13 21: the last below 20 is 13.
    assert_eq!(run(&b.build().unwrap(), &[&[0], &[1], &[20]]).ints, [13]);
}

/// The outer loop adds what an inner one counts; both ask the same graph whether to go on, with
/// limits of their own.
#[test]
fn graphs_that_two_loops_share_do_not_mix_up_their_values() {
    let mut b = ModelBuilder::new();
    let (condition, inner) = (below(&mut b), stepping(&mut b, 1));
    let body = b.referenced(|b| {
        let (x, _) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let (zero, three, none) =
            (b.constant_i32(&[1], &[0]), b.constant_i32(&[1], &[3]), b.scalar_i32(0));
        let graphs = [condition, inner];
        let counted = control(b, OperationType::While, &[], graphs, &[zero, three], int());
        let sum = b.result_of(OperationType::Add, &[x, counted, none], int());
        b.output(sum);
    });
    let (x, limit) = (b.input(I32, &[1]), b.input(I32, &[1]));
    let out = control(&mut b, OperationType::While, &[], [condition, body], &[x, limit], int());
    b.output(out);
    assert_eq!(run(&b.build().unwrap(), &[&[0], &[10]]).ints, [12]);
}

#[test]
fn a_graph_can_be_condition_and_body_at_once() {
    let mut b = ModelBuilder::new();
    let not = b.referenced(|b| {
        let x = b.input(BOOL8, &[1]);
        let not = b.result_of(OperationType::LogicalNot, &[x], truth());
        b.output(not);
    });
    let x = b.input(BOOL8, &[1]);
    let turned = control(&mut b, OperationType::While, &[], [not, not], &[x], truth());
    let (one, zero) = (b.constant_i32(&[1], &[1]), b.constant_i32(&[1], &[0]));
    let out = b.result_of(OperationType::Select, &[turned, one, zero], int());
    b.output(out);
    let model = b.build().unwrap();
    for begin in [0, 1] {
        let answer = run_with(&model, &[vec![begin]], &ExecutionOptions::default());
        assert_eq!((answer.status, answer.ints), (ErrorStatus::None, vec![1]));
    }
}

/// `x` doubles its length each round; shapes are open inside and, as asked, outside.
fn doubling(out: &[u32]) -> Model {
    let mut b = ModelBuilder::new();
    let condition = b.referenced(|b| {
        let _ = b.input(I32, &[]);
        let (count, limit) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let less = b.result_of(OperationType::Less, &[count, limit], truth());
        b.output(less);
    });
    let body = b.referenced(|b| {
        let x = b.input(I32, &[]);
        let (count, _) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let twice = b.constant_i32(&[1], &[2]);
        let both = b.result_of(OperationType::Tile, &[x, twice], OutputSpec::new(I32, &[]));
        let next = plus(b, count, 1);
        b.output(both);
        b.output(next);
    });
    let (x, count) = (b.input(I32, &[1]), b.constant_i32(&[1], &[0]));
    let limit = b.input(I32, &[1]);
    let graphs = [condition, body];
    let values = [x, count, limit];
    let out =
        control(&mut b, OperationType::While, &[], graphs, &values, OutputSpec::new(I32, out));
    b.output(out);
    b.build().unwrap()
}

#[test]
fn shapes_may_change_from_round_to_round() {
    let answer = run(&doubling(&[0]), &[&[7], &[2]]);
    assert_eq!((answer.status, answer.dims), (ErrorStatus::None, vec![4]));
    assert_eq!(answer.ints, [7; 4]);
    assert_eq!(run(&doubling(&[]), &[&[1], &[0]]).dims, [1]);
    // Declared: holds after one round, not after two.
    assert_eq!(run(&doubling(&[2]), &[&[7], &[1]]).ints, [7, 7]);
    assert_eq!(run(&doubling(&[2]), &[&[1], &[2]]).status, ErrorStatus::GeneralFailure);
}

#[test]
fn a_loop_that_does_not_end_is_ended() {
    let inputs = [bytes(&[0]), bytes(&[1])];
    let timeout = |ms| ExecutionOptions {
        loop_timeout: Some(Duration::from_millis(ms)),
        ..ExecutionOptions::default()
    };
    let endless = counting(0);
    let answer = run_with(&endless, &inputs, &timeout(1));
    assert_eq!(answer.status, ErrorStatus::MissedDeadlineTransient);
    assert_eq!(answer.dims, []);
    // The deadline of the execution is another matter.
    let prepared = CpuDevice::default().prepare_model(&endless, &Default::default()).unwrap();
    let deadline = Some(TimePoint::after(Duration::from_millis(300)));
    let options = ExecutionOptions { deadline, ..timeout(15_000) };
    let (request, _output) = request(&inputs, 64);
    let missed = [(); 2].map(|()| prepared.execute_synchronously(&request, &options).status);
    // It passed midway in the first one, and before the second one.
    let want = [ErrorStatus::MissedDeadlineTransient, ErrorStatus::MissedDeadlinePersistent];
    assert_eq!(missed, want);
    // A loop without rounds takes no time, however little it may take.
    let answer = run_with(&endless, &[bytes(&[1]), bytes(&[1])], &timeout(0));
    assert_eq!((answer.status, answer.ints), (ErrorStatus::None, vec![1]));
}

/// `x` with 1 added; where the condition does not hold `x` itself, by way of a million copies.
fn one_of_two(condition: impl FnOnce(&mut ModelBuilder) -> u32) -> Model {
    let mut b = ModelBuilder::new();
    let small = adding(&mut b, 1);
    let large = b.referenced(|b| {
        let (x, many) = (b.input(I32, &[1]), b.constant_i32(&[1], &[1 << 20]));
        let (begin, size) = (b.constant_i32(&[1], &[7]), b.constant_i32(&[1], &[1]));
        let all = b.result_of(OperationType::Tile, &[x, many], OutputSpec::new(I32, &[1 << 20]));
        let one = b.result_of(OperationType::Slice, &[all, begin, size], int());
        b.output(one);
    });
    let (condition, x) = (condition(&mut b), b.input(I32, &[1]));
    let out = control(&mut b, OperationType::If, &[condition], [small, large], &[x], int());
    b.output(out);
    b.build().unwrap()
}

#[test]
fn of_an_if_with_a_known_condition_one_branch_is_kept() {
    const COPIES: usize = 4 << 20;
    let arena = |model: &Model| CpuDevice::default().prepare(model).unwrap().plan().arena_bytes();
    for (holds, want) in [(true, 6), (false, 5)] {
        let constant = one_of_two(|b| b.constant_bool(&[1], &[holds]));
        let folded = one_of_two(|b| {
            let not = b.constant_bool(&[1], &[!holds]);
            b.result_of(OperationType::LogicalNot, &[not], truth())
        });
        for model in [constant, folded] {
            assert_eq!(run(&model, &[&[5]]).ints, [want]);
            assert_eq!(arena(&model) >= COPIES, !holds, "{}", arena(&model));
        }
    }
    assert!(arena(&one_of_two(|b| b.input(BOOL8, &[1]))) >= COPIES);
}

/// A pool that tells when it is read, which is when an execution has begun.
#[derive(Debug)]
struct Told {
    bytes: HeapMemory,
    read: std::sync::mpsc::Sender<()>,
}

impl Memory for Told {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.read.send(()).unwrap();
        self.bytes.read(offset, out)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.bytes.write(offset, bytes)
    }
}

#[test]
fn a_loop_that_does_not_end_is_cancelled() {
    let device = CpuDevice::default();
    let prepared = device.prepare_model(&counting(0), &PrepareOptions::default()).unwrap();
    let loop_timeout = Some(Duration::from_secs(15));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    for in_a_burst in [false, true] {
        let (read, was_read) = std::sync::mpsc::channel();
        let (mut request, _) = request(&[bytes(&[0]), bytes(&[1])], 64);
        let told = Told { bytes: HeapMemory::new(bytes(&[0])), read };
        request.pools[0] = RequestPool::Memory(Arc::new(told));
        let caller = Caller::default();
        let mut result = ExecutionResult::of(ErrorStatus::None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if in_a_burst {
                    let mut burst = Arc::clone(&prepared).open_burst().unwrap();
                    burst.work_for(&caller);
                    burst.execute(&request, &options, &mut result);
                } else {
                    result = prepared.execute_for(&request, &options, &caller);
                }
            });
            was_read.recv().unwrap();
            caller.cancel_word().cancel();
        });
        // A loop that ran into its time-out would have another status.
        assert_eq!(result, ExecutionResult::of(ErrorStatus::GeneralFailure));
    }
}

/// Every level runs the next one four times over: 4^12 paths lead to the innermost graph.
fn deep() -> Model {
    let mut b = ModelBuilder::new();
    let mut graph = adding(&mut b, 1);
    for _ in 0..12 {
        graph = b.referenced(|b| {
            let mut x = b.input(I32, &[1]);
            for _ in 0..2 {
                let condition = b.constant_bool(&[1], &[true]);
                x = control(b, OperationType::If, &[condition], [graph, graph], &[x], int());
            }
            b.output(x);
        });
    }
    let (condition, x) = (b.constant_bool(&[1], &[false]), b.input(I32, &[1]));
    let out = control(&mut b, OperationType::If, &[condition], [graph, graph], &[x], int());
    b.output(out);
    b.build().unwrap()
}

#[test]
fn a_graph_is_planned_once_however_many_paths_lead_to_it() {
    let model = deep();
    assert_eq!(CpuDevice::default().supported_operations(&model).unwrap(), [true]);
    assert_eq!(run(&model, &[&[0]]).ints, [1 << 12]);
}

#[test]
fn an_operation_is_supported_only_with_all_that_it_runs() {
    let mut b = ModelBuilder::new();
    let one = adding(&mut b, 1);
    let foreign = b.referenced(|b| {
        let x = b.input(I32, &[1]);
        let own = b.result_of(OperationType::OemOperation, &[x], int());
        let next = plus(b, own, 1);
        b.output(next);
    });
    let (condition, x) = (b.input(BOOL8, &[1]), b.input(I32, &[1]));
    let before = plus(&mut b, x, 1);
    let out = control(&mut b, OperationType::If, &[condition], [one, foreign], &[before], int());
    b.output(out);
    let model = b.build().unwrap();
    assert_eq!(CpuDevice::default().supported_operations(&model).unwrap(), [true, false]);
    let refused = CpuDevice::default().prepare_model(&model, &PrepareOptions::default());
    assert_eq!(refused.err().map(|f| f.status), Some(ErrorStatus::GeneralFailure));
}

/// A model that no version of the contract allows.
fn is_illegal(model: &Model) -> bool {
    let device = CpuDevice::default();
    let surveyed = device.supported_operations(model).err().map(|f| f.status);
    let prepared = device.prepare_model(model, &PrepareOptions::default()).err().map(|f| f.status);
    assert_eq!(surveyed, prepared);
    prepared == Some(ErrorStatus::InvalidArgument)
}

#[test]
fn what_a_graph_is_given_must_be_what_it_takes() {
    let with_value = |value: &dyn Fn(&mut ModelBuilder) -> u32, out: OutputSpec| {
        let mut b = ModelBuilder::new();
        let one = adding(&mut b, 1);
        let (condition, x) = (b.input(BOOL8, &[1]), value(&mut b));
        let out = control(&mut b, OperationType::If, &[condition], [one, one], &[x], out);
        b.output(out);
        b.build().unwrap()
    };
    assert!(!is_illegal(&with_value(&|b| b.input(I32, &[1]), int())));
    assert!(!is_illegal(&with_value(&|b| b.input(I32, &[]), int())));
    assert!(is_illegal(&with_value(&|b| b.input(I32, &[2]), int())));
    assert!(is_illegal(&with_value(&|b| b.input(F32, &[1]), int())));
    assert!(is_illegal(&with_value(&|b| b.input(I32, &[1]), OutputSpec::new(I32, &[1, 1]))));
    assert!(is_illegal(&with_value(&|b| b.input(I32, &[1]), OutputSpec::new(F32, &[1]))));
}

#[test]
fn graphs_must_take_and_give_as_many_values_as_their_operation() {
    let mut b = ModelBuilder::new();
    let (two, one) = (stepping(&mut b, 1), adding(&mut b, 1));
    let (condition, x) = (b.input(BOOL8, &[1]), b.input(I32, &[1]));
    let out = control(&mut b, OperationType::If, &[condition], [one, two], &[x], int());
    b.output(out);
    assert!(is_illegal(&b.build().unwrap()));
    // A condition that is no truth value.
    let mut b = ModelBuilder::new();
    let one = adding(&mut b, 1);
    let x = b.input(I32, &[1]);
    let out = control(&mut b, OperationType::While, &[], [one, one], &[x], int());
    b.output(out);
    assert!(is_illegal(&b.build().unwrap()));
}

#[test]
fn an_operation_that_is_illegal_deep_inside_makes_the_model_illegal() {
    let mut b = ModelBuilder::new();
    let inner = b.referenced(|b| {
        let x = b.input(I32, &[1]);
        // ADD without its activation.
        let own = b.result_of(OperationType::OemOperation, &[x], int());
        let sum = b.result_of(OperationType::Add, &[own, own], int());
        b.output(sum);
    });
    let outer = b.referenced(|b| {
        let (condition, x) = (b.constant_bool(&[1], &[true]), b.input(I32, &[1]));
        let out = control(b, OperationType::If, &[condition], [inner, inner], &[x], int());
        b.output(out);
    });
    let (condition, x) = (b.input(BOOL8, &[1]), b.input(I32, &[1]));
    let out = control(&mut b, OperationType::If, &[condition], [outer, outer], &[x], int());
    b.output(out);
    assert!(CpuDevice::default().supported_operations(&b.build().unwrap()).is_err());
}

/// Legal in a model, but there is nothing to run a graph on: not supported, and not prepared.
#[test]
fn a_value_that_is_never_given_is_not_supported() {
    let mut b = ModelBuilder::new();
    let one = adding(&mut b, 1);
    let mut condition = Operand::new(BOOL8, OperandLifeTime::NoValue);
    condition.dimensions = [1].as_slice().into();
    let (condition, x) = (b.operand(condition), b.input(I32, &[1]));
    let out = control(&mut b, OperationType::If, &[condition], [one, one], &[x], int());
    b.output(out);
    let model = b.build().unwrap();
    assert_eq!(CpuDevice::default().supported_operations(&model).unwrap(), [false]);
    assert!(CpuDevice::default().prepare_model(&model, &PrepareOptions::default()).is_err());
}

#[test]
fn graphs_count_together_against_the_limit_of_working_memory() {
    // 500 MB per value: each graph stays below 2 GiB, all together do not.
    let large = || OutputSpec::new(F32, &[125_000_000]);
    let mut b = ModelBuilder::new();
    let mut graph = || {
        b.referenced(|b| {
            let x = b.input_of(large());
            let exp = b.result_of(OperationType::Exp, &[x], large());
            b.output(exp);
        })
    };
    let graphs = [graph(), graph()];
    let (condition, x) = (b.input(BOOL8, &[1]), b.input_of(large()));
    let out = control(&mut b, OperationType::If, &[condition], graphs, &[x], large());
    b.output(out);
    let model = b.build().unwrap();
    let refused = CpuDevice::default().prepare_model(&model, &PrepareOptions::default());
    assert_eq!(refused.err().map(|f| f.status), Some(ErrorStatus::ResourceExhaustedPersistent));
}
