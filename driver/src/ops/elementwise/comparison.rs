//! What EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL share: two inputs of one type
//! that broadcast, and a BOOL8 tensor of 0 and 1.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperandType;

use super::requantize::real_values;
use crate::op::types::{TB8, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, Inferred, Run, Signature};
use crate::ops::broadcast::{Side, broadcast_shape, zip};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TB8, TB8], &[TB8]),
    Form::new(V1_2, &[TF16, TF16], &[TB8]),
    Form::new(V1_2, &[TF32, TF32], &[TB8]),
    Form::new(V1_2, &[TI32, TI32], &[TB8]),
    Form::new(V1_2, &[TQ8, TQ8], &[TB8]),
    Form::new(V1_3, &[TQ8S, TQ8S], &[TB8]),
];

pub(super) fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

pub(super) fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(broadcast_shape(args.dims(0)?, args.dims(1)?)?))
}

/// Compares. `int` is for INT32 and for truth values as 0 and 1, `real` for floats and for what
/// quantized values really are: the two inputs may have scales of their own.
pub(super) fn execute(
    run: &mut Run<'_, '_>,
    int: impl Fn(i32, i32) -> bool + Sync,
    real: impl Fn(f32, f32) -> bool + Sync,
) -> Result<(), OpError> {
    let (a, b) = (run.input(0)?, run.input(1)?);
    let (a_dims, b_dims) = (a.dims, b.dims);
    let (out, mut runner) = run.output_and_runner()?;
    let out = out.u8_mut()?;
    match a.info.ty {
        OperandType::TensorBool8 => {
            let a = Side { values: a.u8()?, dims: a_dims };
            let b = Side { values: b.u8()?, dims: b_dims };
            // Any byte but 0 is true, whichever one it is.
            zip(&mut runner, out, a, b, |x, y| int(i32::from(x != 0), i32::from(y != 0)).into())
        }
        OperandType::TensorInt32 => {
            let a = Side { values: a.i32()?, dims: a_dims };
            let b = Side { values: b.i32()?, dims: b_dims };
            zip(&mut runner, out, a, b, |x, y| int(x, y).into())
        }
        OperandType::TensorFloat32 => {
            let a = Side { values: a.f32()?, dims: a_dims };
            let b = Side { values: b.f32()?, dims: b_dims };
            zip(&mut runner, out, a, b, |x, y| real(x, y).into())
        }
        OperandType::TensorFloat16 => {
            let a = Side { values: a.f16()?, dims: a_dims };
            let b = Side { values: b.f16()?, dims: b_dims };
            zip(&mut runner, out, a, b, |x, y| real(x.to_f32(), y.to_f32()).into())
        }
        OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => {
            let (a_real, b_real) = (real_values(a.info), real_values(b.info));
            let a = Side { values: a.u8()?, dims: a_dims };
            let b = Side { values: b.u8()?, dims: b_dims };
            zip(&mut runner, out, a, b, |x, y| {
                real(a_real[usize::from(x)], b_real[usize::from(y)]).into()
            })
        }
        got => Err(OpError::Type { want: "a type to compare", got }),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::op::OpDef;
    use crate::ops::testing::{Tensor, run_one};

    fn compare(def: &OpDef, a: Tensor, b: Tensor) -> Vec<u8> {
        run_one(def, &[a, b], Tensor::output(OperandType::TensorBool8)).unwrap().values()
    }

    /// Holds an operation to its answers for less, equal and greater, in every type it has.
    pub(in super::super) fn assert_answers(def: &OpDef, answers: [u8; 3]) {
        let integers = compare(
            def,
            Tensor::i32(&[3], &[-7, i32::MIN, i32::MAX]),
            Tensor::i32(&[3], &[-6, i32::MIN, i32::MIN]),
        );
        assert_eq!(integers, answers);
        let floats = ([1.0, 2.0, 3.0], [2.0]);
        assert_eq!(
            compare(def, Tensor::f32(&[3], &floats.0), Tensor::f32(&[1], &floats.1)),
            answers
        );
        assert_eq!(
            compare(def, Tensor::f16(&[1, 3], &floats.0), Tensor::f16(&[1], &floats.1)),
            answers
        );
        // False is less than true, and any byte but 0 is true.
        let truths =
            compare(def, Tensor::bool8(&[3], &[0, 1, 2]), Tensor::bool8(&[3], &[1, 255, 0]));
        assert_eq!(truths, answers);
        // 0.5 * 10 against 0.25 * 20: what is stored differs, the real values decide.
        let unsigned = compare(
            def,
            Tensor::u8(&[3], &[9, 10, 11], 0.5, 0),
            Tensor::u8(&[1], &[120], 0.25, 100),
        );
        assert_eq!(unsigned, answers);
        let signed = compare(
            def,
            Tensor::i8(&[3], &[-119, -118, -117], 0.5, -128),
            Tensor::i8(&[1], &[-8], 0.25, -28),
        );
        assert_eq!(signed, answers);
    }

    /// What the operation says of a NaN against a number, of a number against a NaN, and of NaNs.
    pub(in super::super) fn assert_nan(def: &OpDef, answer: u8) {
        let nan = f32::NAN;
        let got =
            compare(def, Tensor::f32(&[3], &[nan, 0.0, nan]), Tensor::f32(&[3], &[0.0, nan, nan]));
        assert_eq!(got, [answer; 3]);
    }
}
