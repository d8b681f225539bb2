//! DIV: the quotient of two tensors that broadcast, with a fused activation.
//!
//! Inputs: two tensors of one type, an INT32 scalar (the activation). Output: a tensor of the
//! broadcast shape. There is no quantized form. Floats follow IEEE 754.
//!
//! Source: NNAPI 1.1 `types.hal`, `OperationType::DIV`.

use burst_hal::HalVersion::{V1_1, V1_2, V1_3};
use burst_hal::{FusedActivation, OperationType};

use super::arithmetic;
use crate::op::types::{I32, TF16, TF32, TI32};
use crate::op::{Form, OpDef, OpTraits, Run, Signature, WithAttributes};
use crate::{OpError, SignatureError};

/// The definition of DIV.
pub static DEF: OpDef = OpDef {
    code: OperationType::Div,
    validate,
    body: &WithAttributes {
        parse: arithmetic::parse,
        infer: arithmetic::infer,
        prepare: None,
        execute,
    },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TF32, I32], &[TF32]),
    Form::new(V1_2, &[TF16, TF16, I32], &[TF16]),
    Form::new(V1_3, &[TI32, TI32, I32], &[TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>, activation: &FusedActivation) -> Result<(), OpError> {
    arithmetic::execute_plain(run, *activation, |a, b| a / b, floor_div)
}

/// The quotient rounded towards minus infinity.
///
/// Two cases have no answer in the specification and would trap in hardware: a divisor of 0 gives
/// 0, as the reference does; -2^31 / -1 wraps to -2^31, as NEG of it does.
fn floor_div(a: i32, b: i32) -> i32 {
    if b == 0 {
        return 0;
    }
    let quotient = a.wrapping_div(b);
    let inexact = a.wrapping_rem(b) != 0;
    if inexact && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    #[test]
    fn floats_follow_ieee() {
        let got = run_one(
            &DEF,
            &[
                Tensor::f32(&[2, 2], &[6.0, 1.0, -1.0, 0.0]),
                Tensor::f32(&[2, 1], &[4.0, 0.0]),
                Tensor::scalar_i32(0),
            ],
            Tensor::output(OperandType::TensorFloat32),
        );
        let got = got.unwrap().values::<f32>();
        assert_eq!(got[..3], [1.5, 0.25, f32::NEG_INFINITY]);
        assert!(got[3].is_nan(), "0 / 0");
    }

    #[test]
    fn halves_are_divided_in_single_precision() {
        let got = run_one(
            &DEF,
            &[Tensor::f16(&[2], &[1.0, 7.0]), Tensor::f16(&[1], &[2.0]), Tensor::scalar_i32(2)],
            Tensor::output(OperandType::TensorFloat16),
        );
        assert_eq!(got.unwrap().halves(), [0.5, 1.0]);
    }

    #[test]
    fn integers_are_rounded_down() {
        for (a, b, want) in [
            (7, 2, 3),
            (-7, 2, -4),
            (7, -2, -4),
            (-7, -2, 3),
            (-8, 2, -4),
            (8, -2, -4),
            (0, -5, 0),
            (i32::MIN, 1, i32::MIN),
            (i32::MIN, 2, -(1 << 30)),
            (i32::MAX, -1, -i32::MAX),
        ] {
            assert_eq!(floor_div(a, b), want, "{a} / {b}");
        }
    }

    /// Both would stop the process as plain machine divisions.
    #[test]
    fn divisions_without_an_answer_do_not_trap() {
        let got = run_one(
            &DEF,
            &[
                Tensor::i32(&[4], &[5, -5, 0, i32::MIN]),
                Tensor::i32(&[4], &[0, 0, 0, -1]),
                Tensor::scalar_i32(0),
            ],
            Tensor::output(OperandType::TensorInt32),
        );
        assert_eq!(got.unwrap().values::<i32>(), [0, 0, 0, i32::MIN]);
    }

    #[test]
    fn there_is_no_quantized_form() {
        use OperandType::{Int32, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
        for (ty, has) in
            [(TensorFloat32, true), (TensorQuant8Asymm, false), (TensorQuant8AsymmSigned, false)]
        {
            assert_eq!(has_form(&DEF, V1_3, &[ty, ty, Int32], &[ty]), has, "{ty:?}");
        }
    }
}
