//! Random models on the CPU device and on the reference device.
//!
//! Plain kernels give the same bits whether a plan runs them or the interpreter. Fast kernels give the
//! reference's bits too, but for sums of products of floats, which they add up in another order.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;
use std::sync::Arc;

use burst_driver::{CpuDevice, DeviceOptions, ReferenceDevice};
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_hal::{Device, Model, OperandType, OperationType, Route, Subgraph};
use burst_launch::Launcher;
use burst_testing::shared;
use burst_verify::random::{self, RandomModel};
use burst_verify::{DeviceLease, Plan, Suite, Target, run, specs};
use half::f16;

burst_testing::tests![
    every_operation_computes_the_references_bits_or_close_to_them(),
    random_graphs_compute_the_references_bits(),
    a_fixed_part_of_the_vectors_holds_on_the_reference(&shared("vts")?),
];

/// Seeds for each operation.
const SEEDS: u64 = 25;
/// Random graphs.
const GRAPHS: u64 = 250;
/// One in so many of the vectors' tests.
const ONE_IN: usize = 12;

/// Operations whose fast kernels add up products of floats in another order than the reference.
const SUMS_OF_PRODUCTS: [OperationType; 8] = [
    OperationType::BidirectionalSequenceLstm,
    OperationType::Conv2d,
    OperationType::DepthwiseConv2d,
    OperationType::FullyConnected,
    OperationType::GroupedConv2d,
    OperationType::Lstm,
    OperationType::TransposeConv2d,
    OperationType::UnidirectionalSequenceLstm,
];

struct Devices {
    fast: CpuDevice,
    /// Plans, but no fast kernels.
    plain: CpuDevice,
    reference: ReferenceDevice,
}

impl Devices {
    fn new() -> Self {
        Devices {
            fast: CpuDevice::default(),
            plain: CpuDevice::new(DeviceOptions::reference()),
            reference: ReferenceDevice::default(),
        }
    }
}

fn is_float(ty: OperandType) -> bool {
    matches!(ty, OperandType::TensorFloat32 | OperandType::TensorFloat16)
}

/// Whether fast kernels give the reference's bits for this model.
fn is_exact(model: &Model) -> bool {
    let adds_floats = |graph: &Subgraph| {
        graph.operations.iter().any(|operation| {
            SUMS_OF_PRODUCTS.contains(&operation.ty)
                && is_float(graph.operands[operation.inputs[0] as usize].ty)
        })
    };
    !std::iter::once(&model.main).chain(&model.referenced).any(adds_floats)
}

/// Runs a model on all of them; the fast one's outputs and the reference's.
fn outputs(devices: &Devices, one: &RandomModel, what: &str) -> [Vec<Vec<u8>>; 2] {
    let all: [&dyn Device; 3] = [&devices.fast, &devices.plain, &devices.reference];
    let [fast, plain, reference] = all.map(|device| {
        let supported = device.supported_operations(&one.model).unwrap();
        assert!(supported.iter().all(|supported| *supported), "{what} on {}", device.name());
        one.run(device).unwrap_or_else(|failure| panic!("{what} on {}: {failure}", device.name()))
    });
    assert!(plain == reference, "{what}: plain kernels in a plan and in the interpreter");
    assert_eq!(reference, one.run(&devices.reference).unwrap(), "{what}: a second time");
    [fast, reference]
}

fn every_operation_computes_the_references_bits_or_close_to_them() {
    let devices = Devices::new();
    let mut exact = 0;
    for ty in random::operations() {
        for seed in 0..SEEDS {
            let one = random::operation(ty, seed);
            let what = format!("{ty}, seed {seed}");
            let [fast, reference] = outputs(&devices, &one, &what);
            if is_exact(&one.model) {
                exact += 1;
                assert!(fast == reference, "{what}");
            } else {
                assert_close(&one, &fast, &reference, &what);
            }
        }
    }
    assert!(exact > 1500, "{exact} models are exact");
}

/// Floats may differ by what a sum in another order makes of them.
fn assert_close(one: &RandomModel, fast: &[Vec<u8>], reference: &[Vec<u8>], what: &str) {
    let outputs = one.model.main.output_indexes.iter().zip(fast.iter().zip(reference));
    for (output, (fast, reference)) in outputs {
        let ty = one.model.main.operands[*output as usize].ty;
        let values = |bytes: &[u8]| -> Vec<f32> {
            match ty {
                OperandType::TensorFloat32 => {
                    bytes.as_chunks().0.iter().map(|value| f32::from_ne_bytes(*value)).collect()
                }
                OperandType::TensorFloat16 => bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|value| f16::from_ne_bytes(*value).to_f32())
                    .collect(),
                _ => bytes.iter().map(|byte| f32::from(*byte)).collect(),
            }
        };
        let allowed = match ty {
            OperandType::TensorFloat32 => 1e-5,
            OperandType::TensorFloat16 => 2e-3,
            _ => 0.0,
        };
        for (fast, reference) in values(fast).into_iter().zip(values(reference)) {
            let difference = (fast - reference).abs();
            let limit = allowed * reference.abs().max(4.0);
            assert!(difference <= limit, "{what}: output {output}: {fast} and {reference}");
        }
    }
}

fn random_graphs_compute_the_references_bits() {
    let devices = Devices::new();
    let mut exact = 0;
    for seed in 0..GRAPHS {
        let one = random::graph(seed, 5 + usize::try_from(seed).unwrap() % 36);
        let [fast, reference] = outputs(&devices, &one, &format!("seed {seed}"));
        if is_exact(&one.model) {
            exact += 1;
            assert!(fast == reference, "seed {seed}");
        }
    }
    assert!(exact > 20, "{exact} models are exact");
}

struct InProcess<'a>(&'a dyn Device, Arc<dyn PoolAllocator>);

impl DeviceLease for InProcess<'_> {
    fn target(&self) -> Target<'_> {
        Target { device: self.0, memory: &self.1 }
    }
}

/// Every suite but that of memory domains: the reference device makes no buffers.
fn a_fixed_part_of_the_vectors_holds_on_the_reference(folder: &Path) {
    let device = Launcher::default().wrap(Arc::new(ReferenceDevice::default()));
    let suites = Suite::ALL.into_iter().filter(|suite| *suite != Suite::MemoryDomain);
    let plan = Plan {
        suites: suites.collect(),
        one_in: ONE_IN,
        ..Plan::everything(&[Route::Synchronous, Route::Burst])
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let specs = specs(folder).expect("readable vectors");
    let lease = || Ok(InProcess(&*device, Arc::new(HeapAllocator)));
    let report = run(&specs, &plan, workers, lease, |_, _| {}).expect("every test runs");
    for failure in report.failures.iter().take(20) {
        let burst_verify::Finding { test, suite, mode, what } = failure;
        println!("{test} {suite} {mode}: {what}");
    }
    println!("{} tests, {} executions", report.tests, report.executions);
    assert!(report.tests > 500, "{} tests", report.tests);
    assert_eq!((report.failed, report.skipped), (0, 0), "of {} tests", report.tests);
}
