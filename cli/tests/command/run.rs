//! `burst run`: raw tensors in, raw tensors out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use burst_testing::shared;

use crate::support::{Service, json as parse, repository, run};

burst_testing::tests![
    every_path_writes_the_same_tensors_and_names_them(),
    wrong_inputs_are_refused_with_what_they_should_be(),
    a_vector_file_has_its_inputs_with_it_and_says_what_should_come_out(),
    states_are_written_and_can_be_given_back(&shared("")?),
    tensors_have_the_types_of_the_model_file(&shared("")?),
];

/// Height, width and channels of the built-in model's input, which are bytes.
const INPUT: [usize; 3] = [64, 64, 3];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A picture of bytes that are all different from their neighbours.
fn picture(folder: &Path) -> PathBuf {
    let file = folder.join("picture.rgb");
    let bytes: Vec<u8> = (0..=250u8).cycle().step_by(7).take(INPUT.iter().product()).collect();
    fs::write(&file, bytes).unwrap();
    file
}

fn every_path_writes_the_same_tensors_and_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let picture = picture(folder.path());
    let service = Service::start();
    let mut outputs = Vec::new();
    for (number, path) in [
        &["--path", "burst"][..],
        &["--path", "sync"],
        &["--path", "async"],
        &["--path", "fenced"],
        &["--path", "in-process"],
        &["--socket", service.path()],
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.path().join(format!("deep/out{number}"));
        let args = ["run", "--input", text(&picture), "--output", text(&out), "--json"];
        let output = run(&[&args, path].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report = parse(&output);
        let [tensor] = report["outputs"].as_array().unwrap().as_slice() else {
            panic!("one output: {report}")
        };
        let bytes = fs::read(tensor["file"].as_str().unwrap()).unwrap();
        assert_eq!(tensor["file"], text(&out.join("output0.bin")));
        assert_eq!(tensor["bytes"], bytes.len());
        assert_eq!(report["inputs"][0]["shape"], json!([1, INPUT[0], INPUT[1], INPUT[2]]));
        assert_eq!(report["inputs"][0]["type"], "int8");
        assert_eq!(report["states"], json!([]));
        assert!(report["driver_us"].is_u64(), "{report}");
        outputs.push(bytes);
    }
    assert!(outputs.iter().all(|bytes| *bytes == outputs[0] && !bytes.is_empty()));
    let model = repository().join("models/shapes.tflite");
    let out = folder.path().join("out");
    let args = ["run", text(&model), "--input", text(&picture), "--output", text(&out)];
    let output = run(&args);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("output0.bin: int8 ["), "{said}");
    assert_eq!(
        fs::read(out.join("output0.bin")).unwrap(),
        outputs[0],
        "the same model from a file"
    );
}

fn wrong_inputs_are_refused_with_what_they_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let picture = picture(folder.path());
    let short = folder.path().join("short.rgb");
    fs::write(&short, [0; 100]).unwrap();
    let (picture, short) = (text(&picture), text(&short));
    let out = folder.path().join("out");
    let size: usize = INPUT.iter().product();
    for (args, parts) in [
        (
            &["--input", short][..],
            &[
                "input 0 (",
                &format!("takes {size} bytes, int8 [1, 64, 64, 3]"),
                "short.rgb has 100",
            ][..],
        ),
        (&["--input", picture, picture], &["the model has 1 input (", "2 files are given"]),
        (&["--input", "/nonexistent/x"], &["input 0", "/nonexistent/x"]),
        (&["--input", picture, "--state", short], &["the model has 0 states", "1 file is given"]),
        (&["--input", picture, "--socket", "/nonexistent/s"], &["/nonexistent/s"]),
        (&["--input", picture, "--path", "in-process", "--socket", "x"], &["in-process"]),
        (&["/nonexistent/m.tflite", "--input", picture], &["/nonexistent/m.tflite"]),
    ] {
        let args = [&["run", "--output", text(&out), "--json"], args].concat();
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        let error = parse(&output)["error"].as_str().unwrap().to_owned();
        for part in parts {
            assert!(error.contains(part), "{args:?}: no {part:?} in: {error}");
        }
        assert!(!out.exists(), "nothing is written: {args:?}");
    }
}

/// A run that begins with the states of the one before goes on where that ended.
fn states_are_written_and_can_be_given_back(root: &Path) {
    let model = root.join("models/kws_svdf_rnn_float.tflite");
    let frames = fs::read(root.join("inputs/raw/speech_logmel80.f32")).unwrap();
    let want = fs::read(root.join("golden/kws_svdf_rnn_float/stream_at_0_n120.bin")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let states: Vec<PathBuf> =
        (0..3).map(|at| folder.path().join(format!("state{at}.bin"))).collect();
    let floats = |bytes: &[u8]| -> Vec<f32> {
        let chunks = bytes.as_chunks::<4>().0.iter();
        chunks.map(|chunk| f32::from_le_bytes(*chunk)).collect()
    };
    for (step, (frame, want)) in frames.chunks(320).zip(want.chunks(48)).take(4).enumerate() {
        let file = folder.path().join("frame.f32");
        fs::write(&file, frame).unwrap();
        let mut args = vec!["run", text(&model), "--input", text(&file)];
        args.extend(["--output", text(folder.path()), "--path", "in-process"]);
        if step > 0 {
            args.push("--state");
            args.extend(states.iter().map(|state| text(state)));
        }
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let got = floats(&fs::read(folder.path().join("output0.bin")).unwrap());
        for (got, want) in got.iter().zip(floats(want)) {
            assert!((got - want).abs() <= 1e-5 + 1e-4 * want, "frame {step}: {got} {want}");
        }
    }
}

/// In the file the classes are int64; the driver has them as int32.
fn tensors_have_the_types_of_the_model_file(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let model = root.join("models/deeplabv3_mnv2_dm05_513_quant.tflite");
    let picture = root.join("inputs/raw/pets_513.rgb");
    let out = text(folder.path());
    let output = run(&["run", text(&model), "--input", text(&picture), "--output", out, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let tensor = &parse(&output)["outputs"][0];
    assert_eq!((&tensor["type"], &tensor["bytes"]), (&json!("int64"), &json!(513 * 513 * 8)));
    let classes = fs::read(folder.path().join("output0.bin")).unwrap();
    let want = fs::read(root.join("golden/deeplabv3_mnv2_dm05_513_quant/pets_513.bin")).unwrap();
    let classes: Vec<u64> =
        classes.as_chunks::<8>().0.iter().map(|chunk| u64::from_ne_bytes(*chunk)).collect();
    assert!(classes.iter().copied().eq(want.iter().map(|class| u64::from(*class))));
}

/// RELU of four values, of which `expected` should come out, as a vector file.
fn vector_file(folder: &Path, expected: [f32; 4]) -> PathBuf {
    let operand = |lifetime: &str, consumers: u32, offset: u32| {
        json!({
            "type": "TENSOR_FLOAT32", "dims": [4], "lifetime": lifetime,
            "consumers": consumers, "data": [offset, 16],
        })
    };
    let test = json!({
        "name": "relu", "relaxed": false, "expect_failure": false, "multinomial_tolerance": 0.0,
        "main": {
            "operands": [operand("SUBGRAPH_INPUT", 1, 0), operand("SUBGRAPH_OUTPUT", 0, 16)],
            "operations": [{ "type": "RELU", "inputs": [0], "outputs": [1] }],
            "inputs": [0],
            "outputs": [1],
        },
        "referenced": [],
        "vts": [],
    });
    let values = [-1.5_f32, 0.0, 2.0, 3.5].into_iter().chain(expected);
    let blob: Vec<u8> = values.flat_map(f32::to_ne_bytes).collect();
    let pack = |ending: &str, bytes: &[u8]| {
        let path = folder.join(format!("relu.{ending}.gz"));
        let file = fs::File::create(&path).unwrap();
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap();
        path
    };
    pack("bin", &blob);
    pack("json", json!({ "tests": [test] }).to_string().as_bytes())
}

fn a_vector_file_has_its_inputs_with_it_and_says_what_should_come_out() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let right = vector_file(folder.path(), [0.0, 0.0, 2.0, 3.5]);
    for path in ["burst", "in-process"] {
        let output = run(&["run", text(&right), "--output", text(&out), "--path", path, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report = parse(&output);
        assert_eq!((&report["model"], &report["unexpected"]), (&json!("relu"), &json!(null)));
        let bytes = fs::read(out.join("output0.bin")).unwrap();
        assert_eq!(bytes, [0.0_f32, 0.0, 2.0, 3.5].map(f32::to_ne_bytes).concat());
    }
    let wrong = vector_file(folder.path(), [0.0, 0.0, 2.0, 4.5]);
    let output = run(&["run", text(&wrong), "--output", text(&out)]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("not what the file expects: output 0: element 3 is 3.5e0"), "{said}");
    // What it has need not be given, and cannot be.
    let input = picture(folder.path());
    let output = run(&["run", text(&right), "--input", text(&input), "--output", text(&out)]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
