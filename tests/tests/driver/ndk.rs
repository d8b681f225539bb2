//! A fixed tenth of the conformance vectors through NNAPI's C functions, of the shared object that is built
//! together with these tests and loaded as any client loads it: by pointers and by memories, in memories made
//! for roles, by `compute`, `startCompute`, `burstCompute` and behind fences; and broken models, as far as calls can
//! describe them.
//!
//! All of them: `VTS_ONE_IN=1`, or `burst verify --mode ndk`. Divided among the devices of a service:
//! `cli/tests/command/verify_ndk.rs`.

use std::path::Path;
use std::sync::Arc;

use burst_client::SharedAllocator;
use burst_hal::session::PoolAllocator;
use burst_hal::{Device, Route};
use burst_testing::shared;
use burst_verify::{DeviceLease, Interface, LeftOut, Plan, Report, Suite, Target, run, specs};
use neuralnetworks::c::client::{Library, NdkDevice};

use super::conformance;

burst_testing::tests![
    a_tenth_of_the_vectors_holds_through_the_c_functions(&shared("vts")?),
    the_reference_device_holds_through_the_c_functions(&shared("vts")?),
    vectors_hold_where_no_device_is_named(&shared("vts")?),
];

struct Lease<'a> {
    device: &'a NdkDevice,
    interface: Interface,
    memory: Arc<dyn PoolAllocator>,
}

impl DeviceLease for Lease<'_> {
    fn target(&self) -> Target<'_> {
        Target { device: self.device, memory: &self.memory }
    }

    fn interface(&self) -> Interface {
        self.interface
    }
}

/// The library beside this program.
fn library() -> Arc<Library> {
    let own = std::env::current_exe().expect("a path");
    Library::load(&own.with_file_name("libneuralnetworks.so")).expect("the library")
}

fn devices() -> Vec<NdkDevice> {
    NdkDevice::all(&library()).expect("its devices")
}

fn hold(folder: &Path, device: &NdkDevice, interface: Interface, plan: &Plan) -> Report {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let specs = specs(folder).expect("readable vectors");
    let lease = || Ok(Lease { device, interface, memory: Arc::new(SharedAllocator) });
    let report = run(&specs, plan, workers, lease, |_, _| {}).expect("every test runs");
    conformance::print(&report);
    assert!(report.tests > 0 && report.executions > report.tests, "{} tests", report.tests);
    assert_eq!((report.failed, report.skipped), (0, 0), "of {} tests", report.tests);
    report
}

fn plan(one_in: usize) -> Plan {
    Plan { one_in, ..Plan::everything(&Route::ALL) }
}

/// What no sequence of calls describes.
const UNSAID: [LeftOut; 3] =
    [LeftOut::ReadersAreCounted, LeftOut::OrderIsSorted, LeftOut::LifetimesFollowLists];

fn a_tenth_of_the_vectors_holds_through_the_c_functions(folder: &Path) {
    let devices = devices();
    let first = devices.first().expect("a device");
    assert_ne!(first.name(), "nnapi-reference");
    let one_in = std::env::var("VTS_ONE_IN").ok();
    let one_in = one_in.map_or(10, |one_in| one_in.parse().expect("a number"));
    let report = hold(folder, first, Interface::NamedDevice, &plan(one_in));
    let broken = report.per_suite["VALIDATION"].modes["model"].as_ref().expect("broken models");
    let unsaid: u64 = UNSAID.iter().map(|rule| broken.left_out[rule.name()]).sum();
    assert!(broken.executions > 5 * unsaid, "most can be said: {broken:?}");
}

fn the_reference_device_holds_through_the_c_functions(folder: &Path) {
    let devices = devices();
    let last = devices.last().expect("a device");
    assert_eq!(last.name(), "nnapi-reference");
    let suites = vec![Suite::General, Suite::FencedCompute];
    hold(folder, last, Interface::NamedDevice, &Plan { suites, ..plan(100) });
}

/// There are neither times nor deadlines then, and nothing else is left out for that.
fn vectors_hold_where_no_device_is_named(folder: &Path) {
    let device = NdkDevice::any(&library()).expect("devices");
    let report = hold(folder, &device, Interface::AnyDevice, &plan(50));
    let general = report.per_suite["GENERAL"].modes["sync"].as_ref().expect("executions");
    assert_eq!(general.executions, 2 * general.passed, "twice without times");
    assert_eq!(general.left_out[LeftOut::TimesOfAnyDevice.name()], general.passed);
    let deadline = report.per_suite["DEADLINE"].modes["sync"].as_ref().expect("executions");
    assert_eq!(deadline.executions, deadline.passed, "without a deadline");
    assert_eq!(deadline.left_out[LeftOut::DeadlinesOfAnyDevice.name()], 2 * deadline.passed);
}
