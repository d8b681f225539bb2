//! No parameters and no shapes make an operation of this family panic; layouts agree.

use burst_hal::OperandType;
use proptest::prelude::*;

use super::*;
use crate::op::Inferred;
use crate::ops::testing::{Tensor, infer, run, run_one};
use crate::tensor::element_count;

/// What an operation takes beside its tensor, in order.
#[derive(Debug, Clone, Copy)]
enum Parameter {
    /// An INT32 scalar.
    Int,
    /// A FLOAT32 scalar.
    Float,
    /// A BOOL scalar.
    Flag,
}

use Parameter::{Flag, Float, Int};

const EXPLICIT: &[Parameter] = &[Int, Int, Int, Int, Int, Int, Int, Int, Int, Flag];
const IMPLICIT: &[Parameter] = &[Int, Int, Int, Int, Int, Int, Flag];
const SIZES: &[Parameter] = &[Int, Int, Flag, Flag, Flag];
const FACTORS: &[Parameter] = &[Float, Float, Flag, Flag, Flag];

/// Operations with parameters of one form, and whether they have quantized types.
const CASES: &[(&OpDef, &[Parameter], bool)] = &[
    (&average_pool_2d::DEF, EXPLICIT, true),
    (&average_pool_2d::DEF, IMPLICIT, true),
    (&max_pool_2d::DEF, EXPLICIT, true),
    (&max_pool_2d::DEF, IMPLICIT, true),
    (&l2_pool_2d::DEF, EXPLICIT, false),
    (&l2_pool_2d::DEF, IMPLICIT, false),
    (&resize_bilinear::DEF, SIZES, true),
    (&resize_bilinear::DEF, FACTORS, true),
    (&resize_nearest_neighbor::DEF, SIZES, true),
    (&resize_nearest_neighbor::DEF, FACTORS, true),
    (&l2_normalization::DEF, &[Int], false),
    (&local_response_normalization::DEF, &[Int, Float, Float, Float, Int], false),
    (&instance_normalization::DEF, &[Float, Float, Float, Flag], false),
];

/// An output of more elements is inferred, but not computed: a test is no place for gigabytes.
/// Neither is an empty one, in an execution.
const MOST_ELEMENTS: usize = 1 << 14;

/// Mostly numbers that may make sense, now and then one at the end of its range.
fn number() -> impl Strategy<Value = i32> {
    prop_oneof![40 => 1..5i32, 4 => -1..1i32, 1 => Just(i32::MAX), 1 => Just(i32::MIN)]
}

fn real() -> impl Strategy<Value = f32> {
    prop_oneof![20 => 0.1f32..5.0, 1 => Just(0.0f32), 1 => Just(f32::NAN), 1 => Just(f32::MAX)]
}

fn shape() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        20 => proptest::collection::vec(1u32..6, 4..=4),
        2 => proptest::collection::vec(0u32..4, 1..6),
        1 => Just(vec![0, u32::MAX, u32::MAX, u32::MAX]),
        1 => Just(vec![u32::MAX, u32::MAX, u32::MAX, 0]),
    ]
}

/// A tensor whose stored values run up from 0; huge shapes have no elements.
fn tensor(ty: OperandType, dims: &[u32]) -> Tensor {
    let count = dims.iter().map(|dim| *dim as usize).fold(1, usize::saturating_mul);
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(count).collect();
    match ty {
        OperandType::TensorFloat32 => {
            Tensor::f32(dims, &bytes.iter().map(|byte| f32::from(*byte)).collect::<Vec<_>>())
        }
        ty => Tensor::new(ty, dims, &bytes).quantized(0.5, 7),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn nothing_panics(
        case in 0..CASES.len(),
        dims in shape(),
        numbers in proptest::collection::vec(number(), 10),
        reals in proptest::collection::vec(real(), 4),
        flags in proptest::collection::vec(any::<bool>(), 3),
        kind in 0..3usize,
    ) {
        // A shape whose size has no number cannot be an operand's.
        prop_assume!(element_count(&dims).is_ok());
        let (def, parameters, quantized) = CASES[case];
        let types = [
            OperandType::TensorFloat32,
            OperandType::TensorQuant8Asymm,
            OperandType::TensorQuant8AsymmSigned,
        ];
        let ty = types[if quantized { kind } else { 0 }];
        let mut inputs = vec![tensor(ty, &dims)];
        let (mut ints, mut floats, mut bools) = (numbers.iter(), reals.iter(), flags.iter());
        inputs.extend(parameters.iter().map(|kind| match kind {
            Int => Tensor::scalar_i32(*ints.next().unwrap()),
            Float => Tensor::scalar_f32(*floats.next().unwrap()),
            Flag => Tensor::scalar_bool(*bools.next().unwrap()),
        }));
        let info = &inputs[0].info;
        let out = [Tensor::output(ty).quantized(info.scale, info.zero_point)];
        // Either answer is fine; what is looked for is a panic.
        if let Ok(Inferred::Shapes(shapes)) = infer(def, &inputs, &out)
            && element_count(&shapes[0]).is_ok_and(|count| (1..=MOST_ELEMENTS).contains(&count))
        {
            let got = run(def, &inputs, &out);
            prop_assert!(got.is_ok(), "{:?} was inferred, then failed: {:?}", def.code, got);
        }
    }

    /// Channels first is another order of the same numbers.
    #[test]
    fn layouts_agree(
        case in 0..10usize,
        dims in proptest::collection::vec(1u32..6, 4..=4),
        numbers in proptest::collection::vec(1..4i32, 10),
        kind in 0..3usize,
    ) {
        let (def, parameters, quantized) = CASES[case];
        let types = [
            OperandType::TensorFloat32,
            OperandType::TensorQuant8Asymm,
            OperandType::TensorQuant8AsymmSigned,
        ];
        let ty = types[if quantized { kind } else { 0 }];
        let first = tensor(ty, &dims);
        let last = transposed(&first, [0, 2, 3, 1]);
        let of = |input: &Tensor, channels_first: bool| {
            let mut flags = 0;
            let mut inputs = vec![input.clone()];
            inputs.extend(parameters.iter().zip(&numbers).map(|(kind, number)| match kind {
                Int => Tensor::scalar_i32(*number),
                Float => Tensor::scalar_f32(if *number > 2 { 0.75 } else { 1.5 }),
                Flag => {
                    flags += 1;
                    Tensor::scalar_bool(flags == 1 && channels_first)
                }
            }));
            run_one(def, &inputs, Tensor::output(ty).quantized(0.5, 7)).ok()
        };
        let (first, last) = (of(&first, true), of(&last, false));
        prop_assert_eq!(first.is_some(), last.is_some());
        if let (Some(first), Some(last)) = (first, last) {
            let moved = transposed(&last, [0, 3, 1, 2]);
            prop_assert_eq!(&first.dims, &moved.dims);
            prop_assert_eq!(first.values::<u8>(), moved.values::<u8>());
        }
    }
}

/// The tensor with its axes in another order.
fn transposed(tensor: &Tensor, order: [usize; 4]) -> Tensor {
    let width = tensor.info.ty.element_bytes().unwrap();
    let bytes = tensor.values::<u8>();
    let dims = order.map(|axis| tensor.dims[axis]);
    let mut moved = Vec::with_capacity(bytes.len());
    let size = |axis: usize| tensor.dims[axis] as usize;
    for index in 0..bytes.len() / width {
        let (mut rest, mut at) = (index, [0; 4]);
        for axis in order.into_iter().rev() {
            (at[axis], rest) = (rest % size(axis), rest / size(axis));
        }
        let from = ((at[0] * size(1) + at[1]) * size(2) + at[2]) * size(3) + at[3];
        moved.extend_from_slice(&bytes[from * width..][..width]);
    }
    let out = match tensor.info.ty {
        OperandType::TensorFloat32 => {
            let four = moved.as_chunks::<4>().0;
            let floats: Vec<f32> = four.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
            Tensor::f32(&dims, &floats)
        }
        ty => Tensor::new(ty, &dims, &moved),
    };
    out.quantized(tensor.info.scale, tensor.info.zero_point)
}

#[test]
fn every_operation_is_tried() {
    for def in OPS {
        assert!(CASES.iter().any(|(tried, ..)| tried.code == def.code), "{:?}", def.code);
    }
}
