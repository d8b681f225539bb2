//! Models whose weights come from a seed: they are the same every time, compute something, and what our kernels make of
//! them is what the reference kernels do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::process::Command;
use std::sync::Arc;

use benches::model::Class;
use benches::model::seeded::{Seeded, Size};
use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::OperandType;
use burst_harness::engine::{Length, Subject};
use burst_harness::model::{InProcess, Label, Workload, agreement};
use serde_json::Value;

use crate::model::python_with_litert;

burst_testing::tests![
    small_ones_of_every_kind_compute_what_the_reference_does_and_nothing_saturates(),
    files_are_the_same_every_time_and_as_large_as_published(),
    they_run_beside_litert_with_right_outputs(&python_with_litert()?),
];

/// A size at which the reference kernels take no time.
const SMALL: Size = Size { side: 64, width: 64 };

fn outputs(workload: &Workload, fast_kernels: bool) -> Vec<Vec<u8>> {
    let options = DeviceOptions { fast_kernels, ..DeviceOptions::default() };
    let device = Arc::new(CpuDevice::new(options));
    let mut subject = InProcess::new(Label::new("in-process", 1), device, workload);
    subject.trial(Length { warm_up: 0, counted: 1 }).unwrap().outputs
}

fn small_ones_of_every_kind_compute_what_the_reference_does_and_nothing_saturates() {
    for model in Seeded::ALL {
        let workload = Workload::of_bytes(model.name, &model.file(SMALL)).unwrap();
        assert!(workload.part().is_none(), "{}: all of it runs", model.name);
        let [ours, reference] = [true, false].map(|fast| outputs(&workload, fast));
        let ty = workload.imported.outputs[0].ty;
        let apart = agreement(&workload, &ours, &reference);
        // Sums of floats are added up in another order.
        let is_same = apart.equal || ty == OperandType::TensorFloat32 && apart.relative <= 1e-5;
        assert!(is_same, "{}: {apart:?}", model.name);
        let mut values: Vec<u32> = if ty == OperandType::TensorFloat32 {
            let floats = ours[0].as_chunks::<4>().0.iter().map(|bytes| f32::from_ne_bytes(*bytes));
            floats
                .inspect(|value| assert!(value.is_finite(), "{}", model.name))
                .map(f32::to_bits)
                .collect()
        } else {
            ours[0].iter().map(|byte| u32::from(*byte)).collect()
        };
        let all = values.len();
        values.sort_unstable();
        let most = values.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap();
        values.dedup();
        // Of a thousand probabilities in bytes most are the least one.
        let (least, most_alike) =
            if model.name.contains("segmentation") { (16, all / 4) } else { (4, all) };
        assert!(values.len() >= least, "{}: {} values", model.name, values.len());
        assert!(most < most_alike, "{}: {most} of {all} are alike", model.name);
    }
}

fn files_are_the_same_every_time_and_as_large_as_published() {
    for (model, class, megabytes) in [
        (Seeded::ALL[0], Class::FloatConvolution, 16..18), // 4.2 million weights
        (Seeded::ALL[1], Class::Int8PerChannel, 4..5),
        (Seeded::ALL[2], Class::Uint8, 4..5),
        (Seeded::ALL[3], Class::FloatConvolution, 1..4),
        (Seeded::ALL[4], Class::Int8PerChannel, 0..1),
    ] {
        let file = model.file(model.size());
        assert!(megabytes.contains(&(file.len() / 1_000_000)), "{}: {}", model.name, file.len());
        assert!(file == model.file(model.size()), "{}", model.name);
        let workload = Workload::of_bytes(model.name, &file).unwrap();
        assert_eq!(Class::of(&workload), class, "{}", model.name);
        let side = model.size().side;
        assert_eq!(workload.imported.inputs[0].dims.as_slice(), [1, side, side, 3]);
    }
}

fn they_run_beside_litert_with_right_outputs(python: &str) {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("models");
    let output = Command::new(env!("CARGO_BIN_EXE_benches"))
        .args(["model", "--seeded", "--python", python, "--rounds", "1", "--executions", "1"])
        .args(["--threads", "1", "--json", "--keep-seeded"])
        .arg(&kept)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let models = report["models"].as_array().unwrap();
    let names: Vec<&str> = models.iter().map(|model| model["model"].as_str().unwrap()).collect();
    assert_eq!(names, Seeded::ALL.map(|model| model.name));
    for model in models {
        let name = model["model"].as_str().unwrap();
        assert!(kept.join(format!("{name}.tflite")).is_file(), "{name} is kept");
        assert!(model["not_comparable"].is_null(), "{name}: {}", model["not_comparable"]);
        assert_eq!(model["wrong"].as_array().map(Vec::len), Some(0), "{model}");
        // Kernels of both sides round differently, and never by much.
        let apart = model["outputs"]["relative"].as_f64().unwrap();
        let most = if name.ends_with("float") { 0.001 } else { 0.25 };
        assert!(apart <= most, "{name}: {apart}");
    }
}
