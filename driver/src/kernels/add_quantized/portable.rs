//! Sums of two quantized tensors of one shape: a rescaling of each, a sum, a rescaling of that.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "stored values are clamped to their type before they are narrowed; the high product \
              has 32 bits"
)]

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::quant::Multiplier;
use crate::kernels::simd;

/// A stored value of 8 bits.
pub trait Stored: Copy {
    /// As a 32-bit integer.
    fn widen(self) -> i32;
    /// Back from one that fits.
    fn narrow(value: i32) -> Self;
}

impl Stored for u8 {
    #[inline(always)]
    fn widen(self) -> i32 {
        self.into()
    }

    #[inline(always)]
    fn narrow(value: i32) -> Self {
        value as u8
    }
}

impl Stored for i8 {
    #[inline(always)]
    fn widen(self) -> i32 {
        self.into()
    }

    #[inline(always)]
    fn narrow(value: i32) -> Self {
        value as i8
    }
}

/// Bits that inputs are shifted up by before they are rescaled, to keep precision.
pub const SHIFT: u32 = 20;

/// A rounding shift to the right without branches, see
/// [`rounding_divide_by_power_of_two`](crate::kernels::quant::rounding_divide_by_power_of_two).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RoundingShift {
    right: u32,
    /// The bits that the shift drops, and half of their range.
    mask: i32,
    half: i32,
}

impl RoundingShift {
    /// The shift of a multiplier; `None` for one that shifts left.
    fn new(multiplier: Multiplier) -> Option<Self> {
        let right =
            u32::try_from(multiplier.shift.checked_neg()?).ok().filter(|bits| *bits < 32)?;
        let mask = ((1i64 << right) - 1) as i32;
        Some(RoundingShift { right, mask, half: mask >> 1 })
    }

    #[inline(always)]
    fn apply(self, x: i32) -> i32 {
        let threshold = self.half + i32::from(x < 0);
        (x >> self.right) + i32::from(x & self.mask > threshold)
    }
}

/// Rescales differences of stored values, shifted up by [`SHIFT`].
///
/// What [`Multiplier::apply`] makes of `x << 20` begins with `(x * multiplier * 2^20 + 2^30) >> 31`,
/// which is `(x * multiplier + 2^10) >> 11`. With the multiplier cut into `coarse * 2^11 + fine` that
/// is `x * coarse + ((x * fine + 2^10) >> 11)`: 32 bits are enough for an `x` of 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InputFactor {
    coarse: i32,
    fine: i32,
    shift: RoundingShift,
}

impl InputFactor {
    fn new(multiplier: Multiplier) -> Option<Self> {
        let shift = RoundingShift::new(multiplier)?;
        let bits = 31 - SHIFT;
        let fine = multiplier.multiplier & ((1 << bits) - 1);
        Some(InputFactor { coarse: multiplier.multiplier >> bits, fine, shift })
    }

    #[inline(always)]
    fn apply(self, x: i32) -> i32 {
        let bits = 31 - SHIFT;
        let high = x * self.coarse + ((x * self.fine + (1 << (bits - 1))) >> bits);
        self.shift.apply(high)
    }
}

/// Rescales the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OutputFactor {
    multiplier: i64,
    shift: RoundingShift,
}

impl OutputFactor {
    fn new(multiplier: Multiplier) -> Option<Self> {
        let shift = RoundingShift::new(multiplier)?;
        Some(OutputFactor { multiplier: multiplier.multiplier.into(), shift })
    }

    /// Adding `2^30` and dropping 31 bits rounds as the nudge and the truncating division of
    /// [`Multiplier::apply`] do, for either sign.
    #[inline(always)]
    fn apply(self, x: i32) -> i32 {
        self.shift.apply(((i64::from(x) * self.multiplier + (1 << 30)) >> 31) as i32)
    }
}

/// The rule of `out = rescale(rescale(a) + rescale(b))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    a: (i32, InputFactor),
    b: (i32, InputFactor),
    out: (i32, OutputFactor),
    low: i32,
    high: i32,
}

impl Sum {
    /// The rule for inputs and output with these zero points and multipliers; results are held
    /// between `range.0` and `range.1`.
    ///
    /// `None` where a multiplier is not below 1, which no model that makes sense has, or a zero point
    /// is not one of 8 bits.
    #[must_use]
    pub fn new(
        a: (i32, Multiplier),
        b: (i32, Multiplier),
        out: (i32, Multiplier),
        range: (i32, i32),
    ) -> Option<Self> {
        let input = |(zero_point, multiplier): (i32, Multiplier)| {
            let fits = (-128..=255).contains(&zero_point);
            Some((zero_point, InputFactor::new(multiplier).filter(|_| fits)?))
        };
        let (low, high) = range;
        let out = (out.0, OutputFactor::new(out.1)?);
        Some(Sum { a: input(a)?, b: input(b)?, out, low, high })
    }

    /// Sums unsigned values.
    ///
    /// # Errors
    /// [`OpError::Internal`] for slices of different lengths.
    pub fn unsigned(&self, isa: Isa, a: &[u8], b: &[u8], out: &mut [u8]) -> Result<(), OpError> {
        check_lengths(a.len(), b.len(), out.len())?;
        simd::sum_unsigned(isa, self, a, b, out);
        Ok(())
    }

    /// Sums signed values.
    ///
    /// # Errors
    /// As [`Sum::unsigned`].
    pub fn signed(&self, isa: Isa, a: &[i8], b: &[i8], out: &mut [i8]) -> Result<(), OpError> {
        check_lengths(a.len(), b.len(), out.len())?;
        simd::sum_signed(isa, self, a, b, out);
        Ok(())
    }
}

/// Refuses slices of different lengths.
pub(crate) fn check_lengths(a: usize, b: usize, out: usize) -> Result<(), OpError> {
    if a == out && b == out {
        return Ok(());
    }
    Err(OpError::Internal { what: "summands of different lengths" })
}

/// The loop, to be compiled for each instruction set.
#[inline(always)]
pub(crate) fn sum<T: Stored>(rule: &Sum, a: &[T], b: &[T], out: &mut [T]) {
    let rule = *rule;
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        let a = rule.a.1.apply(a.widen() - rule.a.0);
        let b = rule.b.1.apply(b.widen() - rule.b.0);
        let sum = rule.out.1.apply(a + b) + rule.out.0;
        *out = T::narrow(sum.max(rule.low).min(rule.high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_their_multipliers() {
        for real in [0.5, 0.25, 0.75, 0.999_999, 1e-3, 3e-7, 2f64.powi(-31), 0.0] {
            for sign in [1, -1] {
                let mut multiplier = Multiplier::new(real).unwrap();
                multiplier.multiplier *= sign;
                let input = InputFactor::new(multiplier).unwrap();
                for x in -383..=383 {
                    let want = multiplier.apply(x << SHIFT);
                    assert_eq!(input.apply(x), want, "{x} * {real} * {sign}");
                }
                let output = OutputFactor::new(multiplier).unwrap();
                for x in (-70_000..70_000).map(|x| x * 3_777).chain([i32::MAX, i32::MIN]) {
                    assert_eq!(output.apply(x), multiplier.apply(x), "{x} * {real} * {sign}");
                }
            }
        }
        let left = Multiplier::new(1.5).unwrap();
        assert_eq!((InputFactor::new(left), OutputFactor::new(left)), (None, None));
    }
}
