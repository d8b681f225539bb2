//! What is said of pictures without being asked for: the best class, by the labels that are known.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;

use burst_testing::shared;

use crate::support::{burst, json, run, terminal::Session};

burst_testing::tests![
    every_picture_is_named_in_a_line_of_its_own(),
    a_video_is_named_in_the_live_line_where_there_is_one(),
    the_object_says_what_changes(),
    labels_that_are_packed_into_a_model_name_its_classes(&shared("")?),
];

/// Two pictures of the synthetic camera, and what they show.
fn pictures(folder: &Path) -> Vec<String> {
    let saved = folder.join("saved");
    let args = ["stream", "--frames", "2", "--top", "1", "--json"];
    let report = json(&run(&[&args[..], &["--save-frames", saved.to_str().unwrap()]].concat()));
    let results = report["results"].as_array().unwrap();
    results.iter().map(|result| result["top"][0]["label"].as_str().unwrap().to_owned()).collect()
}

fn every_picture_is_named_in_a_line_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    let saved = folder.path().join("saved");
    let output = run(&["stream", "--source", saved.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("frame ")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for (number, line) in (1..).zip(lines) {
        let file = format!("frame-{number:06}.png): ");
        assert!(line.starts_with(&format!("frame {number} (")) && line.contains(&file), "{line}");
        let (label, score) = line.rsplit_once(": ").unwrap().1.rsplit_once(' ').unwrap();
        assert!(burst_camera::LABELS.contains(&label), "{line}");
        assert!((0.0..=1.0).contains(&score.parse::<f32>().unwrap()), "{line}");
    }
    let report = json(&run(&["stream", "--source", saved.to_str().unwrap(), "--json"]));
    assert_eq!(report["results"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["results"][1]["frame"], 2, "{report}");
    // In a terminal too: the live line is gone when one would read it.
    let session = Session::run(burst(&["stream", "--source", saved.to_str().unwrap()]), 100);
    let named = session.lines().iter().filter(|line| line.contains("frame-00000")).count();
    assert_eq!(named, 2, "{session:?}");
}

fn a_video_is_named_in_the_live_line_where_there_is_one() {
    let session = Session::run(burst(&["stream", "--frames", "5"]), 100);
    assert!(session.status.success(), "{session:?}");
    let lines = session.lines();
    let named = |line: &&String| {
        burst_camera::LABELS.iter().any(|label| line.contains(&format!("sees {label} (")))
    };
    assert!(lines.iter().any(|line| named(&line)), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("frame ")), "{lines:?}");
    let output = run(&["stream", "--frames", "5"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let named = text.lines().filter(|line| line.starts_with("frame ")).count();
    assert_eq!(named, 5, "no terminal, a line each: {text}");
}

fn the_object_says_what_changes() {
    let all = json(&run(&["stream", "--frames", "40", "--top", "1", "--json"]));
    let all = all["results"].as_array().unwrap().clone();
    let report = json(&run(&["stream", "--frames", "40", "--json"]));
    let said = report["results"].as_array().unwrap();
    let index = |result: &serde_json::Value| result["top"][0]["index"].clone();
    let mut changes = all.clone();
    changes.dedup_by_key(|result| index(result));
    assert_eq!(*said, changes);
    assert!(said.len() < all.len(), "the camera shows a thing for a while");
}

fn labels_that_are_packed_into_a_model_name_its_classes(root: &Path) {
    let model = root.join("models/mobilenet_v2_1.0_224_quant.tflite");
    let picture = root.join("inputs/images/cat.jpg");
    let args =
        ["stream", "--model", model.to_str().unwrap(), "--source", picture.to_str().unwrap()];
    let output = run(&args);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().next().unwrap();
    assert!(line.starts_with("frame 1 (") && line.contains("cat.jpg): "), "{text}");
    let labels = std::fs::read_to_string(root.join("inputs/imagenet_labels.txt")).unwrap();
    let label = line.rsplit_once("): ").unwrap().1.rsplit_once(' ').unwrap().0;
    assert!(labels.lines().any(|known| known == label), "{line}");
    let report = json(&run(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["results"][0]["top"][0]["label"], label, "{report}");
    // A file that is named comes first.
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.txt");
    std::fs::write(&own, "thing\n".repeat(1001)).unwrap();
    let report = json(&run(&[&args[..], &["--json", "--labels", own.to_str().unwrap()]].concat()));
    assert_eq!(report["results"][0]["top"][0]["label"], "thing", "{report}");
}
