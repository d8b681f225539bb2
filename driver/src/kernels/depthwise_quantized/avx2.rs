//! Depthwise convolution for AVX2, two taps and 16 channels at a time.
//!
//! The one rule of the `unsafe` here: what lies under each tap of a line of pixels is asserted to be as long as
//! the loops over pixels read before they begin, so that they check no bounds.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a line of pixels")]

use core::arch::x86_64::*;
use std::ops::Range;

use super::pairs::{Packed, PairedFilter, RegisterRules, Sources, Tap, TapLine, WeightPairs};
use crate::kernels::conv::{Conv, pixels_of};
use crate::kernels::requantize::avx2::{Bounds, Rules};
use crate::kernels::simd::avx2::{LANES, load_bytes, load_pairs, store_bytes};

/// Channels that are computed side by side: half a block of [`PairedFilter`].
const CHANNELS: usize = PairedFilter::BLOCK / 2;

/// The rules of a [`PairedFilter`]: for each [`Part`] those of its two registers.
#[derive(Debug, Clone)]
pub(crate) struct PairedRules(Vec<[Rules; 2]>);

impl PairedRules {
    /// The rules of this filter.
    #[target_feature(enable = "avx2")]
    pub(crate) fn new(filter: &PairedFilter) -> Self {
        let rules = filter.rules();
        let parts = (0..rules.bias.len()).step_by(CHANNELS).map(|first| {
            let (block, half) = (first / PairedFilter::BLOCK, first / CHANNELS % 2);
            let at = block * PairedFilter::BLOCK + half * LANES;
            [at, at + CHANNELS].map(|at| {
                if rules.low >= 0 {
                    Rules::new::<true>(rules, at)
                } else {
                    Rules::new::<false>(rules, at)
                }
            })
        });
        PairedRules(parts.collect())
    }

    /// Bytes that the rules of this filter take.
    pub(super) fn bytes(filter: &PairedFilter) -> usize {
        filter.rules().bias.len().div_ceil(CHANNELS) * size_of::<[Rules; 2]>()
    }
}

impl RegisterRules for PairedRules {
    fn held_bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

/// See [`DepthwisePairs::run`](super::DepthwisePairs::run).
#[target_feature(enable = "avx2")]
pub(crate) fn depthwise_pairs(
    conv: &Conv,
    input: &[u8],
    packed: &Packed<PairedRules>,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let (filter, _) = &packed.single;
    match (filter.is_signed(), filter.rules().low >= 0) {
        (false, false) => pairs::<false, false>(conv, input, packed, rows, out),
        (false, true) => pairs::<false, true>(conv, input, packed, rows, out),
        (true, false) => pairs::<true, false>(conv, input, packed, rows, out),
        (true, true) => pairs::<true, true>(conv, input, packed, rows, out),
    }
}

#[target_feature(enable = "avx2")]
fn pairs<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    conv: &Conv,
    input: &[u8],
    packed: &Packed<PairedRules>,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let (filter, rules) = &packed.single;
    let (channels, width) = (conv.output.channels, conv.output.width);
    assert_eq!(channels, filter.channels(), "channels of a depthwise filter");
    let inside = conv.horizontal.whole(conv.filter.width, conv.input.width, width);
    let inside = inside.start.min(width)..inside.end.min(width);
    let mut sources = Sources::new(filter);
    let mut line = TapLine::new(filter);
    let mut wide_line = packed.wide.as_ref().map(|(filter, ..)| TapLine::new(filter));
    for (row, out) in rows.zip(out.chunks_exact_mut(width * channels)) {
        // Pixels whose filter reaches over an edge to the left or right, one by one.
        for edge in [0..inside.start, inside.end..width] {
            let out = &mut out[edge.start * channels..edge.end * channels];
            let pixels = pixels_of(conv, row..row + 1, edge);
            for (taps, out) in pixels.zip(out.chunks_exact_mut(channels)) {
                let sources = sources.under(taps, input);
                pixel::<SIGNED, NOT_NEGATIVE>(sources, filter, rules, out);
            }
        }
        let mut inside = inside.clone();
        if let (Some((filter, rules, pixels)), Some(line)) = (&packed.wide, &mut wide_line) {
            let count = inside.len() / pixels;
            if count > 0 {
                let taps = line.under(conv, input, (row, *pixels), (inside.start, count));
                let out = &mut out[inside.start * channels..][..count * pixels * channels];
                whole::<SIGNED, NOT_NEGATIVE>(taps, filter, rules, count, out);
            }
            inside.start += count * pixels;
        }
        if !inside.is_empty() {
            let count = inside.len();
            let taps = line.under(conv, input, (row, 1), (inside.start, count));
            let out = &mut out[inside.start * channels..inside.end * channels];
            whole::<SIGNED, NOT_NEGATIVE>(taps, filter, rules, count, out);
        }
    }
}

/// One pixel.
#[target_feature(enable = "avx2")]
fn pixel<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    sources: &[&[u8]],
    filter: &PairedFilter,
    rules: &PairedRules,
    out: &mut [u8],
) {
    let bounds = Bounds::new(filter.rules());
    for first in (0..filter.channels()).step_by(CHANNELS) {
        let part = Part::new(filter, rules, first);
        let mut sums = [part.rules[0].bias, part.rules[1].bias];
        for (taps, weights) in sources.chunks_exact(2).zip(part.weights) {
            let a = widen::<SIGNED>(load_bytes(&taps[0][first..]));
            let b = widen::<SIGNED>(load_bytes(&taps[1][first..]));
            add(&mut sums, a, b, &part.pair(weights));
        }
        let used = (filter.channels() - first).min(CHANNELS);
        let bytes = part.stored::<NOT_NEGATIVE>(bounds, &sums);
        store_bytes(&mut out[first..first + used], bytes);
    }
}

/// A line of output pixels whose taps all lie on the image, as far as left and right go: part by part of the
/// channels.
#[target_feature(enable = "avx2")]
fn whole<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    taps: &[Tap<'_>],
    filter: &PairedFilter,
    rules: &PairedRules,
    count: usize,
    out: &mut [u8],
) {
    let channels = filter.channels();
    let line = Line { channels, bounds: Bounds::new(filter.rules()) };
    // Rows at the upper and lower edge have taps that stay on a row of zeros.
    let step = taps.first().map(|(_, step)| *step);
    let step = step.filter(|step| taps.iter().all(|(_, other)| other == step));
    // From the last part to the first: where the last one has less than 16 channels, what it writes beyond these
    // belongs to the next pixel, whose first part comes later.
    for first in (0..channels).step_by(CHANNELS).rev() {
        let part = Part::new(filter, rules, first);
        // Pixels for which 16 bytes can be read under each tap.
        let readable = taps.iter().map(|(values, step)| {
            let room = values.len().checked_sub(first + CHANNELS);
            room.map_or(0, |room| room.checked_div(*step).map_or(count, |last| last + 1))
        });
        let readable = readable.min().unwrap_or(0).min(count);
        match (step, <&[Pair; 5]>::try_from(part.weights), <&[Tap<'_>; 10]>::try_from(taps)) {
            // Filters of 3 by 3: as their number is known, the loop over taps is none.
            (Some(step), Ok(weights), Ok(taps)) => {
                let operands = (taps, weights, |_| step);
                line.part::<SIGNED, NOT_NEGATIVE, _, _, _>(&part, operands, readable, out);
            }
            _ => {
                let operands = (taps, part.weights, |step| step);
                line.part::<SIGNED, NOT_NEGATIVE, _, _, _>(&part, operands, readable, out);
            }
        }
        let mut under = [[0; CHANNELS].as_slice(); super::pairs::MAX_TAPS];
        for index in readable..count {
            let used = (channels - first).min(CHANNELS);
            for (under, (values, step)) in under.iter_mut().zip(taps) {
                *under = &values[index * step + first..][..used];
            }
            let mut sums = [part.rules[0].bias, part.rules[1].bias];
            for (taps, weights) in under[..taps.len()].chunks_exact(2).zip(part.weights) {
                let a = widen::<SIGNED>(load_bytes(taps[0]));
                let b = widen::<SIGNED>(load_bytes(taps[1]));
                add(&mut sums, a, b, &part.pair(weights));
            }
            let bytes = part.stored::<NOT_NEGATIVE>(line.bounds, &sums);
            store_bytes(&mut out[index * channels + first..][..used], bytes);
        }
    }
}

/// The weights of two taps for both halves of a block of channels.
type Pair = [WeightPairs; 2];

/// 16 channels of a filter, or what is left of them: half a block.
///
/// Values of two taps are interleaved, so that one instruction multiplies both by their weights and adds the
/// products. That leaves channels 0-3 and 8-11 in one register and the others in the other, which the narrowing
/// at the end puts back; weights and rules were stored in that order.
struct Part<'a> {
    /// The first channel.
    first: usize,
    weights: &'a [Pair],
    /// Which half of a block it is.
    half: usize,
    rules: &'a [Rules; 2],
}

impl<'a> Part<'a> {
    fn new(filter: &'a PairedFilter, rules: &'a PairedRules, first: usize) -> Self {
        let (block, half) = (first / PairedFilter::BLOCK, first / CHANNELS % 2);
        Part { first, weights: filter.block(block), half, rules: &rules.0[first / CHANNELS] }
    }

    /// The weights of two taps.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn pair(&self, [low, high]: &Pair) -> [__m256i; 2] {
        let low = &low.as_chunks::<LANES>().0[self.half];
        let high = &high.as_chunks::<LANES>().0[self.half];
        [load_pairs(low), load_pairs(high)]
    }

    /// Stored values.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn stored<const NOT_NEGATIVE: bool>(&self, bounds: Bounds, sums: &[__m256i; 2]) -> __m128i {
        let [low_rules, high_rules] = self.rules;
        let low = low_rules.apply::<NOT_NEGATIVE>(sums[0]);
        let high = high_rules.apply::<NOT_NEGATIVE>(sums[1]);
        bounds.mixed_bytes(low, high)
    }
}

/// A line of pixels.
#[derive(Clone, Copy)]
struct Line {
    channels: usize,
    bounds: Bounds,
}

impl Line {
    /// A part of the channels of the first `count` pixels, two at a time; the function makes of a tap's step the
    /// same.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn part<'t, const SIGNED: bool, const NOT_NEGATIVE: bool, T, W, S>(
        &self,
        part: &Part<'_>,
        operands: (&T, &W, S),
        count: usize,
        out: &mut [u8],
    ) where
        T: AsRef<[Tap<'t>]> + ?Sized,
        W: AsRef<[Pair]> + ?Sized,
        S: Fn(usize) -> usize + Copy,
    {
        let even = count - count % 2;
        self.pixels::<SIGNED, NOT_NEGATIVE, 2, T, W, S>(part, operands, 0..even, out);
        self.pixels::<SIGNED, NOT_NEGATIVE, 1, T, W, S>(part, operands, even..count, out);
    }

    /// A part of the channels of these pixels, `P` at a time.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn pixels<'t, const SIGNED: bool, const NOT_NEGATIVE: bool, const P: usize, T, W, S>(
        &self,
        part: &Part<'_>,
        (taps, weights, step_of): (&T, &W, S),
        range: Range<usize>,
        out: &mut [u8],
    ) where
        T: AsRef<[Tap<'t>]> + ?Sized,
        W: AsRef<[Pair]> + ?Sized,
        S: Fn(usize) -> usize + Copy,
    {
        let first = part.first;
        if range.is_empty() {
            return;
        }
        // Everything that the loops below read.
        for (values, step) in taps.as_ref() {
            let len = (range.end - 1) * step_of(*step) + first + CHANNELS;
            assert!(values.len() >= len, "a line under a tap");
        }
        assert!(range.len().is_multiple_of(P), "whole groups of pixels");
        for index in range.step_by(P) {
            let mut sums = [[part.rules[0].bias, part.rules[1].bias]; P];
            for (taps, weights) in taps.as_ref().chunks_exact(2).zip(weights.as_ref()) {
                let weights = part.pair(weights);
                for (pixel, sums) in sums.iter_mut().enumerate() {
                    let mut values = [_mm256_setzero_si256(); 2];
                    for (wide, (values, step)) in values.iter_mut().zip(taps) {
                        let at = (index + pixel) * step_of(*step) + first;
                        // SAFETY: `index + pixel` is below the end of the range, so that 16 bytes from here on
                        // end at most where the assertion above says that the values do.
                        let from = unsafe { values.as_ptr().add(at) };
                        // SAFETY: as said for the pointer, of 16 bytes.
                        let bytes = unsafe { _mm_loadu_si128(from.cast()) };
                        *wide = widen::<SIGNED>(bytes);
                    }
                    add(sums, values[0], values[1], &weights);
                }
            }
            for (pixel, sums) in sums.iter().enumerate() {
                let bytes = part.stored::<NOT_NEGATIVE>(self.bounds, sums);
                store_bytes(&mut out[(index + pixel) * self.channels + first..], bytes);
            }
        }
    }
}

/// Adds the products of two taps.
#[inline]
#[target_feature(enable = "avx2")]
fn add(sums: &mut [__m256i; 2], a: __m256i, b: __m256i, weights: &[__m256i; 2]) {
    let low = _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights[0]);
    let high = _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights[1]);
    sums[0] = _mm256_add_epi32(sums[0], low);
    sums[1] = _mm256_add_epi32(sums[1], high);
}

/// 16 bytes with 16 bits each.
#[inline]
#[target_feature(enable = "avx2")]
fn widen<const SIGNED: bool>(bytes: __m128i) -> __m256i {
    if SIGNED { _mm256_cvtepi8_epi16(bytes) } else { _mm256_cvtepu8_epi16(bytes) }
}
