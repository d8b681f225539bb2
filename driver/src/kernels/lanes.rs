//! Lanes: the runs of a tensor along one axis.

use std::ops::Range;

use crate::OpError;
use crate::stop::{Checkpoints, STEPS_PER_CHECK};

/// A tensor seen from one axis: `outer` blocks of `len` rows of `inner` values. A lane takes one
/// value of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Product of the sizes before the axis.
    pub(crate) outer: usize,
    /// Size of the axis.
    pub(crate) len: usize,
    /// Product of the sizes after the axis.
    pub(crate) inner: usize,
}

/// One lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane {
    first: usize,
    len: usize,
    step: usize,
}

impl Lane {
    /// The flat index of the value at this position.
    #[inline(always)]
    pub(crate) fn index(self, position: usize) -> usize {
        self.first + position * self.step
    }

    /// Its positions, in parts between which the checkpoints are to be passed.
    pub(crate) fn parts(self) -> impl Iterator<Item = Range<usize>> + Clone {
        (0..self.len)
            .step_by(STEPS_PER_CHECK)
            .map(move |first| first..self.len.min(first + STEPS_PER_CHECK))
    }

    /// Calls `visit` with the flat index of every value, in order.
    ///
    /// # Errors
    /// Those of the checkpoints.
    #[inline(always)]
    pub(crate) fn for_each(
        self,
        checkpoints: &mut Checkpoints<'_>,
        mut visit: impl FnMut(usize),
    ) -> Result<(), OpError> {
        for part in self.parts() {
            checkpoints.after(part.len())?;
            for position in part {
                visit(self.index(position));
            }
        }
        Ok(())
    }
}

impl Lanes {
    /// The lanes of a tensor of this shape along `axis`; the sizes must be known to multiply
    /// without overflow.
    #[must_use]
    pub(crate) fn new(dims: &[u32], axis: usize) -> Self {
        let product = |dims: &[u32]| dims.iter().map(|dim| *dim as usize).product();
        let (before, rest) = dims.split_at(axis.min(dims.len()));
        match rest {
            [] => Lanes { outer: product(before), len: 1, inner: 1 },
            [len, after @ ..] => {
                Lanes { outer: product(before), len: *len as usize, inner: product(after) }
            }
        }
    }

    /// Visits every lane, in the order of their first values.
    ///
    /// # Errors
    /// Those of `visit`, which counts the work for checkpoints.
    pub(crate) fn for_each(
        &self,
        mut visit: impl FnMut(Lane) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        for outer in 0..self.outer {
            for inner in 0..self.inner {
                let first = outer * self.len * self.inner + inner;
                visit(Lane { first, len: self.len, step: self.inner })?;
            }
        }
        Ok(())
    }

    /// Makes each lane of `output` from the same lane of `input`, in `f32`.
    ///
    /// `scratch` is working memory of two lanes. `make` counts the work of long lanes.
    ///
    /// # Errors
    /// Those of `make`, and of the checkpoints.
    pub(crate) fn map<T: Copy>(
        &self,
        input: &[T],
        output: &mut [T],
        (scratch, mut checkpoints): (&mut [f32], Checkpoints<'_>),
        (load, store): (impl Fn(T) -> f32, impl Fn(f32) -> T),
        mut make: impl FnMut(&[f32], &mut [f32], &mut Checkpoints<'_>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let (read, rest) = scratch.split_at_mut(self.len);
        let written = &mut rest[..self.len];
        self.for_each(|lane| {
            for part in lane.parts() {
                checkpoints.after(part.len())?;
                for position in part {
                    read[position] = load(input[lane.index(position)]);
                }
            }
            make(read, written, &mut checkpoints)?;
            for part in lane.parts() {
                checkpoints.after(part.len())?;
                for position in part {
                    output[lane.index(position)] = store(written[position]);
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;

    #[test]
    fn lanes_of_a_middle_axis() {
        let lanes = Lanes::new(&[2, 3, 2], 1);
        assert_eq!(lanes, Lanes { outer: 2, len: 3, inner: 2 });
        let mut seen = Vec::new();
        let checkpoints = &mut Stop::default().checkpoints();
        let visit = |lane: Lane| {
            let mut indexes = Vec::new();
            lane.for_each(checkpoints, |index| indexes.push(index))?;
            seen.push(indexes);
            Ok(())
        };
        lanes.for_each(visit).unwrap();
        assert_eq!(seen, [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]);
    }

    #[test]
    fn map_reads_and_writes_the_same_lane() {
        let lanes = Lanes::new(&[2, 2], 0);
        let mut out = [0.0; 4];
        let work = (&mut [0.0; 4][..], Stop::default().checkpoints());
        let swap = |read: &[f32], write: &mut [f32], _: &mut Checkpoints<'_>| {
            write[0] = read[1];
            write[1] = read[0];
            Ok(())
        };
        lanes.map(&[1.0, 2.0, 3.0, 4.0], &mut out, work, (|x| x, |x| x), swap).unwrap();
        assert_eq!(out, [3.0, 4.0, 1.0, 2.0]);
    }
}
