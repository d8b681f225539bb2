//! Axes as operations give them: counted from either end, once or as a list.

use burst_hal::Dimensions;

use crate::OpError;
use crate::tensor::{Args, TensorRef};

/// Most dimensions that an operation which walks axes by a mask takes.
pub(crate) const MAX_RANK: usize = 32;

/// The position of `axis` among `rank` dimensions; a negative one counts from the end.
///
/// # Errors
/// [`OpError::Value`] when there is no such dimension.
pub(crate) fn resolve(axis: i32, rank: usize) -> Result<usize, OpError> {
    let bad = OpError::value("an axis", axis);
    let rank = i64::try_from(rank).map_err(|_| bad.clone())?;
    let axis = i64::from(axis);
    let position = if axis < 0 { axis + rank } else { axis };
    if position >= rank {
        return Err(bad);
    }
    usize::try_from(position).map_err(|_| bad)
}

/// The axis that the optional scalar at `index` gives, or the last one.
///
/// # Errors
/// As [`resolve`] and [`Args::i32`].
pub(crate) fn optional(args: &Args<'_>, index: usize, rank: usize) -> Result<usize, OpError> {
    let axis = if args.has(index) { args.i32(index)? } else { -1 };
    resolve(axis, rank)
}

/// A shape may have at most `limit` dimensions, and at least one.
///
/// # Errors
/// [`OpError::Shape`].
pub(crate) fn expect_rank(dims: &[u32], limit: usize) -> Result<(), OpError> {
    if dims.is_empty() || dims.len() > limit {
        return Err(OpError::shape("number of dimensions", dims, &[]));
    }
    Ok(())
}

/// A set of axes of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AxisSet(u32);

impl AxisSet {
    /// The axes listed in a 1-D INT32 tensor; naming one twice does no harm.
    ///
    /// # Errors
    /// As [`resolve`]; [`OpError::Shape`] when the list is not 1-D or the shape has too many
    /// dimensions.
    pub(crate) fn listed(list: &TensorRef<'_>, rank: usize) -> Result<Self, OpError> {
        if list.dims.len() != 1 || rank > MAX_RANK {
            return Err(OpError::shape("the list of axes", list.dims, &[]));
        }
        list.i32()?
            .iter()
            .try_fold(AxisSet(0), |set, axis| Ok(AxisSet(set.0 | 1 << resolve(*axis, rank)?)))
    }

    /// Whether `axis` is one of them.
    pub(crate) fn has(self, axis: usize) -> bool {
        axis < MAX_RANK && self.0 >> axis & 1 == 1
    }

    /// `dims` without these axes, or with size 1 there. A shape that loses all its dimensions
    /// becomes `[1]`.
    pub(crate) fn remove_from(self, dims: &[u32], keep: bool) -> Dimensions {
        let mut left = Dimensions::new();
        for (axis, dim) in dims.iter().enumerate() {
            match (self.has(axis), keep) {
                (true, true) => left.push(1),
                (true, false) => {}
                (false, _) => left.push(*dim),
            }
        }
        if left.is_empty() {
            left.push(1);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(resolve(0, 3), Ok(0));
        assert_eq!(resolve(-1, 3), Ok(2));
        assert_eq!(resolve(-3, 3), Ok(0));
        for (axis, rank) in [(3, 3), (-4, 3), (i32::MIN, 4), (i32::MAX, 4), (0, 0)] {
            assert!(resolve(axis, rank).is_err(), "{axis} of {rank}");
        }
    }

    #[test]
    fn removing_everything_leaves_one_element() {
        let all = AxisSet(0b11);
        assert_eq!(all.remove_from(&[2, 3], false).as_slice(), [1]);
        assert_eq!(all.remove_from(&[2, 3], true).as_slice(), [1, 1]);
        assert_eq!(AxisSet(0b01).remove_from(&[2, 3], false).as_slice(), [3]);
        assert_eq!(AxisSet(0).remove_from(&[2, 3], false).as_slice(), [2, 3]);
    }
}
