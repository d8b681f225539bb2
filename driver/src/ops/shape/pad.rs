//! PAD: room around a tensor, filled with 0.
//!
//! Inputs: a tensor, how much room before and after each dimension (INT32, `[rank, 2]`, not below
//! 0). Output: the larger tensor. Quantized tensors are padded with their zero point.
//!
//! Source: NNAPI 1.1 `types.hal`, `OperationType::PAD`.

use burst_hal::HalVersion::{V1_1, V1_2, V1_3};
use burst_hal::{OperandType, OperationType};

use super::padding;
use crate::op::types::{TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, OpDef, OpTraits, Run, Signature, WithAttributes};
use crate::ops::attributes::Pairs;
use crate::{OpError, SignatureError};

/// The definition of PAD.
pub static DEF: OpDef = OpDef {
    code: OperationType::Pad,
    validate,
    body: &WithAttributes { parse: padding::parse, infer: padding::infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TI32], &[TF32]),
    Form::new(V1_1, &[TQ8, TI32], &[TQ8]),
    Form::new(V1_2, &[TF16, TI32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TI32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)?;
    padding_is_defined(signature)
}

/// Before 1.2 nothing says what a quantized tensor is padded with, so that only a zero point of 0
/// leaves no doubt.
pub(super) fn padding_is_defined(signature: &Signature<'_>) -> Result<(), SignatureError> {
    let doubtful = signature.version < V1_2
        && signature.input(0).is_some_and(|input| {
            input.ty == OperandType::TensorQuant8Asymm && input.zero_point != 0
        });
    signature.rule(!doubtful, "padding with a zero point that is not 0 needs HAL 1.2")
}

fn execute(run: &mut Run<'_, '_>, pairs: &Pairs) -> Result<(), OpError> {
    padding::fill_zero(run.output(0)?);
    padding::copy_behind_padding(run, pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one, validate};

    fn pad(input: Tensor, pairs: &[i32]) -> Result<Tensor, OpError> {
        let out = Tensor::output(input.info.ty);
        let out = out.quantized(input.info.scale, input.info.zero_point);
        let rank = u32::try_from(pairs.len() / 2).unwrap();
        run_one(&DEF, &[input, Tensor::i32(&[rank, 2], pairs)], out)
    }

    #[test]
    fn room_is_filled_with_zero() {
        let got = pad(Tensor::f32(&[1, 2], &[1.0, 2.0]), &[1, 0, 0, 2]).unwrap();
        assert_eq!(got.dims.as_slice(), [2, 4]);
        assert_eq!(got.values::<f32>(), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
        let got = pad(Tensor::f16(&[2], &[1.0, 2.0]), &[1, 1]).unwrap();
        assert_eq!(got.halves(), [0.0, 1.0, 2.0, 0.0]);
    }

    #[test]
    fn quantized_room_is_filled_with_the_zero_point() {
        let got = pad(Tensor::u8(&[2], &[1, 2], 0.5, 9), &[2, 1]).unwrap();
        assert_eq!(got.values::<u8>(), [9, 9, 1, 2, 9]);
        let got = pad(Tensor::i8(&[2], &[1, 2], 0.5, -9), &[0, 1]).unwrap();
        assert_eq!(got.values::<i8>(), [1, 2, -9]);
    }

    #[test]
    fn before_1_2_only_a_zero_point_of_zero_is_defined() {
        let verdict = |version, zero| {
            let inputs = [Tensor::u8(&[1], &[0], 0.5, zero), Tensor::i32(&[1, 2], &[0, 0])];
            let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, zero);
            validate(&DEF, version, &inputs, &[out]).is_ok()
        };
        assert!(verdict(V1_1, 0) && !verdict(V1_1, 9) && verdict(V1_2, 9));
    }

    #[test]
    fn paddings_that_make_no_sense_are_refused() {
        let input = || Tensor::f32(&[1, 1], &[1.0]);
        assert!(pad(input(), &[0, -1, 0, 0]).is_err());
        assert!(pad(input(), &[0, 0]).is_err());
        assert!(pad(input(), &[i32::MAX, i32::MAX, i32::MAX, i32::MAX]).is_err());
    }
}
