//! Lanes: the runs of a tensor along one axis.

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
    /// Flat indexes of its values, in order.
    pub(crate) fn indexes(self) -> impl Iterator<Item = usize> + Clone {
        (0..self.len).map(move |position| self.first + position * self.step)
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
    pub(crate) fn for_each(&self, mut visit: impl FnMut(Lane)) {
        for outer in 0..self.outer {
            for inner in 0..self.inner {
                let first = outer * self.len * self.inner + inner;
                visit(Lane { first, len: self.len, step: self.inner });
            }
        }
    }

    /// Makes each lane of `output` from the same lane of `input`, in `f32`.
    ///
    /// `scratch` is working memory of two lanes.
    pub(crate) fn map<T: Copy>(
        &self,
        input: &[T],
        output: &mut [T],
        scratch: &mut [f32],
        load: impl Fn(T) -> f32,
        store: impl Fn(f32) -> T,
        mut make: impl FnMut(&[f32], &mut [f32]),
    ) {
        let (read, rest) = scratch.split_at_mut(self.len);
        let written = &mut rest[..self.len];
        self.for_each(|lane| {
            for (slot, at) in read.iter_mut().zip(lane.indexes()) {
                *slot = load(input[at]);
            }
            make(read, written);
            for (value, at) in written.iter().zip(lane.indexes()) {
                output[at] = store(*value);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_a_middle_axis() {
        let lanes = Lanes::new(&[2, 3, 2], 1);
        assert_eq!(lanes, Lanes { outer: 2, len: 3, inner: 2 });
        let mut seen = Vec::new();
        lanes.for_each(|lane| seen.push(lane.indexes().collect::<Vec<_>>()));
        assert_eq!(seen, [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]);
    }

    #[test]
    fn map_reads_and_writes_the_same_lane() {
        let lanes = Lanes::new(&[2, 2], 0);
        let mut out = [0.0; 4];
        lanes.map(
            &[1.0, 2.0, 3.0, 4.0],
            &mut out,
            &mut [0.0; 4],
            |x| x,
            |x| x,
            |read, write| {
                write[0] = read[1];
                write[1] = read[0];
            },
        );
        assert_eq!(out, [3.0, 4.0, 1.0, 2.0]);
    }
}
