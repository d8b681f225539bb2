//! Depthwise convolution, two taps and 32 channels at a time.

use core::arch::x86_64::*;
use std::ops::Range;

use super::pairs::{PairedFilter, Sources};
use crate::kernels::conv::{Conv, pixels};
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
    pub(crate) fn bytes(filter: &PairedFilter) -> usize {
        filter.rules().bias.len().div_ceil(PAIRED) * size_of::<[Rules; 2]>()
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

/// See [`DepthwisePairs::run`](super::DepthwisePairs::run).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn depthwise_pairs(
    conv: &Conv,
    input: &[u8],
    filter: &PairedFilter,
    rules: &PairedRules,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let rules = rules.0.as_slice();
    match (filter.is_signed(), filter.rules().low >= 0) {
        (false, false) => pairs::<false, false>(conv, input, filter, rules, rows, out),
        (false, true) => pairs::<false, true>(conv, input, filter, rules, rows, out),
        (true, false) => pairs::<true, false>(conv, input, filter, rules, rows, out),
        (true, true) => pairs::<true, true>(conv, input, filter, rules, rows, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn pairs<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    conv: &Conv,
    input: &[u8],
    filter: &PairedFilter,
    rules: &[[Rules; 2]],
    rows: Range<usize>,
    out: &mut [u8],
) {
    let channels = conv.output.channels;
    assert_eq!(channels, filter.channels(), "channels of a depthwise filter");
    assert_eq!(channels.div_ceil(PAIRED), rules.len(), "blocks of a depthwise filter");
    let mut sources = Sources::new(filter);
    for (taps, out) in pixels(conv, rows).zip(out.chunks_exact_mut(channels)) {
        let sources = sources.under(taps, input);
        for (block, rules) in rules.iter().enumerate() {
            let first = block * PAIRED;
            let lanes = Lanes32::first(channels - first);
            let bytes = paired_block::<SIGNED, NOT_NEGATIVE>(sources, filter, rules, block, lanes);
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
    // Saturates at 16 bits, beyond which everything is clamped anyway: bounds are below 2^9.
    let values = _mm512_packs_epi32(low_values, high_values);
    let bound = |bound: i32| _mm512_broadcastw_epi16(_mm_cvtsi32_si128(bound));
    let Channels { low, high, zero_point, .. } = filter.rules();
    let values = _mm512_min_epi16(_mm512_max_epi16(values, bound(low)), bound(high));
    _mm512_cvtepi16_epi8(_mm512_add_epi16(values, bound(zero_point)))
}

/// 32 bytes of a pixel from channel `first` on, with 16 bits each; bytes not in the lanes are 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn widen<const SIGNED: bool>(pixel: &[u8], first: usize, lanes: Lanes32) -> __m512i {
    let bytes = load_bytes(pixel, first, lanes);
    if SIGNED { _mm512_cvtepi8_epi16(bytes) } else { _mm512_cvtepu8_epi16(bytes) }
}
