//! `burst verify --mode ndk`: vectors through NNAPI's C functions, divided among the devices of a service. Those that are
//! not divided: `tests/tests/driver/ndk.rs`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use burst_testing::shared;

use crate::support::{Service, burst, json as parse, library};

burst_testing::tests![
    a_tenth_of_the_vectors_holds_divided_among_devices_of_a_service(&shared("vts")?),
    a_part_of_the_vectors_holds_where_the_reference_device_runs_a_part(&shared("vts")?),
    what_cannot_be_asked_for_ends_with_status_2_and_one_sentence(),
];

/// One that is said to be the fastest at what nearly all models of several operations have, so that these are
/// divided; and all others, the one that refuses by parameter before the one that refuses nothing.
const DEVICES: &str = "cpu-arithmetic,cpu-minimal,cpu-float-fast,cpu-float-slow,cpu-quant,\
                       cpu-small-kernels,cpu";

/// Nobody but the reference device runs 16-bit floats, or control flow, whose graphs are divided again.
const LACKING: &str = "cpu-arithmetic,cpu-minimal,cpu-float-fast,cpu-float-slow,cpu-quant";

/// Vectors over a service with these devices. What fails has failed: the reference device does not run it again.
fn verified(vectors: &Path, devices: &str, one_in: &str) -> Value {
    // Models are set up faster than a service lets anybody by default.
    let service = Service::start_with(&["--device", devices, "--setup-rate", "0"]);
    let vectors = vectors.to_str().unwrap();
    let library = library();
    let mode = ["--mode", "ndk", "--divided", "--library", &library];
    let mut command =
        burst(&[&["verify", vectors, "--one-in", one_in, "--json"], &mode[..]].concat());
    command.env("BURST_SOCKET", service.path()).env("BURST_NN_PARTITION", "2");
    let output = command.output().unwrap();
    let report = parse(&output);
    println!(
        "{} tests, {} executions, plans {}",
        report["tests"], report["executions"], report["plans"]
    );
    for failure in report["failures"].as_array().unwrap().iter().take(20) {
        println!("{failure}");
    }
    assert_eq!((&report["failed"], &report["skipped"]), (&json!(0), &json!(0)));
    assert_eq!(output.status.code(), Some(0));
    report
}

/// The share of models with several operations that are divided.
#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn share(report: &Value) -> f64 {
    let count = |name: &str| report["plans"][name].as_u64().unwrap() as f64;
    count("divided") / count("of_several_operations")
}

fn users(report: &Value) -> BTreeSet<&str> {
    let devices = report["plans"]["by_device"].as_object().unwrap();
    devices.keys().map(String::as_str).collect()
}

fn a_tenth_of_the_vectors_holds_divided_among_devices_of_a_service(vectors: &Path) {
    let report = verified(vectors, DEVICES, "10");
    assert!(report["tests"].as_u64().unwrap() > 700, "a tenth of 7712: {}", report["tests"]);
    assert!(share(&report) > 0.5, "{}", report["plans"]);
    let devices = users(&report);
    assert!(["cpu-arithmetic", "cpu-small-kernels"].iter().all(|one| devices.contains(one)));
    let rules: BTreeSet<&str> =
        report["left_out"].as_object().unwrap().keys().map(String::as_str).collect();
    let known = [
        "BUFFER_OF_OPEN_SIZE",
        "DEADLINES_OF_ANY_DEVICE",
        "LIFETIMES_FOLLOW_LISTS",
        "NOTHING_TO_SHORTEN",
        "NO_BUFFERS",
        "OPEN_SIZE_BETWEEN_DEVICES",
        "ORDER_IS_SORTED",
        "READERS_ARE_COUNTED",
        "TIMES_OF_ANY_DEVICE",
        "ZERO_SIZED_FENCED",
    ];
    assert!(rules.is_subset(&BTreeSet::from(known)), "{rules:?}");
}

fn a_part_of_the_vectors_holds_where_the_reference_device_runs_a_part(vectors: &Path) {
    let report = verified(vectors, LACKING, "40");
    assert!(share(&report) > 0.5, "{}", report["plans"]);
    let wanted = ["cpu-arithmetic", "cpu-minimal", "cpu-float-fast", "nnapi-reference"];
    assert!(wanted.iter().all(|one| users(&report).contains(one)), "{}", report["plans"]);
}

fn what_cannot_be_asked_for_ends_with_status_2_and_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, library) = (folder.path().to_str().unwrap(), library());
    for (args, part) in [
        (&["--divided"][..], "--divided goes with --mode ndk"),
        (&["--library", &library], "--library goes with --mode ndk"),
        (&["--mode", "ndk", "--library", "/nonexistent/n.so"], "/nonexistent/n.so"),
        (&["--mode", "ndk", "--library", &library, "--device", "gpu"], "--device gpu"),
        (&["--mode", "ndk", "--socket", "s"], "BURST_SOCKET"),
        (&["--mode", "ndk", "--library", &library], "no vector files"),
    ] {
        let output = burst(&[&["verify", folder, "--json"], args].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        let error = parse(&output)["error"].as_str().unwrap().to_owned();
        assert!(error.contains(part), "{args:?}: no {part:?} in: {error}");
    }
}
