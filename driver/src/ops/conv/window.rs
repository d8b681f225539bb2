//! The parameters that convolutions share: padding, strides, dilation, activation, layout; and the
//! output size that follows from them.

use burst_hal::{Dimensions, FusedActivation, OperandType};

use crate::OpError;
use crate::kernels::conv::{Axis, Images};
use crate::kernels::quant::activation;
use crate::op::Run;
use crate::tensor::Args;

/// Where scalar operands are read from: known constants while preparing, operands while running.
pub(super) trait Scalars {
    /// How many operands there are.
    fn count(&self) -> usize;
    /// The type of operand `index`.
    fn ty(&self, index: usize) -> Option<OperandType>;
    /// An INT32.
    fn int(&self, index: usize) -> Result<i32, OpError>;
    /// A BOOL.
    fn flag(&self, index: usize) -> Result<bool, OpError>;
}

impl Scalars for Args<'_> {
    fn count(&self) -> usize {
        self.inputs.len()
    }
    fn ty(&self, index: usize) -> Option<OperandType> {
        self.inputs.get(index).map(|arg| arg.info.ty)
    }
    fn int(&self, index: usize) -> Result<i32, OpError> {
        self.i32(index)
    }
    fn flag(&self, index: usize) -> Result<bool, OpError> {
        self.bool(index)
    }
}

impl Scalars for Run<'_, '_> {
    fn count(&self) -> usize {
        self.inputs.len()
    }
    fn ty(&self, index: usize) -> Option<OperandType> {
        self.inputs.get(index).map(|input| input.info.ty)
    }
    fn int(&self, index: usize) -> Result<i32, OpError> {
        self.i32(index)
    }
    fn flag(&self, index: usize) -> Result<bool, OpError> {
        self.input(index)?.scalar_bool()
    }
}

/// How an input is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    /// As many zeros as make the output `input / stride` large, rounded up.
    Same,
    /// None.
    Valid,
    /// So many zeros before and after: vertical, horizontal. A transposed convolution may have
    /// negative ones after.
    Explicit([(i32, i32); 2]),
}

impl Padding {
    /// The implicit padding with this code.
    pub(super) fn implicit(code: i32) -> Result<Self, OpError> {
        match code {
            1 => Ok(Padding::Same),
            2 => Ok(Padding::Valid),
            other => Err(OpError::value("padding scheme", other)),
        }
    }

    /// The four INT32 operands from `first` on: left, right, top, bottom.
    fn explicit(scalars: &impl Scalars, first: usize) -> Result<Self, OpError> {
        let [left, right, top, bottom] = [
            scalars.int(first)?,
            scalars.int(first + 1)?,
            scalars.int(first + 2)?,
            scalars.int(first + 3)?,
        ];
        Ok(Padding::Explicit([(top, bottom), (left, right)]))
    }
}

/// Which of the operands after the bias an operation has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Position of the first padding operand.
    pub(super) padding: usize,
    /// Whether padding is given as four numbers.
    pub(super) is_explicit: bool,
    /// Whether a number (depth multiplier, groups) stands between strides and activation.
    pub(super) has_number: bool,
}

/// What the operands after the bias say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// The padding.
    pub(super) padding: Padding,
    /// Vertical and horizontal stride, above 0.
    pub(super) strides: [usize; 2],
    /// Vertical and horizontal dilation, above 0.
    pub(super) dilations: [usize; 2],
    /// Depth multiplier or groups, above 0; 1 where the operation has neither.
    pub(super) number: usize,
    /// The activation.
    pub(super) activation: FusedActivation,
    /// Whether images are stored channel by channel.
    pub(super) is_nchw: bool,
}

impl Window {
    /// Reads the operands.
    pub(super) fn read(scalars: &impl Scalars, form: Form) -> Result<Self, OpError> {
        let padding = if form.is_explicit {
            Padding::explicit(scalars, form.padding)?
        } else {
            Padding::implicit(scalars.int(form.padding)?)?
        };
        let mut at = form.padding + if form.is_explicit { 4 } else { 1 };
        let positive = |index, what| {
            let value = scalars.int(index)?;
            usize::try_from(value).ok().filter(|v| *v > 0).ok_or(OpError::value(what, value))
        };
        let strides = [positive(at + 1, "stride")?, positive(at, "stride")?];
        at += 2;
        let mut number = 1;
        if form.has_number {
            number = positive(at, "depth multiplier or number of groups")?;
            at += 1;
        }
        let activation = activation(scalars.int(at)?)?;
        let is_nchw = scalars.count() > at + 1 && scalars.flag(at + 1)?;
        let dilations = if scalars.count() > at + 3 {
            [positive(at + 3, "dilation")?, positive(at + 2, "dilation")?]
        } else {
            [1, 1]
        };
        Ok(Window { padding, strides, dilations, number, activation, is_nchw })
    }

    /// Images of this layout.
    pub(super) fn images(&self, dims: [usize; 4]) -> Images {
        if self.is_nchw { Images::nchw(dims) } else { Images::nhwc(dims) }
    }

    /// Images of this layout and these sizes.
    pub(super) fn images_of(&self, [batches, height, width, channels]: [usize; 4]) -> Images {
        if self.is_nchw {
            Images::nchw([batches, channels, height, width])
        } else {
            Images::nhwc([batches, height, width, channels])
        }
    }

    /// The shape of images of this layout.
    pub(super) fn dims_of(&self, images: &Images) -> Result<Dimensions, OpError> {
        let Images { batches, height, width, channels, .. } = *images;
        let order = if self.is_nchw {
            [batches, channels, height, width]
        } else {
            [batches, height, width, channels]
        };
        order
            .into_iter()
            .map(|size| u32::try_from(size).map_err(|_| OpError::Range { what: "output size" }))
            .collect()
    }

    /// How a filter of `taps` moves over an input of `size` in one dimension (0: vertical, 1:
    /// horizontal), and how many outputs that gives.
    pub(super) fn slide(
        &self,
        dimension: usize,
        size: usize,
        taps: usize,
    ) -> Result<(Axis, usize), OpError> {
        let (stride, dilation) = (self.strides[dimension], self.dilations[dimension]);
        let range = OpError::Range { what: "extent of a filter" };
        let span = taps
            .checked_sub(1)
            .and_then(|gaps| gaps.checked_mul(dilation))
            .and_then(|span| span.checked_add(1))
            .ok_or(range)?;
        let (head, tail) = match self.padding {
            Padding::Valid => (0, 0),
            Padding::Same => {
                let outputs = size.div_ceil(stride);
                let reach = outputs.saturating_sub(1) * stride + span;
                let total = reach.saturating_sub(size);
                (total / 2, total - total / 2)
            }
            Padding::Explicit(pads) => {
                let (head, tail) = pads[dimension];
                (self.pad(head, span)?, self.pad(tail, span)?)
            }
        };
        let padded = size + head + tail;
        if padded < span {
            return Err(OpError::value("filter larger than the padded input: size", clip(span)));
        }
        Ok((Axis { stride, dilation, pad: head }, (padded - span) / stride + 1))
    }

    fn pad(&self, pad: i32, span: usize) -> Result<usize, OpError> {
        usize::try_from(pad)
            .ok()
            .filter(|pad| *pad < span)
            .ok_or(OpError::value("padding (negative, or not smaller than the filter)", pad))
    }
}

fn clip(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// A shape of rank 4 of which only the first dimension may be 0.
pub(super) fn four(what: &'static str, dims: &[u32]) -> Result<[usize; 4], OpError> {
    let [a, b, c, d] = *dims else { return Err(OpError::shape(what, dims, &[0; 4])) };
    if b == 0 || c == 0 || d == 0 {
        return Err(OpError::shape(what, dims, &[0; 4]));
    }
    Ok([a as usize, b as usize, c as usize, d as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(padding: Padding, strides: [usize; 2], dilations: [usize; 2]) -> Window {
        Window {
            padding,
            strides,
            dilations,
            number: 1,
            activation: FusedActivation::None,
            is_nchw: false,
        }
    }

    #[test]
    fn output_sizes() {
        for (what, padding, size, taps, stride, dilation, want) in [
            ("valid", Padding::Valid, 7, 3, 2, 1, Ok((0, 3))),
            ("same, odd total", Padding::Same, 6, 3, 2, 1, Ok((0, 3))),
            ("same, even total", Padding::Same, 7, 3, 2, 1, Ok((1, 4))),
            ("same, dilated", Padding::Same, 9, 3, 1, 2, Ok((2, 9))),
            ("same, stride over filter", Padding::Same, 5, 1, 3, 1, Ok((0, 2))),
            ("explicit", Padding::Explicit([(1, 0); 2]), 5, 2, 1, 1, Ok((1, 5))),
            ("explicit, too wide", Padding::Explicit([(2, 0); 2]), 5, 2, 1, 1, Err(())),
            ("explicit, negative", Padding::Explicit([(0, -1); 2]), 5, 2, 1, 1, Err(())),
            ("filter over input", Padding::Valid, 2, 3, 1, 1, Err(())),
            ("no taps", Padding::Valid, 2, 0, 1, 1, Err(())),
        ] {
            let window = window(padding, [stride; 2], [dilation; 2]);
            for dimension in [0, 1] {
                let got = window.slide(dimension, size, taps);
                let got = got.map(|(axis, out)| (axis.pad, out)).map_err(|_| ());
                assert_eq!(got, want, "{what}");
            }
        }
    }

    #[test]
    fn parameters_of_a_hostile_model_do_not_overflow() {
        let huge = i32::MAX as usize;
        let explicit = Padding::Explicit([(i32::MAX, i32::MAX); 2]);
        for padding in [Padding::Same, Padding::Valid, explicit] {
            let window = window(padding, [huge; 2], [huge; 2]);
            for (size, taps) in [(u32::MAX as usize, u32::MAX as usize), (1, 2), (1, 1)] {
                let _ = window.slide(0, size, taps);
            }
        }
    }
}
