//! Several devices of one service, by name.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use serde_json::Value;

use crate::support::{Service, json, repository, run};

burst_testing::tests![
    a_service_offers_the_devices_that_are_named(),
    all_devices_are_offered_and_each_says_what_it_is(),
    a_stream_runs_on_the_device_that_is_named(),
    a_device_that_does_not_run_a_model_says_so(),
    a_name_that_no_device_has_is_refused_in_words(),
];

const NAMES: [&str; 7] = [
    "cpu",
    "cpu-float-fast",
    "cpu-float-slow",
    "cpu-quant",
    "cpu-minimal",
    "cpu-arithmetic",
    "cpu-small-kernels",
];

fn names(report: &Value) -> Vec<&str> {
    let devices = report["devices"].as_array().unwrap();
    devices.iter().map(|device| device["name"].as_str().unwrap()).collect()
}

fn devices(service: &Service) -> Value {
    json(&run(&["devices", "--socket", service.path(), "--json"]))
}

fn a_service_offers_the_devices_that_are_named() {
    assert_eq!(names(&devices(&Service::start())), ["cpu"]);
    let service = Service::start_with(&["--device", "cpu-quant,cpu"]);
    assert_eq!(names(&devices(&service)), ["cpu-quant", "cpu"]);
}

fn all_devices_are_offered_and_each_says_what_it_is() {
    let service = Service::start_with(&["--device", "all", "--threads", "2"]);
    let report = devices(&service);
    assert_eq!(names(&report), NAMES);
    let fast = &report["devices"][1]["performance"];
    assert_eq!(fast["TENSOR_FLOAT32"]["time"], 0.8);
    assert_eq!(fast["TENSOR_FLOAT32 relaxed"]["power"], 1.1);
    assert_eq!(fast["IF"]["time"], 1.0);
    let said = String::from_utf8(run(&["devices", "--socket", service.path()]).stdout).unwrap();
    assert!(NAMES.iter().all(|name| said.contains(name)), "{said}");
    assert!(said.contains("50.000"), "{said}");
    // Each for itself would have a helper; all of them have the same.
    let pid = service.process.child.id();
    for name in ["cpu", "cpu-small-kernels"] {
        let done = run(&["stream", "--socket", service.path(), "--device", name, "--frames", "3"]);
        assert!(done.status.success(), "{done:?}");
    }
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path().join("comm")).unwrap_or_default()
    };
    let helpers = threads.map(name).filter(|name| name.starts_with("burst-compute")).count();
    assert_eq!(helpers, 1);
}

fn stream(device: &str, path: &str) -> std::process::Output {
    run(&["stream", "--device", device, "--path", path, "--frames", "3", "--json"])
}

fn a_stream_runs_on_the_device_that_is_named() {
    // Both run every operation of the built-in model.
    for device in ["cpu", "cpu-small-kernels"] {
        for path in ["burst", "in-process"] {
            let output = stream(device, path);
            assert!(output.status.success(), "{device} {path}: {output:?}");
        }
    }
}

fn a_device_that_does_not_run_a_model_says_so() {
    for path in ["burst", "in-process"] {
        let output = stream("cpu-minimal", path);
        assert_eq!(output.status.code(), Some(2), "{path}: {output:?}");
        let said = json(&output)["error"].as_str().unwrap().to_owned();
        assert!(said.contains("is not supported by this device"), "{path}: {said}");
    }
}

fn a_name_that_no_device_has_is_refused_in_words() {
    let folder = repository();
    let vectors = folder.to_str().unwrap();
    for arguments in [
        &["serve", "--device", "cpu,gpu"][..],
        &["stream", "--device", "gpu"],
        &["stream", "--device", "gpu", "--path", "in-process"],
        &["run", "--device", "gpu", "--input", "/dev/null", "--output", "/tmp"],
        &["verify", "--device", "gpu", vectors],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let is_named = said.contains("there is no device gpu; there are: cpu, cpu-float-fast");
        // Other input is looked at first.
        assert!(is_named || matches!(arguments[0], "run" | "verify"), "{arguments:?}: {said}");
    }
}
