//! Folding a tensor along some of its axes.

use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::simd::portable_kernel;
use crate::stop::{Checkpoints, STEPS_PER_CHECK, Stop};

portable_kernel! {
    /// `reduce/fold`: see [`Reduction::fold`].
    FOLD = "reduce/fold",
    operations: [Mean, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, ReduceSum],
    types: [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorBool8],
}

/// Neighbouring axes that are all kept or all folded, as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Section {
    len: usize,
    folded: bool,
}

/// A shape, and which of its axes are folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reduction {
    sections: SmallVec<[Section; 6]>,
}

impl Reduction {
    /// `folded` says for each dimension whether it goes.
    #[must_use]
    pub(crate) fn new(dims: &[u32], folded: impl Fn(usize) -> bool) -> Self {
        let mut sections: SmallVec<[Section; 6]> = SmallVec::new();
        for (axis, dim) in dims.iter().enumerate() {
            let section = Section { len: *dim as usize, folded: folded(axis) };
            match sections.last_mut() {
                Some(last) if last.folded == section.folded => {
                    last.len = last.len.saturating_mul(section.len)
                }
                _ => sections.push(section),
            }
        }
        Reduction { sections }
    }

    /// How many inputs make one output; the largest number for a shape that no memory holds.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        let folded = self.sections.iter().filter(|section| section.folded);
        folded.fold(1, |count: usize, section| count.saturating_mul(section.len))
    }

    /// Takes every input into the accumulator of its output, in row-major order. There must be
    /// exactly one accumulator per output.
    ///
    /// # Errors
    /// Those of `stop`.
    pub(crate) fn fold<T: Copy, A: Copy>(
        &self,
        input: &[T],
        accumulators: &mut [A],
        stop: Stop<'_>,
        add: impl Fn(A, T) -> A + Copy,
    ) -> Result<(), OpError> {
        fold(&self.sections, input, accumulators, &mut stop.checkpoints(), add)
    }
}

fn fold<T: Copy, A: Copy>(
    sections: &[Section],
    input: &[T],
    accumulators: &mut [A],
    checkpoints: &mut Checkpoints<'_>,
    add: impl Fn(A, T) -> A + Copy,
) -> Result<(), OpError> {
    match sections {
        [] | [Section { folded: true, .. }] => {
            if let Some(accumulator) = accumulators.first_mut() {
                for part in input.chunks(STEPS_PER_CHECK) {
                    checkpoints.after(part.len())?;
                    *accumulator = part.iter().fold(*accumulator, |sum, x| add(sum, *x));
                }
            }
        }
        [Section { folded: false, .. }] => {
            let parts = accumulators.chunks_mut(STEPS_PER_CHECK).zip(input.chunks(STEPS_PER_CHECK));
            for (accumulators, input) in parts {
                checkpoints.after(input.len())?;
                for (accumulator, x) in accumulators.iter_mut().zip(input) {
                    *accumulator = add(*accumulator, *x);
                }
            }
        }
        [first, rest @ ..] => {
            let part = input.len().checked_div(first.len).unwrap_or(0);
            if part == 0 {
                return Ok(());
            }
            // All parts of a folded section go to the same accumulators.
            let (size, step) = if first.folded {
                (accumulators.len(), 0)
            } else {
                (accumulators.len() / first.len, accumulators.len() / first.len)
            };
            for (index, part) in input.chunks_exact(part).take(first.len).enumerate() {
                let start = index * step;
                let accumulators = &mut accumulators[start..start + size];
                fold(rest, part, accumulators, checkpoints, add)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(dims: &[u32], axes: &[usize], outputs: usize) -> (Vec<u32>, usize) {
        let count: u32 = dims.iter().product();
        let input: Vec<u32> = (0..count).collect();
        let reduction = Reduction::new(dims, |axis| axes.contains(&axis));
        let mut out = vec![0; outputs];
        reduction.fold(&input, &mut out, Stop::default(), |a, x| a + x).unwrap();
        (out, reduction.count())
    }

    #[test]
    fn every_mix_of_axes() {
        // 0..6 as two rows of three.
        assert_eq!(sums(&[2, 3], &[], 6), (vec![0, 1, 2, 3, 4, 5], 1));
        assert_eq!(sums(&[2, 3], &[0], 3), (vec![3, 5, 7], 2));
        assert_eq!(sums(&[2, 3], &[1], 2), (vec![3, 12], 3));
        assert_eq!(sums(&[2, 3], &[0, 1], 1), (vec![15], 6));
        // 0..8 as a cube: outer and inner axis go, the middle stays.
        assert_eq!(sums(&[2, 2, 2], &[0, 2], 2), (vec![10, 18], 4));
        assert_eq!(sums(&[2, 2, 2], &[1], 4), (vec![2, 4, 10, 12], 2));
        assert_eq!(sums(&[2, 1, 2, 2], &[0, 3], 2), (vec![10, 18], 4));
    }

    #[test]
    fn shapes_that_no_memory_holds_do_not_overflow() {
        let dims = [u32::MAX; 4];
        assert_eq!(Reduction::new(&dims, |_| true).count(), usize::MAX);
        assert_eq!(Reduction::new(&dims, |axis| axis % 2 == 0).count(), (u32::MAX as usize).pow(2));
        assert_eq!(Reduction::new(&dims[..3], |_| true).count(), usize::MAX);
    }

    #[test]
    fn empty_tensors_leave_the_accumulators() {
        assert_eq!(sums(&[0, 3], &[0], 3), (vec![0, 0, 0], 0));
        assert_eq!(sums(&[3, 0], &[1], 3), (vec![0, 0, 0], 0));
    }
}
