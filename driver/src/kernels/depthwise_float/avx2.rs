//! Depthwise convolution of floats for AVX2 and FMA, line by line: where the filter lies wholly on the image, the
//! weights of a block of channels stay in registers for all pixels of a line.
//!
//! The one rule of the `unsafe` here: a source is cut to what the loop over a line's pixels reaches
//! before that loop begins, so that the loop itself checks no bounds.
#![allow(unsafe_code, reason = "loads within a bound that is checked once for a line of pixels")]

use core::arch::x86_64::*;
use std::ops::Range;

use super::portable::{self, FloatFilter, MAX_TAPS};
use crate::kernels::conv::Conv;
use crate::kernels::simd::avx2::{LANES, load_floats, store_floats};

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
    let Conv { output, horizontal, vertical, .. } = conv;
    let (width, channels) = (output.width, output.channels);
    let whole = horizontal.whole(conv.filter.width, conv.input.width, width);
    for (row, out) in rows.zip(out.chunks_exact_mut(width * channels)) {
        let (batch, row) = (row / output.height, row % output.height);
        let down = vertical.taps(row, conv.filter.height, conv.input.height);
        let line = Line { conv, input, filter, batch, row, down };
        let mut beside = [0..whole.start, whole.end..width];
        match line.down.len() * conv.filter.width {
            _ if whole.is_empty() => beside = [0..width, 0..0],
            9 => line.pixels::<9>(whole.clone(), out),
            6 => line.pixels::<6>(whole.clone(), out),
            _ => beside = [0..width, 0..0],
        }
        for column in beside.into_iter().flatten() {
            line.pixel(column, &mut out[column * channels..(column + 1) * channels]);
        }
    }
}

/// A line of output pixels.
struct Line<'a> {
    conv: &'a Conv,
    input: &'a [f32],
    filter: FloatFilter<'a>,
    batch: usize,
    row: usize,
    /// Lines of taps that fall onto the image.
    down: Range<usize>,
}

impl Line<'_> {
    /// Index of the first input value under a tap for the pixel in this column.
    fn at(&self, column: usize, (down, right): (usize, usize)) -> usize {
        let y = self.conv.vertical.position(self.row, down);
        let x = self.conv.horizontal.position(column, right);
        self.conv.input.at(self.batch, y, x)
    }

    /// The weights of a tap.
    fn weights(&self, (down, right): (usize, usize)) -> &[f32] {
        let channels = self.conv.output.channels;
        &self.filter.weights[(down * self.conv.filter.width + right) * channels..][..channels]
    }

    /// Pixels whose `T` taps all fall onto the image.
    #[target_feature(enable = "avx2,fma")]
    fn pixels<const T: usize>(&self, columns: Range<usize>, out: &mut [f32]) {
        let channels = self.conv.output.channels;
        let whole = channels - channels % LANES;
        for first in (0..whole).step_by(LANES) {
            self.block::<T>(columns.clone(), first, out);
        }
        if whole < channels {
            for column in columns {
                self.part(column, whole, &mut out[column * channels..(column + 1) * channels]);
            }
        }
    }

    /// 8 channels from `first` on: with the weights of as many there are registers left for sums.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn block<const T: usize>(&self, columns: Range<usize>, first: usize, out: &mut [f32]) {
        let Conv { output, filter, horizontal, .. } = self.conv;
        let channels = output.channels;
        let step = horizontal.stride * self.conv.input.column_step;
        let reach = (columns.len() - 1) * step + LANES;
        let mut weights = [_mm256_setzero_ps(); T];
        let mut sources: [&[f32]; T] = [&[]; T];
        for (index, (weights, source)) in weights.iter_mut().zip(&mut sources).enumerate() {
            let tap = (self.down.start + index / filter.width, index % filter.width);
            *weights = load_floats(self.weights(tap), first);
            *source = &self.input[self.at(columns.start, tap) + first..][..reach];
        }
        let bias = load_floats(self.filter.bias, first);
        let bounds = (_mm256_set1_ps(self.filter.low), _mm256_set1_ps(self.filter.high));
        let out = &mut out[columns.start * channels..columns.end * channels];
        for (index, out) in out.chunks_exact_mut(channels).enumerate() {
            let mut sum = _mm256_setzero_ps();
            for (source, weights) in sources.iter().zip(&weights) {
                // SAFETY: `index` is below the number of columns, so that 8 elements from here on lie within
                // `reach`, to which each source was cut.
                let values = unsafe { source.as_ptr().add(index * step) };
                // SAFETY: as said for the pointer, of 8 elements.
                let values = unsafe { _mm256_loadu_ps(values) };
                sum = _mm256_fmadd_ps(values, *weights, sum);
            }
            finish(_mm256_add_ps(sum, bias), bounds, &mut out[first..first + LANES]);
        }
    }

    /// One pixel, whichever of its taps fall onto the image.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn pixel(&self, column: usize, out: &mut [f32]) {
        self.part(column, 0, out);
    }

    /// One pixel's channels from `first` on, whichever of its taps fall onto the image.
    #[target_feature(enable = "avx2,fma")]
    fn part(&self, column: usize, first: usize, out: &mut [f32]) {
        let Conv { input, filter, horizontal, .. } = self.conv;
        let channels = out.len();
        let right = horizontal.taps(column, filter.width, input.width);
        let bounds = (_mm256_set1_ps(self.filter.low), _mm256_set1_ps(self.filter.high));
        for first in (first..channels).step_by(LANES) {
            let mut sum = _mm256_setzero_ps();
            for down in self.down.clone() {
                for right in right.clone() {
                    let values = &self.input[self.at(column, (down, right))..][..channels];
                    let weights = load_floats(self.weights((down, right)), first);
                    sum = _mm256_fmadd_ps(load_floats(values, first), weights, sum);
                }
            }
            let sum = _mm256_add_ps(sum, load_floats(self.filter.bias, first));
            let end = (first + LANES).min(channels);
            finish(sum, bounds, &mut out[first..end]);
        }
    }
}

/// Writes sums, held between two bounds, to `out`, of which there may be less.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn finish(sum: __m256, (low, high): (__m256, __m256), out: &mut [f32]) {
    // Operands in this order keep a NaN: the second one is the answer for it.
    let sum = _mm256_min_ps(high, _mm256_max_ps(low, sum));
    store_floats(out, sum);
}
