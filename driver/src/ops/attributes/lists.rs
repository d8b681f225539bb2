//! Lists of numbers, one per dimension of a tensor.

use burst_hal::validate::MAX_RANK;
use smallvec::SmallVec;

use crate::OpError;
use crate::op::Operands;

/// A list of at most as many numbers as a shape has dimensions.
pub(crate) type List = SmallVec<[i32; 4]>;

/// A list of pairs (before, after), at most one per dimension.
pub(crate) type Pairs = SmallVec<[[i32; 2]; 4]>;

/// The 1-D INT32 tensor at input `index`.
///
/// # Errors
/// As [`Operands::tensor`]; [`OpError::Shape`] when it is not 1-D, or longer than any shape: a list
/// that a client controls must not decide how large our own tables get.
pub(crate) fn list(operands: &dyn Operands, index: usize) -> Result<List, OpError> {
    let tensor = operands.tensor(index)?;
    match *tensor.dims {
        [length] if length as usize <= MAX_RANK => Ok(tensor.i32()?.into()),
        _ => Err(OpError::shape("a list must have one dimension", tensor.dims, &[])),
    }
}

/// The INT32 tensor `[dimensions, 2]` at input `index`: paddings, none below 0.
///
/// # Errors
/// As [`Operands::tensor`]; [`OpError::Shape`] for another shape, or more pairs than any shape has
/// dimensions; [`OpError::Value`] for a number below 0.
pub(crate) fn pairs(operands: &dyn Operands, index: usize) -> Result<Pairs, OpError> {
    let tensor = operands.tensor(index)?;
    match *tensor.dims {
        [count, 2] if count as usize <= MAX_RANK => {}
        _ => return Err(OpError::shape("shape of the paddings", tensor.dims, &[0, 2])),
    }
    let (pairs, _) = tensor.i32()?.as_chunks();
    match pairs.iter().flatten().find(|padding| **padding < 0) {
        Some(bad) => Err(OpError::value("padding", *bad)),
        None => Ok(pairs.into()),
    }
}
