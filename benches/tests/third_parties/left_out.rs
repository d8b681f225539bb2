//! Built without third parties the program says so: which are left out, and how to get them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::process::{Command, Output};

use benches::THIRD_PARTIES;

burst_testing::tests![
    a_run_over_all_peers_names_those_it_was_built_without(),
    a_peer_that_is_not_built_in_is_an_error_that_says_how_to_get_it(),
    a_run_of_our_own_peers_alone_does_not_report_others(),
];

/// The fewest round trips that still are a measurement.
const SHORT: &[&str] = &["--quick", "--rounds", "1", "--sizes", "64", "--no-frames", "--json"];
/// Where two processes always have room.
const ANYWHERE: &[&str] = &["--wait", "sleep", "--placement", "unpinned"];

fn transport(args: &[&str]) -> Output {
    let arguments = [SHORT, ANYWHERE, args].concat();
    Command::new(env!("CARGO_BIN_EXE_benches")).arg("transport").args(arguments).output().unwrap()
}

fn a_run_over_all_peers_names_those_it_was_built_without() {
    let output = transport(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    for part in THIRD_PARTIES.into_iter().chain(["left out", "-p benches --features peers"]) {
        assert!(said.contains(part), "no {part:?} in: {said}");
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["rows"].is_array(), "the report itself is not disturbed");
}

fn a_peer_that_is_not_built_in_is_an_error_that_says_how_to_get_it() {
    for name in THIRD_PARTIES {
        let output = transport(&["--peers", name]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "one sentence: {said}");
        let command = format!("--features peers -- transport --peers {name}");
        for part in [name, "built without", &command] {
            assert!(said.contains(part), "no {part:?} in: {said}");
        }
    }
}

fn a_run_of_our_own_peers_alone_does_not_report_others() {
    let output = transport(&["--peers", "ours"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("left out"), "{said}");
}
