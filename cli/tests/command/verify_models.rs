//! `burst verify --models`: real models over a driver process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use burst_testing::shared;

use crate::support::{Service, json as parse, library, repository, run};

burst_testing::tests![
    goldens_of_a_folder_are_judged_on_every_path(),
    another_value_than_the_reference_ends_with_status_1_and_says_where(),
    what_cannot_be_run_ends_with_status_2_and_one_sentence(),
    small_models_pass_over_a_driver_process(&shared("")?),
    small_models_pass_through_the_c_functions(&shared("")?),
];

/// Bytes of the built-in model's input.
const INPUT_BYTES: usize = 64 * 64 * 3;

/// A folder with the built-in model and one golden, made by `burst run` in this process.
pub(crate) fn write(root: &Path) {
    for folder in ["models", "golden/shapes", "inputs"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::copy(repository().join("models/shapes.tflite"), root.join("models/shapes.tflite")).unwrap();
    let input = root.join("inputs/grey.rgb");
    fs::write(&input, vec![100; INPUT_BYTES]).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (input, out) = (path(&input), path(&root.join("golden/shapes")));
    let args = ["run", "--input", &input, "--output", &out, "--path", "in-process", "--json"];
    let output = run(&args);
    let tensor = parse(&output)["outputs"][0].clone();
    let golden = json!({
        "input": { "file": "inputs/grey.rgb", "transform": "none (u8 as is)" },
        "bin": "output0.bin",
        "outputs": [{
            "dtype": tensor["type"], "shape": tensor["shape"], "offset": 0, "bytes": tensor["bytes"],
        }],
    });
    let manifest = json!({ "models": [{
        "name": "shapes", "file": "models/shapes.tflite", "strict_reachable": true,
        "inputs": [{ "dtype": "int8", "shape": [1, 64, 64, 3] }],
        "goldens": ["golden/shapes/grey.json"],
        "yardstick": { "tolerance": {
            "kind": "quantised", "fair": { "max_abs": 1.0, "min_equal_fraction": 0.0 },
        } },
    }] });
    fs::write(root.join("models/MANIFEST.json"), manifest.to_string()).unwrap();
    fs::write(root.join("golden/shapes/grey.json"), golden.to_string()).unwrap();
}

/// The same, and behind it another model, whose file is still to be made: where.
pub(crate) fn write_with_another(root: &Path) -> PathBuf {
    write(root);
    let manifest = root.join("models/MANIFEST.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let models = value["models"].as_array_mut().unwrap();
    let mut another = models[0].clone();
    (another["name"], another["file"]) = ("another".into(), "models/another.tflite".into());
    models.push(another);
    fs::write(manifest, value.to_string()).unwrap();
    root.join("models/another.tflite")
}

fn grey(class: &str, max_diff: f64) -> Value {
    let result =
        json!({ "model": "shapes", "input": "grey", "class": class, "max_diff": max_diff });
    let count = |name: &str| usize::from(name == class);
    json!({
        "goldens": 1, "strict": count("strict"), "fair": count("fair"), "failed": count("failed"),
        "results": [result],
    })
}

/// What an object says of goldens: all that is not null, without what every object has.
fn of_goldens(output: &Output) -> Value {
    let mut object = parse(output);
    let keys = object.as_object_mut().unwrap();
    keys.retain(|key, value| {
        !value.is_null() && !["schema", "command", "threads"].contains(&key.as_str())
    });
    object
}

fn goldens_of_a_folder_are_judged_on_every_path() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let root = folder.path().to_str().unwrap();
    let service = Service::start();
    for more in [
        &[][..],
        &["--mode", "burst,sync,async,fenced,in-process"],
        &["--mode", "all", "--repeat", "3"],
        &["--socket", service.path(), "--mode", "all"],
        &["--model", "shapes"],
        &["--mode", "ndk", "--library", &library()],
        &["--mode", "ndk,sync,async,burst,fenced", "--library", &library()],
        &["--mode", "ndk,all", "--divided", "--library", &library()],
    ] {
        let output = run(&[&["verify", "--models", root, "--json"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(of_goldens(&output), grey("strict", 0.0), "{more:?}");
    }
    let output = run(&["verify", "--models", root, "--mode", "sync"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("1 golden over sync: 1 strict, 0 fair, 0 failed"), "{said}");
}

fn another_value_than_the_reference_ends_with_status_1_and_says_where() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let bin = folder.path().join("golden/shapes/output0.bin");
    let mut bytes = fs::read(&bin).unwrap();
    bytes[1] ^= 1;
    fs::write(&bin, bytes).unwrap();
    let root = folder.path().to_str().unwrap();
    let output = run(&["verify", "--models", root, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(of_goldens(&output), grey("failed", 1.0));
    let output = run(&["verify", "--models", root]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("shapes grey is failed: fair, but strict is in reach: 1 of"), "{said}");
    assert!(said.contains("execution 0, output 0, value 1: "), "{said}");
}

fn what_cannot_be_run_ends_with_status_2_and_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let empty = tempfile::tempdir().unwrap();
    let (root, empty) = (folder.path().to_str().unwrap(), empty.path().to_str().unwrap());
    let expect = |args: &[&str], part: &str| {
        let output = run(&[&["verify", "--json"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        let error = parse(&output)["error"].as_str().unwrap().to_owned();
        assert!(error.contains(part), "{args:?}: no {part:?} in: {error}");
    };
    expect(&["--models", empty], "no models/MANIFEST.json");
    expect(&["--models", root, "--model", "other"], "other is not among the models");
    expect(&["--models", root, "--socket", "/nonexistent/s"], "/nonexistent/s");
    expect(&["--models", root, "--mode", "in-process", "--socket", "s"], "in-process");
    expect(&["--models", root, "--mode", "in-process,ndk"], "in-process");
    expect(
        &["--models", root, "--mode", "ndk", "--library", "/nonexistent/n.so"],
        "/nonexistent/n",
    );
    expect(&[root, "--mode", "in-process"], "goes with --models");
    let golden = folder.path().join("golden/shapes/grey.json");
    let text = fs::read_to_string(&golden).unwrap();
    fs::write(&golden, text.replace("u8 as is", "u8 upside down")).unwrap();
    expect(&["--models", root], "unknown transform \"none (u8 upside down)\"");
    fs::write(&golden, &text[..text.len() / 2]).unwrap();
    expect(&["--models", root], "grey.json");
    fs::write(&golden, text).unwrap();
    fs::write(folder.path().join("golden/shapes/output0.bin"), [1]).unwrap();
    expect(&["--models", root], "output0.bin has 1 byte, output 0 needs");
}

/// In `tests/tests/driver/models.rs` all of them are run; the whole of every pan of the camera by
/// `burst verify --models ../shared`.
fn small_models_pass_over_a_driver_process(root: &Path) {
    small_models_pass(root, SMALL, 18, &[]);
}

/// Whose goldens are run in seconds.
const SMALL: &str = "mobilenet_v1_0.25_128_quant,yamnet_wavin_int8,lstm_mnist_int8,tts_lstm_float,\
                     asr_lstm_float,kws_svdf_rnn_float";

fn small_models_pass(root: &Path, models: &str, goldens: u64, more: &[&str]) {
    let root = root.to_str().unwrap();
    let output = run(&[&["verify", "--models", root, "--model", models, "--json"], more].concat());
    let report = parse(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!((&report["goldens"], &report["failed"]), (&json!(goldens), &json!(0)), "{report}");
}

/// The CPU of this process, where the library finds no service.
fn small_models_pass_through_the_c_functions(root: &Path) {
    let library = library();
    let ndk = ["--mode", "ndk,burst,sync,async", "--library", &library];
    small_models_pass(root, SMALL, 18, &ndk);
}
