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

fn a_model_is_dumped_as_a_graph() {
    let output = run(&["dump"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("digraph") && text.contains("SOFTMAX"), "{text}");
}
