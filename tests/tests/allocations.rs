//! What the driver takes from the heap: little while idle, nothing while it runs; what decoding a
//! model takes, for which a client pays beforehand.
//!
//! A binary of its own, one test after the other: the allocator counts for the whole process.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_driver::{CpuDevice, DeviceOptions, Isa};
use burst_hal::trace::{Span, SpanSink};
use burst_hal::{
    Caller, DataLocation, Dimensions, ErrorStatus, ExecutionOptions, ExecutionResult, ExtraParams,
    Failure, HeapMemory, MemoryAccount, Model, ModelBuilder, Operand, OperandLifeTime, OperandType,
    OperandValues, Operation, OperationType, OutputSpec, PrepareOptions, PreparedModel, Request,
    RequestArgument, RequestPool, Subgraph,
};
use burst_testing::shared;
use burst_tests::{golden, repository};
use burst_wire::control::{decode_model, encode_model};

burst_testing::tests![
    // Before all others: what they start stays.
    a_device_that_has_prepared_nothing_has_no_threads(),
    decoding_a_model_takes_no_more_than_is_charged_for_it(),
    an_idle_model_holds_its_weights_and_a_running_one_allocates_nothing(),
    idle_mobilenets_hold_their_weights_and_running_ones_allocate_nothing(&shared("")?),
    what_is_charged_for_a_model_is_what_the_heap_holds(),
    what_is_charged_for_real_models_is_what_the_heap_holds(&shared("")?),
    threads_that_executed_leave_nothing_behind(),
];

fn main() -> std::process::ExitCode {
    burst_testing::run_one_after_the_other(&[TESTS])
}

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Executions whose allocations are counted.
const COUNTED: usize = 20;

/// An idle prepared model may hold this much beside its constants: shapes, names, the plan.
const PLAN_BYTES: usize = 512 << 10;

/// And so much beside its weights as they are executed, and a seventh of them: the bound of `benches/model.json`.
const IDLE_BESIDE_WEIGHTS: usize = 64 << 10;

fn argument(pool_index: u32, length: usize) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset: 0, length: u32::try_from(length).unwrap() },
        dimensions: Dimensions::new(),
    }
}

fn length(model: &Model, operand: u32) -> usize {
    let operand = &model.main.operands[operand as usize];
    usize::try_from(operand.ty.byte_length(&operand.dimensions).unwrap()).unwrap()
}

fn request(model: &Model) -> Request {
    let input = length(model, model.main.input_indexes[0]);
    let output = length(model, model.main.output_indexes[0]);
    Request {
        inputs: vec![argument(0, input)],
        outputs: vec![argument(1, output)],
        pools: vec![
            RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; input]))),
            RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; output]))),
        ],
    }
}

/// Wants no spans.
#[derive(Debug)]
struct NoSpans;

impl SpanSink for NoSpans {
    fn is_on(&self) -> bool {
        false
    }

    fn record(&self, span: &Span<'_>) {
        panic!("nobody wants {span:?}");
    }
}

fn check(name: &str, model: &Model) {
    let request = request(model);
    let before = dhat::HeapStats::get();
    let prepared = Arc::new(CpuDevice::default().prepare(model).unwrap());
    let pages = prepared.weight_page_bytes();
    let idle = dhat::HeapStats::get().curr_bytes - before.curr_bytes + pages;
    let constants = model.operand_values.len();
    println!("{name}: {constants} bytes of constants, idle it holds {idle}");
    // Packing pads matrices to whole registers; small ones grow by more than large ones. A processor that
    // multiplies no bytes wants weights of 8 bits in 16.
    let Isa { avx_vnni, vnni, dotprod, .. } = Isa::detect();
    let has_products = avx_vnni || vnni || dotprod;
    let most = if has_products { constants * 3 / 2 } else { constants * 5 / 2 };
    assert!(idle <= most + PLAN_BYTES, "{name} holds {idle} bytes while idle");
    // As they are executed weights are packed already: what is beside them is the plan.
    let executed = prepared.plan().held_bytes();
    println!("{name}: {executed} bytes of weights as they are executed");
    let most = executed / 100 * 115 + IDLE_BESIDE_WEIGHTS;
    assert!(idle <= most, "{name} holds {idle} bytes while idle, and {executed} are executed");

    let arena = prepared.plan().arena_bytes();
    let mut burst = Arc::clone(&prepared).open_burst().unwrap();
    // Whoever may want spans, and wants none now, costs nothing either.
    burst.work_for(&Caller::default().with_tracer(Arc::new(NoSpans)));
    let opened = dhat::HeapStats::get().curr_bytes - before.curr_bytes + pages;
    assert!(opened >= idle + arena, "{name}: a burst takes the arena when it is opened");

    let mut result = ExecutionResult::of(ErrorStatus::None);
    let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
    burst.execute(&request, &options, &mut result);
    assert_eq!(result.status, ErrorStatus::None);
    // The thread of the test harness may take something meanwhile; what an execution takes shows
    // every time.
    let mut taken = || {
        let first = dhat::HeapStats::get().total_blocks;
        for _ in 0..COUNTED {
            burst.execute(&request, &options, &mut result);
            assert_eq!(result.status, ErrorStatus::None);
        }
        dhat::HeapStats::get().total_blocks - first
    };
    let least = (0..3).map(|_| taken()).min();
    assert_eq!(least, Some(0), "{name}: allocations in {COUNTED} executions after the first");
}

/// Whatever a structure consists of, the estimate that a service charges beforehand is enough.
fn decoding_a_model_takes_no_more_than_is_charged_for_it() {
    let operation = |operands: &[u32]| Operation {
        ty: OperationType::Relu,
        inputs: operands.to_vec(),
        outputs: operands.to_vec(),
    };
    let operand = |rank| Operand {
        ty: OperandType::TensorFloat32,
        dimensions: vec![1; rank].as_slice().into(),
        number_of_consumers: 0,
        scale: 0.0,
        zero_point: 0,
        lifetime: OperandLifeTime::TemporaryVariable,
        location: DataLocation::default(),
        extra_params: ExtraParams::None,
    };
    let graph = |operands, operations| Subgraph { operands, operations, ..Subgraph::default() };
    let one = |main| Model { main, ..Model::default() };
    // One more than a power of two, where a list that grows has just doubled.
    for (what, model) in [
        ("nothing", Model::default()),
        ("graphs", Model { referenced: vec![Subgraph::default(); 1024], ..Model::default() }),
        ("graphs", Model { referenced: vec![Subgraph::default(); 513], ..Model::default() }),
        ("operations", one(graph(vec![], vec![operation(&[]); (1 << 15) + 1]))),
        ("operations of an operand", one(graph(vec![], vec![operation(&[0]); (1 << 15) + 1]))),
        ("operations of five", one(graph(vec![], vec![operation(&[0; 5]); (1 << 15) + 1]))),
        ("scalars", one(graph(vec![operand(0); (1 << 17) + 1], vec![]))),
        ("tensors", one(graph(vec![operand(5); (1 << 17) + 1], vec![]))),
    ] {
        let (structure, body) = encode_model(&model).unwrap();
        drop(model);
        let profiler = dhat::Profiler::builder().testing().build();
        let decoded = decode_model(&structure, OperandValues::default(), Vec::new()).unwrap();
        let taken = dhat::HeapStats::get().max_bytes as u64;
        drop((profiler, decoded));
        let charged = body.decoded_bytes();
        println!("{what}: {} bytes become {taken} of {charged}", structure.len());
        assert!(taken <= charged, "{what}: {taken} bytes, and {charged} are charged");
    }
}

fn an_idle_model_holds_its_weights_and_a_running_one_allocates_nothing() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let built_in = std::fs::read(repository().join("models/shapes.tflite")).unwrap();
    check("built-in", &burst_tflite::import(&built_in).unwrap().model);
}

fn idle_mobilenets_hold_their_weights_and_running_ones_allocate_nothing(shared: &Path) {
    let _profiler = dhat::Profiler::builder().testing().build();
    for entry in golden::folder(shared).models {
        if !entry.name.starts_with("mobilenet") {
            continue;
        }
        let bytes = std::fs::read(&entry.file).unwrap();
        check(&entry.name, &burst_tflite::import(&bytes).unwrap().model);
    }
}

/// An account that only counts.
#[derive(Debug, Default)]
struct Count {
    charged: AtomicU64,
    most: AtomicU64,
}

impl MemoryAccount for Count {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        let charged = self.charged.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(charged, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.charged.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes by which the heap and the account may differ whatever the size of the model.
const UNCHARGED_BYTES: usize = 16 << 10;

/// Compares what a model is charged with what it takes: prepared, at its most while it is prepared, and
/// with a context of an execution. Charged must be at least 0.9 of it, and at most 1.5.
fn compare_charges(name: &str, model: &Model) {
    let count = Arc::new(Count::default());
    let caller = Caller::default().with_account(Arc::clone(&count) as _);
    let charged = || usize::try_from(count.charged.load(Ordering::Relaxed)).unwrap();
    let live = || dhat::HeapStats::get().curr_bytes;
    let before = live();
    let prepared =
        CpuDevice::default().prepare_for(model, &PrepareOptions::default(), &caller).unwrap();
    // Weights on pages of their own are not the heap's.
    let pages = prepared.weight_page_bytes();
    let prepared = Arc::new(prepared);
    let held = (charged(), live() - before + pages);
    let burst = Arc::clone(&prepared).open_burst().unwrap();
    let open = (charged(), live() - before + pages);
    let most = count.most.load(Ordering::Relaxed);
    println!(
        "{name}: charged {} of {} bytes ({} %), with a context {} of {} ({} %), at most {most}",
        held.0,
        held.1,
        held.0 * 100 / held.1,
        open.0,
        open.1,
        open.0 * 100 / open.1
    );
    for (charged, live) in [held, open] {
        assert!(charged + UNCHARGED_BYTES >= live / 10 * 9, "{name}: {charged} of {live}");
        assert!(charged <= live / 2 * 3 + UNCHARGED_BYTES, "{name}: {charged} of {live}");
    }
    drop((burst, prepared));
    assert_eq!(charged(), 0, "{name}");
}

fn what_is_charged_for_a_model_is_what_the_heap_holds() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let built_in = std::fs::read(repository().join("models/shapes.tflite")).unwrap();
    compare_charges("built-in", &burst_tflite::import(&built_in).unwrap().model);
}

fn what_is_charged_for_real_models_is_what_the_heap_holds(shared: &Path) {
    let _profiler = dhat::Profiler::builder().testing().build();
    let mut compared = 0;
    for entry in golden::folder(shared).models {
        let bytes = std::fs::read(&entry.file).unwrap();
        // One that has operators without a form in the HAL cannot be prepared at all.
        if let Ok(imported) = burst_tflite::import(&bytes) {
            compare_charges(&entry.name, &imported.model);
            compared += 1;
        }
    }
    assert!(compared > 0);
}

/// A service makes its device and then locks itself in, which it has to do before it has threads.
fn a_device_that_has_prepared_nothing_has_no_threads() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    let devices = [Isa::detect(), Isa::PORTABLE].map(|isa| {
        let options = DeviceOptions { isa, threads: 4, owns_process: true, ..Default::default() };
        CpuDevice::new(options)
    });
    assert_eq!(threads(), before, "{devices:?}");
}

fn threads_that_executed_leave_nothing_behind() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[4, 64]);
    let (weights, bias) =
        (b.constant_f32(&[64, 64], &[0.5; 64 * 64]), b.constant_f32(&[64], &[1.0; 64]));
    let none = b.scalar_i32(0);
    let operands = [x, weights, bias, none];
    let y = b.result_of(OperationType::FullyConnected, &operands, OutputSpec::f32(&[4, 64]));
    b.output(y);
    let model = b.build().unwrap();
    let request = request(&model);
    let execution = ExecutionOptions::default();
    // With kernels of our own where the CPU has them, and with the matrix library.
    for isa in [Isa::detect(), Isa::PORTABLE] {
        let options = DeviceOptions { isa, owns_process: true, ..DeviceOptions::default() };
        let prepared = CpuDevice::new(options).prepare(&model).unwrap();
        let execute = || {
            std::thread::scope(|scope| {
                let result = scope.spawn(|| prepared.execute_synchronously(&request, &execution));
                assert_eq!(result.join().unwrap().status, ErrorStatus::None);
            });
        };
        execute();
        const THREADS: usize = 50;
        let before = dhat::HeapStats::get().curr_bytes;
        for _ in 0..THREADS {
            execute();
        }
        let left = dhat::HeapStats::get().curr_bytes.saturating_sub(before);
        assert!(left < THREADS * 100, "{isa:?}: {THREADS} threads left {left} bytes behind");
    }
}
