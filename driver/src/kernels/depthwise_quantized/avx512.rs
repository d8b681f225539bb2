//! Depthwise convolution.

use core::arch::x86_64::*;
use std::ops::Range;

use super::{LANES, Rules};
use crate::kernels::conv_geometry::Conv;
use crate::kernels::depthwise::{PairedFilter, Sources, pixels};
use crate::kernels::requantize::Channels;

/// Channels of a block of [`PairedFilter`]: one register of 16-bit values.
const PAIRED: usize = PairedFilter::BLOCK;

/// The rules of a [`PairedFilter`] in registers' form: for each block its two halves.
#[derive(Debug, Clone)]
pub(in super::super) struct PairedRules(Vec<[Rules; 2]>);

impl PairedRules {
    /// The rules of this filter.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(in super::super) fn new(filter: &PairedFilter) -> Self {
        let rules = filter.rules();
        let half = |first: usize| {
            if rules.low >= 0 {
                Rules::new::<true>(rules, first, !0)
            } else {
                Rules::new::<false>(rules, first, !0)
            }
        };
        let blocks = (0..rules.bias.len()).step_by(PAIRED);
        PairedRules(blocks.map(|first| [half(first), half(first + LANES)]).collect())
    }

    /// Bytes held.
    pub(in super::super) fn held_bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

/// See [`DepthwisePairs::run`](super::super::DepthwisePairs::run).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in super::super) fn depthwise_pairs(
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
            let count = (channels - first).min(PAIRED);
            let mask = if count == PAIRED { !0 } else { (1 << count) - 1 };
            let bytes = paired_block::<SIGNED, NOT_NEGATIVE>(sources, filter, rules, block, mask);
            let out = &mut out[first..first + count];
            if let Some(full) = out.first_chunk_mut::<PAIRED>() {
                // SAFETY: 32 bytes are written to an array of 32.
                unsafe { _mm256_storeu_si256(full.as_mut_ptr().cast(), bytes) };
            } else {
                // SAFETY: the bytes in the mask are those of the slice; the others are not written.
                unsafe { _mm256_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, bytes) };
            }
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
    mask: __mmask32,
) -> __m256i {
    let [low_rules, high_rules] = rules;
    let (mut low_sums, mut high_sums) = (low_rules.bias, high_rules.bias);
    let first = block * PAIRED;
    for (taps, weights) in sources.chunks_exact(2).zip(filter.block(block)) {
        let a = widen::<SIGNED>(taps[0], first, mask);
        let b = widen::<SIGNED>(taps[1], first, mask);
        let [low_weights, high_weights] = weights;
        // SAFETY: 64 bytes are read from an array of 32 numbers of 2 bytes.
        let low_weights = unsafe { _mm512_loadu_si512(low_weights.as_ptr().cast()) };
        // SAFETY: as above.
        let high_weights = unsafe { _mm512_loadu_si512(high_weights.as_ptr().cast()) };
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

/// 32 bytes of a pixel from channel `first` on, with 16 bits each; bytes not in the mask are 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn widen<const SIGNED: bool>(pixel: &[u8], first: usize, mask: __mmask32) -> __m512i {
    let pixel = &pixel[first..][..mask.count_ones() as usize];
    // SAFETY: the mask is a run of low bits; the bytes in it are those of the slice, and bytes that
    // are not in it are not read.
    let bytes = unsafe { _mm256_maskz_loadu_epi8(mask, pixel.as_ptr().cast()) };
    if SIGNED { _mm512_cvtepi8_epi16(bytes) } else { _mm512_cvtepu8_epi16(bytes) }
}
