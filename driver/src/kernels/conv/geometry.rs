//! Where a 2-D convolution reads and writes: sizes, distances in memory, and which filter taps
//! fall onto the input.

use std::ops::Range;

/// A batch of images in memory: sizes, and how many elements neighbours lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Images {
    /// Number of images.
    pub(crate) batches: usize,
    /// Rows of an image.
    pub(crate) height: usize,
    /// Columns of an image.
    pub(crate) width: usize,
    /// Values per pixel.
    pub(crate) channels: usize,
    /// From an image to the next.
    pub(crate) batch_step: usize,
    /// From a row to the next.
    pub(crate) row_step: usize,
    /// From a pixel to the one on its right.
    pub(crate) column_step: usize,
    /// From a value to the next of the same pixel.
    pub(crate) channel_step: usize,
}

impl Images {
    /// Images with the values of a pixel side by side.
    #[must_use]
    pub(crate) fn nhwc([batches, height, width, channels]: [usize; 4]) -> Self {
        Images {
            batches,
            height,
            width,
            channels,
            batch_step: height * width * channels,
            row_step: width * channels,
            column_step: channels,
            channel_step: 1,
        }
    }

    /// Images as one plane per channel.
    #[must_use]
    pub(crate) fn nchw([batches, channels, height, width]: [usize; 4]) -> Self {
        Images {
            batches,
            height,
            width,
            channels,
            batch_step: channels * height * width,
            row_step: width,
            column_step: 1,
            channel_step: height * width,
        }
    }

    /// Number of values.
    #[must_use]
    pub(crate) fn values(&self) -> usize {
        self.batches * self.height * self.width * self.channels
    }

    /// Number of pixels of all images.
    #[must_use]
    pub(crate) fn pixels(&self) -> usize {
        self.batches * self.height * self.width
    }

    /// Whether the values of a pixel lie side by side.
    #[must_use]
    pub(crate) fn is_nhwc(&self) -> bool {
        *self == Images::nhwc([self.batches, self.height, self.width, self.channels])
    }

    /// Index of the first value of a pixel.
    #[inline]
    #[must_use]
    pub(crate) fn at(&self, batch: usize, row: usize, column: usize) -> usize {
        batch * self.batch_step + row * self.row_step + column * self.column_step
    }
}

/// A filter in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Output channels.
    pub(crate) outputs: usize,
    /// Rows of taps.
    pub(crate) height: usize,
    /// Columns of taps.
    pub(crate) width: usize,
    /// Input channels that one output channel sees.
    pub(crate) depth: usize,
    /// From an output channel to the next.
    pub(crate) output_step: usize,
    /// From a row of taps to the next.
    pub(crate) row_step: usize,
    /// From a tap to the one on its right.
    pub(crate) column_step: usize,
    /// From an input channel to the next.
    pub(crate) depth_step: usize,
}

impl Filter {
    /// One box of weights per output channel.
    #[must_use]
    pub(crate) fn dense([outputs, height, width, depth]: [usize; 4]) -> Self {
        Filter {
            outputs,
            height,
            width,
            depth,
            output_step: height * width * depth,
            row_step: width * depth,
            column_step: depth,
            depth_step: 1,
        }
    }

    /// One plane of weights per output channel, the output channels side by side.
    #[must_use]
    pub(crate) fn depthwise([height, width, outputs]: [usize; 3]) -> Self {
        Filter {
            outputs,
            height,
            width,
            depth: 1,
            output_step: 1,
            row_step: width * outputs,
            column_step: outputs,
            depth_step: 0,
        }
    }

    /// Number of weights.
    #[must_use]
    pub(crate) fn values(&self) -> usize {
        self.outputs * self.height * self.width * self.depth
    }
}

/// How a filter moves over one dimension of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Input elements from one output to the next.
    pub(crate) stride: usize,
    /// Input elements from one tap to the next.
    pub(crate) dilation: usize,
    /// Zeros imagined before the first input element.
    pub(crate) pad: usize,
}

impl Axis {
    /// The taps, of `taps`, that fall onto an input of `size` elements for output `out`.
    #[inline]
    #[must_use]
    pub(crate) fn taps(&self, out: usize, taps: usize, size: usize) -> Range<usize> {
        let start = out * self.stride;
        let first = self.taps_within(self.pad.saturating_sub(start));
        let end = self.taps_within((size + self.pad).saturating_sub(start)).min(taps);
        first..end.max(first)
    }

    /// The outputs, of `outputs`, for which all of `taps` taps fall onto an input of `size` elements.
    #[must_use]
    pub(crate) fn whole(&self, taps: usize, size: usize, outputs: usize) -> Range<usize> {
        let span = taps.saturating_sub(1) * self.dilation + 1;
        let first = self.pad.div_ceil(self.stride);
        let end = match (size + self.pad).checked_sub(span) {
            Some(last) => (last / self.stride + 1).min(outputs),
            None => 0,
        };
        first..end.max(first)
    }

    /// How many taps begin within so many elements.
    fn taps_within(&self, elements: usize) -> usize {
        // This is asked for every output pixel, where a division would cost more than all else.
        if self.dilation == 1 { elements } else { elements.div_ceil(self.dilation) }
    }

    /// The input element under `tap` for output `out`. The tap must be one of [`Axis::taps`].
    #[inline]
    #[must_use]
    pub(crate) fn position(&self, out: usize, tap: usize) -> usize {
        out * self.stride + tap * self.dilation - self.pad
    }

    /// Whether every output element sees exactly the input element of its own index.
    fn is_identity(&self) -> bool {
        self.stride == 1 && self.pad == 0
    }
}

/// A 2-D convolution: what goes in, the filter, what comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conv {
    /// What goes in.
    pub(crate) input: Images,
    /// The filter.
    pub(crate) filter: Filter,
    /// What comes out.
    pub(crate) output: Images,
    /// How the filter moves down.
    pub(crate) vertical: Axis,
    /// How the filter moves right.
    pub(crate) horizontal: Axis,
    /// Groups that input and output channels are divided into; a group of outputs sees the group
    /// of inputs of the same number.
    pub(crate) groups: usize,
}

impl Conv {
    /// The values of the input among which all are that output pixels `first..first + count` need.
    #[must_use]
    pub(crate) fn reach(&self, first: usize, count: usize) -> Range<usize> {
        let (input, axis) = (&self.input, &self.vertical);
        if count == 0 || input.height == 0 {
            return 0..0;
        }
        let line = |pixel: usize| {
            let line = pixel / self.output.width;
            (line / self.output.height, line % self.output.height * axis.stride)
        };
        let at = |batch: usize, row: usize| {
            batch * input.batch_step
                + row.saturating_sub(axis.pad).min(input.height) * input.row_step
        };
        let (batch, row) = line(first);
        let start = at(batch, row);
        let (batch, row) = line(first + count - 1);
        let span = self.filter.height.saturating_sub(1) * axis.dilation + 1;
        start..at(batch, row + span).max(start)
    }

    /// Whether slices of these lengths hold what the convolution reads and writes.
    #[must_use]
    pub(crate) fn fits(&self, input: usize, filter: usize, bias: usize, output: usize) -> bool {
        input == self.input.values()
            && filter == self.filter.values()
            && bias == self.filter.outputs
            && output == self.output.values()
    }

    /// Whether the rows of the matrix form are the input's pixels as they lie in memory.
    #[must_use]
    pub(crate) fn is_pointwise(&self) -> bool {
        self.filter.height == 1
            && self.filter.width == 1
            && self.vertical.is_identity()
            && self.horizontal.is_identity()
            && self.input.height == self.output.height
            && self.input.width == self.output.width
    }

    /// The same depthwise convolution with so many channels.
    #[must_use]
    pub(crate) fn with_channels(&self, channels: usize) -> Conv {
        let images =
            |images: &Images| Images::nhwc([images.batches, images.height, images.width, channels]);
        let Filter { height, width, .. } = self.filter;
        Conv {
            input: images(&self.input),
            filter: Filter::depthwise([height, width, channels]),
            output: images(&self.output),
            groups: channels,
            ..*self
        }
    }

    /// Length of a row of the matrix form: weights per output channel.
    #[must_use]
    pub(crate) fn depth(&self) -> usize {
        self.filter.height * self.filter.width * self.filter.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_outside_the_input_are_left_out() {
        // 5 elements, 3 taps 2 apart, stride 2, 2 zeros before: the filter spans 5.
        let axis = Axis { stride: 2, dilation: 2, pad: 2 };
        for (out, want) in [(0, 1..3), (1, 0..3), (2, 0..2), (3, 0..1), (9, 0..0)] {
            assert_eq!(axis.taps(out, 3, 5), want, "output {out}");
        }
        assert!(axis.whole(3, 5, 3) == (1..2) && axis.whole(3, 4, 3).is_empty());
        assert_eq!(Axis { stride: 1, dilation: 1, pad: 1 }.whole(3, 5, 5), 1..4);
        assert_eq!(axis.position(0, 1), 0);
        assert_eq!(axis.position(2, 1), 4);
        // A filter that lies in the padding altogether.
        assert!(Axis { stride: 1, dilation: 1, pad: 9 }.taps(0, 3, 5).is_empty());
    }

    #[test]
    fn a_pixel_is_found_in_both_layouts() {
        let nhwc = Images::nhwc([2, 3, 4, 5]);
        assert_eq!(nhwc.at(1, 2, 3) + 4, 119);
        assert!(nhwc.is_nhwc());
        let nchw = Images::nchw([2, 5, 3, 4]);
        assert_eq!((nchw.height, nchw.width, nchw.channels), (3, 4, 5));
        assert_eq!(nchw.at(1, 2, 3) + 4 * nchw.channel_step, 119);
        assert!(!nchw.is_nhwc());
    }
}
