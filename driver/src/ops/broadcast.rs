//! Broadcasting: how two shapes go together, and which elements meet.
//!
//! Shapes are aligned at their last dimension; two sizes go together when they are equal or one of
//! them is 1; a missing leading dimension counts as 1.

use burst_hal::Dimensions;

use crate::OpError;

/// The shape that two shapes broadcast to.
///
/// # Errors
/// [`OpError::Shape`] when they do not go together.
pub fn broadcast_shape(a: &[u32], b: &[u32]) -> Result<Dimensions, OpError> {
    let rank = a.len().max(b.len());
    let mut out = Dimensions::with_capacity(rank);
    for axis in 0..rank {
        let size = |dims: &[u32]| match (axis + dims.len()).checked_sub(rank) {
            Some(own) => dims[own],
            None => 1,
        };
        let (x, y) = (size(a), size(b));
        if x != y && x != 1 && y != 1 {
            return Err(OpError::shape("broadcast of two inputs", a, b));
        }
        // 0 goes together with 1 only, and gives 0.
        out.push(if x == 1 { y } else { x });
    }
    Ok(out)
}

/// For each element of `out_dims`, in row-major order, calls `visit(out, a, b)` with the three flat
/// indexes. The shapes must broadcast to `out_dims`.
pub fn for_each_pair(
    out_dims: &[u32],
    a_dims: &[u32],
    b_dims: &[u32],
    mut visit: impl FnMut(usize, usize, usize),
) {
    let count: usize = out_dims.iter().map(|dim| *dim as usize).product();
    if a_dims == b_dims {
        (0..count).for_each(|index| visit(index, index, index));
        return;
    }
    let a_strides = strides(out_dims, a_dims);
    let b_strides = strides(out_dims, b_dims);
    let mut position = Dimensions::from_elem(0, out_dims.len());
    let (mut a, mut b) = (0, 0);
    for index in 0..count {
        visit(index, a, b);
        for axis in (0..out_dims.len()).rev() {
            position[axis] += 1;
            a += a_strides[axis];
            b += b_strides[axis];
            if position[axis] < out_dims[axis] {
                break;
            }
            a -= a_strides[axis] * out_dims[axis] as usize;
            b -= b_strides[axis] * out_dims[axis] as usize;
            position[axis] = 0;
        }
    }
}

/// Flat steps of an operand along each axis of the output; 0 where it is broadcast.
fn strides(out_dims: &[u32], dims: &[u32]) -> smallvec::SmallVec<[usize; 6]> {
    let mut strides = smallvec::SmallVec::from_elem(0, out_dims.len());
    let lead = out_dims.len() - dims.len();
    let mut step = 1;
    for axis in (0..dims.len()).rev() {
        if dims[axis] != 1 {
            strides[lead + axis] = step;
        }
        step *= dims[axis] as usize;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_go_together_from_the_last_dimension() {
        let shape = |a: &[u32], b: &[u32]| broadcast_shape(a, b).map(|d| d.to_vec());
        assert_eq!(shape(&[2, 1, 3], &[4, 1]), Ok(vec![2, 4, 3]));
        assert_eq!(shape(&[3], &[]), Ok(vec![3]));
        assert_eq!(shape(&[0, 2], &[1, 2]), Ok(vec![0, 2]));
        assert!(shape(&[2], &[3]).is_err());
        assert!(shape(&[0], &[2]).is_err());
    }

    #[test]
    fn elements_meet_as_the_shapes_say() {
        let mut seen = Vec::new();
        for_each_pair(&[2, 2], &[2, 1], &[2], |out, a, b| seen.push((out, a, b)));
        assert_eq!(seen, [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]);
    }
}
