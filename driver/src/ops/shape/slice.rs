//! SLICE: a box cut out of a tensor.
//!
//! Inputs: a tensor, where the box begins and its sizes (INT32, an entry per dimension; a size of -1
//! reaches to the end). Output: the box, which must lie within the tensor and may be empty.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::SLICE`.

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

/// The definition of SLICE.
pub static DEF: OpDef = OpDef {
    code: OperationType::Slice,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TI32, TI32], &[TF32]),
    Form::new(V1_2, &[TF16, TI32, TI32], &[TF16]),
    Form::new(V1_2, &[TI32, TI32, TI32], &[TI32]),
    Form::new(V1_2, &[TQ8, TI32, TI32], &[TQ8]),
    Form::new(V1_3, &[TQ8S, TI32, TI32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug)]
struct Attributes {
    begin: List,
    size: List,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    Ok(Attributes { begin: list(operands, 1)?, size: list(operands, 2)? })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = args.dims(0)?;
    let Attributes { begin, size } = attributes?;
    common::expect_per_axis(begin, dims)?;
    common::expect_per_axis(size, dims)?;
    let sizes = dims
        .iter()
        .zip(begin.iter().zip(size))
        .map(|(dim, (begin, size))| cut(i64::from(*dim), i64::from(*begin), i64::from(*size)))
        .collect::<Result<SmallVec<[i64; 8]>, _>>()?;
    Ok(Inferred::one(common::shape_of(&sizes)?))
}

/// How much of a dimension is left.
fn cut(dim: i64, begin: i64, size: i64) -> Result<i64, OpError> {
    if begin < 0 || begin > dim {
        return Err(OpError::value("begin of a slice", begin));
    }
    match size {
        -1 => Ok(dim - begin),
        size if size >= 0 && begin + size <= dim => Ok(size),
        size => Err(OpError::value("size of a slice", size)),
    }
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let dims = run.input(0)?.dims;
    let out_dims = &*run.output(0)?.dims;
    let mut moves = Move::default();
    for (((size, from), to), begin) in
        out_dims.iter().zip(steps(dims)).zip(steps(out_dims)).zip(&attributes.begin)
    {
        let outside = OpError::value("begin of a slice", *begin);
        let skipped = usize::try_from(*begin).map_err(|_| outside.clone())?;
        moves.from += skipped * from.unsigned_abs();
        moves.axis(*size as usize, from, to);
    }
    common::apply(run, &moves)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn slice(begin: &[i32], size: &[i32]) -> Result<Tensor, OpError> {
        let list = |values: &[i32]| Tensor::i32(&[u32::try_from(values.len()).unwrap()], values);
        let input = Tensor::i32(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        let out = Tensor::output(OperandType::TensorInt32);
        run_one(&DEF, &[input, list(begin), list(size)], out)
    }

    #[test]
    fn the_box_is_cut_out() {
        assert_eq!(slice(&[0, 1], &[2, 2]).unwrap().values::<i32>(), [2, 3, 5, 6]);
        assert_eq!(slice(&[1, 0], &[1, 2]).unwrap().values::<i32>(), [4, 5]);
        let to_the_end = slice(&[1, 1], &[-1, -1]).unwrap();
        assert_eq!(to_the_end.dims.as_slice(), [1, 2]);
        assert_eq!(to_the_end.values::<i32>(), [5, 6]);
    }

    #[test]
    fn the_box_may_be_empty_and_so_may_the_tensor() {
        assert_eq!(slice(&[2, 0], &[0, 3]).unwrap().dims.as_slice(), [0, 3]);
        assert_eq!(slice(&[2, 0], &[-1, -1]).unwrap().dims.as_slice(), [0, 3]);
        let list = |values: &[i32]| Tensor::i32(&[2], values);
        let inputs = [Tensor::f32(&[0, 4], &[]), list(&[0, 1]), list(&[-1, 2])];
        let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(got.dims.as_slice(), [0, 2]);
    }

    #[test]
    fn a_box_beyond_the_tensor_is_refused() {
        for (begin, size) in [
            ([0, 0], [3, 1]),
            ([1, 0], [2, 1]),
            ([-1, 0], [1, 1]),
            ([3, 0], [0, 1]),
            ([0, 0], [-2, 1]),
            ([1, i32::MAX], [1, i32::MAX]),
        ] {
            assert!(slice(&begin, &size).is_err(), "{begin:?} {size:?}");
        }
        assert!(slice(&[0], &[1]).is_err());
    }
}
