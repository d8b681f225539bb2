//! The comparison with LiteRT: what it says where there is no LiteRT, and what it reports where
//! there is one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::path::Path;
use std::process::{Command, Output};

use benches::model::{Class, Compared, Comparison, REFERENCE, Ratio, bounds};
use burst_harness::WaitKind;
use burst_harness::bounds::Check;
use burst_harness::engine::Times;
use burst_harness::litert::{PATH as LITERT, Package, Python};
use burst_harness::model::{Label, Series, Workload, paths};
use burst_testing::{Missing, shared};
use serde_json::Value;

burst_testing::tests![
    without_python_or_its_package_one_sentence_says_what_to_install(),
    the_built_in_model_is_held_to_what_is_expected_of_its_kind(),
    bounds_of_this_repository_are_for_ratios_that_there_are(),
    outputs_that_are_not_right_are_said_and_fail(),
    models_are_held_to_what_is_expected_of_their_kind(&shared("models")?),
    beside_litert_every_path_is_measured_and_outputs_agree(&python_with_litert()?),
    what_lies_around_executions_is_held_to_bounds_and_on_the_page(&python_with_litert()?),
];

/// The model in this repository.
const OWN_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/shapes.tflite");

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_benches")).arg("model").args(args).output().unwrap()
}

fn without_python_or_its_package_one_sentence_says_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("python");
    // A program that ends without a word, and one that is not there.
    for python in [missing.to_str().unwrap(), "/bin/true"] {
        let output = run(&["--python", python]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        for part in [python, "pip install ai-edge-litert", "--python"] {
            assert!(said.contains(part), "no {part:?} in: {said}");
        }
    }
}

fn the_built_in_model_is_held_to_what_is_expected_of_its_kind() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/shapes.tflite");
    assert_eq!(Class::of(&Workload::read(&own).unwrap()), Class::Int8PerChannel);
}

fn bounds_of_this_repository_are_for_ratios_that_there_are() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("model.json");
    let bounds = bounds(&file).unwrap();
    let of = |class, value| {
        let mut checks = vec![Check::new(Ratio::ToLiteRt.name(class), Some(value))];
        bounds.hold(&mut checks);
        checks[0].verdict()
    };
    assert_eq!(of(Class::Uint8, 0.9), "reached");
    assert_eq!(of(Class::Uint8, 1.01), "ok");
    assert_eq!(of(Class::Uint8, 1.1), "MISSED");
    assert_eq!(of(Class::FloatLstm, 0.6), "MISSED");
}

/// A path that answered with these outputs.
fn answered(path: &str, outputs: &[u8]) -> Series {
    Series {
        label: Label::new(path, 1),
        times: Times::new(vec![1000]),
        transport: Times::default(),
        copies: Times::default(),
        outputs: vec![outputs.to_vec()],
        p50s: vec![Some(1000.0)],
        prepares: vec![Some(5000.0)],
        firsts: vec![Some(1200.0)],
        memory_kib: None,
    }
}

fn outputs_that_are_not_right_are_said_and_fail() {
    let workload = Workload::read(Path::new(OWN_MODEL)).unwrap();
    let right = [0, 0, 200, 0, 0, 0, 0, 40, 0, 16];
    let (mut one_off, mut other) = (right, right);
    one_off[2] -= 1;
    other.reverse();
    for (path, outputs, is_wrong) in [
        (REFERENCE, &right, false),
        (REFERENCE, &one_off, true),
        (paths::BURST, &one_off, true),
        (LITERT, &one_off, false),
        (LITERT, &other, true),
    ] {
        let series = [answered(paths::IN_PROCESS, &right), answered(path, outputs)];
        let compared = Compared::new(&workload, &series, None, None);
        assert_eq!(compared.wrong.len(), usize::from(is_wrong), "{path}: {:?}", compared.wrong);
        assert!(compared.wrong.iter().all(|wrong| wrong.contains(path)), "{:?}", compared.wrong);
        let (package, version) = (String::new(), String::new());
        let litert = Package { package, version };
        let found = Comparison { litert, models: vec![compared], wait: WaitKind::Adaptive };
        assert_eq!(found.has_missed(), is_wrong, "{path}");
    }
}

fn models_are_held_to_what_is_expected_of_their_kind(models: &Path) {
    for (name, class) in [
        ("mobilenet_v1_0.25_224_float", Class::FloatConvolution),
        ("mobilenet_v2_1.0_224_float_fp16w", Class::FloatConvolution),
        ("mobilenet_v2_1.0_224_ptq_int8", Class::Int8PerChannel),
        ("mobilenet_v2_1.0_224_quant", Class::Uint8),
        ("tts_lstm_float", Class::FloatLstm),
        ("kws_svdf_rnn_float", Class::Other),
    ] {
        let workload = Workload::read(&models.join(format!("{name}.tflite"))).unwrap();
        assert_eq!(Class::of(&workload), class, "{name}");
    }
}

/// A Python with the package: `BURST_PYTHON`, else `python3`.
pub(crate) fn python_with_litert() -> Result<String, Missing> {
    let python = std::env::var("BURST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    match Python::start(Path::new(&python)) {
        Ok(_) => Ok(python),
        Err(error) => {
            Err(Missing::new(format!("LiteRT (BURST_PYTHON says which Python): {error}")))
        }
    }
}

fn beside_litert_every_path_is_measured_and_outputs_agree(python: &str) {
    let output = run(&[
        "--python",
        python,
        "--rounds",
        "2",
        "--executions",
        "3",
        "--threads",
        "1,2",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let model = &report["models"][0];
    let paths: Vec<(&str, u64)> = model["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["path"].as_str().unwrap(), row["threads"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("in-process", 1),
        ("in-process", 2),
        ("burst", 1),
        ("reference kernels", 1),
        ("litert", 1),
        ("litert", 2),
    ];
    assert_eq!(paths, expected);
    for row in &model["paths"].as_array().unwrap()[..4] {
        assert_eq!(row["outputs"]["equal"], true, "a quantized model of ours: {row}");
    }
    let apart = model["outputs"]["relative"].as_f64().unwrap();
    assert!(apart < 0.5, "the same picture, the same classes: {}", model["outputs"]);
    for ratio in model["ours_to_litert"].as_array().unwrap() {
        assert!(ratio["ratio"]["median"].as_f64().unwrap() > 0.0, "{ratio}");
    }
    assert!(model["not_comparable"].is_null());
    assert_eq!(model["wrong"], Value::Array(Vec::new()));
    let positive = |value: &Value| value.as_f64().is_some_and(|value| value > 0.0);
    assert!(positive(&model["prepare_to_litert"]["median"]), "{model}");
    assert!(positive(&model["import_us"]), "{model}");
    // The weights of the model are those of a small file, and both hold them.
    let idle = &model["idle"];
    let [weights, executed, heap] =
        ["weight_bytes", "executed_bytes", "heap_bytes"].map(|field| idle[field].as_u64().unwrap());
    let file = std::fs::metadata(OWN_MODEL).unwrap().len();
    assert!((file / 2..file * 2).contains(&weights), "{weights} of a file of {file}: {idle}");
    assert!(heap >= executed && executed > 0 && idle["heap_to_executed"].is_number(), "{idle}");
    for field in ["grown_bytes", "litert_grown_bytes"] {
        assert!(idle[field].is_u64(), "{field}: {idle}");
    }
    let checks = model["checks"].as_array().unwrap();
    for what in [
        "first execution : p50",
        "prepare, ours : LiteRT",
        "idle heap less 64 KiB : weights as executed",
    ] {
        let name = Value::from(format!("int8 per channel: {what}"));
        let check = checks.iter().find(|check| check["what"] == name);
        assert!(check.is_some_and(|check| check["value"].is_number()), "{what}: {checks:?}");
    }
}

/// With bounds that nothing keeps to, each of them is named, and the status is 1; the page has the figures.
fn what_lies_around_executions_is_held_to_bounds_and_on_the_page(python: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (file, page) = (folder.path().join("bounds.json"), folder.path().join("page.html"));
    let never = serde_json::json!({ "must": "<= 0", "reach": "<= 0" });
    let ratios = [Ratio::FirstToP50, Ratio::PrepareToLiteRt];
    let names = ratios.map(|ratio| ratio.name(Class::Int8PerChannel));
    let bounds: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), never.clone())).collect();
    std::fs::write(&file, serde_json::to_vec(&bounds).unwrap()).unwrap();
    let [file, page_file] = [&file, &page].map(|path| path.to_str().unwrap());
    let counts = ["--rounds", "1", "--executions", "2", "--threads", "1", "--no-reference"];
    let rest = ["--python", python, "--check", file, "--report", page_file];
    let output = run(&[&counts[..], &rest].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["first : p50", "LiteRT prepares", "idle heap", "MISSED", names[0].as_str()] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    for part in ["LiteRT prepares", "idle heap", "less 64 KiB : as executed"] {
        assert!(page.contains(part), "{part}");
    }
}
