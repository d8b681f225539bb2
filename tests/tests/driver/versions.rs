//! Older versions of the HAL: what each can say of the vectors' models, and the CPU device as a driver of
//! each, which gets what it can take.

use std::path::Path;
use std::sync::Arc;

use burst_driver::CpuDevice;
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_hal::validate::validate_model_of;
use burst_hal::versions::{AdaptedDevice, LimitedDevice, OldDevice, model_to, slice};
use burst_hal::{Device, HalVersion, Model, Route, compliant_with};
use burst_testing::shared;
use burst_verify::{OutputShapes, Plan, Report, Suite, Target, build, open, run, specs};

burst_testing::tests![
    models_suit_their_lowest_version_and_none_before(&shared("vts")?),
    a_driver_of_1_0_gets_what_it_can_take(&shared("vts")?),
    a_driver_of_1_1_gets_what_it_can_take(&shared("vts")?),
    a_driver_of_1_2_gets_what_it_can_take(&shared("vts")?),
];

/// Specs whose authors name a later version than their models need: their models are said in the forms of
/// an earlier one, and wrong in a way that only an execution shows, or are held back for their size.
const NAMED_LATER: [&str; 3] = [
    "V1_0/mobilenet_224_gender_basic_fixed",
    "V1_2/depthwise_conv2d_invalid_filter_dims",
    "V1_2/strided_slice_invalid",
];

fn version(folder: &str) -> HalVersion {
    match folder {
        "V1_0" => HalVersion::V1_0,
        "V1_1" => HalVersion::V1_1,
        "V1_2" => HalVersion::V1_2,
        "V1_3" => HalVersion::V1_3,
        other => panic!("version {other}"),
    }
}

/// The first version that can carry a model.
fn lowest(model: &Model) -> Option<HalVersion> {
    HalVersion::ALL.into_iter().find(|version| compliant_with(model, *version).is_compliant())
}

fn models_suit_their_lowest_version_and_none_before(folder: &Path) {
    let (mut checked, mut named_later, mut wrong) = (0, 0, Vec::new());
    for spec in specs(folder).expect("readable vectors") {
        let vectors = open(&spec).expect("a spec");
        for test in &vectors.tests {
            let model = build(&vectors, test, OutputShapes::Declared).expect("a model").model;
            let found = lowest(&model);
            check_conversions(&model, found, &test.name);
            let Some(wanted) = test.min_version.as_deref().map(version) else { continue };
            checked += 1;
            if NAMED_LATER.contains(&spec.name.as_str()) && found < Some(wanted) {
                named_later += 1;
            } else if found != Some(wanted) {
                wrong.push(format!("{}: {found:?}, not {wanted}", test.name));
            }
        }
    }
    println!("{checked} models, {named_later} of them said in an earlier version than named");
    wrong.iter().take(20).for_each(|wrong| println!("{wrong}"));
    assert!(wrong.is_empty(), "{} of {checked} are wrong", wrong.len());
    assert_eq!((checked, named_later), (5995, 13));
}

/// A model is converted to exactly the versions that suit it, and its slice for any version is legal there.
fn check_conversions(model: &Model, lowest: Option<HalVersion>, name: &str) {
    for version in HalVersion::ALL {
        let converted = model_to(model, version);
        assert_eq!(converted.is_ok(), lowest.is_some_and(|lowest| lowest <= version), "{name}");
        if let Ok(converted) = converted {
            assert_eq!(validate_model_of(&converted.value, version), Ok(()), "{name} {version}");
        }
        if let Some(slice) = slice(model, version) {
            assert_eq!(validate_model_of(&slice.model, version), Ok(()), "{name} {version}");
        }
    }
}

/// Runs a fixed part of the vectors on a device: right values where it supports the model.
fn run_on(device: &dyn Device, suite: Suite, routes: &[Route], folder: &Path) -> Report {
    let mut plan = Plan::everything(routes);
    plan.suites = vec![suite];
    plan.one_in = ONE_IN;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let specs = specs(folder).expect("readable vectors");
    let memory: Arc<dyn PoolAllocator> = Arc::new(HeapAllocator);
    let target = Target { device, memory: &memory };
    let report = run(&specs, &plan, workers, || Ok(target), |_, _| {}).expect("every test runs");
    for failure in report.failures.iter().take(10) {
        println!("{} {}: {}", failure.test, failure.mode, failure.what);
    }
    println!("{} tests, {} executions, {:?}", report.tests, report.executions, report.per_suite);
    report
}

/// The part that is run.
const ONE_IN: usize = 6;

fn limited() -> Arc<LimitedDevice> {
    Arc::new(LimitedDevice::new(Arc::new(CpuDevice::default())))
}

/// Tests of that part whose model a version can carry, and the others.
fn counts(folder: &Path, suite: Suite, at: HalVersion) -> (usize, usize) {
    let (mut carried, mut others) = (0, 0);
    for (number, spec) in specs(folder).expect("readable vectors").iter().enumerate() {
        let vectors = open(spec).expect("a spec");
        let tests = vectors.tests.iter().enumerate();
        let chosen = tests.filter(|(index, _)| (number + index).is_multiple_of(ONE_IN));
        for (_, test) in chosen.filter(|(_, test)| test.suites().any(|one| one == suite)) {
            let model = build(&vectors, test, OutputShapes::Declared).expect("a model").model;
            match compliant_with(&model, at).is_compliant() {
                true => carried += 1,
                false => others += 1,
            }
        }
    }
    (carried, others)
}

/// Every test whose model the version can carry passes, on each of these routes; every other one is
/// reported as unsupported.
fn check(old: OldDevice, routes: &[Route], folder: &Path) {
    let at = old.version();
    let device = AdaptedDevice::new(old);
    let report = run_on(&device, Suite::General, routes, folder);
    let (carried, others) = counts(folder, Suite::General, at);
    println!("HAL {at}: {carried} models carried, {others} not");
    assert!(carried > 50, "only {carried} models");
    assert_eq!(report.failed, 0, "of {} tests", report.tests);
    let (skipped, tests) = (report.skipped, report.tests);
    assert_eq!((tests - skipped, skipped), (carried as u64, others as u64));
}

const ROUTES: [Route; 3] = [Route::Synchronous, Route::Asynchronous, Route::Burst];

fn a_driver_of_1_0_gets_what_it_can_take(folder: &Path) {
    check(OldDevice::V1_0(limited()), &ROUTES, folder);
}

fn a_driver_of_1_1_gets_what_it_can_take(folder: &Path) {
    check(OldDevice::V1_1(limited()), &ROUTES, folder);
}

fn a_driver_of_1_2_gets_what_it_can_take(folder: &Path) {
    check(OldDevice::V1_2(limited()), &ROUTES, folder);
    // Outputs of unknown size, and some that are too short: since 1.2 a driver says their shapes.
    let device = AdaptedDevice::new(OldDevice::V1_2(limited()));
    let report = run_on(&device, Suite::DynamicShape, &ROUTES, folder);
    let (carried, _) = counts(folder, Suite::DynamicShape, HalVersion::V1_2);
    assert_eq!((report.failed, report.tests - report.skipped), (0, carried as u64));
}
