//! `burst stress`: the crash tests themselves, short, and that each way to go wrong is noticed, with a driver that
//! goes wrong on purpose.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Process, burst, json, run, signal, wait_until};

burst_testing::tests![
    every_crash_test_succeeds_for_a_moment(),
    a_driver_that_hangs_crashes_or_computes_wrongly_is_told_apart(),
    after_a_crash_the_next_test_runs(),
    a_signal_ends_it_with_the_rows_that_are_there_and_its_processes(),
    a_terminal_that_tells_everybody_makes_no_crash(),
    another_service_is_told_to_stop_and_does(),
    a_service_that_is_not_there_is_told_before_anything_runs(),
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

/// The processes that a process has started and that are there.
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.flat_map(|task| std::fs::read_to_string(task.path().join("children")));
    lists
        .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<u32>>())
        .collect()
}

fn a_signal_ends_it_with_the_rows_that_are_there_and_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    // The first test is over in a moment; the second one begins with processes of its own.
    let args = ["stress", "--minutes", "0.05", "--test", "parallel,prepare", "--seed", "5"];
    let args = [&args[..], &["--patience", "60", "--report", page.to_str().unwrap()]].concat();
    for (flag, name, code) in
        [("-INT", "SIGINT", 130), ("-TERM", "SIGTERM", 143), ("-HUP", "SIGHUP", 129)]
    {
        for is_json in [false, true] {
            let _ = std::fs::remove_file(&page);
            let mut command = burst(&args);
            command.args(is_json.then_some("--json")).stderr(Stdio::piped());
            let mut process = Process::start(command);
            let pid = process.child.id();
            let mut out = String::new();
            if is_json {
                // The service of the second test is another process than that of the first.
                wait_until("the first test", || children(pid).len() > 1);
                let first = children(pid);
                wait_until("the second test", || {
                    let now = children(pid);
                    now.len() > 1 && now.iter().all(|one| !first.contains(one))
                });
            } else {
                out = process.line();
                wait_until("the second test", || !children(pid).is_empty());
            }
            let started = children(pid);
            signal(pid, flag);
            process.out.read_to_string(&mut out).unwrap();
            let mut err = String::new();
            process.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
            assert_eq!(process.child.wait().unwrap().code(), Some(code), "{out} {err}");
            let is_there = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
            assert!(!started.iter().any(is_there), "{started:?} are left");
            assert!(std::fs::read_to_string(&page).unwrap().contains("parallel"));
            if is_json {
                let report: Value = serde_json::from_str(&out).unwrap();
                assert_eq!((&report["interrupted"], &report["seed"]), (&name.into(), &5.into()));
                assert!(report["error"].is_null(), "{report}");
                let outcomes = outcomes(&report);
                assert_eq!(outcomes, [("parallel".to_owned(), "SUCCESS".to_owned())], "{report}");
            } else {
                assert!(out.starts_with("SUCCESS  parallel: "), "{out}");
                assert!(out.ends_with("\n1 of 1 test succeeded; seed 5\n"), "{out}");
                assert_eq!(err, format!("burst: interrupted by {name}\n"));
            }
        }
    }
}

/// As Ctrl-C does: the whole group is told.
fn a_terminal_that_tells_everybody_makes_no_crash() {
    let args = ["stress", "--minutes", "1", "--test", "parallel", "--seed", "5", "--json"];
    let mut command = burst(&args);
    command.process_group(0).stderr(Stdio::piped());
    let mut process = Process::start(command);
    let pid = process.child.id();
    wait_until("workers", || children(pid).len() > 2);
    let group = format!("-{pid}");
    let told = std::process::Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
    assert!(told.success());
    let mut out = String::new();
    process.out.read_to_string(&mut out).unwrap();
    assert_eq!(process.child.wait().unwrap().code(), Some(130), "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["tests"], Value::Array(Vec::new()), "none was over: {report}");
}

/// The signals that `burst stress` keeps from its own processes come through to a service that takes none over.
fn another_service_is_told_to_stop_and_does() {
    let driver = faulty_driver();
    let service = driver.to_str().unwrap();
    let args = ["stress", "--minutes", "0.02", "--seed", "3", "--json", "--service", service];
    let mut command = burst(&[&args[..], &["--test", "parallel", "--patience", "20"]].concat());
    let output = command.env("BURST_FAULT", "nothing").output().unwrap();
    let report = json(&output);
    let what = report["tests"][0]["what"].as_str().unwrap_or_default();
    assert_eq!(what, "driver service ended by SIGTERM when it was told to stop", "{report}");
}

fn a_service_that_is_not_there_is_told_before_anything_runs() {
    let output = run(&["stress", "--service", "/nonexistent/driver", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = json(&output)["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("--service /nonexistent/driver: No such file"), "{error}");
}
