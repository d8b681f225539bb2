//! What a model is to be good at decides on which threads it is computed, and what is kept of it.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use burst_driver::op::{Args, Inferred, OpTraits, Plain, Run, Signature, Tiling};
use burst_driver::{
    CpuDevice, DeviceOptions, Engine, ExtensionDef, ExtensionOp, OpError, Registry, SignatureError,
    Variant,
};
use burst_hal::{
    DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionPreference, ExecutionResult,
    ExtensionCode, HeapMemory, Model, ModelBuilder, OperandType, OutputSpec, PrepareOptions,
    PreparedModel, Request, RequestArgument, RequestPool,
};

use super::paying::Purse;

/// Turns a hang into a failure.
const LONG: Duration = Duration::from_secs(60);

const NAME: &str = "org.example.threads";

/// Copies its input in tiles, and notes who computes them.
const NOTES: u16 = 0;
/// Waits until it is let go.
const WAITS: u16 = 1;

static THREADS: ExtensionDef = ExtensionDef {
    name: NAME,
    types: &[],
    operations: &[
        ExtensionOp {
            number: NOTES,
            validate,
            body: &Plain { infer, prepare: None, execute: note },
            traits: OpTraits::PLAIN,
        },
        ExtensionOp {
            number: WAITS,
            validate,
            body: &Plain { infer, prepare: None, execute: wait },
            traits: OpTraits::PLAIN,
        },
    ],
};

fn validate(_: &Signature<'_>) -> Result<(), SignatureError> {
    Ok(())
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(args.dims(0)?))
}

/// Who computed tiles since this was last emptied.
static SEEN: Mutex<Option<HashSet<ThreadId>>> = Mutex::new(None);

/// Whether a tile waits a while for other threads to come.
static COMPANY: AtomicBool = AtomicBool::new(false);

fn note(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let (output, mut runner) = run.output_and_runner()?;
    // Work for milliseconds, of which helpers are told.
    let tiling =
        Tiling { row_len: 1, step: 1, share_step: Some(1), least: 1, most: 1, nanos: 10_000_000 };
    runner.tiles(&tiling, output.f32_mut()?, |_, tile, _| {
        tile.fill(1.0);
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get_or_insert_default().insert(std::thread::current().id());
        drop(seen);
        if COMPANY.load(Ordering::Relaxed) {
            (0..100).for_each(|_| std::thread::yield_now());
        }
        Ok(())
    })
}

static INSIDE: Barrier = Barrier::new(2);
static LET_GO: Barrier = Barrier::new(2);

fn wait(_: &mut Run<'_, '_>) -> Result<(), OpError> {
    INSIDE.wait();
    LET_GO.wait();
    Ok(())
}

fn model(operation: u16) -> Model {
    let mut b = ModelBuilder::new();
    b.extension(NAME, 1);
    let operation = ExtensionCode { prefix: 1, number: operation }.operation_type();
    let x = b.input(OperandType::TensorFloat32, &[64]);
    let y = b.result_of(operation, &[x], OutputSpec::f32(&[64]));
    b.output(y);
    b.build().unwrap()
}

fn request() -> Request {
    let pool = || RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; 256])));
    let argument = |pool_index| RequestArgument {
        location: DataLocation { pool_index, offset: 0, length: 256 },
        ..RequestArgument::default()
    };
    Request { inputs: vec![argument(0)], outputs: vec![argument(1)], pools: vec![pool(), pool()] }
}

fn options(preference: ExecutionPreference) -> PrepareOptions {
    PrepareOptions { preference, ..PrepareOptions::default() }
}

fn execute(model: &Arc<dyn PreparedModel>) -> usize {
    SEEN.lock().unwrap().take();
    let result = model.execute_synchronously(&request(), &ExecutionOptions::default());
    assert_eq!(result.status, ErrorStatus::None);
    let seen = SEEN.lock().unwrap().take().unwrap();
    assert!(seen.contains(&std::thread::current().id()) || seen.len() > 1);
    seen.len()
}

/// Executes until a helper took part: when it comes is up to the machine.
fn helpers_come(model: &Arc<dyn PreparedModel>) {
    let until = Instant::now() + LONG;
    while execute(model) < 2 {
        assert!(Instant::now() < until, "no helper ever comes");
    }
}

/// Executions while no helper may come.
const TRIES: usize = 20;

#[test]
fn low_power_computes_on_one_thread_and_sustained_speed_shares_them() {
    use ExecutionPreference::{FastSingleAnswer, LowPower, SustainedSpeed};
    let registry = Registry::default().with_extension(&THREADS).unwrap();
    let threads = DeviceOptions { threads: 2, ..DeviceOptions::default() };
    let engine = Arc::new(Engine::new(threads).with_registry(registry));
    let device = CpuDevice::of(&engine, &Variant::CPU);
    let prepare = |preference| device.prepare_model(&model(NOTES), &options(preference)).unwrap();
    let waiting = device.prepare_model(&model(WAITS), &options(FastSingleAnswer)).unwrap();
    let (low, fast) = (prepare(LowPower), prepare(FastSingleAnswer));
    let sustained = prepare(SustainedSpeed);

    COMPANY.store(true, Ordering::Relaxed);
    helpers_come(&fast);
    helpers_come(&sustained);
    // Also right behind one that woke the helper.
    assert!((0..TRIES).all(|_| execute(&low) == 1));

    // While another execution is in progress, one that is to keep up its speed computes alone.
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            waiting.execute_synchronously(&request(), &ExecutionOptions::default()).status
        });
        INSIDE.wait();
        let alone = (0..TRIES).all(|_| execute(&sustained) == 1);
        helpers_come(&fast);
        LET_GO.wait();
        assert_eq!(other.join().unwrap(), ErrorStatus::None);
        assert!(alone);
    });
    helpers_come(&sustained);
}

#[test]
fn sustained_speed_keeps_its_working_memory_when_idle() {
    use ExecutionPreference::{FastSingleAnswer, LowPower, SustainedSpeed};
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[64]);
    let y = b.result_of(burst_hal::OperationType::Relu, &[x], OutputSpec::f32(&[64]));
    b.output(y);
    let model = b.build().unwrap();
    for (preference, keeps) in
        [(SustainedSpeed, true), (FastSingleAnswer, false), (LowPower, false)]
    {
        let purse = Purse::new(u64::MAX);
        let prepared = CpuDevice::default()
            .prepare_model_for(&model, &options(preference), &purse.caller())
            .unwrap();
        let held = purse.charged();
        let mut burst = prepared.open_burst().unwrap();
        let warm = purse.charged();
        assert!(warm > held);
        burst.release_resources();
        assert_eq!(purse.charged(), if keeps { warm } else { held }, "{preference:?}");
        let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
        burst.execute(&request(), &ExecutionOptions::default(), &mut result);
        assert_eq!(result.status, ErrorStatus::None);
    }
}
