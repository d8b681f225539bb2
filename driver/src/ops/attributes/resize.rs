//! The attributes of resizing.

use burst_hal::OperandType;

use super::{Layout, positive_i32};
use crate::OpError;
use crate::kernels::resize::Alignment;
use crate::op::Operands;

/// Largest output size along one axis, in pixels: the largest INT32, whichever way it is given.
const MAX_SIZE: f32 = 2_147_483_520.0;

/// What the operands after the input say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ResizeAttributes {
    /// Width of the output.
    pub(crate) width: ResizeTo,
    /// Height of the output.
    pub(crate) height: ResizeTo,
    /// How pictures are stored.
    pub(crate) layout: Layout,
    /// Which input pixel an output pixel lies on.
    pub(crate) alignment: Alignment,
}

/// An output size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ResizeTo {
    /// So many pixels, above 0.
    Pixels(u32),
    /// So many times the input size, rounded down.
    Factor(f32),
}

impl ResizeAttributes {
    /// Parses the operands.
    ///
    /// # Errors
    /// As [`Operands::i32`], [`Operands::float`] and [`Operands::bool`]; [`OpError::Value`] for a
    /// number of pixels that is not above 0, and where corners and centres are to be aligned both.
    pub(crate) fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        let layout = Layout::optional(operands, 3)?;
        let flag = |index| Ok(operands.has(index) && operands.bool(index)?);
        let alignment = match (flag(4)?, flag(5)?) {
            (false, false) => Alignment::Edges,
            (true, false) => Alignment::Corners,
            (false, true) => Alignment::Centres,
            (true, true) => {
                return Err(OpError::value("aligned corners with half-pixel centres", 1));
            }
        };
        let to = |index| match operands.ty(index) {
            Some(OperandType::Int32) => {
                positive_i32(operands, index, "output size").map(ResizeTo::Pixels)
            }
            _ => operands.float(index).map(ResizeTo::Factor),
        };
        Ok(ResizeAttributes { width: to(1)?, height: to(2)?, layout, alignment })
    }
}

impl ResizeTo {
    /// Pixels of the output for so many of the input.
    ///
    /// # Errors
    /// [`OpError::Range`] when that is none, or more than an INT32 can say.
    pub(crate) fn pixels(self, input: u32) -> Result<u32, OpError> {
        let factor = match self {
            ResizeTo::Pixels(pixels) => return Ok(pixels),
            ResizeTo::Factor(factor) => factor,
        };
        #[allow(clippy::cast_precision_loss, reason = "the reference computes in f32")]
        let size = input as f32 * factor;
        if !(1.0..=MAX_SIZE).contains(&size) {
            return Err(OpError::Range { what: "output size" });
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 2^31, and rounding down is meant"
        )]
        Ok(size as u32)
    }
}
