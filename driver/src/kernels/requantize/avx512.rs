//! The exact rescaling of sums to stored values. Its [`Rules`] also end the products of other families,
//! whose sums need not leave the registers before.

use core::arch::x86_64::*;

use super::portable::Channels;
use crate::kernels::quant::Rounding;
use crate::kernels::simd::avx512::{
    LANES, Lanes16, Lanes32, load_i32s, store_16_bytes, store_32_bytes, store_64_bytes,
};

/// Rows of sums that share one reading of the rules.
const ROWS: usize = 16;

/// The rules of 16 channels, in registers.
///
/// The doubled product `2 * x * m`, plus `2^31`, has the rounded result in its upper half. `2 * m` is
/// below `2^32` but may not fit a signed number: for `x` of either sign the product is then
/// taken with `2 * m - 2^32`, and `x` added to the upper half makes up for it. Where products are rounded once, half of
/// what both steps divide by is added to the product of the absolute value, which then gets the sign back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Added to each channel's sum first.
    pub(crate) bias: __m512i,
    /// Twice the multipliers, modulo 2^32.
    doubled: __m512i,
    /// Those of odd channels, moved to even lanes.
    odd_doubled: __m512i,
    /// Channels where twice the multiplier is not below 2^31.
    wrapped: __mmask16,
    left: __m512i,
    right: __m512i,
    /// Added to products of even and odd channels: what rounds the product, and where negative
    /// results are of no interest, in the upper half, what rounds the shift.
    nudges: [__m512i; 2],
    /// Bits that the right shift drops.
    dropped: __m512i,
    rounds_once: bool,
}

impl Rules {
    /// The rules of the channels from `first` on that are in `lanes`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn new<const NOT_NEGATIVE: bool>(
        rules: Channels<'_>,
        first: usize,
        lanes: Lanes16,
    ) -> Self {
        let multipliers = load_i32s(rules.multipliers, first, lanes);
        let doubled = _mm512_add_epi32(multipliers, multipliers);
        let right = load_i32s(rules.right_shifts, first, lanes);
        let one = _mm512_set1_epi32(1);
        let dropped = _mm512_sub_epi32(_mm512_sllv_epi32(one, right), one);
        let mut nudges = [_mm512_set1_epi64(1 << 31); 2];
        let rounds_once = rules.rounding == Rounding::Once;
        if NOT_NEGATIVE || rounds_once {
            let half = _mm512_srli_epi32::<1>(_mm512_add_epi32(dropped, one));
            if rounds_once {
                // The product's own half, where nothing is shifted after it; else only the shift's.
                let is_not_shifted = _mm512_testn_epi32_mask(right, right);
                let nudge = _mm512_maskz_set1_epi32(is_not_shifted, i32::MIN);
                nudges = [nudge, _mm512_srli_epi64::<32>(nudge)];
            }
            nudges[0] = _mm512_mask_mov_epi32(nudges[0], ODD, _mm512_slli_epi64::<32>(half));
            nudges[1] = _mm512_mask_mov_epi32(nudges[1], ODD, half);
        }
        Rules {
            bias: load_i32s(rules.bias, first, lanes),
            doubled,
            odd_doubled: _mm512_srli_epi64::<32>(doubled),
            wrapped: _mm512_movepi32_mask(doubled),
            left: load_i32s(rules.left_shifts, first, lanes),
            right,
            nudges,
            dropped,
            rounds_once,
        }
    }

    /// Sums with their bias in them, times the multipliers, rounded as the rules say. Where results below 0
    /// are of no interest, `NOT_NEGATIVE` gives 0 for them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn apply<const NOT_NEGATIVE: bool>(&self, sums: __m512i) -> __m512i {
        let sums = _mm512_sllv_epi32(sums, self.left);
        if NOT_NEGATIVE {
            return self.of_magnitudes(_mm512_max_epi32(sums, _mm512_setzero_si512()));
        }
        if self.rounds_once {
            let values = self.of_magnitudes(_mm512_abs_epi32(sums));
            let is_negative = _mm512_movepi32_mask(sums);
            return _mm512_mask_sub_epi32(values, is_negative, _mm512_setzero_si512(), values);
        }
        let even = _mm512_mul_epi32(sums, self.doubled);
        let odd = _mm512_mul_epi32(upper_halves(sums), self.odd_doubled);
        let high = self.upper_halves_of(even, odd);
        let high = _mm512_mask_add_epi32(high, self.wrapped, high, sums);
        let remainder = _mm512_and_si512(high, self.dropped);
        let is_negative = _mm512_srai_epi32::<31>(high);
        let threshold = _mm512_sub_epi32(_mm512_srli_epi32::<1>(self.dropped), is_negative);
        let rounds_up = _mm512_cmpgt_epi32_mask(remainder, threshold);
        let quotient = _mm512_srav_epi32(high, self.right);
        _mm512_mask_add_epi32(quotient, rounds_up, quotient, _mm512_set1_epi32(1))
    }

    /// Numbers up to 2^31 without a sign, times the multipliers, with all that rounds in one addition: the upper half
    /// is at most 2^31, and half of what the shift divides by at most 2^30.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn of_magnitudes(&self, magnitudes: __m512i) -> __m512i {
        let even = _mm512_mul_epu32(magnitudes, self.doubled);
        let odd = _mm512_mul_epu32(upper_halves(magnitudes), self.odd_doubled);
        _mm512_srlv_epi32(self.upper_halves_of(even, odd), self.right)
    }

    /// The upper halves of products of even and odd channels, nudged.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn upper_halves_of(&self, even: __m512i, odd: __m512i) -> __m512i {
        let even = _mm512_add_epi64(even, self.nudges[0]);
        let odd = _mm512_add_epi64(odd, self.nudges[1]);
        _mm512_mask_shuffle_epi32::<UPPER>(odd, !ODD, even)
    }
}

/// Every second lane, from lane 1 on.
const ODD: __mmask16 = 0xAAAA;

/// Takes lanes 1, 1, 3, 3 of each four.
const UPPER: i32 = 0b11_11_01_01;

/// The odd lanes, in even lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn upper_halves(values: __m512i) -> __m512i {
    _mm512_shuffle_epi32::<UPPER>(values)
}

/// As [`Channels::rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn requantize_rows(
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
    let bounds = Bounds::new(rules);
    for (group, (sums, out)) in
        sums.chunks(ROWS * width).zip(out.chunks_mut(ROWS * width)).enumerate()
    {
        for first in (0..width).step_by(LANES) {
            let lanes = Lanes16::holding(first, width);
            let block = Rules::new::<NOT_NEGATIVE>(rules, first, lanes);
            for (row, (sums, out)) in
                sums.chunks_exact(width).zip(out.chunks_exact_mut(width)).enumerate()
            {
                let term = row_terms.get(group * ROWS + row).copied().unwrap_or(0);
                let sums = _mm512_add_epi32(load_i32s(sums, first, lanes), _mm512_set1_epi32(term));
                let values = block.apply::<NOT_NEGATIVE>(_mm512_add_epi32(sums, block.bias));
                store_16_bytes(&mut out[first..], lanes, bounds.bytes(values));
            }
        }
    }
}

/// The range of stored values, and the zero point.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    low: __m512i,
    high: __m512i,
    zero_point: __m512i,
    /// The same with 16 bits each.
    low_16: __m512i,
    high_16: __m512i,
    zero_point_16: __m512i,
}

impl Bounds {
    /// Those of all channels.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) fn new(rules: Channels<'_>) -> Self {
        let wide = |bound: i32| _mm512_set1_epi32(bound);
        let narrow = |bound: i32| _mm512_broadcastw_epi16(_mm_cvtsi32_si128(bound));
        Bounds {
            low: wide(rules.low),
            high: wide(rules.high),
            zero_point: wide(rules.zero_point),
            low_16: narrow(rules.low),
            high_16: narrow(rules.high),
            zero_point_16: narrow(rules.zero_point),
        }
    }

    /// Writes stored values of up to 64 channels to `out`, from rescaled sums of as many panels as it takes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(crate) fn store<const P: usize>(&self, values: [__m512i; P], out: &mut [u8]) {
        if P == 1 {
            return store_16_bytes(out, Lanes16::holding(0, out.len()), self.bytes(values[0]));
        }
        let panel = |panel: usize| if panel < P { values[panel] } else { values[0] };
        let low_half = self.narrowed(panel(0), panel(1));
        if P == 2 {
            // Packing takes four channels of one panel and four of the other by turns.
            let bytes = _mm512_cvtepi16_epi8(low_half);
            let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
            let bytes = _mm256_permutevar8x32_epi32(bytes, order);
            return store_32_bytes(out, Lanes32::first(out.len()), bytes);
        }
        let bytes = _mm512_packus_epi16(low_half, self.narrowed(panel(2), panel(3)));
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        store_64_bytes(out, _mm512_permutexvar_epi32(order, bytes));
    }

    /// Stored values of two panels with 16 bits each, the upper 8 of them 0, as packing mixes them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn narrowed(&self, a: __m512i, b: __m512i) -> __m512i {
        // Saturates at 16 bits, beyond which everything is clamped anyway: bounds are below 2^9.
        let values = _mm512_packs_epi32(a, b);
        let values = _mm512_max_epi16(values, self.low_16);
        let values = _mm512_min_epi16(values, self.high_16);
        let values = _mm512_add_epi16(values, self.zero_point_16);
        _mm512_and_si512(values, _mm512_set1_epi16(0xFF))
    }

    /// Stored values, from rescaled sums.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn bytes(&self, values: __m512i) -> __m128i {
        let values = _mm512_min_epi32(_mm512_max_epi32(values, self.low), self.high);
        _mm512_cvtepi32_epi8(_mm512_add_epi32(values, self.zero_point))
    }
}
