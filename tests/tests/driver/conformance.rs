//! Android's conformance vectors in this process, a fixed part of them in every suite it belongs to and in
//! every way that the suite has.
//!
//! All of them: `VTS_ONE_IN=1`. Over a socket `burst verify` runs them: see `cli/tests/command/verify.rs`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use burst_driver::CpuDevice;
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_hal::{Device, Route};
use burst_launch::Launcher;
use burst_testing::shared;
use burst_verify::{DeviceLease, LeftOut, Plan, Report, Suite, Target, open, run, specs};

burst_testing::tests![
    every_vector_holds_in_this_process(&shared("vts")?),
    every_suite_has_as_many_tests_as_the_original(&shared("vts")?),
];

/// Tests in each suite.
const COUNTS: [(Suite, usize); 9] = [
    (Suite::General, 7419),
    (Suite::MemoryDomain, 7419),
    (Suite::FencedCompute, 7419),
    (Suite::Deadline, 7419),
    (Suite::DynamicShape, 6976),
    (Suite::QuantizationCoupling, 687),
    (Suite::InfiniteLoopTimeout, 5),
    (Suite::Validation, 3225),
    (Suite::CtsOnly, 270),
];

/// The CPU device in this process, which all workers share.
struct InProcess<'a>(&'a dyn Device, Arc<dyn PoolAllocator>);

impl DeviceLease for InProcess<'_> {
    fn target(&self) -> Target<'_> {
        Target { device: self.0, memory: &self.1 }
    }
}

/// What is to be run, unless someone at work on an operation says otherwise:
/// `VTS_OP=CONV_2D,ADD VTS_ONE_IN=1 cargo test -p burst-tests --test driver conformance`.
fn plan() -> Plan {
    let mut plan = Plan::everything(&Route::ALL);
    let ops = std::env::var("VTS_OP").ok();
    plan.ops = ops.map(|ops| ops.split(',').map(str::to_owned).collect());
    let one_in = std::env::var("VTS_ONE_IN").ok();
    plan.one_in = one_in.map_or(1, |one_in| one_in.parse().expect("a number"));
    plan
}

fn every_vector_holds_in_this_process(folder: &Path) {
    let device = Launcher::default().wrap(Arc::new(CpuDevice::default()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let started = Instant::now();
    let specs = specs(folder).expect("readable vectors");
    let lease = || Ok(InProcess(&*device, Arc::new(HeapAllocator)));
    let report = run(&specs, &plan(), workers, lease, |_, _| {}).expect("every test runs");
    print(&report);
    println!("{:.1} s on {workers} CPUs", started.elapsed().as_secs_f64());
    assert!(report.tests > 0, "no test has these operations");
    assert_eq!((report.failed, report.skipped), (0, 0), "of {} tests", report.tests);
    // Any driver may refuse buffers; this one makes them all.
    assert!(!report.left_out.contains_key(LeftOut::BufferRefused.name()), "{:?}", report.left_out);
}

fn every_suite_has_as_many_tests_as_the_original(folder: &Path) {
    let mut tests: BTreeMap<Suite, usize> = BTreeMap::new();
    for spec in specs(folder).expect("readable vectors") {
        for test in open(&spec).expect("known suites").tests {
            test.suites().for_each(|suite| *tests.entry(suite).or_default() += 1);
        }
    }
    assert_eq!(tests, BTreeMap::from(COUNTS));
}

/// Operations that are not right, worst first, with a few of their failures each; then the counts.
pub(super) fn print(report: &Report) {
    let mut wrong: Vec<_> =
        report.per_op.iter().filter(|(_, tally)| tally.passed < tally.total()).collect();
    wrong.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.total() - tally.passed));
    for (op, tally) in wrong {
        println!(
            "{op}: {} passed, {} failed, {} skipped",
            tally.passed, tally.failed, tally.skipped
        );
    }
    // Failures of the same kind look alike but for their numbers: one of each is enough.
    let mut kinds: BTreeMap<String, (usize, &burst_verify::Finding)> = BTreeMap::new();
    for failure in &report.failures {
        let kind: String = failure.what.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
        kinds.entry(format!("{} {kind}", failure.suite)).or_insert((0, failure)).0 += 1;
    }
    for (count, failure) in kinds.values() {
        let burst_verify::Finding { test, suite, mode, what } = failure;
        println!("{count} x e.g. {test} {suite} {mode}: {what}");
    }
    println!("{} tests, {} executions", report.tests, report.executions);
    for (suite, counts) in &report.per_suite {
        println!("{suite}: {counts:?}");
    }
}
