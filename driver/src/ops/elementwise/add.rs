//! ADD: the sum of two tensors that broadcast, with a fused activation.
//!
//! Inputs: two tensors of one type, an INT32 scalar (the activation). Output: a tensor of the
//! broadcast shape. Quantized: `2^20` times each input is rescaled to twice the larger input scale,
//! summed, and rescaled to the output.
//!
//! Source: NNAPI `types.hal`, `OperationType::ADD`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{FusedActivation, OperandType, OperationType};

use crate::OpError;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, OpDef, OpTraits, PrepareContext, Prepared, Run, Signature, WithAttributes};
use crate::ops::elementwise::arithmetic::{self, QuantizedSum};
use crate::ops::elementwise::float_sum;
use crate::tensor::Args;

/// The definition of ADD.
pub static DEF: OpDef = OpDef {
    code: OperationType::Add,
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
    Form::new(V1_0, &[TF32, TF32, I32], &[TF32]),
    Form::new(V1_0, &[TQ8, TQ8, I32], &[TQ8]),
    Form::new(V1_2, &[TF16, TF16, I32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TQ8S, I32], &[TQ8S]),
    Form::new(V1_3, &[TI32, TI32, I32], &[TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn prepare(
    args: &Args<'_>,
    activation: &FusedActivation,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    if args.input(0)?.info.ty == OperandType::TensorFloat32 {
        return float_sum::prepare(args, *activation, context);
    }
    arithmetic::prepare_sum(args, *activation, context, QuantizedSum::new)
}

fn execute(run: &mut Run<'_, '_>, activation: &FusedActivation) -> Result<(), OpError> {
    // Sums that overflow INT32 wrap: the specification leaves them open, and wrapping is what the
    // reference does in practice.
    arithmetic::execute(run, *activation, |a, b| a + b, i32::wrapping_add, QuantizedSum::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_fast, run_one};

    /// By the reference, and by the fast kernel where there is one.
    fn add(a: Tensor, b: Tensor, activation: FusedActivation, out: Tensor) -> Tensor {
        let is_float = out.info.ty == OperandType::TensorFloat32;
        let fast_form = a.dims == b.dims && (is_float || out.info.scale != 0.0);
        let inputs = [a, b, Tensor::scalar_i32(activation.code())];
        let got = run_one(&DEF, &inputs, out.clone()).unwrap();
        let fast = run_fast(&DEF, &inputs, &[out]).unwrap();
        assert_eq!(fast.is_some(), fast_form, "floats and quantized tensors of one shape have one");
        if let Some(fast) = fast.as_ref().filter(|_| is_float) {
            assert_eq!(fast[0].values::<u32>(), got.values::<u32>());
        } else if let Some(fast) = fast {
            assert_eq!(fast[0].values::<u8>(), got.values::<u8>());
        }
        got
    }

    #[test]
    fn floats_broadcast_and_are_clamped() {
        let a = Tensor::f32(&[2, 2], &[1.0, -2.0, 3.5, 7.0]);
        let b = Tensor::f32(&[2], &[0.5, -0.25]);
        let out = || Tensor::output(OperandType::TensorFloat32);
        for (activation, want) in [
            (FusedActivation::None, [1.5, -2.25, 4.0, 6.75]),
            (FusedActivation::Relu, [1.5, 0.0, 4.0, 6.75]),
            (FusedActivation::Relu1, [1.0, -1.0, 1.0, 1.0]),
            (FusedActivation::Relu6, [1.5, 0.0, 4.0, 6.0]),
        ] {
            let got = add(a.clone(), b.clone(), activation, out());
            assert_eq!(got.values::<f32>(), want, "{activation:?}");
            assert_eq!(got.dims.as_slice(), [2, 2]);
        }
        let nan = add(
            Tensor::f32(&[1], &[f32::NAN]),
            Tensor::f32(&[1], &[1.0]),
            FusedActivation::Relu6,
            out(),
        );
        assert!(nan.values::<f32>()[0].is_nan(), "an activation does not hide a NaN");
    }

    #[test]
    fn halves_are_added_in_single_precision_and_rounded_once() {
        let got = add(
            Tensor::f16(&[2], &[2048.0, 1.0]),
            Tensor::f16(&[2], &[3.0, 0.5]),
            FusedActivation::None,
            Tensor::output(OperandType::TensorFloat16),
        );
        // Halves above 2048 are 2 apart; 2051 lies between 2050 and 2052 and goes to the even one.
        assert_eq!(got.halves(), [2052.0, 1.5]);
    }

    #[test]
    fn integers_wrap_and_have_no_activation() {
        let inputs = |activation| {
            [
                Tensor::i32(&[2], &[i32::MAX, -5]),
                Tensor::i32(&[1], &[1]),
                Tensor::scalar_i32(activation),
            ]
        };
        let out = || Tensor::output(OperandType::TensorInt32);
        let got = run_one(&DEF, &inputs(0), out()).unwrap();
        assert_eq!(got.values::<i32>(), [i32::MIN, -4]);
        assert!(run_one(&DEF, &inputs(1), out()).is_err());
        assert!(run_one(&DEF, &inputs(4), out()).is_err());
    }

    /// Scales 1/2, 1/4 and 1/2: a step of `a` is one step of the output, a step of `b` half of one.
    #[test]
    fn quantized_sums_are_rounded_away_from_zero() {
        let sums = |activation| {
            add(
                //  4 + 4     1 + 1/2   -1 - 1/2   0 + 1/2     245 + 235/2
                Tensor::u8(&[5], &[14, 11, 9, 10, 255], 0.5, 10),
                Tensor::u8(&[5], &[28, 21, 19, 21, 255], 0.25, 20),
                activation,
                Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 5),
            )
            .values::<u8>()
        };
        //                                                 1.5 -1.5 0.5 362.5, plus 5
        assert_eq!(sums(FusedActivation::None), [13, 7, 3, 6, 255]);
        // Real 0 is stored as 5, real 1 as 7, real 6 as 17.
        assert_eq!(sums(FusedActivation::Relu), [13, 7, 5, 6, 255]);
        assert_eq!(sums(FusedActivation::Relu1), [7, 7, 3, 6, 7]);
        assert_eq!(sums(FusedActivation::Relu6), [13, 7, 5, 6, 17]);
    }

    #[test]
    fn signed_sums_are_unsigned_ones_shifted_by_128() {
        let got = add(
            Tensor::i8(&[5], &[-114, -117, -119, -118, 127], 0.5, -118),
            Tensor::i8(&[5], &[-100, -107, -109, -107, 127], 0.25, -108),
            FusedActivation::None,
            Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, -123),
        );
        assert_eq!(got.values::<i8>(), [-115, -121, -125, -122, 127]);
    }

    #[test]
    fn a_quantized_operand_broadcasts() {
        let got = add(
            Tensor::u8(&[2, 3], &[0, 1, 2, 3, 4, 5], 1.0, 0),
            Tensor::u8(&[2, 1], &[10, 20], 1.0, 0),
            FusedActivation::None,
            Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0, 0),
        );
        assert_eq!(got.values::<u8>(), [10, 11, 12, 23, 24, 25]);
    }

    #[test]
    fn forms_come_with_their_version() {
        use OperandType::{Int32, TensorInt32, TensorQuant8Asymm};
        assert!(!has_form(&DEF, V1_2, &[TensorInt32, TensorInt32, Int32], &[TensorInt32]));
        assert!(has_form(&DEF, V1_3, &[TensorInt32, TensorInt32, Int32], &[TensorInt32]));
        assert!(!has_form(&DEF, V1_3, &[TensorInt32, TensorQuant8Asymm, Int32], &[TensorInt32]));
        assert!(!has_form(&DEF, V1_3, &[TensorInt32, TensorInt32], &[TensorInt32]));
    }
}
