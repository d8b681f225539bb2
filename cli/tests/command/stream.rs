//! The main job: frames through a driver in another process.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::Path;

use serde_json::Value;

use burst_testing::shared;

use crate::support::{self, Service, json, run};

burst_testing::tests![
    the_first_command_classifies_the_synthetic_camera_in_another_process(),
    the_text_says_what_the_json_says(),
    every_path_and_wait_gives_the_same_answers(),
    a_model_that_is_divided_among_devices_gives_the_same_answers(),
    a_real_model_is_divided_into_many_steps(&shared("models/mobilenet_v1_0.25_224_float.tflite")?),
    a_schedule_counts_late_and_dropped_frames(),
    raw_frames_and_video_come_from_files_and_standard_input(),
    pictures_of_a_folder_are_streamed_by_name(),
    real_models_name_a_real_cat_as_their_goldens_do(&shared("")?),
];

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {value}"))
}

fn the_first_command_classifies_the_synthetic_camera_in_another_process() {
    let output = run(&["--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    assert!(number(&report, "frames") >= 300.0);
    assert_eq!(report["errors"], 0);
    assert_eq!(report["path"], "burst");
    assert_eq!(report["wait"], "adaptive");
    assert_eq!(report["source"], "demo");
    assert_ne!(report["client_pid"], report["driver_pid"]);
    assert!(number(&report["accuracy"], "percent") >= 97.0, "{report}");
    assert!(number(&report, "throughput_fps") > 0.0);
    for distribution in ["latency_us", "driver_us", "transport_us"] {
        let quantiles = &report[distribution];
        let ascending = ["p50", "p90", "p99", "p999", "max"].map(|key| number(quantiles, key));
        assert!(ascending.is_sorted(), "{distribution}: {quantiles}");
        assert!(ascending[0] > 0.0, "{distribution}: {quantiles}");
    }
}

fn the_text_says_what_the_json_says() {
    let output = run(&["stream", "--frames", "20"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["latency", "in the driver", "transport", "20 frames", "accuracy", "driver process"]
    {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

fn every_path_and_wait_gives_the_same_answers() {
    let service = Service::start();
    let mut answers: Vec<(Vec<&str>, Value)> = Vec::new();
    for extra in [
        vec!["--path", "burst", "--wait", "adaptive"],
        vec!["--path", "burst", "--wait", "sleep"],
        vec!["--path", "burst", "--wait", "spin"],
        vec!["--path", "sync"],
        vec!["--path", "async"],
        vec!["--path", "fenced"],
        vec!["--path", "in-process"],
        vec!["--socket", service.path()],
        vec!["--socket", service.path(), "--path", "sync"],
        vec!["--socket", service.path(), "--path", "async"],
        vec!["--socket", service.path(), "--path", "fenced"],
    ] {
        let mut args = vec!["stream", "--frames", "15", "--top", "3", "--json"];
        args.extend(&extra);
        let output = run(&args);
        assert!(output.status.success(), "{extra:?}: {}", String::from_utf8_lossy(&output.stdout));
        answers.push((extra, json(&output)["results"].clone()));
    }
    assert_eq!(answers[0].1.as_array().map(Vec::len), Some(15));
    for (extra, results) in &answers[1..] {
        assert_eq!(*results, answers[0].1, "{extra:?}");
    }
}

/// The built-in model is of bytes, and its kernels give the reference's bits.
fn a_model_that_is_divided_among_devices_gives_the_same_answers() {
    let answers = |extra: &[&str]| {
        let mut args = vec!["stream", "--frames", "15", "--top", "3", "--json"];
        args.extend(extra);
        let output = run(&args);
        assert!(output.status.success(), "{extra:?}: {}", String::from_utf8_lossy(&output.stdout));
        json(&output)
    };
    let whole = answers(&["--path", "in-process"]);
    for devices in ["cpu-quant,nnapi-reference", "cpu-small-kernels", "nnapi-reference"] {
        let divided = answers(&["--devices", devices]);
        assert_eq!(divided["results"], whole["results"], "{devices}");
        assert_eq!((&divided["path"], &divided["errors"]), (&"framework".into(), &0.into()));
    }
    let nobody = run(&["stream", "--devices", "cpu-minimal", "--frames", "1"]);
    assert_eq!(nobody.status.code(), Some(2));
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert!(said.contains("no device runs operation"), "{said}");
    let both = run(&["stream", "--devices", "cpu", "--path", "sync"]);
    assert_eq!(both.status.code(), Some(2));
}

/// Convolutions on one device, all else on another of the same engine: the same kernels, step by step.
fn a_real_model_is_divided_into_many_steps(model: &Path) {
    let model = model.to_str().unwrap();
    let devices = "cpu-minimal,cpu-float-fast,nnapi-reference";
    let plan = json(&run(&["explain", "--devices", devices, "--json", model]));
    assert!(plan["steps"].as_array().unwrap().len() > 10, "{plan}");
    let results = |extra: [&str; 2]| {
        let args = ["stream", "--model", model, "--frames", "3", "--top", "3", "--json"];
        let output = run(&[&args[..], &extra].concat());
        assert!(output.status.success(), "{extra:?}: {}", String::from_utf8_lossy(&output.stdout));
        json(&output)["results"].clone()
    };
    assert_eq!(results(["--devices", devices]), results(["--path", "in-process"]));
}

fn a_schedule_counts_late_and_dropped_frames() {
    let report = json(&run(&["stream", "--frames", "10", "--fps", "1000000", "--json"]));
    let (frames, dropped) = (number(&report, "frames"), number(&report, "dropped"));
    assert_eq!(frames + dropped, 10.0, "{report}");
    // All ten are due within 10 us, and no driver answers the first one in that time.
    assert!(dropped >= 1.0, "nothing was dropped: {report}");
    assert!(frames >= 1.0, "the newest is worked on: {report}");
    let report =
        json(&run(&["stream", "--frames", "10", "--fps", "1000000", "--drop", "none", "--json"]));
    assert_eq!(number(&report, "frames"), 10.0);
    assert_eq!(number(&report, "dropped"), 0.0);
    assert!(number(&report, "late") >= 9.0, "no driver answers in a microsecond: {report}");
}

fn raw_frames_and_video_come_from_files_and_standard_input() {
    use std::io::Write;
    use std::process::Stdio;

    let frame: Vec<u8> = (0..64 * 48 * 3).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let mut child =
        support::burst(&["stream", "--source", "-", "--size", "64x48", "--top", "1", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&[frame.clone(), frame].concat()).unwrap();
    drop(stdin);
    let raw = json(&child.wait_with_output().unwrap());
    assert_eq!(raw["frames"], 2);
    assert_eq!(raw["results"][0]["top"], raw["results"][1]["top"]);

    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("grey.y4m");
    let mut bytes = b"YUV4MPEG2 W64 H48 F30:1 C420jpeg\n".to_vec();
    for _ in 0..3 {
        bytes.extend(b"FRAME\n");
        bytes.extend(vec![128; 64 * 48 + 2 * 32 * 24]);
    }
    std::fs::write(&video, bytes).unwrap();
    let report = json(&run(&["stream", "--source", video.to_str().unwrap(), "--json"]));
    assert_eq!(report["frames"], 3, "{report}");
}

fn pictures_of_a_folder_are_streamed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    // The smallest of pictures: one grey pixel, as PNG.
    let png = [
        0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0,
        0, 0, 1, 8, 0, 0, 0, 0, 0x3A, 0x7E, 0x9B, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78,
        0x9C, 0x63, 0x68, 0, 0, 0, 0x82, 0, 0x81, 0x77, 0xCD, 0x72, 0xB6, 0, 0, 0, 0, b'I', b'E',
        b'N', b'D', 0xAE, 0x42, 0x60, 0x82,
    ];
    for name in ["b.png", "a.png", "notes.txt"] {
        std::fs::write(folder.path().join(name), png).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let report = json(&run(&["stream", "--source", path, "--top", "1", "--json"]));
    assert_eq!(report["frames"], 2, "{report}");
    assert!(report["results"][0]["source"].as_str().unwrap().ends_with("a.png"));
}

fn real_models_name_a_real_cat_as_their_goldens_do(root: &Path) {
    let file = |path: &str| root.join(path).to_str().unwrap().to_owned();
    for name in [
        "mobilenet_v2_1.0_224_quant",
        "mobilenet_v1_0.25_224_float",
        "mobilenet_v1_0.25_128_quant",
        "mobilenet_v2_1.0_224_ptq_int8",
        "mobilenet_v2_1.0_224_float_fp16w",
    ] {
        let size = if name.contains("128") { 128 } else { 224 };
        let golden = file(&format!("golden/{name}/cat_{size}.json"));
        let golden: Value = serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
        let model = file(&format!("models/{name}.tflite"));
        let picture = file("inputs/images/cat.jpg");
        let labels = file("inputs/imagenet_labels.txt");
        let output = run(&[
            "stream", "--model", &model, "--source", &picture, "--labels", &labels, "--top", "5",
            "--json",
        ]);
        assert!(output.status.success(), "{name}");
        let report = json(&output);
        let best = &report["results"][0]["top"][0];
        assert_eq!(best["label"], golden["top5"][0]["label"], "{name}: {report}");
    }
}
