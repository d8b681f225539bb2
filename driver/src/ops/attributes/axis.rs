//! Axes as operands give them: counted from either end, one or a list.

use burst_hal::Dimensions;

use crate::OpError;
use crate::op::Operands;

/// Most dimensions that an operation which walks axes by a mask takes.
pub(crate) const MAX_RANK: usize = 32;

/// An axis of a shape that need not be known yet; below 0 counts from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis(i32);

impl Axis {
    /// The last one.
    pub(crate) const LAST: Axis = Axis(-1);

    /// The axis that the INT32 at input `index` gives.
    ///
    /// # Errors
    /// As [`Operands::i32`].
    pub(crate) fn required(operands: &dyn Operands, index: usize) -> Result<Self, OpError> {
        operands.i32(index).map(Axis)
    }

    /// The axis that the INT32 at input `index` gives, or the last one where it is left out.
    ///
    /// # Errors
    /// As [`Operands::i32`].
    pub(crate) fn optional(operands: &dyn Operands, index: usize) -> Result<Self, OpError> {
        if operands.has(index) { Axis::required(operands, index) } else { Ok(Axis::LAST) }
    }

    /// Its position among `rank` dimensions.
    ///
    /// # Errors
    /// [`OpError::Value`] when there is no such dimension.
    pub(crate) fn position(self, rank: usize) -> Result<usize, OpError> {
        let Axis(axis) = self;
        let bad = OpError::value("an axis", axis);
        let rank = i64::try_from(rank).map_err(|_| bad.clone())?;
        let axis = i64::from(axis);
        let position = if axis < 0 { axis + rank } else { axis };
        if position >= rank {
            return Err(bad);
        }
        usize::try_from(position).map_err(|_| bad)
    }

    /// Its position among `rank` dimensions, for operations whose axis must not be below 0.
    ///
    /// # Errors
    /// [`OpError::Value`] when there is no such dimension.
    pub(crate) fn position_from_start(self, rank: usize) -> Result<usize, OpError> {
        if self.0 < 0 { Err(OpError::value("an axis", self.0)) } else { self.position(rank) }
    }
}

/// A list of axes of a shape that need not be known yet; naming one twice does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AxisList {
    /// Bit `n`: axis `n`.
    from_start: u32,
    /// Bit `n`: axis `-1 - n`.
    from_end: u32,
}

impl AxisList {
    /// The axes in the 1-D INT32 tensor at input `index`.
    ///
    /// # Errors
    /// As [`Operands::tensor`]; [`OpError::Shape`] when the list is not 1-D, [`OpError::Value`]
    /// for an axis that no shape has.
    pub(crate) fn parse(operands: &dyn Operands, index: usize) -> Result<Self, OpError> {
        let list = operands.tensor(index)?;
        if list.dims.len() != 1 {
            return Err(OpError::shape("the list of axes", list.dims, &[]));
        }
        let mut axes = AxisList { from_start: 0, from_end: 0 };
        for axis in list.i32()? {
            let (mask, bit) = if *axis < 0 {
                (&mut axes.from_end, !*axis)
            } else {
                (&mut axes.from_start, *axis)
            };
            // Of a number that is not below 0, `!` is below 0 and the other way round.
            *mask |= u32::try_from(bit)
                .ok()
                .and_then(|bit| 1u32.checked_shl(bit))
                .ok_or(OpError::value("an axis", *axis))?;
        }
        Ok(axes)
    }

    /// The same axes of a shape of `rank` dimensions.
    ///
    /// # Errors
    /// [`OpError::Value`] when there is no such dimension, [`OpError::Range`] when the shape has
    /// more than [`MAX_RANK`].
    pub(crate) fn of(self, rank: usize) -> Result<AxisSet, OpError> {
        if rank > MAX_RANK {
            return Err(OpError::Range { what: "number of dimensions" });
        }
        let all = u32::try_from((1u64 << rank) - 1).unwrap_or(u32::MAX);
        if let outside @ 1.. = self.from_start & !all {
            return Err(OpError::value("an axis", outside.trailing_zeros()));
        }
        if let outside @ 1.. = self.from_end & !all {
            return Err(OpError::value("an axis", -1 - i64::from(outside.trailing_zeros())));
        }
        // Bit 0, the last axis, goes to bit `rank - 1`. Without dimensions no bit is left.
        let unused = u32::try_from(MAX_RANK - rank).unwrap_or(0);
        let from_end = self.from_end.reverse_bits().checked_shr(unused).unwrap_or(0);
        Ok(AxisSet(self.from_start | from_end))
    }
}

/// A set of axes of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AxisSet(u32);

impl AxisSet {
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
    use crate::ops::testing::{Tensor, with_args};

    #[test]
    fn an_axis_counts_from_either_end() {
        for (axis, rank, position) in [
            (0, 3, Ok(0)),
            (2, 3, Ok(2)),
            (3, 3, Err(())),
            (-1, 3, Ok(2)),
            (-3, 3, Ok(0)),
            (-4, 3, Err(())),
            (0, 0, Err(())),
            (-1, 0, Err(())),
            (i32::MIN, 3, Err(())),
            (i32::MAX, 3, Err(())),
        ] {
            assert_eq!(Axis(axis).position(rank).map_err(|_| ()), position, "{axis} of {rank}");
            let from_start = if axis < 0 { Err(()) } else { position };
            let got = Axis(axis).position_from_start(rank).map_err(|_| ());
            assert_eq!(got, from_start, "{axis} of {rank}");
        }
    }

    #[test]
    fn a_left_out_axis_is_the_last() {
        let inputs = [Tensor::omitted(burst_hal::OperandType::Int32), Tensor::scalar_i32(1)];
        let axes: [_; 3] =
            with_args(&inputs, |args| [0, 1, 2].map(|index| Axis::optional(args, index)));
        assert_eq!(axes, [Ok(Axis::LAST), Ok(Axis(1)), Ok(Axis::LAST)]);
    }

    /// Against each axis by itself.
    #[test]
    fn a_list_holds_what_its_axes_are() {
        let parse = |axes: &[i32]| {
            let count = u32::try_from(axes.len()).unwrap();
            with_args(&[Tensor::i32(&[count], axes)], |args| AxisList::parse(args, 0))
        };
        let limit = 33;
        for rank in [0, 1, 2, 4, 31, 32] {
            for axis in -limit..=limit {
                let got = parse(&[axis]).and_then(|list| list.of(rank));
                let want = Axis(axis).position(rank);
                assert_eq!(got.is_ok(), want.is_ok(), "{axis} of {rank}");
                if let (Ok(set), Ok(position)) = (got, want) {
                    let held: Vec<usize> = (0..rank).filter(|at| set.has(*at)).collect();
                    assert_eq!(held, [position], "{axis} of {rank}");
                }
            }
        }
        let set = parse(&[1, -1, 1]).unwrap().of(4).unwrap();
        assert_eq!(set.remove_from(&[2, 3, 4, 5], false).as_slice(), [2, 4]);
        assert_eq!(set.remove_from(&[2, 3, 4, 5], true).as_slice(), [2, 1, 4, 1]);
        assert!(parse(&[]).unwrap().of(33).is_err(), "more dimensions than a mask has bits");
        assert!(parse(&[i32::MIN]).is_err() && parse(&[i32::MAX]).is_err());
    }
}
