//! Depthwise convolution for NEON, 16 channels at a time.

use core::arch::aarch64::*;
use std::ops::Range;

use super::portable::{self, ByteFilter};
use crate::kernels::conv::{Conv, Taps, pixels_of};
use crate::kernels::requantize::Channels;
use crate::kernels::requantize::neon::{Bounds, Rules};
use crate::kernels::simd::neon::{load_8_bytes, load_i16s, store_8_bytes};

/// Channels of a register of 16-bit values.
const LANES: usize = 8;

/// As [`portable::rows`].
#[target_feature(enable = "neon")]
pub(crate) fn rows(
    conv: &Conv,
    input: &[u8],
    filter: ByteFilter<'_>,
    rules: Channels<'_>,
    rows: Range<usize>,
    sums: &mut [i32],
    out: &mut [u8],
) {
    let (channels, width) = (conv.output.channels, conv.output.width);
    // Of a byte and a zero point of 8 bits the difference has 16.
    let zero = u8::try_from(filter.zero).ok().filter(|_| channels >= LANES);
    let Some(zero) = zero else {
        return portable::rows(conv, input, filter, rules, rows, sums, out);
    };
    let (zero, bounds) = (vdup_n_u8(zero), Bounds::new(rules));
    let plane = Plane { conv, input, filter, zero, bounds, rules };
    // Line by line, so that lines of the input stay in the cache from one run of channels to the next. The last
    // run ends with the last channel: what it shares with the run before it, it computes once more.
    for (row, out) in rows.zip(out.chunks_exact_mut(width * channels)) {
        let mut first = 0;
        while first + 2 * LANES <= channels {
            plane.line::<2>(row, first, out);
            first += 2 * LANES;
        }
        match channels - first {
            0 => {}
            left if left > LANES && first > 0 => plane.line::<2>(row, channels - 2 * LANES, out),
            left => {
                if left > LANES {
                    plane.line::<1>(row, 0, out);
                }
                plane.line::<1>(row, channels - LANES, out);
            }
        }
    }
}

/// What all lines share.
struct Plane<'a> {
    conv: &'a Conv,
    input: &'a [u8],
    filter: ByteFilter<'a>,
    zero: uint8x8_t,
    rules: Channels<'a>,
    bounds: Bounds,
}

impl Plane<'_> {
    /// `N` times 8 channels of a line of pixels, from `first` on.
    #[inline]
    #[target_feature(enable = "neon")]
    fn line<const N: usize>(&self, row: usize, first: usize, out: &mut [u8]) {
        let (channels, width) = (self.conv.output.channels, self.conv.output.width);
        let mut rules = [[Rules::new(self.rules, first); 2]; N];
        for (index, rules) in rules.as_flattened_mut().iter_mut().enumerate() {
            *rules = Rules::new(self.rules, first + index * LANES / 2);
        }
        let pixels = pixels_of(self.conv, row..row + 1, 0..width);
        for (taps, out) in pixels.zip(out.chunks_exact_mut(channels)) {
            let sums = self.sums::<N>(taps, first, &rules);
            let runs = out[first..][..N * LANES].chunks_exact_mut(LANES);
            for ((out, rules), [low, high]) in runs.zip(&rules).zip(sums) {
                let values = if self.rules.low >= 0 {
                    [rules[0].apply::<true>(low), rules[1].apply::<true>(high)]
                } else {
                    [rules[0].apply::<false>(low), rules[1].apply::<false>(high)]
                };
                store_8_bytes(out, self.bounds.half_of_bytes(values));
            }
        }
    }

    /// The sums of a pixel's channels from `first` on, with their bias.
    #[inline]
    #[target_feature(enable = "neon")]
    fn sums<const N: usize>(
        &self,
        taps: Taps<'_>,
        first: usize,
        rules: &[[Rules; 2]; N],
    ) -> [[int32x4_t; 2]; N] {
        let channels = self.conv.output.channels;
        let flip = vdup_n_u8(self.filter.flip);
        let mut sums = [[rules[0][0].bias; 2]; N];
        for (sums, rules) in sums.iter_mut().zip(rules) {
            *sums = [rules[0].bias, rules[1].bias];
        }
        for (from, tap) in taps.iter() {
            let values = &self.input[from + first..][..N * LANES];
            let weights = &self.filter.weights[tap * channels + first..][..N * LANES];
            let runs = values.as_chunks::<LANES>().0.iter().zip(weights.as_chunks::<LANES>().0);
            for (sums, (values, weights)) in sums.iter_mut().zip(runs) {
                let values = veor_u8(load_8_bytes(values), flip);
                let values = vreinterpretq_s16_u16(vsubl_u8(values, self.zero));
                let weights = load_i16s(weights);
                sums[0] = vmlal_s16(sums[0], vget_low_s16(values), vget_low_s16(weights));
                sums[1] = vmlal_high_s16(sums[1], values, weights);
            }
        }
        sums
    }
}
