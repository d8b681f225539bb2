//! The order in which the dimensions of pictures are stored.

use crate::OpError;
use crate::op::Operands;

/// Whether channels are the last dimension of a picture or come before rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `[batches, height, width, channels]`.
    Nhwc,
    /// `[batches, channels, height, width]`.
    Nchw,
}

impl Layout {
    /// The layout that the BOOL at input `index` gives: true for NCHW.
    ///
    /// # Errors
    /// As [`Operands::bool`].
    pub(crate) fn required(operands: &dyn Operands, index: usize) -> Result<Self, OpError> {
        Ok(if operands.bool(index)? { Layout::Nchw } else { Layout::Nhwc })
    }

    /// As [`Layout::required`]; NHWC where the operand is left out.
    ///
    /// # Errors
    /// As [`Operands::bool`].
    pub(crate) fn optional(operands: &dyn Operands, index: usize) -> Result<Self, OpError> {
        if operands.has(index) { Layout::required(operands, index) } else { Ok(Layout::Nhwc) }
    }

    /// Batches, height, width, channels of pictures of this shape.
    pub(crate) fn sizes<T>(self, [a, b, c, d]: [T; 4]) -> [T; 4] {
        match self {
            Layout::Nhwc => [a, b, c, d],
            Layout::Nchw => [a, c, d, b],
        }
    }

    /// The shape of pictures of these batches, height, width, channels.
    pub(crate) fn shape<T>(self, [batches, height, width, channels]: [T; 4]) -> [T; 4] {
        match self {
            Layout::Nhwc => [batches, height, width, channels],
            Layout::Nchw => [batches, channels, height, width],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shapes_undo_each_other() {
        assert_eq!(Layout::Nchw.sizes(["n", "c", "h", "w"]), ["n", "h", "w", "c"]);
        for layout in [Layout::Nhwc, Layout::Nchw] {
            assert_eq!(layout.shape(layout.sizes([1, 2, 3, 4])), [1, 2, 3, 4], "{layout:?}");
        }
    }
}
