//! No parameters and no shapes make an operation of this family panic.

use burst_hal::OperandType;
use proptest::prelude::*;

use super::*;
use crate::ops::testing::{Tensor, run};
use crate::tensor::element_count;

/// What an operation takes beside its tensor.
#[derive(Debug, Clone, Copy)]
enum Parameter {
    /// An INT32 scalar.
    Scalar,
    /// An INT32 list.
    List,
    /// An INT32 tensor of pairs.
    Pairs,
    /// A FLOAT32 scalar.
    Float,
    /// A BOOL scalar.
    Flag,
}

use Parameter::{Flag, Float, List, Pairs, Scalar};

/// Operations that take one tensor of any shape first.
const CASES: &[(&OpDef, &[Parameter], usize)] = &[
    (&batch_to_space_nd::DEF, &[List, Flag], 1),
    (&channel_shuffle::DEF, &[Scalar, Scalar], 1),
    (&concatenation::DEF, &[Scalar], 1),
    (&depth_to_space::DEF, &[Scalar, Flag], 1),
    (&expand_dims::DEF, &[Scalar], 1),
    (&gather::DEF, &[Scalar, List], 1),
    (&pad::DEF, &[Pairs], 1),
    (&pad_v2::DEF, &[Pairs, Float], 1),
    (&reshape::DEF, &[List], 1),
    (&slice::DEF, &[List, List], 1),
    (&space_to_batch_nd::DEF, &[List, Pairs, Flag], 1),
    (&space_to_depth::DEF, &[Scalar, Flag], 1),
    (&split::DEF, &[Scalar, Scalar], 2),
    (&squeeze::DEF, &[List], 1),
    (&strided_slice::DEF, &[List, List, List, Scalar, Scalar, Scalar], 1),
    (&tile::DEF, &[List], 1),
    (&topk_v2::DEF, &[Scalar], 2),
    (&transpose::DEF, &[List], 1),
];

/// Mostly numbers that may make sense, now and then one at the end of its range.
fn number() -> impl Strategy<Value = i32> {
    prop_oneof![12 => -2..5i32, 1 => Just(i32::MAX), 1 => Just(i32::MIN)]
}

fn parameter(kind: Parameter, rank: usize, numbers: &[i32], flag: bool) -> Tensor {
    let taken =
        |count: usize| -> Vec<i32> { numbers.iter().copied().cycle().take(count).collect() };
    let length = |count: usize| u32::try_from(count).unwrap();
    match kind {
        Scalar => Tensor::scalar_i32(numbers[0]),
        List => {
            // One entry per dimension, or as many as there happen to be.
            let count = if flag { rank } else { numbers.len() };
            Tensor::i32(&[length(count)], &taken(count))
        }
        Pairs => {
            let rows = if flag { rank } else { 2 };
            Tensor::i32(&[length(rows), 2], &taken(rows * 2))
        }
        Float => Tensor::scalar_f32(1.0),
        Flag => Tensor::scalar_bool(flag),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_panics(
        case in 0..CASES.len(),
        dims in prop_oneof![
            proptest::collection::vec(0u32..5, 4..=4),
            proptest::collection::vec(0u32..5, 1..6),
            Just(vec![0, u32::MAX, u32::MAX, u32::MAX]),
        ],
        numbers in proptest::collection::vec(proptest::collection::vec(number(), 1..6), 6),
        flags in proptest::collection::vec(proptest::bool::weighted(0.8), 6),
    ) {
        let (def, parameters, outputs) = CASES[case];
        let count: usize = dims.iter().map(|dim| *dim as usize).fold(1, usize::saturating_mul);
        let mut inputs = vec![Tensor::f32(&dims, &vec![1.0; count])];
        for ((kind, numbers), flag) in parameters.iter().zip(&numbers).zip(&flags) {
            inputs.push(parameter(*kind, dims.len(), numbers, *flag));
        }
        let mut results = vec![Tensor::output(OperandType::TensorFloat32); outputs];
        if def.code == topk_v2::DEF.code {
            results[1] = Tensor::output(OperandType::TensorInt32);
        }
        // Either answer is fine; what is looked for is a panic.
        if let Ok(got) = run(def, &inputs, &results) {
            for result in got {
                prop_assert_eq!(element_count(&result.dims), Ok(result.values::<u32>().len()));
            }
        }
    }
}

#[test]
fn every_operation_with_a_tensor_first_is_tried() {
    let tried: Vec<_> = CASES.iter().map(|(def, ..)| def.code).collect();
    let others = [fill::DEF.code, rank::DEF.code];
    for def in OPS {
        assert!(tried.contains(&def.code) || others.contains(&def.code), "{:?}", def.code);
    }
}
