//! CONV_2D on values worked out by hand.

use burst_hal::HalVersion::{V1_0, V1_1, V1_2, V1_3};
use burst_hal::OperandType;
use half::f16;

use super::*;
use crate::kernels::Isa;
use crate::ops::conv::test_support::{Case, Tensor};

/// Explicit padding, stride and activation as one list: left, right, top, bottom, stride across,
/// stride down, activation.
fn explicit(parameters: [i32; 7]) -> Vec<Tensor> {
    parameters.map(Tensor::int).to_vec()
}

fn case(images: Tensor, filter: Tensor, bias: Tensor, rest: Vec<Tensor>) -> Case {
    Case::float(&DEF, [vec![images, filter, bias], rest].concat())
}

/// 3 x 3 pixels of 1 to 9.
fn nine() -> Tensor {
    Tensor::f32(&[1, 3, 3, 1], &[1., 2., 3., 4., 5., 6., 7., 8., 9.])
}

#[test]
fn means_of_two_by_two_pixels() {
    let filter = Tensor::f32(&[1, 2, 2, 1], &[0.25; 4]);
    let bias = Tensor::f32(&[1], &[1.0]);
    let valid = case(nine(), filter.clone(), bias.clone(), explicit([0, 0, 0, 0, 1, 1, 0]));
    assert_eq!(valid.values(), (vec![1, 2, 2, 1], vec![4f32, 5., 7., 8.]));

    // SAME puts the one zero of an even filter at the end: the last column and row see fewer pixels.
    let same = case(nine(), filter, bias, [1, 1, 1, 0].map(Tensor::int).to_vec());
    let want = vec![4f32, 5., 3.25, 7., 8., 4.75, 4.75, 5.25, 3.25];
    assert_eq!(same.values(), (vec![1, 3, 3, 1], want));
}

#[test]
fn strides_across_and_down_are_not_mixed_up() {
    let filter = Tensor::f32(&[1, 1, 1, 1], &[1.0]);
    let bias = Tensor::f32(&[1], &[0.0]);
    let across = case(nine(), filter.clone(), bias.clone(), explicit([0, 0, 0, 0, 2, 1, 0]));
    assert_eq!(across.values(), (vec![1, 3, 2, 1], vec![1f32, 3., 4., 6., 7., 9.]));
    let down = case(nine(), filter, bias, explicit([0, 0, 0, 0, 1, 2, 0]));
    assert_eq!(down.values(), (vec![1, 2, 3, 1], vec![1f32, 2., 3., 7., 8., 9.]));
}

#[test]
fn paddings_left_and_top_are_not_mixed_up() {
    let filter = Tensor::f32(&[1, 2, 2, 1], &[1., 0., 0., 0.]);
    let bias = Tensor::f32(&[1], &[0.0]);
    // The first tap looks one to the left: the first column sees padding.
    let left = case(nine(), filter.clone(), bias.clone(), explicit([1, 0, 0, 0, 1, 1, 0]));
    assert_eq!(left.values(), (vec![1, 2, 3, 1], vec![0f32, 1., 2., 0., 4., 5.]));
    let top = case(nine(), filter, bias, explicit([0, 0, 1, 0, 1, 1, 0]));
    assert_eq!(top.values(), (vec![1, 3, 2, 1], vec![0f32, 0., 1., 2., 4., 5.]));
}

#[test]
fn taps_beside_the_picture_do_not_count_whatever_their_weight() {
    let inf = f32::INFINITY;
    let filter = Tensor::f32(&[1, 2, 2, 1], &[1., inf, 1., 1.]);
    let bias = Tensor::f32(&[1], &[0.0]);
    let same = case(nine(), filter, bias, [1, 1, 1, 0].map(Tensor::int).to_vec());
    let want = vec![inf, inf, 9., inf, inf, 15., inf, inf, 9.];
    assert_eq!(same.values(), (vec![1, 3, 3, 1], want.clone()));
    for isa in Isa::each_here() {
        // Fast kernels gather zeros from there: they leave such weights alone.
        assert_eq!(same.fast(isa), Ok(None));
    }
}

#[test]
fn dilation_leaves_pixels_out() {
    let filter = Tensor::f32(&[1, 2, 2, 1], &[1., 10., 100., 1000.]);
    let bias = Tensor::f32(&[1], &[0.0]);
    let mut rest = explicit([0, 0, 0, 0, 1, 1, 0]);
    rest.extend([Tensor::flag(false), Tensor::int(2), Tensor::int(1)]);
    // Taps 2 apart across, 1 apart down: 1 + 30 + 400 + 6000, 4 + 60 + 700 + 9000.
    let dilated = case(nine(), filter, bias, rest);
    assert_eq!(dilated.values(), (vec![1, 2, 1, 1], vec![6431f32, 9764.]));
}

#[test]
fn both_layouts_give_the_same_numbers() {
    // Two pixels side by side of two channels; the filter adds channels (first output) and
    // subtracts them (second).
    let filter = Tensor::f32(&[2, 1, 1, 2], &[1., 1., 1., -1.]);
    let bias = Tensor::f32(&[2], &[0., 10.]);
    let parameters = |nchw| {
        let mut rest = explicit([0, 0, 0, 0, 1, 1, 0]);
        rest.push(Tensor::flag(nchw));
        rest
    };
    let nhwc = Tensor::f32(&[1, 1, 2, 2], &[1., 2., 3., 4.]);
    let nhwc = case(nhwc, filter.clone(), bias.clone(), parameters(false));
    assert_eq!(nhwc.values(), (vec![1, 1, 2, 2], vec![3f32, 9., 7., 9.]));
    let nchw = Tensor::f32(&[1, 2, 1, 2], &[1., 3., 2., 4.]);
    let nchw = case(nchw, filter, bias, parameters(true));
    assert_eq!(nchw.values(), (vec![1, 2, 1, 2], vec![3f32, 7., 9., 9.]));
}

#[test]
fn activations_clamp() {
    let filter = Tensor::f32(&[1, 1, 1, 1], &[1.0]);
    let bias = Tensor::f32(&[1], &[0.0]);
    for (activation, want) in [
        (0, [-9f32, -0.5, 0.5, 9.]),
        (1, [0., 0., 0.5, 9.]),
        (2, [-1., -0.5, 0.5, 1.]),
        (3, [0., 0., 0.5, 6.]),
    ] {
        let images = Tensor::f32(&[1, 1, 4, 1], &[-9., -0.5, 0.5, 9.]);
        let rest = explicit([0, 0, 0, 0, 1, 1, activation]);
        let clamped = case(images, filter.clone(), bias.clone(), rest);
        assert_eq!(clamped.values::<f32>().1, want, "activation {activation}");
    }
    let rest = explicit([0, 0, 0, 0, 1, 1, 4]);
    assert!(case(nine(), filter, bias, rest).reference().is_err());
}

#[test]
fn half_floats_are_rounded_once() {
    // 2048 + 1 + 1: a half float has no 2049, but the sum is rounded only at the end.
    let half = |values: &[f32]| values.iter().map(|v| f16::from_f32(*v)).collect::<Vec<_>>();
    let of =
        |dims: &[u32], values: &[f32]| Tensor::of(OperandType::TensorFloat16, dims, &half(values));
    let conv = case(
        of(&[1, 1, 1, 3], &[2048., 1., 1.]),
        of(&[1, 1, 1, 3], &[1.; 3]),
        of(&[1], &[0.]),
        explicit([0, 0, 0, 0, 1, 1, 0]),
    );
    assert_eq!(conv.values::<f16>().1, half(&[2050.]));
}

#[test]
fn unsigned_values() {
    // Real: (130 - 128) * 0.5 = 1, (126 - 128) * 0.5 = -1; weights (12 - 10) * 0.25 = 0.5 and
    // (6 - 10) * 0.25 = -1; bias 4 * 0.125 = 0.5. First output: 0.5 + 1 + 0.5 = 2, stored
    // 2 / 0.25 + 100 = 108. The second pixel (0, 0): 0.5, stored 102.
    let images = Tensor::u8(&[1, 1, 2, 2], &[130, 126, 128, 128]).quantized(0.5, 128);
    let filter = Tensor::u8(&[1, 1, 1, 2], &[12, 6]).quantized(0.25, 10);
    let bias = Tensor::i32(&[1], &[4]).quantized(0.125, 0);
    let inputs = [vec![images, filter, bias], explicit([0, 0, 0, 0, 1, 1, 0])].concat();
    let conv = Case::quantized(&DEF, inputs, 0.25, 100);
    assert_eq!(conv.values(), (vec![1, 1, 2, 1], vec![108u8, 102]));
}

#[test]
fn padding_of_unsigned_values_is_real_zero() {
    let images = Tensor::u8(&[1, 1, 1, 1], &[138]).quantized(1.0, 128);
    let filter = Tensor::u8(&[1, 1, 3, 1], &[4, 5, 6]).quantized(0.5, 3);
    let bias = Tensor::i32(&[1], &[0]).quantized(0.5, 0);
    let inputs = [vec![images, filter, bias], [1, 1, 1, 0].map(Tensor::int).to_vec()].concat();
    let conv = Case::quantized(&DEF, inputs, 0.5, 0);
    // Only the middle tap sees the pixel: 10 * (5 - 3) = 20 in units of 0.5.
    assert_eq!(conv.values::<u8>().1, [20]);
}

#[test]
fn signed_values_with_a_scale_per_channel() {
    // Sum of channel 0: (5 - 1) * 10 + 2 = 42 at 0.5 * 1 -> 21; channel 1: 4 * -10 + 0 = -40 at
    // 0.5 * 0.25 -> -5; the output's scale 2 and zero point -3: 10.5 rounds away from 0 to 11 - 3,
    // -2.5 to -3 - 3.
    let images = Tensor::i8(&[1, 1, 1, 1], &[5]).quantized(0.5, 1);
    let filter = Tensor::i8(&[2, 1, 1, 1], &[10, -10]).per_channel(&[1.0, 0.25], 0);
    let bias = Tensor::i32(&[2], &[2, 0]);
    let inputs = [vec![images, filter, bias], explicit([0, 0, 0, 0, 1, 1, 0])].concat();
    let conv = Case::quantized(&DEF, inputs, 2.0, -3);
    assert_eq!(conv.values::<i8>().1, [8, -6]);
}

#[test]
fn no_batches_give_no_batches() {
    let images = Tensor::f32(&[0, 3, 3, 1], &[]);
    let filter = Tensor::f32(&[1, 2, 2, 1], &[0.25; 4]);
    let bias = Tensor::f32(&[1], &[1.0]);
    let conv = case(images, filter, bias, explicit([0, 0, 0, 0, 1, 1, 0]));
    assert_eq!(conv.values::<f32>(), (vec![0, 2, 2, 1], vec![]));
}

#[test]
fn shapes_that_do_not_go_together_are_refused() {
    let one = || Tensor::f32(&[1], &[0.0]);
    let rest = || explicit([0, 0, 0, 0, 1, 1, 0]);
    for (what, images, filter, bias) in [
        ("channels", vec![1, 2, 2, 2], vec![1, 1, 1, 1], 1),
        ("bias", vec![1, 2, 2, 1], vec![1, 1, 1, 1], 2),
        ("rank", vec![2, 2, 1], vec![1, 1, 1, 1], 1),
        ("filter rank", vec![1, 2, 2, 1], vec![1, 1, 1], 1),
        ("no height", vec![1, 0, 2, 1], vec![1, 1, 1, 1], 1),
        ("no outputs", vec![1, 2, 2, 1], vec![0, 1, 1, 1], 0),
        ("filter too large", vec![1, 2, 2, 1], vec![1, 3, 1, 1], 1),
    ] {
        let zeros =
            |dims: &[u32]| Tensor::f32(dims, &vec![0.0; dims.iter().product::<u32>() as usize]);
        let conv = case(zeros(&images), zeros(&filter), zeros(&[bias]), rest());
        assert!(conv.infer(|_| true).is_err(), "{what}");
    }
    let mut unknown = case(nine(), Tensor::f32(&[1, 1, 1, 1], &[1.0]), one(), rest());
    assert_eq!(unknown.infer(|index| index != 7), Err(OpError::NotYet));
    assert_eq!(unknown.infer(|index| index > 1).unwrap().as_slice(), [1, 3, 3, 1]);
    unknown.inputs[7] = Tensor::int(0);
    assert_eq!(unknown.infer(|_| true), Err(OpError::value("stride", 0)));
}

#[test]
fn forms_by_version() {
    let images = || Tensor::u8(&[1, 1, 1, 1], &[0]).quantized(0.5, 0);
    let filter = || Tensor::u8(&[1, 1, 1, 1], &[0]).quantized(0.5, 0);
    let bias = || Tensor::i32(&[1], &[0]).quantized(0.25, 0);
    let form = |filter: Tensor, rest: Vec<Tensor>| {
        Case::quantized(&DEF, [vec![images(), filter, bias()], rest].concat(), 1.0, 0)
    };
    let ten = || explicit([0; 7]);
    let layout = || [ten(), vec![Tensor::flag(false)]].concat();
    let all = || [layout(), vec![Tensor::int(1), Tensor::int(1)]].concat();
    let four = || [1, 1, 1, 0].map(Tensor::int).to_vec();
    let implicit_all =
        || [four(), vec![Tensor::flag(false), Tensor::int(1), Tensor::int(1)]].concat();
    for (what, rest, since) in [
        ("10 operands", ten(), V1_0),
        ("11 operands", layout(), V1_2),
        ("13 operands", all(), V1_2),
        ("7 operands", four(), V1_0),
        ("10 operands, implicit", implicit_all(), V1_2),
    ] {
        let form = form(filter(), rest);
        assert!(form.is_valid(since) && form.is_valid(V1_3), "{what}");
        assert!(since == V1_0 || !form.is_valid(V1_1), "{what}");
    }
    assert!(!form(filter(), all()[..9].to_vec()).is_valid(V1_3), "one dilation");
    let per_channel = |dimension| filter().per_channel(&[0.5], dimension);
    assert!(form(per_channel(0), ten()).is_valid(V1_2));
    assert!(!form(per_channel(0), ten()).is_valid(V1_1));
    assert!(!form(per_channel(3), ten()).is_valid(V1_3), "scales along the depth");
    let coarse = filter().quantized(1.0, 0);
    assert!(!form(coarse.clone(), ten()).is_valid(V1_1));
    assert!(form(coarse, ten()).is_valid(V1_2));
}

/// Sums of 64 products of 255 and 255 with an output scale of a thousandth: shifted left they left 32 bits, and what came
/// out was 0.
#[test]
fn sums_that_are_far_too_large_are_stored_as_the_largest_value() {
    for (scale, zero_point, activation) in
        [(0.001, 0, 0), (0.001, 100, 0), (0.001, 0, 1), (1e-6, 128, 0), (2e-9, 3, 1)]
    {
        let channels = 19;
        let images = Tensor::u8(&[1, 3, 5, 64], &[255; 960]).quantized(1.0, 0);
        let filter = Tensor::u8(&[channels, 1, 1, 64], &[255; 19 * 64]).quantized(1.0, 0);
        // The second channel is far below 0, the third one 0.
        let mut bias = vec![0; 19];
        bias[1] = -(1 << 30);
        bias[2] = -255 * 255 * 64;
        let bias = Tensor::i32(&[channels], &bias).quantized(1.0, 0);
        let rest = explicit([0, 0, 0, 0, 1, 1, activation]);
        let inputs = [vec![images, filter, bias], rest].concat();
        let case = Case::quantized(&DEF, inputs, scale, zero_point);
        let (_, values) = case.values::<u8>();
        let zero = u8::try_from(zero_point).unwrap();
        let low = if activation == 1 { zero } else { 0 };
        for pixel in values.chunks(19) {
            assert_eq!(pixel[..4], [255, low, zero, 255], "{scale}");
            assert!(pixel[3..].iter().all(|value| *value == 255), "{scale}");
        }
        for isa in Isa::each_here() {
            let fast = case.fast(isa).unwrap().expect("a kernel");
            assert_eq!(fast.1, values, "{isa:?}, {scale}");
        }
    }
}
