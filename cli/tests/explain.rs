//! What becomes of a model's operators, and the model as a graph.

#![allow(clippy::unwrap_used, reason = "a test panics")]

mod support;
use support::{json, run, shared};

#[test]
fn the_built_in_model_runs_operator_by_operator() {
    let output = run(&["explain", "--json"]);
    assert!(output.status.success());
    let report = json(&output);
    assert_eq!(report["runs"], true);
    let operators = report["operators"].as_array().unwrap();
    assert_eq!(operators.last().unwrap()["outcome"], "SOFTMAX");
    assert!(operators.iter().all(|row| row["accepted"] == true));
}

#[test]
fn what_has_no_form_is_named_and_the_answer_is_no() {
    let test = "what_has_no_form_is_named_and_the_answer_is_no";
    let Some(model) = shared(test, "models/yamnet_wavin_int8.tflite") else { return };
    let output = run(&["explain", model.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("RFFT2D") && text.contains("does not run"), "{text}");
}

#[test]
fn a_model_is_dumped_as_a_graph() {
    let output = run(&["dump"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("digraph") && text.contains("SOFTMAX"), "{text}");
}
