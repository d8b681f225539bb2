//! QUANTIZED_LSTM on values worked out by hand.

use burst_hal::OperandType::{
    TensorInt32, TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant16Symm,
};

use super::*;
use crate::ops::testing::{Tensor, run, validate as check};

const CELL_SCALE: f32 = 1.0 / 4096.0;

fn weights(dims: &[u32], values: &[i8]) -> Tensor {
    Tensor::new(TensorQuant8Symm, dims, values).quantized(1.0 / 64.0, 0)
}

fn vector16(values: &[i16]) -> Tensor {
    Tensor::new(TensorQuant16Symm, &[1], values).quantized(1.0 / 64.0, 0)
}

fn bias(value: i32) -> Tensor {
    Tensor::new(TensorInt32, &[1], &[value])
}

/// Two batches, one input, one unit, half open gates; the cell takes in half of `tanh(x / 2)`.
fn inputs() -> Vec<Tensor> {
    let absent16 = || Tensor::omitted(TensorQuant16Symm).quantized(1.0, 0);
    let mut list = vec![Tensor::i8(&[2, 1], &[0, 100], 1.0 / 64.0, 0)];
    let zero = || weights(&[1, 1], &[0]);
    list.extend([zero(), zero(), weights(&[1, 1], &[32]), zero()]);
    list.extend([zero(), zero(), zero(), zero()]);
    list.extend([absent16(), absent16(), absent16()]);
    list.extend([bias(0), bias(0), bias(0), bias(0)]);
    list.extend([
        Tensor::omitted(TensorQuant8Symm).quantized(1.0 / 64.0, 0),
        Tensor::omitted(TensorInt32),
        Tensor::i8(&[2, 1], &[0, 0], 1.0 / 128.0, 0),
        Tensor::new(TensorQuant16Symm, &[2, 1], &[4096i16, -4096]).quantized(CELL_SCALE, 0),
    ]);
    list.extend([absent16(), absent16(), absent16(), absent16()]);
    list.extend([0.0, 0.0].map(Tensor::scalar_f32));
    list.extend([CELL_SCALE; 4].map(Tensor::scalar_f32));
    list.extend([Tensor::scalar_i32(0), Tensor::scalar_f32(1.0 / 128.0)]);
    list
}

fn outputs() -> [Tensor; 3] {
    let output = || Tensor::output(TensorQuant8AsymmSigned).quantized(1.0 / 128.0, 0);
    [output(), Tensor::output(TensorQuant16Symm).quantized(CELL_SCALE, 0), output()]
}

fn results(list: &[Tensor]) -> Result<(Vec<i8>, Vec<i16>), OpError> {
    let got = run(&DEF, list, &outputs())?;
    assert_eq!(got[0].values::<i8>(), got[2].values::<i8>());
    Ok((got[0].values(), got[1].values()))
}

#[test]
fn cells_are_halved_and_taken_in() {
    let (out, cell) = results(&inputs()).unwrap();
    // 0.5, and -0.5 + tanh(100 / 64 / 2) / 2 = -0.1734, in 4096ths: -710.1, less what the fixed
    // point function misses.
    assert_eq!(cell[0], 2048);
    assert!(cell[1].abs_diff(-710) <= 2, "{}", cell[1]);
    // Half of tanh(0.5) and of tanh(-0.1734), in 128ths: 29.6 and -10.99.
    assert_eq!(out, [30, -11]);
}

#[test]
fn an_output_of_two_by_projection() {
    let mut list = inputs();
    list[5..9].fill(weights(&[1, 2], &[0, 0]));
    list[16] = weights(&[2, 1], &[64, -32]);
    list[18] = Tensor::i8(&[2, 2], &[0; 4], 1.0 / 128.0, 0);
    // Times 1 and -1/2 of 30 and -11; ties go away from zero.
    assert_eq!(results(&list).unwrap().0, [30, -15, -11, 6]);
    list[17] = Tensor::new(TensorInt32, &[2], &[64i32, 128]);
    assert_eq!(results(&list).unwrap().0, [31, -13, -10, 8]);
    // Ten steps of the projection weights.
    list[PROJECTION_CLIP] = Tensor::scalar_f32(10.5 / 64.0);
    assert_eq!(results(&list).unwrap().0, [10, -10, -10, 8]);
}

#[test]
fn clips_and_coupled_gates() {
    let mut list = inputs();
    list[CELL_CLIP] = Tensor::scalar_f32(0.25);
    let (_, cell) = results(&list).unwrap();
    assert_eq!(cell[0], 1024);
    for index in [1, 5] {
        list[index] = Tensor::omitted(TensorQuant8Symm).quantized(1.0, 0);
        assert!(results(&list).is_err(), "a part of the input gate is left out");
    }
    list[12] = Tensor::omitted(TensorInt32);
    assert_eq!(results(&list).unwrap().1[0], 1024);
}

#[test]
fn biases_count_only_with_layer_normalisation() {
    let mut list = inputs();
    list[13] = bias(-(1 << 24));
    assert_eq!(results(&list).unwrap().1[0], 2048);
    for index in LAYER_NORM..LAYER_NORM + 4 {
        assert!(index == LAYER_NORM || results(&list).is_err(), "up to input {index}");
        list[index] = vector16(&[1]);
    }
    // One unit is its own mean; the bias is -2^24 / 1024 / 64 = -256, which shuts the gate to keep
    // a 3000th of the cell: 1.4 steps.
    let (_, cell) = results(&list).unwrap();
    assert!((0..=2).contains(&cell[0]), "{}", cell[0]);
}

#[test]
fn the_output_gate_looks_at_the_new_cell() {
    let mut list = inputs();
    for (index, weight) in [(9, 0), (10, 0), (11, -1000)] {
        list[index] = vector16(&[weight]);
    }
    // -1000 / 64 times the new cell of 0.5 shuts the gate, times -0.17 opens it to 0.94.
    let (out, cell) = results(&list).unwrap();
    assert_eq!((out[0], cell[0]), (0, 2048));
    assert!((-21..=-20).contains(&out[1]), "{}", out[1]);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (index, tensor) in [
        (CELL_CLIP, Tensor::scalar_f32(-1.0)),
        (GATE_SCALES, Tensor::scalar_f32(0.0)),
        (GATE_SCALES + 3, Tensor::scalar_f32(f32::NAN)),
        (HIDDEN_ZERO_POINT, Tensor::scalar_i32(128)),
        (HIDDEN_SCALE, Tensor::scalar_f32(f32::INFINITY)),
        (17, bias(0)),
        (2, weights(&[1, 2], &[0, 0])),
    ] {
        let mut list = inputs();
        list[index] = tensor;
        assert!(results(&list).is_err(), "input {index}");
    }
    for scale in [1.0 / 5000.0, 1.0 / 256.0, 1.0 / 65536.0] {
        let mut list = inputs();
        list[19] = list[19].clone().quantized(scale, 0);
        let mut outputs = outputs();
        outputs[1] = Tensor::output(TensorQuant16Symm).quantized(scale, 0);
        assert!(run(&DEF, &list, &outputs).is_err(), "cell scale {scale}");
    }
    let mut outputs = outputs();
    outputs[2] = Tensor::output(TensorQuant8AsymmSigned).quantized(1.0 / 64.0, 0);
    assert!(run(&DEF, &inputs(), &outputs).is_err());
}

#[test]
fn came_with_1_3() {
    use burst_hal::HalVersion::V1_2;
    assert!(check(&DEF, V1_2, &inputs(), &outputs()).is_err());
    assert!(check(&DEF, V1_3, &inputs(), &outputs()).is_ok());
    assert!(check(&DEF, V1_3, &inputs()[..31], &outputs()).is_err());
}
