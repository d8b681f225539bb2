//! Benchmarks of our own that no third party stands beside: every row is there and is a measurement. How much is
//! not looked at: the machine has other work, and this build is none to measure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::process::{Command, Output};

use serde_json::Value;

burst_testing::tests![
    models_are_prepared_in_full_and_from_files_in_process_and_through_a_service(),
    bounds_for_compilations_in_files_are_those_of_this_repository(),
    an_urgent_model_is_measured_alone_and_beside_others(),
];

/// The model of this repository.
const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models");
const BOUNDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cache.json");

fn benches(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_benches")).args(args).output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn positive(value: &Value) -> f64 {
    let number = value.as_f64().unwrap_or_else(|| panic!("no number: {value}"));
    assert!(number.is_finite() && number > 0.0, "{value}");
    number
}

fn models_are_prepared_in_full_and_from_files_in_process_and_through_a_service() {
    let output = benches(&["cache", "--models", MODELS, "--rounds", "3", "--json"]);
    assert_eq!(output.status.code(), Some(0), "nothing is judged: {output:?}");
    let report = report(&output);
    let rows = report["rows"].as_array().unwrap();
    let places: Vec<&str> = rows.iter().map(|row| row["place"].as_str().unwrap()).collect();
    assert_eq!(places, ["in process", "service"], "{report}");
    for row in rows {
        for field in ["full_ns", "from_cache_ns", "import_ns", "model_bytes", "data_bytes"] {
            positive(&row[field]);
        }
        positive(&row["ratio"]["median"]);
        positive(&row["start_ratio"]["median"]);
        assert_eq!(row["same_bits"], true, "{row}");
    }
    let checks = report["checks"].as_array().unwrap();
    let [service, largest, start] = checks.as_slice() else { panic!("{report}") };
    for (check, ratio) in [
        (service, &rows[1]["ratio"]),
        (largest, &rows[1]["ratio"]),
        (start, &rows[0]["start_ratio"]),
    ] {
        assert_eq!(check["value"], ratio["median"], "of one model: {check}");
        assert!(check["must"].is_null() && check["ok"].is_null(), "{check}");
    }
}

fn bounds_for_compilations_in_files_are_those_of_this_repository() {
    let args = ["cache", "--models", MODELS, "--rounds", "1", "--check", BOUNDS, "--json"];
    let output = benches(&args);
    let report = report(&output);
    let verdicts = report["checks"].as_array().unwrap().iter();
    let verdicts: Vec<bool> = verdicts.map(|check| check["ok"].as_bool().unwrap()).collect();
    assert_eq!(verdicts.len(), 3);
    let expected = i32::from(verdicts.contains(&false));
    assert_eq!(output.status.code(), Some(expected), "what is judged is the status: {report}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bounds.json");
    std::fs::write(
        &file,
        r#"{"the same of the three largest models": {"must": "<= 0", "reach": "<= 0"}}"#,
    )
    .unwrap();
    let args = ["cache", "--models", MODELS, "--rounds", "1", "--check", file.to_str().unwrap()];
    let output = benches(&args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("<= 0") && text.contains("MISSED"), "{text}");
}

fn an_urgent_model_is_measured_alone_and_beside_others() {
    let output = benches(&["priorities", "--frames", "5", "--rounds", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = report(&output);
    positive(&report["longest_gap_us"]);
    assert_eq!(report["frames"], 5);
    let cases = report["cases"].as_array().unwrap();
    let beside: Vec<&str> = cases.iter().map(|case| case["beside"].as_str().unwrap()).collect();
    assert_eq!(beside, ["nobody", "less-urgent", "equally-urgent"], "{report}");
    for case in cases {
        let [p50, p99] = ["p50_us", "p99_us"].map(|field| positive(&case[field]["median"]));
        assert!(p50 <= p99, "{case}");
    }
    assert_eq!(cases[0]["neighbours_rate"]["max"], 0.0, "alone: {report}");
}
