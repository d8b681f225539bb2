//! Spans of the device: one for each operation that is planned and executed, while somebody wants them.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use burst_driver::CpuDevice;
use burst_hal::trace::{Span, SpanKind, SpanSink};
use burst_hal::{
    Caller, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult, HeapMemory,
    Model, ModelBuilder, OperandType, OperationType, OutputSpec, PrepareOptions, Request,
    RequestArgument, RequestPool,
};

const I32: OperandType = OperandType::TensorInt32;

/// A span without its times' meaning: kind, operation, graph, index, begin, end, detail.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    kind: SpanKind,
    operation: Option<OperationType>,
    graph: u32,
    index: u32,
    begin: u64,
    end: u64,
    detail: String,
}

#[derive(Debug, Default)]
struct Sink {
    is_off: AtomicBool,
    seen: Mutex<Vec<Seen>>,
}

impl SpanSink for Sink {
    fn is_on(&self) -> bool {
        !self.is_off.load(Ordering::Relaxed)
    }

    fn record(&self, span: &Span<'_>) {
        let Span { kind, operation, graph, index, begin_ns, end_ns, detail } = *span;
        let (begin, end, detail) = (begin_ns, end_ns, detail.to_owned());
        self.seen.lock().unwrap().push(Seen { kind, operation, graph, index, begin, end, detail });
    }
}

impl Sink {
    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    fn caller(self: &Arc<Self>) -> Caller {
        Caller::default().with_tracer(Arc::clone(self) as Arc<dyn SpanSink>)
    }
}

fn only(seen: &[Seen], kind: SpanKind) -> Vec<Seen> {
    seen.iter().filter(|span| span.kind == kind).cloned().collect()
}

/// Counts from its first input to its second one, and adds 1: a WHILE, then an ADD.
fn counting() -> Model {
    let int = || OutputSpec::new(I32, &[1]);
    let plus = |b: &mut ModelBuilder, x: u32| {
        let (one, none) = (b.constant_i32(&[1], &[1]), b.scalar_i32(0));
        b.result_of(OperationType::Add, &[x, one, none], int())
    };
    let mut b = ModelBuilder::new();
    let condition = b.referenced(|b| {
        let (x, limit) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let less = b.result_of(OperationType::Less, &[x, limit], truth);
        b.output(less);
    });
    let body = b.referenced(|b| {
        let (x, _) = (b.input(I32, &[1]), b.input(I32, &[1]));
        let next = plus(b, x);
        b.output(next);
    });
    let (x, limit) = (b.input(I32, &[1]), b.input(I32, &[1]));
    let graphs = [condition, body].map(|graph| b.subgraph(graph));
    let counted = b.result_of(OperationType::While, &[graphs[0], graphs[1], x, limit], int());
    let out = plus(&mut b, counted);
    b.output(out);
    b.build().unwrap()
}

fn request(from: i32, to: i32) -> (Request, Arc<HeapMemory>) {
    let bytes = [from, to, 0].map(i32::to_ne_bytes).concat();
    let memory = Arc::new(HeapMemory::new(bytes));
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 4 },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0), argument(4)],
        outputs: vec![argument(8)],
        pools: vec![RequestPool::Memory(Arc::clone(&memory) as _)],
    };
    (request, memory)
}

#[test]
fn every_operation_that_is_planned_or_executed_has_a_span_with_its_graph() {
    let sink = Arc::new(Sink::default());
    let caller = sink.caller();
    let prepared = CpuDevice::default()
        .prepare_model_for(&counting(), &PrepareOptions::default(), &caller)
        .unwrap();
    let planned = only(&sink.take(), SpanKind::PlanOperation);
    let named = |span: &Seen| (span.operation.unwrap(), span.graph, span.index);
    let mut planned: Vec<_> = planned.iter().map(named).collect();
    planned.sort_unstable_by_key(|(_, graph, index)| (*graph, *index));
    use OperationType::{Add, Less, While};
    assert_eq!(planned, [(While, 0, 0), (Add, 0, 1), (Less, 1, 0), (Add, 2, 0)]);

    let (request, memory) = request(3, 5);
    let result = prepared.execute_for(&request, &ExecutionOptions::default(), &caller);
    assert_eq!(result.status, ErrorStatus::None);
    assert_eq!(memory.to_vec()[8..], 6_i32.to_ne_bytes());
    let seen = sink.take();
    let kinds: Vec<SpanKind> = seen.iter().map(|span| span.kind).collect();
    assert_eq!(kinds.first(), Some(&SpanKind::BringInputs));
    assert_eq!(kinds.last(), Some(&SpanKind::TakeOutputs));
    let operations = only(&seen, SpanKind::Operation);
    assert_eq!(operations.len(), seen.len() - 2);
    // Each once it has ended: three times the condition, twice the body, then the loop around them.
    let executed: Vec<_> = operations.iter().map(named).collect();
    let (condition, body) = ((Less, 1, 0), (Add, 2, 0));
    let rounds = [condition, body, condition, body, condition];
    assert_eq!(executed, [&rounds[..], &[(While, 0, 0), (Add, 0, 1)]].concat());
    let (inside, outside) = operations.split_at(rounds.len());
    assert!(inside.iter().all(|span| outside[0].begin <= span.begin && span.end <= outside[0].end));
    assert!(outside[0].end <= outside[1].begin, "one behind the other");
    assert!(seen[0].end <= outside[0].begin && outside[1].end <= seen.last().unwrap().begin);
    assert!(seen.iter().all(|span| span.begin <= span.end));
}

#[test]
fn the_kernel_of_an_operation_is_named() {
    let mut b = ModelBuilder::new();
    let x = b.input(OperandType::TensorFloat32, &[1, 64]);
    let (weights, bias) =
        (b.constant_f32(&[32, 64], &[0.5; 32 * 64]), b.constant_f32(&[32], &[0.0; 32]));
    let none = b.scalar_i32(0);
    let inputs = [x, weights, bias, none];
    let y = b.result_of(OperationType::FullyConnected, &inputs, OutputSpec::f32(&[1, 32]));
    b.output(y);
    let sink = Arc::new(Sink::default());
    let prepared = CpuDevice::default().prepare(&b.build().unwrap()).unwrap();
    let argument = |pool_index, length| RequestArgument {
        location: DataLocation { pool_index, offset: 0, length },
        ..RequestArgument::default()
    };
    let pool = |length| RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; length])));
    let request = Request {
        inputs: vec![argument(0, 256)],
        outputs: vec![argument(1, 128)],
        pools: vec![pool(256), pool(128)],
    };
    let kernel = prepared.profile(&request, 1).unwrap()[0].kernel.unwrap_or_default();
    use burst_hal::PreparedModel;
    let result = prepared.execute_for(&request, &ExecutionOptions::default(), &sink.caller());
    assert_eq!(result.status, ErrorStatus::None);
    let operations = only(&sink.take(), SpanKind::Operation);
    let [operation] = &operations[..] else { panic!("{operations:?}") };
    assert_eq!(operation.detail, kernel);
}

#[test]
fn a_burst_records_from_the_moment_on_at_which_somebody_wants_spans_and_no_longer() {
    let sink = Arc::new(Sink::default());
    sink.is_off.store(true, Ordering::Relaxed);
    let model = counting();
    let device = CpuDevice::default();
    let options = PrepareOptions::default();
    let prepared = device.prepare_model_for(&model, &options, &sink.caller()).unwrap();
    let mut burst = prepared.open_burst().unwrap();
    burst.work_for(&sink.caller());
    let (request, _memory) = request(0, 0);
    let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
    let mut recorded = || {
        burst.execute(&request, &ExecutionOptions::default(), &mut result);
        assert_eq!(result.status, ErrorStatus::None);
        sink.take().len()
    };
    assert_eq!(recorded(), 0);
    sink.is_off.store(false, Ordering::Relaxed);
    // The condition, the loop, the sum; inputs and outputs.
    assert_eq!((recorded(), recorded()), (5, 5));
    sink.is_off.store(true, Ordering::Relaxed);
    assert_eq!(recorded(), 0);
}
