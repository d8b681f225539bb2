//! Depthwise convolution of floats, line by line.
//!
//! What bounds it is loading: a load for each product is half of what the units for products could do. So
//! neighbours in a line are computed together, and a weight that was loaded serves each of them; where the filter is
//! three taps wide, a value serves all the neighbours that see it. Of few channels a register takes several pixels, and
//! the weights stay in registers for all pixels of a line.
//!
//! The one rule of the `unsafe` here: what the loops over channels, taps and neighbours reach is checked before they
//! begin, so that the loops themselves check no bounds.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a group of pixels")]

use core::arch::x86_64::*;
use std::ops::Range;

use super::portable::{self, FloatFilter, MAX_TAPS};
use super::runs::{Columns, Run, Tap, Taps, parts};
use crate::kernels::conv::Conv;
use crate::kernels::simd::avx512::{LANES, Lanes16, load_16_floats, store_floats};

/// Pixels that are computed together, at most.
const GROUP: usize = 4;

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
    let Conv { output, vertical, .. } = conv;
    let mut columns = Columns::new(conv);
    for channels in parts(output.channels, LANES) {
        let lines = out.chunks_exact_mut(output.width * output.channels);
        for (row, out) in rows.clone().zip(lines) {
            let (batch, row) = (row / output.height, row % output.height);
            columns.see(conv, vertical.taps(row, conv.filter.height, conv.input.height));
            let input = &input[batch * conv.input.batch_step..];
            let line = Line { conv, input, filter, row, channels: channels.clone() };
            for (run, taps) in columns.each() {
                line.compute(run, &taps, out);
            }
        }
    }
}

/// Some channels of a line of output pixels.
struct Line<'a> {
    conv: &'a Conv,
    /// From the image on that the line belongs to.
    input: &'a [f32],
    filter: FloatFilter<'a>,
    row: usize,
    channels: Range<usize>,
}

/// Pixels that are computed together: how far they lie apart.
#[derive(Clone, Copy)]
struct Apart {
    /// Their first values in the input.
    input: usize,
    output: usize,
}

impl Line<'_> {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
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
        let fills_registers = LANES.is_multiple_of(output.channels) && step == output.channels;
        // Of three taps in a line neighbours see the same values; where the taps lie apart, pixels as far apart do.
        match (taps.list.len(), run.right.len(), horizontal.stride, horizontal.dilation) {
            (9, ..) if fills_registers => self.side_by_side::<9>(taps, source, out),
            (6, ..) if fills_registers => self.side_by_side::<6>(taps, source, out),
            (_, 3, 1, dilation) => self.pixels::<1>(taps, source, (step, dilation), out),
            (_, 3, 2, 1) => self.pixels::<2>(taps, source, (step, 1), out),
            _ => self.pixels::<0>(taps, source, (step, 1), out),
        }
    }

    /// Pixels with the same taps on the image, the first one from the front of `source`, the next one a step farther.
    /// Those `between` columns apart are computed together; `SHARE`: see [`Block::shared`], or 0.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
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
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn group<const P: usize, const SHARE: usize>(
        &self,
        taps: &Taps<'_>,
        source: &[f32],
        apart: Apart,
        out: &mut [f32],
    ) {
        let Conv { output, filter, .. } = self.conv;
        let channels = output.channels;
        let Range { start, end } = self.channels;
        // What the blocks read and write.
        assert!(
            taps.list.is_empty() || taps.reach + (P - 1) * apart.input + channels <= source.len()
        );
        assert!(filter.height * filter.width * channels <= self.filter.weights.len());
        assert!(channels <= self.filter.bias.len() && end <= channels);
        assert!((P - 1) * apart.output + channels <= out.len());
        let block = Block { filter: self.filter, channels, taps, source, apart };
        let whole = end - (end - start) % LANES;
        for first in (start..whole).step_by(LANES) {
            // SAFETY: as asserted, and all lanes hold channels below `end`. Where values are shared, the caller's taps are
            // threes that lie `apart.input / SHARE` from each other.
            unsafe { block.compute::<P, SHARE, true>(first, Lanes16::ALL, out) };
        }
        if whole < end {
            // SAFETY: as above; the lanes hold the channels that are left.
            unsafe { block.compute::<P, SHARE, false>(whole, Lanes16::holding(whole, end), out) };
        }
    }

    /// Pixels whose few channels fill a register, or fill it several times over: neighbours lie side by side in the
    /// input as in the output, and a register has the weights of each.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn side_by_side<const T: usize>(&self, taps: &Taps<'_>, source: &[f32], out: &mut [f32]) {
        let channels = self.conv.output.channels;
        let repeated = |values: &[f32]| {
            let mut all = [0.0; LANES];
            for lanes in all.chunks_exact_mut(channels) {
                lanes.copy_from_slice(&values[..channels]);
            }
            all
        };
        let mut weights = [_mm512_setzero_ps(); T];
        let mut sources: [&[f32]; T] = [&[]; T];
        for ((weights, values), tap) in weights.iter_mut().zip(&mut sources).zip(taps.list) {
            *weights = load_16_floats(&repeated(&self.filter.weights[tap.weight..]));
            *values = &source[tap.source..][..out.len()];
        }
        let bias = load_16_floats(&repeated(self.filter.bias));
        for at in (0..out.len()).step_by(LANES) {
            let lanes = Lanes16::holding(at, out.len());
            let mut sum = _mm512_setzero_ps();
            for (source, weights) in sources.iter().zip(&weights) {
                // SAFETY: `at` is below the length of `out`, to which each source was cut, and `lanes` hold elements of it
                // from there on.
                let values = unsafe { load::<false>(source, at, lanes) };
                sum = _mm512_fmadd_ps(values, *weights, sum);
            }
            store_floats(&mut out[at..], lanes, bounded(_mm512_add_ps(sum, bias), self.filter));
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
    /// Sixteen channels, or as many as there are lanes where they are not `FULL`, of `P` pixels.
    ///
    /// # Safety
    /// Behind the farthest tap of the farthest pixel there are all channels in `source`; the filter has the weights of
    /// each tap and biases for all channels; `out` has room for the channels of each pixel. `lanes` hold channels from
    /// `first` on. If `SHARE` is not 0, what [`Block::shared`] says of taps.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn compute<const P: usize, const SHARE: usize, const FULL: bool>(
        &self,
        first: usize,
        lanes: Lanes16,
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
            let sum = bounded(_mm512_add_ps(sum, bias), self.filter);
            let at = pixel * self.apart.output + first;
            debug_assert!(at + lanes.count() <= out.len());
            // SAFETY: of the caller: `out` has the channels of this pixel.
            let out = unsafe { out.as_mut_ptr().add(at) };
            if FULL {
                // SAFETY: as said, of 16 channels.
                unsafe { _mm512_storeu_ps(out, sum) };
            } else {
                // SAFETY: as said; lanes that are not in the mask, a run of low bits, are not written.
                unsafe { _mm512_mask_storeu_ps(out, lanes.mask(), sum) };
            }
        }
    }

    /// Sums of products, each pixel by itself.
    ///
    /// # Safety
    /// As [`Block::compute`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn each<const P: usize, const FULL: bool>(
        &self,
        first: usize,
        lanes: Lanes16,
    ) -> [__m512; P] {
        let mut sums = [_mm512_setzero_ps(); P];
        for Tap { source, weight } in self.taps.list {
            // SAFETY: of the caller: each tap has its weights.
            let weights = unsafe { load::<FULL>(self.filter.weights, weight + first, lanes) };
            for (pixel, sum) in sums.iter_mut().enumerate() {
                let at = source + pixel * self.apart.input + first;
                // SAFETY: of the caller: neither the tap nor the pixel lies farther away than the farthest one.
                let values = unsafe { load::<FULL>(self.source, at, lanes) };
                *sum = _mm512_fmadd_ps(values, weights, *sum);
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
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn shared<const P: usize, const STEP: usize, const FULL: bool>(
        &self,
        first: usize,
        lanes: Lanes16,
    ) -> [__m512; P] {
        let mut sums = [_mm512_setzero_ps(); P];
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
                *sum = _mm512_fmadd_ps(left, weights[0], *sum);
                *sum = _mm512_fmadd_ps(middle, weights[1], *sum);
                *sum = _mm512_fmadd_ps(right, weights[2], *sum);
                left = if STEP == 2 { right } else { middle };
                middle = right;
            }
        }
        sums
    }
}

/// Elements from `at` on, 16 where they are `FULL`, otherwise those of the lanes; others are 0.
///
/// # Safety
/// There are as many.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load<const FULL: bool>(values: &[f32], at: usize, lanes: Lanes16) -> __m512 {
    debug_assert!(at + lanes.count() <= values.len());
    // SAFETY: of the caller.
    let values = unsafe { values.as_ptr().add(at) };
    if FULL {
        // SAFETY: of the caller, for 16 elements.
        unsafe { _mm512_loadu_ps(values) }
    } else {
        // SAFETY: of the caller; lanes that are not in the mask, a run of low bits, are not read.
        unsafe { _mm512_maskz_loadu_ps(lanes.mask(), values) }
    }
}

/// Sums, held between two bounds.
#[inline]
#[target_feature(enable = "avx512f")]
fn bounded(sum: __m512, FloatFilter { low, high, .. }: FloatFilter<'_>) -> __m512 {
    // Operands in this order keep a NaN: the second one is the answer for it.
    _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), sum))
}
