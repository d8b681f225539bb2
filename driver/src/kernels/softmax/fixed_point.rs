//! The exponential function and the reciprocal in 32-bit fixed point, as quantized SOFTMAX needs
//! them: its answers are defined by this arithmetic, bit for bit.
//!
//! A format "Qi" has `i` integer bits, a sign, and `31 - i` fraction bits. A product of Qa and Qb by
//! [`doubling_high_mul`] is a Q(a + b).

use crate::kernels::quant::{doubling_high_mul, rounding_divide_by_power_of_two};

/// Integer bits of the exponent that [`exp_of_negative`] takes.
pub(crate) const EXP_INTEGER_BITS: i32 = 5;
/// Integer bits of a sum of exponentials.
pub(crate) const SUM_INTEGER_BITS: i32 = 12;

/// `x * 2^exponent` for an exponent above 0, saturating.
fn shift_left(x: i32, exponent: u32) -> i32 {
    let wide = i64::from(x) << exponent;
    i32::try_from(wide).unwrap_or(if x < 0 { i32::MIN } else { i32::MAX })
}

/// `e^x` for `x` in `-1/4..0`, Q0 to Q0: the Taylor polynomial of degree 4 around -1/8.
fn exp_of_small(x: i32) -> i32 {
    const EXP_OF_MINUS_EIGHTH: i32 = 1_895_147_668; // e^(-1/8)
    const THIRD: i32 = 715_827_883;
    let d = x + (1 << 28);
    let d2 = doubling_high_mul(d, d);
    let d3 = doubling_high_mul(d2, d);
    let d4 = doubling_high_mul(d2, d2);
    let high = doubling_high_mul(rounding_divide_by_power_of_two(d4, 2) + d3, THIRD);
    let tail = rounding_divide_by_power_of_two(high + d2, 1);
    EXP_OF_MINUS_EIGHTH + doubling_high_mul(EXP_OF_MINUS_EIGHTH, d + tail)
}

/// `e^x` for a Q5 number `x <= 0`, as Q0.
///
/// The part of `x` below a quarter goes through the polynomial; each bit above multiplies the
/// result by a constant.
#[must_use]
pub(crate) fn exp_of_negative(x: i32) -> i32 {
    /// `e^(-2^k)` in Q0 for k = -2 to 4.
    const FACTORS: [i32; 7] =
        [1_672_461_947, 1_302_514_674, 790_015_084, 290_630_308, 39_332_535, 720_401, 242];
    const QUARTER: i32 = 1 << 24;
    if x == 0 {
        return i32::MAX;
    }
    let below_quarter = (x & (QUARTER - 1)) - QUARTER;
    let rest = below_quarter.wrapping_sub(x);
    let mut result = exp_of_small(shift_left(below_quarter, 5));
    for (bit, factor) in (24..).zip(FACTORS) {
        if rest >> bit & 1 == 1 {
            result = doubling_high_mul(result, factor);
        }
    }
    result
}

/// `1 / (1 + x)` for `x` in 0..1, Q0 to Q0: three Newton steps from a straight line.
fn one_over_one_plus(x: i32) -> i32 {
    const ONE_Q2: i32 = 1 << 29;
    const LINE_START: i32 = 1_515_870_810; // 48/17 in Q2
    const LINE_SLOPE: i32 = -1_010_580_540; // -32/17 in Q2
    let half_denominator = half_sum(x, i32::MAX);
    let mut guess = LINE_START + doubling_high_mul(half_denominator, LINE_SLOPE);
    for _ in 0..3 {
        let error = ONE_Q2 - doubling_high_mul(half_denominator, guess);
        guess += shift_left(doubling_high_mul(guess, error), 2);
    }
    // Half of it, as Q2, is the same number as Q1; one more bit to the left makes it Q0.
    shift_left(guess, 1)
}

/// `(a + b) / 2`, rounded with ties away from zero.
fn half_sum(a: i32, b: i32) -> i32 {
    let sum = i64::from(a) + i64::from(b);
    let away = if sum < 0 { -1 } else { 1 };
    i32::try_from((sum + away) / 2).unwrap_or(i32::MAX)
}

/// The reciprocal of a Q12 number above 0, as a Q0 fraction and the power of two that the
/// reciprocal is smaller by.
#[must_use]
pub(crate) fn reciprocal(x: i32) -> (i32, i32) {
    let zeros = x.leading_zeros();
    // `x` is (1 + fraction) * 2^bits; shifting its leading one out leaves the fraction.
    let fraction = (x.cast_unsigned() << zeros).wrapping_sub(1 << 31).cast_signed();
    let bits = SUM_INTEGER_BITS - i32::try_from(zeros).unwrap_or(32);
    (one_over_one_plus(fraction), bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(x: i32, integer_bits: i32) -> f64 {
        f64::from(x) / 2f64.powi(31 - integer_bits)
    }

    #[test]
    fn exponentials_are_right_as_far_as_the_polynomial_goes() {
        for step in 0..=31_000 {
            let x = f64::from(step) / -1000.0;
            #[allow(clippy::cast_possible_truncation, reason = "at most 31 * 2^26")]
            let fixed = (x * 2f64.powi(26)) as i32;
            let got = real(exp_of_negative(fixed), 0);
            // What the polynomial leaves out is at most (1/8)^5 / 5!.
            assert!((got - x.exp()).abs() < 2.6e-7, "e^{x} = {got}");
        }
    }

    #[test]
    fn reciprocals_are_right_to_seven_digits() {
        for x in [1 << 19, (1 << 19) + 1, 3 << 18, 12_345_678, 1 << 30, i32::MAX] {
            let (fraction, bits) = reciprocal(x);
            let got = real(fraction, 0) / 2f64.powi(bits);
            let want = 1.0 / real(x, SUM_INTEGER_BITS);
            assert!((got / want - 1.0).abs() < 1e-7, "1 / {x}: {got}, {want}");
        }
    }

    #[test]
    fn shifts_saturate() {
        assert_eq!(shift_left(1 << 30, 1), i32::MAX);
        assert_eq!(shift_left(-(1 << 30) - 1, 1), i32::MIN);
        assert_eq!(shift_left(-3, 2), -12);
    }
}
