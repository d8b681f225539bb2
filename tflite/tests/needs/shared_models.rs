//! The models of `../shared/models`, against what its manifest says of them.

use std::collections::BTreeMap;
use std::path::Path;

use burst_hal::{OperandType, OperationType, validate::validate_model};
use burst_testing::shared;
use burst_tflite::{Imported, Outcome, Part, Verdict, cut, import, import_part, inspect, spectrum};
use serde_json::Value;

use crate::support::assert_valid;

burst_testing::tests![
    operators_are_those_of_the_manifest(&shared("")?),
    sizes_of_the_graphs_are_as_expected(&shared("")?),
    inputs_and_outputs_are_those_of_the_manifest(&shared("")?),
    no_convolution_reads_float16(&shared("")?),
    quantized_biases_have_the_scale_that_nnapi_wants(&shared("")?),
    the_part_behind_a_refused_operator_can_be_imported(&shared("")?),
    the_part_before_a_refused_operator_can_be_imported(&shared("")?),
    the_spectrum_of_an_audio_model_is_found(&shared("")?),
    damaged_real_models_never_panic(&shared("")?),
];

fn models(folder: &Path) -> Vec<(String, Value, Vec<u8>)> {
    let manifest = std::fs::read(folder.join("models/MANIFEST.json")).expect("the manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let models = manifest["models"].as_array().expect("a list");
    models
        .iter()
        .map(|model| {
            let file = folder.join(model["file"].as_str().expect("a file name"));
            let name = model["name"].as_str().expect("a name").to_owned();
            (name, model.clone(), std::fs::read(file).expect("the model"))
        })
        .collect()
}

fn model(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(format!("models/{name}.tflite"))).expect("the model")
}

fn operators_are_those_of_the_manifest(folder: &Path) {
    for (name, manifest, bytes) in models(folder) {
        let verdicts = inspect(&bytes).expect("a readable file").verdicts;
        let mut found = BTreeMap::<String, u64>::new();
        for verdict in &verdicts {
            *found.entry(verdict.operator.clone()).or_default() += 1;
        }
        let mut want = BTreeMap::<String, u64>::new();
        for row in manifest["ops"].as_array().expect("a list") {
            let operator = row["tflite_op"].as_str().expect("a name");
            let operator = operator.strip_prefix("CUSTOM:").unwrap_or(operator);
            *want.entry(operator.to_owned()).or_default() +=
                row["count"].as_u64().expect("a count");
        }
        assert_eq!(found, want, "{name}");
        assert_verdicts_agree(&name, &manifest, &verdicts);
    }
}

/// What the manifest says has no NNAPI form is refused, and nothing else; the rest maps to the
/// operation that it names, or, where only the scale changes, to one that is exact.
fn assert_verdicts_agree(name: &str, manifest: &Value, verdicts: &[Verdict]) {
    for row in manifest["ops"].as_array().expect("a list") {
        let operator = row["tflite_op"].as_str().expect("a name");
        let operator = operator.strip_prefix("CUSTOM:").unwrap_or(operator);
        for verdict in verdicts.iter().filter(|verdict| verdict.operator == operator) {
            let what = format!("{name}: {} {operator}", verdict.index);
            match (&verdict.outcome, row["nnapi_op"].as_str()) {
                (Outcome::Refused(_), None) => {}
                // Step by step there is a form after all.
                (Outcome::Mapped(_), None) => {
                    assert!(verdict.notes.contains(&burst_tflite::Note::StepsUnrolled), "{what}");
                }
                // Beside an operator without form its operands have none either.
                (Outcome::Refused(_), Some(_)) => {
                    assert_eq!((name, operator), ("yamnet_wavin_int8", "RESHAPE"), "{what}");
                }
                (Outcome::Folded, _) => assert_eq!(row["nnapi_level"], "fold", "{what}"),
                (Outcome::Mapped(operations), Some(operation)) => {
                    let exact = verdict.notes.contains(&burst_tflite::Note::RescaledExactly);
                    let named = operations.iter().any(|found| found.name() == operation);
                    assert!(named || exact, "{what}: {operations:?}");
                }
                (outcome, operation) => panic!("{what}: {outcome}, manifest {operation:?}"),
            }
        }
    }
}

fn sizes_of_the_graphs_are_as_expected(folder: &Path) {
    // Name, operations, operands, states.
    for (name, operations, operands, states) in [
        ("mobilenet_v1_0.25_224_float", 31, 95, 0),
        ("mobilenet_v1_0.25_128_quant", 31, 95, 0),
        ("mobilenet_v2_1.0_224_quant", 66, 180, 0),
        ("mobilenet_v2_1.0_224_ptq_int8", 70, 185, 0),
        ("mobilenet_v2_1.0_224_float_fp16w", 66, 180, 0),
        ("ssd_mobilenet_v1_coco_quant", 69, 192, 0),
        ("deeplabv3_257_float", 70, 190, 0),
        ("deeplabv3_mnv2_dm05_513_quant", 72, 193, 0),
        ("edsr_f32b5_240x135_float", 22, 53, 0),
        ("edsr_f32b5_240x135_int8", 22, 55, 0),
        ("tts_lstm_float", 6, 68, 4),
        ("asr_lstm_float", 5, 66, 4),
        ("kws_svdf_rnn_float", 5, 28, 3),
    ] {
        let imported = import(&model(folder, name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let graph = &imported.model.main;
        let found = (graph.operations.len(), graph.operands.len(), imported.states.len());
        assert_eq!(found, (operations, operands, states), "{name}");
        assert_valid(&imported.model, name);
    }
}

fn inputs_and_outputs_are_those_of_the_manifest(folder: &Path) {
    for (name, manifest, bytes) in models(folder) {
        let Ok(imported) = import(&bytes) else {
            assert_eq!(manifest["nnapi"], "partial", "{name}");
            continue;
        };
        let steps = imported.verdicts.iter().flat_map(|verdict| &verdict.notes);
        let unrolled = steps.into_iter().any(|note| *note == burst_tflite::Note::StepsUnrolled);
        assert!(manifest["nnapi"] == "full" || unrolled, "{name}");
        for (infos, want) in
            [(&imported.inputs, &manifest["inputs"]), (&imported.outputs, &manifest["outputs"])]
        {
            for (at, want) in want.as_array().expect("a list").iter().enumerate() {
                let info = &infos[at];
                assert_eq!(info.name, want["name"], "{name}");
                assert_eq!(info.file_type.to_string(), want["dtype"], "{name}: {}", info.name);
                let shape: Vec<u32> =
                    serde_json::from_value(want["shape"].clone()).expect("a shape");
                assert_eq!(info.dims.as_slice(), shape, "{name}: {}", info.name);
                if let Some(scale) = want["quant"]["scale"].as_f64() {
                    assert_eq!(f64::from(info.scale), scale, "{name}: {}", info.name);
                    assert_eq!(info.zero_point, want["quant"]["zero_point"], "{name}");
                }
            }
            let files = want.as_array().expect("a list").len();
            assert_eq!(infos.len(), files + imported.states.len(), "{name}");
        }
        assert_states_pair(&name, &imported);
    }
}

fn assert_states_pair(name: &str, imported: &Imported) {
    for state in &imported.states {
        let (before, after) =
            (&imported.inputs[state.input_index], &imported.outputs[state.output_index]);
        assert_eq!(before, after, "{name}");
    }
}

fn no_convolution_reads_float16(folder: &Path) {
    let imported = import(&model(folder, "mobilenet_v2_1.0_224_float_fp16w")).expect("a model");
    let folded = imported.verdicts.iter().filter(|v| v.outcome == Outcome::Folded).count();
    assert_eq!(folded, 53);
    let operands = &imported.model.main.operands;
    assert!(operands.iter().all(|operand| operand.ty != OperandType::TensorFloat16));
}

fn quantized_biases_have_the_scale_that_nnapi_wants(folder: &Path) {
    for (name, _, bytes) in models(folder) {
        let Ok(imported) = import(&bytes) else { continue };
        let graph = &imported.model.main;
        for operation in &graph.operations {
            use OperationType::{Conv2d, DepthwiseConv2d, FullyConnected};
            if !matches!(operation.ty, Conv2d | DepthwiseConv2d | FullyConnected) {
                continue;
            }
            let operand = |at: usize| &graph.operands[operation.inputs[at] as usize];
            assert_eq!(operand(2).scale, operand(0).scale * operand(1).scale, "{name}");
            assert_eq!(operand(2).zero_point, 0, "{name}");
        }
    }
}

fn the_part_behind_a_refused_operator_can_be_imported(folder: &Path) {
    let name = "yamnet_wavin_int8";
    let bytes = model(folder, name);
    let found = cut(&bytes).expect("readable").expect("a cut");
    assert_eq!(found.operators_before, 10);
    assert_eq!(found.from, ["magnitude_spectrogram"]);
    let names: Vec<&str> = found.from.iter().map(String::as_str).collect();
    let ends: Vec<&str> = found.to.iter().map(String::as_str).collect();
    let part = import_part(&bytes, Part { from: &names, to: &ends }).expect("the part");
    assert_valid(&part.model, name);
    assert_eq!(part.model.main.operations.len(), 37);
    let outside = part.verdicts.iter().filter(|v| v.outcome == Outcome::Outside).count();
    assert_eq!(outside, 10);
    for whole in ["mobilenet_v1_0.25_128_quant", "lstm_mnist_int8"] {
        assert_eq!(cut(&model(folder, whole)).expect("readable"), None, "{whole}");
    }
}

fn the_part_before_a_refused_operator_can_be_imported(folder: &Path) {
    let bytes = model(folder, "yamnet_wavin_int8");
    let part = Part { from: &["magnitude_spectrogram"], to: &["tfl.quantize"] };
    let imported = import_part(&bytes, part).expect("the front of the back");
    let found: Vec<&str> = imported.model.main.operations.iter().map(|o| o.ty.name()).collect();
    assert_eq!(found, ["FULLY_CONNECTED", "LOG", "RESHAPE", "QUANTIZE"]);
    let unknown = Part { from: &["no such tensor"], to: &[] };
    assert!(import_part(&bytes, unknown).is_err());
}

fn the_spectrum_of_an_audio_model_is_found(folder: &Path) {
    let bytes = model(folder, "yamnet_wavin_int8");
    let found = spectrum(&bytes).expect("readable").expect("a spectrum");
    assert_eq!((found.rows, found.row_length, found.fft_length), (96, 512, 512));
    assert_eq!(found.magnitudes, "magnitude_spectrogram");
    let front = Part { from: &[], to: &[&found.samples] };
    let front = import_part(&bytes, front).expect("the part before");
    assert_eq!(front.outputs[0].dims.as_slice(), [96, 1, 512]);
    assert_eq!(spectrum(&model(folder, "asr_lstm_float")).expect("readable"), None);
}

fn damaged_real_models_never_panic(folder: &Path) {
    let good = model(folder, "lstm_mnist_int8");
    for at in (0..good.len()).step_by(3) {
        let _ = import(&good[..at]);
        let mut bad = good.clone();
        bad[at] ^= 0xa5;
        let _ = inspect(&bad);
        if let Ok(imported) = import(&bad) {
            let version = burst_hal::HalVersion::V1_3;
            validate_model(&imported.model, version).expect("what is imported is valid");
        }
    }
}
