//! The LSTM on integers: one operation per step, biases as weights of constant inputs.

use burst_hal::{Model, Operand, OperandLifeTime, OperandType, OperationType};
use burst_tflite::{ImportError, Imported, Note, Outcome, Refusal, import};

use crate::support::*;

const UNIDIRECTIONAL_SEQUENCE_LSTM: i32 = 44;
const LSTM_OPTIONS: u8 = 71;
const TANH: i8 = 4;
const INPUTS: usize = 3;
const UNITS: usize = 2;
/// Biases of the two units, for the input, forget, cell and output gate.
const BIASES: [[i32; UNITS]; 4] = [[1, -40_000], [46_807, 0], [-127, 128], [255, -1]];

/// A layer of two units; tensors 0 to 23 are the operator's inputs, 24 its output, 25 and on what
/// describes its inside.
fn layer(shape: &[i32; 3], time_major: bool) -> File {
    let [inputs, units] = [INPUTS, UNITS].map(|size| i32::try_from(size).expect("small"));
    let mut tensors = vec![Tensor::new("x", INT8, shape).quant(0.5, -128)];
    for gate in 0..4u8 {
        let data = (0..6).map(|at| 10 * gate + at).collect();
        tensors.push(Tensor::new("w", INT8, &[units, inputs]).quant(0.25, 0).bytes(data));
    }
    for gate in 0..4u8 {
        let data = vec![gate, 0xff, 0x80, 0x7f];
        tensors.push(Tensor::new("r", INT8, &[units, units]).quant(0.125, 0).bytes(data));
    }
    tensors.extend((9..12).map(|_| Tensor::new("peephole", INT16, &[units]).quant(1.0, 0)));
    for bias in BIASES {
        tensors.push(Tensor::new("b", INT32, &[units]).quant(0.125, 0).ints(&bias));
    }
    tensors.extend((16..18).map(|_| Tensor::new("projection", INT8, &[units]).quant(1.0, 0)));
    let batch = if time_major { shape[1] } else { shape[0] };
    tensors.push(Tensor::new("h", INT8, &[batch, units]).quant(0.0078125, -3).state());
    tensors.push(Tensor::new("c", INT16, &[batch, units]).quant(1.0 / 4096.0, 0).state());
    tensors.extend((20..24).map(|_| Tensor::new("norm", INT16, &[units]).quant(1.0, 0)));
    tensors.push(Tensor::new("y", INT8, &[shape[0], shape[1], units]).quant(0.0078125, -3));
    tensors.extend((0..4).map(|_| Tensor::new("inside", FLOAT32, &[0])));
    tensors.push(Tensor::new("hidden", INT8, &[0]).quant(0.0078125, -3));
    let given = |at: i32| if matches!(at, 9..=11 | 16 | 17 | 20..) { -1 } else { at };
    let ends: Vec<i32> = (0..24).map(given).collect();
    let options = vec![Field::Byte(0, TANH), Field::Float(1, 8.0), Field::Bool(3, time_major)];
    let mut operator =
        Operator::new(UNIDIRECTIONAL_SEQUENCE_LSTM, &ends, &[24]).options(LSTM_OPTIONS, options);
    operator.intermediates = (25..30).collect();
    File::new(tensors, vec![operator], (&[0], &[24]))
}

fn imported(file: &File) -> Imported {
    let imported = import(&file.write()).unwrap_or_else(|error| panic!("{error}"));
    assert_valid(&imported.model, "a layer");
    imported
}

fn refusal(file: &File) -> Refusal {
    match import(&file.write()) {
        Err(ImportError::Refused { reason, .. }) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn operand(model: &Model, operation: usize, at: usize) -> &Operand {
    &model.main.operands[model.main.operations[operation].inputs[at] as usize]
}

fn bytes<'m>(model: &'m Model, operand: &Operand) -> &'m [u8] {
    let start = operand.location.offset as usize;
    &model.operand_values[start..start + operand.location.length as usize]
}

fn signed(bytes: &[u8]) -> Vec<i32> {
    bytes.iter().map(|byte| i32::from(byte.cast_signed())).collect()
}

#[test]
fn a_sequence_is_split_into_steps_and_put_together_again() {
    use OperationType::{Concatenation, QuantizedLstm, Reshape, Split};
    for (shape, time_major, axis) in [([1, 4, 3], false, 1), ([4, 2, 3], true, 0)] {
        let found = imported(&layer(&shape, time_major));
        let operations: Vec<_> = found.model.main.operations.iter().map(|o| o.ty).collect();
        let steps = [Reshape; 4].into_iter().chain([QuantizedLstm; 4]);
        let want = [Concatenation, Split].into_iter().chain(steps).chain([Concatenation, Reshape]);
        assert_eq!(operations, want.collect::<Vec<_>>());
        let verdict = &found.verdicts[0];
        let text =
            "CONCATENATION + SPLIT + 4 x RESHAPE + 4 x QUANTIZED_LSTM + CONCATENATION + RESHAPE";
        assert_eq!(verdict.outcome.to_string(), text);
        assert!(matches!(verdict.outcome, Outcome::Mapped(_)));
        assert_eq!(verdict.notes, [Note::StateExposed, Note::StepsUnrolled]);
        assert_eq!(bytes(&found.model, operand(&found.model, 1, 1)), i32::to_le_bytes(axis));
        let output = &found.outputs[0];
        assert_eq!(output.dims.as_slice(), [shape[0], shape[1], 2].map(i32::cast_unsigned));
    }
}

#[test]
fn states_go_from_step_to_step_and_are_ends_of_the_graph() {
    let found = imported(&layer(&[1, 3, 3], false));
    let model = &found.model;
    assert_eq!(found.states.len(), 2);
    assert_eq!(found.inputs[1].zero_point, -3, "real 0 of the output state");
    let steps: Vec<_> =
        model.main.operations.iter().filter(|o| o.ty == OperationType::QuantizedLstm).collect();
    assert_eq!(steps[0].inputs[18..20], model.main.input_indexes[1..]);
    for pair in steps.windows(2) {
        assert_eq!(pair[1].inputs[18..20], pair[0].outputs[..2]);
    }
    assert_eq!(steps[2].outputs[..2], model.main.output_indexes[1..]);
}

#[test]
fn biases_are_weights_of_constant_inputs() {
    let found = imported(&layer(&[2, 3, 3], false));
    let model = &found.model;
    let constants = operand(model, 0, 1);
    let wide = constants.dimensions[2] as usize;
    assert_eq!(constants.dimensions.as_slice(), [2, 3, u32::try_from(wide).unwrap()]);
    let values = signed(bytes(model, constants));
    let row: Vec<i32> = values[..wide].iter().map(|value| value + 128).collect();
    assert!(values.chunks(wide).all(|values| values == &signed(bytes(model, constants))[..wide]));
    let step = 2 + 3;
    for (gate, biases) in BIASES.iter().enumerate() {
        let weights = operand(model, step, 1 + gate);
        assert_eq!(weights.ty, OperandType::TensorQuant8Symm);
        let all = signed(bytes(model, weights));
        for (unit, (weights, bias)) in all.chunks(INPUTS + wide).zip(biases).enumerate() {
            let first = 10 * gate + 3 * unit;
            let own: Vec<i32> = (first..first + 3).map(|at| i32::try_from(at).unwrap()).collect();
            assert_eq!(weights[..INPUTS], own);
            let sum: i32 = weights[INPUTS..].iter().zip(&row).map(|(w, x)| w * x).sum();
            assert_eq!(sum, *bias, "gate {gate}, unit {unit}");
        }
        let own = operand(model, step, 12 + gate);
        assert_eq!(bytes(model, own), [0; 8], "the operation's own biases are zeros");
        assert_eq!(own.scale, 0.125);
    }
}

#[test]
fn what_the_operation_needs_besides_is_there() {
    let found = imported(&layer(&[1, 1, 3], false));
    let model = &found.model;
    let float = |at| f32::from_le_bytes(bytes(model, operand(model, 3, at)).try_into().unwrap());
    assert_eq!((float(24), float(25)), (8.0, 0.0), "clips");
    assert_eq!([26, 27, 28, 29].map(float), [1.0 / 4096.0; 4]);
    assert_eq!(bytes(model, operand(model, 3, 30)), 3i32.to_le_bytes(), "taken off, not added");
    assert_eq!(float(31), 0.0078125);
    for at in [9, 10, 11, 16, 17, 20, 21, 22, 23] {
        assert_eq!(operand(model, 3, at).lifetime, OperandLifeTime::NoValue, "{at}");
    }
}

#[test]
fn other_forms_are_refused_with_their_reason() {
    let whole = layer(&[1, 2, 3], false);
    for (at, what) in [(9, "peephole weights"), (16, "a projection"), (23, "layer norms")] {
        let mut file = whole.clone();
        file.operators[0].inputs[at] = i32::try_from(at).unwrap();
        file.tensors[at].data = Some(vec![0; if at == 16 { 2 } else { 4 }]);
        assert_eq!(refusal(&file), Refusal::IntegerLstm { what });
    }
    let mut file = whole.clone();
    file.operators[0].inputs[1] = -1;
    assert_eq!(refusal(&file), Refusal::IntegerLstm { what: "no input gate" });
    let mut file = whole.clone();
    file.operators[0].intermediates.truncate(4);
    assert!(matches!(refusal(&file), Refusal::Missing { .. }));
    let mut file = whole.clone();
    file.tensors[12] = Tensor::new("b", INT32, &[2]).quant(0.125, 0).ints(&[i32::MIN, 0]);
    assert!(matches!(refusal(&file), Refusal::Range { what: "a bias", .. }));
    let mut file = whole.clone();
    file.tensors[24].zero_points = vec![0];
    assert!(matches!(refusal(&file), Refusal::FixedScale { .. }));
    let mut file = whole.clone();
    file.tensors[5].scales = vec![0.125, 0.25];
    file.tensors[5].zero_points = vec![0, 0];
    assert!(matches!(refusal(&file), Refusal::Quantization { tensor: 5, .. }));
    let mut file = whole;
    file.tensors[12].shape = vec![1];
    file.tensors[12].data = Some(vec![0; 4]);
    assert!(matches!(refusal(&file), Refusal::Shape { what: "a bias" }));
}

#[test]
fn sequences_beyond_all_measure_are_refused() {
    let file = layer(&[1, 100_000, 3], false);
    assert!(matches!(refusal(&file), Refusal::Range { what: "the number of steps", .. }));
}
