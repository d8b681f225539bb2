//! Executions that give way to others in their middle: bits, times and deadlines; and what an illegal request is
//! told whose deadline has passed.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use burst_driver::{CpuDevice, DeviceOptions, ReferenceDevice};
use burst_hal::{
    Caller, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory,
    Model, ModelBuilder, OperandType, OperationType, OutputSpec, PrepareOptions, PreparedModel,
    Request, RequestArgument, RequestPool, TimePoint, Turn,
};

const F32: OperandType = OperandType::TensorFloat32;
const I32: OperandType = OperandType::TensorInt32;
const BOOL8: OperandType = OperandType::TensorBool8;

const INPUT: [u32; 4] = [1, 6, 6, 4];
const VALUES: usize = 6 * 6 * 4;
const BYTES: usize = 4 * VALUES;

/// Does something whenever the thread that executes may give way. Helpers are asked, too, and have nothing to
/// give away.
struct Asked<F> {
    executes: ThreadId,
    times: AtomicUsize,
    then: F,
}

impl<F: Fn(usize) + Send + Sync + 'static> Asked<F> {
    /// On this thread; `then` gets how often it was asked before.
    fn here(then: F) -> Arc<Self> {
        let executes = std::thread::current().id();
        Arc::new(Asked { executes, times: AtomicUsize::new(0), then })
    }

    fn times(&self) -> usize {
        self.times.load(Ordering::Relaxed)
    }

    fn caller(self: &Arc<Self>) -> Caller {
        Caller::default().with_turn(Arc::clone(self) as _)
    }
}

impl<F> std::fmt::Debug for Asked<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asked")
    }
}

impl<F: Fn(usize) + Send + Sync> Turn for Asked<F> {
    fn give_way(&self) {
        if std::thread::current().id() == self.executes {
            (self.then)(self.times.fetch_add(1, Ordering::Relaxed));
        }
    }
}

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let number = |index| f32::from(u8::try_from((index * 31 + seed * 17) % 200).unwrap());
    (0..count).map(|index| number(index) / 64.0 - 1.5).collect()
}

/// A convolution, three rounds of a loop that adds and takes the hyperbolic tangent, and a softmax.
fn model() -> Model {
    let mut b = ModelBuilder::new();
    let int = || OutputSpec::new(I32, &[1]);
    let condition = b.referenced(|b| {
        let (_, count) = (b.input(F32, &INPUT), b.input(I32, &[1]));
        let limit = b.constant_i32(&[1], &[3]);
        let less = b.result_of(OperationType::Less, &[count, limit], OutputSpec::new(BOOL8, &[1]));
        b.output(less);
    });
    let body = b.referenced(|b| {
        let (x, count) = (b.input(F32, &INPUT), b.input(I32, &[1]));
        let (by, one) = (b.constant_f32(&[4], &[0.1, -0.2, 0.3, 0.4]), b.constant_i32(&[1], &[1]));
        let none = b.scalar_i32(0);
        let sum = b.result_of(OperationType::Add, &[x, by, none], OutputSpec::f32(&INPUT));
        let next = b.result_of(OperationType::Tanh, &[sum], OutputSpec::f32(&INPUT));
        let more = b.result_of(OperationType::Add, &[count, one, none], int());
        b.output(next);
        b.output(more);
    });
    let x = b.input(F32, &INPUT);
    let filter = b.constant_f32(&[4, 3, 3, 4], &numbers(4 * 3 * 3 * 4, 1));
    let bias = b.constant_f32(&[4], &numbers(4, 2));
    let [same, one, none] = [1, 1, 0].map(|value| b.scalar_i32(value));
    let operands = [x, filter, bias, same, one, one, none];
    let y = b.result_of(OperationType::Conv2d, &operands, OutputSpec::f32(&INPUT));
    let zero = b.constant_i32(&[1], &[0]);
    let graphs = [condition, body].map(|graph| b.subgraph(graph));
    let operands = [graphs[0], graphs[1], y, zero];
    let looped = b.operation(OperationType::While, &operands, &[OutputSpec::f32(&INPUT), int()]);
    let beta = b.scalar_f32(1.0);
    let z = b.result_of(OperationType::Softmax, &[looped[0], beta], OutputSpec::f32(&INPUT));
    b.output(z);
    b.build().unwrap()
}

/// Operations one after the other, so that how long one execution takes says how long the next one will.
fn straight_model() -> Model {
    let mut b = ModelBuilder::new();
    let mut x = b.input(F32, &INPUT);
    for _ in 0..4 {
        x = b.result_of(OperationType::Tanh, &[x], OutputSpec::f32(&INPUT));
        x = b.result_of(OperationType::Floor, &[x], OutputSpec::f32(&INPUT));
    }
    b.output(x);
    b.build().unwrap()
}

/// A request on numbers of this seed, with room for the result behind them.
fn request(seed: usize) -> (Request, Arc<HeapMemory>) {
    let mut bytes: Vec<u8> = numbers(VALUES, seed).iter().flat_map(|x| x.to_ne_bytes()).collect();
    bytes.resize(2 * BYTES, 0xEE);
    let memory = Arc::new(HeapMemory::new(bytes));
    let length = u32::try_from(BYTES).unwrap();
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(length)],
        pools: vec![RequestPool::Memory(Arc::clone(&memory) as _)],
    };
    (request, memory)
}

fn output(memory: &HeapMemory) -> Vec<u8> {
    memory.to_vec().split_off(BYTES)
}

type Prepared = Arc<dyn PreparedModel>;

/// What computes for this caller: the model itself, or a burst.
type Way = fn(&Prepared, &Request, &Caller) -> ExecutionResult;

const WAYS: [(&str, Way); 2] = [
    ("synchronously", |model, request, caller| {
        model.execute_for(request, &ExecutionOptions::default(), caller)
    }),
    ("over a burst", |model, request, caller| {
        let mut burst = Arc::clone(model).open_burst().unwrap();
        burst.work_for(caller);
        let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
        burst.execute(request, &ExecutionOptions::default(), &mut result);
        result
    }),
];

/// The bits that a model makes of numbers of this seed.
fn bits(model: &Prepared, way: Way, seed: usize, caller: &Caller) -> Vec<u8> {
    let (request, memory) = request(seed);
    assert_eq!(way(model, &request, caller).status, ErrorStatus::None);
    output(&memory)
}

/// The model on every device that gives way.
fn prepared() -> Vec<(&'static str, Prepared)> {
    prepared_of(&model())
}

fn prepared_of(model: &Model) -> Vec<(&'static str, Prepared)> {
    let cpu = |options| Box::new(CpuDevice::new(options)) as Box<dyn Device>;
    let devices = [
        ("one thread", cpu(DeviceOptions::default())),
        ("two threads", cpu(DeviceOptions { threads: 2, ..DeviceOptions::default() })),
        ("plain kernels", cpu(DeviceOptions::reference())),
        ("the reference", Box::new(ReferenceDevice::default())),
    ];
    let options = PrepareOptions::default();
    devices.map(|(name, device)| (name, device.prepare_model(model, &options).unwrap())).into()
}

#[test]
fn an_execution_that_gives_way_to_another_one_at_any_step_computes_the_same_bits() {
    for (device, model) in prepared() {
        for (name, way) in WAYS {
            let alone = bits(&model, way, 1, &Caller::default());
            let urgent = bits(&model, way, 2, &Caller::default());
            assert_ne!(alone, urgent);
            let counted = Asked::here(|_| ());
            assert_eq!(bits(&model, way, 1, &counted.caller()), alone);
            // One for each operation that is executed: those around the loop, and its rounds.
            let (times, operations) = (counted.times(), 2 + 4 + 3 * 3);
            assert!(times >= operations, "{device}, {name}: {times}");
            for step in 0..counted.times() {
                let (other, want) = (Arc::clone(&model), urgent.clone());
                let turn = Asked::here(move |asked| {
                    if asked == step {
                        let (other, want) = (&other, &want);
                        // Another one computes from its begin to its end while this one waits.
                        std::thread::scope(|scope| {
                            scope.spawn(|| {
                                assert_eq!(&bits(other, way, 2, &Caller::default()), want);
                            });
                        });
                    }
                });
                let preempted = bits(&model, way, 1, &turn.caller());
                assert_eq!(preempted, alone, "{device}, {name}: preempted at step {step}");
                assert_eq!(turn.times(), counted.times(), "it goes on where it was");
            }
        }
    }
}

fn wait_for(time: TimePoint) {
    while !time.has_passed() {
        std::thread::yield_now();
    }
}

#[test]
fn the_time_that_an_execution_was_preempted_for_counts_in_its_timing_and_in_the_pace() {
    let preempted = Duration::from_millis(20);
    for (device, model) in prepared_of(&straight_model()) {
        let turn = Asked::here(move |asked| {
            if asked == 2 {
                wait_for(TimePoint::after(preempted));
            }
        });
        let (request, _memory) = request(1);
        let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
        let result = model.execute_for(&request, &options, &turn.caller());
        assert_eq!(result.status, ErrorStatus::None);
        let timing = result.timing;
        assert!(timing.time_on_device_us >= 20_000, "{device}: {timing:?}");
        assert!(timing.time_in_driver_us >= timing.time_on_device_us, "{device}: {timing:?}");
        // It is the only one so far, and so the quickest.
        let missed = model.pace().unwrap().missed(preempted - Duration::from_micros(1));
        assert_eq!(missed, ErrorStatus::MissedDeadlinePersistent, "{device}");
    }
}

#[test]
fn a_deadline_that_passes_while_an_execution_is_preempted_ends_it_midway() {
    const STEP: usize = 2;
    for (device, model) in prepared() {
        // Where this machine has much to do it has passed before the execution begins: then the next one is tried.
        let is_ended_midway = [50, 2_000, 30_000].into_iter().any(|ms| {
            let deadline = TimePoint::after(Duration::from_millis(ms));
            let turn = Asked::here(move |asked| {
                if asked == STEP {
                    wait_for(deadline);
                }
            });
            let (request, memory) = request(1);
            let options =
                ExecutionOptions { deadline: Some(deadline), ..ExecutionOptions::default() };
            let result = model.execute_for(&request, &options, &turn.caller());
            assert_eq!(output(&memory), [0xEE; BYTES], "{device}: nothing is written");
            if turn.times() <= STEP {
                return false;
            }
            assert_eq!(result.status, ErrorStatus::MissedDeadlineTransient, "{device}");
            assert_eq!(turn.times(), STEP + 1, "{device}: nothing more is begun");
            true
        });
        assert!(is_ended_midway, "{device}");
        assert_eq!(bits(&model, WAYS[0].1, 1, &Caller::default()).len(), BYTES, "it goes on");
    }
}

#[test]
fn an_illegal_request_is_told_so_however_late_it_is() {
    let late = Some(TimePoint { nanos: 1 });
    let options = ExecutionOptions { deadline: late, ..ExecutionOptions::default() };
    for (device, model) in prepared() {
        let status = |request: &Request| {
            let mut burst = Arc::clone(&model).open_burst().unwrap();
            let mut result = ExecutionResult::of(ErrorStatus::None);
            burst.execute(request, &options, &mut result);
            let synchronously = model.execute_synchronously(request, &options).status;
            assert_eq!(synchronously, result.status, "{device}: over a burst");
            synchronously
        };
        let (legal, _memory) = request(1);
        assert_eq!(status(&legal), ErrorStatus::MissedDeadlinePersistent, "{device}");
        let mut without_input = legal.clone();
        without_input.inputs.clear();
        let mut too_long = legal.clone();
        too_long.inputs[0].location.length += 4;
        let mut unknown_buffer = legal.clone();
        unknown_buffer.inputs[0].location = DataLocation { pool_index: 1, ..Default::default() };
        unknown_buffer.pools.push(RequestPool::Token(77));
        let illegal = [
            ("without an input", without_input),
            ("an input that is too long", too_long),
            ("a buffer that nobody allocated", unknown_buffer),
        ];
        for (what, request) in illegal {
            assert_eq!(status(&request), ErrorStatus::InvalidArgument, "{device}: {what}");
        }
    }
}

#[test]
fn an_illegal_model_is_told_so_however_late_it_is() {
    let options =
        PrepareOptions { deadline: Some(TimePoint { nanos: 1 }), ..PrepareOptions::default() };
    let mut illegal = model();
    illegal.main.operations[0].inputs.pop();
    let devices: [Box<dyn Device>; 2] =
        [Box::new(CpuDevice::default()), Box::new(ReferenceDevice::default())];
    for device in devices {
        let status = |model| device.prepare_model(model, &options).err().unwrap().status;
        assert_eq!(status(&illegal), ErrorStatus::InvalidArgument, "{}", device.name());
        let missed = ErrorStatus::MissedDeadlinePersistent;
        assert_eq!(status(&model()), missed, "{}", device.name());
    }
}
