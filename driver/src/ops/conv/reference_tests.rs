//! The plain loops: the same bits on several threads, and in both layouts.

use half::f16;

use crate::op::OpDef;
use crate::ops::conv::test_support::{Case, Numbers, Tensor, kinds};
use crate::ops::conv::{conv_2d, depthwise_conv_2d, grouped_conv_2d, transpose_conv_2d};

const BATCHES: usize = 2;
const SIZE: [usize; 2] = [9, 11];
const CHANNELS: usize = 6;

/// An operation, its filter with output channels and the dimension of channel scales, and the numbers
/// between the bias and the layout.
type Kind = (&'static OpDef, [u32; 4], u32, usize, &'static [i32]);

/// Each with strides across and down that differ.
const KINDS: [Kind; 4] = [
    // A padding scheme or four paddings, strides, then what the operation has of its own, no activation.
    (&conv_2d::DEF, [10, 3, 2, 6], 10, 0, &[1, 2, 1, 0]),
    (&depthwise_conv_2d::DEF, [1, 3, 2, 12], 12, 3, &[1, 2, 1, 2, 0]),
    (&grouped_conv_2d::DEF, [10, 3, 2, 3], 10, 0, &[1, 2, 1, 2, 0]),
    (&transpose_conv_2d::DEF, [10, 3, 2, 6], 10, 0, &[1, 1, 0, 1, 2, 1, 0]),
];

/// The elements of NHWC tensors in the order of NCHW.
fn to_planes<T: Copy>(values: &[T], [height, width, channels]: [usize; 3]) -> Vec<T> {
    let mut planes = Vec::with_capacity(values.len());
    for image in values.chunks_exact(height * width * channels) {
        for channel in 0..channels {
            planes.extend(image[channel..].iter().step_by(channels));
        }
    }
    planes
}

fn rest(numbers: &[i32], is_nchw: bool) -> Vec<Tensor> {
    let numbers = numbers.iter().map(|number| Tensor::int(*number));
    numbers.chain([Tensor::flag(is_nchw)]).collect()
}

/// What the loops compute: the same on three threads, which have shared the work.
fn computed(case: &Case, what: &str) -> (Vec<u32>, Vec<u8>) {
    let alone = case.reference().unwrap();
    let (together, is_shared) = case.reference_of_three().unwrap();
    assert!(is_shared, "{what} is done by one thread");
    assert!(alone == together, "{what}: three threads compute something else");
    alone
}

/// In planes the same values come out, in planes.
fn same_in_planes(case: &Case, numbers: &[i32], width: usize, what: &str) {
    let (dims, bytes) = computed(case, what);
    let sizes = [dims[1], dims[2], dims[3]].map(|size| size as usize);
    let elements: Vec<&[u8]> = bytes.chunks_exact(width).collect();
    let want = to_planes(&elements, sizes).concat();

    let images = &case.inputs[0];
    let dims: Vec<usize> = images.dims.iter().map(|size| *size as usize).collect();
    let elements: Vec<&[u8]> = images.bytes().chunks_exact(width).collect();
    let planes = to_planes(&elements, [dims[1], dims[2], dims[3]]).concat();
    let mut turned = Tensor::of(images.info.ty, &[0], &[0_u8; 0]);
    turned.info = images.info.clone();
    turned.dims =
        [dims[0], dims[3], dims[1], dims[2]].map(|size| u32::try_from(size).unwrap()).into();
    turned.set_bytes(&planes);
    let mut inputs = vec![turned, case.inputs[1].clone(), case.inputs[2].clone()];
    inputs.extend(rest(numbers, true));
    let planar = Case { def: case.def, inputs, output: case.output.clone() };
    assert!(computed(&planar, what).1 == want, "{what}: planes hold something else");
}

#[test]
fn threads_and_layouts_change_no_bit() {
    let numbers = &mut Numbers::new(5);
    let images = [BATCHES, SIZE[0], SIZE[1], CHANNELS].map(|size| u32::try_from(size).unwrap());
    for (def, filter, channels, dimension, list) in KINDS {
        for kind in 0..kinds::COUNT {
            let operands = (&filter[..], channels, dimension);
            let case = kinds::case(def, numbers, kind, &images, operands, rest(list, false));
            let width = if kind == 0 { 4 } else { 1 };
            same_in_planes(&case, list, width, &format!("{:?} of kind {kind}", def.code));
        }
        let mut halves = |dims: &[u32]| {
            let values = numbers.floats(dims.iter().product());
            let values: Vec<f16> = values.into_iter().map(f16::from_f32).collect();
            Tensor::of(burst_hal::OperandType::TensorFloat16, dims, &values)
        };
        let mut inputs = vec![halves(&images), halves(&filter), halves(&[channels])];
        inputs.extend(rest(list, false));
        same_in_planes(&Case::float(def, inputs), list, 2, &format!("{:?} of halves", def.code));
    }
}
