//! LSTM on values worked out by hand.

use burst_hal::OperandType::{TensorFloat16, TensorFloat32};

use super::*;
use crate::ops::recurrent::lstm_testing::{Layer, Make};
use crate::ops::testing::{Tensor, run, validate as check};

/// Two batches of the layer of [`Layer::halving`], without layer normalisation.
fn inputs(make: Make, cell_clip: f32) -> Vec<Tensor> {
    let layer = Layer::halving(make);
    let mut list = vec![make(&[2, 1], &[1.0, 2.0])];
    list.extend(layer.weights());
    list.extend([make(&[2, 1], &[0.0, 0.0]), make(&[2, 1], &[4.0, 8.0])]);
    list.extend(layer.tuning(0, cell_clip, 0.0));
    list
}

fn outputs() -> Vec<Tensor> {
    vec![Tensor::output(TensorFloat32); 4]
}

fn results(list: &[Tensor]) -> Result<Vec<Vec<f32>>, OpError> {
    run(&DEF, list, &outputs()).map(|got| got.iter().skip(1).map(Tensor::values).collect())
}

#[test]
fn states_and_output_of_one_step() {
    let got = run(&DEF, &inputs(Tensor::f32, 0.0), &outputs()).unwrap();
    assert_eq!(got[0].dims.as_slice(), [2, 4]);
    assert_eq!(got[1].values::<f32>(), [1.5, 3.0]);
    assert_eq!(got[2].values::<f32>(), [3.0, 6.0]);
    assert_eq!(got[3].values::<f32>(), [1.5, 3.0]);
    let halves = vec![Tensor::output(TensorFloat16); 4];
    let got = run(&DEF, &inputs(Tensor::f16, 5.0), &halves).unwrap();
    assert_eq!(got[2].halves(), [3.0, 5.0]);
    assert_eq!(got[3].halves(), [1.5, 2.5]);
}

#[test]
fn coupled_gates_have_a_smaller_scratch_buffer() {
    let mut list = inputs(Tensor::f32, 0.0);
    for index in [1, 5, 12] {
        assert!(index == 1 || results(&list).is_err(), "a part of the input gate is left out");
        list[index] = Tensor::omitted(TensorFloat32);
    }
    let got = run(&DEF, &list, &outputs()).unwrap();
    assert_eq!(got[0].dims.as_slice(), [2, 3]);
    assert_eq!(got[2].values::<f32>(), [2.5, 5.0]);
}

#[test]
fn peepholes_are_all_or_none() {
    let mut list = inputs(Tensor::f32, 0.0);
    for index in [10, 11] {
        list[index] = Tensor::f32(&[1], &[0.0]);
        assert!(results(&list).is_err(), "up to input {index}");
    }
    list[9] = Tensor::f32(&[1], &[0.0]);
    assert_eq!(results(&list).unwrap()[1], [3.0, 6.0]);
    // The input gate's is ignored when the gates are coupled, but cannot stand alone.
    for index in [1, 5, 12] {
        list[index] = Tensor::omitted(TensorFloat32);
    }
    assert_eq!(results(&list).unwrap()[1], [2.5, 5.0]);
    for index in [10, 11] {
        list[index] = Tensor::omitted(TensorFloat32);
    }
    assert!(results(&list).is_err());
}

#[test]
fn a_projection_changes_the_size_of_the_output() {
    let mut list = inputs(Tensor::f32, 0.0);
    list[17] = Tensor::f32(&[2], &[0.0, 1.0]);
    assert!(results(&list).is_err(), "a bias without its weights");
    list[5..9].fill(Tensor::f32(&[1, 2], &[0.0, 0.0]));
    list[18] = Tensor::f32(&[2, 2], &[0.0; 4]);
    list[17] = Tensor::omitted(TensorFloat32);
    assert!(results(&list).is_err(), "two outputs of one unit without projection");
    list[16] = Tensor::f32(&[2, 1], &[2.0, -2.0]);
    assert_eq!(results(&list).unwrap()[0], [3.0, -3.0, 6.0, -6.0]);
    list[17] = Tensor::f32(&[2], &[0.0, 1.0]);
    list[22] = Tensor::scalar_f32(4.0);
    assert_eq!(results(&list).unwrap()[2], [3.0, -2.0, 4.0, -4.0]);
}

#[test]
fn layer_normalisation_is_all_or_none() {
    let mut list = inputs(Tensor::f32, 0.0);
    list.extend(vec![Tensor::omitted(TensorFloat32); 4]);
    assert_eq!(results(&list).unwrap()[1], [3.0, 6.0]);
    for index in [24, 25, 26] {
        list[index] = Tensor::f32(&[1], &[1.0]);
        assert!(results(&list).is_err(), "up to input {index}");
    }
    list[23] = Tensor::f32(&[1], &[1.0]);
    // One unit is its own mean: nothing of x is left.
    assert_eq!(results(&list).unwrap()[1], [2.0, 4.0]);
    for index in [1, 5, 12] {
        list[index] = Tensor::omitted(TensorFloat32);
    }
    assert!(results(&list).is_err(), "weights for a gate that is not there");
    list[23] = Tensor::omitted(TensorFloat32);
    assert_eq!(results(&list).unwrap()[1], [2.0, 4.0]);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (index, value) in [
        (20, Tensor::scalar_i32(2)),
        (21, Tensor::scalar_f32(-0.5)),
        (22, Tensor::scalar_f32(f32::NAN)),
        (2, Tensor::f32(&[1, 2], &[0.0; 2])),
        (13, Tensor::f32(&[2], &[0.0; 2])),
        (18, Tensor::f32(&[1, 1], &[0.0])),
        (19, Tensor::f32(&[2], &[0.0; 2])),
    ] {
        let mut list = inputs(Tensor::f32, 0.0);
        list[index] = value;
        assert!(results(&list).is_err(), "input {index}");
    }
}

#[test]
fn forms_come_with_their_version() {
    let short = inputs(Tensor::f32, 0.0);
    let mut long = short.clone();
    long.extend(vec![Tensor::omitted(TensorFloat32); 4]);
    let form = |version, list: &[Tensor]| check(&DEF, version, list, &outputs()).is_ok();
    assert!(form(V1_0, &short) && form(V1_2, &short) && form(V1_2, &long));
    assert!(!form(V1_0, &long) && !form(V1_2, &long[..25]) && !form(V1_2, &short[..22]));
    let halves = inputs(Tensor::f16, 0.0);
    let outputs = vec![Tensor::output(TensorFloat16); 4];
    assert!(check(&DEF, V1_0, &halves, &outputs).is_err());
    assert!(check(&DEF, V1_2, &halves, &outputs).is_ok());
}
