//! `burst stress`: the crash tests themselves, short, and that each way to go wrong is noticed, with a driver that
//! goes wrong on purpose.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Process, burst, json, opener, run, signal, wait_until};

burst_testing::tests![
    every_crash_test_succeeds_for_a_moment(),
    a_driver_that_hangs_crashes_or_computes_wrongly_is_told_apart(),
    a_worker_that_a_signal_ends_is_a_crash_of_that_process(),
    a_driver_that_is_always_short_of_something_hangs_and_what_is_waited_for_is_said(),
    a_test_that_shows_nothing_of_what_it_is_about_is_a_failure(),
    a_driver_whose_death_no_client_has_seen_is_a_crash(),
    a_driver_that_dies_by_itself_while_others_are_killed_is_a_crash(),
    after_hang_crash_and_failure_the_next_test_runs_and_has_its_own_outcome(),
    what_is_printed_to_repeat_a_test_repeats_it(),
    the_page_has_every_row(),
    the_page_is_shown_by_what_opens_pages_here_and_outcomes_are_told_where_nothing_does(),
    only_the_devices_that_are_named_are_used(),
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
    for test in report["tests"].as_array().unwrap() {
        assert!(test["steps"].as_u64().unwrap() > 3, "{test:#}");
        assert!(test["process"].is_null() && test["signal"].is_null(), "{test:#}");
        // Each device that the service has answered, rightly.
        let devices = burst_driver::Variant::ALL.map(|variant| format!("on:{}", variant.name));
        assert!(devices.iter().all(|device| count(test, device) > 0), "{test:#}");
    }
    let test = |name: &str| {
        report["tests"].as_array().unwrap().iter().find(|test| test["test"] == name).unwrap()
    };
    for (name, what) in [
        ("prepare", "prepared"),
        ("memory", "refused:models"),
        ("memory", "refused:allocated_bytes"),
        ("memory", "refused:memory_bytes_per_user"),
        ("memory", "refused:pending_executions"),
        ("models", "times_with_48_models"),
        ("driver-killed", "came_back"),
        ("prepare-beside", "prepared"),
        ("mixed", "deadlines_that_ended_loops"),
        ("mixed", "loops_cancelled"),
        ("mixed", "cancelled"),
        ("mixed", "priority_high"),
        ("mixed", "hung_up_midway"),
        ("descriptors", "refused:descriptors_per_user"),
        ("descriptors", "refused:process_descriptors"),
        ("descriptors", "answers_beside_exhaustion"),
    ] {
        assert!(count(test(name), what) > 0, "{name} had none of {what}: {report:#}");
    }
    for name in ["client-killed", "driver-killed"] {
        assert!(test(name)["killed"].as_u64().unwrap() > 0, "{report:#}");
    }
}

/// How often that happened in a test.
fn count(test: &Value, what: &str) -> u64 {
    test["counts"][what].as_u64().unwrap_or(0)
}

/// Tests with a driver that goes wrong in this way; several take turns.
fn with_fault(fault: &str, tests: &str, patience: &str) -> Value {
    with_fault_within("1", fault, tests, patience)
}

/// As [`with_fault`], within so many minutes: what faults leave of them, a test takes in which all goes well.
fn with_fault_within(minutes: &str, fault: &str, tests: &str, patience: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = faulty(minutes, fault, tests, patience)
        .env("BURST_STARTS", folder.path().join("starts"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    json(&output)
}

fn faulty(minutes: &str, fault: &str, tests: &str, patience: &str) -> Command {
    let driver = faulty_driver();
    let service = driver.to_str().unwrap();
    let args = ["stress", "--minutes", minutes, "--seed", "3", "--json", "--service", service];
    let mut command = burst(&[&args[..], &["--test", tests, "--patience", patience]].concat());
    command.env("BURST_FAULT", fault);
    command
}

fn a_driver_that_hangs_crashes_or_computes_wrongly_is_told_apart() {
    let service = "driver service";
    for (fault, patience, outcome, said, process, signal) in [
        ("hang", "3", "HANG", "did not get on for 3 s", "worker ", Value::Null),
        ("crash", "60", "CRASH", "driver service ended by SIGABRT", service, "SIGABRT".into()),
        ("wrong", "60", "FAILURE", "a wrong answer", "worker infer (", Value::Null),
        ("refuse", "60", "FAILURE", "the model cannot be set up", "worker infer (", Value::Null),
    ] {
        let report = with_fault(fault, "parallel", patience);
        let test = &report["tests"][0];
        assert_eq!(test["outcome"], outcome, "{fault}: {report:#}");
        assert!(test["what"].as_str().unwrap().contains(said), "{fault}: {report:#}");
        assert!(test["process"].as_str().unwrap().starts_with(process), "{fault}: {report:#}");
        assert_eq!((&test["signal"], &test["seed"]), (&signal, &3.into()), "{fault}: {report:#}");
        let driver = faulty_driver();
        let all = format!("--minutes 1 --patience {patience} --service {}", driver.display());
        assert_eq!(test["repeat"], format!("burst stress --test parallel --seed 3 {all}"));
    }
}

fn a_worker_that_a_signal_ends_is_a_crash_of_that_process() {
    let report = with_fault("client", "parallel", "60");
    let test = &report["tests"][0];
    assert_eq!((&test["outcome"], &test["signal"]), (&"CRASH".into(), &"SIGILL".into()), "{test}");
    let process = test["process"].as_str().unwrap();
    assert!(process.starts_with("worker infer ("), "{test:#}");
    assert_eq!(test["what"], format!("{process} ended by SIGILL"));
}

fn a_driver_that_is_always_short_of_something_hangs_and_what_is_waited_for_is_said() {
    let report = with_fault("short", "prepare", "15");
    let test = &report["tests"][0];
    assert_eq!(test["outcome"], "HANG", "{test:#}");
    let what = test["what"].as_str().unwrap();
    let said = " did not get on for 15 s; it waits: RESOURCE_EXHAUSTED_TRANSIENT: ";
    assert!(what.starts_with("worker prepare (") && what.contains(said), "{what}");
}

fn a_test_that_shows_nothing_of_what_it_is_about_is_a_failure() {
    let driver = faulty_driver();
    let args = ["stress", "--minutes", "0.02", "--patience", "20", "--test", "mixed", "--json"];
    let mut command = burst(&[&args[..], &["--service", driver.to_str().unwrap()]].concat());
    let report = json(&command.env("BURST_FAULT", "late").output().unwrap());
    let test = &report["tests"][0];
    assert_eq!(test["outcome"], "FAILURE", "{test:#}");
    assert_eq!(test["what"], "within 21 s there was none of: deadlines_kept", "{test:#}");
    assert!(test["process"].is_null(), "{test:#}");
}

/// It dies after it has answered, and another process goes on in its place, so that every client is answered as if
/// nothing had been.
fn a_driver_whose_death_no_client_has_seen_is_a_crash() {
    let report = with_fault("unseen", "parallel", "60");
    let test = &report["tests"][0];
    assert_eq!(test["what"], "driver service ended by SIGKILL", "{test:#}");
    assert_eq!((&test["outcome"], &test["signal"]), (&"CRASH".into(), &"SIGKILL".into()), "{test}");
}

/// Clients that bear the death of the driver do not hide one that nobody brought about.
fn a_driver_that_dies_by_itself_while_others_are_killed_is_a_crash() {
    let report = with_fault("crash", "driver-killed", "60");
    let test = &report["tests"][0];
    assert_eq!(test["what"], "driver service ended by SIGABRT", "{test:#}");
    assert_eq!(test["outcome"], "CRASH", "{test:#}");
}

fn after_hang_crash_and_failure_the_next_test_runs_and_has_its_own_outcome() {
    let tests = ["parallel", "prepare", "prepare-beside", "models"];
    let report = with_fault_within("0.6", "hang,crash,wrong,good", &tests.join(","), "15");
    let seen = ["HANG", "CRASH", "FAILURE", "SUCCESS"];
    let want: Vec<(String, String)> =
        tests.iter().zip(seen).map(|(test, word)| ((*test).into(), word.into())).collect();
    assert_eq!(outcomes(&report), want, "{report:#}");
    assert_eq!(report["succeeded"], 1);
}

/// Copied into a shell as it stands.
fn what_is_printed_to_repeat_a_test_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("a driver");
    std::fs::copy(faulty_driver(), &driver).unwrap();
    let service = driver.to_str().unwrap();
    let args = ["stress", "--minutes", "0.75", "--seed", "11", "--patience", "70"];
    let args = [&args[..], &["--test", "prepare,parallel", "--device", "cpu"]].concat();
    let text = |mut command: Command| {
        let output = command.env("BURST_FAULT", "wrong").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let printed = text(burst(&[&args[..], &["--service", service]].concat()));
    let lines: Vec<&str> =
        printed.lines().filter_map(|line| line.trim().strip_prefix("repeat: ")).collect();
    assert_eq!(lines.len(), 2, "{printed}");
    for (line, test) in lines.iter().zip(["prepare", "parallel"]) {
        let bin = std::path::Path::new(env!("CARGO_BIN_EXE_burst")).parent().unwrap();
        let path = std::env::join_paths(
            [bin.to_owned()]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env("PATH", path.unwrap());
        let again = text(shell);
        assert!(again.starts_with(&format!("FAILURE  {test}: ")), "{again}");
        assert!(again.contains("a wrong answer"), "{again}");
        let repeats: Vec<&str> =
            again.lines().filter_map(|line| line.trim().strip_prefix("repeat: ")).collect();
        assert_eq!(repeats, [*line], "it has all that it was given");
    }
}

fn the_page_has_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let mut command = faulty("0.4", "crash,good", "parallel,prepare", "60");
    command.args(["--report", page.to_str().unwrap()]);
    let output = command.env("BURST_STARTS", folder.path().join("starts")).output().unwrap();
    let (report, page) = (json(&output), std::fs::read_to_string(page).unwrap());
    assert_eq!(report["tests"].as_array().unwrap().len(), 2, "{report:#}");
    for said in ["parallel", "prepare", "CRASH", "SUCCESS", "driver service", "SIGABRT"] {
        assert!(page.contains(said), "{said} is not on the page");
    }
    for test in report["tests"].as_array().unwrap() {
        assert!(page.contains(test["repeat"].as_str().unwrap()), "{test:#}");
    }
    let answers = count(&report["tests"][1], "answers");
    assert!(answers > 0 && page.contains(&format!("{answers} answers")), "{report:#}");
}

fn the_page_is_shown_by_what_opens_pages_here_and_outcomes_are_told_where_nothing_does() {
    let base = ["stress", "--minutes", "0.001", "--patience", "60", "--seed", "7", "--json"];
    let short = ["--test", "parallel", "--device", "cpu"];
    for (status, said) in
        [(Some(0), None), (Some(3), Some("--open: xdg-open")), (None, Some("--open: cannot start"))]
    {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.html");
        let noted = status.map(|status| opener(folder.path(), status));
        let shown = ["--report", page.to_str().unwrap(), "--open"];
        let mut command = burst(&[&base[..], &short, &shown].concat());
        let output = command.env("PATH", folder.path()).output().unwrap();
        let report = json(&output);
        assert_eq!(output.status.code(), Some(if said.is_some() { 2 } else { 0 }), "{report:#}");
        assert_eq!(report["tests"][0]["outcome"], "SUCCESS", "{report:#}");
        match said {
            Some(said) => assert!(report["error"].as_str().unwrap().contains(said), "{report:#}"),
            None => assert!(report["error"].is_null(), "{report:#}"),
        }
        if let Some(noted) = noted {
            let opened = std::fs::read_to_string(noted).unwrap();
            assert_eq!(PathBuf::from(opened), page, "it was there, and was the one to open");
        }
        assert!(std::fs::read_to_string(page).unwrap().contains("parallel"));
    }
    let said = run(&["stress", "--open"]);
    assert_eq!(said.status.code(), Some(2), "a page that is not written cannot be opened");
}

fn only_the_devices_that_are_named_are_used() {
    let args = ["stress", "--minutes", "0.01", "--patience", "60", "--seed", "7", "--json"];
    let output = run(&[&args[..], &["--test", "parallel", "--device", "cpu-quant,cpu"]].concat());
    let report = json(&output);
    assert!(output.status.success(), "{report:#}");
    let test = &report["tests"][0];
    let used: Vec<&String> =
        test["counts"].as_object().unwrap().keys().filter(|name| name.starts_with("on:")).collect();
    assert_eq!(used, ["on:cpu", "on:cpu-quant"], "{test:#}");
    assert!(test["repeat"].as_str().unwrap().ends_with(" --device cpu-quant,cpu"), "{test:#}");
    let mut command = faulty("1", "good", "parallel", "60");
    let report = json(&command.args(["--device", "cpu,cpu-quant"]).output().unwrap());
    let what = report["tests"][0]["what"].as_str().unwrap_or_default();
    assert!(what.ends_with("the service has no device cpu-quant"), "{report:#}");
    let output = run(&["stress", "--device", "gpu", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = json(&output)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("there is no device gpu"), "{error}");
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
    let told = Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
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
