//! TILE: repeats a tensor along each of its dimensions.
//!
//! Inputs: a tensor, how often to repeat each dimension (INT32, not below 0). Output: each size times
//! its multiple; a multiple of 0 gives an empty tensor.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::TILE`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;
use smallvec::SmallVec;

use super::common;
use crate::kernels::strided::{Move, steps};
use crate::op::types::{TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::{List, list};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of TILE.
pub static DEF: OpDef = OpDef {
    code: OperationType::Tile,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TI32], &[TF32]),
    Form::new(V1_2, &[TF16, TI32], &[TF16]),
    Form::new(V1_2, &[TI32, TI32], &[TI32]),
    Form::new(V1_2, &[TQ8, TI32], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TI32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

/// A multiple per dimension.
fn parse(operands: &dyn Operands) -> Result<List, OpError> {
    list(operands, 1)
}

fn infer(args: &Args<'_>, multiples: Parsed<'_, List>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = args.dims(0)?;
    let multiples = multiples?;
    common::expect_per_axis(multiples, dims)?;
    let sizes = dims
        .iter()
        .zip(multiples)
        .map(|(size, multiple)| {
            if *multiple < 0 {
                return Err(OpError::value("multiple of a dimension", *multiple));
            }
            Ok(i64::from(*size) * i64::from(*multiple))
        })
        .collect::<Result<SmallVec<[i64; 8]>, _>>()?;
    Ok(Inferred::one(common::shape_of(&sizes)?))
}

/// Each dimension of the output is two: which copy, and where in it. Along the first of them the
/// input stands still.
fn execute(run: &mut Run<'_, '_>, _: &List) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let dims = run.input(0)?.dims;
    let from = steps(dims);
    let to = steps(run.output(0)?.dims);
    let mut moves = Move::default();
    for axis in 0..dims.len() {
        let size = dims[axis] as usize;
        let copies = (run.output(0)?.dims[axis] as usize).checked_div(size).unwrap_or(0);
        let along = isize::try_from(size).map_err(|_| OpError::Range { what: "a dimension" })?;
        moves.axis(copies, 0, to[axis] * along);
        moves.axis(size, from[axis], to[axis]);
    }
    common::apply(run, &moves)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn tile(multiples: &[i32]) -> Result<Tensor, OpError> {
        let multiples = Tensor::i32(&[u32::try_from(multiples.len()).unwrap()], multiples);
        let input = Tensor::u8(&[2, 2], &[1, 2, 3, 4], 0.5, 7);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 7);
        run_one(&DEF, &[input, multiples], out)
    }

    #[test]
    fn copies_lie_side_by_side() {
        let got = tile(&[2, 3]).unwrap();
        assert_eq!(got.dims.as_slice(), [4, 6]);
        assert_eq!(got.values::<u8>()[..12], [1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4]);
        assert_eq!(got.values::<u8>()[12..], got.values::<u8>()[..12]);
        assert_eq!(tile(&[1, 1]).unwrap().values::<u8>(), [1, 2, 3, 4]);
    }

    #[test]
    fn no_copies_are_an_empty_tensor() {
        assert_eq!(tile(&[0, 3]).unwrap().dims.as_slice(), [0, 6]);
    }

    #[test]
    fn multiples_that_make_no_sense_are_refused() {
        assert!(tile(&[-1, 1]).is_err());
        assert!(tile(&[1]).is_err());
        assert!(tile(&[i32::MAX, i32::MAX]).is_err(), "a tensor beyond memory");
    }
}
