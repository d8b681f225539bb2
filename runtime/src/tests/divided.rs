//! Random graphs among devices that each take a random part compute what one device computes, bit for bit.
//!
//! The quick part runs with every `cargo test`. Ten times as many:
//! `cargo test -p neuralnetworks --lib two_thousand -- --ignored`.

use std::sync::Arc;

use crate::partition::{Plan, Step};
use crate::{Argument, Compilation, Execution, Model, RuntimeDevice};
use burst_driver::ReferenceDevice;
use burst_hal::{
    Capabilities, Device, Failure, HeapMemory, Model as HalModel, OperandKind, OperandType,
    PerformanceInfo, PrepareOptions, PrepareResult,
};
use burst_verify::random::{self, RandomModel, Rng};

/// The reference's kernels, but only for some operations: those that a number drawn from the operation's
/// kind and place says.
struct Masked {
    name: String,
    seed: u64,
    /// Which share of the operations it takes.
    share: f32,
    exec_time: f32,
    all: ReferenceDevice,
}

impl Device for Masked {
    fn name(&self) -> &str {
        &self.name
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        let info = PerformanceInfo { exec_time: self.exec_time, power_usage: self.exec_time };
        let is_value = |ty: &&OperandType| {
            matches!(ty.kind(), OperandKind::Scalar | OperandKind::Tensor) && !ty.is_oem()
        };
        let types = OperandType::ALL.iter().filter(is_value);
        Ok(Capabilities {
            relaxed_float32_to_float16_scalar: info,
            relaxed_float32_to_float16_tensor: info,
            operand_performance: types.map(|ty| (*ty, info)).collect(),
            if_performance: info,
            while_performance: info,
        })
    }

    fn supported_operations(&self, model: &HalModel) -> Result<Vec<bool>, Failure> {
        let operations = model.main.operations.iter().enumerate();
        let takes = |(index, operation): (usize, &burst_hal::Operation)| {
            let place = ((index as u64) << 32) ^ u64::from(operation.ty.code().unsigned_abs());
            Rng::new(self.seed ^ place).chance(self.share)
        };
        Ok(operations.map(takes).collect())
    }

    fn prepare_model(&self, model: &HalModel, options: &PrepareOptions) -> PrepareResult {
        self.all.prepare_model(model, options)
    }
}

/// Two devices that take parts, the first the faster, and the reference for the rest.
fn devices(seed: u64) -> Vec<Arc<RuntimeDevice>> {
    let mut rng = Rng::new(seed ^ 0xD1F);
    let mut masked = |name: &str, exec_time| Masked {
        name: name.to_owned(),
        seed: rng.next(),
        share: rng.real(0.1, 0.8),
        exec_time,
        all: ReferenceDevice::default(),
    };
    let (first, second) = (masked("test-first", 0.5), masked("test-second", 0.6));
    vec![
        RuntimeDevice::local(Arc::new(first)).unwrap(),
        RuntimeDevice::local(Arc::new(second)).unwrap(),
        RuntimeDevice::reference(Arc::new(ReferenceDevice::default())).unwrap(),
    ]
}

/// What became of one graph.
#[derive(Debug, Default)]
struct Seen {
    steps: usize,
    interpreted: usize,
}

/// Runs a graph divided among devices, twice with the same results.
fn divided(one: &RandomModel, devices: &[Arc<RuntimeDevice>]) -> (Vec<Vec<u8>>, Seen) {
    let model = Model::from_hal(one.model.clone()).unwrap();
    let compilation = Compilation::for_devices(&model, devices).unwrap();
    compilation.finish().unwrap_or_else(|error| panic!("seed {}: {error}", one.seed));
    let seen = match &*compilation.plan().unwrap() {
        Plan::Simple { .. } => Seen { steps: 1, interpreted: 0 },
        Plan::Compound(plan) => Seen {
            steps: plan.steps.len(),
            interpreted: plan.steps.iter().filter(|one| !matches!(one, Step::Device(_))).count(),
        },
    };
    let first = execute(one, &compilation);
    assert!(first == execute(one, &compilation), "seed {}: a second execution", one.seed);
    (first, seen)
}

fn execute(one: &RandomModel, compilation: &Arc<Compilation>) -> Vec<Vec<u8>> {
    let execution = Execution::new(compilation).unwrap();
    for (index, bytes) in (0..).zip(&one.inputs) {
        let argument = Argument::Host(Arc::new(HeapMemory::new(bytes.clone())));
        execution.set_input(index, None, argument).unwrap();
    }
    let outputs: Vec<Arc<HeapMemory>> =
        one.output_lengths().map(|length| Arc::new(HeapMemory::new(vec![0; length]))).collect();
    for (index, output) in (0..).zip(&outputs) {
        let argument = Argument::Host(Arc::clone(output) as _);
        execution.set_output(index, None, argument).unwrap();
    }
    execution.compute().unwrap_or_else(|error| panic!("seed {}: {error}", one.seed));
    outputs.iter().map(|output| output.to_vec()).collect()
}

fn check(seeds: std::ops::Range<u64>) {
    let count = seeds.end - seeds.start;
    let (mut several, mut interpreted) = (0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let operations = 5 + rng.below(36);
        let one = random::graph(seed, operations);
        let whole = one.run(&ReferenceDevice::default()).unwrap();
        let (parts, seen) = divided(&one, &devices(seed));
        assert!(parts == whole, "seed {seed}");
        several += u64::from(seen.steps > 2);
        interpreted += u64::from(seen.interpreted > 0);
    }
    println!(
        "{count} graphs: {several} in several steps, {interpreted} with control flow in parts"
    );
    assert!(several > count / 2, "{several} of {count} graphs in more than two steps");
    assert!(interpreted > count / 20, "{interpreted} of {count} graphs with control flow in parts");
}

#[test]
fn random_graphs_among_random_devices_compute_what_one_device_computes() {
    check(0..200);
}

#[test]
#[ignore = "ten times the quick part: cargo test -p neuralnetworks --lib two_thousand -- --ignored"]
fn two_thousand_random_graphs_compute_what_one_device_computes() {
    check(0..2000);
}
