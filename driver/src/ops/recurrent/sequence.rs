//! Sequences of vectors: time steps of several batches, in either order in memory.

use crate::OpError;
use crate::ops::recurrent::operands::{output, store};
use crate::tensor::TensorMut;

/// How a tensor `[time, batch, size]` or `[batch, time, size]` is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence {
    /// Time steps.
    pub(super) times: usize,
    /// Independent sequences.
    pub(super) batches: usize,
    /// Whether time is the outermost dimension.
    pub(super) time_major: bool,
}

/// Which way a layer goes through time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the first step on.
    Forward,
    /// From the last step back.
    Backward,
}

impl Direction {
    /// Both, in the order of operands and outputs.
    pub(super) const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];
}

impl Sequence {
    /// The sequence in a tensor whose first two sizes are these.
    pub(super) fn new(outer: u32, inner: u32, time_major: bool) -> Self {
        let (outer, inner) = (outer as usize, inner as usize);
        let (times, batches) = if time_major { (outer, inner) } else { (inner, outer) };
        Sequence { times, batches, time_major }
    }

    /// One step of each batch.
    pub(super) fn single_step(batches: u32) -> Self {
        Sequence::new(1, batches, true)
    }

    /// Position of a vector among all vectors of the tensor.
    pub(super) fn row(&self, time: usize, batch: usize) -> usize {
        if self.time_major { time * self.batches + batch } else { batch * self.times + time }
    }

    /// Runs `step` on the row and batch of every vector, all batches of one time step together.
    pub(super) fn walk(
        &self,
        direction: Direction,
        mut step: impl FnMut(usize, usize) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        for position in 0..self.times {
            let time = match direction {
                Direction::Forward => position,
                Direction::Backward => self.times - 1 - position,
            };
            for batch in 0..self.batches {
                step(self.row(time, batch), batch)?;
            }
        }
        Ok(())
    }
}

/// Vector `row` of a tensor of vectors of this size.
pub(super) fn vector(values: &[f32], row: usize, size: usize) -> Result<&[f32], OpError> {
    values
        .get(row * size..(row + 1) * size)
        .ok_or(OpError::Internal { what: "a sequence is shorter than its shape" })
}

/// Vector `row` of a tensor of vectors of this size, to be changed.
pub(super) fn vector_mut(
    values: &mut [f32],
    row: usize,
    size: usize,
) -> Result<&mut [f32], OpError> {
    values
        .get_mut(row * size..(row + 1) * size)
        .ok_or(OpError::Internal { what: "a sequence is shorter than its shape" })
}

/// Where the vectors of one direction go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    /// Which output.
    pub(super) output: usize,
    /// Size of the output's vectors.
    pub(super) width: usize,
    /// First column of this direction's part.
    pub(super) first: usize,
}

impl Columns {
    /// Room for vectors of these sizes from the forward and the backward direction, in one
    /// output or in two.
    pub(super) fn pair(forward: usize, backward: usize, merged: bool) -> [Columns; 2] {
        if merged {
            let width = forward + backward;
            [Columns { output: 0, width, first: 0 }, Columns { output: 0, width, first: forward }]
        } else {
            [
                Columns { output: 0, width: forward, first: 0 },
                Columns { output: 1, width: backward, first: 0 },
            ]
        }
    }

    /// Writes one vector.
    pub(super) fn store(
        &self,
        outputs: &mut [TensorMut<'_>],
        row: usize,
        values: &[f32],
    ) -> Result<(), OpError> {
        store(output(outputs, self.output)?, row * self.width + self.first, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_both_orders_and_directions() {
        let rows = |sequence: Sequence, direction| {
            let mut rows = Vec::new();
            sequence
                .walk(direction, |row, batch| {
                    rows.push((row, batch));
                    Ok(())
                })
                .unwrap();
            rows
        };
        let time_major = Sequence::new(2, 3, true);
        let batch_major = Sequence::new(3, 2, false);
        assert_eq!((batch_major.times, batch_major.batches), (2, 3));
        assert_eq!(
            rows(time_major, Direction::Forward),
            [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]
        );
        assert_eq!(
            rows(batch_major, Direction::Backward),
            [(1, 0), (3, 1), (5, 2), (0, 0), (2, 1), (4, 2)]
        );
    }
}
