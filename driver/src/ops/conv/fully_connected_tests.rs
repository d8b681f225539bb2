//! FULLY_CONNECTED on values worked out by hand.

use burst_hal::HalVersion::{V1_1, V1_2};

use super::*;
use crate::ops::conv::test_support::{Case, Tensor};
use crate::tensor::TensorInfo;

#[test]
fn two_units_over_two_batches() {
    // Rank 3: two batches of two inputs, however they are arranged.
    let input = Tensor::f32(&[2, 1, 2], &[1., 2., 3., 4.]);
    let weights = Tensor::f32(&[2, 2], &[1., 10., -1., 0.5]);
    let bias = Tensor::f32(&[2], &[0., 1.]);
    let layer = Case::float(&DEF, vec![input, weights, bias, Tensor::int(1)]);
    assert_eq!(layer.values(), (vec![2, 2], vec![21f32, 1., 43., 0.]));
}

#[test]
fn unsigned_values() {
    // 3 * 1 + -2 * 2 = -1, plus 5: 4, by 0.5 * 0.5 / 0.5: 2, plus 7.
    let input = Tensor::u8(&[1, 2], &[13, 8]).quantized(0.5, 10);
    let weights = Tensor::u8(&[1, 2], &[4, 5]).quantized(0.5, 3);
    let bias = Tensor::i32(&[1], &[5]).quantized(0.25, 0);
    let inputs = vec![input, weights, bias, Tensor::int(0)];
    let layer = Case::quantized(&DEF, inputs, 0.5, 7);
    assert_eq!(layer.values(), (vec![1, 1], vec![9u8]));
    assert!(layer.is_valid(V1_1));
    let coarse = Case { output: TensorInfo { scale: 0.25, ..layer.output.clone() }, ..layer };
    assert!(!coarse.is_valid(V1_1), "the output's scale is not above that of the products");
    assert!(coarse.is_valid(V1_2));
}

#[test]
fn signed_values() {
    let input = Tensor::i8(&[1, 2], &[3, -2]).quantized(0.5, 0);
    let weights = Tensor::i8(&[1, 2], &[1, 2]).quantized(0.5, 0);
    let bias = Tensor::i32(&[1], &[5]).quantized(0.25, 0);
    let inputs = vec![input, weights, bias, Tensor::int(0)];
    assert_eq!(Case::quantized(&DEF, inputs, 0.5, -7).values::<i8>().1, [-5]);
}

/// 114,968 by 0.00036097 is 41.49978, which a convolution's two roundings take to 42, and -67,873 by it -24.49999, which
/// they take to -25.
#[test]
fn sums_are_rounded_once() {
    let scales = [0.007_781_578_7, 0.005_946_970_7, 0.128_201_98];
    let input = Tensor::i8(&[1, 2], &[0, 0]).quantized(scales[0], 0);
    let weights = Tensor::i8(&[2, 2], &[1, 2, 3, 4]).quantized(scales[1], 0);
    let bias = Tensor::i32(&[2], &[114_968, -67_873]).quantized(scales[0] * scales[1], 0);
    let inputs = vec![input, weights, bias, Tensor::int(0)];
    assert_eq!(Case::quantized(&DEF, inputs, scales[2], 2).values::<i8>().1, [43, -22]);
}

#[test]
fn shapes_that_do_not_go_together_are_refused() {
    for (what, input, weights, bias) in [
        ("rank 1", vec![2], vec![1, 2], 1),
        ("rank 5", vec![1, 1, 1, 1, 2], vec![1, 2], 1),
        ("division", vec![1, 3], vec![1, 2], 1),
        ("weights", vec![1, 2], vec![1, 2, 1], 1),
        ("no inputs", vec![1, 0], vec![1, 0], 1),
        ("bias", vec![1, 2], vec![1, 2], 3),
    ] {
        let zeros =
            |dims: &[u32]| Tensor::f32(dims, &vec![0.0; dims.iter().product::<u32>() as usize]);
        let inputs = vec![zeros(&input), zeros(&weights), zeros(&[bias]), Tensor::int(0)];
        assert!(Case::float(&DEF, inputs).infer(|_| true).is_err(), "{what}");
    }
    let empty = vec![
        Tensor::f32(&[0, 2], &[]),
        Tensor::f32(&[1, 2], &[0.; 2]),
        Tensor::f32(&[1], &[0.]),
        Tensor::int(0),
    ];
    assert_eq!(Case::float(&DEF, empty).values::<f32>(), (vec![0, 1], vec![]));
}
