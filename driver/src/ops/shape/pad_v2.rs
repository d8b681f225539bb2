//! PAD_V2: room around a tensor, filled with a given value.
//!
//! Inputs: a tensor, how much room before and after each dimension (INT32, `[rank, 2]`, not below
//! 0), the value: a scalar of the tensor's kind, for quantized tensors the stored value as INT32.
//! Output: the larger tensor.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::PAD_V2`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use super::{common, padding};
use crate::op::types::{F16, F32, I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::{Number, Pairs};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of PAD_V2.
pub static DEF: OpDef = OpDef {
    code: OperationType::PadV2,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TI32, F32], &[TF32]),
    Form::new(V1_2, &[TF16, TI32, F16], &[TF16]),
    Form::new(V1_2, &[TQ8, TI32, I32], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TI32, I32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug)]
struct Attributes {
    pairs: Pairs,
    /// What to pad with.
    number: Number,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    Ok(Attributes { pairs: padding::parse(operands)?, number: Number::parse(operands, 2)? })
}

/// The shape is known also where the number to pad with is not yet.
fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    match attributes {
        Ok(attributes) => padding::infer(args, Ok(&attributes.pairs)),
        Err(_) => padding::infer(args, padding::parse(args).as_ref().map_err(OpError::clone)),
    }
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    common::fill(run.output(0)?, attributes.number)?;
    padding::copy_behind_padding(run, &attributes.pairs)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    fn pad(input: Tensor, value: Tensor) -> Result<Tensor, OpError> {
        let out = Tensor::output(input.info.ty);
        let out = out.quantized(input.info.scale, input.info.zero_point);
        run_one(&DEF, &[input, Tensor::i32(&[2, 2], &[0, 1, 1, 0]), value], out)
    }

    #[test]
    fn room_is_filled_with_the_value() {
        let got = pad(Tensor::f32(&[1, 2], &[1.0, 2.0]), Tensor::scalar_f32(-9.5)).unwrap();
        assert_eq!(got.dims.as_slice(), [2, 3]);
        assert_eq!(got.values::<f32>(), [-9.5, 1.0, 2.0, -9.5, -9.5, -9.5]);
        let got = pad(Tensor::f16(&[1, 1], &[1.0]), Tensor::scalar_f16(0.25)).unwrap();
        assert_eq!(got.halves(), [0.25, 1.0, 0.25, 0.25]);
    }

    #[test]
    fn a_quantized_value_is_a_stored_one() {
        let got = pad(Tensor::u8(&[1, 1], &[1], 0.5, 9), Tensor::scalar_i32(200)).unwrap();
        assert_eq!(got.values::<u8>(), [200, 1, 200, 200]);
        let got = pad(Tensor::i8(&[1, 1], &[1], 0.5, 9), Tensor::scalar_i32(-128)).unwrap();
        assert_eq!(got.values::<i8>(), [-128, 1, -128, -128]);
    }

    /// The specification says "in the range of the type"; a value outside is an error, and is not
    /// cut to its low byte.
    #[test]
    fn a_stored_value_beyond_its_type_is_refused() {
        for bad in [-1, 256] {
            assert!(pad(Tensor::u8(&[1, 1], &[1], 0.5, 9), Tensor::scalar_i32(bad)).is_err());
        }
        for bad in [-129, 128] {
            assert!(pad(Tensor::i8(&[1, 1], &[1], 0.5, 9), Tensor::scalar_i32(bad)).is_err());
        }
    }

    #[test]
    fn the_value_has_the_tensors_kind() {
        use OperandType::TensorQuant8Asymm;
        use OperandType::{Float16, Float32, Int32, TensorFloat16, TensorFloat32, TensorInt32};
        for (ty, value) in
            [(TensorFloat32, Float32), (TensorFloat16, Float16), (TensorQuant8Asymm, Int32)]
        {
            for scalar in [Float16, Float32, Int32] {
                let has = has_form(&DEF, V1_2, &[ty, TensorInt32, scalar], &[ty]);
                assert_eq!(has, scalar == value, "{ty:?} {scalar:?}");
            }
        }
    }
}
