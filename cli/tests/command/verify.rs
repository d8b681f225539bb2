//! `burst verify`: vectors of the test's own over a driver process, and a part of the shared ones.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::io::Write;
use std::path::Path;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use burst_testing::shared;

use crate::support::{Service, json as parse, run};

burst_testing::tests![
    right_vectors_pass_in_every_mode_and_everything_is_counted(),
    a_wrong_value_is_named_with_its_place_and_ends_with_status_1(),
    a_running_service_can_be_verified(),
    what_cannot_be_run_ends_with_status_2_and_one_sentence(),
    a_tenth_of_the_vectors_holds_over_a_service_in_every_mode(&shared("vts")?),
];

/// A test of RELU on four values, of which `expected` should come out.
fn relu_test(name: &str, suites: &[&str], expected: &[f32; 4]) -> (Value, Vec<u8>) {
    let blob: Vec<u8> =
        [-1.5f32, 0.0, 2.0, 3.5].iter().chain(expected).flat_map(|v| v.to_ne_bytes()).collect();
    let operand = |lifetime: &str, consumers: u32, offset: usize| {
        json!({
            "type": "TENSOR_FLOAT32", "dims": [2, 2], "lifetime": lifetime,
            "consumers": consumers, "data": [offset, 16],
        })
    };
    let test = json!({
        "name": name, "relaxed": false, "expect_failure": false, "multinomial_tolerance": 0.0,
        "main": {
            "operands": [operand("SUBGRAPH_INPUT", 1, 0), operand("SUBGRAPH_OUTPUT", 0, 16)],
            "operations": [{ "type": "RELU", "inputs": [0], "outputs": [1] }],
            "inputs": [0],
            "outputs": [1],
        },
        "referenced": [],
        "vts": suites,
    });
    (test, blob)
}

const SUITES: [&str; 3] = ["GENERAL", "DYNAMIC_SHAPE", "VALIDATION"];
const RIGHT: [f32; 4] = [0.0, 0.0, 2.0, 3.5];
const WRONG: [f32; 4] = [0.0, 0.0, 2.0, 4.5];

/// A spec of this name with a test that passes.
pub(crate) fn write_right(folder: &Path, name: &str) {
    write_spec(folder, name, relu_test("relu", &SUITES, &RIGHT));
}

fn write_spec(folder: &Path, name: &str, (test, blob): (Value, Vec<u8>)) {
    let folder = folder.join("V1_0");
    std::fs::create_dir_all(&folder).unwrap();
    let pack = |ending: &str, bytes: &[u8]| {
        let file = std::fs::File::create(folder.join(format!("{name}.{ending}.gz"))).unwrap();
        let mut packed = GzEncoder::new(file, Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap();
    };
    pack("json", json!({ "tests": [test] }).to_string().as_bytes());
    pack("bin", &blob);
}

fn right_vectors_pass_in_every_mode_and_everything_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "relu", relu_test("relu", &SUITES, &RIGHT));
    write_spec(folder.path(), "other", relu_test("other", &[], &RIGHT));
    let path = folder.path().to_str().unwrap();
    let output = run(&["verify", path, "--mode", "sync,burst", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = parse(&output);
    let counts = ["tests", "executions", "passed", "failed", "skipped"].map(|key| &report[key]);
    assert_eq!(counts, [2, 4 + 8 + 3 + 4 + 4, 2, 0, 0].map(|count| json!(count)).each_ref());
    let cell =
        |count: u64| json!({ "passed": 1, "failed": 0, "executions": count, "left_out": {} });
    let suites = &report["per_suite"];
    let general = json!({ "burst": cell(2), "sync": cell(2), "model": null });
    assert_eq!(suites["GENERAL"], json!({ "tests": 1, "modes": general }));
    assert_eq!(suites["CTS_ONLY"], suites["GENERAL"]);
    let deadline = json!({ "burst": null, "sync": cell(3), "model": cell(5) });
    assert_eq!(suites["DEADLINE"], json!({ "tests": 1, "modes": deadline }));
    assert_eq!(suites["DYNAMIC_SHAPE"]["modes"]["sync"], cell(4));
    assert_eq!(
        suites["FENCED_COMPUTE"]["modes"],
        json!({ "burst": null, "sync": null, "model": null })
    );
    let model = suites["VALIDATION"]["modes"]["model"]["executions"].as_u64().unwrap();
    assert!(model > 50, "broken models: {model}");
    assert_eq!(report["per_op"], json!({ "RELU": { "passed": 2, "failed": 0, "skipped": 0 } }));
    assert_eq!((&report["failures"], &report["left_out"]), (&json!([]), &json!({})));
    let text = run(&["verify", path, "--mode", "burst", "--op", "relu"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("2 tests: 2 passed, 0 failed, 0 skipped; 10 executions"), "{text}");
    let dashed = text.lines().find(|line| line.contains("FENCED_COMPUTE")).unwrap();
    assert_eq!(dashed.matches('-').count(), 2, "neither burst nor model: {dashed}");
}

fn a_wrong_value_is_named_with_its_place_and_ends_with_status_1() {
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "relu", relu_test("relu", &["GENERAL"], &WRONG));
    write_spec(folder.path(), "right", relu_test("right", &["GENERAL"], &RIGHT));
    let path = folder.path().to_str().unwrap();
    let output = run(&["verify", path, "--mode", "burst", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = parse(&output);
    assert_eq!((&report["passed"], &report["failed"]), (&json!(1), &json!(1)));
    assert_eq!(report["per_op"]["RELU"], json!({ "passed": 1, "failed": 1, "skipped": 0 }));
    let [failure] = report["failures"].as_array().unwrap().as_slice() else {
        panic!("one failure: {report}")
    };
    let what = failure["what"].as_str().unwrap();
    assert!(
        what.starts_with("output 0, element 3: got 3.5, expected 4.5, may differ by "),
        "{what}"
    );
    let rest = json!({ "test": "relu", "suite": "GENERAL", "mode": "burst", "what": what });
    assert_eq!(failure, &rest);
    let text = run(&["verify", path, "--mode", "burst"]);
    assert_eq!(text.status.code(), Some(1));
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("relu (GENERAL, burst): output 0, element 3"), "{text}");
}

fn a_running_service_can_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "relu", relu_test("relu", &SUITES, &RIGHT));
    let service = Service::start();
    let path = folder.path().to_str().unwrap();
    let output = run(&["verify", path, "--socket", service.path(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(parse(&output)["executions"], 6 + 6 + 16 + 10, "in all four ways");
    let output = run(&["verify", path, "--socket", service.path(), "--device", "none", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(parse(&output)["error"].as_str().unwrap().contains("none"), "{output:?}");
}

fn what_cannot_be_run_ends_with_status_2_and_one_sentence() {
    let empty = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "relu", relu_test("relu", &["GENERAL"], &RIGHT));
    let (empty, full) = (empty.path().to_str().unwrap(), folder.path().to_str().unwrap());
    for (args, part) in [
        (&["verify", "/nonexistent/vts"][..], "/nonexistent/vts"),
        (&["verify", empty], "no vector files"),
        (&["verify", full, "--op", "NOTHING"], "NOTHING"),
        (&["verify", full, "--op", "ADD"], "no test belongs"),
        (&["verify", full, "--suite", "NOTHING"], "NOTHING"),
        (&["verify", full, "--socket", "/nonexistent/burst.sock"], "/nonexistent/burst.sock"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "one sentence: {said}");
        assert!(said.contains(part), "{args:?}: no {part:?} in: {said}");
        let with_json: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let output = run(&with_json);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(parse(&output)["error"].as_str().unwrap().contains(part));
    }
}

/// In this process all of them are run: `tests/tests/driver/conformance.rs`.
fn a_tenth_of_the_vectors_holds_over_a_service_in_every_mode(vectors: &Path) {
    let path = vectors.to_str().unwrap();
    let output = run(&["verify", path, "--mode", "all", "--one-in", "10", "--json"]);
    let report = parse(&output);
    println!("{} tests, {} executions", report["tests"], report["executions"]);
    for failure in report["failures"].as_array().unwrap().iter().take(20) {
        println!("{failure}");
    }
    for (op, tally) in report["per_op"].as_object().unwrap() {
        if tally["failed"] != 0 || tally["skipped"] != 0 {
            println!("{op}: {tally}");
        }
    }
    assert!(report["tests"].as_u64().unwrap() > 700, "a tenth of 7712: {}", report["tests"]);
    assert_eq!((&report["failed"], &report["skipped"]), (&json!(0), &json!(0)));
    assert_eq!(output.status.code(), Some(0));
}
