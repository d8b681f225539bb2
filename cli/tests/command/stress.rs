//! `burst stress`: the crash tests themselves, short, and that each way to go wrong is noticed, with a driver that
//! goes wrong on purpose.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{burst, json, run};

burst_testing::tests![
    every_crash_test_succeeds_for_a_moment(),
    a_driver_that_hangs_crashes_or_computes_wrongly_is_told_apart(),
    after_a_crash_the_next_test_runs(),
];

/// The driver that goes wrong.
fn faulty_driver() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_burst"));
    let example = folder.parent().unwrap().join("examples/faulty_driver");
    assert!(example.exists(), "cargo test builds the examples of a package");
    example
}

fn outcomes(report: &Value) -> Vec<(String, String)> {
    let tests = report["tests"].as_array().unwrap().iter();
    let word = |test: &Value, key: &str| test[key].as_str().unwrap().to_owned();
    tests.map(|test| (word(test, "test"), word(test, "outcome"))).collect()
}

fn every_crash_test_succeeds_for_a_moment() {
    // Each goes on until everybody has got on at least twice, however short its time.
    let output = run(&["stress", "--minutes", "0.05", "--patience", "60", "--seed", "7", "--json"]);
    let report = json(&output);
    assert!(output.status.success(), "{report:#}");
    let outcomes = outcomes(&report);
    assert_eq!(outcomes.len(), 9, "{report:#}");
    assert!(outcomes.iter().all(|(_, outcome)| outcome == "SUCCESS"), "{report:#}");
    assert_eq!((report["seed"].as_u64(), report["succeeded"].as_u64()), (Some(7), Some(9)));
    let steps =
        report["tests"].as_array().unwrap().iter().map(|test| test["steps"].as_u64().unwrap());
    assert!(steps.min().unwrap() > 3, "{report:#}");
}

/// One test with a driver that goes wrong in this way.
fn with_fault(fault: &str, tests: &str, patience: &str) -> Value {
    let driver = faulty_driver();
    let service = driver.to_str().unwrap();
    let args = ["stress", "--minutes", "1", "--seed", "3", "--json", "--service", service];
    let mut command = burst(&[&args[..], &["--test", tests, "--patience", patience]].concat());
    let output = command.env("BURST_FAULT", fault).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    json(&output)
}

fn a_driver_that_hangs_crashes_or_computes_wrongly_is_told_apart() {
    for (fault, patience, outcome, said) in [
        ("hang", "3", "HANG", "did not get on for 3 s"),
        ("crash", "60", "CRASH", "driver service ended by SIGABRT"),
        ("wrong", "60", "FAILURE", "a wrong answer"),
        ("refuse", "60", "FAILURE", "the model cannot be set up"),
    ] {
        let report = with_fault(fault, "parallel", patience);
        let test = &report["tests"][0];
        assert_eq!(test["outcome"], outcome, "{fault}: {report:#}");
        assert!(test["what"].as_str().unwrap().contains(said), "{fault}: {report:#}");
        assert_eq!(test["repeat"], "burst stress --test parallel --seed 3");
    }
}

fn after_a_crash_the_next_test_runs() {
    let report = with_fault("crash", "parallel,prepare", "60");
    let crashed = |test: &str| (test.to_owned(), "CRASH".to_owned());
    assert_eq!(outcomes(&report), ["parallel", "prepare"].map(crashed), "{report:#}");
}
