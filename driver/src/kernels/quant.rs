//! Fixed-point arithmetic of quantized operations, with the rounding that TFLite's reference
//! kernels use: the answers of quantized models are defined by it, bit for bit.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "fixed-point arithmetic; ranges are argued at each step"
)]

use burst_hal::{FusedActivation, OperandType};

use crate::OpError;

/// A positive real number as `multiplier * 2^shift / 2^31`, with `multiplier` in
/// `2^30..2^31` (or both 0 for 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Multiplier {
    /// The fraction, as a 31-bit fixed-point number.
    pub(crate) multiplier: i32,
    /// The power of two: above 0 shifts left before, below 0 rounds right after.
    pub(crate) shift: i32,
}

/// How a sum that was multiplied becomes a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Rounding {
    /// As [`Multiplier::apply`]: the reference's convolutions.
    #[default]
    Twice,
    /// As [`Multiplier::apply_once`]: its fully connected layers.
    Once,
}

/// Splits a finite number above 0 into a fraction in `0.5..1` and a power of two.
fn frexp(x: f64) -> (f64, i32) {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7FF) as i32;
    if exponent == 0 {
        // Subnormal: scale up first.
        let (fraction, exponent) = frexp(x * 2f64.powi(64));
        return (fraction, exponent - 64);
    }
    let fraction = f64::from_bits(bits & !(0x7FF << 52) | 1022 << 52);
    (fraction, exponent - 1022)
}

impl Multiplier {
    /// Whether `real` has a fixed-point form.
    ///
    /// # Errors
    /// [`OpError::Range`] for a number that is negative, not finite, or not below 2^31 once it is rounded.
    pub(crate) fn check(real: f64) -> Result<(), OpError> {
        if (0.0..2f64.powi(31) - 0.5).contains(&real) {
            return Ok(());
        }
        Err(OpError::Range { what: "a quantization multiplier" })
    }

    /// The nearest fixed-point form of `real`.
    ///
    /// # Errors
    /// As [`Multiplier::check`].
    pub(crate) fn new(real: f64) -> Result<Self, OpError> {
        Self::check(real)?;
        if real == 0.0 {
            return Ok(Multiplier::default());
        }
        let (fraction, mut shift) = frexp(real);
        // In 2^30..=2^31. There is no instruction for `round`, and large models have thousands of channels; with half
        // of one added the number is still exact.
        let mut fixed = (fraction * 2f64.powi(31) + 0.5) as i64;
        if fixed == 1 << 31 {
            fixed /= 2;
            shift += 1;
        }
        if shift < -31 {
            return Ok(Multiplier::default());
        }
        Ok(Multiplier { multiplier: fixed as i32, shift })
    }

    /// `x` times this number: high half of the doubled product, rounded, then a rounding shift. A number above 1
    /// shifts `x` left first; the reference leaves open what becomes of bits that do not fit, and here it saturates,
    /// so that the result is too large for any stored value, as it should be.
    #[inline]
    #[must_use]
    pub(crate) fn apply(self, x: i32) -> i32 {
        let left = self.shift.max(0);
        let right = (-self.shift).max(0);
        let shifted = shift_left(x, left);
        rounding_divide_by_power_of_two(doubling_high_mul(shifted, self.multiplier), right)
    }

    /// `x` times this number, rounded to nearest in one step, with ties away from zero; saturates as
    /// [`Multiplier::apply`] does.
    #[inline(always)]
    #[must_use]
    pub(crate) fn apply_once(self, x: i32) -> i32 {
        let left = self.shift.max(0);
        let right = (-self.shift).max(0);
        let product = i64::from(shift_left(x, left)) * i64::from(self.multiplier);
        // At most 2^62 and 2^61.
        let magnitude = (product.abs() + (1 << (30 + right))) >> (31 + right);
        (if product < 0 { -magnitude } else { magnitude }) as i32
    }
}

/// `x * 2^exponent`, or the number of 32 bits that is nearest to it. `exponent` is 0 to 31.
#[inline(always)]
#[must_use]
pub(crate) fn shift_left(x: i32, exponent: i32) -> i32 {
    // Two comparisons with numbers that a loop over one multiplier has at hand, where 64 bits would halve its lanes.
    let (low, high) = (i32::MIN >> exponent, i32::MAX >> exponent);
    if x > high {
        i32::MAX
    } else if x < low {
        i32::MIN
    } else {
        x << exponent
    }
}

/// The high 32 bits of `2 * a * b`, rounded to nearest with ties away from zero; saturates in the
/// one case that overflows.
#[inline]
#[must_use]
pub(crate) fn doubling_high_mul(a: i32, b: i32) -> i32 {
    if a == i32::MIN && b == i32::MIN {
        return i32::MAX;
    }
    let product = i64::from(a) * i64::from(b);
    let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
    ((product + nudge) / (1 << 31)) as i32
}

/// `x / 2^exponent`, rounded to nearest with ties away from zero. `exponent` is 0 to 31.
#[inline]
#[must_use]
pub(crate) fn rounding_divide_by_power_of_two(x: i32, exponent: i32) -> i32 {
    let mask = ((1i64 << exponent) - 1) as i32;
    let remainder = x & mask;
    let threshold = (mask >> 1) + i32::from(x < 0);
    (x >> exponent) + i32::from(remainder > threshold)
}

/// Smallest and largest stored value of a quantized type.
#[must_use]
pub(crate) fn type_range(ty: OperandType) -> (i32, i32) {
    match ty {
        OperandType::TensorQuant8Asymm => (0, 255),
        OperandType::TensorQuant8AsymmSigned
        | OperandType::TensorQuant8Symm
        | OperandType::TensorQuant8SymmPerChannel => (-128, 127),
        OperandType::TensorQuant16Asymm => (0, 65_535),
        OperandType::TensorQuant16Symm => (-32_768, 32_767),
        _ => (i32::MIN, i32::MAX),
    }
}

/// The stored value nearest to `real`: `zero_point + real / scale`, rounded with ties away from
/// zero, in `f32` as the reference does.
#[must_use]
pub(crate) fn quantize_bound(real: f32, scale: f32, zero_point: i32) -> i32 {
    // A float to integer cast saturates, so that a tiny scale gives the ends of the range.
    zero_point.saturating_add((real / scale).round() as i32)
}

/// The range of stored values that an activation leaves, within the type's own.
#[must_use]
pub(crate) fn activation_range(
    activation: FusedActivation,
    ty: OperandType,
    scale: f32,
    zero_point: i32,
) -> (i32, i32) {
    let (low, high) = type_range(ty);
    let at = |real: f32| quantize_bound(real, scale, zero_point);
    match activation {
        FusedActivation::None => (low, high),
        FusedActivation::Relu => (low.max(at(0.0)), high),
        FusedActivation::Relu1 => (low.max(at(-1.0)), high.min(at(1.0))),
        FusedActivation::Relu6 => (low.max(at(0.0)), high.min(at(6.0))),
    }
}

/// The range of real values that an activation leaves.
#[must_use]
pub(crate) fn activation_range_f32(activation: FusedActivation) -> (f32, f32) {
    match activation {
        FusedActivation::None => (f32::NEG_INFINITY, f32::INFINITY),
        FusedActivation::Relu => (0.0, f32::INFINITY),
        FusedActivation::Relu1 => (-1.0, 1.0),
        FusedActivation::Relu6 => (0.0, 6.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multipliers_are_the_nearest_fixed_point_form() {
        for (real, multiplier, shift) in [
            (0.5, 1 << 30, 0),
            (1.0, 1 << 30, 1),
            (0.25, 1 << 30, -1),
            (0.75, 3 << 29, 0),
            (0.0, 0, 0),
            // Just under 1: the fraction rounds up to 2^31 and carries into the shift.
            (1.0 - 2f64.powi(-40), 1 << 30, 1),
        ] {
            let got = Multiplier::new(real).unwrap();
            assert_eq!((got.multiplier, got.shift), (multiplier, shift), "{real}");
        }
        assert!(Multiplier::new(-1.0).is_err());
        assert!(Multiplier::new(f64::NAN).is_err());
        assert!(Multiplier::new(2f64.powi(31)).is_err());
        // The largest number that does not round to 2^31, and the one after it.
        let limit = 2f64.powi(31) - 0.5;
        assert_eq!(Multiplier::new(limit.next_down()).unwrap().multiplier, i32::MAX);
        assert!(Multiplier::new(limit).is_err());
    }

    #[test]
    fn a_fraction_is_rounded_as_round_does() {
        let ties = (0..200).map(|n| f64::from(n) + 2f64.powi(30) + 0.5);
        let other = (1..2000).map(|n| f64::from(n).sqrt() * 1e-4);
        for real in ties.flat_map(|tie| [tie.next_down(), tie, tie.next_up()]).chain(other) {
            let (fraction, shift) = frexp(real);
            let fixed = (fraction * 2f64.powi(31)).round() as i32;
            assert_eq!(Multiplier::new(real).unwrap(), Multiplier { multiplier: fixed, shift });
        }
    }

    #[test]
    fn rounding_ties_go_away_from_zero() {
        for (x, exponent, want) in
            [(5, 1, 3), (-5, 1, -3), (4, 3, 1), (-4, 3, -1), (3, 3, 0), (-3, 3, 0), (7, 0, 7)]
        {
            assert_eq!(rounding_divide_by_power_of_two(x, exponent), want, "{x} / 2^{exponent}");
        }
    }

    #[test]
    fn rounding_once_is_not_rounding_twice() {
        // 41.49978 is 84,991.55 times 2^-11: a first rounding makes 84,992 of it, which is 41.5, and a second one 42.
        let factor = Multiplier::new(0.000_360_968_058).unwrap();
        assert_eq!((factor.apply(114_968), factor.apply_once(114_968)), (42, 41));
        assert_eq!((factor.apply(-67_873), factor.apply_once(-67_873)), (-25, -24));
        for (real, x, want) in [
            (0.5, 3, 2),
            (0.5, -3, -2),
            (0.125, -4, -1),
            (0.125, -3, 0),
            (0.5, i32::MIN, -(1 << 30)),
            (4.0, -5, -20),
            (2f64.powi(-31), i32::MAX, 1),
            (2f64.powi(-31), i32::MIN, -1),
        ] {
            assert_eq!(Multiplier::new(real).unwrap().apply_once(x), want, "{x} times {real}");
        }
    }

    #[test]
    fn shifts_to_the_left_saturate() {
        let numbers = [0, 1, 2, 3, 255, 65_025, 1 << 20, (1 << 30) - 1, 1 << 30, i32::MAX];
        for x in numbers.into_iter().flat_map(|x| [x, -x, !x]) {
            for exponent in 0..=31 {
                let exact = i64::from(x) << exponent;
                let want = exact.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
                assert_eq!(shift_left(x, exponent), want, "{x} << {exponent}");
            }
        }
    }

    /// 255 * 255 * 64 times 1000 is four billion, of which 32 bits left nothing that looked like it.
    #[test]
    fn products_beyond_32_bits_stay_large() {
        let sums = [255 * 255 * 64, 4_194_304, 1 << 22, i32::MAX, i32::MIN, -255 * 255 * 64];
        for real in [512.0, 1000.0, 1024.0, 65_536.0, 2f64.powi(30), 2f64.powi(31) - 1.0] {
            let factor = Multiplier::new(real).unwrap();
            for x in sums {
                for got in [factor.apply(x), factor.apply_once(x)] {
                    assert_eq!(got.signum(), x.signum(), "{x} times {real}");
                    assert!(got.unsigned_abs() >= 1 << 29, "{x} times {real} is not {got}");
                }
            }
            for x in [1, -1] {
                for got in [factor.apply(x), factor.apply_once(x)] {
                    // The largest number of 32 bits is one less than what it stands for.
                    let off = (f64::from(got) - f64::from(x) * real).abs();
                    assert!(off <= 1.0, "{x} times {real} is not {got}");
                }
            }
        }
    }

    #[test]
    fn high_product_rounds_and_saturates() {
        assert_eq!(doubling_high_mul(i32::MIN, i32::MIN), i32::MAX);
        assert_eq!(doubling_high_mul(1 << 30, 1 << 30), 1 << 29);
        assert_eq!(doubling_high_mul(1, 1 << 30), 1); // 0.5 rounds to 1
        assert_eq!(doubling_high_mul(-1, 1 << 30), 0); // -0.5 plus the nudge truncates to 0
    }

    #[test]
    fn activation_bounds_are_quantized_and_stay_in_the_type() {
        let range = |a| activation_range(a, OperandType::TensorQuant8Asymm, 0.05, 10);
        assert_eq!(range(FusedActivation::None), (0, 255));
        assert_eq!(range(FusedActivation::Relu), (10, 255));
        assert_eq!(range(FusedActivation::Relu6), (10, 130));
        assert_eq!(range(FusedActivation::Relu1), (0, 30));
    }
}
