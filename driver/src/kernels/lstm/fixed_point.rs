//! The logistic function and the hyperbolic tangent in 16-bit fixed point, as quantized LSTM cells
//! need them: the answers of those are defined by this arithmetic, bit for bit.
//!
//! A format "Qi" has `i` integer bits, a sign, and `15 - i` fraction bits. A product of Qa and Qb by
//! [`high_mul`] is a Q(a + b).

#![allow(
    clippy::cast_possible_truncation,
    reason = "results are 16-bit by the argument at each step, or saturated before"
)]

use crate::kernels::quant::rounding_divide_by_power_of_two;

/// Integer bits of what gates are computed from.
pub(crate) const GATE_INTEGER_BITS: u32 = 3;

/// The nearest number in 16 bits.
#[inline]
#[must_use]
pub(crate) fn saturate(x: i32) -> i16 {
    x.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// The high 16 bits of `2 * a * b`, rounded; saturates in the one case that overflows.
#[inline]
#[must_use]
pub(crate) fn high_mul(a: i16, b: i16) -> i16 {
    wide::high_mul(a.into(), b.into()) as i16
}

/// `x * 2^bits`, saturating.
#[inline]
#[must_use]
pub(crate) fn shift_left(x: i16, bits: u32) -> i16 {
    saturate(i32::from(x) << bits)
}

/// `x / 2^bits`, rounded with ties away from zero.
#[inline]
#[must_use]
pub(crate) fn shift_right(x: i16, bits: i32) -> i16 {
    rounding_divide_by_power_of_two(x.into(), bits) as i16
}

/// `1 / (1 + e^-x)`, Q3 to Q0.
#[must_use]
pub(crate) fn logistic(x: i16) -> i16 {
    wide::logistic(x.into()) as i16
}

/// The hyperbolic tangent of a number with 0 to 6 integer bits, as Q0.
#[must_use]
pub(crate) fn tanh(x: i16, integer_bits: u32) -> i16 {
    wide::tanh(x.into(), integer_bits) as i16
}

/// Numbers that a loop over an array takes at a time.
const LANES: usize = 16;

/// [`logistic`] of numbers that are first held in 16 bits. There has to be a multiple of [`LANES`] of them:
/// those behind are left as they are.
#[inline(always)]
pub(super) fn logistic_all(values: &mut [i32]) {
    for lanes in values.as_chunks_mut::<LANES>().0 {
        for value in lanes {
            *value = wide::logistic(wide::saturate(*value));
        }
    }
}

/// [`tanh`], as [`logistic_all`].
#[inline(always)]
pub(super) fn tanh_all(values: &mut [i32], integer_bits: u32) {
    for lanes in values.as_chunks_mut::<LANES>().0 {
        for value in lanes {
            *value = wide::tanh(wide::saturate(*value), integer_bits);
        }
    }
}

/// So many numbers that loops over an array leave none out.
#[must_use]
pub(super) const fn whole_lanes(count: usize) -> usize {
    count.next_multiple_of(LANES)
}

/// The functions on numbers of 16 bits that are held in 32: choices rather than branches, so that a loop over
/// an array becomes one over vectors.
mod wide {
    use crate::kernels::quant::rounding_divide_by_power_of_two;

    /// The number nearest to 1 in Q0.
    const ONE: i32 = i16::MAX as i32;

    #[inline(always)]
    pub(super) fn saturate(x: i32) -> i32 {
        x.clamp(i16::MIN as i32, i16::MAX as i32)
    }

    #[inline(always)]
    pub(super) fn high_mul(a: i32, b: i32) -> i32 {
        let product = a * b;
        let nudge = if product >= 0 { 1 << 14 } else { 1 - (1 << 14) };
        saturate((product + nudge) / (1 << 15))
    }

    /// `e^x` for `x` in `-1/4..0`, Q0 to Q0: the Taylor polynomial of degree 4 around -1/8.
    #[inline(always)]
    fn exp_of_small(x: i32) -> i32 {
        const EXP_OF_MINUS_EIGHTH: i32 = 28_918; // e^(-1/8)
        const THIRD: i32 = 10_923;
        let d = x + (1 << 12);
        let d2 = high_mul(d, d);
        let d3 = high_mul(d2, d);
        let d4 = high_mul(d2, d2);
        let high = high_mul(rounding_divide_by_power_of_two(d4, 2) + d3, THIRD);
        let tail = rounding_divide_by_power_of_two(high + d2, 1);
        saturate(EXP_OF_MINUS_EIGHTH + high_mul(EXP_OF_MINUS_EIGHTH, d + tail))
    }

    /// `e^x` for `x <= 0` with 1 to 7 integer bits, as Q0.
    ///
    /// The part of `x` below a quarter goes through the polynomial; each bit above multiplies the
    /// result by a constant.
    #[inline(always)]
    fn exp_of_negative(x: i32, integer_bits: u32) -> i32 {
        /// `e^(-2^k)` in Q0 for k = -2 to 4.
        const FACTORS: [i32; 7] = [25_520, 19_875, 12_055, 4_435, 600, 11, 0];
        let first = 13 - integer_bits;
        let quarter = 1 << first;
        let below_quarter = (x & (quarter - 1)) - quarter;
        let rest = below_quarter - x;
        let mut result = exp_of_small(saturate(below_quarter << integer_bits));
        for (bit, factor) in (first..).zip(FACTORS) {
            // Bit 15 is the sign; numbers with fewer integer bits have no bit for the last factors.
            let is_set = bit < 15 && rest >> (bit % 32) & 1 == 1;
            let multiplied = high_mul(result, factor);
            result = if is_set { multiplied } else { result };
        }
        // Q7 goes to -128, of which e^x is 0 long before; no bit above 16 is read.
        let is_far = integer_bits > 5 && x < -(32 << (15 - integer_bits));
        let result = if is_far { 0 } else { result };
        if x == 0 { ONE } else { result }
    }

    /// `1 / ((1 + x) / 2)` for `x` in 0..1, Q0 to Q2: three Newton steps from a straight line.
    #[inline(always)]
    fn reciprocal_of_mean_with_one(x: i32) -> i32 {
        const ONE_Q2: i32 = 1 << 13;
        const LINE_START: i32 = 23_130; // 48/17 in Q2
        const LINE_SLOPE: i32 = -15_420; // -32/17 in Q2
        let half_denominator = (x + ONE + 1) / 2;
        let mut guess = LINE_START + high_mul(half_denominator, LINE_SLOPE);
        for _ in 0..3 {
            let error = ONE_Q2 - high_mul(half_denominator, guess);
            guess += saturate(high_mul(guess, error) << 2);
        }
        guess
    }

    #[inline(always)]
    pub(super) fn logistic(x: i32) -> i32 {
        // Minus the magnitude, which the most negative number has too.
        let exp = exp_of_negative(if x > 0 { -x } else { x }, super::GATE_INTEGER_BITS);
        // Half of a Q2 is the same number as Q1; one more bit to the left makes it Q0.
        let positive = saturate(reciprocal_of_mean_with_one(exp) << 1);
        let either = if x > 0 { positive } else { ONE - positive };
        if x == 0 { 1 << 14 } else { either }
    }

    #[inline(always)]
    pub(super) fn tanh(x: i32, integer_bits: u32) -> i32 {
        // (1 - e^-2x) / (1 + e^-2x); doubling is reading with one more integer bit.
        let exp = exp_of_negative(if x > 0 { -x } else { x }, integer_bits + 1);
        let magnitude = saturate((reciprocal_of_mean_with_one(exp) - (1 << 13)) << 2);
        let either = if x > 0 { magnitude } else { -magnitude };
        if x == 0 { 0 } else { either }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number nearest to 1 in Q0.
    const ONE: i16 = i16::MAX;

    /// The same functions as they are read most easily: with branches, on numbers of 16 bits.
    mod plainly {
        use super::super::{GATE_INTEGER_BITS, high_mul, shift_left, shift_right};
        use super::ONE;

        /// `e^x` for `x` in `-1/4..0`, Q0 to Q0: the Taylor polynomial of degree 4 around -1/8.
        fn exp_of_small(x: i16) -> i16 {
            const EXP_OF_MINUS_EIGHTH: i16 = 28_918; // e^(-1/8)
            const THIRD: i16 = 10_923;
            let d = x + (1 << 12);
            let d2 = high_mul(d, d);
            let d3 = high_mul(d2, d);
            let d4 = high_mul(d2, d2);
            let high = high_mul(shift_right(d4, 2) + d3, THIRD);
            let tail = shift_right(high + d2, 1);
            EXP_OF_MINUS_EIGHTH.saturating_add(high_mul(EXP_OF_MINUS_EIGHTH, d + tail))
        }

        /// `e^x` for `x <= 0` with 1 to 7 integer bits, as Q0.
        ///
        /// The part of `x` below a quarter goes through the polynomial; each bit above multiplies the
        /// result by a constant.
        fn exp_of_negative(x: i16, integer_bits: u32) -> i16 {
            /// `e^(-2^k)` in Q0 for k = -2 to 4.
            const FACTORS: [i16; 7] = [25_520, 19_875, 12_055, 4_435, 600, 11, 0];
            if x == 0 {
                return ONE;
            }
            // Q7 goes to -128, of which e^x is 0 long before; no bit above 16 is read.
            if integer_bits > 5 && i32::from(x) < -(32 << (15 - integer_bits)) {
                return 0;
            }
            let quarter = 1i16 << (13 - integer_bits);
            let below_quarter = (x & (quarter - 1)) - quarter;
            let rest = i32::from(below_quarter) - i32::from(x);
            let mut result = exp_of_small(shift_left(below_quarter, integer_bits));
            for (bit, factor) in (13 - integer_bits..15).zip(FACTORS) {
                if rest >> bit & 1 == 1 {
                    result = high_mul(result, factor);
                }
            }
            result
        }

        /// `1 / ((1 + x) / 2)` for `x` in 0..1, Q0 to Q2: three Newton steps from a straight line.
        fn reciprocal_of_mean_with_one(x: i16) -> i16 {
            const ONE_Q2: i16 = 1 << 13;
            const LINE_START: i16 = 23_130; // 48/17 in Q2
            const LINE_SLOPE: i16 = -15_420; // -32/17 in Q2
            let half_denominator = ((i32::from(x) + i32::from(ONE) + 1) / 2) as i16;
            let mut guess = LINE_START + high_mul(half_denominator, LINE_SLOPE);
            for _ in 0..3 {
                let error = ONE_Q2 - high_mul(half_denominator, guess);
                guess += shift_left(high_mul(guess, error), 2);
            }
            guess
        }

        /// `1 / (1 + e^-x)`, Q3 to Q0.
        pub(super) fn logistic(x: i16) -> i16 {
            if x == 0 {
                return 1 << 14;
            }
            // Minus the magnitude, which the most negative number has too.
            let exp = exp_of_negative(if x > 0 { -x } else { x }, GATE_INTEGER_BITS);
            // Half of a Q2 is the same number as Q1; one more bit to the left makes it Q0.
            let positive = shift_left(reciprocal_of_mean_with_one(exp), 1);
            if x > 0 { positive } else { ONE - positive }
        }

        /// The hyperbolic tangent of a number with 0 to 6 integer bits, as Q0.
        pub(super) fn tanh(x: i16, integer_bits: u32) -> i16 {
            if x == 0 {
                return 0;
            }
            // (1 - e^-2x) / (1 + e^-2x); doubling is reading with one more integer bit.
            let exp = exp_of_negative(if x > 0 { -x } else { x }, integer_bits + 1);
            let magnitude = shift_left(reciprocal_of_mean_with_one(exp) - (1 << 13), 2);
            if x > 0 { magnitude } else { -magnitude }
        }
    }

    #[test]
    fn choices_give_what_branches_give() {
        for x in i16::MIN..=i16::MAX {
            assert_eq!(logistic(x), plainly::logistic(x), "{x}");
            for integer_bits in 0..=6 {
                let (got, want) = (tanh(x, integer_bits), plainly::tanh(x, integer_bits));
                assert_eq!(got, want, "{x} with {integer_bits} integer bits");
            }
        }
    }

    #[test]
    fn all_of_an_array_are_what_each_is_by_itself() {
        let numbers = [0, 1, -1, 4096, -4096, 32_767, -32_768, 99_999, -99_999, i32::MIN, i32::MAX];
        let mut values: Vec<i32> = numbers.iter().copied().cycle().take(whole_lanes(17)).collect();
        let before = values.clone();
        logistic_all(&mut values);
        for (value, before) in values.iter().zip(&before) {
            assert_eq!(*value, i32::from(logistic(saturate(*before))), "{before}");
        }
        let mut values = before.clone();
        tanh_all(&mut values, 4);
        for (value, before) in values.iter().zip(&before) {
            assert_eq!(*value, i32::from(tanh(saturate(*before), 4)), "{before}");
        }
    }

    /// Largest difference, in steps of 2^-15, from the real function over all 65,536 numbers.
    fn furthest(
        function: impl Fn(i16) -> i16,
        real: impl Fn(f64) -> f64,
        integer_bits: i32,
    ) -> f64 {
        (i16::MIN..=i16::MAX)
            .map(|x| {
                let want = real(f64::from(x) * 2f64.powi(integer_bits - 15)) * 32768.0;
                (f64::from(function(x)) - want).abs()
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_right_to_a_few_steps() {
        let logistic_error = furthest(logistic, |x| 1.0 / (1.0 + (-x).exp()), 3);
        assert!(logistic_error < 12.0, "{logistic_error}");
        for integer_bits in 0..=6 {
            let error =
                furthest(|x| tanh(x, integer_bits.cast_unsigned()), f64::tanh, integer_bits);
            assert!(error < 24.0, "{integer_bits} integer bits: {error}");
        }
    }

    #[test]
    fn functions_have_their_symmetry() {
        for x in [1, 2, 100, 4096, 20_000, i16::MAX] {
            assert_eq!(tanh(-x, 3), -tanh(x, 3), "{x}");
            assert_eq!(logistic(-x), ONE - logistic(x), "{x}");
        }
        assert_eq!((tanh(0, 3), logistic(0)), (0, 1 << 14));
    }

    #[test]
    fn products_and_shifts_round_and_saturate() {
        assert_eq!(high_mul(i16::MIN, i16::MIN), i16::MAX);
        assert_eq!(high_mul(1 << 14, 3), 2);
        assert_eq!(high_mul(-(1 << 14), 3), -1);
        assert_eq!((shift_left(1 << 13, 2), shift_left(-(1 << 13) - 1, 2)), (i16::MAX, i16::MIN));
        assert_eq!((shift_right(3, 1), shift_right(-3, 1), shift_right(5, 2)), (2, -2, 1));
    }
}
