//! No parameters and no shapes make an operation of this family panic.

use burst_hal::OperandType;
use proptest::prelude::*;

use super::*;
use crate::OpError;
use crate::op::Inferred;
use crate::ops::testing::{Tensor, run, validate};
use crate::tensor::{Arg, Args, TensorInfo, Value, element_count};

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

/// Asked before shapes are: where these are not known yet, the answer is the same.
#[test]
fn outputs_of_another_scale_are_refused_and_those_an_ulp_apart_are_not() {
    let mut checked = 0;
    for (def, parameters, outputs) in CASES {
        if def.code == concatenation::DEF.code {
            continue; // which rescales
        }
        for ty in [OperandType::TensorQuant8Asymm, OperandType::TensorQuant8AsymmSigned] {
            let verdict = |scale, zero_point| {
                let mut inputs = vec![Tensor::output(ty).quantized(1e-7, 3)];
                inputs.extend(parameters.iter().map(|kind| match (kind, def.code) {
                    (Float, _) => Tensor::scalar_i32(0),
                    (kind, _) => parameter(*kind, 4, &[1], true),
                }));
                let mut results = vec![Tensor::output(ty).quantized(1e-7, 3); *outputs];
                results[0] = Tensor::output(ty).quantized(scale, zero_point);
                if def.code == topk_v2::DEF.code {
                    results[1] = Tensor::output(OperandType::TensorInt32);
                }
                let version = burst_hal::HalVersion::LATEST;
                assert_eq!(validate(def, version, &inputs, &results), Ok(()), "{:?}", def.code);
                infer_without_shapes(def, &inputs, &results)
            };
            let refused =
                Err(OpError::Range { what: "scale or zero point of the output, not the input's" });
            for (scale, zero_point) in [(9e-7, 3), (2e-7, 3), (0.5, 3), (1e-7, 4)] {
                assert_eq!(verdict(scale, zero_point), refused, "{:?} {scale}", def.code);
            }
            for scale in [1e-7f32, 1e-7f32.next_up(), 1e-7f32.next_down()] {
                assert_ne!(verdict(scale, 3), refused, "{:?} {scale}", def.code);
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 2 * (CASES.len() - 1));
}

/// What the operation infers where no shape and no value is known yet.
fn infer_without_shapes(
    def: &OpDef,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Result<Inferred, OpError> {
    let inputs: Vec<Arg<'_>> = inputs
        .iter()
        .map(|tensor| Arg { info: &tensor.info, dims: None, value: Value::Unknown })
        .collect();
    let outputs: Vec<(&TensorInfo, &[u32])> =
        outputs.iter().map(|tensor| (&tensor.info, &[][..])).collect();
    def.body.infer(&Args { inputs: &inputs, outputs: &outputs })
}

#[test]
fn every_operation_with_a_tensor_first_is_tried() {
    let tried: Vec<_> = CASES.iter().map(|(def, ..)| def.code).collect();
    let others = [fill::DEF.code, rank::DEF.code];
    for def in OPS {
        assert!(tried.contains(&def.code) || others.contains(&def.code), "{:?}", def.code);
    }
}
