//! What MAXIMUM and MINIMUM share: two inputs of one type that broadcast.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperandType;
use half::f16;

use super::requantize::Requantize;
use crate::op::types::{TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, Inferred, Run, Signature};
use crate::ops::broadcast::{Side, broadcast_shape, zip};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TF32], &[TF32]),
    Form::new(V1_2, &[TF16, TF16], &[TF16]),
    Form::new(V1_2, &[TI32, TI32], &[TI32]),
    Form::new(V1_2, &[TQ8, TQ8], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TQ8S], &[TQ8S]),
];

pub(super) fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

pub(super) fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(broadcast_shape(args.dims(0)?, args.dims(1)?)?))
}

/// Which of two values an operation takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extremum {
    Maximum,
    Minimum,
}

impl Extremum {
    /// The first value unless the second is strictly beyond it: so a NaN is passed on only where it
    /// comes first, and of 0 and -0 the first is taken, as in the reference.
    #[inline]
    fn of<T: PartialOrd>(self, a: T, b: T) -> T {
        let second = match self {
            Extremum::Maximum => a < b,
            Extremum::Minimum => b < a,
        };
        if second { b } else { a }
    }
}

/// Takes one of two. Quantized inputs become the output's scale and zero point first.
pub(super) fn execute(run: &mut Run<'_, '_>, which: Extremum) -> Result<(), OpError> {
    let (a, b) = (run.input(0)?, run.input(1)?);
    let (out, mut runner) = run.output_and_runner()?;
    match out.info.ty {
        OperandType::TensorFloat32 => {
            let a = Side { values: a.f32()?, dims: a.dims };
            let b = Side { values: b.f32()?, dims: b.dims };
            zip(&mut runner, out.f32_mut()?, a, b, move |x, y| which.of(x, y))
        }
        OperandType::TensorFloat16 => {
            let a = Side { values: a.f16()?, dims: a.dims };
            let b = Side { values: b.f16()?, dims: b.dims };
            zip(&mut runner, out.f16_mut()?, a, b, move |x: f16, y: f16| which.of(x, y))
        }
        OperandType::TensorInt32 => {
            let a = Side { values: a.i32()?, dims: a.dims };
            let b = Side { values: b.i32()?, dims: b.dims };
            zip(&mut runner, out.i32_mut()?, a, b, move |x, y| which.of(x, y))
        }
        OperandType::TensorQuant8Asymm => {
            let (x, y) = (Requantize::new(a.info, out.info), Requantize::new(b.info, out.info));
            let a = Side { values: a.u8()?, dims: a.dims };
            let b = Side { values: b.u8()?, dims: b.dims };
            let out = out.u8_mut()?;
            if x.changes_nothing() && y.changes_nothing() {
                return zip(&mut runner, out, a, b, move |a, b| which.of(a, b));
            }
            zip(&mut runner, out, a, b, |a, b| which.of(x.unsigned(a), y.unsigned(b)))
        }
        OperandType::TensorQuant8AsymmSigned => {
            let (x, y) = (Requantize::new(a.info, out.info), Requantize::new(b.info, out.info));
            let a = Side { values: a.i8()?, dims: a.dims };
            let b = Side { values: b.i8()?, dims: b.dims };
            let out = out.i8_mut()?;
            if x.changes_nothing() && y.changes_nothing() {
                return zip(&mut runner, out, a, b, move |a, b| which.of(a, b));
            }
            zip(&mut runner, out, a, b, |a, b| which.of(x.signed(a), y.signed(b)))
        }
        got => Err(OpError::Type { want: "a type with an order", got }),
    }
}
