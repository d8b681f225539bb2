//! Depthwise convolution of floats for AVX2 and FMA, line by line, as that for AVX-512 does it: neighbours in a line are
//! computed together, a weight that was loaded serves each of them, and where the filter is three taps wide, a value
//! serves all the neighbours that see it. All channels of some pixels come before the next pixels, so that memory is
//! read in its order. Of few channels, where a group of pixels is little work, the weights stay in registers for all
//! pixels of a line.
//!
//! The one rule of the `unsafe` here: what the loops over channels, taps and neighbours reach is checked before they
//! begin, so that the loops themselves check no bounds.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a group of pixels")]

use core::arch::x86_64::*;
use std::ops::Range;

use super::portable::{self, FloatFilter, MAX_TAPS};
use super::runs::{Columns, Run, Tap, Taps};
use crate::kernels::conv::Conv;
use crate::kernels::simd::avx2::{LANES, Lanes8, load_floats, store_floats};

/// Pixels that are computed together, at most.
const GROUP: usize = 4;
/// Up to so many channels are computed eight by eight with weights that stay in registers.
const FEW_CHANNELS: usize = 24;

/// As [`portable::rows`].
#[target_feature(enable = "avx2,fma")]
pub(crate) fn rows(
    conv: &Conv,
    input: &[f32],
    filter: FloatFilter<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    if conv.filter.height * conv.filter.width > MAX_TAPS {
        return portable::rows(conv, input, filter, rows, out);
    }
    let Conv { output, vertical, .. } = conv;
    let mut columns = Columns::new(conv);
    let lines = out.chunks_exact_mut(output.width * output.channels);
    for (row, out) in rows.zip(lines) {
        let (batch, row) = (row / output.height, row % output.height);
        columns.see(conv, vertical.taps(row, conv.filter.height, conv.input.height));
        let input = &input[batch * conv.input.batch_step..];
        let line = Line { conv, input, filter, row };
        for (run, taps) in columns.each() {
            line.compute(run, &taps, out);
        }
    }
}

/// A line of output pixels.
struct Line<'a> {
    conv: &'a Conv,
    /// From the image on that the line belongs to.
    input: &'a [f32],
    filter: FloatFilter<'a>,
    row: usize,
}

/// Pixels that are computed together: how far they lie apart.
#[derive(Clone, Copy)]
struct Apart {
    /// Their first values in the input.
    input: usize,
    output: usize,
}

impl Line<'_> {
    #[target_feature(enable = "avx2,fma")]
    fn compute(&self, run: &Run, taps: &Taps<'_>, out: &mut [f32]) {
        let Conv { input, output, horizontal, vertical, .. } = self.conv;
        let step = horizontal.stride * input.column_step;
        let from = match taps.list.is_empty() {
            true => 0,
            false => {
                let (down, right) = taps.first;
                let x = horizontal.position(run.columns.start, right);
                input.at(0, vertical.position(self.row, down), x)
            }
        };
        let source = &self.input[from..];
        let out = &mut out[run.columns.start * output.channels..run.columns.end * output.channels];
        // Of three taps in a line neighbours see the same values; where the taps lie apart, pixels as far apart do.
        let is_few = output.channels <= FEW_CHANNELS && output.channels.is_multiple_of(LANES);
        match (run.right.len(), horizontal.stride, horizontal.dilation) {
            _ if is_few && taps.list.len() == 9 => self.kept::<9>(taps, source, step, out),
            _ if is_few && taps.list.len() == 6 => self.kept::<6>(taps, source, step, out),
            (3, 1, dilation) => self.pixels::<1>(taps, source, (step, dilation), out),
            (3, 2, 1) => self.pixels::<2>(taps, source, (step, 1), out),
            _ => self.pixels::<0>(taps, source, (step, 1), out),
        }
    }

    /// Pixels with the same taps on the image, the first one from the front of `source`, the next one a step farther.
    /// Those `between` columns apart are computed together; `SHARE`: see [`Block::shared`], or 0.
    #[target_feature(enable = "avx2,fma")]
    fn pixels<const SHARE: usize>(
        &self,
        taps: &Taps<'_>,
        source: &[f32],
        (step, between): (usize, usize),
        out: &mut [f32],
    ) {
        let channels = self.conv.output.channels;
        let columns = out.len() / channels;
        let apart = Apart { input: between * step, output: between * channels };
        for block in (0..columns).step_by(GROUP * between) {
            for column in (block..columns).take(between) {
                let source = if taps.list.is_empty() { source } else { &source[column * step..] };
                let out = &mut out[column * channels..];
                match (columns - column).div_ceil(between).min(GROUP) {
                    4 => self.group::<4, SHARE>(taps, source, apart, out),
                    3 => self.group::<3, SHARE>(taps, source, apart, out),
                    2 => self.group::<2, SHARE>(taps, source, apart, out),
                    _ => self.group::<1, SHARE>(taps, source, apart, out),
                }
            }
        }
    }

    /// `P` pixels, the first one from the front of `source` to the front of `out`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn group<const P: usize, const SHARE: usize>(
        &self,
        taps: &Taps<'_>,
        source: &[f32],
        apart: Apart,
        out: &mut [f32],
    ) {
        let Conv { output, filter, .. } = self.conv;
        let channels = output.channels;
        // What the blocks read and write.
        assert!(
            taps.list.is_empty() || taps.reach + (P - 1) * apart.input + channels <= source.len()
        );
        assert!(filter.height * filter.width * channels <= self.filter.weights.len());
        assert!(channels <= self.filter.bias.len());
        assert!((P - 1) * apart.output + channels <= out.len());
        let block = Block { filter: self.filter, channels, taps, source, apart };
        let whole = channels - channels % LANES;
        let (all, last) = (Lanes8::holding(0, LANES), Lanes8::holding(whole, channels));
        for first in (0..whole).step_by(LANES) {
            // SAFETY: as asserted, and all lanes hold channels. Where values are shared, the caller's taps are
            // threes that lie `apart.input / SHARE` from each other.
            unsafe { block.compute::<P, SHARE, true>(first, all, out) };
        }
        if whole < channels {
            // SAFETY: as above; the lanes hold the channels that are left.
            unsafe { block.compute::<P, SHARE, false>(whole, last, out) };
        }
    }

    /// Pixels with the same `T` taps on the image, the first one from the front of `source`, the next one a step farther,
    /// of whole registers of channels.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn kept<const T: usize>(&self, taps: &Taps<'_>, source: &[f32], step: usize, out: &mut [f32]) {
        let channels = self.conv.output.channels;
        let reach = (out.len() / channels - 1) * step + LANES;
        let all = Lanes8::holding(0, LANES);
        let biases = self.filter.bias.as_chunks().0;
        for (bias, first) in biases.iter().zip((0..channels).step_by(LANES)) {
            let mut weights = [_mm256_setzero_ps(); T];
            let mut sources: [&[f32]; T] = [&[]; T];
            for ((weights, values), tap) in weights.iter_mut().zip(&mut sources).zip(taps.list) {
                let all = &self.filter.weights[tap.weight + first..].as_chunks().0;
                *weights = load_floats(&all[0]);
                *values = &source[tap.source + first..][..reach];
            }
            let bias = load_floats(bias);
            for (column, out) in out.chunks_exact_mut(channels).enumerate() {
                let mut sum = _mm256_setzero_ps();
                for (source, weights) in sources.iter().zip(&weights) {
                    // SAFETY: `column` is below the number of columns, so that 8 elements from here on lie within
                    // `reach`, to which each source was cut.
                    let values = unsafe { load::<true>(source, column * step, all) };
                    sum = _mm256_fmadd_ps(values, *weights, sum);
                }
                let sum = bounded(_mm256_add_ps(sum, bias), self.filter);
                store_floats(&mut out[first..].as_chunks_mut().0[0], sum);
            }
        }
    }
}

/// What is read for a group of pixels.
struct Block<'a> {
    filter: FloatFilter<'a>,
    channels: usize,
    taps: &'a Taps<'a>,
    source: &'a [f32],
    apart: Apart,
}

impl Block<'_> {
    /// Eight channels, or as many as there are lanes where they are not `FULL`, of `P` pixels.
    ///
    /// # Safety
    /// Behind the farthest tap of the farthest pixel there are all channels in `source`; the filter has the weights of
    /// each tap and biases for all channels; `out` has room for the channels of each pixel. `lanes` hold channels from
    /// `first` on. If `SHARE` is not 0, what [`Block::shared`] says of taps.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn compute<const P: usize, const SHARE: usize, const FULL: bool>(
        &self,
        first: usize,
        lanes: Lanes8,
        out: &mut [f32],
    ) {
        let sums = match SHARE {
            // SAFETY: of the caller.
            0 => unsafe { self.each::<P, FULL>(first, lanes) },
            // SAFETY: of the caller.
            _ => unsafe { self.shared::<P, SHARE, FULL>(first, lanes) },
        };
        // SAFETY: of the caller.
        let bias = unsafe { load::<FULL>(self.filter.bias, first, lanes) };
        for (pixel, sum) in sums.into_iter().enumerate() {
            let sum = bounded(_mm256_add_ps(sum, bias), self.filter);
            let at = pixel * self.apart.output + first;
            debug_assert!(at + lanes.count() <= out.len());
            // SAFETY: of the caller: `out` has the channels of this pixel.
            let out = unsafe { out.as_mut_ptr().add(at) };
            if FULL {
                // SAFETY: as said, of 8 channels.
                unsafe { _mm256_storeu_ps(out, sum) };
            } else {
                // SAFETY: as said; lanes that are not in the mask, of the first ones, are not written.
                unsafe { _mm256_maskstore_ps(out, lanes.mask(), sum) };
            }
        }
    }

    /// Sums of products, each pixel by itself.
    ///
    /// # Safety
    /// As [`Block::compute`].
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn each<const P: usize, const FULL: bool>(
        &self,
        first: usize,
        lanes: Lanes8,
    ) -> [__m256; P] {
        let mut sums = [_mm256_setzero_ps(); P];
        for Tap { source, weight } in self.taps.list {
            // SAFETY: of the caller: each tap has its weights.
            let weights = unsafe { load::<FULL>(self.filter.weights, weight + first, lanes) };
            for (pixel, sum) in sums.iter_mut().enumerate() {
                let at = source + pixel * self.apart.input + first;
                // SAFETY: of the caller: neither the tap nor the pixel lies farther away than the farthest one.
                let values = unsafe { load::<FULL>(self.source, at, lanes) };
                *sum = _mm256_fmadd_ps(values, weights, *sum);
            }
        }
        sums
    }

    /// Sums of products where the taps lie in lines of three, where each pixel sees `3 - STEP` values of the line
    /// that the pixel before it saw, too.
    ///
    /// # Safety
    /// As [`Block::compute`]; the taps are threes, whose values lie the pixels' distance, divided by `STEP`, apart.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn shared<const P: usize, const STEP: usize, const FULL: bool>(
        &self,
        first: usize,
        lanes: Lanes8,
    ) -> [__m256; P] {
        let mut sums = [_mm256_setzero_ps(); P];
        let apart = self.apart.input / STEP;
        for Tap { source, weight } in self.taps.list.iter().step_by(3) {
            let weight = weight + first;
            // SAFETY: of the caller: each tap has its weights, and there are two more of this line.
            let weights = unsafe {
                [0, 1, 2].map(|tap| {
                    load::<FULL>(self.filter.weights, weight + tap * self.channels, lanes)
                })
            };
            // SAFETY: of the caller: column `2 + STEP * (P - 1)` is under the third tap of the last pixel.
            let column = |column: usize| unsafe {
                load::<FULL>(self.source, source + column * apart + first, lanes)
            };
            let (mut left, mut middle) = (column(0), column(1));
            for (pixel, sum) in sums.iter_mut().enumerate() {
                let at = STEP * pixel;
                if STEP == 2 && pixel > 0 {
                    middle = column(at + 1);
                }
                let right = column(at + 2);
                *sum = _mm256_fmadd_ps(left, weights[0], *sum);
                *sum = _mm256_fmadd_ps(middle, weights[1], *sum);
                *sum = _mm256_fmadd_ps(right, weights[2], *sum);
                left = if STEP == 2 { right } else { middle };
                middle = right;
            }
        }
        sums
    }
}

/// Elements from `at` on, 8 where they are `FULL`, otherwise those of the lanes; others are 0.
///
/// # Safety
/// There are as many.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<const FULL: bool>(values: &[f32], at: usize, lanes: Lanes8) -> __m256 {
    debug_assert!(at + lanes.count() <= values.len());
    // SAFETY: of the caller.
    let values = unsafe { values.as_ptr().add(at) };
    if FULL {
        // SAFETY: of the caller, for 8 elements.
        unsafe { _mm256_loadu_ps(values) }
    } else {
        // SAFETY: of the caller; lanes that are not in the mask, of the first ones, are not read.
        unsafe { _mm256_maskload_ps(values, lanes.mask()) }
    }
}

/// Sums, held between two bounds.
#[inline]
#[target_feature(enable = "avx2")]
fn bounded(sum: __m256, FloatFilter { low, high, .. }: FloatFilter<'_>) -> __m256 {
    // Operands in this order keep a NaN: the second one is the answer for it.
    _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), sum))
}
