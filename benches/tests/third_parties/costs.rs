//! What features cost: that every row is there and is a measurement. How much is not looked at: the machine has
//! other work, and this build is none to measure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::process::{Command, Output};

use serde_json::Value;

burst_testing::tests![
    every_row_of_the_costs_is_there_and_has_finite_numbers(),
    a_model_that_is_none_is_named_in_one_line(),
];

const MODEL: &str = "built-in shapes";
const PAIRS: u64 = 4;
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
    let output = costs(&["--pairs", &PAIRS.to_string(), "--json"]);
    // 1: a cost is more than is wanted.
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
    let wanted = rows.iter().filter(|row| row["wanted"].is_number()).count();
    assert_eq!(wanted, 3, "timing, checkpoints and run tokens");
    let tokens = rows.iter().filter(|row| row["note"] == "over a burst that carries tokens");
    assert_eq!(tokens.count(), 2, "{rows:?}");
    assert_eq!(report["left_out"].as_array().map(Vec::len), Some(0), "{report}");
    assert!(report["machine"]["cpus"].as_u64() > Some(0));
}

fn a_model_that_is_none_is_named_in_one_line() {
    let output = costs(&["--models", "/nonexistent/model.tflite"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/nonexistent/model.tflite"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
