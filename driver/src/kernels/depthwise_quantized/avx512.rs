//! Depthwise convolution, two taps and 32 channels at a time.
//!
//! The one rule of the `unsafe` here: what lies under each tap of a line of pixels is asserted to be as long as
//! the loops over pixels and channels read before they begin, so that they check no bounds.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a line of pixels")]

use core::arch::x86_64::*;
use std::ops::Range;

use super::pairs::{PairedFilter, Sources, TapLine, WeightPairs};
use crate::kernels::conv::{Conv, pixels_of};
use crate::kernels::requantize::Channels;
use crate::kernels::requantize::avx512::Rules;
use crate::kernels::simd::avx512::{
    LANES, Lanes16, Lanes32, load_bytes, load_pairs, store_32_bytes,
};

/// Channels of a block of [`PairedFilter`]: one register of 16-bit values.
const PAIRED: usize = PairedFilter::BLOCK;

/// The rules of a [`PairedFilter`] in registers' form: for each block its two halves.
#[derive(Debug, Clone)]
pub(crate) struct PairedRules(Vec<[Rules; 2]>);

impl PairedRules {
    /// The rules of this filter.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn new(filter: &PairedFilter) -> Self {
        let rules = filter.rules();
        let half = |first: usize| {
            if rules.low >= 0 {
                Rules::new::<true>(rules, first, Lanes16::ALL)
            } else {
                Rules::new::<false>(rules, first, Lanes16::ALL)
            }
        };
        let blocks = (0..rules.bias.len()).step_by(PAIRED);
        PairedRules(blocks.map(|first| [half(first), half(first + LANES)]).collect())
    }

    /// Bytes that the rules of this filter take.
    pub(super) fn bytes(filter: &PairedFilter) -> usize {
        filter.rules().bias.len().div_ceil(PAIRED) * size_of::<[Rules; 2]>()
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

/// A filter with its rules, for one pixel at a time, and where there is one, for several neighbours as if their
/// channels were those of one pixel.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    single: (PairedFilter, PairedRules),
    /// With how many neighbours it takes.
    wide: Option<(PairedFilter, PairedRules, usize)>,
}

impl Packed {
    /// Computes the rules of these filters.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn new(single: PairedFilter, wide: Option<(PairedFilter, usize)>) -> Self {
        let rules = PairedRules::new(&single);
        let mut packed = Packed { single: (single, rules), wide: None };
        if let Some((filter, pixels)) = wide {
            let rules = PairedRules::new(&filter);
            packed.wide = Some((filter, rules, pixels));
        }
        packed
    }

    /// The filter for one pixel.
    pub(crate) fn filter(&self) -> &PairedFilter {
        &self.single.0
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        let held =
            |filter: &PairedFilter, rules: &PairedRules| filter.held_bytes() + rules.held_bytes();
        let wide = self.wide.as_ref().map_or(0, |(filter, rules, _)| held(filter, rules));
        held(&self.single.0, &self.single.1) + wide
    }
}

/// See [`DepthwisePairs::run`](super::DepthwisePairs::run).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn depthwise_pairs(
    conv: &Conv,
    input: &[u8],
    packed: &Packed,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let filter = packed.filter();
    match (filter.is_signed(), filter.rules().low >= 0) {
        (false, false) => pairs::<false, false>(conv, input, packed, rows, out),
        (false, true) => pairs::<false, true>(conv, input, packed, rows, out),
        (true, false) => pairs::<true, false>(conv, input, packed, rows, out),
        (true, true) => pairs::<true, true>(conv, input, packed, rows, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn pairs<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    conv: &Conv,
    input: &[u8],
    packed: &Packed,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let (filter, rules) = &packed.single;
    let (channels, width) = (conv.output.channels, conv.output.width);
    assert_eq!(channels, filter.channels(), "channels of a depthwise filter");
    let inside = conv.horizontal.whole(conv.filter.width, conv.input.width, width);
    let inside = inside.start.min(width)..inside.end.min(width);
    let mut sources = Sources::new(filter);
    for (row, out) in rows.zip(out.chunks_exact_mut(width * channels)) {
        // Pixels whose filter reaches over an edge to the left or right, one by one.
        for edge in [0..inside.start, inside.end..width] {
            let out = &mut out[edge.start * channels..edge.end * channels];
            let pixels = pixels_of(conv, row..row + 1, edge);
            for (taps, out) in pixels.zip(out.chunks_exact_mut(channels)) {
                let sources = sources.under(taps, input);
                pixel::<SIGNED, NOT_NEGATIVE>(sources, filter, &rules.0, out);
            }
        }
        let mut inside = inside.clone();
        if let Some((filter, rules, pixels)) = &packed.wide {
            let count = inside.len() / pixels;
            let range = (inside.start, count);
            let taps = TapLine::new(conv, input, filter, (row, *pixels), range);
            let out = &mut out[inside.start * channels..][..count * pixels * channels];
            whole::<SIGNED, NOT_NEGATIVE>(&taps, filter, &rules.0, count, out);
            inside.start += count * pixels;
        }
        let range = (inside.start, inside.len());
        let taps = TapLine::new(conv, input, filter, (row, 1), range);
        let out = &mut out[inside.start * channels..inside.end * channels];
        whole::<SIGNED, NOT_NEGATIVE>(&taps, filter, &rules.0, inside.len(), out);
    }
}

/// One pixel.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn pixel<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    sources: &[&[u8]],
    filter: &PairedFilter,
    rules: &[[Rules; 2]],
    out: &mut [u8],
) {
    for (block, rules) in rules.iter().enumerate() {
        let first = block * PAIRED;
        let lanes = Lanes32::first(filter.channels() - first);
        let bytes = paired_block::<SIGNED, NOT_NEGATIVE>(sources, filter, rules, block, lanes);
        store_32_bytes(&mut out[first..], lanes, bytes);
    }
}

/// A line of output pixels whose taps all lie on the image, as far as left and right go: block by block of
/// channels, so that rules and weights stay in registers from pixel to pixel.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn whole<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    line: &TapLine<'_>,
    filter: &PairedFilter,
    rules: &[[Rules; 2]],
    count: usize,
    out: &mut [u8],
) {
    let channels = filter.channels();
    if count == 0 {
        return;
    }
    let taps = line.taps(filter.taps());
    let line = Line { count, channels, bounds: NarrowBounds::new(filter.rules()) };
    // Rows at the upper and lower edge have taps that stay on a row of zeros.
    let step = taps.first().map(|(_, step)| *step);
    let step = step.filter(|step| taps.iter().all(|(_, other)| other == step));
    for (block, rules) in rules.iter().enumerate() {
        let first = block * PAIRED;
        let weights = filter.block(block);
        match (step, <&[Pair; 5]>::try_from(weights), <&[Tap<'_>; 10]>::try_from(taps)) {
            // Filters of 3 by 3: as their number is known, the loop over taps is none.
            (Some(step), Ok(weights), Ok(taps)) => {
                line.block::<SIGNED, NOT_NEGATIVE, _, _>(
                    taps,
                    weights,
                    rules,
                    first,
                    |_| step,
                    out,
                );
            }
            _ => line.block::<SIGNED, NOT_NEGATIVE, _, _>(
                taps,
                weights,
                rules,
                first,
                |step| step,
                out,
            ),
        }
    }
}

/// What lies under a tap, from the first pixel on, and how far apart pixels are.
type Tap<'a> = (&'a [u8], usize);

/// The weights of two taps for both halves of a block of channels.
type Pair = [WeightPairs; 2];

/// A line of pixels.
#[derive(Clone, Copy)]
struct Line {
    count: usize,
    channels: usize,
    bounds: NarrowBounds,
}

impl Line {
    /// The block of channels from `first` on of all pixels, of which there must be one; `step_of` makes of a
    /// tap's step the same.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn block<'t, const SIGNED: bool, const NOT_NEGATIVE: bool, T, W>(
        &self,
        taps: &T,
        weights: &W,
        [low_rules, high_rules]: &[Rules; 2],
        first: usize,
        step_of: impl Fn(usize) -> usize,
        out: &mut [u8],
    ) where
        T: AsRef<[Tap<'t>]> + ?Sized,
        W: AsRef<[Pair]> + ?Sized,
    {
        let lanes = Lanes32::first(self.channels - first);
        // Everything that the loops below read.
        for (values, step) in taps.as_ref() {
            let len = (self.count - 1) * step_of(*step) + self.channels;
            assert!(values.len() >= len, "a line under a tap");
        }
        for (index, out) in out.chunks_exact_mut(self.channels).take(self.count).enumerate() {
            let (mut low_sums, mut high_sums) = (low_rules.bias, high_rules.bias);
            for (taps, weights) in taps.as_ref().chunks_exact(2).zip(weights.as_ref()) {
                let [a, b] = [taps[0], taps[1]].map(|(values, step)| {
                    let at = index * step_of(step);
                    // SAFETY: the bytes in the lanes from here on end at most at
                    // `(count - 1) * step + channels`, which is within the values: the assertion above.
                    let from = unsafe { values.as_ptr().add(at + first) };
                    // SAFETY: as said for the pointer; bytes that are not in the lanes are not read.
                    let bytes = unsafe { _mm256_maskz_loadu_epi8(lanes.mask(), from.cast()) };
                    if SIGNED { _mm512_cvtepi8_epi16(bytes) } else { _mm512_cvtepu8_epi16(bytes) }
                });
                let [low_weights, high_weights] = weights;
                let (low_weights, high_weights) =
                    (load_pairs(low_weights), load_pairs(high_weights));
                let low = _mm512_madd_epi16(_mm512_unpacklo_epi16(a, b), low_weights);
                let high = _mm512_madd_epi16(_mm512_unpackhi_epi16(a, b), high_weights);
                low_sums = _mm512_add_epi32(low_sums, low);
                high_sums = _mm512_add_epi32(high_sums, high);
            }
            let low_values = low_rules.apply::<NOT_NEGATIVE>(low_sums);
            let high_values = high_rules.apply::<NOT_NEGATIVE>(high_sums);
            let bytes = self.bounds.bytes(low_values, high_values);
            store_32_bytes(&mut out[first..], lanes, bytes);
        }
    }
}

/// The output values of 32 channels of one pixel.
///
/// Values of two taps are interleaved, so that one instruction multiplies both by their weights and
/// adds the products. That leaves channels 0-3, 8-11, 16-19, 24-27 in one register and the others in
/// the other, which the narrowing at the end puts back; weights and rules were stored in that order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn paired_block<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    sources: &[&[u8]],
    filter: &PairedFilter,
    rules: &[Rules; 2],
    block: usize,
    lanes: Lanes32,
) -> __m256i {
    let [low_rules, high_rules] = rules;
    let (mut low_sums, mut high_sums) = (low_rules.bias, high_rules.bias);
    let first = block * PAIRED;
    for (taps, weights) in sources.chunks_exact(2).zip(filter.block(block)) {
        let a = widen::<SIGNED>(taps[0], first, lanes);
        let b = widen::<SIGNED>(taps[1], first, lanes);
        let [low_weights, high_weights] = weights;
        let (low_weights, high_weights) = (load_pairs(low_weights), load_pairs(high_weights));
        let low = _mm512_madd_epi16(_mm512_unpacklo_epi16(a, b), low_weights);
        let high = _mm512_madd_epi16(_mm512_unpackhi_epi16(a, b), high_weights);
        low_sums = _mm512_add_epi32(low_sums, low);
        high_sums = _mm512_add_epi32(high_sums, high);
    }
    let low_values = low_rules.apply::<NOT_NEGATIVE>(low_sums);
    let high_values = high_rules.apply::<NOT_NEGATIVE>(high_sums);
    NarrowBounds::new(filter.rules()).bytes(low_values, high_values)
}

/// The range of stored values, and the zero point, with 16 bits each.
#[derive(Clone, Copy)]
struct NarrowBounds {
    low: __m512i,
    high: __m512i,
    zero_point: __m512i,
}

impl NarrowBounds {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(rules: Channels<'_>) -> Self {
        let wide = |bound: i32| _mm512_broadcastw_epi16(_mm_cvtsi32_si128(bound));
        NarrowBounds {
            low: wide(rules.low),
            high: wide(rules.high),
            zero_point: wide(rules.zero_point),
        }
    }

    /// Stored values, from rescaled sums of the two halves of a block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn bytes(&self, low_values: __m512i, high_values: __m512i) -> __m256i {
        // Saturates at 16 bits, beyond which everything is clamped anyway: bounds are below 2^9.
        let values = _mm512_packs_epi32(low_values, high_values);
        let values = _mm512_min_epi16(_mm512_max_epi16(values, self.low), self.high);
        _mm512_cvtepi16_epi8(_mm512_add_epi16(values, self.zero_point))
    }
}

/// 32 bytes of a pixel from channel `first` on, with 16 bits each; bytes not in the lanes are 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn widen<const SIGNED: bool>(pixel: &[u8], first: usize, lanes: Lanes32) -> __m512i {
    let bytes = load_bytes(pixel, first, lanes);
    if SIGNED { _mm512_cvtepi8_epi16(bytes) } else { _mm512_cvtepu8_epi16(bytes) }
}
