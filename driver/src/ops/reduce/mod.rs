//! Reductions over axes.

use burst_hal::Dimensions;

use crate::OpError;
use crate::op::{OpDef, Operands};
use crate::ops::attributes::{AxisList, AxisSet};
use crate::ops::rank_limit::expect_rank;

mod arg;
pub mod argmax;
pub mod argmin;
mod listed;
pub mod mean;
pub mod reduce_all;
pub mod reduce_any;
pub mod reduce_max;
pub mod reduce_min;
pub mod reduce_prod;
pub mod reduce_sum;
#[cfg(test)]
mod tests;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &mean::DEF,
    &argmax::DEF,
    &argmin::DEF,
    &reduce_all::DEF,
    &reduce_any::DEF,
    &reduce_max::DEF,
    &reduce_min::DEF,
    &reduce_prod::DEF,
    &reduce_sum::DEF,
];

/// Most dimensions of an input.
const MAX_RANK: usize = 4;

/// The attributes of MEAN and of the REDUCE operations.
#[derive(Debug, Clone, Copy)]
struct ReduceAttributes {
    axes: AxisList,
    /// Whether the axes stay with size 1.
    keep: bool,
}

impl ReduceAttributes {
    /// Those of a REDUCE operation, whose third operand is a BOOL.
    fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        Ok(ReduceAttributes { axes: AxisList::parse(operands, 1)?, keep: operands.bool(2)? })
    }
}

/// The shape that is left of an input that must not be empty: nothing has no mean and no maximum.
fn reduced_shape(
    dims: &[u32],
    limit: usize,
    axes: AxisSet,
    keep: bool,
) -> Result<Dimensions, OpError> {
    expect_rank(dims, limit)?;
    if dims.contains(&0) {
        return Err(OpError::shape("an input that must not be empty", dims, &[]));
    }
    Ok(axes.remove_from(dims, keep))
}
