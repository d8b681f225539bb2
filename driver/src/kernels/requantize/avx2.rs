//! The exact rescaling of sums to stored values, for AVX2. Its [`Rules`] also end the products of other
//! families, whose sums need not leave the registers before.

use core::arch::x86_64::*;

use super::portable::Channels;
use crate::kernels::quant::Rounding;
use crate::kernels::simd::avx2::{LANES, load_i32s, store_bytes};

/// Rows of sums that share one reading of the rules.
const ROWS: usize = 16;

/// The rules of 8 channels, in registers.
///
/// Where results below 0 are of no interest, sums below 0 count as 0, and products are taken without a sign:
/// twice the multiplier fits 32 bits then, the upper half of the product is what the first rounding leaves, and
/// half of what the shift divides by can be added to it in the same step. Else products are taken with a sign,
/// the first rounding is that of [`Channels::stored`], and the second one, half away from zero, is done on the
/// absolute value, which gets the sign back. Where products are rounded once, half of what both steps divide by is
/// added to the product of the absolute value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Added to each channel's sum first.
    pub(crate) bias: __m256i,
    /// The multipliers, or twice these.
    factors: __m256i,
    /// Those of odd channels, moved to even lanes.
    odd_factors: __m256i,
    left: __m256i,
    /// Whether any channel is shifted left.
    shifts_left: bool,
    right: __m256i,
    /// Added to products of even and odd channels.
    nudges: [__m256i; 2],
    /// Half of what the right shift divides by.
    half: __m256i,
    rounds_once: bool,
}

impl Rules {
    /// Room for rules.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn zero() -> Self {
        let zero = _mm256_setzero_si256();
        Rules {
            bias: zero,
            factors: zero,
            odd_factors: zero,
            left: zero,
            shifts_left: false,
            right: zero,
            nudges: [zero; 2],
            half: zero,
            rounds_once: false,
        }
    }

    /// The rules of the channels from `first` on; where there are less than 8, any for the others.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn new<const NOT_NEGATIVE: bool>(rules: Channels<'_>, first: usize) -> Self {
        let mut block = Self::zero();
        block.set::<NOT_NEGATIVE>(rules, first);
        block
    }

    /// As [`Rules::new`], where they are to lie.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn set<const NOT_NEGATIVE: bool>(&mut self, rules: Channels<'_>, first: usize) {
        let mut factors = load_i32s(rules.multipliers, first);
        let right = load_i32s(rules.right_shifts, first);
        let half = _mm256_srli_epi32::<1>(_mm256_sllv_epi32(_mm256_set1_epi32(1), right));
        self.nudges = [_mm256_set1_epi64x(1 << 30); 2];
        self.rounds_once = rules.rounding == Rounding::Once;
        if NOT_NEGATIVE || self.rounds_once {
            factors = _mm256_add_epi32(factors, factors);
            let mut nudge = _mm256_set1_epi32(i32::MIN);
            if self.rounds_once {
                // The product's own half, where nothing is shifted after it; else only the shift's.
                let is_not_shifted = _mm256_cmpeq_epi32(right, _mm256_setzero_si256());
                nudge = _mm256_and_si256(nudge, is_not_shifted);
            }
            self.nudges = [
                _mm256_blend_epi32::<ODD>(nudge, _mm256_slli_epi64::<32>(half)),
                _mm256_blend_epi32::<ODD>(_mm256_srli_epi64::<32>(nudge), half),
            ];
        }
        self.bias = load_i32s(rules.bias, first);
        self.factors = factors;
        self.odd_factors = _mm256_srli_epi64::<32>(factors);
        self.left = load_i32s(rules.left_shifts, first);
        self.shifts_left = _mm256_testz_si256(self.left, self.left) == 0;
        self.right = right;
        self.half = half;
    }

    /// Sums with their bias in them, times the multipliers, rounded as the rules say. Where results below 0
    /// are of no interest, `NOT_NEGATIVE` gives 0 for them.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn apply<const NOT_NEGATIVE: bool>(&self, sums: __m256i) -> __m256i {
        let sums = if self.shifts_left { self.shifted(sums) } else { sums };
        if NOT_NEGATIVE {
            return self.of_magnitudes(_mm256_max_epi32(sums, _mm256_setzero_si256()));
        }
        if self.rounds_once {
            return _mm256_sign_epi32(self.of_magnitudes(_mm256_abs_epi32(sums)), sums);
        }
        let even = _mm256_mul_epi32(sums, self.factors);
        let odd = _mm256_mul_epi32(_mm256_srli_epi64::<32>(sums), self.odd_factors);
        let even = _mm256_add_epi64(even, self.nudges[0]);
        let odd = _mm256_add_epi64(odd, self.nudges[1]);
        // Bits 31 to 62 of each: the upper half of twice as much.
        let even = _mm256_srli_epi64::<31>(even);
        let odd = _mm256_add_epi64(odd, odd);
        let high = _mm256_blend_epi32::<ODD>(even, odd);
        // At most 2^31 and 2^30, which is below 2^32.
        let nudged = _mm256_add_epi32(_mm256_abs_epi32(high), self.half);
        _mm256_sign_epi32(_mm256_srlv_epi32(nudged, self.right), high)
    }

    /// Sums shifted left. What does not fit stays as large as the shift allows, and so beyond all bounds: in a
    /// convolution of bytes sums of 2^22 and factors of 2^10 are no rarity of scales, and are not to come out as 0.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn shifted(&self, sums: __m256i) -> __m256i {
        let largest = _mm256_srlv_epi32(_mm256_set1_epi32(i32::MAX), self.left);
        let smallest = _mm256_xor_si256(largest, _mm256_set1_epi32(-1));
        let held = _mm256_max_epi32(_mm256_min_epi32(sums, largest), smallest);
        _mm256_sllv_epi32(held, self.left)
    }

    /// Numbers up to 2^31 without a sign, times the multipliers, with all that rounds in one addition: the upper half
    /// is at most 2^31, and half of what the shift divides by at most 2^30.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn of_magnitudes(&self, magnitudes: __m256i) -> __m256i {
        let even = _mm256_mul_epu32(magnitudes, self.factors);
        let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(magnitudes), self.odd_factors);
        let even = _mm256_add_epi64(even, self.nudges[0]);
        let odd = _mm256_add_epi64(odd, self.nudges[1]);
        let upper = _mm256_blend_epi32::<ODD>(_mm256_srli_epi64::<32>(even), odd);
        _mm256_srlv_epi32(upper, self.right)
    }
}

/// Every second lane, from lane 1 on.
const ODD: i32 = 0b1010_1010;

/// As [`Channels::rows`].
#[target_feature(enable = "avx2")]
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

#[target_feature(enable = "avx2")]
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
        for first in (0..width).step_by(2 * LANES) {
            let used = (width - first).min(2 * LANES);
            let low = Rules::new::<NOT_NEGATIVE>(rules, first);
            let second = (first + LANES).min(width);
            let high = Rules::new::<NOT_NEGATIVE>(rules, second);
            for (row, (sums, out)) in
                sums.chunks_exact(width).zip(out.chunks_exact_mut(width)).enumerate()
            {
                let term = row_terms.get(group * ROWS + row).copied().unwrap_or(0);
                let term = _mm256_set1_epi32(term);
                let low_sums = _mm256_add_epi32(load_i32s(sums, first), low.bias);
                let high_sums = _mm256_add_epi32(load_i32s(sums, second), high.bias);
                let low_sums = low.apply::<NOT_NEGATIVE>(_mm256_add_epi32(low_sums, term));
                let high_sums = high.apply::<NOT_NEGATIVE>(_mm256_add_epi32(high_sums, term));
                store_bytes(&mut out[first..first + used], bounds.bytes(low_sums, high_sums));
            }
        }
    }
}

/// The range of stored values, and the zero point, with 16 bits each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    low: __m256i,
    high: __m256i,
    zero_point: __m256i,
}

impl Bounds {
    /// Those of all channels.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn new(rules: Channels<'_>) -> Self {
        let wide = |bound: i32| _mm256_broadcastw_epi16(_mm_cvtsi32_si128(bound));
        Bounds { low: wide(rules.low), high: wide(rules.high), zero_point: wide(rules.zero_point) }
    }

    /// Stored values of 16 channels, from rescaled sums of the first 8 and the others.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn bytes(&self, low_values: __m256i, high_values: __m256i) -> __m128i {
        // Packing takes four channels of one register and four of the other by turns.
        _mm_shuffle_epi32::<0b11_01_10_00>(self.mixed_bytes(low_values, high_values))
    }

    /// As [`Bounds::bytes`] in the order that packing leaves: channels 0 to 3 and 8 to 11 from the first
    /// register, and the others from the second, make 0 to 15.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn mixed_bytes(&self, low_values: __m256i, high_values: __m256i) -> __m128i {
        // Saturates at 16 bits, beyond which everything is clamped anyway: bounds are below 2^9.
        let values = _mm256_packs_epi32(low_values, high_values);
        let values = _mm256_min_epi16(_mm256_max_epi16(values, self.low), self.high);
        let values = _mm256_add_epi16(values, self.zero_point);
        let values = _mm256_and_si256(values, _mm256_set1_epi16(0xFF));
        _mm_packus_epi16(_mm256_castsi256_si128(values), _mm256_extracti128_si256::<1>(values))
    }
}
