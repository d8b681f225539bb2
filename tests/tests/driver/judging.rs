//! Random models, judged: the CPU device is right on every lane, and devices that are not are found out.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;
use std::sync::Arc;

use burst_driver::{CacheKey, CpuDevice, DeviceOptions, Isa, ReferenceDevice};
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_hal::{
    Device, Failure, Model, OperationType as Op, PrepareOptions, PrepareResult, Route,
};
use burst_verify::judging::{Lane, RandomPlan, RandomReport, Way, run_random};
use burst_verify::random::Class;
use burst_verify::{DeviceLease, Recorded, RunError, Spec, Target};

burst_testing::tests![
    random_models_are_right_with_threads_from_files_and_with_every_instruction_set(),
    a_device_that_computes_another_operation_is_found_out_and_the_model_made_small(),
    a_lane_that_computes_something_else_is_found_out(),
    the_first_model_that_fails_ends_a_run_that_is_told_so(),
    hashes_of_floats_are_compared_at_the_end_of_a_graph_too(),
    a_device_that_runs_less_is_not_wrong(),
];

/// Models of each class.
const MODELS: u64 = 60;

struct Leased(Box<dyn Device>, Arc<dyn PoolAllocator>);

impl DeviceLease for Leased {
    fn target(&self) -> Target<'_> {
        Target { device: &*self.0, memory: &self.1 }
    }
}

fn lane(name: &str, device: impl Device + 'static) -> Lane<'static> {
    Lane {
        name: name.to_owned(),
        lease: Box::new(Leased(Box::new(device), Arc::new(HeapAllocator))),
        way: Way::Route(Route::Synchronous),
        may_round_otherwise: false,
    }
}

fn cpu(threads: usize, isa: Isa) -> CpuDevice {
    CpuDevice::new(DeviceOptions { threads, isa, ..DeviceOptions::default() })
}

fn plan(seed: u64, models: u64, classes: &[Class]) -> RandomPlan {
    RandomPlan {
        seed,
        models,
        classes: classes.to_vec(),
        ops: Vec::new(),
        failures: None,
        is_over_at_first: false,
    }
}

fn judged(
    plan: &RandomPlan,
    lanes: impl Fn() -> Result<Vec<Lane<'static>>, RunError> + Sync,
) -> RandomReport {
    run_random(plan, &ReferenceDevice::default(), 2, lanes, |_| {}).unwrap()
}

fn random_models_are_right_with_threads_from_files_and_with_every_instruction_set() {
    let lanes = || {
        let here = Isa::detect();
        let key = CacheKey::new([1; CacheKey::BYTES]);
        let kept = cpu(1, here).with_cache_key(key);
        let mut lanes = vec![
            lane("alone", cpu(1, here)),
            lane("three threads", cpu(3, here)),
            Lane { way: Way::Cached, ..lane("from files", kept) },
            Lane { way: Way::Route(Route::Burst), ..lane("burst", cpu(1, here)) },
        ];
        let others = Isa::each_here().filter(|isa| *isa != here);
        lanes.extend(others.map(|isa| Lane {
            may_round_otherwise: true,
            ..lane(&format!("{isa:?}"), cpu(1, isa))
        }));
        Ok(lanes)
    };
    let report = judged(&plan(7_000, MODELS, &Class::ALL), lanes);
    assert!(report.is_sound(), "{:#?}", report.findings);
    assert_eq!((report.passed, report.unsupported), (3 * MODELS, 0));
    assert_eq!(report.executions, 3 * MODELS * report.lanes.len() as u64);
    let forms = report.forms.iter().filter(|(_, counts)| counts.occurrences > 0).count();
    assert!(forms > 400, "{forms} forms");
    assert!(report.forms.iter().all(|(_, counts)| counts.skipped <= counts.elements));
}

/// The CPU device, with one operation taken for another.
struct Mistaken {
    device: CpuDevice,
    from: Op,
    to: Op,
}

impl Mistaken {
    fn new(from: Op, to: Op) -> Self {
        Mistaken { device: CpuDevice::default(), from, to }
    }

    fn mistaken(&self, model: &Model) -> Model {
        let mut model = model.clone();
        let operations = model.main.operations.iter_mut();
        for operation in operations.filter(|operation| operation.ty == self.from) {
            operation.ty = self.to;
        }
        model
    }
}

impl Device for Mistaken {
    fn name(&self) -> &str {
        "mistaken"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.device.supported_operations(&self.mistaken(model))
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        self.device.prepare_model(&self.mistaken(model), options)
    }
}

/// Operations that are mixed up, each with the same operands.
const MIXED_UP: [(Op, Op); 6] = [
    (Op::Relu, Op::Relu1),
    (Op::Maximum, Op::Minimum),
    (Op::Equal, Op::NotEqual),
    (Op::AveragePool2d, Op::MaxPool2d),
    (Op::ReduceMax, Op::ReduceMin),
    (Op::ResizeBilinear, Op::ResizeNearestNeighbor),
];

fn a_device_that_computes_another_operation_is_found_out_and_the_model_made_small() {
    for (from, to) in MIXED_UP {
        let folder = tempfile::tempdir().unwrap();
        let failures = Some(folder.path().to_path_buf());
        let plan = RandomPlan { failures, ops: vec![from], ..plan(0, 6, &[Class::Large]) };
        let report = judged(&plan, || Ok(vec![lane("mistaken", Mistaken::new(from, to))]));
        let Some(finding) = report.findings.first() else { panic!("{from} for {to}") };
        // One that reads what another computed stays behind it where its own operand cannot become an input.
        assert_eq!(finding.operations.last().map(String::as_str), Some(from.name()), "{finding:?}");
        assert!(finding.operations.len() <= 2, "{finding:?}");
        assert!(!report.is_sound());
        let file = finding.file.as_deref().unwrap();
        assert_eq!(unexpected(file, &CpuDevice::default()), None);
        let what = unexpected(file, &Mistaken::new(from, to));
        assert!(what.is_some(), "{from} for {to}: {finding:?}");
    }
}

/// What of a written model is not as the file expects; what the device says, where it does not run it.
fn unexpected(file: &Path, device: &dyn Device) -> Option<String> {
    let recorded = Recorded::open(&Spec::of_file(file).unwrap()).unwrap();
    let memory: Arc<dyn PoolAllocator> = Arc::new(HeapAllocator);
    let target = Target { device, memory: &memory };
    recorded.execute(target, Route::Synchronous).map_or_else(Some, |run| run.unexpected)
}

fn a_lane_that_computes_something_else_is_found_out() {
    let lanes = || {
        let wrong = lane("wrong", Mistaken::new(Op::Tanh, Op::Relu));
        Ok(vec![lane("right", CpuDevice::default()), wrong])
    };
    let plan = RandomPlan { ops: vec![Op::Tanh], ..plan(0, 4, &[Class::Single]) };
    let report = judged(&plan, lanes);
    assert!(report.failed > 0);
    for finding in &report.findings {
        assert_eq!(finding.lane, "wrong", "{finding:?}");
        assert!(finding.operations.contains(&"TANH".to_owned()), "{finding:?}");
    }
}

fn the_first_model_that_fails_ends_a_run_that_is_told_so() {
    let plan =
        RandomPlan { ops: vec![Op::Tanh], is_over_at_first: true, ..plan(0, 40, &[Class::Single]) };
    let report = judged(&plan, || Ok(vec![lane("wrong", Mistaken::new(Op::Tanh, Op::Relu))]));
    // Two workers; what the other one had begun is judged.
    assert!((1..=2).contains(&report.failed), "{report:?}");
    assert!(report.models < 40 && report.models == report.passed + report.failed, "{report:?}");
}

/// A float that differs in its last bit has another hash, rightly: what hashes read is mostly exact.
fn hashes_of_floats_are_compared_at_the_end_of_a_graph_too() {
    let plan = RandomPlan { ops: vec![Op::LshProjection], ..plan(0, 60, &[Class::Large]) };
    let report = judged(&plan, || Ok(vec![lane("alone", CpuDevice::default())]));
    assert!(report.is_sound(), "{:#?}", report.findings);
    let (mut elements, mut skipped) = (0, 0);
    for (_, counts) in report.forms.iter().filter(|(name, _)| name.starts_with("LSH_PROJECTION")) {
        elements += counts.elements;
        skipped += counts.skipped;
    }
    assert!(elements > 500 && skipped * 20 <= elements, "{skipped} of {elements}");
}

/// Runs everything but additions.
struct Less(CpuDevice);

impl Device for Less {
    fn name(&self) -> &str {
        "less"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        let supported = self.0.supported_operations(model)?;
        let operations = model.main.operations.iter();
        Ok(operations
            .zip(supported)
            .map(|(one, supported)| supported && one.ty != Op::Add)
            .collect())
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        match self.supported_operations(model)?.contains(&false) {
            true => Err(Failure::general("it adds nothing")),
            false => self.0.prepare_model(model, options),
        }
    }
}

fn a_device_that_runs_less_is_not_wrong() {
    let plan = RandomPlan { ops: vec![Op::Add, Op::Tanh], ..plan(0, 8, &[Class::Single]) };
    let report = judged(&plan, || Ok(vec![lane("less", Less(CpuDevice::default()))]));
    assert!(report.is_sound());
    assert!(report.unsupported >= 4 && report.passed >= 1, "{report:?}");
}
