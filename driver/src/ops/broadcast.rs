//! Broadcasting: how two shapes go together, and which elements meet.
//!
//! Shapes are aligned at their last dimension; two sizes go together when they are equal or one of
//! them is 1; a missing leading dimension counts as 1.

use burst_hal::Dimensions;
use smallvec::SmallVec;

use crate::OpError;
use crate::stop::{Checkpoints, STEPS_PER_CHECK};
use crate::threads::{TileRunner, Tiling};

/// The shape that two shapes broadcast to.
///
/// # Errors
/// [`OpError::Shape`] when they do not go together.
pub fn broadcast_shape(a: &[u32], b: &[u32]) -> Result<Dimensions, OpError> {
    let rank = a.len().max(b.len());
    let mut out = Dimensions::with_capacity(rank);
    for axis in 0..rank {
        let (x, y) = (size_at(a, axis, rank), size_at(b, axis, rank));
        if x != y && x != 1 && y != 1 {
            return Err(OpError::shape("broadcast of two inputs", a, b));
        }
        // 0 goes together with 1 only, and gives 0.
        out.push(if x == 1 { y } else { x });
    }
    Ok(out)
}

/// The size of `dims` at `axis` of a shape with `rank` dimensions.
fn size_at(dims: &[u32], axis: usize, rank: usize) -> u32 {
    (axis + dims.len()).checked_sub(rank).map_or(1, |own| dims[own])
}

/// One input of [`zip`]: its elements and its shape.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a, T> {
    /// The elements in row-major order.
    pub values: &'a [T],
    /// The shape.
    pub dims: &'a [u32],
}

/// Writes `combine(a, b)` to every element of `out`, whose shape must be what the inputs' shapes
/// broadcast to; by several threads where the shapes are one and there is enough to do.
///
/// Otherwise the walk is over runs in which each input either moves with the output or stands still, so
/// that the inner loops are over plain slices and the compiler can make vectors of them.
///
/// # Errors
/// [`OpError::Shape`] when the shapes do not go together, [`OpError::Internal`] when a slice has
/// not as many elements as its shape; what the runner's [`Stop`](crate::op::Stop) says.
pub fn zip<A: Copy + Sync, B: Copy + Sync, O: Send>(
    runner: &mut TileRunner<'_>,
    out: &mut [O],
    a: Side<'_, A>,
    b: Side<'_, B>,
    combine: impl Fn(A, B) -> O + Sync + Copy,
) -> Result<(), OpError> {
    if a.dims == b.dims {
        if a.values.len() != out.len() || b.values.len() != out.len() {
            return Err(LENGTHS_DIFFER);
        }
        let bytes = size_of_val(a.values) + size_of_val(b.values) + size_of_val(out);
        return runner.tiles(&Tiling::values(bytes), out, |first, out, _| {
            // A copy of its own: what is read through a reference might change with each value that is
            // written, as far as the compiler knows, and then nothing becomes a vector.
            #[allow(clippy::redundant_locals, reason = "not redundant: see above")]
            let combine = combine;
            let part = first..first + out.len();
            for ((out, a), b) in out.iter_mut().zip(&a.values[part.clone()]).zip(&b.values[part]) {
                *out = combine(*a, *b);
            }
            Ok(())
        });
    }
    let axes = merged_axes(a.dims, b.dims)?;
    let count = |moves: fn(&Axis) -> bool| -> usize {
        axes.iter().filter(|axis| moves(axis)).map(|axis| axis.size).product()
    };
    if out.len() != count(|_| true)
        || a.values.len() != count(|axis| axis.a_moves)
        || b.values.len() != count(|axis| axis.b_moves)
    {
        return Err(LENGTHS_DIFFER);
    }
    if out.is_empty() {
        return Ok(());
    }
    walk(out, a.values, b.values, &axes, &combine, &mut runner.stop.checkpoints())
}

const LENGTHS_DIFFER: OpError = OpError::Internal { what: "a tensor has not its shape's length" };

/// A dimension of the output, or several neighbours along which the same inputs move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    a_moves: bool,
    b_moves: bool,
}

fn merged_axes(a: &[u32], b: &[u32]) -> Result<SmallVec<[Axis; 6]>, OpError> {
    let shape = broadcast_shape(a, b)?;
    let rank = shape.len();
    let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
    for (index, size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
        let axis = Axis {
            size: *size as usize,
            a_moves: size_at(a, index, rank) == *size,
            b_moves: size_at(b, index, rank) == *size,
        };
        match axes.last_mut() {
            Some(last) if last.a_moves == axis.a_moves && last.b_moves == axis.b_moves => {
                last.size = last
                    .size
                    .checked_mul(axis.size)
                    .ok_or(OpError::Range { what: "number of elements" })?;
            }
            _ => axes.push(axis),
        }
    }
    Ok(axes)
}

/// Recurses once per axis; the last one is a loop over slices. The slices' lengths are products of
/// the axes' sizes, none of which is 0.
fn walk<A: Copy, B: Copy, O>(
    out: &mut [O],
    a: &[A],
    b: &[B],
    axes: &[Axis],
    combine: &impl Fn(A, B) -> O,
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    match axes {
        [] => out[0] = combine(a[0], b[0]),
        [last] => {
            let moving = |moves: bool, first: usize| if moves { first } else { 0 };
            for (index, out) in out.chunks_mut(STEPS_PER_CHECK).enumerate() {
                checkpoints.after(out.len())?;
                let first = index * STEPS_PER_CHECK;
                let (a_first, b_first) = (moving(last.a_moves, first), moving(last.b_moves, first));
                run(out, &a[a_first..], &b[b_first..], *last, combine);
            }
        }
        [first, inner @ ..] => {
            let step = |len: usize, moves: bool| if moves { len / first.size } else { 0 };
            let (a_step, b_step) = (step(a.len(), first.a_moves), step(b.len(), first.b_moves));
            let (a_len, b_len) = (
                if first.a_moves { a_step } else { a.len() },
                if first.b_moves { b_step } else { b.len() },
            );
            for (index, out) in out.chunks_exact_mut(out.len() / first.size).enumerate() {
                let a = &a[index * a_step..][..a_len];
                let b = &b[index * b_step..][..b_len];
                walk(out, a, b, inner, combine, checkpoints)?;
            }
        }
    }
    Ok(())
}

fn run<A: Copy, B: Copy, O>(
    out: &mut [O],
    a: &[A],
    b: &[B],
    axis: Axis,
    combine: &impl Fn(A, B) -> O,
) {
    if axis.a_moves && axis.b_moves {
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = combine(*a, *b);
        }
    } else if axis.a_moves {
        let b = b[0];
        for (out, a) in out.iter_mut().zip(a) {
            *out = combine(*a, b);
        }
    } else {
        let a = a[0];
        for (out, b) in out.iter_mut().zip(b) {
            *out = combine(a, *b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Stop;
    use crate::scratch::Scratch;
    use crate::threads::Parallelism;

    fn alone(scratch: &mut Scratch) -> TileRunner<'_> {
        TileRunner { parallelism: Parallelism::ALONE, scratch, stop: Stop::default() }
    }

    #[test]
    fn shapes_go_together_from_the_last_dimension() {
        let shape = |a: &[u32], b: &[u32]| broadcast_shape(a, b).map(|d| d.to_vec());
        assert_eq!(shape(&[2, 1, 3], &[4, 1]), Ok(vec![2, 4, 3]));
        assert_eq!(shape(&[3], &[]), Ok(vec![3]));
        assert_eq!(shape(&[0, 2], &[1, 2]), Ok(vec![0, 2]));
        assert!(shape(&[2], &[3]).is_err());
        assert!(shape(&[0], &[2]).is_err());
    }

    /// Which elements meet, as pairs of flat indexes.
    fn pairs(a: &[u32], b: &[u32]) -> Result<Vec<(usize, usize)>, OpError> {
        let count = |dims: &[u32]| dims.iter().product::<u32>() as usize;
        let shape = broadcast_shape(a, b)?;
        let a_values: Vec<usize> = (0..count(a)).collect();
        let b_values: Vec<usize> = (0..count(b)).collect();
        let mut out = vec![(usize::MAX, usize::MAX); count(&shape)];
        let mut scratch = Scratch::default();
        zip(
            &mut alone(&mut scratch),
            &mut out,
            Side { values: &a_values, dims: a },
            Side { values: &b_values, dims: b },
            |a, b| (a, b),
        )?;
        Ok(out)
    }

    #[test]
    fn elements_meet_as_the_shapes_say() {
        assert_eq!(pairs(&[2, 1], &[2]), Ok(vec![(0, 0), (0, 1), (1, 0), (1, 1)]));
        assert_eq!(pairs(&[2], &[2]), Ok(vec![(0, 0), (1, 1)]));
        assert_eq!(pairs(&[1, 1], &[1]), Ok(vec![(0, 0)]));
        assert_eq!(
            pairs(&[2, 1, 2], &[2, 1]),
            Ok(vec![(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1)])
        );
        assert_eq!(
            pairs(&[1, 2, 1], &[2, 1, 2]),
            Ok(vec![(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)])
        );
        assert_eq!(pairs(&[0, 2], &[1, 2]), Ok(vec![]));
    }

    proptest::proptest! {
        /// Against the rule of the specification, element by element.
        #[test]
        fn every_walk_is_the_plain_one(
            sizes in proptest::collection::vec((0u32..4, 0u8..4), 0..5),
            cut in 0usize..3,
        ) {
            let a: Vec<u32> = sizes.iter().map(|(n, kind)| if *kind == 1 { 1 } else { *n }).collect();
            let b: Vec<u32> = sizes.iter().map(|(n, kind)| if *kind == 2 { 1 } else { *n }).collect();
            let b = &b[cut.min(b.len())..];
            let shape = broadcast_shape(&a, b).unwrap();
            let flat = |position: &[u32], dims: &[u32]| {
                let own = &position[position.len() - dims.len()..];
                own.iter().zip(dims).fold(0usize, |flat, (at, size)| {
                    flat * *size as usize + if *size == 1 { 0 } else { *at as usize }
                })
            };
            let mut want = Vec::new();
            for index in 0..shape.iter().product::<u32>() {
                let mut rest = index;
                let mut position: Vec<u32> = shape
                    .iter()
                    .rev()
                    .map(|size| { let at = rest % size; rest /= size; at })
                    .collect();
                position.reverse();
                want.push((flat(&position, &a), flat(&position, b)));
            }
            proptest::prop_assert_eq!(pairs(&a, b).unwrap(), want);
        }
    }

    #[test]
    fn long_runs_are_walked_in_parts_that_fit_together() {
        let long = u32::try_from(STEPS_PER_CHECK + 5).unwrap();
        for (a, b) in [(&[2, long][..], &[long][..]), (&[2, long], &[2, 1]), (&[2, 1], &[2, long])]
        {
            let (rows, columns) = (2, long as usize);
            let flat = |dims: &[u32], row: usize, column: usize| match *dims {
                [_, 1] => row,
                [_] => column,
                _ => row * columns + column,
            };
            let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            let want: Vec<_> =
                all.map(|(row, column)| (flat(a, row, column), flat(b, row, column))).collect();
            assert!(pairs(a, b).unwrap() == want, "{a:?} with {b:?}");
        }
    }

    #[test]
    fn slices_of_another_length_are_an_error() {
        let (mut out, mut scratch) = ([0; 4], Scratch::default());
        let side = |values, dims| Side { values, dims };
        let three = [1, 2, 3];
        for (a, b) in [
            (side(&three[..], &[4][..]), side(&three[..], &[4][..])),
            (side(&three[..], &[2, 1][..]), side(&three[..2], &[2][..])),
        ] {
            let runner = &mut alone(&mut scratch);
            assert_eq!(zip(runner, &mut out, a, b, |a, b| a + b), Err(LENGTHS_DIFFER));
        }
    }
}
