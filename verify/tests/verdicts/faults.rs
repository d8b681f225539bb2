//! The harness finds what is wrong: a right device passes, and each fault is named.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::sync::Arc;

use burst_hal::Route;
use burst_hal::session::{HeapAllocator, PoolAllocator};
use burst_verify::{Plan, Report, Target, run, specs};
use serde_json::Value;

use crate::support::{Fault, Floor, floor_blob, floor_test, write_spec};

const SUITES: [&str; 5] =
    ["GENERAL", "MEMORY_DOMAIN", "FENCED_COMPUTE", "DYNAMIC_SHAPE", "VALIDATION"];

fn run_on(fault: Fault, tests: &[Value], plan: &Plan) -> Report {
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "floor", tests, &floor_blob());
    let specs = specs(folder.path()).unwrap();
    let memory: Arc<dyn PoolAllocator> = Arc::new(HeapAllocator);
    let target = Target { device: &Floor(fault), memory: &memory };
    run(&specs, plan, 2, || Ok(target), |_, _| {}).unwrap()
}

fn everything(fault: Fault) -> Report {
    run_on(fault, &[floor_test("floor", &SUITES)], &Plan::everything(&Route::ALL))
}

#[test]
fn a_right_device_passes_and_everything_is_counted() {
    let report = everything(Fault::None);
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.tests, report.passed, report.failed, report.skipped), (1, 1, 0, 0));
    let cell = |suite: &str, mode: &str| report.per_suite[suite].modes[mode].as_ref();
    let count = |suite: &str, mode: &str| cell(suite, mode).map(|cell| cell.executions);
    for (suite, counts) in [
        // As sync, async, burst, fenced, model.
        ("GENERAL", [Some(2), Some(2), Some(2), None, None]), // without and with timing
        ("MEMORY_DOMAIN", [Some(2), Some(2), None, Some(2), None]), // in memory, in buffers
        ("FENCED_COMPUTE", [None, None, None, Some(2 + 3), None]), // and a chain
        ("DEADLINE", [Some(3), Some(3), None, None, Some(5)]),
        ("DYNAMIC_SHAPE", [Some(4), Some(4), Some(4), Some(4), None]), // unspecified, insufficient
        ("QUANTIZATION_COUPLING", [Some(0), Some(0), Some(0), Some(0), None]),
        ("INFINITE_LOOP_TIMEOUT", [Some(0), Some(0), None, Some(0), None]),
        ("CTS_ONLY", [Some(0), Some(0), Some(0), None, None]),
    ] {
        let modes = ["sync", "async", "burst", "fenced", "model"];
        assert_eq!(modes.map(|mode| count(suite, mode)), counts, "{suite}");
    }
    for mode in ["sync", "async", "burst"] {
        assert_eq!(count("VALIDATION", mode), Some(2), "without input, without output");
    }
    assert_eq!(count("VALIDATION", "fenced"), Some(2 + 2), "and two fences that are none");
    assert_eq!(report.executions, 6 + 6 + 5 + 6 + 16 + 10, "what is prepared is not executed");
    let tests = |suite: &str| report.per_suite[suite].tests;
    assert_eq!((tests("GENERAL"), tests("DEADLINE"), tests("CTS_ONLY")), (1, 1, 0));
    assert!(report.left_out.is_empty(), "{report:?}");
    // Two operands of 18 types: 4 unknown types, scale, zero point and 15 other types each;
    // 1 or 2 wrong numbers of readers, 2 wrong lifetimes and 1 that the lists deny. One operation:
    // 3 unknown types; 2 unknown operands; written twice, not at all; input and output removed,
    // one more of each; removed itself; and its input removed from everything, in two ways.
    let of_operands = 2 * (4 + 1 + 1 + 15 + 2 + 1) + 2 + 1;
    assert_eq!(count("VALIDATION", "model"), Some(of_operands + 3 + 2 + 2 + 2 + 2 + 1 + 2));
    assert_eq!(report.per_op["FLOOR"].passed, 1);
}

#[test]
fn every_fault_is_named() {
    for (fault, suite, what) in [
        (Fault::WrongValue, "GENERAL", "output 0, element 0: got 3, expected 2"),
        (Fault::NoShapes, "DYNAMIC_SHAPE", "0 shapes for 1 outputs"),
        (Fault::WrongShape, "GENERAL", "expected [3, 1]"),
        (Fault::TimingUnasked, "GENERAL", "although it was not asked for"),
        (Fault::DeviceSlowerThanDriver, "GENERAL", "more time on the device"),
        (Fault::WritesBehindTheOutput, "DYNAMIC_SHAPE", "no output's"),
        (Fault::IgnoresLength, "DYNAMIC_SHAPE", "expected OUTPUT_INSUFFICIENT_SIZE"),
        (Fault::DeclinesDynamicShapes, "DYNAMIC_SHAPE", "status GENERAL_FAILURE"),
        (Fault::TakesAnyType, "VALIDATION", "operand 0 with the type"),
        (Fault::TakesAnyConsumers, "VALIDATION", "operand 0 with 0 readers instead of 1"),
        (Fault::RefusesWithAnotherStatus, "VALIDATION", "expected INVALID_ARGUMENT"),
        (Fault::TakesAnyArguments, "VALIDATION", "request without input 0"),
        (Fault::TimingOnFailure, "DYNAMIC_SHAPE", "did not succeed"),
        (Fault::LacksButPrepares, "GENERAL", "unsupported, but prepared"),
        (Fault::HasButRefuses, "GENERAL", "prepare_model"),
        (Fault::Panics, "GENERAL", "panicked"),
        (Fault::FewAnswers, "GENERAL", "gave 0 answers"),
        (Fault::DropsCallback, "GENERAL", "was not called"),
        (Fault::LaunchTellsDeadline, "DEADLINE", "for the callback to say"),
        (Fault::LaunchTellsAnotherStatus, "VALIDATION", "the callback INVALID_ARGUMENT"),
        (Fault::TakesWrongLaunches, "VALIDATION", "the launch takes it"),
        (Fault::SignalsBeforeWriting, "FENCED_COMPUTE", "output 0, element 0"),
        (Fault::InfoBeforeTheEnd, "FENCED_COMPUTE", "before the execution began"),
        (Fault::IgnoresFences, "FENCED_COMPUTE", "before the execution began"),
        (Fault::TimingUnasked, "FENCED_COMPUTE", "although it was not asked for"),
        (Fault::TakesUnknownOutputs, "DYNAMIC_SHAPE", "the launch takes it"),
        (Fault::RefusesUnknownOutputsOtherwise, "DYNAMIC_SHAPE", "expected INVALID_ARGUMENT"),
        (Fault::TakesAnyFence, "VALIDATION", "is waited for"),
        (Fault::DeadlineIsAFailure, "DEADLINE", "deadline NOW: status GENERAL_FAILURE"),
        (Fault::PreparingDeadlineIsAFailure, "DEADLINE", "prepare_model with deadline NOW"),
        (Fault::NoPriorities, "DEADLINE", "prepare_model with priority LOW"),
        (Fault::UnlimitedIsMissed, "DEADLINE", "deadline UNLIMITED"),
        (Fault::CallsBuffersInvalid, "MEMORY_DOMAIN", "allocate for input 0"),
        (Fault::ForgetsBuffers, "MEMORY_DOMAIN", "output 0, element 0: got 0"),
        (Fault::OneTokenForAll, "MEMORY_DOMAIN", "the token of another buffer"),
    ] {
        let report = everything(fault);
        assert_eq!((report.failed, report.passed), (1, 0), "{fault:?}");
        assert_eq!(report.per_op["FLOOR"].failed, 1, "{fault:?}");
        let found = report.failures.iter().any(|f| f.suite == suite && f.what.contains(what));
        assert!(found, "{fault:?} should be {what:?} in {suite}: {:#?}", report.failures);
    }
}

#[test]
fn a_device_may_refuse_buffers_and_that_is_counted() {
    let report = everything(Fault::MakesNoBuffers);
    assert_eq!((report.passed, report.failed), (1, 0), "{report:?}");
    let rules: Vec<&str> = report.left_out.keys().copied().collect();
    assert!(rules.contains(&"BUFFER_REFUSED") && rules.contains(&"NO_BUFFERS"), "{rules:?}");
    let right = everything(Fault::None);
    assert!(!right.left_out.contains_key("BUFFER_REFUSED"), "{right:?}");
}

#[test]
fn a_device_that_lacks_an_operation_is_neither_right_nor_wrong() {
    let report = everything(Fault::Lacks);
    assert_eq!((report.tests, report.skipped, report.failed), (1, 1, 0), "{report:?}");
    assert_eq!(report.per_op["FLOOR"].skipped, 1);
}

#[test]
fn a_test_that_has_to_fail_is_wrong_when_it_succeeds() {
    let mut test = floor_test("floor", &["VALIDATION"]);
    test["expect_failure"] = true.into();
    let plan = Plan::everything(&[Route::Synchronous]);
    let report = run_on(Fault::None, &[test.clone()], &plan);
    assert!(report.failures[0].what.contains("has to fail"), "{report:?}");
    // Outside of the suites of the HAL any step may fail.
    test["vts"] = serde_json::json!([]);
    assert!(!run_on(Fault::None, &[test.clone()], &plan).is_sound());
    assert!(run_on(Fault::HasButRefuses, &[test], &plan).is_sound());
}

#[test]
fn a_plan_leaves_out_what_it_does_not_name() {
    let tests: Vec<Value> =
        (0..10).map(|index| floor_test(&format!("floor_{index}"), &SUITES)).collect();
    let plan = |change: fn(&mut Plan)| {
        let mut plan = Plan::everything(&[Route::Synchronous]);
        change(&mut plan);
        run_on(Fault::None, &tests, &plan)
    };
    assert_eq!(plan(|_| {}).tests, 10);
    assert_eq!(plan(|plan| plan.one_in = 5).tests, 2);
    assert_eq!(plan(|plan| plan.ops = Some(["ADD".to_owned()].into())).tests, 0);
    let report = plan(|plan| plan.suites = vec![burst_verify::Suite::General]);
    assert_eq!((report.tests, report.executions), (10, 20));
    assert_eq!(report.per_suite.len(), 1);
}

#[test]
fn a_fence_that_is_done_where_the_execution_failed_is_found_out() {
    let mut test = floor_test("floor", &["VALIDATION"]);
    test["expect_failure"] = true.into();
    let plan = Plan::everything(&[Route::Fenced]);
    let fails = |fault| run_on(fault, &[test.clone()], &plan);
    assert!(fails(Fault::FailsFenced).is_sound());
    let report = fails(Fault::SignalsFailures);
    assert!(report.failures[0].what.contains("the fence is Done, the status"), "{report:?}");
}

#[test]
fn what_the_rules_leave_out_is_counted_by_rule_and_suite() {
    let mut test = floor_test("floor", &SUITES);
    test["main"]["operands"][1]["dims"] = serde_json::json!([0, 1]);
    test["main"]["operands"][1]["data"] = serde_json::json!([12, 0]);
    let plan = |suites: &[burst_verify::Suite], routes: &[Route]| {
        let mut plan = Plan::everything(routes);
        plan.suites = suites.to_vec();
        run_on(Fault::None, &[test.clone()], &plan)
    };
    let report = plan(&[burst_verify::Suite::FencedCompute], &[Route::Fenced]);
    let cell = report.per_suite["FENCED_COMPUTE"].modes["fenced"].clone().unwrap();
    assert_eq!(cell.left_out, [("ZERO_SIZED_FENCED", 3)].into(), "{report:?}");
    assert!(report.left_out["ZERO_SIZED_FENCED"].contains("refused instead"));
}

#[test]
fn a_device_that_is_lost_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "floor", &[floor_test("floor", &SUITES)], &floor_blob());
    let specs = specs(folder.path()).unwrap();
    let gone = || Err::<Target<'_>, _>(burst_verify::RunError::Device("gone".into()));
    let error = run(&specs, &Plan::everything(&Route::ALL), 2, gone, |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "no device: gone");
}
