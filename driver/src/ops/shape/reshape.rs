//! RESHAPE: the same elements in another shape.
//!
//! Inputs: a tensor, a list of sizes (INT32); one size may be -1 and is then what is left over.
//! Output: the tensor in that shape, which must have as many elements.
//!
//! Source: NNAPI `types.hal`, `OperationType::RESHAPE`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::OperationType;

use super::common;
use crate::op::types::{TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::{List, list};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::{Args, element_count};
use crate::{OpError, SignatureError};

/// The definition of RESHAPE.
pub static DEF: OpDef = OpDef {
    code: OperationType::Reshape,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, TI32], &[TF32]),
    Form::new(V1_0, &[TQ8, TI32], &[TQ8]),
    Form::new(V1_2, &[TF16, TI32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TI32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

/// The new sizes; -1 stands for what is left over.
fn parse(operands: &dyn Operands) -> Result<List, OpError> {
    list(operands, 1)
}

fn infer(args: &Args<'_>, wanted: Parsed<'_, List>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = dims_up_to_four(args, 0)?;
    let wanted = wanted?;
    let count = i64::try_from(element_count(dims)?)
        .map_err(|_| OpError::Range { what: "number of elements" })?;
    let mut sizes: smallvec::SmallVec<[i64; 8]> =
        wanted.iter().map(|size| (*size).into()).collect();
    let left_over = left_over(&sizes, count)?;
    for size in &mut sizes {
        if *size == -1 {
            *size = left_over;
        }
    }
    let shape = common::shape_of(&sizes)?;
    if element_count(&shape)? != element_count(dims)? {
        return Err(OpError::shape("elements before and after", dims, &shape));
    }
    Ok(Inferred::one(shape))
}

/// The size that -1 stands for. A size of 0 beside a -1 leaves it undetermined and is refused, where
/// the reference would divide by zero.
fn left_over(sizes: &[i64], count: i64) -> Result<i64, OpError> {
    let mut known = 1i64;
    let mut unknown = 0;
    for size in sizes {
        match *size {
            -1 => unknown += 1,
            size if size < 0 => return Err(OpError::value("size to reshape to", size)),
            size => {
                known =
                    known.checked_mul(size).ok_or(OpError::Range { what: "number of elements" })?;
            }
        }
    }
    match unknown {
        0 => Ok(0),
        1 => count
            .checked_rem(known)
            .filter(|rest| *rest == 0)
            .map(|_| count / known)
            .ok_or(OpError::value("size that -1 stands for, times the others,", count)),
        _ => Err(OpError::value("number of sizes given as -1", unknown)),
    }
}

fn execute(run: &mut Run<'_, '_>, _: &List) -> Result<(), OpError> {
    common::copy(run)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, infer, run_one, validate};

    fn shape(from: &[u32], to: &[i32]) -> Result<Vec<u32>, OpError> {
        let count: u32 = from.iter().product();
        let input = Tensor::f32(from, &vec![0.0; count as usize]);
        let length = u32::try_from(to.len()).unwrap();
        let out = Tensor::output(OperandType::TensorFloat32);
        match infer(&DEF, &[input, Tensor::i32(&[length], to)], &[out])? {
            Inferred::Shapes(shapes) => Ok(shapes[0].to_vec()),
            Inferred::DataDependent => panic!("RESHAPE knows its shape"),
        }
    }

    #[test]
    fn one_size_may_be_left_over() {
        assert_eq!(shape(&[2, 3, 4], &[4, 6]), Ok(vec![4, 6]));
        assert_eq!(shape(&[2, 3, 4], &[-1]), Ok(vec![24]));
        assert_eq!(shape(&[2, 3, 4], &[3, -1, 2]), Ok(vec![3, 4, 2]));
        assert_eq!(shape(&[1], &[]), Ok(vec![]));
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for to in [&[5, 5][..], &[-1, -1], &[5, -1], &[-2, -12], &[0, 24], &[i32::MAX; 8]] {
            assert!(shape(&[2, 3, 4], to).is_err(), "{to:?}");
        }
        assert!(shape(&[1], &[1; 100]).is_err(), "a list may not decide our memory");
    }

    #[test]
    fn a_zero_beside_a_left_over_size_is_an_error_and_no_division() {
        assert!(shape(&[2, 3], &[0, -1]).is_err());
        assert!(shape(&[0, 3], &[0, -1]).is_err());
    }

    #[test]
    fn elements_keep_their_order() {
        let input = Tensor::i8(&[2, 3], &[1, -2, 3, -4, 5, -6], 0.5, 3);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, 3);
        let got = run_one(&DEF, &[input, Tensor::i32(&[2], &[3, 2])], out).unwrap();
        assert_eq!(got.dims.as_slice(), [3, 2]);
        assert_eq!(got.values::<i8>(), [1, -2, 3, -4, 5, -6]);
    }

    #[test]
    fn a_quantized_output_must_mean_the_same() {
        let inputs = [Tensor::u8(&[1], &[1], 0.5, 3), Tensor::i32(&[1], &[1])];
        let out =
            |scale, zero| [Tensor::output(OperandType::TensorQuant8Asymm).quantized(scale, zero)];
        for (scale, zero_point, fits) in
            [(0.5, 3, true), (0.5f32.next_up(), 3, true), (0.25, 3, false), (0.5, 4, false)]
        {
            // Nothing that a model must not say: the operation cannot be computed, and no more.
            assert!(validate(&DEF, V1_0, &inputs, &out(scale, zero_point)).is_ok());
            assert_eq!(infer(&DEF, &inputs, &out(scale, zero_point)).is_ok(), fits, "{scale}");
        }
    }
}
