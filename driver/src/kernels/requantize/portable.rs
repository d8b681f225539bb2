//! The rules by which 32-bit sums become stored values, and their arithmetic in portable code.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are clamped to 8 bits before they are narrowed; fixed-point halves are argued"
)]

use crate::OpError;
use crate::kernels::quant::{Multiplier, Rounding, shift_left};

/// How sums become stored values of 8 bits, channel by channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requantize {
    /// Added to each channel's sum first.
    pub(crate) bias: Vec<i32>,
    /// Fraction of each channel's factor, 31-bit fixed point.
    pub(crate) multipliers: Vec<i32>,
    /// Bits that each channel's sum is shifted left before it is multiplied.
    pub(crate) left_shifts: Vec<i32>,
    /// Bits that each channel's product is shifted right, rounding.
    pub(crate) right_shifts: Vec<i32>,
    /// Stored value of real 0.
    pub(crate) zero_point: i32,
    /// Smallest stored value.
    pub(crate) low: i32,
    /// Largest stored value.
    pub(crate) high: i32,
    /// How products are rounded.
    pub(crate) rounding: Rounding,
}

impl Requantize {
    /// Rules that round twice, for as many channels as there are biases; `factor` gives each channel's multiplier,
    /// `range` the smallest and the largest stored value.
    ///
    /// # Errors
    /// What `factor` answers.
    pub(crate) fn new(
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
            rounding: Rounding::Twice,
        };
        for channel in 0..channels {
            let factor = factor(channel)?;
            let (left, right) = shifts_of(factor);
            rules.multipliers.push(factor.multiplier);
            rules.left_shifts.push(left);
            rules.right_shifts.push(right);
        }
        Ok(rules)
    }

    /// Bytes that the rules of so many channels take.
    #[must_use]
    pub(crate) fn bytes(channels: usize) -> usize {
        channels.saturating_mul(4 * size_of::<i32>())
    }

    /// Bytes held.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        4 * (self.bias.capacity()
            + self.multipliers.capacity()
            + self.left_shifts.capacity()
            + self.right_shifts.capacity())
    }

    /// The rules of `channels`, as kernels read them.
    #[must_use]
    pub(crate) fn channels(&self, channels: std::ops::Range<usize>) -> Channels<'_> {
        Channels {
            bias: &self.bias[channels.clone()],
            multipliers: &self.multipliers[channels.clone()],
            left_shifts: &self.left_shifts[channels.clone()],
            right_shifts: &self.right_shifts[channels],
            // Clamping before the zero point is added keeps the addition from overflowing.
            low: self.low - self.zero_point,
            high: self.high - self.zero_point,
            zero_point: self.zero_point,
            rounding: self.rounding,
        }
    }
}

/// Bits that a sum is shifted left before it is multiplied by `factor`, and its product right after.
///
/// Kernels hold sums between the smallest and the largest that the shift leaves in 32 bits: a larger one is beyond
/// every stored value anyway, as factors that shift by `e` are `2^(e - 1)` at least. For that the largest must be
/// above 0, which it would not be with 31 bits. With 30 a sum of 1 is 2^29 steps, so that less than the factor
/// will do.
pub(crate) fn shifts_of(factor: Multiplier) -> (i32, i32) {
    (factor.shift.clamp(0, LARGEST_LEFT_SHIFT), (-factor.shift).max(0))
}

/// See [`shifts_of`].
const LARGEST_LEFT_SHIFT: i32 = 30;

/// The rules of a run of channels; all slices have one length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channels<'a> {
    /// Added to each channel's sum first.
    pub(crate) bias: &'a [i32],
    /// Fraction of each channel's factor.
    pub(crate) multipliers: &'a [i32],
    /// Shift before the product, see [`shifts_of`].
    pub(crate) left_shifts: &'a [i32],
    /// Shift after the product.
    pub(crate) right_shifts: &'a [i32],
    /// Smallest value before the zero point is added.
    pub(crate) low: i32,
    /// Largest value before the zero point is added.
    pub(crate) high: i32,
    /// Stored value of real 0.
    pub(crate) zero_point: i32,
    /// How products are rounded.
    pub(crate) rounding: Rounding,
}

impl<'a> Channels<'a> {
    /// The stored value, as a byte, of a sum of channel `channel` with its bias already in it.
    #[inline(always)]
    pub(crate) fn stored(&self, channel: usize, sum: i32) -> u8 {
        match self.rounding {
            Rounding::Twice => self.stored_twice_rounded(channel, sum),
            Rounding::Once => self.stored_once_rounded(channel, sum),
        }
    }

    /// The same numbers as [`Multiplier::apply`], written without branches: multipliers are not
    /// negative, so that no product saturates, and "round half away from zero" of a product over 2^31
    /// truncated after the nudge is the same as adding half and rounding down.
    #[inline(always)]
    fn stored_twice_rounded(&self, channel: usize, sum: i32) -> u8 {
        let shifted = shift_left(sum, self.left_shifts[channel]);
        let product = i64::from(shifted) * i64::from(self.multipliers[channel]);
        let high = ((product + (1 << 30)) >> 31) as i32;
        let right = self.right_shifts[channel].cast_unsigned();
        let mask = 1i32.wrapping_shl(right).wrapping_sub(1);
        let threshold = (mask >> 1) + i32::from(high < 0);
        let rounded = high.wrapping_shr(right) + i32::from(high & mask > threshold);
        self.byte(rounded)
    }

    #[inline(always)]
    fn stored_once_rounded(&self, channel: usize, sum: i32) -> u8 {
        let shift = self.left_shifts[channel] - self.right_shifts[channel];
        self.byte(Multiplier { multiplier: self.multipliers[channel], shift }.apply_once(sum))
    }

    #[inline(always)]
    fn byte(&self, rounded: i32) -> u8 {
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
        let sum =
            |channel: usize| sums[channel].wrapping_add(rules.bias[channel]).wrapping_add(term);
        match self.rounding {
            Rounding::Twice => {
                for (channel, out) in out.iter_mut().enumerate() {
                    *out = rules.stored_twice_rounded(channel, sum(channel));
                }
            }
            Rounding::Once => {
                for (channel, out) in out.iter_mut().enumerate() {
                    *out = rules.stored_once_rounded(channel, sum(channel));
                }
            }
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

/// As [`Channels::rows`], for a kernel's announcement.
#[inline(always)]
pub(crate) fn rows(rules: Channels<'_>, sums: &[i32], row_terms: &[i32], out: &mut [u8]) {
    rules.rows(sums, row_terms, out);
}
