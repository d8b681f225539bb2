//! Depthwise convolution, two taps and 32 channels at a time.
//!
//! The one rule of the `unsafe` here: what lies under each tap of a line of pixels is asserted to be as long as
//! the loops over pixels and channels read before they begin, so that they check no bounds.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a line of pixels")]

use core::arch::x86_64::*;
use std::ops::Range;

use super::pairs::{Packed, PairedFilter, RegisterRules, Tap, TapLine, WeightPairs};
use crate::kernels::conv::Conv;
use crate::kernels::requantize::avx512::{
    ANY, Bounds, Ending, NOT_NEGATIVE, Rules, SMALL, largest_sum,
};
use crate::kernels::simd::avx512::{LANES, Lanes16, Lanes32, load_pairs, store_32_bytes};

/// Channels of a block of [`PairedFilter`]: one register of 16-bit values.
const PAIRED: usize = PairedFilter::BLOCK;

/// Taps of a filter of 3 by 3, and the one that makes them even.
const NINE: usize = 10;

/// The rules of a [`PairedFilter`].
#[derive(Debug, Clone)]
pub(crate) struct PairedRules {
    /// For each block its two halves.
    blocks: Vec<[Rules; 2]>,
    ending: Ending,
}

impl PairedRules {
    /// The rules of this filter.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn new(filter: &PairedFilter) -> Self {
        let rules = filter.rules();
        let ending = Rules::ending(rules, 0..rules.bias.len(), largest_sum(filter.taps()));
        let half = |first: usize| Rules::new(ending, rules, first, Lanes16::ALL);
        let blocks = (0..rules.bias.len()).step_by(PAIRED);
        let blocks = blocks.map(|first| [half(first), half(first + LANES)]).collect();
        PairedRules { blocks, ending }
    }

    /// Bytes that the rules of this filter take.
    pub(super) fn bytes(filter: &PairedFilter) -> usize {
        filter.rules().bias.len().div_ceil(PAIRED) * size_of::<[Rules; 2]>()
    }
}

impl RegisterRules for PairedRules {
    fn held_bytes(&self) -> usize {
        size_of_val(self.blocks.as_slice())
    }
}

/// See [`DepthwisePairs::run`](super::DepthwisePairs::run).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn depthwise_pairs(
    conv: &Conv,
    input: &[u8],
    packed: &Packed<PairedRules>,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let (filter, rules) = &packed.single;
    match (filter.is_signed(), rules.ending) {
        (false, NOT_NEGATIVE) => pairs::<false, NOT_NEGATIVE>(conv, input, packed, rows, out),
        (false, SMALL) => pairs::<false, SMALL>(conv, input, packed, rows, out),
        (false, _) => pairs::<false, ANY>(conv, input, packed, rows, out),
        (true, NOT_NEGATIVE) => pairs::<true, NOT_NEGATIVE>(conv, input, packed, rows, out),
        (true, SMALL) => pairs::<true, SMALL>(conv, input, packed, rows, out),
        (true, _) => pairs::<true, ANY>(conv, input, packed, rows, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn pairs<const SIGNED: bool, const ENDING: Ending>(
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
    let mut line = TapLine::new(filter);
    let mut wide_line = packed.wide.as_ref().map(|(filter, ..)| TapLine::new(filter));
    for (row, out) in rows.zip(out.chunks_exact_mut(width * channels)) {
        // Pixels whose filter reaches over an edge to the left or right, one by one.
        for pixel in (0..inside.start).chain(inside.end..width) {
            let taps = line.under(conv, input, (row, 1), (pixel, 1));
            let out = &mut out[pixel * channels..][..channels];
            Line::new(filter, taps, 1).stored::<SIGNED, ENDING>(filter, rules, out);
        }
        let mut inside = inside.clone();
        if let (Some((filter, rules, pixels)), Some(line)) = (&packed.wide, &mut wide_line) {
            let count = inside.len() / pixels;
            if count > 0 {
                let taps = line.under(conv, input, (row, *pixels), (inside.start, count));
                let out = &mut out[inside.start * channels..][..count * pixels * channels];
                Line::new(filter, taps, count).stored::<SIGNED, ENDING>(filter, rules, out);
            }
            inside.start += count * pixels;
        }
        if !inside.is_empty() {
            let count = inside.len();
            let taps = line.under(conv, input, (row, 1), (inside.start, count));
            let out = &mut out[inside.start * channels..inside.end * channels];
            Line::new(filter, taps, count).stored::<SIGNED, ENDING>(filter, rules, out);
        }
    }
}

/// A line of output pixels whose taps all lie on the image, as far as left and right go, or a single pixel.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// Bytes for all pixels.
    taps: &'a [Tap<'a>],
    /// How far apart pixels are under every tap, where that is the same.
    step: Option<usize>,
    count: usize,
    channels: usize,
    bounds: Bounds,
}

impl<'a> Line<'a> {
    /// `count` pixels of this filter, of which there must be one.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn new(filter: &PairedFilter, taps: &'a [Tap<'a>], count: usize) -> Self {
        let channels = filter.channels();
        // Rows at the upper and lower edge have taps that stay on a row of zeros.
        let first = taps.first().map_or(0, |(_, step)| *step);
        let mut is_even = true;
        for (values, step) in taps {
            // Everything that is read below.
            assert!(values.len() >= (count - 1) * step + channels, "a line under a tap");
            is_even &= *step == first;
        }
        let step = is_even.then_some(first);
        Line { taps, step, count, channels, bounds: Bounds::new(filter.rules()) }
    }

    /// Block by block of channels, so that rules and weights stay in registers from pixel to pixel.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn stored<const SIGNED: bool, const ENDING: Ending>(
        &self,
        filter: &PairedFilter,
        rules: &PairedRules,
        out: &mut [u8],
    ) {
        for (block, rules) in rules.blocks.iter().enumerate() {
            let (first, weights) = (block * PAIRED, filter.block(block));
            match self.step {
                // Filters of 3 by 3: as their number is known, the loop over taps is none.
                Some(step) if self.taps.len() == NINE => {
                    self.block::<SIGNED, ENDING, NINE>(weights, rules, first, |_| step, out);
                }
                _ => self.block::<SIGNED, ENDING, 0>(weights, rules, first, |step| step, out),
            }
        }
    }

    /// The block of channels from `first` on of all pixels; `step_of` makes of a tap's step the same. There are
    /// `TAPS` taps, or any number where that is 0.
    ///
    /// Values of two taps are interleaved, so that one instruction multiplies both by their weights and
    /// adds the products. That leaves channels 0-3, 8-11, 16-19, 24-27 in one register and the others in
    /// the other, which the narrowing at the end puts back; weights and rules were stored in that order.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn block<const SIGNED: bool, const ENDING: Ending, const TAPS: usize>(
        &self,
        weights: &[[WeightPairs; 2]],
        [low_rules, high_rules]: &[Rules; 2],
        first: usize,
        step_of: impl Fn(usize) -> usize,
        out: &mut [u8],
    ) {
        let lanes = Lanes32::first(self.channels - first);
        let (mut taps, mut weights) = (self.taps, weights);
        if TAPS > 0 {
            (taps, weights) = (&taps[..TAPS], &weights[..TAPS / 2]);
        }
        for (index, out) in out.chunks_exact_mut(self.channels).take(self.count).enumerate() {
            let (mut low_sums, mut high_sums) = (low_rules.bias, high_rules.bias);
            for (taps, weights) in taps.chunks_exact(2).zip(weights) {
                let [a, b] = [taps[0], taps[1]].map(|(values, step)| {
                    let at = index * step_of(step);
                    // SAFETY: the bytes in the lanes from here on end at most at
                    // `(count - 1) * step + channels`, which is within the values: asserted by `new`.
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
            let low_values = low_rules.apply::<ENDING>(low_sums);
            let high_values = high_rules.apply::<ENDING>(high_sums);
            let bytes = self.bounds.mixed(low_values, high_values);
            store_32_bytes(&mut out[first..], lanes, bytes);
        }
    }
}
