//! CAST: the same numbers in another element type; scales and zero points are ignored.
//!
//! Input and output: tensors of one shape. Between floats, INT32 and 8-bit asymmetric values any
//! pair; to 8 bits values are held in 0 to 255 and truncated, to INT32 truncated (what does not fit
//! becomes the nearest end). Other types only to themselves.
//!
//! Source: NNAPI `types.hal`, `OperationType::CAST`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "truncation is what the operation is for; casts from floats saturate"
)]

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::op::types::{TB8, TF16, TF32, TI32, TQ8, TQ8S, TQ8SYMM, TQ16A, TQ16S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature, TypeSet};
use crate::tensor::{Args, TensorMut};
use crate::threads::TileRunner;

/// The definition of CAST.
pub static DEF: OpDef = OpDef {
    code: OperationType::Cast,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const NUMBERS: TypeSet = TF16.or(TF32).or(TI32).or(TQ8);

const FORMS: &[Form] = &[
    Form::new(V1_2, &[NUMBERS], &[NUMBERS]),
    Form::new(V1_3, &[TB8], &[TB8]),
    Form::new(V1_3, &[TQ8S], &[TQ8S]),
    Form::new(V1_3, &[TQ16A], &[TQ16A]),
    Form::new(V1_3, &[TQ16S], &[TQ16S]),
    Form::new(V1_3, &[TQ8SYMM], &[TQ8SYMM]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    let (Some(input), Some(output)) = (signature.input(0), signature.output(0)) else {
        return Ok(());
    };
    let (from, to) = (&input.dimensions, &output.dimensions);
    let known = |dims: &[u32]| !dims.is_empty() && !dims.contains(&0);
    let agree = !known(from) || !known(to) || from == to;
    signature.rule(agree, "input and output have different shapes")
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(args.dims(0)?))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (out, mut runner) = run.output_and_runner()?;
    let runner = &mut runner;
    if input.info.ty == out.info.ty {
        let bytes = input.bytes.ok_or(OpError::Omitted { index: 0 })?;
        return runner.map(bytes, out.bytes_mut(), 1, |byte| byte);
    }
    // Every number of the four types is exact in f64, so that each is rounded once.
    match input.info.ty {
        OperandType::TensorFloat16 => store(runner, input.f16()?, out, f16::to_f64),
        OperandType::TensorFloat32 => store(runner, input.f32()?, out, f64::from),
        OperandType::TensorInt32 => store(runner, input.i32()?, out, f64::from),
        OperandType::TensorQuant8Asymm => store(runner, input.u8()?, out, f64::from),
        got => Err(OpError::Type { want: "a type of CAST", got }),
    }
}

fn store<T: Copy + Sync>(
    runner: &mut TileRunner<'_>,
    input: &[T],
    out: &mut TensorMut<'_>,
    load: impl Fn(T) -> f64 + Sync,
) -> Result<(), OpError> {
    match out.info.ty {
        OperandType::TensorFloat16 => {
            runner.map(input, out.f16_mut()?, 1, |x| f16::from_f64(load(x)))
        }
        OperandType::TensorFloat32 => runner.map(input, out.f32_mut()?, 1, |x| load(x) as f32),
        OperandType::TensorInt32 => runner.map(input, out.i32_mut()?, 1, |x| load(x) as i32),
        OperandType::TensorQuant8Asymm => runner.map(input, out.u8_mut()?, 1, |x| load(x) as u8),
        got => Err(OpError::Type { want: "a type of CAST", got }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one, validate};
    use burst_hal::HalVersion;
    use std::slice::from_ref;

    #[test]
    fn to_eight_bits_values_are_clamped_then_truncated() {
        let input = Tensor::f32(&[6], &[-3.5, 0.9, 254.9, 255.5, 1e9, f32::NAN]);
        let out = || Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 7);
        let got = run_one(&DEF, &[input], out()).unwrap();
        assert_eq!(got.values::<u8>(), [0, 0, 254, 255, 255, 0]);
        let input = Tensor::i32(&[3], &[-1, 77, i32::MAX]);
        assert_eq!(run_one(&DEF, &[input], out()).unwrap().values::<u8>(), [0, 77, 255]);
    }

    /// The specification leaves open what becomes of numbers that do not fit in INT32: the
    /// nearest end here, and 0 for what is not a number, never an undefined value.
    #[test]
    fn to_integers_values_are_truncated_towards_zero() {
        let values = [-1.9, 1.9, -3e9, 3e9, f32::NAN, f32::NEG_INFINITY];
        let out = Tensor::output(OperandType::TensorInt32);
        let got = run_one(&DEF, &[Tensor::f32(&[6], &values)], out).unwrap();
        assert_eq!(got.values::<i32>(), [-1, 1, i32::MIN, i32::MAX, 0, i32::MIN]);
    }

    #[test]
    fn to_floats_values_are_rounded_once() {
        // Halfway between two halves, but for the last bit, which f32 would drop before.
        let input = Tensor::i32(&[2], &[-5, 33_554_433]);
        let out = Tensor::output(OperandType::TensorFloat32);
        let got = run_one(&DEF, &[input], out).unwrap();
        assert_eq!(got.values::<f32>(), [-5.0, 33_554_432.0]);
        let input = Tensor::u8(&[2], &[0, 255], 0.5, 9);
        let out = Tensor::output(OperandType::TensorFloat16);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().halves(), [0.0, 255.0]);
        let input = Tensor::f16(&[1], &[-2.5]);
        let out = Tensor::output(OperandType::TensorInt32);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<i32>(), [-2]);
    }

    #[test]
    fn other_types_only_to_themselves() {
        let bytes: [i8; 2] = [-7, 7];
        let ty = OperandType::TensorQuant8Symm;
        let input = Tensor::new(ty, &[2], &bytes).quantized(0.5, 0);
        let got = run_one(&DEF, &[input], Tensor::output(ty).quantized(0.25, 0)).unwrap();
        assert_eq!(got.values::<i8>(), bytes);
        let signed = OperandType::TensorQuant8AsymmSigned;
        assert!(has_form(&DEF, HalVersion::V1_3, &[signed], &[signed]));
        assert!(!has_form(&DEF, HalVersion::V1_2, &[signed], &[signed]));
        assert!(!has_form(&DEF, HalVersion::V1_3, &[signed], &[OperandType::TensorFloat32]));
    }

    #[test]
    fn shapes_must_agree_where_they_are_known() {
        let input = Tensor::i32(&[2], &[1, 2]);
        let mut out = Tensor::f32(&[1], &[0.0]);
        let check =
            |out: &Tensor| validate(&DEF, HalVersion::V1_2, from_ref(&input), from_ref(out));
        assert!(check(&out).is_err());
        out.dims[0] = 0;
        assert!(check(&out).is_ok());
    }
}
