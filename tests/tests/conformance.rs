//! Android's conformance vectors in this process: every test, in every suite it belongs to.
//!
//! Over a socket and a burst `burst verify` runs them: see `cli/tests/verify.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use burst_driver::CpuDevice;
use burst_hal::Route;
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_tests::shared;
use burst_verify::{DeviceLease, Plan, Report, Target, run, specs};

/// The CPU device in this process, which all workers share.
struct InProcess<'a>(&'a CpuDevice, Arc<dyn PoolAllocator>);

impl DeviceLease for InProcess<'_> {
    fn target(&self) -> Target<'_> {
        Target { device: self.0, memory: &self.1 }
    }
}

/// What is to be run: everything, unless someone at work on an operation says otherwise:
/// `VTS_OP=CONV_2D,ADD cargo test -p burst-tests --test conformance`.
fn plan() -> Plan {
    let mut plan = Plan::everything(&[Route::Synchronous]);
    let ops = std::env::var("VTS_OP").ok();
    plan.ops = ops.map(|ops| ops.split(',').map(str::to_owned).collect());
    plan
}

#[test]
fn every_vector_holds_in_this_process() {
    let Some(folder) = shared("every_vector_holds_in_this_process", "vts") else { return };
    let device = CpuDevice::default();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let started = Instant::now();
    let specs = specs(&folder).unwrap();
    let report = run(
        &specs,
        &plan(),
        workers,
        || Ok(InProcess(&device, Arc::new(HeapAllocator))),
        |_, _| {},
    )
    .unwrap();
    print(&report);
    println!("{:.1} s on {workers} CPUs", started.elapsed().as_secs_f64());
    assert!(report.tests > 0, "no test has these operations");
    assert_eq!((report.failed, report.skipped), (0, 0), "of {} tests", report.tests);
}

/// Operations that are not right, worst first, with a few of their failures each; then the counts.
fn print(report: &Report) {
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
    println!(
        "{} tests, {} executions; per suite {:?}",
        report.tests, report.executions, report.per_suite
    );
}
