//! A `.tflite` file.
//!
//! Looked at: an error is one line of text; what is imported is a legal model with aligned
//! constants, of the shapes that its description says; what can be imported can be inspected and
//! is not cut.

use burst_hal::validate::validate_model;
use burst_hal::{HalVersion, Model, OperandLifeTime};
use burst_tflite::{Imported, Part, cut, import, import_part, inspect};

use crate::{Seed, seed};

#[path = "../../tflite/tests/support/mod.rs"]
mod support;

/// The bytes are the file.
pub fn run(data: &[u8]) -> bool {
    let inspected = inspect(data);
    match import(data) {
        Ok(imported) => {
            check(&imported);
            let inspection = inspected.unwrap();
            assert!(inspection.verdicts.iter().all(|verdict| !verdict.outcome.is_refused()));
            true
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
            behind_the_cut(data);
            inspected.is_ok()
        }
    }
}

/// The part that can run where the whole cannot.
fn behind_the_cut(data: &[u8]) {
    let Ok(Some(cut)) = cut(data) else { return };
    let from: Vec<&str> = cut.from.iter().map(String::as_str).collect();
    let to: Vec<&str> = cut.to.iter().map(String::as_str).collect();
    if let Ok(imported) = import_part(data, Part { from: &from, to: &to }) {
        check(&imported);
    }
}

fn check(imported: &Imported) {
    let model = &imported.model;
    if let Err(error) = validate_model(model, HalVersion::V1_3) {
        panic!("an illegal model was imported: {error}");
    }
    check_constants(model);
    let ends = [
        (&model.main.input_indexes, &imported.inputs),
        (&model.main.output_indexes, &imported.outputs),
    ];
    for (indexes, described) in ends {
        assert_eq!(indexes.len(), described.len());
        for (index, described) in indexes.iter().zip(described) {
            let operand = &model.main.operands[*index as usize];
            assert_eq!((operand.ty, &operand.dimensions), (described.ty, &described.dims));
        }
    }
    for state in &imported.states {
        assert!(state.input_index < imported.inputs.len());
        assert!(state.output_index < imported.outputs.len());
    }
}

fn check_constants(model: &Model) {
    let constants = model.main.operands.iter();
    for constant in constants.filter(|o| o.lifetime == OperandLifeTime::ConstantCopy) {
        assert_eq!(constant.location.offset % 64, 0, "{constant:?}");
    }
}

/// Small files with each kind of thing in them.
pub fn seeds() -> Vec<Seed> {
    use support::{FLOAT32, Field, File, INT32, Operator, Tensor, UINT8, sample};
    let mut external = sample();
    external.external = true;
    let mut signature = sample();
    signature.tensors[0].signature = Some(vec![-1, 4, 4, 2]);
    let mut unknown = sample();
    unknown.operators[1].code = 5000;
    let mut custom = sample();
    custom.operators[5].custom = Some("Mystery");
    custom.operators[5].custom_options = vec![1, 2, 3, 4];
    let real = |name, shape: &[i32]| Tensor::new(name, FLOAT32, shape);
    let activation = vec![Field::Byte(0, 1)];
    let add = File::new(
        vec![real("a", &[2, 3]), real("b", &[2, 3]).floats(&[1.0; 6]), real("c", &[2, 3])],
        vec![Operator::new(0, &[0, 1], &[2]).options(11, activation.clone())],
        (&[0], &[2]),
    );
    let concatenation = File::new(
        vec![
            Tensor::new("a", UINT8, &[1, 2]).quant(0.5, 3),
            Tensor::new("b", UINT8, &[1, 2]).quant(0.5, 3),
            Tensor::new("c", UINT8, &[1, 4]).quant(0.5, 3),
        ],
        vec![
            Operator::new(2, &[0, 1], &[2]).options(10, vec![Field::Int(0, 1), Field::Byte(1, 0)]),
        ],
        (&[0, 1], &[2]),
    );
    let pool = vec![
        Field::Byte(0, 1),
        Field::Int(1, 2),
        Field::Int(2, 2),
        Field::Int(3, 2),
        Field::Int(4, 2),
    ];
    let pooling = File::new(
        vec![real("a", &[1, 4, 4, 1]), real("b", &[1, 2, 2, 1])],
        vec![Operator::new(1, &[0], &[1]).options(5, pool)],
        (&[0], &[1]),
    );
    let transpose = File::new(
        vec![
            real("a", &[2, 3]),
            Tensor::new("order", INT32, &[2]).ints(&[1, 0]),
            real("b", &[3, 2]),
        ],
        vec![Operator::new(39, &[0, 1], &[2]).options(26, vec![])],
        (&[0], &[2]),
    );
    [
        ("sample", sample()),
        ("external_buffers", external),
        ("shape_signature", signature),
        ("unknown_operator", unknown),
        ("custom_operator", custom),
        ("add", add),
        ("concatenation", concatenation),
        ("average_pooling", pooling),
        ("transpose", transpose),
    ]
    .into_iter()
    .map(|(name, file)| seed(name, file.write()))
    .collect()
}
