//! Depthwise convolution of floats, line by line: where the filter lies wholly on the image, the
//! weights of a block of channels stay in registers for all pixels of a line.
//!
//! The one rule of the `unsafe` here: a source is cut to what the loop over a line's pixels reaches
//! before that loop begins, so that the loop itself checks no bounds.
#![allow(unsafe_code, reason = "loads within a bound that is checked once for a line of pixels")]

use core::arch::x86_64::*;
use std::ops::Range;

use super::portable::{self, FloatFilter, MAX_TAPS};
use crate::kernels::conv::Conv;
use crate::kernels::simd::avx512::{LANES, Lanes16, load_16_floats, load_floats, store_floats};

/// As [`portable::rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
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
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn pixels<const T: usize>(&self, columns: Range<usize>, out: &mut [f32]) {
        let channels = self.conv.output.channels;
        let step = self.conv.horizontal.stride * self.conv.input.column_step;
        if channels < LANES && LANES.is_multiple_of(channels) && step == channels {
            return self.side_by_side::<T>(columns, out);
        }
        for first in (0..channels).step_by(LANES) {
            let lanes = Lanes16::holding(first, channels);
            if lanes == Lanes16::ALL {
                self.block::<T, true>(columns.clone(), first, lanes, out);
            } else {
                self.block::<T, false>(columns.clone(), first, lanes, out);
            }
        }
    }

    /// Pixels whose few channels fill a register several times over: neighbours lie side by side in the input as
    /// in the output, and a register has the weights of each.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn side_by_side<const T: usize>(&self, columns: Range<usize>, out: &mut [f32]) {
        let Conv { output, filter, .. } = self.conv;
        let channels = output.channels;
        let repeated = |values: &[f32]| {
            let mut all = [0.0; LANES];
            for lanes in all.chunks_exact_mut(channels) {
                lanes.copy_from_slice(&values[..channels]);
            }
            all
        };
        let length = columns.len() * channels;
        let mut weights = [_mm512_setzero_ps(); T];
        let mut sources: [&[f32]; T] = [&[]; T];
        for (index, (weights, source)) in weights.iter_mut().zip(&mut sources).enumerate() {
            let tap = (self.down.start + index / filter.width, index % filter.width);
            *weights = load_16_floats(&repeated(self.weights(tap)));
            *source = &self.input[self.at(columns.start, tap)..][..length];
        }
        let bias = load_16_floats(&repeated(self.filter.bias));
        let bounds = (_mm512_set1_ps(self.filter.low), _mm512_set1_ps(self.filter.high));
        let out = &mut out[columns.start * channels..][..length];
        for at in (0..length).step_by(LANES) {
            let lanes = Lanes16::holding(at, length);
            let mut sum = _mm512_setzero_ps();
            for (source, weights) in sources.iter().zip(&weights) {
                // SAFETY: `at` is below `length`, to which each source was cut.
                let values = unsafe { source.as_ptr().add(at) };
                // SAFETY: `lanes`, a run of low bits, are those that hold elements of the source from `at` on; others
                // are not read.
                let values = unsafe { _mm512_maskz_loadu_ps(lanes.mask(), values) };
                sum = _mm512_fmadd_ps(values, *weights, sum);
            }
            finish(_mm512_add_ps(sum, bias), bounds, lanes, &mut out[at..]);
        }
    }

    /// Channels from `first` on, as many as there are lanes; `FULL`: 16.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn block<const T: usize, const FULL: bool>(
        &self,
        columns: Range<usize>,
        first: usize,
        lanes: Lanes16,
        out: &mut [f32],
    ) {
        let Conv { output, filter, horizontal, .. } = self.conv;
        let (channels, count) = (output.channels, lanes.count());
        let step = horizontal.stride * self.conv.input.column_step;
        let reach = (columns.len() - 1) * step + count;
        let mut weights = [_mm512_setzero_ps(); T];
        let mut sources: [&[f32]; T] = [&[]; T];
        for (index, (weights, source)) in weights.iter_mut().zip(&mut sources).enumerate() {
            let tap = (self.down.start + index / filter.width, index % filter.width);
            *weights = load_floats(self.weights(tap), first, lanes);
            *source = &self.input[self.at(columns.start, tap) + first..][..reach];
        }
        let bias = load_floats(self.filter.bias, first, lanes);
        let bounds = (_mm512_set1_ps(self.filter.low), _mm512_set1_ps(self.filter.high));
        let out = &mut out[columns.start * channels..columns.end * channels];
        for (index, out) in out.chunks_exact_mut(channels).enumerate() {
            let mut sum = _mm512_setzero_ps();
            for (source, weights) in sources.iter().zip(&weights) {
                // SAFETY: `index` is below the number of columns, so that the element, and `count`
                // from it on, lie within `reach`, to which each source was cut.
                let values = unsafe { source.as_ptr().add(index * step) };
                let values = if FULL {
                    // SAFETY: as said for the pointer, of 16 elements.
                    unsafe { _mm512_loadu_ps(values) }
                } else {
                    // SAFETY: as said for the pointer; lanes that are not in the mask, a run of
                    // `count` low bits, are not read.
                    unsafe { _mm512_maskz_loadu_ps(lanes.mask(), values) }
                };
                sum = _mm512_fmadd_ps(values, *weights, sum);
            }
            finish(_mm512_add_ps(sum, bias), bounds, lanes, &mut out[first..]);
        }
    }

    /// One pixel, whichever of its taps fall onto the image.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn pixel(&self, column: usize, out: &mut [f32]) {
        let Conv { input, filter, horizontal, .. } = self.conv;
        let channels = out.len();
        let right = horizontal.taps(column, filter.width, input.width);
        let bounds = (_mm512_set1_ps(self.filter.low), _mm512_set1_ps(self.filter.high));
        for first in (0..channels).step_by(LANES) {
            let lanes = Lanes16::holding(first, channels);
            let mut sum = _mm512_setzero_ps();
            for down in self.down.clone() {
                for right in right.clone() {
                    let values = &self.input[self.at(column, (down, right))..][..channels];
                    let weights = load_floats(self.weights((down, right)), first, lanes);
                    sum = _mm512_fmadd_ps(load_floats(values, first, lanes), weights, sum);
                }
            }
            let sum = _mm512_add_ps(sum, load_floats(self.filter.bias, first, lanes));
            finish(sum, bounds, lanes, &mut out[first..]);
        }
    }
}

/// Writes sums, held between two bounds, to the front of `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn finish(sum: __m512, (low, high): (__m512, __m512), lanes: Lanes16, out: &mut [f32]) {
    // Operands in this order keep a NaN: the second one is the answer for it.
    let sum = _mm512_min_ps(high, _mm512_max_ps(low, sum));
    store_floats(out, lanes, sum);
}
