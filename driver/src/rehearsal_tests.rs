use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::trace::{Span, SpanSink};
use burst_hal::{
    Caller, Failure, MemoryAccount, Model, ModelBuilder, OperandType, OutputSpec, PrepareOptions,
};

use super::*;
use crate::device::CpuDevice;

const F32: OperandType = OperandType::TensorFloat32;

fn prepared(model: &Model, caller: &Caller) -> CpuPreparedModel {
    CpuDevice::default().prepare_for(model, &PrepareOptions::default(), caller).unwrap()
}

/// What is charged, and how much may be.
#[derive(Debug)]
struct Purse {
    taken: AtomicU64,
    limit: AtomicU64,
}

impl Default for Purse {
    fn default() -> Self {
        Purse { taken: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX) }
    }
}

impl MemoryAccount for Purse {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if taken <= self.limit.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.give_back(bytes);
        Err(ErrorStatus::ResourceExhaustedTransient.into())
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A fully connected layer of so many units with as many weights each, for so many rows.
fn layer(rows: u32, units: u32) -> Model {
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[rows, units]);
    let weights = vec![0.5; (units * units) as usize];
    let weights = b.constant_f32(&[units, units], &weights);
    let bias = b.constant_f32(&[units], &vec![1.0; units as usize]);
    let none = b.scalar_i32(0);
    let spec = OutputSpec::new(F32, &[rows, units]);
    let y = b.result_of(OperationType::FullyConnected, &[x, weights, bias, none], spec);
    b.output(y);
    b.build().unwrap()
}

fn rehearses(model: &Model) -> bool {
    prepared(model, &Caller::default()).rehearse(Stop::default())
}

#[test]
fn a_small_model_is_rehearsed_and_a_large_one_is_not() {
    assert!(rehearses(&layer(1, 16)));
    // 1 MiB of weights; 512 KiB of values; few bytes, but many products.
    assert!(!rehearses(&layer(1, 512)));
    assert!(!rehearses(&layer(4096, 16)));
    assert!(!rehearses(&layer(200, 120)));
}

#[test]
fn a_model_whose_work_depends_on_its_inputs_is_not_rehearsed() {
    // A shape that only an execution knows.
    assert!(!rehearses(&layer(0, 16)));
    // Numbers of chance.
    let mut b = ModelBuilder::new();
    let x = b.input(F32, &[1, 8]);
    let count = b.scalar_i32(4);
    let seeds = b.constant_i32(&[2], &[1, 2]);
    let spec = OutputSpec::new(OperandType::TensorInt32, &[1, 4]);
    let y = b.result_of(OperationType::RandomMultinomial, &[x, count, seeds], spec);
    b.output(y);
    assert!(!rehearses(&b.build().unwrap()));
    // One of two graphs.
    let mut b = ModelBuilder::new();
    let branch = b.referenced(|b| {
        let x = b.input(F32, &[2]);
        let y = b.result_of(OperationType::Tanh, &[x], OutputSpec::new(F32, &[2]));
        b.output(y);
    });
    let condition = b.input(OperandType::TensorBool8, &[1]);
    let x = b.input(F32, &[2]);
    let branches = [branch; 2].map(|branch| b.subgraph(branch));
    let inputs = [condition, branches[0], branches[1], x];
    let y = b.result_of(OperationType::If, &inputs, OutputSpec::new(F32, &[2]));
    b.output(y);
    assert!(!rehearses(&b.build().unwrap()));
}

#[test]
fn what_goes_wrong_in_a_rehearsal_is_nobodys_error() {
    let purse = Arc::new(Purse::default());
    let caller = Caller::default().with_account(Arc::clone(&purse) as _);
    let model = prepared(&layer(1, 16), &caller);
    let held = purse.taken.load(Ordering::Relaxed);
    let long_ago = Some(TimePoint { nanos: 0 });
    assert!(!model.rehearse(Stop { deadline: long_ago, ..Stop::default() }));
    // Nor does it take more than there is, or keep what it took.
    for (more, is_enough) in [(0, false), (100, false), (1 << 20, true)] {
        purse.limit.store(held + more, Ordering::Relaxed);
        assert_eq!(model.rehearse(Stop::default()), is_enough);
        assert_eq!(purse.taken.load(Ordering::Relaxed), held);
    }
}

/// Counts spans.
#[derive(Debug, Default)]
struct Spans(AtomicU64);

impl SpanSink for Spans {
    fn is_on(&self) -> bool {
        true
    }

    fn record(&self, _: &Span<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn others_see_nothing_of_a_rehearsal() {
    let spans = Arc::new(Spans::default());
    let caller = Caller::default().with_tracer(Arc::clone(&spans) as _);
    let model = layer(1, 16);
    let silent = prepared(&model, &caller);
    let of_preparing = spans.0.load(Ordering::Relaxed);
    assert!(silent.rehearse(Stop { caller: Some(&caller), ..Stop::default() }));
    assert_eq!(spans.0.load(Ordering::Relaxed), of_preparing, "no span");
    // Nothing is known of how long executions take: none is refused for that.
    assert_eq!(silent.pace.refusal(std::time::Duration::from_nanos(1)), None);
    // An execution of the same model has spans, and is noted.
    let (request, _charge) = silent.request_of_zeros().unwrap();
    let options = ExecutionOptions::default();
    let wanted = Wanted { options: &options, caller: Some(&caller), makes_room: true };
    silent.execute(&mut None, &request, wanted, &mut ExecutionResult::of(ErrorStatus::None));
    assert!(spans.0.load(Ordering::Relaxed) > of_preparing);
    assert!(silent.pace.refusal(std::time::Duration::from_nanos(1)).is_some());
}
