//! TRANSPOSE: the dimensions in another order.
//!
//! Inputs: a tensor, a permutation of its axes (INT32): dimension `i` of the output is dimension
//! `perm[i]` of the input. Without one the order is reversed. Output: the tensor in that order.
//!
//! Source: NNAPI 1.1 `types.hal`, `OperationType::TRANSPOSE`.

use burst_hal::HalVersion::{V1_1, V1_2, V1_3};
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
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of TRANSPOSE.
pub static DEF: OpDef = OpDef {
    code: OperationType::Transpose,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.omit(&[1]),
};

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TI32], &[TF32]),
    Form::new(V1_1, &[TQ8, TI32], &[TQ8]),
    Form::new(V1_2, &[TF16, TI32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TI32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

/// Which axis of the input each axis of the output is.
type Order = SmallVec<[usize; 8]>;

/// The reference takes an omitted permutation for rank 2 only; the documentation says reversed, for
/// any rank, and that is what is done.
fn order(listed: Option<&[i32]>, rank: usize) -> Result<Order, OpError> {
    let Some(listed) = listed else { return Ok((0..rank).rev().collect()) };
    let mut seen: SmallVec<[bool; 8]> = SmallVec::from_elem(false, rank);
    let order = listed
        .iter()
        .map(|axis| {
            let index = usize::try_from(*axis).ok().filter(|index| *index < rank);
            let index = index.ok_or(OpError::value("axis in a permutation", *axis))?;
            if std::mem::replace(&mut seen[index], true) {
                return Err(OpError::value("axis listed twice in a permutation", *axis));
            }
            Ok(index)
        })
        .collect::<Result<Order, _>>()?;
    if order.len() == rank {
        return Ok(order);
    }
    Err(OpError::value("length of a permutation", i64::try_from(order.len()).unwrap_or(i64::MAX)))
}

/// The permutation, where it is given.
fn parse(operands: &dyn Operands) -> Result<Option<List>, OpError> {
    operands.has(1).then(|| list(operands, 1)).transpose()
}

fn infer(args: &Args<'_>, listed: Parsed<'_, Option<List>>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = dims_up_to_four(args, 0)?;
    let order = order(listed?.as_deref(), dims.len())?;
    Ok(Inferred::one(order.iter().map(|axis| dims[*axis]).collect::<SmallVec<_>>()))
}

fn execute(run: &mut Run<'_, '_>, listed: &Option<List>) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let dims = run.input(0)?.dims;
    let order = order(listed.as_deref(), dims.len())?;
    let from = steps(dims);
    let to_dims: SmallVec<[u32; 8]> = order.iter().map(|axis| dims[*axis]).collect();
    let mut moves = Move::default();
    for ((axis, size), to) in order.iter().zip(&to_dims).zip(steps(&to_dims)) {
        moves.axis(*size as usize, from[*axis], to);
    }
    common::apply(run, &moves)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn transpose(input: Tensor, perm: Option<&[i32]>) -> Result<Tensor, OpError> {
        let out = Tensor::output(input.info.ty);
        let perm = match perm {
            Some(perm) => Tensor::i32(&[u32::try_from(perm.len()).unwrap()], perm),
            None => Tensor::omitted(OperandType::TensorInt32),
        };
        run_one(&DEF, &[input, perm], out)
    }

    #[test]
    fn elements_follow_their_axes() {
        let input = Tensor::f32(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let got = transpose(input.clone(), Some(&[2, 0, 1])).unwrap();
        assert_eq!(got.dims.as_slice(), [3, 1, 2]);
        assert_eq!(got.values::<f32>(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let got = transpose(input, Some(&[0, 1, 2])).unwrap();
        assert_eq!(got.values::<f32>(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let half = Tensor::f16(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(transpose(half, Some(&[1, 0])).unwrap().halves(), [1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    fn without_a_permutation_the_order_is_reversed() {
        let input = Tensor::f32(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let got = transpose(input, None).unwrap();
        assert_eq!(got.dims.as_slice(), [3, 2, 1]);
        assert_eq!(got.values::<f32>(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn a_tensor_may_be_empty() {
        let got = transpose(Tensor::f32(&[0, 3], &[]), Some(&[1, 0])).unwrap();
        assert_eq!(got.dims.as_slice(), [3, 0]);
    }

    #[test]
    fn a_list_that_is_no_permutation_is_refused() {
        for perm in [&[0, 0][..], &[0], &[0, 1, 2], &[0, 2], &[0, -1]] {
            assert!(transpose(Tensor::f32(&[1, 1], &[1.0]), Some(perm)).is_err(), "{perm:?}");
        }
    }
}
