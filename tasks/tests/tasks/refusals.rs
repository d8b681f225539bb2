//! What is wrong is told by name.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;

use burst_driver::CpuDevice;
use burst_hal::{Device, Failure, Model, PrepareOptions, PreparedModel};
use burst_tasks::{
    AudioClassifier, ImageClassifier, ObjectDetector, RecurrentStream, TaskError, TaskModel,
};

use crate::support::{FLOAT32, File, INT32, Operator, Tensor};
use crate::{named, shapes};

/// A device that runs everything but the second operation.
struct Narrow;

impl Device for Narrow {
    fn name(&self) -> &str {
        "narrow"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok((0..model.main.operations.len()).map(|index| index != 1).collect())
    }

    fn prepare_model(
        &self,
        _: &Model,
        _: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        Err(Failure::invalid("no"))
    }
}

fn text(error: &TaskError) -> String {
    // What a `main` says that returns it is the same.
    assert_eq!(format!("{error:?}"), error.to_string());
    error.to_string()
}

#[test]
fn an_operation_that_a_device_does_not_run_is_named() {
    let error = ImageClassifier::new(&Narrow, &shapes(), &named()).unwrap_err();
    let operation = shapes().imported.model.main.operations[1].ty;
    let want = format!("narrow does not run operation 1 ({operation})");
    assert!(text(&error).starts_with(&want), "{error}");
}

/// A model with one operator from one tensor to another.
fn model(code: i32, from: Tensor, to: Tensor) -> Result<TaskModel, TaskError> {
    let file = File::new(vec![from, to], vec![Operator::new(code, &[0], &[1])], (&[0], &[1]));
    TaskModel::from_bytes("m.tflite", &file.write())
}

/// RELU in a file.
const RELU: i32 = 19;

#[test]
fn an_operator_without_a_form_in_nnapi_is_named() {
    let mut file = File::new(
        vec![Tensor::new("in", FLOAT32, &[1, 4]), Tensor::new("out", FLOAT32, &[1, 4])],
        vec![Operator::new(32, &[0], &[1])],
        (&[0], &[1]),
    );
    file.operators[0].custom = Some("MyOwn");
    let error = TaskModel::from_bytes("m.tflite", &file.write()).unwrap_err();
    let want = "cannot use the model m.tflite: operator 0 (MyOwn) cannot be mapped: ";
    assert!(text(&error).starts_with(want), "{error}");
}

#[test]
fn a_model_of_another_task_is_told_with_its_outputs() {
    let device = CpuDevice::default();
    let error = ObjectDetector::new(&device, &shapes(), &named()).unwrap_err();
    let output = shapes().imported.outputs[0].name.clone();
    let said = text(&error);
    assert!(said.contains("is no detector") && said.contains(&format!("`{output}`")), "{said}");
    let error = AudioClassifier::new(&device, &shapes(), &named()).unwrap_err();
    assert!(text(&error).contains("sound needs [samples]"), "{error}");
}

#[test]
fn an_input_that_is_no_picture_is_told_by_name_type_and_shape() {
    let device = CpuDevice::default();
    let flat = |name, shape: &[i32]| Tensor::new(name, FLOAT32, shape);
    let model = model(RELU, flat("spectrum", &[1, 40]), flat("out", &[1, 40])).unwrap();
    let error = ImageClassifier::new(&device, &model, &named()).unwrap_err();
    let want = "the model's input `spectrum` has the shape [1, 40]; a picture needs";
    assert!(text(&error).starts_with(want), "{error}");
    // As values it goes in, as many as there are.
    let mut stream = RecurrentStream::new(&device, &model, &named()).unwrap_err();
    assert!(matches!(stream, TaskError::LabelCount { labels: 10, classes: 40 }), "{stream}");
    let options = Default::default();
    let mut values = RecurrentStream::new(&device, &model, &options).unwrap();
    assert_eq!(values.step(&[-1.0; 40]).unwrap(), [0.0; 40]);
    stream = values.step(&[0.0; 41]).unwrap_err();
    assert_eq!(text(&stream), "the model's input `spectrum` takes 40 values, 41 were given");
}

#[test]
fn an_input_of_whole_numbers_is_told_by_name_and_type() {
    let whole = |name| Tensor::new(name, INT32, &[1, 4, 4, 3]);
    let add = |b: &mut File| b.operators[0] = Operator::new(0, &[0, 0], &[1]);
    let mut file =
        File::new(vec![whole("image"), whole("sum")], vec![Operator::default()], (&[0], &[1]));
    add(&mut file);
    let model = TaskModel::from_bytes("m.tflite", &file.write()).unwrap();
    let error = ImageClassifier::new(&CpuDevice::default(), &model, &named()).unwrap_err();
    let want = "the model's input `image` is TENSOR_INT32; a picture cannot be turned into that";
    assert_eq!(text(&error), want);
}

#[test]
fn two_inputs_are_told_by_name() {
    let tensor = |name| Tensor::new(name, FLOAT32, &[1, 4, 4, 3]);
    let file = File::new(
        vec![tensor("left"), tensor("right"), tensor("sum")],
        vec![Operator::new(0, &[0, 1], &[2])],
        (&[0, 1], &[2]),
    );
    let model = TaskModel::from_bytes("m.tflite", &file.write()).unwrap();
    let error = ImageClassifier::new(&CpuDevice::default(), &model, &named()).unwrap_err();
    let said = text(&error);
    assert!(said.contains("2 inputs") && said.contains("(left, right)"), "{said}");
}
