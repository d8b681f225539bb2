//! The integer arithmetic in which TFLite's kernels rescale, for choosing constants that reproduce
//! it. Only for values from 0 on, where rounding to nearest is the same for every kernel.

/// A factor as 31 bits and a power of two: `bits / 2^31 * 2^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Factor {
    bits: i64,
    exponent: i32,
}

/// One in a mantissa of 31 bits.
const ONE: i64 = 1 << 31;
/// Below 2 to this every value becomes 0.
const MIN_EXPONENT: i32 = -30;
/// Up to 2 to this, values of 25 bits times a mantissa of 31 stay inside 63 bits. Steps that grow
/// by more make no sense with 8 bits.
const MAX_EXPONENT: i32 = 6;

impl Factor {
    /// The nearest to a real factor; `None` for one that is not positive or far from 1.
    #[expect(clippy::cast_possible_truncation, reason = "the mantissa has 31 bits")]
    #[expect(clippy::cast_precision_loss, reason = "2^31 is exact")]
    pub(super) fn of(real: f64) -> Option<Self> {
        if !(real.is_finite() && real > 0.0) {
            return None;
        }
        let mut exponent = 0;
        let mut mantissa = real;
        while mantissa >= 1.0 && exponent <= MAX_EXPONENT {
            (mantissa, exponent) = (mantissa / 2.0, exponent + 1);
        }
        while mantissa < 0.5 && exponent >= MIN_EXPONENT {
            (mantissa, exponent) = (mantissa * 2.0, exponent - 1);
        }
        if !(MIN_EXPONENT..MAX_EXPONENT).contains(&exponent) {
            return None;
        }
        let bits = (mantissa * ONE as f64).round() as i64;
        Some(if bits == ONE {
            Factor { bits: bits / 2, exponent: exponent + 1 }
        } else {
            Factor { bits, exponent }
        })
    }

    /// The factor divided by a count, as TFLite's mean does it: without bringing the mantissa back
    /// to 31 bits, so that the first of its two roundings is coarser.
    pub(super) fn over(self, count: i64) -> Option<Self> {
        let shift = i32::try_from(count.checked_ilog2()?).ok()?.min(31 + self.exponent);
        let bits = self.bits.checked_shl(shift.try_into().ok()?)?.checked_div(count)?;
        Some(Factor { bits, exponent: self.exponent - shift })
    }

    /// `value`, of at most 25 bits, times the factor, rounded at 31 bits and again at the end.
    pub(super) fn times(self, value: i64) -> i64 {
        let left = self.exponent.max(0).unsigned_abs();
        let right = self.exponent.min(0).unsigned_abs();
        let high = ((value << left) * self.bits + ONE / 2) >> 31;
        if right == 0 { high } else { (high + (1 << (right - 1))) >> right }
    }

    /// By how much of one step the two roundings together round up more than one would.
    pub(super) fn excess(self) -> f64 {
        if self.exponent < 0 { 2_f64.powi(self.exponent - 1) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_normalised_and_round_to_nearest() {
        let half = Factor::of(0.5).unwrap();
        assert_eq!((half.bits, half.exponent), (ONE / 2, 0));
        assert_eq!([0, 1, 2, 3].map(|value| half.times(value)), [0, 1, 1, 2]);
        let three = Factor::of(3.0).unwrap();
        assert_eq!(three.times(7), 21);
        assert_eq!(Factor::of(0.0), None);
        assert_eq!(Factor::of(f64::NAN), None);
        assert_eq!(Factor::of(1e300), None);
        assert_eq!(Factor::of(1e-300), None);
    }

    #[test]
    fn two_roundings_carry_what_one_would_not() {
        // 5 * 0.75 / 8 is under a half; but 3.75 becomes 4, and 4 / 8 becomes 1.
        let factor = Factor::of(0.75 / 8.0).unwrap();
        assert_eq!(factor.exponent, -3);
        assert_eq!(factor.times(5), 1);
    }
}
