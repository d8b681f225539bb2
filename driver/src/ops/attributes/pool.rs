//! The attributes of poolings.

use burst_hal::FusedActivation;

use super::{Layout, Padding, activation, positive_i32};
use crate::OpError;
use crate::op::Operands;

/// What the operands after the input say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolAttributes {
    /// The padding.
    pub(crate) padding: Padding,
    /// Vertical and horizontal stride, above 0.
    pub(crate) strides: [usize; 2],
    /// Height and width of the window, above 0.
    pub(crate) filter: [usize; 2],
    /// The activation.
    pub(crate) activation: FusedActivation,
    /// How pictures are stored.
    pub(crate) layout: Layout,
}

/// Inputs of the shortest list with explicit padding; the longest one with a scheme is shorter.
const EXPLICIT_COUNT: usize = 10;

impl PoolAttributes {
    /// Parses the operands.
    ///
    /// # Errors
    /// As [`Operands::i32`] and [`Operands::bool`]; [`OpError::Value`] for a stride or filter size
    /// that is not above 0, and for unknown codes.
    pub(crate) fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        let (padding, at) = if operands.count() >= EXPLICIT_COUNT {
            (Padding::explicit(operands, 1)?, 5)
        } else {
            (Padding::scheme(operands, 1)?, 2)
        };
        let activation = activation(operands, at + 4)?;
        let layout = Layout::optional(operands, at + 5)?;
        // Width stands before height.
        let vertical_then_horizontal = |first: usize, what| -> Result<[usize; 2], OpError> {
            let vertical = positive_i32(operands, first + 1, what)?;
            Ok([vertical as usize, positive_i32(operands, first, what)? as usize])
        };
        Ok(PoolAttributes {
            padding,
            filter: vertical_then_horizontal(at + 2, "filter size")?,
            strides: vertical_then_horizontal(at, "stride")?,
            activation,
            layout,
        })
    }
}
