//! Moving elements between two tensors, each seen with a step per axis.

#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "slices have at most isize::MAX elements, and every position is checked first"
)]

use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::simd::portable_kernel;
use crate::stop::{Checkpoints, STEPS_PER_CHECK, Stop};

portable_kernel! {
    /// `strided/move`: see [`Move::apply`].
    MOVE = "strided/move",
    operations: [
        BatchToSpaceNd, ChannelShuffle, DepthToSpace, Pad, PadV2, Slice, SpaceToBatchNd,
        SpaceToDepth, StridedSlice, Tile, Transpose,
    ],
    types: [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorInt32],
}

/// One axis of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Elements along it.
    pub(crate) size: usize,
    /// Step in the source from one to the next, in elements.
    pub(crate) from: isize,
    /// Step in the destination.
    pub(crate) to: isize,
}

/// A move of elements: which axes to walk, and where the first element is on each side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Move {
    /// From the outermost axis to the innermost.
    pub(crate) axes: SmallVec<[Axis; 8]>,
    /// Position of the first element in the source.
    pub(crate) from: usize,
    /// Position of the first element in the destination.
    pub(crate) to: usize,
}

impl Move {
    /// Appends an axis inside of all others.
    pub(crate) fn axis(&mut self, size: usize, from: isize, to: isize) {
        self.axes.push(Axis { size, from, to });
    }

    /// Copies every element of the walk from `source` to `out`; other elements of `out` stay.
    ///
    /// # Errors
    /// [`OpError::Internal`] when the walk leaves one of the slices; nothing is written then. What
    /// `stop` says.
    pub(crate) fn apply<T: Copy>(
        &self,
        source: &[T],
        out: &mut [T],
        stop: Stop<'_>,
    ) -> Result<(), OpError> {
        if self.axes.iter().any(|axis| axis.size == 0) {
            return Ok(());
        }
        let stays = self.stays_within(source.len(), |axis| axis.from, self.from)
            && self.stays_within(out.len(), |axis| axis.to, self.to);
        if !stays {
            return Err(OpError::Internal { what: "a move leaves its tensors" });
        }
        let (from, to) = ((source, self.from as isize), (out, self.to as isize));
        walk(from, to, &merged(&self.axes), &mut stop.checkpoints())
    }

    fn stays_within(&self, len: usize, step: fn(&Axis) -> isize, first: usize) -> bool {
        let (mut lowest, mut highest) = (first as i128, first as i128);
        for axis in &self.axes {
            let reach = (axis.size as i128 - 1) * step(axis) as i128;
            lowest += reach.min(0);
            highest += reach.max(0);
        }
        lowest >= 0 && highest < len as i128
    }
}

/// The same walk with fewer axes: those of one element go, and neighbours that are walked in one
/// go on both sides become one.
fn merged(axes: &[Axis]) -> SmallVec<[Axis; 8]> {
    let mut merged: SmallVec<[Axis; 8]> = SmallVec::new();
    for axis in axes.iter().filter(|axis| axis.size != 1) {
        match merged.last_mut() {
            Some(last)
                if last.from == axis.from * axis.size as isize
                    && last.to == axis.to * axis.size as isize =>
            {
                *last = Axis { size: last.size * axis.size, ..*axis };
            }
            _ => merged.push(*axis),
        }
    }
    merged
}

fn walk<T: Copy>(
    (source, from): (&[T], isize),
    (out, to): (&mut [T], isize),
    axes: &[Axis],
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    match axes {
        [] => out[to as usize] = source[from as usize],
        [Axis { size, from: step, to: 1 }] => {
            let out = &mut out[to as usize..][..*size];
            let mut from = from;
            for out in out.chunks_mut(STEPS_PER_CHECK) {
                checkpoints.after(out.len())?;
                if *step == 1 {
                    out.copy_from_slice(&source[from as usize..][..out.len()]);
                } else {
                    for (index, out) in out.iter_mut().enumerate() {
                        *out = source[(from + index as isize * step) as usize];
                    }
                }
                from += out.len() as isize * step;
            }
        }
        [Axis { size, from: step, to: to_step }] => {
            for first in (0..*size).step_by(STEPS_PER_CHECK) {
                let end = (*size).min(first + STEPS_PER_CHECK);
                checkpoints.after(end - first)?;
                for index in first as isize..end as isize {
                    out[(to + index * to_step) as usize] = source[(from + index * step) as usize];
                }
            }
        }
        [axis, Axis { size, from: 1, to: 1 }] if *size <= SHORT => {
            for first in (0..axis.size).step_by(STEPS_PER_CHECK / SHORT) {
                let count = (axis.size - first).min(STEPS_PER_CHECK / SHORT);
                checkpoints.after(count * size)?;
                let first = first as isize;
                let part = Axis { size: count, ..*axis };
                let (from, to) = (from + first * axis.from, to + first * axis.to);
                short_runs((source, from), (out, to), part, *size);
            }
        }
        [axis, inner @ ..] => {
            for index in 0..axis.size as isize {
                checkpoints.after(1)?;
                let (from, to) = (from + index * axis.from, to + index * axis.to);
                walk((source, from), (out, to), inner, checkpoints)?;
            }
        }
    }
    Ok(())
}

/// Most elements of a run that is copied without a call.
const SHORT: usize = 16;

/// Copies a run of `len` elements for each element of the axis.
fn short_runs<T: Copy>(source: (&[T], isize), out: (&mut [T], isize), axis: Axis, len: usize) {
    // As many as pixels and blocks of them have elements. A copy of known length is some instructions.
    match len {
        2 => runs::<T, 2>(source, out, axis),
        3 => runs::<T, 3>(source, out, axis),
        4 => runs::<T, 4>(source, out, axis),
        6 => runs::<T, 6>(source, out, axis),
        8 => runs::<T, 8>(source, out, axis),
        9 => runs::<T, 9>(source, out, axis),
        12 => runs::<T, 12>(source, out, axis),
        16 => runs::<T, 16>(source, out, axis),
        _ => {
            let ((source, from), (out, to)) = (source, out);
            for index in 0..axis.size as isize {
                let from = (from + index * axis.from) as usize;
                let to = (to + index * axis.to) as usize;
                out[to..to + len].copy_from_slice(&source[from..from + len]);
            }
        }
    }
}

/// See [`short_runs`].
fn runs<T: Copy, const LEN: usize>(
    (source, from): (&[T], isize),
    (out, to): (&mut [T], isize),
    axis: Axis,
) {
    for index in 0..axis.size as isize {
        let source = source[(from + index * axis.from) as usize..].first_chunk::<LEN>();
        let out = out[(to + index * axis.to) as usize..].first_chunk_mut::<LEN>();
        // Both are there: `Move::apply` has checked where the walk goes.
        if let (Some(out), Some(source)) = (out, source) {
            *out = *source;
        }
    }
}

/// The steps of a tensor stored in row-major order.
///
/// Products that overflow wrap: only the shape of an empty tensor can have such, and no code takes
/// a step in one.
#[must_use]
pub(crate) fn steps(dims: &[u32]) -> SmallVec<[isize; 8]> {
    let mut steps = SmallVec::from_elem(1, dims.len());
    for axis in (1..dims.len()).rev() {
        steps[axis - 1] = isize::wrapping_mul(steps[axis], dims[axis] as isize);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_is_a_move() {
        let mut transpose = Move::default();
        transpose.axis(3, 1, 2);
        transpose.axis(2, 3, 1);
        let mut out = [0; 6];
        transpose.apply(&[1, 2, 3, 4, 5, 6], &mut out, Stop::default()).unwrap();
        assert_eq!(out, [1, 4, 2, 5, 3, 6]);
    }

    #[test]
    fn steps_may_be_negative_or_zero_on_the_source_side() {
        let mut reversed = Move { from: 3, ..Move::default() };
        reversed.axis(4, -1, 1);
        let mut out = [0; 4];
        reversed.apply(&[1, 2, 3, 4], &mut out, Stop::default()).unwrap();
        assert_eq!(out, [4, 3, 2, 1]);
        let mut repeated = Move::default();
        repeated.axis(2, 0, 2);
        repeated.axis(2, 1, 1);
        repeated.apply(&[1, 2], &mut out, Stop::default()).unwrap();
        assert_eq!(out, [1, 2, 1, 2]);
    }

    #[test]
    fn runs_of_every_length_are_copied_whole() {
        let long = u16::try_from(STEPS_PER_CHECK / SHORT).unwrap() + 3;
        for len in 1..=SHORT + 1 {
            for count in [1, 2, 5, long] {
                let count = usize::from(count);
                // Runs follow each other in the output, a gap of 2 in the source, backwards.
                let source: Vec<usize> = (0..count * (len + 2)).collect();
                let mut runs = Move { from: (count - 1) * (len + 2), ..Move::default() };
                runs.axis(count, -(len as isize + 2), len as isize);
                runs.axis(len, 1, 1);
                let mut out = vec![usize::MAX; count * len];
                runs.apply(&source, &mut out, Stop::default()).unwrap();
                let want =
                    (0..count).rev().flat_map(|run| (0..len).map(move |at| run * (len + 2) + at));
                assert!(out.into_iter().eq(want), "{count} runs of {len}");
            }
        }
    }

    #[test]
    fn neighbours_walked_in_one_go_become_one() {
        let axis = |size, from, to| Axis { size, from, to };
        let axes = [axis(2, 12, 6), axis(1, 5, 5), axis(3, 4, 2), axis(2, 1, 1)];
        assert_eq!(merged(&axes).as_slice(), [axis(6, 4, 2), axis(2, 1, 1)]);
    }

    #[test]
    fn a_walk_that_leaves_its_slices_writes_nothing() {
        for (from, step, size) in [(0, 1, 5), (0, -1, 2), (4, 1, 1), (1, isize::MAX, 3)] {
            let mut outside = Move { from, ..Move::default() };
            outside.axis(size, step, 1);
            let mut out = [0; 8];
            assert!(
                outside.apply(&[1, 2, 3, 4], &mut out, Stop::default()).is_err(),
                "{from} {step} {size}"
            );
            assert_eq!(out, [0; 8]);
        }
        let mut nothing = Move { from: 9, to: 9, ..Move::default() };
        nothing.axis(0, 1, 1);
        assert_eq!(nothing.apply(&[1], &mut [2], Stop::default()), Ok(()));
    }
}
