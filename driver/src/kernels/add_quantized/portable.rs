//! The rule of quantized sums, and its arithmetic in 32 bits.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "stored values are clamped to their type before they are narrowed; the high product \
              has 32 bits"
)]

use crate::kernels::quant::Multiplier;

/// A stored value of 8 bits.
pub(crate) trait Stored: bytemuck::Pod {
    /// The smallest and the largest.
    const RANGE: (i32, i32);
    /// As a 32-bit integer.
    fn widen(self) -> i32;
    /// Back from one that fits.
    fn narrow(value: i32) -> Self;
}

impl Stored for u8 {
    const RANGE: (i32, i32) = (0, 255);

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
    const RANGE: (i32, i32) = (-128, 127);

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
pub(crate) const SHIFT: u32 = 20;

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

    /// What it multiplies with.
    fn factor(self) -> f64 {
        0.5f64.powi(self.right.cast_signed())
    }

    #[inline(always)]
    pub(super) fn apply(self, x: i32) -> i32 {
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
pub(super) struct InputFactor {
    coarse: i32,
    fine: i32,
    shift: RoundingShift,
}

impl InputFactor {
    pub(super) fn new(multiplier: Multiplier) -> Option<Self> {
        let shift = RoundingShift::new(multiplier)?;
        let bits = 31 - SHIFT;
        let fine = multiplier.multiplier & ((1 << bits) - 1);
        Some(InputFactor { coarse: multiplier.multiplier >> bits, fine, shift })
    }

    /// What it multiplies with, the shift up among it.
    fn factor(self) -> f64 {
        let multiplier = (self.coarse << (31 - SHIFT)) + self.fine;
        f64::from(multiplier) / f64::from(1 << (31 - SHIFT)) * self.shift.factor()
    }

    #[inline(always)]
    pub(super) fn apply(self, x: i32) -> i32 {
        let bits = 31 - SHIFT;
        let high = x * self.coarse + ((x * self.fine + (1 << (bits - 1))) >> bits);
        self.shift.apply(high)
    }
}

/// Rescales the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputFactor {
    multiplier: i32,
    shift: RoundingShift,
}

impl OutputFactor {
    pub(super) fn new(multiplier: Multiplier) -> Option<Self> {
        let shift = RoundingShift::new(multiplier)?;
        Some(OutputFactor { multiplier: multiplier.multiplier, shift })
    }

    /// What it multiplies with.
    fn factor(self) -> f64 {
        f64::from(self.multiplier) / f64::from(1u32 << 31) * self.shift.factor()
    }

    /// Adding `2^30` and dropping 31 bits rounds as the nudge and the truncating division of
    /// [`Multiplier::apply`] do, for either sign.
    #[inline(always)]
    pub(super) fn apply(self, x: i32) -> i32 {
        let product = i64::from(x) * i64::from(self.multiplier);
        self.shift.apply(((product + (1 << 30)) >> 31) as i32)
    }
}

/// The rule of `out = rescale(rescale(a) + rescale(b))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
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
    pub(crate) fn new(
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
}

/// A rule in real numbers: `out` is what lies nearest to `start + a * factors[0] + b * factors[1]`, computed in
/// floats, where that is not farther from a whole number than `certain`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reals {
    pub(super) factors: [f32; 2],
    pub(super) start: f32,
    pub(super) certain: f32,
    /// The smallest and the largest result, as bytes.
    pub(super) range: [u8; 2],
}

impl Sum {
    /// This rule in real numbers; `None` where few sums would be certain, or the range is not one of the type.
    pub(super) fn reals<T: Stored>(&self) -> Option<Reals> {
        /// How many sums are not certain is twice this: few enough for any number of ties between.
        const UNCERTAIN: f64 = 1.0 / 64.0;
        let Sum { a, b, out, low, high } = *self;
        let fits = T::RANGE.0 <= low && low <= high && high <= T::RANGE.1;
        let factor = out.1.factor();
        let factors = [a.1.factor() * factor, b.1.factor() * factor];
        let start = f64::from(out.0) - f64::from(a.0) * factors[0] - f64::from(b.0) * factors[1];
        // The exact rule rounds each input twice, by a half at most, and the sum once before the last rounding.
        let rounded = 2.0 * factor.abs() + 0.5 * out.1.shift.factor();
        // Floats round three constants, two sums and this bound itself by 2^-24 of what they are at most.
        let value = f64::from(T::RANGE.0.abs().max(T::RANGE.1));
        let [first, second] = factors.map(|factor| value * factor.abs());
        let zeros =
            f64::from(a.0.abs()) * factors[0].abs() + f64::from(b.0.abs()) * factors[1].abs();
        let constant = f64::from(out.0).abs() + zeros;
        let sums = (constant + first) + (constant + first + second);
        let floats = (first + second + constant + sums + 1.0) * 2f64.powi(-24) * 1.001;
        let uncertain = rounded + floats;
        if !fits || !(-256..=256).contains(&out.0) || uncertain > UNCERTAIN {
            return None;
        }
        Some(Reals {
            factors: factors.map(|factor| factor as f32),
            start: start as f32,
            certain: (0.5 - uncertain) as f32,
            range: [low, high].map(|bound| bound.to_le_bytes()[0]),
        })
    }
}

/// Sums slices of one length, in whatever instructions the caller is compiled for.
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
