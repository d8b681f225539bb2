//! Kernels for AVX-512 (F, BW, DQ, VL): the exact rescaling of sums, and depthwise convolution.
//!
//! Functions here carry the features they need; [`super`] calls them only where the CPU has those.
#![allow(
    clippy::incompatible_msrv,
    reason = "the matrix library, which this crate cannot do without, needs a newer compiler still"
)]

use core::arch::x86_64::*;
use std::ops::Range;

use crate::kernels::conv_geometry::Conv;
use crate::kernels::depthwise::{
    FloatFilter, PairedFilter, for_each_pixel, for_each_pixel_of_pairs,
};
use crate::kernels::requantize::Channels;

/// Channels of one register of sums.
const LANES: usize = 16;

/// Rows of sums that share one reading of the rules.
const ROWS: usize = 8;

/// The rules of 16 channels, in registers.
#[derive(Clone, Copy)]
struct Rules {
    bias: __m512i,
    multipliers: __m512i,
    /// The multipliers of odd channels, moved to even places.
    odd_multipliers: __m512i,
    left: __m512i,
    right: __m512i,
    /// Bits that the right shift drops.
    dropped: __m512i,
    /// Half of what the right shift divides by, rounded down.
    half: __m512i,
}

impl Rules {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn new(rules: Channels<'_>, first: usize, mask: __mmask16) -> Self {
        let multipliers = load(rules.multipliers, first, mask);
        let right = load(rules.right_shifts, first, mask);
        let one = _mm512_set1_epi32(1);
        let dropped = _mm512_sub_epi32(_mm512_sllv_epi32(one, right), one);
        Rules {
            bias: load(rules.bias, first, mask),
            multipliers,
            odd_multipliers: _mm512_srli_epi64::<32>(multipliers),
            left: load(rules.left_shifts, first, mask),
            right,
            dropped,
            half: _mm512_srli_epi32::<1>(_mm512_add_epi32(dropped, one)),
        }
    }

    /// Sums with their bias in them, times the multipliers, rounded as
    /// [`Multiplier::apply`](crate::kernels::quant::Multiplier::apply) does. Where results below 0
    /// are of no interest, `NOT_NEGATIVE` gives 0 for them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn apply<const NOT_NEGATIVE: bool>(&self, sums: __m512i) -> __m512i {
        let mut sums = _mm512_sllv_epi32(sums, self.left);
        if NOT_NEGATIVE {
            sums = _mm512_max_epi32(sums, _mm512_setzero_si512());
        }
        // Products of even and of odd channels with 64 bits each; bits 31 to 62, after half was
        // added, are the result, and the blend takes each from the half it belongs to.
        let nudge = _mm512_set1_epi64(1 << 30);
        let even = _mm512_mul_epi32(sums, self.multipliers);
        let odd = _mm512_mul_epi32(_mm512_srli_epi64::<32>(sums), self.odd_multipliers);
        let even = _mm512_srli_epi64::<31>(_mm512_add_epi64(even, nudge));
        let odd = _mm512_slli_epi64::<1>(_mm512_add_epi64(odd, nudge));
        let high = _mm512_mask_blend_epi32(0xAAAA, even, odd);
        if NOT_NEGATIVE {
            // As unsigned numbers the sum cannot overflow: below 2^31 plus at most 2^30.
            return _mm512_srlv_epi32(_mm512_add_epi32(high, self.half), self.right);
        }
        let remainder = _mm512_and_si512(high, self.dropped);
        let is_negative = _mm512_srai_epi32::<31>(high);
        let threshold = _mm512_sub_epi32(_mm512_srli_epi32::<1>(self.dropped), is_negative);
        let rounds_up = _mm512_cmpgt_epi32_mask(remainder, threshold);
        let quotient = _mm512_srav_epi32(high, self.right);
        _mm512_mask_add_epi32(quotient, rounds_up, quotient, _mm512_set1_epi32(1))
    }
}

/// The lanes of a register that hold channels `first..len`.
fn lanes(first: usize, len: usize) -> __mmask16 {
    let count = (len - first).min(LANES);
    if count == LANES { !0 } else { (1 << count) - 1 }
}

/// 16 numbers of `values` from `first` on; lanes not in `mask` are 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[i32], first: usize, mask: __mmask16) -> __m512i {
    let values = &values[first..][..mask.count_ones() as usize];
    // SAFETY: masks here are runs of low bits ([`lanes`]); the lanes in the mask are the elements of
    // the slice, and lanes that are not in it are not read.
    unsafe { _mm512_maskz_loadu_epi32(mask, values.as_ptr()) }
}

/// See [`super::requantize_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn requantize_rows(
    rules: Channels<'_>,
    sums: &[i32],
    row_terms: &[i32],
    out: &mut [u8],
) {
    // With an activation that leaves nothing below real 0, rounding of negative numbers is of no
    // interest.
    if rules.low >= 0 {
        requantize::<true>(rules, sums, row_terms, out);
    } else {
        requantize::<false>(rules, sums, row_terms, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn requantize<const NOT_NEGATIVE: bool>(
    rules: Channels<'_>,
    sums: &[i32],
    row_terms: &[i32],
    out: &mut [u8],
) {
    let width = rules.bias.len();
    let (low, high) = (_mm512_set1_epi32(rules.low), _mm512_set1_epi32(rules.high));
    let zero_point = _mm512_set1_epi32(rules.zero_point);
    for (group, (sums, out)) in
        sums.chunks(ROWS * width).zip(out.chunks_mut(ROWS * width)).enumerate()
    {
        for first in (0..width).step_by(LANES) {
            let mask = lanes(first, width);
            let block = Rules::new(rules, first, mask);
            for (row, (sums, out)) in
                sums.chunks_exact(width).zip(out.chunks_exact_mut(width)).enumerate()
            {
                let term = row_terms.get(group * ROWS + row).copied().unwrap_or(0);
                let biased = _mm512_add_epi32(load(sums, first, mask), block.bias);
                let biased = _mm512_add_epi32(biased, _mm512_set1_epi32(term));
                let values = block.apply::<NOT_NEGATIVE>(biased);
                let values = _mm512_min_epi32(_mm512_max_epi32(values, low), high);
                let bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(values, zero_point));
                let out = &mut out[first..][..mask.count_ones() as usize];
                if let Some(full) = out.first_chunk_mut::<LANES>() {
                    // SAFETY: 16 bytes are written to an array of 16.
                    unsafe { _mm_storeu_si128(full.as_mut_ptr().cast(), bytes) };
                } else {
                    // SAFETY: the bytes in the mask are those of the slice; the others are not
                    // written.
                    unsafe { _mm_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, bytes) };
                }
            }
        }
    }
}

/// Channels of a block of [`PairedFilter`]: one register of 16-bit values.
const PAIRED: usize = PairedFilter::BLOCK;

/// See [`super::depthwise_pairs`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn depthwise_pairs(
    conv: &Conv,
    input: &[u8],
    filter: &PairedFilter,
    rows: Range<usize>,
    out: &mut [u8],
) {
    match (filter.is_signed(), filter.rules().low >= 0) {
        (false, false) => pairs::<false, false>(conv, input, filter, rows, out),
        (false, true) => pairs::<false, true>(conv, input, filter, rows, out),
        (true, false) => pairs::<true, false>(conv, input, filter, rows, out),
        (true, true) => pairs::<true, true>(conv, input, filter, rows, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn pairs<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    conv: &Conv,
    input: &[u8],
    filter: &PairedFilter,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let channels = conv.output.channels;
    assert_eq!(channels, filter.channels(), "channels of a depthwise filter");
    let mut out = out.chunks_exact_mut(channels);
    for_each_pixel_of_pairs(conv, input, filter, rows, |sources| {
        let Some(out) = out.next() else { return };
        for block in 0..channels.div_ceil(PAIRED) {
            let first = block * PAIRED;
            let count = (channels - first).min(PAIRED);
            let mask = if count == PAIRED { !0 } else { (1 << count) - 1 };
            let bytes = paired_block::<SIGNED, NOT_NEGATIVE>(sources, filter, block, mask);
            let out = &mut out[first..first + count];
            if let Some(full) = out.first_chunk_mut::<PAIRED>() {
                // SAFETY: 32 bytes are written to an array of 32.
                unsafe { _mm256_storeu_si256(full.as_mut_ptr().cast(), bytes) };
            } else {
                // SAFETY: the bytes in the mask are those of the slice; the others are not written.
                unsafe { _mm256_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, bytes) };
            }
        }
    });
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
    block: usize,
    mask: __mmask32,
) -> __m256i {
    let rules = filter.rules();
    let rules_of = |half: usize| Rules::new(rules, block * PAIRED + half * LANES, !0);
    let (low_rules, high_rules) = (rules_of(0), rules_of(1));
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
    let values = _mm512_min_epi16(_mm512_max_epi16(values, bound(rules.low)), bound(rules.high));
    _mm512_cvtepi16_epi8(_mm512_add_epi16(values, bound(rules.zero_point)))
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

/// See [`super::depthwise_floats`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn depthwise_floats(
    conv: &Conv,
    input: &[f32],
    filter: FloatFilter<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    let channels = conv.output.channels;
    let (low, high) = (_mm512_set1_ps(filter.low), _mm512_set1_ps(filter.high));
    let mut out = out.chunks_exact_mut(channels);
    for_each_pixel(conv, rows, |taps| {
        let Some(out) = out.next() else { return };
        for first in (0..channels).step_by(LANES) {
            let mask = lanes(first, channels);
            let mut sums = _mm512_setzero_ps();
            taps.for_each(|from, tap| {
                let values = load_floats(input, from + first, mask);
                let weights = load_floats(filter.weights, tap * channels + first, mask);
                sums = _mm512_fmadd_ps(values, weights, sums);
            });
            let sums = _mm512_add_ps(sums, load_floats(filter.bias, first, mask));
            // Operands in this order keep a NaN: the second one is the answer for it.
            let sums = _mm512_min_ps(high, _mm512_max_ps(low, sums));
            let out = &mut out[first..][..mask.count_ones() as usize];
            // SAFETY: the lanes in the mask are the elements of the slice; the others are not
            // written.
            unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), mask, sums) };
        }
    });
}

/// 16 floats from `first` on; lanes not in `mask` are 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_floats(values: &[f32], first: usize, mask: __mmask16) -> __m512 {
    let values = &values[first..][..mask.count_ones() as usize];
    // SAFETY: masks here are runs of low bits ([`lanes`]); the lanes in the mask are the elements of
    // the slice, and lanes that are not in it are not read.
    unsafe { _mm512_maskz_loadu_ps(mask, values.as_ptr()) }
}
