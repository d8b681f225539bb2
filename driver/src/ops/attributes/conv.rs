//! The attributes of convolutions.

use burst_hal::{FusedActivation, OperandType};

use super::{Layout, Padding, activation, positive_i32};
use crate::OpError;
use crate::op::Operands;

/// Which of the operands after the bias a convolution has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConvForm {
    /// Position of the first padding operand.
    pub(crate) padding: usize,
    /// Whether padding is given as four numbers.
    pub(crate) is_explicit: bool,
    /// Whether a number (depth multiplier, groups) stands between strides and activation.
    pub(crate) has_number: bool,
}

impl ConvForm {
    /// Whether a convolution gives its padding as four numbers. Its shortest list that does has
    /// `shortest` operands. An implicit list with layout and dilations can be as long; the type of
    /// the operand at `stride` tells the two apart: a stride, or the layout.
    pub(crate) fn is_explicit(operands: &dyn Operands, shortest: usize, stride: usize) -> bool {
        operands.count() >= shortest && operands.ty(stride) == Some(OperandType::Int32)
    }
}

/// What the operands after the bias say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConvAttributes {
    /// The padding.
    pub(crate) padding: Padding,
    /// Vertical and horizontal stride, above 0.
    pub(crate) strides: [usize; 2],
    /// Vertical and horizontal dilation, above 0.
    pub(crate) dilations: [usize; 2],
    /// Depth multiplier or number of groups, above 0; 1 where the operation has neither.
    pub(crate) number: usize,
    /// The activation.
    pub(crate) activation: FusedActivation,
    /// How images are stored.
    pub(crate) layout: Layout,
}

impl ConvAttributes {
    /// Parses the operands.
    ///
    /// # Errors
    /// As [`Operands::i32`] and [`Operands::bool`]; [`OpError::Value`] for a stride, dilation,
    /// multiplier or number of groups that is not above 0, and for unknown codes.
    pub(crate) fn parse(operands: &dyn Operands, form: ConvForm) -> Result<Self, OpError> {
        let (padding, mut at) = if form.is_explicit {
            (Padding::explicit(operands, form.padding)?, form.padding + 4)
        } else {
            (Padding::scheme(operands, form.padding)?, form.padding + 1)
        };
        let positive =
            |index, what| positive_i32(operands, index, what).map(|value| value as usize);
        let strides = [positive(at + 1, "stride")?, positive(at, "stride")?];
        at += 2;
        let mut number = 1;
        if form.has_number {
            number = positive(at, "depth multiplier or number of groups")?;
            at += 1;
        }
        let activation = activation(operands, at)?;
        let layout = Layout::optional(operands, at + 1)?;
        let dilations = if operands.count() > at + 3 {
            [positive(at + 3, "dilation")?, positive(at + 2, "dilation")?]
        } else {
            [1, 1]
        };
        Ok(ConvAttributes { padding, strides, dilations, number, activation, layout })
    }
}
