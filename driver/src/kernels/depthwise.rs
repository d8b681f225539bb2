//! Depthwise convolution of NHWC images with one output per input channel: each channel has its own
//! filter, so that channels are what is computed side by side.
//!
//! Blocks of channels keep their sums in registers over all taps. Taps that fall outside of the
//! image are left out of the loops, so that nothing is padded or checked inside of them.

use std::ops::Range;

use crate::kernels::conv_geometry::{Conv, Images};
use crate::kernels::requantize::Channels;

/// Channels of a full block: two registers of sums at 512 bits.
const BLOCK: usize = 32;

/// Taps of one output pixel that fall onto the image: for rows of taps, and taps of each row.
#[derive(Debug, Clone, Copy)]
struct Taps<'a> {
    conv: &'a Conv,
    batch: usize,
    row: usize,
    column: usize,
    down: (usize, usize),
    right: (usize, usize),
}

impl Taps<'_> {
    /// Calls `visit` with the index of the first input value and of the first weight of each tap.
    #[inline(always)]
    fn for_each(&self, mut visit: impl FnMut(usize, usize)) {
        let Conv { input, filter, vertical, horizontal, .. } = self.conv;
        let step = horizontal.dilation * input.column_step;
        for down in self.down.0..self.down.1 {
            let y = vertical.position(self.row, down);
            let x = horizontal.position(self.column, self.right.0);
            let mut from = input.at(self.batch, y, x);
            let mut weight = down * filter.row_step + self.right.0 * filter.column_step;
            for _ in self.right.0..self.right.1 {
                visit(from, weight);
                from += step;
                weight += filter.column_step;
            }
        }
    }
}

/// Visits the rows of output pixels `rows`, counted over all images: the taps of each pixel, and the
/// index of its first value in the part of the output that begins with these rows.
#[inline(always)]
fn for_each_pixel(conv: &Conv, rows: Range<usize>, mut visit: impl FnMut(Taps<'_>, usize)) {
    let Images { height, width, channels, .. } = conv.output;
    let bounds = |range: Range<usize>| (range.start, range.end);
    let mut at = 0;
    for line in rows {
        let (batch, row) = (line / height, line % height);
        let down = conv.vertical.taps(row, conv.filter.height, conv.input.height);
        let down = if down.is_empty() { (0, 0) } else { bounds(down) };
        for column in 0..width {
            let right = conv.horizontal.taps(column, conv.filter.width, conv.input.width);
            // With no taps across there are none at all, and no position to compute.
            let (down, right) =
                if right.is_empty() { ((0, 0), (0, 0)) } else { (down, bounds(right)) };
            visit(Taps { conv, batch, row, column, down, right }, at);
            at += channels;
        }
    }
}

/// Quantized weights and what they are multiplied with.
#[derive(Debug, Clone, Copy)]
pub struct ByteFilter<'a> {
    /// Weights less their zero point, channels side by side, in the order of taps.
    pub weights: &'a [i16],
    /// What is XORed into an input byte to make it unsigned.
    pub flip: u8,
    /// The unsigned input value that stands for real 0.
    pub zero: i32,
}

/// Rows `rows` of the output of a depthwise convolution of quantized values. All slices must fit
/// `conv`; `out` begins with the first of the rows.
#[inline(always)]
pub(crate) fn bytes(
    conv: &Conv,
    input: &[u8],
    filter: ByteFilter<'_>,
    rules: Channels<'_>,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let channels = conv.output.channels;
    for_each_pixel(conv, rows, |taps, at| {
        let out = &mut out[at..at + channels];
        let mut first = 0;
        while first + BLOCK <= channels {
            byte_block::<BLOCK>(taps, input, filter, rules, first, out);
            first += BLOCK;
        }
        while first + 8 <= channels {
            byte_block::<8>(taps, input, filter, rules, first, out);
            first += 8;
        }
        while first < channels {
            byte_block::<1>(taps, input, filter, rules, first, out);
            first += 1;
        }
    });
}

#[inline(always)]
fn byte_block<const N: usize>(
    taps: Taps<'_>,
    input: &[u8],
    filter: ByteFilter<'_>,
    rules: Channels<'_>,
    first: usize,
    out: &mut [u8],
) {
    let mut sums = [0i32; N];
    taps.for_each(|from, weight| {
        let values = &input[from + first..][..N];
        let weights = &filter.weights[weight + first..][..N];
        for lane in 0..N {
            let value = i32::from(values[lane] ^ filter.flip) - filter.zero;
            sums[lane] = sums[lane].wrapping_add(value * i32::from(weights[lane]));
        }
    });
    rules.part(first, N).row(&sums, 0, &mut out[first..first + N]);
}

/// Weights and biases of 32-bit floats, and the range that the activation leaves.
#[derive(Debug, Clone, Copy)]
pub struct FloatFilter<'a> {
    /// Weights, channels side by side, in the order of taps.
    pub weights: &'a [f32],
    /// One bias per channel.
    pub bias: &'a [f32],
    /// Smallest result.
    pub low: f32,
    /// Largest result.
    pub high: f32,
}

/// As [`bytes`], of floats.
#[inline(always)]
pub(crate) fn floats(
    conv: &Conv,
    input: &[f32],
    filter: FloatFilter<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    let channels = conv.output.channels;
    for_each_pixel(conv, rows, |taps, at| {
        let out = &mut out[at..at + channels];
        let mut first = 0;
        while first + BLOCK <= channels {
            float_block::<BLOCK>(taps, input, filter, first, out);
            first += BLOCK;
        }
        while first + 8 <= channels {
            float_block::<8>(taps, input, filter, first, out);
            first += 8;
        }
        while first < channels {
            float_block::<1>(taps, input, filter, first, out);
            first += 1;
        }
    });
}

#[inline(always)]
fn float_block<const N: usize>(
    taps: Taps<'_>,
    input: &[f32],
    filter: FloatFilter<'_>,
    first: usize,
    out: &mut [f32],
) {
    let mut sums = [0f32; N];
    taps.for_each(|from, weight| {
        let values = &input[from + first..][..N];
        let weights = &filter.weights[weight + first..][..N];
        for lane in 0..N {
            sums[lane] += values[lane] * weights[lane];
        }
    });
    let (bias, out) = (&filter.bias[first..][..N], &mut out[first..][..N]);
    for lane in 0..N {
        let sum = sums[lane] + bias[lane];
        let sum = if sum < filter.low { filter.low } else { sum };
        out[lane] = if sum > filter.high { filter.high } else { sum };
    }
}
