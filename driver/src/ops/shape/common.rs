//! What the operations that only move values share.

use burst_hal::validate::MAX_RANK;
use burst_hal::{Dimensions, OperandType};

use crate::kernels::strided::{Move, steps};
use crate::op::{Run, Signature};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// A quantized output has to mean the same as input 0: nothing here computes.
pub(super) fn keeps_quantization(signature: &Signature<'_>) -> Result<(), SignatureError> {
    let Some(input) = signature.input(0) else { return Err(signature.no_form()) };
    let same = signature
        .outputs()
        .filter(|output| output.ty == input.ty)
        .all(|output| output.scale == input.scale && output.zero_point == input.zero_point);
    signature.rule(same, "the output must have the scale and zero point of the input")
}

/// The INT32 list at input `index`, which must have one dimension.
pub(super) fn list<'a>(args: &Args<'a>, index: usize) -> Result<&'a [i32], OpError> {
    let tensor = args.tensor(index)?;
    if tensor.dims.len() != 1 {
        return Err(OpError::shape("a list must have one dimension", tensor.dims, &[]));
    }
    tensor.i32()
}

/// The INT32 list at input `index`, which must have one entry per dimension of `dims`.
pub(super) fn list_per_axis<'a>(
    args: &Args<'a>,
    index: usize,
    dims: &[u32],
) -> Result<&'a [i32], OpError> {
    let list = list(args, index)?;
    if list.len() != dims.len() {
        let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
        return Err(OpError::shape("a list must have an entry per dimension", &[length], dims));
    }
    Ok(list)
}

/// The axis that `axis` names among `rank`; below 0 counts from the end.
pub(super) fn axis(axis: i32, rank: usize) -> Result<usize, OpError> {
    let bad = OpError::value("axis", axis);
    let rank = i64::try_from(rank).map_err(|_| bad.clone())?;
    let from_start = if axis < 0 { i64::from(axis) + rank } else { i64::from(axis) };
    if !(0..rank).contains(&from_start) {
        return Err(bad);
    }
    usize::try_from(from_start).map_err(|_| bad)
}

/// The shape with these sizes.
pub(super) fn shape_of(sizes: &[i64]) -> Result<Dimensions, OpError> {
    check_rank(sizes.len())?;
    let too_large = OpError::Range { what: "size of a dimension" };
    sizes.iter().map(|size| u32::try_from(*size).map_err(|_| too_large.clone())).collect()
}

/// Refuses shapes of more dimensions than a model may declare: a list that a peer controls must
/// not decide how large our own tables get.
pub(super) fn check_rank(rank: usize) -> Result<(), OpError> {
    if rank > MAX_RANK {
        return Err(OpError::value(
            "number of dimensions",
            i64::try_from(rank).unwrap_or(i64::MAX),
        ));
    }
    Ok(())
}

/// Elements before, along and after `axis`. Only the shape of an empty tensor can have a product
/// beyond memory; it is held at the largest number.
pub(super) fn around(dims: &[u32], axis: usize) -> (usize, usize, usize) {
    let count =
        |dims: &[u32]| dims.iter().fold(1usize, |count, dim| count.saturating_mul(*dim as usize));
    (count(&dims[..axis]), dims[axis] as usize, count(&dims[axis + 1..]))
}

/// Bytes of one element.
pub(super) fn width(ty: OperandType) -> Result<usize, OpError> {
    ty.element_bytes().ok_or(OpError::Type { want: "a type of known size", got: ty })
}

/// Whether there is nothing to write. The sizes of an empty tensor need not multiply to a number,
/// so that positions in it are not to be computed.
pub(super) fn writes_nothing(run: &mut Run<'_, '_>) -> Result<bool, OpError> {
    Ok(run.output(0)?.bytes_mut().is_empty())
}

/// Moves elements of input 0 to output 0, whatever their type.
pub(super) fn apply(run: &mut Run<'_, '_>, moves: &Move) -> Result<(), OpError> {
    let input = run.input(0)?;
    let out = run.output(0)?;
    match width(input.info.ty)? {
        1 => moves.apply(input.u8()?, out.u8_mut()?),
        2 => moves.apply(input.u16()?, out.u16_mut()?),
        _ => moves.apply(input.i32()?, out.i32_mut()?),
    }
}

/// The sizes and steps of a tensor of images, whatever the order of its dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Images {
    /// Images, rows, columns and channels.
    pub(super) sizes: [i64; 4],
    nchw: bool,
}

impl Images {
    /// Reads a shape of four dimensions, `[n, h, w, c]` or with `nchw` `[n, c, h, w]`.
    pub(super) fn new(dims: &[u32], nchw: bool) -> Result<Self, OpError> {
        let [a, b, c, d] = *dims else {
            return Err(OpError::shape("images must have four dimensions", dims, &[]));
        };
        let [a, b, c, d] = [a, b, c, d].map(i64::from);
        Ok(Images { sizes: if nchw { [a, c, d, b] } else { [a, b, c, d] }, nchw })
    }

    /// The shape of images of these sizes (images, rows, columns, channels) in the same order.
    pub(super) fn shape(self, [n, h, w, c]: [i64; 4]) -> Result<Dimensions, OpError> {
        shape_of(&if self.nchw { [n, c, h, w] } else { [n, h, w, c] })
    }

    /// Steps from one image, row, column and channel to the next.
    pub(super) fn steps(dims: &[u32], nchw: bool) -> Result<[isize; 4], OpError> {
        let [a, b, c, d] = *steps(dims) else {
            return Err(OpError::shape("images must have four dimensions", dims, &[]));
        };
        Ok(if nchw { [a, c, d, b] } else { [a, b, c, d] })
    }
}

/// The layout flag at input `index`, where it is given: whether channels come before rows.
pub(super) fn nchw(args: &Args<'_>, index: usize) -> Result<bool, OpError> {
    if index < args.inputs.len() { args.bool(index) } else { Ok(false) }
}

/// As [`nchw`], while running.
pub(super) fn nchw_of_run(run: &Run<'_, '_>, index: usize) -> Result<bool, OpError> {
    run.optional(index).map_or(Ok(false), |flag| flag.scalar_bool())
}

/// Copies input 0 to output 0 as it is.
pub(super) fn copy(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let input = run.input(0)?;
    let bytes = input.bytes.ok_or(OpError::Omitted { index: 0 })?;
    let out = run.output(0)?.bytes_mut();
    if out.len() != bytes.len() {
        return Err(OpError::Internal { what: "a copy changed its size" });
    }
    out.copy_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_below_zero_counts_from_the_end() {
        assert_eq!(axis(2, 3), Ok(2));
        assert_eq!(axis(-1, 3), Ok(2));
        assert_eq!(axis(-3, 3), Ok(0));
        for bad in [3, -4, i32::MAX, i32::MIN] {
            assert_eq!(axis(bad, 3), Err(OpError::value("axis", bad)));
        }
    }

    #[test]
    fn sizes_must_fit_a_dimension() {
        assert_eq!(shape_of(&[2, 0]).map(|d| d.to_vec()), Ok(vec![2, 0]));
        assert!(shape_of(&[-1]).is_err());
        assert!(shape_of(&[1 << 32]).is_err());
        assert!(shape_of(&[1; MAX_RANK + 1]).is_err());
    }
}
