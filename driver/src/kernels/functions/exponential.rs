//! Powers of e.

use super::{LN_2_HIGH, LN_2_LOW, apply};

/// Adding this to a number of small magnitude leaves its nearest whole number in the lowest bits.
const ROUNDING: f32 = 12_582_912.0; // 1.5 * 2^23

/// The exponent of 1 in a number of 32 bits, and where exponents begin.
const BIAS: u32 = 127;
const EXPONENT: u32 = 23;

/// `x = n ln 2 + r`, `|r| <= ln 2 / 2`, for `x` of small magnitude: `e^r`, and `n` as [`ROUNDING`] leaves it.
#[inline(always)]
fn reduced(x: f32) -> (f32, f32) {
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    let r = x - n * LN_2_HIGH - n * LN_2_LOW;
    // The Taylor polynomial, whose next term is below 2^-26.
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    (p * r * r + r + 1.0, shifted)
}

/// `x`, or the end of the range that it is beyond; NaN stays NaN.
#[inline(always)]
fn held(x: f32, lowest: f32, highest: f32) -> f32 {
    let x = if x < lowest { lowest } else { x };
    if x > highest { highest } else { x }
}

/// `e^x` for `x` from -87 to 88, where it is a normal number, and held there.
#[inline(always)]
pub(super) fn exp_held(x: f32) -> f32 {
    let (fraction, shifted) = reduced(held(x, -87.0, 88.0));
    let power = shifted.to_bits().wrapping_add(BIAS).wrapping_shl(EXPONENT);
    fraction * f32::from_bits(power)
}

/// `e^x`: 0 and infinity at the ends.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Of all below and above, the results are 0 and infinity.
    let (fraction, shifted) = reduced(held(x, -104.0, 89.0));
    // n is from -150 to 128, more than one number has as its exponent, and so two share it.
    let n = shifted.to_bits().wrapping_sub(ROUNDING.to_bits()).cast_signed();
    let half = n >> 1;
    let power =
        |n: i32| f32::from_bits(n.cast_unsigned().wrapping_add(BIAS).wrapping_shl(EXPONENT));
    fraction * power(half) * power(n - half)
}

/// `e` to the power of each value.
#[inline(always)]
pub(crate) fn exp_all(values: &[f32], out: &mut [f32]) {
    apply(exp, values, out);
}
