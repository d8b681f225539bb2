//! The exact rescaling of sums to stored values, for NEON. Its [`Rules`] also end the products of other
//! families, whose sums need not leave the registers before.

use core::arch::aarch64::*;

use super::portable::Channels;
use crate::kernels::quant::Rounding;
use crate::kernels::simd::neon::{LANES, load_i32s, store_16_bytes};

/// Rows of sums that share one reading of the rules.
const ROWS: usize = 16;

/// Channels that are rescaled side by side: as many as a register of bytes holds.
const WIDTH: usize = 4 * LANES;

/// The rules of 4 channels, in registers.
///
/// The doubled product with its upper half rounded is an instruction; it saturates for the smallest number times
/// itself only, and multipliers are not negative. The shift that rounds takes ties upwards, where the rule takes
/// them away from zero: numbers below 0 are made less by 1 first, where there is a shift at all. Where products are
/// rounded once, the same is done to all 64 bits of the product.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Added to each channel's sum first.
    pub(crate) bias: int32x4_t,
    multipliers: int32x4_t,
    left: int32x4_t,
    /// The right shifts as shifts to the left, below 0.
    minus_right: int32x4_t,
    rounds_once: bool,
}

impl Rules {
    /// The rules of the channels from `first` on; where there are less than 4, any for the others.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn new(rules: Channels<'_>, first: usize) -> Self {
        Rules {
            bias: load_i32s(rules.bias, first),
            multipliers: load_i32s(rules.multipliers, first),
            left: load_i32s(rules.left_shifts, first),
            minus_right: vnegq_s32(load_i32s(rules.right_shifts, first)),
            rounds_once: rules.rounding == Rounding::Once,
        }
    }

    /// Sums with their bias in them, times the multipliers, rounded as the rules say. Where results below 0
    /// are of no interest, `NOT_NEGATIVE` gives any that are not above 0 for them.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn apply<const NOT_NEGATIVE: bool>(&self, sums: int32x4_t) -> int32x4_t {
        // Saturates: what does not fit is beyond all bounds, and is not to come out as something else.
        let sums = vqshlq_s32(sums, self.left);
        if self.rounds_once {
            return self.rounded_once(sums);
        }
        let mut high = vqrdmulhq_s32(sums, self.multipliers);
        if !NOT_NEGATIVE {
            // The sign bit of both: -1 for numbers below 0 that are shifted. The smallest number stays: its
            // quotients are exact.
            let down = vshrq_n_s32::<31>(vandq_s32(high, self.minus_right));
            high = vqaddq_s32(high, down);
        }
        vrshlq_s32(high, self.minus_right)
    }

    /// Products of 64 bits, below 2^62, shifted right by 31 bits and those of the rules at once.
    #[inline]
    #[target_feature(enable = "neon")]
    fn rounded_once(&self, sums: int32x4_t) -> int32x4_t {
        let shift = vsubq_s32(self.minus_right, vdupq_n_s32(31));
        let low = vmull_s32(vget_low_s32(sums), vget_low_s32(self.multipliers));
        let high = vmull_high_s32(sums, self.multipliers);
        let low = rounding_shift(low, vmovl_s32(vget_low_s32(shift)));
        let high = rounding_shift(high, vmovl_high_s32(shift));
        vmovn_high_s64(vmovn_s64(low), high)
    }
}

/// Numbers shifted by so many bits to the left, which are below 0: to the right, with ties away from zero.
#[inline]
#[target_feature(enable = "neon")]
fn rounding_shift(numbers: int64x2_t, minus_right: int64x2_t) -> int64x2_t {
    let down = vshrq_n_s64::<63>(numbers);
    vrshlq_s64(vaddq_s64(numbers, down), minus_right)
}

/// As [`Channels::rows`].
#[target_feature(enable = "neon")]
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

#[target_feature(enable = "neon")]
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
        for first in (0..width).step_by(WIDTH) {
            let used = (width - first).min(WIDTH);
            let mut parts = [Rules::new(rules, first); WIDTH / LANES];
            for (index, part) in parts.iter_mut().enumerate().skip(1) {
                *part = Rules::new(rules, first + index * LANES);
            }
            for (row, (sums, out)) in
                sums.chunks_exact(width).zip(out.chunks_exact_mut(width)).enumerate()
            {
                let term = row_terms.get(group * ROWS + row).copied().unwrap_or(0);
                let mut values = [vdupq_n_s32(term); WIDTH / LANES];
                for (index, (value, part)) in values.iter_mut().zip(&parts).enumerate() {
                    let sums = vaddq_s32(load_i32s(sums, first + index * LANES), part.bias);
                    *value = part.apply::<NOT_NEGATIVE>(vaddq_s32(sums, *value));
                }
                store_16_bytes(&mut out[first..first + used], bounds.bytes(values));
            }
        }
    }
}

/// The range of stored values, and the zero point, with 16 bits each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    low: int16x8_t,
    high: int16x8_t,
    zero_point: int16x8_t,
}

impl Bounds {
    /// Those of all channels.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn new(rules: Channels<'_>) -> Self {
        // Each is below 2^9 but for its sign.
        let narrow = |bound: i32| vreinterpretq_s16_s32(vdupq_n_s32(bound));
        let wide = |bound: i32| vdupq_lane_s16::<0>(vget_low_s16(narrow(bound)));
        Bounds { low: wide(rules.low), high: wide(rules.high), zero_point: wide(rules.zero_point) }
    }

    /// Stored values of 16 channels, from rescaled sums.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn bytes(&self, values: [int32x4_t; 4]) -> uint8x16_t {
        let [a, b, c, d] = values;
        vcombine_u8(self.half_of_bytes([a, b]), self.half_of_bytes([c, d]))
    }

    /// Stored values of 8 channels, from rescaled sums.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn half_of_bytes(&self, [low, high]: [int32x4_t; 2]) -> uint8x8_t {
        // Saturates at 16 bits, beyond which everything is clamped anyway: bounds are below 2^9.
        let values = vqmovn_high_s32(vqmovn_s32(low), high);
        let values = vminq_s16(vmaxq_s16(values, self.low), self.high);
        vmovn_u16(vreinterpretq_u16_s16(vaddq_s16(values, self.zero_point)))
    }
}
