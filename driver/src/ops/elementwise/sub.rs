//! SUB: the difference of two tensors that broadcast, with a fused activation.
//!
//! Inputs: two tensors of one type, an INT32 scalar (the activation). Output: a tensor of the
//! broadcast shape. Quantized as ADD, with the second multiplier negated.
//!
//! Source: NNAPI 1.1 `types.hal`, `OperationType::SUB`.

use burst_hal::HalVersion::{V1_1, V1_2, V1_3};
use burst_hal::{FusedActivation, OperationType};

use super::arithmetic::{self, QuantizedSum};
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, OpDef, OpTraits, PrepareContext, Prepared, Run, Signature, WithAttributes};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of SUB.
pub static DEF: OpDef = OpDef {
    code: OperationType::Sub,
    validate,
    body: &WithAttributes {
        parse: arithmetic::parse,
        infer: arithmetic::infer_sum,
        prepare: Some(prepare),
        execute,
    },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TF32, I32], &[TF32]),
    Form::new(V1_2, &[TF16, TF16, I32], &[TF16]),
    Form::new(V1_2, &[TQ8, TQ8, I32], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TQ8S, I32], &[TQ8S]),
    Form::new(V1_3, &[TI32, TI32, I32], &[TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn prepare(
    args: &Args<'_>,
    activation: &FusedActivation,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    arithmetic::prepare_sum(args, *activation, context, QuantizedSum::difference)
}

fn execute(run: &mut Run<'_, '_>, activation: &FusedActivation) -> Result<(), OpError> {
    // Differences that overflow INT32 wrap, as sums do.
    arithmetic::execute(run, *activation, |a, b| a - b, i32::wrapping_sub, QuantizedSum::difference)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_fast, run_one};

    /// By the reference, and by the fast kernel where there is one.
    fn sub(a: Tensor, b: Tensor, out: Tensor) -> Tensor {
        let inputs = [a, b, Tensor::scalar_i32(0)];
        let got = run_one(&DEF, &inputs, out.clone()).unwrap();
        if let Some(fast) = run_fast(&DEF, &inputs, &[out]).unwrap() {
            assert_eq!(fast[0].values::<u8>(), got.values::<u8>());
        }
        got
    }

    #[test]
    fn floats_broadcast_either_way() {
        let wide = Tensor::f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let narrow = Tensor::f32(&[2], &[0.5, 10.0]);
        let out = || Tensor::output(OperandType::TensorFloat32);
        let got = sub(wide.clone(), narrow.clone(), out());
        assert_eq!(got.values::<f32>(), [0.5, -8.0, 2.5, -6.0]);
        let got = sub(narrow, wide, out());
        assert_eq!(got.values::<f32>(), [-0.5, 8.0, -2.5, 6.0]);
    }

    #[test]
    fn integers_wrap() {
        let got = sub(
            Tensor::i32(&[2], &[i32::MIN, 5]),
            Tensor::i32(&[2], &[1, 7]),
            Tensor::output(OperandType::TensorInt32),
        );
        assert_eq!(got.values::<i32>(), [i32::MAX, -2]);
    }

    /// Scales 1/2, 1/4 and 1/2, as in the tests of ADD.
    #[test]
    fn quantized_differences_are_rounded_away_from_zero() {
        let got = sub(
            // 4 - 2     1 - 1/2   0 - 1/2  0 - 117.5
            Tensor::u8(&[4], &[14, 11, 10, 10], 0.5, 10),
            Tensor::u8(&[4], &[24, 21, 21, 255], 0.25, 20),
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 5),
        );
        assert_eq!(got.values::<u8>(), [7, 6, 4, 0]);
    }

    /// With `b.scale = (2^20 + 1) / 2^21` one step of `b` is `2^20 * (2^20 + 1) / 2^22` in the
    /// shifted sum, whose first rounding is a tie: 2^19 + 1/2. Rounded towards plus infinity after
    /// the negation it is -2^19 and the difference 2^18, half an output step, which rounds to 1.
    /// Negating the rounded product instead would give 2^18 - 1, and 0.
    #[test]
    fn the_multiplier_is_negated_and_not_the_product() {
        let b_scale = 1_048_577.0 / 2_097_152.0;
        let got = sub(
            Tensor::u8(&[1], &[1], 1.0, 0),
            Tensor::u8(&[1], &[1], b_scale, 0),
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0, 0),
        );
        assert_eq!(got.values::<u8>(), [1]);
    }

    #[test]
    fn quantized_forms_came_later_than_floats() {
        use OperandType::{Int32, TensorFloat32, TensorQuant8Asymm};
        let form = |version, ty| has_form(&DEF, version, &[ty, ty, Int32], &[ty]);
        assert!(form(V1_1, TensorFloat32));
        assert!(!form(V1_1, TensorQuant8Asymm));
        assert!(form(V1_2, TensorQuant8Asymm));
    }
}
