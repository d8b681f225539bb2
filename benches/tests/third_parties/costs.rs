//! What features cost: that every row is there and is a measurement. How much is not looked at: the machine has
//! other work, and this build is none to measure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::process::{Command, Output};

use serde_json::{Value, json};

burst_testing::tests![
    every_row_of_the_costs_is_there_and_has_finite_numbers(),
    nothing_is_judged_that_is_not_held_to_a_bound(),
    a_model_or_a_file_of_bounds_that_is_none_is_named_in_one_line(),
];

const MODEL: &str = "built-in shapes";
const PAIRS: u64 = 4;
const BOUNDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/costs.json");
const CHAIN: &str = "a chain of three fenced";

/// The rows of each model: the first side, and what it is beside.
const ROWS: [(&str, &str); 11] = [
    ("cancel word, deadline, turn", "none of them"),
    ("execution with a run token", "without"),
    ("a run token taken and given back", "a look at the clock"),
    ("timing measured", "not measured"),
    ("sync", "burst"),
    ("async", "burst"),
    ("fenced", "burst"),
    (CHAIN, "three fenced, each waited for"),
    (CHAIN, "three over a burst"),
    ("first input in a buffer of the driver", "in a pool"),
    ("first output in a buffer of the driver", "in a pool"),
];

/// The first sides of the rows of a device that computes nothing.
const WAYS: [&str; 3] =
    ["a Burst of the driver", "a BurstExecutor of the driver", "a context of the driver"];

fn costs(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_benches")).arg("costs").args(args).output().unwrap()
}

fn every_row_of_the_costs_is_there_and_has_finite_numbers() {
    let output = costs(&["--pairs", &PAIRS.to_string(), "--json", "--check", BOUNDS]);
    // 1: a ratio is beyond its bound.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let find = |model: &str, (first, second): (&str, &str)| {
        let is_it = |row: &&Value| {
            row["model"] == model && row["first"] == first && row["second"] == second
        };
        rows.iter().find(is_it).unwrap_or_else(|| panic!("no row {model}: {first} : {second}"))
    };
    let plain = "execute_synchronously behind PlainBurst";
    let of_model = ROWS.map(|sides| find(MODEL, sides));
    let of_ways = WAYS.map(|way| find("computes nothing", (way, plain)));
    assert_eq!(rows.len(), of_model.len() + of_ways.len(), "rows that nobody expects: {rows:?}");
    for row in rows {
        let number = |value: &Value| {
            let number = value.as_f64().unwrap_or_else(|| panic!("no number in {row}"));
            assert!(number.is_finite() && number > 0.0, "{row}");
            number
        };
        let [low, median, high] = ["low", "median", "high"].map(|name| number(&row["ratio"][name]));
        assert!(low <= median && median <= high, "{row}");
        let _ = ["first_ns", "second_ns", "executions"].map(|name| number(&row[name]));
        let pairs = row["pairs"].as_u64().unwrap();
        assert!((2..=PAIRS).contains(&pairs), "{row}");
        assert!(row["note"].as_str().is_some_and(|note| !note.is_empty()), "{row}");
    }
    let held: Vec<&Value> =
        rows.iter().map(|row| &row["check"]).filter(|check| check["must"].is_string()).collect();
    assert_eq!(held.len(), 3, "timing, checkpoints and run tokens");
    let has_missed = held.iter().any(|check| check["ok"] == false);
    assert!(held.iter().all(|check| check["ok"].is_boolean()), "{held:?}");
    assert_eq!(output.status.code(), Some(i32::from(has_missed)), "{held:?}");
    let tokens = rows.iter().filter(|row| row["note"] == "over a burst that carries tokens");
    assert_eq!(tokens.count(), 2, "{rows:?}");
    assert_eq!(report["left_out"].as_array().map(Vec::len), Some(0), "{report}");
    assert!(report["machine"]["cpus"].as_u64() > Some(0));
}

/// Costs that hold whatever the machine does: nothing takes no time, and not for ever.
fn nothing_is_judged_that_is_not_held_to_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bounds.json");
    let name = "timing measured : not measured";
    for (must, code, verdict) in [
        (None, 0, None),
        (Some("<= 0.000001"), 1, Some("MISSED")),
        (Some("<= 1000000"), 0, Some("ok")),
    ] {
        let mut args = vec!["--pairs", "2"];
        if let Some(must) = must {
            // What is reached is below 0.
            let bound = json!({ name: { "must": must, "reach": "<= -1" } });
            std::fs::write(&file, bound.to_string()).unwrap();
            args.extend(["--check", file.to_str().unwrap()]);
        }
        let output = costs(&args);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        for (part, is_there) in [
            ("MISSED", verdict == Some("MISSED")),
            ("must", must.is_some()),
            (verdict.unwrap_or("ratio"), true),
            (must.unwrap_or("ratio"), true),
        ] {
            assert_eq!(said.contains(part), is_there, "{part} in {said}");
        }
    }
}

fn a_model_or_a_file_of_bounds_that_is_none_is_named_in_one_line() {
    for option in ["--models", "--check"] {
        let output = costs(&[option, "/nonexistent/file"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("/nonexistent/file"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
