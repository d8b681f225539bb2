//! CHANNEL_SHUFFLE: the channels of several groups dealt out in turn.
//!
//! Inputs: a tensor, the number of groups (INT32, above 0, divides the axis), an axis (INT32; below 0
//! counts from the end). Output: along the axis, `out[k * groups + g] = in[g * (size / groups) + k]`.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::CHANNEL_SHUFFLE`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use super::common;
use crate::kernels::strided::Move;
use crate::op::types::{I32, TF16, TF32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::Axis;
use crate::ops::quantization::rules::expect_same_outputs;
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of CHANNEL_SHUFFLE.
pub static DEF: OpDef = OpDef {
    code: OperationType::ChannelShuffle,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, I32, I32], &[TF32]),
    Form::new(V1_2, &[TF16, I32, I32], &[TF16]),
    Form::new(V1_2, &[TQ8, I32, I32], &[TQ8]),
    Form::new(V1_3, &[TQ8S, I32, I32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    axis: Axis,
    groups: i32,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    Ok(Attributes { axis: Axis::required(operands, 2)?, groups: operands.i32(1)? })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = dims_up_to_four(args, 0)?;
    let Attributes { axis, groups } = *attributes?;
    let axis = axis.position(dims.len())?;
    let divides = u32::try_from(groups).ok().and_then(|groups| dims[axis].checked_rem(groups));
    if divides != Some(0) {
        return Err(OpError::value("number of groups of channels", groups));
    }
    Ok(Inferred::one(dims))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let dims = run.input(0)?.dims;
    let axis = attributes.axis.position(dims.len())?;
    let groups = usize::try_from(attributes.groups).unwrap_or(0);
    let (before, along, after) = common::around(dims, axis);
    let in_group = along.checked_div(groups).unwrap_or(0);
    let step = |elements: usize| {
        isize::try_from(elements).map_err(|_| OpError::Range { what: "step in a tensor" })
    };
    let mut moves = Move::default();
    moves.axis(before, step(along * after)?, step(along * after)?);
    moves.axis(in_group, step(after)?, step(groups * after)?);
    moves.axis(groups, step(in_group * after)?, step(after)?);
    moves.axis(after, 1, 1);
    common::apply(run, &moves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn shuffle(input: Tensor, groups: i32, axis: i32) -> Result<Tensor, OpError> {
        let out = Tensor::output(input.info.ty);
        let out = out.quantized(input.info.scale, input.info.zero_point);
        run_one(&DEF, &[input, Tensor::scalar_i32(groups), Tensor::scalar_i32(axis)], out)
    }

    #[test]
    fn groups_are_dealt_out_in_turn() {
        let values: Vec<u8> = (0..12).collect();
        let input = Tensor::u8(&[2, 6], &values, 0.5, 3);
        let got = shuffle(input.clone(), 3, -1).unwrap();
        assert_eq!(got.values::<u8>(), [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
        assert_eq!(got.dims.as_slice(), [2, 6]);
        let got = shuffle(input, 1, 1).unwrap();
        assert_eq!(got.values::<u8>(), values);
    }

    #[test]
    fn the_axis_may_lie_anywhere() {
        let input = Tensor::f32(&[4, 2], &[0.0, 1.0, 10.0, 11.0, 20.0, 21.0, 30.0, 31.0]);
        let got = shuffle(input, 2, 0).unwrap();
        assert_eq!(got.values::<f32>(), [0.0, 1.0, 20.0, 21.0, 10.0, 11.0, 30.0, 31.0]);
        let input = Tensor::f16(&[1, 4, 1], &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(shuffle(input, 2, -2).unwrap().halves(), [1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    fn groups_that_do_not_fit_are_refused() {
        for (groups, axis) in [(0, 0), (-2, 0), (3, 0), (i32::MIN, 0), (2, 1), (2, -2)] {
            let input = Tensor::f32(&[4], &[0.0; 4]);
            assert!(shuffle(input, groups, axis).is_err(), "{groups} {axis}");
        }
    }
}
