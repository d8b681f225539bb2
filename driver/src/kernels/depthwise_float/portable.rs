//! Rows of a depthwise convolution of floats.

use std::ops::Range;

use crate::kernels::conv::{Conv, pixels};

/// Most taps that the kernels for AVX2 and AVX-512 take: those of a filter of 8 by 8.
pub(crate) const MAX_TAPS: usize = 64;

/// Weights and biases of 32-bit floats, and the range that the activation leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FloatFilter<'a> {
    /// Weights, channels side by side, in the order of taps.
    pub(crate) weights: &'a [f32],
    /// One bias per channel.
    pub(crate) bias: &'a [f32],
    /// Smallest result.
    pub(crate) low: f32,
    /// Largest result.
    pub(crate) high: f32,
}

/// Rows `rows` of the output of a depthwise convolution. All slices must fit `conv`; `out` begins with
/// the first of the rows. Sums are taken in the output.
#[inline(always)]
pub(crate) fn rows(
    conv: &Conv,
    input: &[f32],
    filter: FloatFilter<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    let channels = conv.output.channels;
    for (taps, out) in pixels(conv, rows).zip(out.chunks_exact_mut(channels)) {
        out.fill(0.0);
        for (from, tap) in taps.iter() {
            let values = &input[from..from + channels];
            let weights = &filter.weights[tap * channels..(tap + 1) * channels];
            add_floats(out, values, weights);
        }
        for (out, bias) in out.iter_mut().zip(filter.bias) {
            let sum = *out + bias;
            let sum = if sum < filter.low { filter.low } else { sum };
            *out = if sum > filter.high { filter.high } else { sum };
        }
    }
}

/// Adds the products of one tap. A function of its own, so that the compiler knows that the sums
/// are apart from everything else.
#[inline(always)]
fn add_floats(sums: &mut [f32], values: &[f32], weights: &[f32]) {
    for ((sum, value), weight) in sums.iter_mut().zip(values).zip(weights) {
        *sum += value * weight;
    }
}
