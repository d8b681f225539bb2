//! FULLY_CONNECTED on values worked out by hand.

use burst_hal::HalVersion::{V1_1, V1_2};

use super::*;
use crate::kernels::Isa;
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

/// As for CONV_2D, rounded once.
#[test]
fn sums_that_are_far_too_large_are_stored_as_the_largest_value() {
    for (scale, zero_point, activation) in [(0.001, 0, 0), (0.001, 100, 1), (1e-6, 128, 0)] {
        let input = Tensor::u8(&[9, 64], &[255; 9 * 64]).quantized(1.0, 0);
        let weights = Tensor::u8(&[19, 64], &[255; 19 * 64]).quantized(1.0, 0);
        let mut bias = vec![0; 19];
        bias[1] = -(1 << 30);
        let bias = Tensor::i32(&[19], &bias).quantized(1.0, 0);
        let inputs = vec![input, weights, bias, Tensor::int(activation)];
        let layer = Case::quantized(&DEF, inputs, scale, zero_point);
        let (_, values) = layer.values::<u8>();
        let low = if activation == 1 { u8::try_from(zero_point).unwrap() } else { 0 };
        for batch in values.chunks(19) {
            assert_eq!(batch[..3], [255, low, 255], "{scale}");
            assert!(batch[2..].iter().all(|value| *value == 255), "{scale}");
        }
        for isa in Isa::each_here() {
            let fast = layer.fast(isa).unwrap().expect("a kernel");
            assert_eq!(fast.1, values, "{isa:?}, {scale}");
        }
    }
}

fn declared(input: &[u32], weights: &[u32], bias: &[u32]) -> bool {
    let float = |dims: &[u32]| {
        // Only the declaration counts: 0 is a size that is not known.
        let mut tensor = Tensor::f32(&[0], &[]);
        tensor.dims = dims.to_vec();
        tensor
    };
    let inputs = vec![float(input), float(weights), float(bias), Tensor::int(0)];
    Case::float(&DEF, inputs).is_valid(V1_2)
}

#[test]
fn declared_shapes_must_go_together_where_their_ranks_are_known() {
    for (what, input, weights, bias, fits) in [
        ("all of it", &[4, 6][..], &[5, 6][..], &[5][..], true),
        ("rank 4", &[2, 1, 2, 6], &[5, 6], &[5], true),
        ("batches that span images", &[3, 4], &[5, 6], &[5], true),
        ("rank 1", &[6], &[5, 6], &[5], false),
        ("rank 5", &[1, 1, 1, 1, 6], &[5, 6], &[5], false),
        ("weights of rank 1", &[4, 6], &[6], &[5], false),
        ("weights of rank 3", &[4, 6], &[5, 6, 1], &[5], false),
        ("a bias of rank 2", &[4, 6], &[5, 6], &[5, 1], false),
        ("a bias for other units", &[4, 6], &[5, 6], &[6], false),
        ("inputs that are left over", &[4, 7], &[5, 6], &[5], false),
        ("less inputs than one batch has", &[1, 3], &[5, 6], &[5], false),
        ("an unknown number of batches", &[0, 7], &[5, 6], &[5], true),
        ("an unknown number of inputs", &[4, 7], &[5, 0], &[5], true),
        ("an unknown number of units", &[4, 6], &[0, 6], &[5], true),
        ("an unknown bias", &[4, 6], &[5, 6], &[0], true),
        ("a rank that is not known", &[], &[5, 6, 7], &[4], true),
        ("weights whose rank is not known", &[6], &[], &[4], true),
        ("a bias whose rank is not known", &[6], &[5, 6], &[], true),
        ("sizes beyond 64 bits", &[u32::MAX, u32::MAX, u32::MAX, 3], &[5, 3], &[5], true),
    ] {
        assert_eq!(declared(input, weights, bias), fits, "{what}");
    }
}
