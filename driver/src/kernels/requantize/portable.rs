//! From 32-bit sums to stored values: the last step of every quantized product.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are clamped to 8 bits before they are narrowed; fixed-point halves are argued"
)]

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::quant::Multiplier;
use crate::kernels::simd;

/// How sums become stored values of 8 bits, channel by channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requantize {
    /// Added to each channel's sum first.
    pub bias: Vec<i32>,
    /// Fraction of each channel's factor, 31-bit fixed point.
    pub multipliers: Vec<i32>,
    /// Bits that each channel's sum is shifted left before it is multiplied.
    pub left_shifts: Vec<i32>,
    /// Bits that each channel's product is shifted right, rounding.
    pub right_shifts: Vec<i32>,
    /// Stored value of real 0.
    pub zero_point: i32,
    /// Smallest stored value.
    pub low: i32,
    /// Largest stored value.
    pub high: i32,
}

impl Requantize {
    /// Rules for as many channels as there are biases; `factor` gives each channel's multiplier,
    /// `range` the smallest and the largest stored value.
    ///
    /// # Errors
    /// What `factor` answers.
    pub fn new(
        bias: Vec<i32>,
        mut factor: impl FnMut(usize) -> Result<Multiplier, OpError>,
        zero_point: i32,
        range: (i32, i32),
    ) -> Result<Self, OpError> {
        let channels = bias.len();
        let mut rules = Requantize {
            bias,
            multipliers: Vec::with_capacity(channels),
            left_shifts: Vec::with_capacity(channels),
            right_shifts: Vec::with_capacity(channels),
            zero_point,
            low: range.0,
            high: range.1,
        };
        for channel in 0..channels {
            let factor = factor(channel)?;
            rules.multipliers.push(factor.multiplier);
            rules.left_shifts.push(factor.shift.max(0));
            rules.right_shifts.push((-factor.shift).max(0));
        }
        Ok(rules)
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        4 * (self.bias.capacity()
            + self.multipliers.capacity()
            + self.left_shifts.capacity()
            + self.right_shifts.capacity())
    }

    /// The rules of `channels`, as kernels read them.
    #[must_use]
    pub fn channels(&self, channels: std::ops::Range<usize>) -> Channels<'_> {
        Channels {
            bias: &self.bias[channels.clone()],
            multipliers: &self.multipliers[channels.clone()],
            left_shifts: &self.left_shifts[channels.clone()],
            right_shifts: &self.right_shifts[channels],
            // Clamping before the zero point is added keeps the addition from overflowing.
            low: self.low - self.zero_point,
            high: self.high - self.zero_point,
            zero_point: self.zero_point,
        }
    }

    /// Turns rows of sums, one column per channel, into stored values (of either sign, as bytes).
    /// `row_terms` holds a number per row that is added to all its sums; empty: none.
    pub fn rows(&self, isa: Isa, sums: &[i32], row_terms: &[i32], out: &mut [u8]) {
        let width = self.bias.len();
        if width == 0 {
            return;
        }
        simd::requantize_rows(isa, self.channels(0..width), sums, row_terms, out);
    }
}

/// The rules of a run of channels; all slices have one length.
#[derive(Debug, Clone, Copy)]
pub struct Channels<'a> {
    /// Added to each channel's sum first.
    pub bias: &'a [i32],
    /// Fraction of each channel's factor.
    pub multipliers: &'a [i32],
    /// Shift before the product.
    pub left_shifts: &'a [i32],
    /// Shift after the product.
    pub right_shifts: &'a [i32],
    /// Smallest value before the zero point is added.
    pub low: i32,
    /// Largest value before the zero point is added.
    pub high: i32,
    /// Stored value of real 0.
    pub zero_point: i32,
}

impl<'a> Channels<'a> {
    /// The stored value, as a byte, of a sum of channel `channel` with its bias already in it.
    ///
    /// The same numbers as [`Multiplier::apply`], written without branches: multipliers are not
    /// negative, so that nothing saturates, and "round half away from zero" of a product over 2^31
    /// truncated after the nudge is the same as adding half and rounding down.
    #[inline(always)]
    pub(crate) fn stored(&self, channel: usize, sum: i32) -> u8 {
        let shifted = sum.wrapping_shl(self.left_shifts[channel].cast_unsigned());
        let product = i64::from(shifted) * i64::from(self.multipliers[channel]);
        let high = ((product + (1 << 30)) >> 31) as i32;
        let right = self.right_shifts[channel].cast_unsigned();
        let mask = 1i32.wrapping_shl(right).wrapping_sub(1);
        let threshold = (mask >> 1) + i32::from(high < 0);
        let rounded = high.wrapping_shr(right) + i32::from(high & mask > threshold);
        (rounded.max(self.low).min(self.high) + self.zero_point) as u8
    }

    /// These rules for `len` channels from `first` on.
    #[inline(always)]
    pub(crate) fn part(&self, first: usize, len: usize) -> Channels<'a> {
        let part = first..first + len;
        Channels {
            bias: &self.bias[part.clone()],
            multipliers: &self.multipliers[part.clone()],
            left_shifts: &self.left_shifts[part.clone()],
            right_shifts: &self.right_shifts[part],
            ..*self
        }
    }

    /// One row of sums into stored values; a term that all of them get is given apart.
    #[inline(always)]
    pub(crate) fn row(&self, sums: &[i32], term: i32, out: &mut [u8]) {
        // One length for all slices, so that the loop has no bounds checks.
        let len = out.len();
        let rules = self.part(0, len);
        let sums = &sums[..len];
        for channel in 0..len {
            let sum = sums[channel].wrapping_add(rules.bias[channel]).wrapping_add(term);
            out[channel] = rules.stored(channel, sum);
        }
    }

    /// As [`Requantize::rows`], in whatever instructions the caller is compiled for.
    #[inline(always)]
    pub(crate) fn rows(&self, sums: &[i32], row_terms: &[i32], out: &mut [u8]) {
        let width = self.bias.len();
        for (row, (sums, out)) in
            sums.chunks_exact(width).zip(out.chunks_exact_mut(width)).enumerate()
        {
            self.row(sums, row_terms.get(row).copied().unwrap_or(0), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(real: f64, zero_point: i32, sums: &[i32], isa: Isa) -> Result<(), TestCaseError> {
        let factor = Multiplier::new(real).unwrap();
        let bias: Vec<i32> = (0..).take(sums.len()).map(|channel| channel * 7 - 50).collect();
        let rules = Requantize::new(bias.clone(), |_| Ok(factor), zero_point, (3, 250)).unwrap();
        let mut out = vec![0; sums.len()];
        rules.rows(isa, sums, &[11], &mut out);
        for (channel, (sum, got)) in sums.iter().zip(&out).enumerate() {
            let biased = sum.wrapping_add(bias[channel]).wrapping_add(11);
            let want = factor.apply(biased).saturating_add(zero_point).clamp(3, 250);
            prop_assert_eq!(i32::from(*got), want, "sum {} times {}", sum, real);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn equals_the_scalar_rule(
            exponent in -40.0f64..12.0,
            zero_point in 0i32..256,
            sums in proptest::collection::vec(any::<i32>(), 1..70),
            small in proptest::collection::vec(-40_000i32..40_000, 1..70),
        ) {
            for isa in [Isa::detect(), Isa::PORTABLE] {
                check(exponent.exp2(), zero_point, &sums, isa)?;
                check(exponent.exp2(), zero_point, &small, isa)?;
            }
        }
    }

    #[test]
    fn ties_and_extremes_round_as_the_scalar_rule() {
        let sums: Vec<i32> =
            (-40..40).chain([i32::MIN, i32::MIN + 1, i32::MAX, i32::MAX - 1]).collect();
        for isa in [Isa::detect(), Isa::PORTABLE] {
            for real in [0.5, 0.25, 0.125, 1.0, 2.0, 2f64.powi(-31), 0.999_999_999, 0.0] {
                check(real, 128, &sums, isa).unwrap();
            }
        }
    }
}
