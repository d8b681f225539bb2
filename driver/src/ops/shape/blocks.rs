//! What the four operations that exchange space with channels or with images share.

use super::common::{self, Images};
use crate::OpError;
use crate::kernels::strided::Move;
use crate::op::{Operands, Run};
use crate::ops::attributes::{Layout, list, positive_i32};

/// The attributes of DEPTH_TO_SPACE and SPACE_TO_DEPTH.
#[derive(Debug, Clone, Copy)]
pub(super) struct SquareBlocks {
    /// Above 0. It has at most 31 bits, so that two multiply.
    pub(super) side: i64,
    pub(super) layout: Layout,
}

impl SquareBlocks {
    pub(super) fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        let layout = Layout::optional(operands, 2)?;
        Ok(SquareBlocks { side: positive_i32(operands, 1, "side of a block")?.into(), layout })
    }
}

/// Rows and columns of a block, the two entries of the list at input `index`, both above 0.
pub(super) fn sides(operands: &dyn Operands, index: usize) -> Result<[i64; 2], OpError> {
    let list = list(operands, index)?;
    let [rows, columns] = *list else {
        let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
        return Err(OpError::value("number of sides of a block", length));
    };
    match [rows, columns].into_iter().find(|side| *side < 1) {
        Some(side) => Err(OpError::value("side of a block", side)),
        None => Ok([rows.into(), columns.into()]),
    }
}

/// A size or step that was found to fit a tensor before.
pub(super) fn step(size: i64) -> Result<isize, OpError> {
    isize::try_from(size).map_err(|_| OpError::Range { what: "step in a tensor" })
}

/// Which of the two is the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    DepthToSpace,
    SpaceToDepth,
}

/// Both directions are the same walk over image, row, row in the block, column, column in the block
/// and channel of the wide side: only source and destination are exchanged.
pub(super) fn between_depth_and_space(
    run: &mut Run<'_, '_>,
    SquareBlocks { side, layout }: SquareBlocks,
    direction: Direction,
) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let input = run.input(0)?.dims;
    let output = &*run.output(0)?.dims;
    let (deep, wide) = match direction {
        Direction::DepthToSpace => (input, output.as_slice()),
        Direction::SpaceToDepth => (output.as_slice(), input),
    };
    let [n, h, w, _] = Images::new(deep, layout)?.sizes;
    let [.., c] = Images::new(wide, layout)?.sizes;
    let in_deep = Images::steps(deep, layout)?;
    let in_wide = Images::steps(wide, layout)?;
    let (side_step, depth) = (step(side)?, step(c)?);
    let block = depth.checked_mul(side_step).ok_or(OpError::Range { what: "step in a tensor" })?;
    let mut moves = Move::default();
    for (size, deep, wide) in [
        (n, in_deep[0], in_wide[0]),
        (h, in_deep[1], in_wide[1] * side_step),
        (side, in_deep[3] * block, in_wide[1]),
        (w, in_deep[2], in_wide[2] * side_step),
        (side, in_deep[3] * depth, in_wide[2]),
        (c, in_deep[3], in_wide[3]),
    ] {
        let size = usize::try_from(size).map_err(|_| OpError::Range { what: "a dimension" })?;
        match direction {
            Direction::DepthToSpace => moves.axis(size, deep, wide),
            Direction::SpaceToDepth => moves.axis(size, wide, deep),
        }
    }
    common::apply(run, &moves)
}
