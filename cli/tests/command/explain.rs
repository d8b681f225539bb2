//! What becomes of a model's operators, and the model as a graph.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;

use burst_testing::shared;

use crate::support::{json, run};

burst_testing::tests![
    the_built_in_model_runs_operator_by_operator(),
    a_model_with_a_spectrum_runs_in_two_parts(&shared("models/yamnet_wavin_int8.tflite")?),
    what_runs_nowhere_is_named_and_the_answer_is_no(),
    a_model_is_dumped_as_a_graph(),
    a_model_is_divided_among_devices_and_the_plan_says_why(),
    devices_that_cannot_run_a_model_together_say_which_operation(),
];

fn the_built_in_model_runs_operator_by_operator() {
    let output = run(&["explain", "--json"]);
    assert!(output.status.success());
    let report = json(&output);
    assert_eq!(report["runs"], true);
    let operators = report["operators"].as_array().unwrap();
    assert_eq!(operators.last().unwrap()["outcome"], "SOFTMAX");
    assert!(operators.iter().all(|row| row["accepted"] == true));
    assert!(operators.iter().all(|row| row["runs_in"] == "device"));
    assert!(report["front"].is_null());
}

/// The streams of this model are in `stream_sound.rs`.
fn a_model_with_a_spectrum_runs_in_two_parts(model: &Path) {
    let model = model.to_str().unwrap();
    let output = run(&["explain", model, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let report = json(&output);
    assert_eq!((&report["runs"], &report["refused"]), (&true.into(), &serde_json::Value::Null));
    let operators = report["operators"].as_array().unwrap();
    let named = |name: &str| operators.iter().find(|row| row["operator"] == name).unwrap();
    for name in ["RFFT2D", "COMPLEX_ABS"] {
        assert_eq!(named(name)["runs_in"], "client", "{name}");
        assert_eq!(named(name)["accepted"], false, "{name}");
        assert_eq!(named(name)["outcome"], "the client's spectrum", "{name}");
    }
    assert_eq!(operators.last().unwrap()["runs_in"], "device");
    let in_client = operators.iter().filter(|row| row["runs_in"] == "client").count();
    assert!(in_client < operators.len() / 2, "{in_client} of {}", operators.len());
    assert_eq!(report["front"]["operators"], in_client);
    assert_eq!(report["front"]["spectrum_fft_length"], 512);

    let text = String::from_utf8(run(&["explain", model]).stdout).unwrap();
    assert!(text.contains("runs in two parts") && !text.contains("does not run"), "{text}");
}

fn what_runs_nowhere_is_named_and_the_answer_is_no() {
    // The built-in model with RFFT2D in place of its SOFTMAX, and nothing that it could be of.
    let shapes = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/shapes.tflite");
    let mut bytes = std::fs::read(shapes).unwrap();
    let [softmax, rfft2d] = [25_i32, 131].map(i32::to_le_bytes);
    let code = bytes.windows(4).rposition(|code| code == softmax).unwrap();
    bytes[code..code + 4].copy_from_slice(&rfft2d);
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.tflite");
    std::fs::write(&model, bytes).unwrap();
    let output = run(&["explain", model.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert_eq!(report["runs"], false);
    assert!(report["refused"].as_str().unwrap().contains("RFFT2D"), "{report}");
    let last = report["operators"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["accepted"], &last["runs_in"]), (&false.into(), &serde_json::Value::Null));
    let text = String::from_utf8(run(&["explain", model.to_str().unwrap()]).stdout).unwrap();
    assert!(text.contains("does not run: ") && text.contains("RFFT2D"), "{text}");
}

fn a_model_is_divided_among_devices_and_the_plan_says_why() {
    let devices = "cpu-minimal,cpu-quant,nnapi-reference";
    let output = run(&["explain", "--devices", devices, "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report = json(&output);
    assert_eq!(report["runs"], true);
    let operations = report["operations"].as_array().unwrap();
    let steps = report["steps"].as_array().unwrap();
    let in_steps: usize =
        steps.iter().map(|step| step["operations"].as_array().unwrap().len()).sum();
    assert_eq!(in_steps, operations.len(), "each operation is in one step");
    for operation in operations {
        // Who runs it has the smallest weight of those that have one.
        let weights = operation["weights"].as_array().unwrap();
        let names = report["devices"].as_array().unwrap();
        let best = names.iter().position(|name| *name == operation["device"]).unwrap();
        let least = weights[best].as_f64().unwrap();
        assert!(weights.iter().filter_map(|weight| weight.as_f64()).all(|other| least <= other));
        let step = usize::try_from(operation["step"].as_u64().unwrap()).unwrap();
        assert_eq!(steps[step]["device"], operation["device"]);
    }
    let text = String::from_utf8(run(&["explain", "--devices", devices]).stdout).unwrap();
    assert!(text.contains("nnapi-reference: 1") && text.contains("SOFTMAX"), "{text}");
    let alone = json(&run(&["explain", "--devices", "cpu", "--json"]));
    assert_eq!(alone["steps"].as_array().unwrap().len(), 1);
    let of_energy = ["explain", "--devices", "cpu", "--preference", "low-power", "--json"];
    assert_eq!(json(&run(&of_energy))["runs"], true);
}

fn devices_that_cannot_run_a_model_together_say_which_operation() {
    let output = run(&["explain", "--devices", "cpu-minimal", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert_eq!(report["runs"], false);
    assert!(report["refused"].as_str().unwrap().contains("no device runs operation"), "{report}");
    let text = String::from_utf8(run(&["explain", "--devices", "cpu-minimal"]).stdout).unwrap();
    assert!(text.contains("does not run on cpu-minimal"), "{text}");
    let unknown = run(&["explain", "--devices", "cpu,gpu"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8(unknown.stderr).unwrap().contains("gpu"));
}

fn a_model_is_dumped_as_a_graph() {
    let output = run(&["dump"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("digraph") && text.contains("SOFTMAX"), "{text}");
}
