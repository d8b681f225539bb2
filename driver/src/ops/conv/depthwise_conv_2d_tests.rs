//! DEPTHWISE_CONV_2D on values worked out by hand.

use burst_hal::HalVersion::{V1_0, V1_1, V1_2, V1_3};

use super::*;
use crate::ops::conv::test_support::{Case, Tensor};

/// Paddings 0, strides 1, the multiplier, the activation.
fn plain(multiplier: i32) -> Vec<Tensor> {
    [0, 0, 0, 0, 1, 1, multiplier, 0].map(Tensor::int).to_vec()
}

#[test]
fn each_channel_has_its_own_filter() {
    // Two pixels of two channels, a filter of two taps across.
    let images = Tensor::f32(&[1, 1, 2, 2], &[1., 10., 2., 20.]);
    let filter = Tensor::f32(&[1, 1, 2, 2], &[1., 2., 3., 4.]);
    let bias = Tensor::f32(&[2], &[0.5, 0.]);
    let inputs = [vec![images, filter, bias], plain(1)].concat();
    // 1 * 1 + 2 * 3 + 0.5, 10 * 2 + 20 * 4.
    assert_eq!(Case::float(&DEF, inputs).values(), (vec![1, 1, 1, 2], vec![7.5f32, 100.]));
}

#[test]
fn a_multiplier_gives_several_outputs_per_channel() {
    let filter = Tensor::f32(&[1, 1, 1, 4], &[1., 2., 3., 4.]);
    let bias = Tensor::f32(&[4], &[0., 0., 0., 1.]);
    let images = Tensor::f32(&[1, 1, 1, 2], &[1., 10.]);
    let inputs = [vec![images, filter.clone(), bias.clone()], plain(2)].concat();
    assert_eq!(Case::float(&DEF, inputs).values(), (vec![1, 1, 1, 4], vec![1f32, 2., 30., 41.]));

    let images = Tensor::f32(&[1, 2, 1, 1], &[1., 10.]);
    let rest = [plain(2), vec![Tensor::flag(true)]].concat();
    let inputs = [vec![images, filter, bias], rest].concat();
    let nchw = Case::float(&DEF, inputs);
    assert_eq!(nchw.values(), (vec![1, 4, 1, 1], vec![1f32, 2., 30., 41.]));
}

#[test]
fn unsigned_values() {
    // (7 - 5) * (3 - 1) = 4, (4 - 5) * (5 - 1) = -4, plus biases 2 and -8: 6 and -12, by
    // 0.5 * 0.5 / 0.5 = 0.5: 3 and -6, plus 10.
    let images = Tensor::u8(&[1, 1, 1, 2], &[7, 4]).quantized(0.5, 5);
    let filter = Tensor::u8(&[1, 1, 1, 2], &[3, 5]).quantized(0.5, 1);
    let bias = Tensor::i32(&[2], &[2, -8]).quantized(0.25, 0);
    let inputs = [vec![images, filter, bias], plain(1)].concat();
    assert_eq!(Case::quantized(&DEF, inputs, 0.5, 10).values::<u8>().1, [13, 4]);
}

#[test]
fn signed_values_with_a_scale_per_channel() {
    let images = Tensor::i8(&[1, 1, 1, 2], &[7, 4]).quantized(0.5, 5);
    let filter = Tensor::i8(&[1, 1, 1, 2], &[2, 4]).per_channel(&[0.5, 2.0], 3);
    let bias = Tensor::i32(&[2], &[2, -8]);
    let inputs = [vec![images, filter, bias], plain(1)].concat();
    // 2 * 2 + 2 = 6 by 0.5; -1 * 4 - 8 = -12 by 2.
    assert_eq!(Case::quantized(&DEF, inputs, 0.5, -1).values::<i8>().1, [2, -25]);
}

#[test]
fn shapes_that_do_not_go_together_are_refused() {
    let bias = || Tensor::f32(&[2], &[0.; 2]);
    for (what, images, filter, multiplier) in [
        ("two filters", vec![1, 1, 1, 1], vec![2, 1, 1, 2], 2),
        ("multiplier", vec![1, 1, 1, 1], vec![1, 1, 1, 2], 1),
        ("multiplier 0", vec![1, 1, 1, 2], vec![1, 1, 1, 2], 0),
        ("rank", vec![1, 1, 2], vec![1, 1, 1, 2], 1),
    ] {
        let zeros =
            |dims: &[u32]| Tensor::f32(dims, &vec![0.0; dims.iter().product::<u32>() as usize]);
        let inputs = [vec![zeros(&images), zeros(&filter), bias()], plain(multiplier)].concat();
        assert!(Case::float(&DEF, inputs).infer(|_| true).is_err(), "{what}");
    }
}

#[test]
fn forms_by_version() {
    let images = Tensor::f32(&[1, 1, 1, 1], &[0.]);
    let start = vec![images.clone(), images.clone(), Tensor::f32(&[1], &[0.])];
    let form = |rest: Vec<Tensor>| Case::float(&DEF, [start.clone(), rest].concat());
    let layout = || vec![Tensor::flag(false)];
    let dilation = || vec![Tensor::int(1), Tensor::int(1)];
    let five = || [1, 1, 1, 1, 0].map(Tensor::int).to_vec();
    for (rest, since) in [
        (plain(1), V1_0),
        ([plain(1), layout()].concat(), V1_2),
        ([plain(1), layout(), dilation()].concat(), V1_2),
        (five(), V1_0),
        ([five(), layout()].concat(), V1_2),
        ([five(), layout(), dilation()].concat(), V1_2),
    ] {
        let form = form(rest);
        let count = form.inputs.len();
        assert!(form.is_valid(since) && form.is_valid(V1_3), "{count} operands");
        assert!(since == V1_0 || !form.is_valid(V1_1), "{count} operands");
        assert!(form.infer(|_| true).is_ok(), "{count} operands");
    }
    assert!(!form([five(), dilation()].concat()).is_valid(V1_3));
}
