//! No axes and no shapes make an operation of this family panic.

use burst_hal::OperandType;
use proptest::prelude::*;

use super::*;
use crate::op::Inferred;
use crate::ops::testing::{Tensor, infer, run};
use crate::tensor::element_count;

/// What an operation takes beside its tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axes {
    /// One axis.
    One,
    /// A list, and a BOOL that keeps them.
    List,
    /// A list, and an INT32 that keeps them.
    ListAndNumber,
}

const CASES: &[(&OpDef, Axes, OperandType)] = &[
    (&mean::DEF, Axes::ListAndNumber, OperandType::TensorFloat32),
    (&mean::DEF, Axes::ListAndNumber, OperandType::TensorQuant8Asymm),
    (&mean::DEF, Axes::ListAndNumber, OperandType::TensorQuant8AsymmSigned),
    (&argmax::DEF, Axes::One, OperandType::TensorFloat32),
    (&argmin::DEF, Axes::One, OperandType::TensorQuant8Asymm),
    (&reduce_all::DEF, Axes::List, OperandType::TensorBool8),
    (&reduce_any::DEF, Axes::List, OperandType::TensorBool8),
    (&reduce_max::DEF, Axes::List, OperandType::TensorQuant8AsymmSigned),
    (&reduce_min::DEF, Axes::List, OperandType::TensorFloat32),
    (&reduce_prod::DEF, Axes::List, OperandType::TensorFloat32),
    (&reduce_sum::DEF, Axes::List, OperandType::TensorFloat32),
];

fn axis() -> impl Strategy<Value = i32> {
    prop_oneof![20 => -4..4i32, 1 => Just(i32::MAX), 1 => Just(i32::MIN)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_panics(
        case in 0..CASES.len(),
        dims in prop_oneof![
            20 => proptest::collection::vec(1u32..6, 1..=4),
            2 => proptest::collection::vec(0u32..4, 1..6),
            1 => Just(vec![0, u32::MAX, u32::MAX, u32::MAX]),
        ],
        axes in proptest::collection::vec(axis(), 0..4),
        keep in any::<bool>(),
    ) {
        let (def, form, ty) = CASES[case];
        let count = element_count(&dims).unwrap();
        let input = match ty {
            OperandType::TensorFloat32 => Tensor::f32(&dims, &vec![1.5; count]),
            ty => Tensor::new(ty, &dims, &vec![1u8; count]).quantized(0.5, 7),
        };
        let list = Tensor::i32(&[u32::try_from(axes.len()).unwrap()], &axes);
        let inputs = match form {
            Axes::One => vec![input, Tensor::scalar_i32(axes.first().copied().unwrap_or(0))],
            Axes::List => vec![input, list, Tensor::scalar_bool(keep)],
            Axes::ListAndNumber => vec![input, list, Tensor::scalar_i32(i32::from(keep))],
        };
        let out = match form {
            Axes::One => [Tensor::output(OperandType::TensorInt32)],
            _ => [Tensor::output(ty).quantized(0.5, 7)],
        };
        // Either answer is fine; what is looked for is a panic.
        if let Ok(Inferred::Shapes(shapes)) = infer(def, &inputs, &out)
            && !shapes[0].contains(&0)
        {
            let got = run(def, &inputs, &out);
            prop_assert!(got.is_ok(), "{:?} to {:?}: {:?}", def.code, shapes, got);
        }
    }
}

#[test]
fn every_operation_is_tried() {
    for def in OPS {
        assert!(CASES.iter().any(|(tried, ..)| tried.code == def.code), "{:?}", def.code);
    }
}
