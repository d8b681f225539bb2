//! SOFTMAX along lanes: of floats, and of 8-bit values in fixed point.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_lossless,
    reason = "results are clamped to 8 bits before they are narrowed; differences are 0 to 255"
)]

mod fixed_point;

use self::fixed_point::{EXP_INTEGER_BITS, SUM_INTEGER_BITS, exp_of_negative, reciprocal};
use crate::OpError;
use crate::kernels::lanes::Lanes;
use crate::kernels::quant::{Multiplier, doubling_high_mul, rounding_divide_by_power_of_two};
use crate::kernels::simd::portable_kernel;
use crate::stop::{Checkpoints, STEPS_PER_CHECK, Stop};

portable_kernel! {
    /// `softmax/floats`: see [`softmax_lane`] and [`log_softmax_lane`].
    FLOATS = "softmax/floats",
    operations: [LogSoftmax, Softmax],
    types: [TensorFloat32, TensorFloat16],
}

portable_kernel! {
    /// `softmax/bytes`: see [`ExpTable::softmax`].
    BYTES = "softmax/bytes",
    operations: [Softmax],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
}

/// `exp(beta * (x - max))` over its sum, for one lane.
pub(crate) fn softmax_lane(
    input: &[f32],
    output: &mut [f32],
    beta: f32,
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    let max = largest(input, checkpoints)?;
    let mut sum = 0.0;
    for (output, input) in output.chunks_mut(STEPS_PER_CHECK).zip(input.chunks(STEPS_PER_CHECK)) {
        checkpoints.after(input.len())?;
        for (out, x) in output.iter_mut().zip(input) {
            *out = ((x - max) * beta).exp();
            sum += *out;
        }
    }
    for output in output.chunks_mut(STEPS_PER_CHECK) {
        checkpoints.after(output.len())?;
        for out in output {
            *out /= sum;
        }
    }
    Ok(())
}

fn largest(values: &[f32], checkpoints: &mut Checkpoints<'_>) -> Result<f32, OpError> {
    let mut max = f32::NEG_INFINITY;
    for part in values.chunks(STEPS_PER_CHECK) {
        checkpoints.after(part.len())?;
        max = part.iter().copied().fold(max, f32::max);
    }
    Ok(max)
}

/// `beta * (x - max)` minus the logarithm of the sum of its exponentials, for one lane.
pub(crate) fn log_softmax_lane(
    input: &[f32],
    output: &mut [f32],
    beta: f32,
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    let max = largest(input, checkpoints)?;
    let mut sum = 0.0;
    for part in input.chunks(STEPS_PER_CHECK) {
        checkpoints.after(part.len())?;
        sum = part.iter().fold(sum, |sum, x| sum + ((x - max) * beta).exp());
    }
    let log_sum = sum.ln();
    for (output, input) in output.chunks_mut(STEPS_PER_CHECK).zip(input.chunks(STEPS_PER_CHECK)) {
        checkpoints.after(input.len())?;
        for (out, x) in output.iter_mut().zip(input) {
            *out = (x - max) * beta - log_sum;
        }
    }
    Ok(())
}

/// 1 in Q5.
const ONE: f64 = (1u32 << (31 - EXP_INTEGER_BITS)) as f64;

/// The exponentials of all differences that two 8-bit values can have.
#[derive(Debug, Clone)]
pub(crate) struct ExpTable {
    /// `exp(-beta * scale * difference)` in Q0.
    by_difference: [i32; 256],
    /// The same in Q12, as it is added up.
    addends: [i32; 256],
}

impl ExpTable {
    /// The table for values of this scale.
    ///
    /// # Errors
    /// [`OpError::Range`] when `beta * scale` is not a positive number.
    pub(crate) fn new(beta: f32, scale: f32) -> Result<Self, OpError> {
        let multiplier = Self::check(beta, scale)?;
        // Differences beyond this would not be representable in Q5; their exponential is 0.
        let reach = f64::from((1 << EXP_INTEGER_BITS) - 1) * ONE / 2f64.powi(multiplier.shift);
        let mut by_difference = [0; 256];
        for (difference, entry) in (0..).zip(&mut by_difference) {
            if f64::from(difference) <= reach.floor() {
                *entry = exp_of_negative(multiplier.apply(-difference));
            }
        }
        let mut addends = by_difference;
        for addend in &mut addends {
            *addend = rounding_divide_by_power_of_two(*addend, SUM_INTEGER_BITS);
        }
        Ok(ExpTable { by_difference, addends })
    }

    /// What a difference of stored values is multiplied by to become Q5.
    ///
    /// # Errors
    /// As [`ExpTable::new`].
    pub(crate) fn check(beta: f32, scale: f32) -> Result<Multiplier, OpError> {
        let real = f64::from(beta) * f64::from(scale) * ONE;
        if real.is_nan() || real <= 0.0 {
            return Err(OpError::Range { what: "beta times scale of SOFTMAX" });
        }
        Multiplier::new(real.min(f64::from(i32::MAX)))
    }

    /// SOFTMAX of stored values; the output's scale is 1/256 and its zero point the lowest value.
    ///
    /// `low` is the smallest stored value of the type. Values are given and taken as bytes.
    ///
    /// # Errors
    /// Those of `stop`.
    pub(crate) fn softmax(
        &self,
        lanes: &Lanes,
        low: i32,
        input: &[u8],
        output: &mut [u8],
        stop: Stop<'_>,
    ) -> Result<(), OpError> {
        let checkpoints = &mut stop.checkpoints();
        // Flipping the sign bit of signed values keeps their order and makes them unsigned.
        let flip = if low < 0 { 0x80 } else { 0 };
        lanes.for_each(|lane| {
            let mut max = 0;
            lane.for_each(checkpoints, |at| max = max.max(input[at] ^ flip))?;
            let difference = |at: usize| usize::from(max - (input[at] ^ flip));
            // More than 4095 equal values leave Q12. Saturating, each of them still becomes 0.
            let mut sum = 0_i64;
            lane.for_each(checkpoints, |at| sum += i64::from(self.addends[difference(at)]))?;
            let (scale, bits) = reciprocal(i32::try_from(sum).unwrap_or(i32::MAX));
            let share = |exp: i32| {
                // Q0 with 31 fraction bits to 8 of them.
                let exponent = bits + 31 - 8;
                let product = doubling_high_mul(scale, exp);
                // Beyond 31 bits less than half a step is left: 0.
                let steps = if exponent > 31 {
                    0
                } else {
                    rounding_divide_by_power_of_two(product, exponent)
                };
                steps.clamp(0, 255) as u8 ^ flip
            };
            if lanes.len < self.by_difference.len() {
                return lane.for_each(checkpoints, |at| {
                    output[at] = share(self.by_difference[difference(at)]);
                });
            }
            // Fewer differences than values.
            let mut shares = [0; 256];
            for (to, exp) in shares.iter_mut().zip(self.by_difference) {
                *to = share(exp);
            }
            lane.for_each(checkpoints, |at| output[at] = shares[difference(at)])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_evenly() {
        // Four equal values: 1/4 each is 64 steps of 1/256.
        let table = ExpTable::new(1.0, 0.1).unwrap();
        let lanes = Lanes { outer: 1, len: 4, inner: 1 };
        let mut out = [0; 4];
        table.softmax(&lanes, 0, &[7; 4], &mut out, Stop::default()).unwrap();
        assert_eq!(out, [64; 4]);
        // Signed: stored values are 128 lower.
        table.softmax(&lanes, -128, &[7; 4], &mut out, Stop::default()).unwrap();
        assert_eq!(out.map(u8::cast_signed), [-64; 4]);
    }

    #[test]
    fn a_lone_winner_is_clamped_to_the_largest_value() {
        let table = ExpTable::new(1.0, 1.0).unwrap();
        let lanes = Lanes { outer: 1, len: 2, inner: 1 };
        let mut out = [9; 2];
        table.softmax(&lanes, 0, &[0, 255], &mut out, Stop::default()).unwrap();
        assert_eq!(out, [0, 255]);
    }

    /// Sums of 512 and more would be shifted by more than 31 bits, which the reference leaves
    /// undefined; sums of 4096 overflow its accumulator. The real answer is below half a step.
    #[test]
    fn many_equal_values_become_zero() {
        let table = ExpTable::new(1.0, 1.0).unwrap();
        for len in [513, 600, 4095, 4096, 10_000] {
            let lanes = Lanes { outer: 1, len, inner: 1 };
            let mut out = vec![9; len];
            table.softmax(&lanes, 0, &vec![3; len], &mut out, Stop::default()).unwrap();
            assert!(out.iter().all(|x| *x == 0), "{len}");
        }
        // 1/300 of 256 steps is 0.85: one step.
        let lanes = Lanes { outer: 1, len: 300, inner: 1 };
        let mut out = vec![9; 300];
        table.softmax(&lanes, 0, &[3; 300], &mut out, Stop::default()).unwrap();
        assert!(out.iter().all(|x| *x == 1));
    }

    #[test]
    fn a_scale_without_sense_is_refused() {
        assert!(ExpTable::new(0.0, 1.0).is_err());
        assert!(ExpTable::new(f32::NAN, 1.0).is_err());
        assert!(ExpTable::new(1e30, 1e30).is_ok()); // saturates: only equal values count
    }

    #[test]
    fn float_lanes() {
        let mut out = [0.0; 2];
        let checkpoints = &mut Stop::default().checkpoints();
        softmax_lane(&[0.0, 3f32.ln()], &mut out, 1.0, checkpoints).unwrap();
        assert!((out[0] - 0.25).abs() < 1e-6 && (out[1] - 0.75).abs() < 1e-6);
        log_softmax_lane(&[0.0, 3f32.ln()], &mut out, 1.0, checkpoints).unwrap();
        assert!((out[0] - 0.25f32.ln()).abs() < 1e-6 && (out[1] - 0.75f32.ln()).abs() < 1e-6);
    }
}
