//! What the operations that only move values share.

use burst_hal::validate::MAX_RANK;
use burst_hal::{Dimensions, OperandType};
use half::f16;

use crate::OpError;
use crate::kernels::strided::{Move, steps};
use crate::op::Run;
use crate::ops::attributes::{Layout, Number};
use crate::tensor::TensorMut;

/// A list must have one entry per dimension of `dims`.
pub(super) fn expect_per_axis(list: &[i32], dims: &[u32]) -> Result<(), OpError> {
    if list.len() == dims.len() {
        return Ok(());
    }
    let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
    Err(OpError::shape("a list must have an entry per dimension", &[length], dims))
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
    let (input, stop) = (run.input(0)?, run.stop);
    let out = run.output(0)?;
    match width(input.info.ty)? {
        1 => moves.apply(input.u8()?, out.u8_mut()?, stop),
        2 => moves.apply(input.u16()?, out.u16_mut()?, stop),
        _ => moves.apply(input.i32()?, out.i32_mut()?, stop),
    }
}

/// The sizes of a tensor of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Images {
    /// Images, rows, columns and channels.
    pub(super) sizes: [i64; 4],
    layout: Layout,
}

impl Images {
    /// The sizes of images of shape `dims`.
    pub(super) fn new(dims: &[u32], layout: Layout) -> Result<Self, OpError> {
        let dims = <[u32; 4]>::try_from(dims)
            .map_err(|_| OpError::shape("images must have four dimensions", dims, &[]))?;
        Ok(Images { sizes: layout.sizes(dims).map(i64::from), layout })
    }

    /// The shape of images of these sizes (images, rows, columns, channels) in the same layout.
    pub(super) fn shape(self, sizes: [i64; 4]) -> Result<Dimensions, OpError> {
        shape_of(&self.layout.shape(sizes))
    }

    /// Steps from one image, row, column and channel to the next.
    pub(super) fn steps(dims: &[u32], layout: Layout) -> Result<[isize; 4], OpError> {
        let steps = <[isize; 4]>::try_from(steps(dims).as_slice())
            .map_err(|_| OpError::shape("images must have four dimensions", dims, &[]))?;
        Ok(layout.sizes(steps))
    }
}

/// Writes a number to every element.
///
/// # Errors
/// [`OpError::Value`] when it is no stored value of a quantized type, [`OpError::Type`] when it is a
/// stored value for a type of real numbers, or the other way round.
pub(super) fn fill(out: &mut TensorMut<'_>, number: Number) -> Result<(), OpError> {
    match (out.info.ty, number) {
        (OperandType::TensorFloat32, Number::Float(value)) => out.f32_mut()?.fill(value),
        // Widened and narrowed again: exact.
        (OperandType::TensorFloat16, Number::Float(value)) => {
            out.f16_mut()?.fill(f16::from_f32(value));
        }
        (OperandType::TensorInt32, Number::Int(value)) => out.i32_mut()?.fill(value),
        (OperandType::TensorQuant8Asymm, Number::Int(value)) => {
            let stored = u8::try_from(value).map_err(|_| not_stored(value))?;
            out.u8_mut()?.fill(stored);
        }
        (OperandType::TensorQuant8AsymmSigned, Number::Int(value)) => {
            let stored = i8::try_from(value).map_err(|_| not_stored(value))?;
            out.i8_mut()?.fill(stored);
        }
        (got, _) => return Err(OpError::Type { want: "the type of the number to fill with", got }),
    }
    Ok(())
}

fn not_stored(value: i32) -> OpError {
    OpError::value("stored value to fill with", value)
}

/// Steps of work that copying so many bytes counts as, for checkpoints.
pub(super) fn copy_steps(bytes: usize) -> usize {
    const BYTES_PER_STEP: usize = 16;
    1 + bytes / BYTES_PER_STEP
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
    fn sizes_must_fit_a_dimension() {
        assert_eq!(shape_of(&[2, 0]).map(|d| d.to_vec()), Ok(vec![2, 0]));
        assert!(shape_of(&[-1]).is_err());
        assert!(shape_of(&[1 << 32]).is_err());
        assert!(shape_of(&[1; MAX_RANK + 1]).is_err());
    }
}
