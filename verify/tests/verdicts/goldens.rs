//! Goldens of a folder of the test's own, on a device that is right or has one fault.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use burst_hal::session::{HeapAllocator, PoolAllocator, StateBinding};
use burst_hal::{
    Dimensions, HalVersion, Model, Operand, OperandLifeTime, OperandType, Operation, OperationType,
    Route, Subgraph, validate::validate_model,
};
use burst_verify::models::{
    Bridge, Class, DeviceRoute, Folder, GoldenReport, ImportedModel, Importer, OutputTensor,
    Pipeline, StatefulModel, run_goldens,
};
use burst_verify::{DeviceLease, Target};
use serde_json::{Value, json};

use crate::support::{Fault, Floor};

const INPUT: [f32; 4] = [-1.5, 0.0, 2.25, 3.5];
const RIGHT: [f32; 4] = [-2.0, 0.0, 2.0, 3.0];
const WRONG: [f32; 4] = [-2.0, 0.0, 2.0, 4.0];

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn manifest() -> Value {
    json!({ "models": [{
        "name": "floor", "file": "models/floor.tflite", "strict_reachable": true,
        "inputs": [{ "dtype": "float32", "shape": [4] }],
        "goldens": ["golden/floor/first.json"],
        "yardstick": { "tolerance": { "kind": "float", "abs": 0.0, "rel": 0.0 } },
    }] })
}

fn golden() -> Value {
    json!({
        "input": { "file": "inputs/raw/first.f32", "transform": "none" },
        "bin": "first.bin",
        "outputs": [{ "dtype": "float32", "shape": [4], "offset": 0, "bytes": 16 }],
    })
}

/// A folder with one model and one golden of it.
fn write(root: &Path, manifest: &Value, golden: &Value, want: &[f32]) {
    for folder in ["models", "golden/floor", "inputs/raw"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("models/MANIFEST.json"), manifest.to_string()).unwrap();
    fs::write(root.join("models/floor.tflite"), "FLOOR").unwrap();
    fs::write(root.join("inputs/raw/first.f32"), floats(&INPUT)).unwrap();
    fs::write(root.join("golden/floor/first.json"), golden.to_string()).unwrap();
    fs::write(root.join("golden/floor/first.bin"), floats(want)).unwrap();
}

/// FLOOR of numbers in this shape; the shape of the result is left for the execution to tell.
fn floor(shape: &[u32]) -> StatefulModel {
    let operand = |lifetime, consumers, dimensions: &[u32]| {
        let mut operand = Operand::new(OperandType::TensorFloat32, lifetime);
        operand.dimensions = Dimensions::from_slice(dimensions);
        operand.number_of_consumers = consumers;
        operand
    };
    let model = Model {
        main: Subgraph {
            operands: vec![
                operand(OperandLifeTime::SubgraphInput, 1, shape),
                operand(OperandLifeTime::SubgraphOutput, 0, &[]),
            ],
            operations: vec![Operation {
                ty: OperationType::Floor,
                inputs: vec![0],
                outputs: vec![1],
            }],
            input_indexes: vec![0],
            output_indexes: vec![1],
        },
        ..Model::default()
    };
    validate_model(&model, HalVersion::LATEST).unwrap();
    StatefulModel { model, states: Vec::new() }
}

/// Every file is FLOOR, in so many parts.
struct Floors(usize);

impl Importer for Floors {
    fn import(&self, file: &[u8], from: &[&str], _to: &[&str]) -> Result<ImportedModel, String> {
        assert_eq!(file, b"FLOOR");
        if self.0 == 0 {
            return Err("nothing maps this operator".to_owned());
        }
        let parts = if from.is_empty() { self.0 } else { 1 };
        let bridge = || -> Box<dyn Bridge> { Box::new(Halve) };
        Ok(ImportedModel {
            parts: vec![floor(&[4]); parts],
            bridges: (1..parts).map(|_| bridge()).collect(),
        })
    }
}

/// Halves every number between two parts.
struct Halve;

impl Bridge for Halve {
    fn cross(&mut self, outputs: &[OutputTensor]) -> Result<Vec<Vec<u8>>, String> {
        let [output] = outputs else { return Err(format!("{} outputs", outputs.len())) };
        let (chunks, _) = output.bytes.as_chunks::<4>();
        let halves = chunks.iter().map(|chunk| f32::from_ne_bytes(*chunk) / 2.0);
        Ok(vec![floats(&halves.collect::<Vec<_>>())])
    }
}

struct Own(Floor, Arc<dyn PoolAllocator>);

impl DeviceLease for Own {
    fn target(&self) -> Target<'_> {
        Target { device: &self.0, memory: &self.1 }
    }
}

fn device(name: &'static str, fault: Fault, route: Route) -> DeviceRoute<'static> {
    DeviceRoute { name, lease: Box::new(Own(Floor(fault), Arc::new(HeapAllocator))), route }
}

fn run(root: &Path, importer: &dyn Importer, second: Fault) -> GoldenReport {
    let folder = Folder::open(root).unwrap();
    let routes = || {
        let one = device("one", Fault::None, Route::Synchronous);
        Ok(vec![one, device("two", second, Route::Burst)])
    };
    run_goldens(&folder, importer, 2, 2, routes, |_| {}).unwrap()
}

/// The only result of a run of this golden on sound devices.
fn class_of(manifest: &Value, golden: &Value, want: &[f32]) -> (Class, Option<f64>, String) {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), manifest, golden, want);
    only(run(root.path(), &Floors(1), Fault::None))
}

fn only(mut report: GoldenReport) -> (Class, Option<f64>, String) {
    assert_eq!(report.goldens, 1);
    let result = report.results.pop().unwrap();
    assert_eq!((result.model.as_str(), result.input.as_str()), ("floor", "first"));
    (result.class, result.max_diff, result.why.unwrap_or_default())
}

#[test]
fn right_values_are_strict_and_the_report_has_these_fields_and_no_others() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &manifest(), &golden(), &RIGHT);
    let report = run(root.path(), &Floors(1), Fault::None);
    assert!(report.is_sound());
    let want = json!({
        "goldens": 1, "strict": 1, "fair": 0, "failed": 0,
        "results": [{ "model": "floor", "input": "first", "class": "strict", "max_diff": 0.0 }],
    });
    assert_eq!(serde_json::to_value(&report).unwrap(), want);
}

#[test]
fn a_wrong_value_fails_with_its_position() {
    let (class, max_diff, why) = class_of(&manifest(), &golden(), &WRONG);
    assert_eq!((class, max_diff), (Class::Failed, Some(1.0)));
    let want = "1 of 4 values are off, first execution 0, output 0, value 3: 3, reference 4";
    assert_eq!(why, want);
}

#[test]
fn fair_is_enough_only_where_strict_is_out_of_reach() {
    let mut manifest = manifest();
    manifest["models"][0]["yardstick"]["tolerance"] =
        json!({ "kind": "quantised", "fair": { "max_abs": 1.0, "min_equal_fraction": 0.75 } });
    let (class, _, why) = class_of(&manifest, &golden(), &WRONG);
    assert_eq!(class, Class::Failed);
    assert!(why.starts_with("fair, but strict is in reach: 1 of 4"), "{why}");
    manifest["models"][0]["strict_reachable"] = json!(false);
    assert_eq!(class_of(&manifest, &golden(), &WRONG).0, Class::Fair);
    assert_eq!(class_of(&manifest, &golden(), &RIGHT).0, Class::Strict);
    let unfair = [-2.0, 0.0, 2.0, 5.0];
    assert_eq!(class_of(&manifest, &golden(), &unfair).0, Class::Failed);
}

#[test]
fn all_routes_have_to_give_the_same_bytes() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &manifest(), &golden(), &RIGHT);
    let of = |fault| only(run(root.path(), &Floors(1), fault));
    let (class, _, why) = of(Fault::WrongValue);
    assert_eq!(class, Class::Failed);
    assert_eq!(why, "two differs from one in output 0 of execution 0");
    let (class, _, why) = of(Fault::Panics);
    assert_eq!(class, Class::Failed);
    assert!(why.starts_with("two: panicked: "), "{why}");
    let (_, _, why) = of(Fault::HasButRefuses);
    assert!(why.starts_with("two: the device does not take the model"), "{why}");
}

#[test]
fn a_model_that_cannot_be_imported_fails_and_says_why() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &manifest(), &golden(), &RIGHT);
    let result = only(run(root.path(), &Floors(0), Fault::None));
    assert_eq!(result, (Class::Failed, None, "nothing maps this operator".to_owned()));
}

#[test]
fn what_no_device_computes_is_computed_between_two_parts() {
    let root = tempfile::tempdir().unwrap();
    // floor(floor(x) / 2)
    write(root.path(), &manifest(), &golden(), &[-1.0, 0.0, 1.0, 1.0]);
    assert_eq!(only(run(root.path(), &Floors(2), Fault::None)).0, Class::Strict);
}

#[test]
fn a_part_behind_a_boundary_is_run_by_itself() {
    let with_boundary = |offset: usize| {
        let mut golden = golden();
        golden["boundary"] = json!({ "bin": "boundary.bin", "tensors": [
            { "name": "edge", "dtype": "float32", "offset": offset, "bytes": 16 },
        ] });
        golden
    };
    // Floored they are the golden's, not floored, and floored something else.
    let edges = [RIGHT, [-1.5, 0.5, 2.0, 3.0], [-2.0, 0.0, 2.0, 9.0]].concat();
    let of = |offset: usize| {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &manifest(), &with_boundary(offset), &RIGHT);
        fs::write(root.path().join("golden/floor/boundary.bin"), floats(&edges)).unwrap();
        only(run(root.path(), &Floors(1), Fault::None))
    };
    assert_eq!(of(0).0, Class::Strict);
    let (class, _, why) = of(16);
    assert_eq!(class, Class::Failed);
    assert!(why.starts_with("the part before edge: 2 of 4 values are off"), "{why}");
    let (class, _, why) = of(32);
    assert_eq!(class, Class::Failed);
    assert!(why.starts_with("the part behind edge: 1 of 4 values are off"), "{why}");
}

#[test]
fn outputs_of_unknown_size_get_the_room_that_they_need() {
    let values: Vec<f32> = (0..5000u16).map(|value| f32::from(value) + 0.5).collect();
    let mut model = floor(&[5000]);
    let own = Own(Floor(Fault::None), Arc::new(HeapAllocator));
    let open = |model: &StatefulModel, route| Pipeline::open(own.target(), &whole(model), route);
    let mut pipeline = open(&model, Route::Burst).unwrap();
    for _ in 0..2 {
        let outputs = pipeline.execute(&[floats(&values)], &mut []).unwrap();
        assert_eq!(outputs[0].dimensions.as_slice(), [5000]);
        let want: Vec<f32> = values.iter().map(|value| value.floor()).collect();
        assert_eq!(outputs[0].bytes, floats(&want));
    }
    let error = pipeline.execute(&[floats(&INPUT)], &mut []).unwrap_err().to_string();
    assert_eq!(error, "input 0 has 16 bytes, the model takes 20000");
    model.model.main.operands[0].dimensions = Dimensions::from_slice(&[0]);
    let Err(error) = open(&model, Route::Synchronous) else { panic!("an open input") };
    assert_eq!(error.to_string(), "input 0 has the open shape [0]");
}

fn whole(model: &StatefulModel) -> ImportedModel {
    ImportedModel::whole(model.clone())
}

/// A state begins at the zero point of its type, unless it is given another value.
#[test]
fn a_state_of_quant16_asymm_begins_at_its_zero_point() {
    let mut model = floor(&[4]);
    for operand in &mut model.model.main.operands {
        (operand.ty, operand.scale) = (OperandType::TensorQuant16Asymm, 0.5);
        operand.zero_point = 0x0A0B;
        operand.dimensions = Dimensions::from_slice(&[4]);
    }
    model.states.push(StateBinding { input: 0, output: 0 });
    let own = Own(Floor(Fault::TakesAnyType), Arc::new(HeapAllocator));
    let mut pipeline = Pipeline::open(own.target(), &whole(&model), Route::Burst).unwrap();
    let state = |pipeline: &Pipeline| pipeline.states().unwrap().remove(0);
    let zero = 0x0A0B_u16.to_ne_bytes().repeat(4);
    let begun = state(&pipeline);
    assert_eq!((begun.ty, begun.bytes), (OperandType::TensorQuant16Asymm, zero));
    pipeline.set_states(&[vec![7; 8]]).unwrap();
    assert_eq!(state(&pipeline).bytes, [7; 8]);
    let error = pipeline.set_states(&[vec![7; 4]]).unwrap_err().to_string();
    assert_eq!(error, "input 0 has 4 bytes, the model takes 8");
}

#[test]
fn executions_of_one_golden_come_from_a_stream_of_frames() {
    let mut golden = golden();
    golden["input"] = json!({
        "file": "inputs/raw/frames.f32", "frame_offset": 1, "frames": 2,
        "transform": "one frame per execution, state carried; state starts at zero",
    });
    golden["outputs"][0] = json!({ "dtype": "float32", "shape": [2, 4], "offset": 4, "bytes": 32 });
    let root = tempfile::tempdir().unwrap();
    let want = [&[99.0][..], &RIGHT, &[-3.0, 0.0, 4.0, 7.0]].concat();
    write(root.path(), &manifest(), &golden, &want);
    let frames = [&[0.5f32; 4][..], &INPUT, &[-2.5, 0.25, 4.5, 7.0]].concat();
    fs::write(root.path().join("inputs/raw/frames.f32"), floats(&frames)).unwrap();
    assert_eq!(only(run(root.path(), &Floors(1), Fault::None)).0, Class::Strict);
    fs::write(root.path().join("inputs/raw/frames.f32"), floats(&frames[..11])).unwrap();
    let error = Folder::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("frames.f32 has 44 bytes") && error.contains("needs 48"), "{error}");
}

#[test]
fn only_models_that_are_asked_for_are_kept() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &manifest(), &golden(), &RIGHT);
    let mut folder = Folder::open(root.path()).unwrap();
    folder.keep(&["floor"], root.path()).unwrap();
    assert_eq!(folder.golden_count(), 1);
    let error = folder.keep(&["ceiling"], root.path()).unwrap_err().to_string();
    assert!(error.contains("ceiling is not among the models"), "{error}");
}

#[test]
fn folders_that_are_none_and_goldens_that_are_damaged_are_named() {
    let root = tempfile::tempdir().unwrap();
    let wrong = |change: &dyn Fn(&mut Value, &mut Value), part: &str| {
        let (mut manifest, mut golden) = (manifest(), golden());
        change(&mut manifest, &mut golden);
        write(root.path(), &manifest, &golden, &RIGHT);
        let error = Folder::open(root.path()).unwrap_err().to_string();
        assert!(error.contains(part), "no {part:?} in: {error}");
        assert!(error.contains(&root.path().display().to_string()), "no path in: {error}");
    };
    let error = Folder::open(root.path()).unwrap_err().to_string();
    assert!(error.ends_with("no models/MANIFEST.json in this folder"), "{error}");
    wrong(&|_, g| g["input"]["transform"] = json!("sepia"), "unknown transform \"sepia\"");
    wrong(&|_, g| g["outputs"][0]["stored"] = json!("the middle"), "unknown selection");
    wrong(
        &|_, g| g["outputs"][0]["offset"] = json!(4),
        "first.bin has 16 bytes, output 0 needs 20",
    );
    wrong(&|_, g| g["outputs"][0]["bytes"] = json!(12), "bytes of an output: 12, expected 16");
    wrong(&|_, g| g["outputs"][0]["dtype"] = json!("bfloat16"), "bfloat16");
    wrong(&|_, g| g["bin"] = json!("none.bin"), "cannot read");
    wrong(&|_, g| g["input"]["file"] = json!("inputs/none.f32"), "inputs/none.f32");
    wrong(&|_, g| g["input"]["frames"] = json!(0), "frames: 0");
    wrong(&|_, g| g["input"]["transform"] = json!("f32 = u8 (0..255)"), "64, expected 16");
    wrong(&|m, _| m["models"][0]["goldens"] = json!(["golden/none.json"]), "golden/none.json");
    wrong(&|m, _| m["models"][0]["inputs"] = json!([]), "inputs of a model with goldens: 0");
    wrong(&|m, _| m["models"][0]["yardstick"]["tolerance"]["kind"] = json!("loose"), "loose");
    write(root.path(), &manifest(), &golden(), &RIGHT);
    let file = root.path().join("golden/floor/first.json");
    let text = fs::read(&file).unwrap();
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    let error = Folder::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("first.json"), "{error}");
}
