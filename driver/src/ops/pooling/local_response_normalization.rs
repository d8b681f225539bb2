//! LOCAL_RESPONSE_NORMALIZATION: each value divided by a power of the squares around it.
//!
//! Inputs: a tensor of up to 4 dimensions, an INT32 scalar (radius), three float scalars (bias, which
//! is not 0, alpha, beta), an optional INT32 scalar (the axis; default: the last). Output: the same shape,
//! `x / (bias + alpha * sum of squares)^beta`.
//!
//! Source: NNAPI `types.hal`, `OperationType::LOCAL_RESPONSE_NORMALIZATION`.

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::{HalVersion, OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::kernels::lanes::Lanes;
use crate::kernels::norm::local_response_lane;
use crate::op::types::{F16, F32, I32, TF16, TF32};
use crate::op::{
    Checkpoints, Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::Axis;
use crate::ops::pooling::{MAX_RANK, expect_lane_rank};
use crate::ops::rank_limit::expect_rank;
use crate::tensor::Args;

/// The definition of LOCAL_RESPONSE_NORMALIZATION.
pub static DEF: OpDef = OpDef {
    code: OperationType::LocalResponseNormalization,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const COUNTS: &[(usize, HalVersion)] = &[(5, V1_0), (6, V1_2)];

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, I32, F32, F32, F32, I32], &[TF32]).counts(COUNTS),
    Form::new(V1_2, &[TF16, I32, F16, F16, F16, I32], &[TF16]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    expect_lane_rank(signature)
}

/// Which values around a value count.
#[derive(Debug, Clone, Copy)]
struct Neighbours {
    /// So many on either side.
    radius: usize,
    axis: Axis,
}

impl Neighbours {
    fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        let radius = operands.i32(1)?;
        let radius = usize::try_from(radius).map_err(|_| OpError::value("radius", radius))?;
        Ok(Neighbours { radius, axis: Axis::optional(operands, 5)? })
    }
}

#[derive(Debug)]
struct Attributes {
    neighbours: Neighbours,
    bias: f32,
    alpha: f32,
    beta: f32,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let bias = operands.float(2)?;
    if bias == 0.0 {
        // Among zeros the divisor would be 0, too.
        return Err(OpError::value("bias", 0));
    }
    Ok(Attributes {
        neighbours: Neighbours::parse(operands)?,
        bias,
        alpha: operands.float(3)?,
        beta: operands.float(4)?,
    })
}

/// The shape is known also where the floats are not yet.
fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let dims = args.dims(0)?;
    expect_rank(dims, MAX_RANK)?;
    let neighbours = match attributes {
        Ok(attributes) => attributes.neighbours,
        Err(OpError::NotYet) => Neighbours::parse(args)?,
        Err(error) => return Err(error),
    };
    neighbours.axis.position(dims.len())?;
    Ok(Inferred::one(dims))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    let input = run.input(0)?;
    let Attributes { neighbours: Neighbours { radius, axis }, bias, alpha, beta } = *attributes;
    let lanes = Lanes::new(input.dims, axis.position(input.dims.len())?);
    let Run { outputs, scratch, stop, .. } = run;
    let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    let work = (scratch.f32(2 * lanes.len)?, stop.checkpoints());
    let make = |read: &[f32], write: &mut [f32], checkpoints: &mut Checkpoints<'_>| {
        local_response_lane(read, write, radius, (bias, alpha, beta), checkpoints)
    };
    match out.info.ty {
        OperandType::TensorFloat32 => {
            lanes.map(input.f32()?, out.f32_mut()?, work, (|x| x, |x| x), make)
        }
        _ => {
            let convert = (f16::to_f32, f16::from_f32);
            lanes.map(input.f16()?, out.f16_mut()?, work, convert, make)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, infer, run, run_one};

    fn inputs(input: Tensor, radius: i32, [bias, alpha, beta]: [Tensor; 3]) -> Vec<Tensor> {
        vec![input, Tensor::scalar_i32(radius), bias, alpha, beta]
    }

    #[test]
    fn a_window_along_an_axis() {
        let out = || Tensor::output(OperandType::TensorFloat32);
        let parameters = [2.0, 1.0, 1.0].map(Tensor::scalar_f32);
        // Rows 1 2 and 2 1: along rows 1/(2+5), 2/7; with radius 0 1/3, 2/6.
        let input = Tensor::f32(&[1, 1, 2, 2], &[1.0, 2.0, 2.0, 1.0]);
        let close = |got: Tensor, want: [f32; 4]| {
            for (got, want) in got.values::<f32>().iter().zip(want) {
                assert!((got - want).abs() < 1e-6, "{got} {want}");
            }
        };
        let all = inputs(input.clone(), 1, parameters.clone());
        close(run_one(&DEF, &all, out()).unwrap(), [1.0 / 7.0, 2.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0]);
        let mut all = inputs(input, 0, parameters);
        close(run_one(&DEF, &all, out()).unwrap(), [1.0 / 3.0, 2.0 / 6.0, 2.0 / 6.0, 1.0 / 3.0]);
        all[1] = Tensor::scalar_i32(5);
        all.push(Tensor::scalar_i32(0));
        close(run_one(&DEF, &all, out()).unwrap(), [1.0 / 3.0, 2.0 / 6.0, 2.0 / 6.0, 1.0 / 3.0]);
    }

    #[test]
    fn halves() {
        let all = inputs(
            Tensor::f16(&[1, 1, 1, 2], &[1.0, 1.0]),
            1,
            [2.0, 1.0, 0.5].map(Tensor::scalar_f16),
        );
        let got = run_one(&DEF, &all, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(got.halves(), [0.5, 0.5]);
    }

    /// Division by zero: a lane of zeros with a bias of 0 was NaN.
    #[test]
    fn a_bias_of_zero_is_refused() {
        for (bias, fits) in [(0.0, false), (-0.0, false), (1e-40, true), (-1.0, true)] {
            let parameters = [bias, 1.0, 1.0].map(Tensor::scalar_f32);
            let all = inputs(Tensor::f32(&[2], &[0.0, 0.0]), 1, parameters);
            let out = [Tensor::output(OperandType::TensorFloat32)];
            assert_eq!(infer(&DEF, &all, &out).is_ok(), fits, "planned with {bias}");
            assert_eq!(run(&DEF, &all, &out).is_ok(), fits, "run with {bias}");
        }
    }

    #[test]
    fn a_negative_radius_is_refused() {
        let parameters = [2.0, 1.0, 1.0].map(Tensor::scalar_f32);
        let all = inputs(Tensor::f32(&[1], &[1.0]), -1, parameters);
        assert!(run_one(&DEF, &all, Tensor::output(OperandType::TensorFloat32)).is_err());
    }
}
