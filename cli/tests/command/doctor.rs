//! `burst doctor` and `burst bench compare`, as their users call them.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::support::{burst, json, run, terminal::Session};

burst_testing::tests![
    a_doctor_says_the_same_in_text_and_in_json_and_fits_a_narrow_terminal(),
    two_runs_are_compared_by_what_the_command_itself_printed(),
];

fn a_doctor_says_the_same_in_text_and_in_json_and_fits_a_narrow_terminal() {
    let output = run(&["doctor", "--json"]);
    let report = json(&output);
    let lacking = report["lacking"].as_u64().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(lacking > 0)), "{report}");
    let checks = report["checks"].as_array().unwrap();
    let of =
        |verdict: &str| checks.iter().filter(|check| check["verdict"] == verdict).count() as u64;
    assert_eq!(of("lacking"), lacking, "{report}");
    assert_eq!(of("worse"), report["worse"].as_u64().unwrap(), "{report}");
    assert_eq!(of("unknown"), report["unknown"].as_u64().unwrap(), "{report}");
    let session = Session::run(burst(&["doctor"]), 60);
    let lines = session.lines();
    for check in checks {
        let name = check["name"].as_str().unwrap().replace('_', " ");
        let begins = |line: &&String| {
            line.get(9..).is_some_and(|rest| rest.starts_with(&format!("{name}: ")))
        };
        assert_eq!(lines.iter().filter(begins).count(), 1, "{name}: {lines:?}");
    }
    for line in &lines {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

/// A file with what a short measurement printed.
fn measured(folder: &Path) -> PathBuf {
    let few = [
        "bench",
        "model",
        "--path",
        "in-process",
        "--threads",
        "1",
        "--rounds",
        "4",
        "--executions",
        "2",
    ];
    let output = run(&[&few[..], &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let file = folder.join("a.json");
    std::fs::write(&file, output.stdout).unwrap();
    file
}

fn compared(a: &Path, b: &Path, more: &[&str]) -> Output {
    let files = [a.to_str().unwrap(), b.to_str().unwrap()];
    run(&[&["bench", "compare"][..], &files, more].concat())
}

fn two_runs_are_compared_by_what_the_command_itself_printed() {
    let folder = tempfile::tempdir().unwrap();
    let a = measured(folder.path());
    // A run beside itself: whatever its rounds were, nothing became slower.
    let same = compared(&a, &a, &["--json"]);
    let report = json(&same);
    assert_eq!((same.status.code(), report["slower"].as_u64()), (Some(0), Some(0)), "{report}");
    assert_eq!(report["rows"].as_array().unwrap().len(), 1, "{report}");
    // Every round twenty times as long, of which no range of four rounds is wide enough to hide it.
    let mut slow: Value = serde_json::from_slice(&std::fs::read(&a).unwrap()).unwrap();
    let rounds = &mut slow["models"][0]["paths"][0]["rounds_p50_us"];
    let longest =
        rounds.as_array().unwrap().iter().map(|us| us.as_f64().unwrap()).fold(0.0, f64::max);
    *rounds = vec![longest * 20.0; 4].into();
    let b = folder.path().join("b.json");
    std::fs::write(&b, slow.to_string()).unwrap();
    let slower = compared(&a, &b, &["--json"]);
    assert_eq!(slower.status.code(), Some(1), "{slower:?}");
    assert_eq!(json(&slower)["rows"][0]["verdict"], "slower");
    for (format, begins) in [("text", "┌"), ("markdown", "| what"), ("csv", "what,")] {
        let said = compared(&a, &b, &["--format", format]);
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.starts_with(begins) && said.contains("slower"), "{said}");
    }
    // Both are its own tools' output; of another kind of run nothing can be said.
    let devices = folder.path().join("devices.json");
    std::fs::write(&devices, run(&["explain", "--json"]).stdout).unwrap();
    let refused = compared(&a, &devices, &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("it is of explain"), "{refused:?}");
}
