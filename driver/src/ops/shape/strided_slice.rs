//! STRIDED_SLICE: elements at regular distances along each dimension.
//!
//! Inputs: a tensor; begin, end and stride of each dimension (INT32 lists); three INT32 scalars with
//! one bit per dimension: begin to be ignored, end to be ignored, dimension to be dropped. An index
//! below 0 counts from the end, and indexes are held within the dimension. A dropped dimension must
//! keep exactly one element; when all are dropped the shape is `[1]`.
//!
//! Source: NNAPI 1.1 `types.hal`, `OperationType::STRIDED_SLICE`.

use burst_hal::HalVersion::{V1_1, V1_2, V1_3};
use burst_hal::{Dimensions, OperationType};
use smallvec::SmallVec;

use super::common;
use crate::kernels::strided::{Move, steps};
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::{List, list};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::ops::rank_limit::dims_up_to_four;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of STRIDED_SLICE.
pub static DEF: OpDef = OpDef {
    code: OperationType::StridedSlice,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TI32, TI32, TI32, I32, I32, I32], &[TF32]),
    Form::new(V1_1, &[TQ8, TI32, TI32, TI32, I32, I32, I32], &[TQ8]),
    Form::new(V1_2, &[TF16, TI32, TI32, TI32, I32, I32, I32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TI32, TI32, TI32, I32, I32, I32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

/// The elements that the slice selects along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AxisSlice {
    first: i64,
    stride: i64,
    count: i64,
    dropped: bool,
}

/// One entry per dimension, and the masks.
#[derive(Debug)]
struct Attributes {
    begin: List,
    end: List,
    stride: List,
    ignore_begin: i32,
    ignore_end: i32,
    drop: i32,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    Ok(Attributes {
        begin: list(operands, 1)?,
        end: list(operands, 2)?,
        stride: list(operands, 3)?,
        ignore_begin: operands.i32(4)?,
        ignore_end: operands.i32(5)?,
        drop: operands.i32(6)?,
    })
}

impl Attributes {
    fn axis_slices(&self, dims: &[u32]) -> Result<SmallVec<[AxisSlice; 8]>, OpError> {
        dims.iter().enumerate().map(|(axis, dim)| self.of_axis(axis, i64::from(*dim))).collect()
    }

    fn of_axis(&self, axis: usize, dim: i64) -> Result<AxisSlice, OpError> {
        let bit = |mask: i32| axis < 32 && mask >> axis & 1 == 1;
        let at = |list: &[i32]| {
            list.get(axis)
                .map(|value| i64::from(*value))
                .ok_or(OpError::Internal { what: "a list has no entry for a dimension" })
        };
        let stride = at(&self.stride)?;
        if stride == 0 {
            return Err(OpError::value("stride of a slice", 0));
        }
        // Where a walk in this direction can start, and where it can stop at the latest.
        let (lowest, highest) = if stride > 0 { (0, dim) } else { (-1, dim - 1) };
        let (start, stop) = if stride > 0 { (0, dim) } else { (dim - 1, -1) };
        let held =
            |index: i64| (if index < 0 { index + dim } else { index }).clamp(lowest, highest);
        let first = if bit(self.ignore_begin) { start } else { held(at(&self.begin)?) };
        let last = if bit(self.ignore_end) { stop } else { held(at(&self.end)?) };
        let distance = if stride > 0 { last - first } else { first - last };
        let count = distance.max(0).unsigned_abs().div_ceil(stride.unsigned_abs());
        let count = i64::try_from(count).map_err(|_| OpError::Range { what: "size of a slice" })?;
        let dropped = bit(self.drop);
        if dropped && stride < 0 {
            return Err(OpError::value("stride of a dropped dimension", stride));
        }
        if dropped && count != 1 {
            return Err(OpError::value("elements left of a dropped dimension", count));
        }
        Ok(AxisSlice { first, stride, count, dropped })
    }
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = dims_up_to_four(args, 0)?;
    let attributes = attributes?;
    for list in [&attributes.begin, &attributes.end, &attributes.stride] {
        common::expect_per_axis(list, dims)?;
    }
    let slices = attributes.axis_slices(dims)?;
    let sizes: SmallVec<[i64; 8]> =
        slices.iter().filter(|slice| !slice.dropped).map(|slice| slice.count).collect();
    if sizes.is_empty() {
        return Ok(Inferred::one(Dimensions::from_slice(&[1])));
    }
    Ok(Inferred::one(common::shape_of(&sizes)?))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let dims = run.input(0)?.dims;
    let slices = attributes.axis_slices(dims)?;
    // With the dropped dimensions as dimensions of one element.
    let full =
        common::shape_of(&slices.iter().map(|slice| slice.count).collect::<SmallVec<[i64; 8]>>())?;
    let too_far = OpError::Range { what: "position in a tensor" };
    let mut moves = Move::default();
    for ((slice, from), (size, to)) in
        slices.iter().zip(steps(dims)).zip(full.iter().zip(steps(&full)))
    {
        if slice.count == 0 {
            return Ok(());
        }
        let first = usize::try_from(slice.first).map_err(|_| too_far.clone())?;
        // The stride of a single element leads nowhere, and may be huge.
        let stride = if slice.count == 1 { 0 } else { slice.stride };
        let stride = isize::try_from(stride).map_err(|_| too_far.clone())?;
        moves.from += first * from.unsigned_abs();
        moves.axis(*size as usize, from * stride, to);
    }
    common::apply(run, &moves)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    struct Case<'a> {
        begin: &'a [i32],
        end: &'a [i32],
        stride: &'a [i32],
        masks: [i32; 3],
    }

    fn slice(dims: &[u32], case: &Case<'_>) -> Result<(Vec<u32>, Vec<f32>), OpError> {
        let count: u32 = dims.iter().product();
        let values: Vec<f32> =
            (1..=count).map(|value| f32::from(u16::try_from(value).unwrap())).collect();
        let list = |values: &[i32]| Tensor::i32(&[u32::try_from(values.len()).unwrap()], values);
        let inputs = [
            Tensor::f32(dims, &values),
            list(case.begin),
            list(case.end),
            list(case.stride),
            Tensor::scalar_i32(case.masks[0]),
            Tensor::scalar_i32(case.masks[1]),
            Tensor::scalar_i32(case.masks[2]),
        ];
        let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32))?;
        Ok((got.dims.to_vec(), got.values()))
    }

    fn of_four(begin: i32, end: i32, stride: i32, masks: [i32; 3]) -> Result<Vec<f32>, OpError> {
        let case = Case { begin: &[begin], end: &[end], stride: &[stride], masks };
        slice(&[4], &case).map(|(_, values)| values)
    }

    #[test]
    fn indexes_count_from_either_end_and_are_held_within() {
        for (begin, end, stride, want) in [
            (1, 3, 1, &[2.0, 3.0][..]),
            (-3, -1, 1, &[2.0, 3.0]),
            (-9, 9, 1, &[1.0, 2.0, 3.0, 4.0]),
            (0, 4, 2, &[1.0, 3.0]),
            (0, 4, 3, &[1.0, 4.0]),
            (3, 0, -1, &[4.0, 3.0, 2.0]),
            (-1, -5, -1, &[4.0, 3.0, 2.0, 1.0]),
            (9, -9, -2, &[4.0, 2.0]),
            (2, 2, 1, &[]),
            (3, 1, 1, &[]),
            (0, 4, i32::MAX, &[1.0]),
            (3, -9, i32::MIN, &[4.0]),
            (i32::MIN, i32::MAX, 1, &[1.0, 2.0, 3.0, 4.0]),
        ] {
            let got = of_four(begin, end, stride, [0; 3]);
            assert_eq!(got, Ok(want.to_vec()), "{begin}..{end} by {stride}");
        }
        assert!(of_four(0, 4, 0, [0; 3]).is_err(), "no stride, no end");
    }

    #[test]
    fn ignored_ends_are_those_of_the_dimension() {
        assert_eq!(of_four(2, 3, 1, [1, 0, 0]), Ok(vec![1.0, 2.0, 3.0]));
        assert_eq!(of_four(2, 3, 1, [0, 1, 0]), Ok(vec![3.0, 4.0]));
        assert_eq!(of_four(1, 2, -1, [1, 1, 0]), Ok(vec![4.0, 3.0, 2.0, 1.0]));
    }

    #[test]
    fn a_dropped_dimension_keeps_one_element() {
        let case =
            |drop| Case { begin: &[1, 0], end: &[2, 3], stride: &[1, 1], masks: [0, 0, drop] };
        assert_eq!(slice(&[2, 3], &case(1)), Ok((vec![3], vec![4.0, 5.0, 6.0])));
        assert!(slice(&[2, 3], &case(2)).is_err(), "three elements are not one");
        let one = Case { begin: &[1, 2], end: &[2, 3], stride: &[1, 1], masks: [0, 0, 3] };
        assert_eq!(slice(&[2, 3], &one), Ok((vec![1], vec![6.0])), "nothing left gives [1]");
        let back = Case { begin: &[1, 2], end: &[0, 3], stride: &[-1, 1], masks: [0, 0, 1] };
        assert!(slice(&[2, 3], &back).is_err(), "only forwards");
    }

    #[test]
    fn each_dimension_has_its_own_stride() {
        let case = Case { begin: &[1, 0], end: &[-3, 3], stride: &[-1, 2], masks: [0; 3] };
        assert_eq!(slice(&[2, 3], &case), Ok((vec![2, 2], vec![4.0, 6.0, 1.0, 3.0])));
        let short = Case { begin: &[0], end: &[1, 1], stride: &[1, 1], masks: [0; 3] };
        assert!(slice(&[2, 3], &short).is_err());
    }
}
