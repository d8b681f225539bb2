//! Rows of a depthwise convolution of quantized values.

use std::ops::Range;

use crate::kernels::conv::{Conv, pixels};
use crate::kernels::requantize::Channels;

/// Quantized weights and what they are multiplied with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteFilter<'a> {
    /// Weights less their zero point, channels side by side, in the order of taps.
    pub(crate) weights: &'a [i16],
    /// What is XORed into an input byte to make it unsigned.
    pub(crate) flip: u8,
    /// The unsigned input value that stands for real 0.
    pub(crate) zero: i32,
}

/// Rows `rows` of the output of a depthwise convolution of quantized values. All slices must fit
/// `conv`; `out` begins with the first of the rows, `sums` holds a number per channel.
#[inline(always)]
pub(crate) fn rows(
    conv: &Conv,
    input: &[u8],
    filter: ByteFilter<'_>,
    rules: Channels<'_>,
    rows: Range<usize>,
    sums: &mut [i32],
    out: &mut [u8],
) {
    let channels = conv.output.channels;
    for (taps, out) in pixels(conv, rows).zip(out.chunks_exact_mut(channels)) {
        sums.fill(0);
        for (from, tap) in taps.iter() {
            let values = &input[from..from + channels];
            let weights = &filter.weights[tap * channels..(tap + 1) * channels];
            add_bytes(sums, values, weights, filter.flip, filter.zero);
        }
        rules.row(sums, 0, out);
    }
}

/// Adds the products of one tap. A function of its own, so that the compiler knows that the sums
/// are apart from everything else.
#[inline(always)]
fn add_bytes(sums: &mut [i32], values: &[u8], weights: &[i16], flip: u8, zero: i32) {
    let len = sums.len();
    let (values, weights) = (&values[..len], &weights[..len]);
    for channel in 0..len {
        let value = i32::from(values[channel] ^ flip) - zero;
        sums[channel] = sums[channel].wrapping_add(value * i32::from(weights[channel]));
    }
}
