//! `burst calibrate`, and what services report of it.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use burst_client::Client;
use burst_hal::{Capabilities, Device, OperandKind, OperandType};

use crate::support::{Process, burst, json};

burst_testing::tests![
    what_was_measured_is_reported_by_every_service_from_then_on(),
    a_calibration_that_is_named_and_bad_keeps_a_service_from_starting(),
    a_calibration_that_is_found_and_bad_is_told_of_and_not_used(),
];

/// `burst` in a world whose state lies in this folder.
fn burst_at(state: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = burst(arguments);
    command.env("STATE_DIRECTORY", state);
    command
}

/// What a service says of its devices, and on standard error; it is ended then.
fn asked(state: &Path, extra: &[&str]) -> (Vec<Capabilities>, String) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let mut command = burst_at(state, &["serve", "--socket", socket.to_str().unwrap()]);
    command.args(extra).stderr(Stdio::piped());
    let mut service = Process::start(command);
    let line = service.line();
    assert!(line.starts_with("listening on "), "{line}");
    let client = Client::connect(socket).unwrap();
    let devices = client.devices().unwrap();
    let said = devices.iter().map(|device| device.capabilities().unwrap()).collect();
    drop((devices, client));
    service.child.kill().unwrap();
    let mut log = String::new();
    service.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    (said, log)
}

fn assert_legal(capabilities: &Capabilities) {
    let list = &capabilities.operand_performance;
    let codes: Vec<i32> = list.iter().map(|(ty, _)| ty.code()).collect();
    assert!(codes.is_sorted_by(|a, b| a < b));
    assert!(list.iter().all(|(ty, _)| ty.kind() != OperandKind::Subgraph));
    assert!(list.iter().all(|(_, info)| info.exec_time > 0.0 && info.power_usage > 0.0));
    assert!(capabilities.if_performance.exec_time > 0.0);
    assert!(capabilities.while_performance.power_usage > 0.0);
}

fn what_was_measured_is_reported_by_every_service_from_then_on() {
    let state = tempfile::tempdir().unwrap();
    let before = asked(state.path(), &[]).0.remove(0);
    assert_legal(&before);

    let output = burst_at(state.path(), &["calibrate", "--rounds", "1", "--json"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let report = json(&output);
    let file = state.path().join("calibration.json");
    assert_eq!(report["file"], file.to_str().unwrap());
    let calibration = &report["calibration"];
    assert_eq!(calibration["format"], 1);
    assert!(!calibration["power"].as_str().unwrap().is_empty());
    let measured = calibration["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 12);
    assert!(measured.iter().all(|row| row["time"]["median"].as_f64().unwrap() > 0.0));

    let (first, _) = asked(state.path(), &["--device", "cpu,cpu-float-fast"]);
    let (second, _) = asked(state.path(), &["--device", "cpu,cpu-float-fast"]);
    assert_eq!(first, second, "also after a restart");
    let reported = &first[0];
    assert_legal(reported);
    assert_ne!(*reported, before);
    #[expect(clippy::cast_possible_truncation, reason = "it was written as a float of 32 bits")]
    let figure =
        |name: &str, what: &str| calibration["figures"][name][what].as_f64().unwrap() as f32;
    for (name, ty) in [
        ("float32", OperandType::TensorFloat32),
        ("float16", OperandType::TensorFloat16),
        ("quant8_asymm", OperandType::TensorQuant8Asymm),
        ("quant8_asymm_signed", OperandType::TensorQuant8AsymmSigned),
    ] {
        let info = reported.performance_of(ty);
        assert_eq!(info.exec_time.to_bits(), figure(name, "time").to_bits(), "{name}");
        assert_eq!(info.power_usage.to_bits(), figure(name, "power").to_bits(), "{name}");
    }
    assert_eq!(reported.if_performance.exec_time.to_bits(), figure("if", "time").to_bits());
    assert!(first[1].performance_of(OperandType::TensorFloat32).exec_time == 0.8, "made up");

    // Where it is named it need not lie there.
    let moved = state.path().join("moved.json");
    fs::rename(&file, &moved).unwrap();
    assert_eq!(asked(state.path(), &[]).0, [before]);
    let named = asked(state.path(), &["--calibration", moved.to_str().unwrap()]).0;
    assert_eq!(named[0], *reported);
}

fn a_calibration_that_is_named_and_bad_keeps_a_service_from_starting() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("figures.json");
    let named = file.to_str().unwrap();
    let socket = state.path().join("burst.sock");
    let arguments = ["serve", "--socket", socket.to_str().unwrap(), "--calibration", named];
    for (content, want) in [
        (None, "there is no calibration"),
        (Some("{}"), "missing field `format`"),
        (Some("{\"format\": 3}"), "it has format 3, not 1"),
    ] {
        if let Some(content) = content {
            fs::write(&file, content).unwrap();
        }
        let output = burst_at(state.path(), &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(want) && said.contains("figures.json"), "{said}");
    }
    assert!(!socket.exists());
}

fn a_calibration_that_is_found_and_bad_is_told_of_and_not_used() {
    let state = tempfile::tempdir().unwrap();
    let (built_in, log) = asked(state.path(), &[]);
    assert!(!log.contains("calibration"), "{log}");
    fs::write(state.path().join("calibration.json"), "[]").unwrap();
    let (still, log) = asked(state.path(), &[]);
    assert_eq!(still, built_in);
    assert!(log.contains("calibration.json") && log.contains("built-in figures"), "{log}");
}
