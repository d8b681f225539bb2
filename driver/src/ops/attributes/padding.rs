//! How inputs of convolutions and poolings are padded.

use crate::OpError;
use crate::op::Operands;

/// How an input is padded before a window slides over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// As much as makes the output `input / stride` large, rounded up.
    Same,
    /// Not at all.
    Valid,
    /// So many pixels before and after: vertical, horizontal. A transposed convolution may have
    /// negative ones after.
    Explicit([(i32, i32); 2]),
}

impl Padding {
    /// The padding scheme whose code is the INT32 at input `index`.
    ///
    /// # Errors
    /// As [`Operands::i32`]; [`OpError::Value`] for a code that is no scheme.
    pub(crate) fn scheme(operands: &dyn Operands, index: usize) -> Result<Self, OpError> {
        match operands.i32(index)? {
            1 => Ok(Padding::Same),
            2 => Ok(Padding::Valid),
            other => Err(OpError::value("padding scheme", other)),
        }
    }

    /// The four INT32 operands from input `first` on: left, right, top, bottom.
    ///
    /// # Errors
    /// As [`Operands::i32`].
    pub(crate) fn explicit(operands: &dyn Operands, first: usize) -> Result<Self, OpError> {
        let side = |side: usize| operands.i32(first + side);
        let [left, right, top, bottom] = [side(0)?, side(1)?, side(2)?, side(3)?];
        Ok(Padding::Explicit([(top, bottom), (left, right)]))
    }

    /// How a window that spans `span` pixels slides over `size` pixels in one dimension (0:
    /// vertical, 1: horizontal): the padding before the first pixel, and the number of outputs.
    ///
    /// # Errors
    /// [`OpError::Value`] when the window is larger than the padded input, or for an explicit
    /// padding that is below 0 or not smaller than the window: that window would cover nothing.
    pub(crate) fn slide(
        self,
        dimension: usize,
        size: usize,
        stride: usize,
        span: usize,
    ) -> Result<(usize, usize), OpError> {
        let pixels = |pad: i32| {
            usize::try_from(pad)
                .ok()
                .filter(|pad| *pad < span)
                .ok_or(OpError::value("padding (negative, or not smaller than the filter)", pad))
        };
        let (before, after) = match self {
            Padding::Valid => (0, 0),
            Padding::Same => {
                let outputs = size.div_ceil(stride);
                let reach = outputs.saturating_sub(1) * stride + span;
                let total = reach.saturating_sub(size);
                (total / 2, total - total / 2)
            }
            Padding::Explicit(pads) => (pixels(pads[dimension].0)?, pixels(pads[dimension].1)?),
        };
        match (size + before + after).checked_sub(span) {
            Some(room) => Ok((before, room / stride + 1)),
            None => Err(OpError::value(
                "filter larger than the padded input: size",
                i64::try_from(span).unwrap_or(i64::MAX),
            )),
        }
    }
}
