//! TensorFlow Lite for Python, as it comes, over the library: where somebody has set it up.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use burst_testing::{Missing, shared};

use crate::library_folder;

burst_testing::tests![
    the_model_of_the_repository_computes_the_same(&python()?),
    a_picture_is_classified_through_the_delegate_as_without_it(&python()?, &shared("")?),
    recurrent_models_compute_the_same_from_the_states_that_they_begin_with(
        &python()?,
        &shared("models")?
    ),
];

/// The Python of an environment that `examples/tflite/setup` has made.
fn python() -> Result<PathBuf, Missing> {
    let what = "the environment `nnapi` of examples/tflite/setup, whose bin/python BURST_TFLITE_PYTHON names";
    std::env::var_os("BURST_TFLITE_PYTHON").map(PathBuf::from).ok_or_else(|| Missing::new(what))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The lines that one of the examples prints.
fn said(python: &Path, example: &str, arguments: &[&OsStr]) -> Vec<String> {
    let output = Command::new(python)
        .arg(repository().join("examples/tflite").join(example))
        .args(arguments)
        .env_remove("BURST_SOCKET")
        .output()
        .expect("python starts");
    let said = String::from_utf8(output.stdout).expect("text");
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}\n{said}{complained}", output.status);
    said.lines().map(str::to_owned).collect()
}

/// Random inputs by the delegate and without it; the first line of what is said of them.
fn compared(python: &Path, model: &Path) -> String {
    let library = library_folder();
    let arguments = [model.as_os_str(), "--library".as_ref(), library.as_os_str()];
    let lines = said(python, "compare.py", &arguments);
    assert_eq!(lines.last().map(String::as_str), Some("the same within the tolerance"));
    assert!(lines.len() > 3, "three inputs: {lines:?}");
    lines[0].clone()
}

fn the_model_of_the_repository_computes_the_same(python: &Path) {
    let first = compared(python, &repository().join("models/shapes.tflite"));
    assert_eq!(first, "input 0, output 0: all 10 equal");
}

/// The client leaves states as they are: an input after the first begins where the model began.
fn recurrent_models_compute_the_same_from_the_states_that_they_begin_with(
    python: &Path,
    models: &Path,
) {
    for model in ["asr_lstm_float", "tts_lstm_float", "kws_svdf_rnn_float"] {
        compared(python, &models.join(model).with_extension("tflite"));
    }
}

/// The lines of one run: the answers, then how long it took.
fn classified(python: &Path, data: &Path, model: &str, options: &[&str]) -> Vec<String> {
    let paths = [
        data.join("models").join(model),
        data.join("inputs/images/cat.jpg"),
        "--labels".into(),
        data.join("inputs/imagenet_labels.txt"),
    ];
    let options = options.iter().map(OsStr::new);
    let arguments: Vec<&OsStr> = paths.iter().map(|path| path.as_os_str()).chain(options).collect();
    said(python, "classify.py", &arguments)
}

fn a_picture_is_classified_through_the_delegate_as_without_it(python: &Path, data: &Path) {
    let library = library_folder();
    let library = library.to_str().expect("a path");
    for model in ["mobilenet_v1_0.25_128_quant.tflite", "mobilenet_v1_0.25_224_float.tflite"] {
        let plain = classified(python, data, model, &["--plain"]);
        assert!(
            plain.len() > 3 && plain.last().expect("a line").contains("without delegate"),
            "{plain:?}"
        );
        for device in [&[][..], &["--device", "cpu"]] {
            let ours = classified(python, data, model, &[&["--library", library], device].concat());
            assert_eq!(ours[..3], plain[..3], "{model} {device:?}");
            assert!(ours.last().expect("a line").contains("with delegate"), "{ours:?}");
        }
    }
}
