//! The exact rescaling of sums to stored values. Its [`Rules`] also end the products of other families,
//! whose sums need not leave the registers before.

use core::arch::x86_64::*;
use std::ops::Range;

use super::portable::Channels;
use crate::kernels::quant::Rounding;
use crate::kernels::simd::avx512::{
    LANES, Lanes16, Lanes32, load_i32s, store_16_bytes, store_32_bytes, store_64_bytes,
};

/// How sums become stored values. Where the rules, or what is known of the sums, leave less to do than [`ANY`] does, the
/// stored values are the same.
pub(crate) type Ending = u8;

/// Nothing below real 0 is stored, and every channel's product is shifted right: negative sums need no care.
pub(crate) const NOT_NEGATIVE: Ending = 0;

/// Rounded twice, every channel's product is shifted right, and sums with their bias are below 2^30 in size.
pub(crate) const SMALL: Ending = 1;

/// Any rules and sums.
pub(crate) const ANY: Ending = 2;

/// What products of `depth` pairs of bytes, and a row's term for their zero point, are together at most in size.
pub(crate) fn largest_sum(depth: usize) -> usize {
    depth.saturating_mul(2 * 255 * 255)
}

/// The rules of 16 channels, in registers.
///
/// *Any*: the doubled product `2 * x * m`, plus `2^31`, has the rounded result in its upper half. `2 * m` is
/// below `2^32` but may not fit a signed number: for `x` of either sign the product is then
/// taken with `2 * m - 2^32`, and `x` added to the upper half makes up for it. Where products are rounded once, half of
/// what both steps divide by is added to the product of the absolute value, which then gets the sign back.
///
/// *Small*: the same, with what rounds the shift by `e` added to the upper half before: `2^(e - 1)`, and one less for
/// negative `x`, so that ties go away from zero.
///
/// *Not negative*: `x * m` plus all that rounds, `2^30` and `2^(30 + e)`, shifted right by `31 + e` in one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Added to each channel's sum first.
    pub(crate) bias: __m512i,
    /// Twice the multipliers, modulo 2^32; for [`NOT_NEGATIVE`] the multipliers themselves.
    multipliers: __m512i,
    /// Those of odd channels, moved to even lanes.
    odd_multipliers: __m512i,
    /// Channels where twice the multiplier is not below 2^31.
    wrapped: __mmask16,
    left: __m512i,
    /// Whether any channel is shifted left; only [`ANY`] does it.
    shifts_left: bool,
    /// By how much the upper half is shifted.
    right: __m512i,
    /// Added to products of even and odd channels.
    nudges: [__m512i; 2],
    /// Bits that the right shift drops.
    dropped: __m512i,
    rounds_once: bool,
}

impl Rules {
    /// The ending that all of these channels may have, where sums without their bias are at most `largest` in size.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn ending(rules: Channels<'_>, channels: Range<usize>, largest: usize) -> Ending {
        let Range { start, end } = channels;
        let firsts = (start..end).step_by(LANES);
        let endings = firsts.map(|first| {
            Self::ending_of_lanes(rules, first, Lanes16::holding(first, end), largest)
        });
        endings.fold(NOT_NEGATIVE, Ending::max)
    }

    /// As [`Rules::ending`], of the channels from `first` on that are in `lanes`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn ending_of_lanes(
        rules: Channels<'_>,
        first: usize,
        lanes: Lanes16,
        largest: usize,
    ) -> Ending {
        let multipliers = load_i32s(rules.multipliers, first, lanes);
        let left = load_i32s(rules.left_shifts, first, lanes);
        let right = load_i32s(rules.right_shifts, first, lanes);
        let is_zero = _mm512_testn_epi32_mask(multipliers, multipliers);
        let is_whole = _mm512_cmpge_epi32_mask(multipliers, _mm512_set1_epi32(1 << 30));
        // From 1 to 30; where there is no shift, one less is the largest of all numbers.
        let one_less = _mm512_sub_epi32(right, _mm512_set1_epi32(1));
        let is_shifted = _mm512_cmplt_epu32_mask(one_less, _mm512_set1_epi32(30));
        let is_plain = is_whole & is_shifted | is_zero & _mm512_testn_epi32_mask(right, right);
        if is_plain & _mm512_testn_epi32_mask(left, left) != !0 {
            return ANY;
        }
        if rules.low >= 0 {
            return NOT_NEGATIVE;
        }
        let room = (1_usize << 30).saturating_sub(largest).try_into().unwrap_or(0);
        let bias = _mm512_abs_epi32(load_i32s(rules.bias, first, lanes));
        let is_small = _mm512_cmplt_epu32_mask(bias, _mm512_set1_epi32(room)) == !0;
        if is_small && rules.rounding == Rounding::Twice { SMALL } else { ANY }
    }

    /// The rules of the channels from `first` on that are in `lanes`, for [`Rules::apply`] with an ending that they
    /// may have.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn new(ending: Ending, rules: Channels<'_>, first: usize, lanes: Lanes16) -> Self {
        let mut block = Self::zero();
        block.set(ending, rules, first, lanes);
        block
    }

    /// Room for rules.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn zero() -> Self {
        let zero = _mm512_setzero_si512();
        Rules {
            bias: zero,
            multipliers: zero,
            odd_multipliers: zero,
            wrapped: 0,
            left: zero,
            shifts_left: false,
            right: zero,
            nudges: [zero; 2],
            dropped: zero,
            rounds_once: false,
        }
    }

    /// As [`Rules::new`], where they are to lie: they are too many to be moved for a few rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn set(
        &mut self,
        ending: Ending,
        rules: Channels<'_>,
        first: usize,
        lanes: Lanes16,
    ) {
        let one = _mm512_set1_epi32(1);
        let multipliers = load_i32s(rules.multipliers, first, lanes);
        let right = load_i32s(rules.right_shifts, first, lanes);
        self.bias = load_i32s(rules.bias, first, lanes);
        self.rounds_once = rules.rounding == Rounding::Once;
        self.multipliers = _mm512_add_epi32(multipliers, multipliers);
        self.right = right;
        match ending {
            NOT_NEGATIVE => {
                self.nudges = nudges(right, if self.rounds_once { 0 } else { 1 << 30 }, 30);
                self.multipliers = multipliers;
                self.right = _mm512_sub_epi32(right, one);
            }
            SMALL => self.nudges = nudges(right, 1 << 31, 31),
            _ => {
                self.left = load_i32s(rules.left_shifts, first, lanes);
                self.shifts_left = _mm512_test_epi32_mask(self.left, self.left) != 0;
                self.dropped = _mm512_sub_epi32(_mm512_sllv_epi32(one, right), one);
                self.nudges = [_mm512_set1_epi64(1 << 31); 2];
                if self.rounds_once {
                    // The product's own half, where nothing is shifted after it; else only the shift's.
                    let is_not_shifted = _mm512_testn_epi32_mask(right, right);
                    let own = _mm512_maskz_set1_epi32(is_not_shifted, i32::MIN);
                    let [even, odd] = nudges(right, 0, 31);
                    let even = _mm512_or_si512(even, _mm512_maskz_mov_epi32(!ODD, own));
                    self.nudges = [even, _mm512_or_si512(odd, _mm512_srli_epi64::<32>(own))];
                }
            }
        }
        self.odd_multipliers = _mm512_srli_epi64::<32>(self.multipliers);
        self.wrapped = _mm512_movepi32_mask(self.multipliers);
    }

    /// Sums with their bias in them, times the multipliers, rounded as the rules say. With [`NOT_NEGATIVE`] what is to be
    /// below 0 is some number below 0, or 0: both are stored as real 0 or what lies above it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(crate) fn apply<const ENDING: Ending>(&self, sums: __m512i) -> __m512i {
        match ENDING {
            NOT_NEGATIVE => _mm512_srav_epi32(self.upper_halves(sums), self.right),
            SMALL => {
                let sign = _mm512_srai_epi32::<31>(sums);
                let high = self.upper_halves(sums);
                let sums = _mm512_add_epi32(sums, sign);
                let high = _mm512_mask_add_epi32(high, self.wrapped, high, sums);
                _mm512_srav_epi32(high, self.right)
            }
            _ => self.any(sums),
        }
    }

    /// See [`ANY`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn any(&self, sums: __m512i) -> __m512i {
        let sums = if self.shifts_left { self.shifted(sums) } else { sums };
        if self.rounds_once {
            // Up to 2^31, without a sign: the upper half is at most 2^31, and half of what the shift divides by
            // at most 2^30.
            let magnitudes = _mm512_abs_epi32(sums);
            let even = _mm512_mul_epu32(magnitudes, self.multipliers);
            let odd = _mm512_mul_epu32(odd_lanes(magnitudes), self.odd_multipliers);
            let values = _mm512_srlv_epi32(self.nudged(even, odd), self.right);
            let is_negative = _mm512_movepi32_mask(sums);
            return _mm512_mask_sub_epi32(values, is_negative, _mm512_setzero_si512(), values);
        }
        let high = self.upper_halves(sums);
        let high = _mm512_mask_add_epi32(high, self.wrapped, high, sums);
        let remainder = _mm512_and_si512(high, self.dropped);
        let is_negative = _mm512_srai_epi32::<31>(high);
        let threshold = _mm512_sub_epi32(_mm512_srli_epi32::<1>(self.dropped), is_negative);
        let rounds_up = _mm512_cmpgt_epi32_mask(remainder, threshold);
        let quotient = _mm512_srav_epi32(high, self.right);
        _mm512_mask_add_epi32(quotient, rounds_up, quotient, _mm512_set1_epi32(1))
    }

    /// Sums shifted left. What does not fit stays as large as the shift allows, and so beyond all bounds.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn shifted(&self, sums: __m512i) -> __m512i {
        let largest = _mm512_srlv_epi32(_mm512_set1_epi32(i32::MAX), self.left);
        let smallest = _mm512_xor_si512(largest, _mm512_set1_epi32(-1));
        let held = _mm512_max_epi32(_mm512_min_epi32(sums, largest), smallest);
        _mm512_sllv_epi32(held, self.left)
    }

    /// The upper halves of products with the multipliers, nudged.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn upper_halves(&self, sums: __m512i) -> __m512i {
        let even = _mm512_mul_epi32(sums, self.multipliers);
        let odd = _mm512_mul_epi32(odd_lanes(sums), self.odd_multipliers);
        self.nudged(even, odd)
    }

    /// The upper halves of products of even and odd channels, nudged.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn nudged(&self, even: __m512i, odd: __m512i) -> __m512i {
        let even = _mm512_add_epi64(even, self.nudges[0]);
        let odd = _mm512_add_epi64(odd, self.nudges[1]);
        _mm512_mask_shuffle_epi32::<UPPER>(odd, !ODD, even)
    }
}

/// `start`, and where channels are shifted right by `e`, `2^(at + e)` besides: for even and for odd channels.
#[inline]
#[target_feature(enable = "avx512f")]
fn nudges(right: __m512i, start: i64, at: i64) -> [__m512i; 2] {
    let even = _mm512_maskz_mov_epi32(!ODD, right);
    [even, _mm512_srli_epi64::<32>(right)].map(|right| {
        let is_shifted = _mm512_test_epi64_mask(right, right);
        let place = _mm512_add_epi64(right, _mm512_set1_epi64(at));
        let half = _mm512_maskz_sllv_epi64(is_shifted, _mm512_set1_epi64(1), place);
        _mm512_add_epi64(half, _mm512_set1_epi64(start))
    })
}

/// Every second lane, from lane 1 on.
const ODD: __mmask16 = 0xAAAA;

/// Takes lanes 1, 1, 3, 3 of each four.
const UPPER: i32 = 0b11_11_01_01;

/// The odd lanes, in even lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn odd_lanes(values: __m512i) -> __m512i {
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
    let width = rules.bias.len();
    for first in (0..width).step_by(LANES) {
        let lanes = Lanes16::holding(first, width);
        // Nothing is known of the sums.
        let block = (first, lanes);
        if Rules::ending_of_lanes(rules, first, lanes, usize::MAX) == NOT_NEGATIVE {
            requantize::<NOT_NEGATIVE>(rules, block, sums, row_terms, out);
        } else {
            requantize::<ANY>(rules, block, sums, row_terms, out);
        }
    }
}

/// The channels from `first` on that are in `lanes`, of all rows.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn requantize<const ENDING: Ending>(
    rules: Channels<'_>,
    (first, lanes): (usize, Lanes16),
    sums: &[i32],
    row_terms: &[i32],
    out: &mut [u8],
) {
    let width = rules.bias.len();
    let bounds = Bounds::new(rules);
    let block = Rules::new(ENDING, rules, first, lanes);
    let rows = sums.chunks_exact(width).zip(out.chunks_exact_mut(width));
    for (row, (sums, out)) in rows.enumerate() {
        let term = row_terms.get(row).copied().unwrap_or(0);
        let sums = _mm512_add_epi32(load_i32s(sums, first, lanes), _mm512_set1_epi32(term));
        let values = block.apply::<ENDING>(_mm512_add_epi32(sums, block.bias));
        store_16_bytes(&mut out[first..], lanes, bounds.bytes(values));
    }
}

/// The range of stored values, and the zero point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    low: __m512i,
    high: __m512i,
    zero_point: __m512i,
    /// What follows is signed: of types without a sign 128 less.
    narrow_zero_point: __m512i,
    /// Makes the types own values of them again.
    flip: __m512i,
    narrow_low: __m512i,
    narrow_high: __m512i,
}

impl Bounds {
    /// Those of all channels.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) fn new(rules: Channels<'_>) -> Self {
        let wide = |value: i32| _mm512_set1_epi32(value);
        let bytes = |value: i32| _mm512_broadcastb_epi8(_mm_cvtsi32_si128(value));
        let words = |value: i32| _mm512_broadcastw_epi16(_mm_cvtsi32_si128(value));
        // Where nothing below 0 is stored, the values fit both, or the type has no sign.
        let middle = if rules.low + rules.zero_point < 0 { 0 } else { 128 };
        let zero_point = rules.zero_point - middle;
        Bounds {
            low: wide(rules.low),
            high: wide(rules.high),
            zero_point: wide(rules.zero_point),
            narrow_zero_point: words(zero_point),
            flip: bytes(middle),
            narrow_low: bytes(rules.low + zero_point),
            narrow_high: bytes(rules.high + zero_point),
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
        if P == 2 {
            // Packing takes four channels of one panel and four of the other by turns.
            let bytes = self.mixed(panel(0), panel(1));
            let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
            let bytes = _mm256_permutevar8x32_epi32(bytes, order);
            return store_32_bytes(out, Lanes32::first(out.len()), bytes);
        }
        let bytes = self.packed([panel(0), panel(1), panel(2), panel(3)]);
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        store_64_bytes(out, _mm512_permutexvar_epi32(order, bytes));
    }

    /// Stored values, from rescaled sums of four panels: of each four in a row of every panel, by turns.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) fn packed(&self, [a, b, c, d]: [__m512i; 4]) -> __m512i {
        let bytes = _mm512_packs_epi16(self.narrowed(a, b), self.narrowed(c, d));
        let bytes = _mm512_min_epi8(_mm512_max_epi8(bytes, self.narrow_low), self.narrow_high);
        _mm512_xor_si512(bytes, self.flip)
    }

    /// Stored values, from rescaled sums of two panels: of each four in a row of the one, then of the other.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(crate) fn mixed(&self, a: __m512i, b: __m512i) -> __m256i {
        let bytes = _mm512_cvtsepi16_epi8(self.narrowed(a, b));
        let low = _mm512_castsi512_si256(self.narrow_low);
        let high = _mm512_castsi512_si256(self.narrow_high);
        let bytes = _mm256_min_epi8(_mm256_max_epi8(bytes, low), high);
        _mm256_xor_si256(bytes, _mm512_castsi512_si256(self.flip))
    }

    /// Values of two panels, mixed, with 16 bits each and their zero point.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn narrowed(&self, a: __m512i, b: __m512i) -> __m512i {
        // What saturates at 16 bits lies beyond all bounds, which are below 2^9.
        _mm512_adds_epi16(_mm512_packs_epi32(a, b), self.narrow_zero_point)
    }

    /// Stored values, from rescaled sums.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn bytes(&self, values: __m512i) -> __m128i {
        let values = _mm512_min_epi32(_mm512_max_epi32(values, self.low), self.high);
        _mm512_cvtepi32_epi8(_mm512_add_epi32(values, self.zero_point))
    }
}
