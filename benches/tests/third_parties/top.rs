//! What looks at a service cost it: that every case is there and is a measurement. How much is not looked at: the
//! machine has other work, and this build is none to measure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::process::{Command, Output};

use serde_json::{Value, json};

burst_testing::tests![
    every_case_of_the_looks_is_there_and_has_finite_numbers(),
    a_share_is_judged_by_its_bound_and_not_without_one(),
];

/// As short as can be.
fn top(args: &[&str]) -> Output {
    let short = ["top", "--rounds", "2", "--looks", "2"];
    Command::new(env!("CARGO_BIN_EXE_benches")).args(short).args(args).output().unwrap()
}

fn every_case_of_the_looks_is_there_and_has_finite_numbers() {
    let bounds = concat!(env!("CARGO_MANIFEST_DIR"), "/top.json");
    let output = top(&["--json", "--check", bounds]);
    // 1: a share is beyond its bound.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (key, want) in [("clients", 3), ("bursts", 8), ("rounds", 2), ("looks", 2)] {
        assert_eq!(report[key], want, "{report}");
    }
    let cases = report["cases"].as_array().unwrap();
    let names: Vec<&str> = cases.iter().map(|case| case["bursts"].as_str().unwrap()).collect();
    assert_eq!(names, ["idle", "running"]);
    for case in cases {
        for figure in ["look_us", "answer_us", "with", "without"] {
            let spread = ["min", "median", "max"].map(|at| case[figure][at].as_f64().unwrap());
            assert!(spread.is_sorted() && spread[2].is_finite(), "{figure} of {case}");
        }
        // A service that answers computes something, and does so on the thread that answers.
        assert!(case["answer_us"]["min"].as_f64() > Some(0.0), "{case}");
        assert!(case["with"]["max"].as_f64() > Some(0.0), "{case}");
        let check = &case["check"];
        assert!(
            check["must"].is_string() && check["ok"].is_boolean(),
            "every bound is used: {case}"
        );
    }
    let has_missed = cases.iter().any(|case| case["check"]["ok"] == false);
    assert_eq!(output.status.code(), Some(i32::from(has_missed)), "{report}");
}

fn a_share_is_judged_by_its_bound_and_not_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bounds.json");
    let name = "share of a core at 10 looks a second, bursts idle";
    // Bounds that hold, or do not, whatever the machine does.
    for (must, code) in [(None, 0), (Some("<= -1000"), 1), (Some("<= 1000"), 0)] {
        let check = ["--check", file.to_str().unwrap()];
        if let Some(must) = must {
            let bound = json!({ name: { "must": must, "reach": "<= -1001" } });
            std::fs::write(&file, bound.to_string()).unwrap();
        }
        let output = top(if must.is_some() { &check } else { &[] });
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.contains("MISSED"), code == 1, "{said}");
        assert_eq!(said.contains("must"), must.is_some(), "{said}");
        assert!(said.contains("3 clients with 8 bursts"), "{said}");
    }
}
