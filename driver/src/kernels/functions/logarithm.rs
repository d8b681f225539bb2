//! The natural logarithm.

use super::{LN_2_HIGH, LN_2_LOW, apply};

/// The lowest fraction, `sqrt(1/2)`: fractions go from it to twice as much, around 1.
const LOWEST_FRACTION: i32 = 0x3f35_04f3;

/// Bits of a fraction in a number of 32 bits.
const FRACTION_BITS: i32 = 23;

/// `ln x` within one unit in the last place: minus infinity for 0, NaN below and for
/// NaN.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    // Numbers that have no leading bit get one.
    let is_tiny = x < f32::MIN_POSITIVE;
    let normal = if is_tiny { x * 8_388_608.0 } else { x }; // 2^23
    let lifted = if is_tiny { 23.0 } else { 0.0 };
    // x = 2^exponent (1 + f), f between -0.293 and 0.414.
    let bits = normal.to_bits().cast_signed();
    let exponent = bits.wrapping_sub(LOWEST_FRACTION) >> FRACTION_BITS;
    let fraction = bits.wrapping_sub(exponent << FRACTION_BITS);
    let f = f32::from_bits(fraction.cast_unsigned()) - 1.0;
    #[allow(clippy::cast_precision_loss, reason = "exponents have 8 bits")]
    let exponent = exponent as f32 - lifted;
    // ln(1 + f) = f - f^2 / 2 + f^3 p(f), where p makes the largest relative difference as small as it can be: 2^-27.
    let p = -0.076_344_3;
    let p = p * f + 0.127_615_5;
    let p = p * f - 0.131_601_94;
    let p = p * f + 0.142_017_62;
    let p = p * f - 0.166_233_57;
    let p = p * f + 0.200_012_27;
    let p = p * f - 0.250_008_23;
    let p = p * f + 0.333_333_3;
    let square = f * f;
    let rest = p * square * f + exponent * LN_2_LOW - 0.5 * square;
    let value = f + rest + exponent * LN_2_HIGH;
    let value = if x < f32::INFINITY { value } else { x };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x < 0.0 { f32::NAN } else { value }
}

/// The logarithm of each value.
#[inline(always)]
pub(crate) fn ln_all(values: &[f32], out: &mut [f32]) {
    apply(ln, values, out);
}
