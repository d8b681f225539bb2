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
use crate::kernels::Isa;
use crate::kernels::functions::{exp_all, ln};
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
    isa: Isa,
    input: &[f32],
    output: &mut [f32],
    beta: f32,
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    let max = largest(input, checkpoints)?;
    let mut sum = 0.0;
    for (output, input) in output.chunks_mut(BLOCK).zip(input.chunks(BLOCK)) {
        checkpoints.after(input.len())?;
        sum += exponentials(isa, input, (max, beta), output);
    }
    for output in output.chunks_mut(STEPS_PER_CHECK) {
        checkpoints.after(output.len())?;
        for out in output {
            *out /= sum;
        }
    }
    Ok(())
}

/// Values whose exponentials are computed, and added up, at a time.
const BLOCK: usize = 256;

/// Maxima and sums that are kept side by side: whatever instructions there are, they are of the same values, in the same order.
const SIDE_BY_SIDE: usize = 16;

/// Writes `exp(beta * (x - max))` of at most [`BLOCK`] values, and gives their sum.
fn exponentials(isa: Isa, input: &[f32], (max, beta): (f32, f32), output: &mut [f32]) -> f32 {
    let mut scaled = [0.0; BLOCK];
    for (scaled, x) in scaled.iter_mut().zip(input) {
        *scaled = (x - max) * beta;
    }
    exp_all(isa, &scaled[..input.len()], output);
    folded(output, 0.0, |sum, exp| sum + exp)
}

fn largest(values: &[f32], checkpoints: &mut Checkpoints<'_>) -> Result<f32, OpError> {
    let mut max = f32::NEG_INFINITY;
    for part in values.chunks(STEPS_PER_CHECK) {
        checkpoints.after(part.len())?;
        max = max.max(folded(part, f32::NEG_INFINITY, f32::max));
    }
    Ok(max)
}

/// All values, and `first` for those that are missing, as `both` makes one of two.
#[inline(always)]
fn folded(values: &[f32], first: f32, both: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [first; SIDE_BY_SIDE];
    let (whole, rest) = values.as_chunks::<SIDE_BY_SIDE>();
    for values in whole {
        for (lane, value) in lanes.iter_mut().zip(values) {
            *lane = both(*lane, *value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = both(*lane, *value);
    }
    lanes.into_iter().fold(first, both)
}

/// `beta * (x - max)` minus the logarithm of the sum of its exponentials, for one lane.
pub(crate) fn log_softmax_lane(
    isa: Isa,
    input: &[f32],
    output: &mut [f32],
    beta: f32,
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    let max = largest(input, checkpoints)?;
    let mut sum = 0.0;
    for (output, input) in output.chunks_mut(BLOCK).zip(input.chunks(BLOCK)) {
        checkpoints.after(input.len())?;
        // Where the results come later.
        sum += exponentials(isa, input, (max, beta), output);
    }
    let log_sum = ln(sum);
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
        let (isa, mut out) = (Isa::detect(), [0.0; 2]);
        let checkpoints = &mut Stop::default().checkpoints();
        softmax_lane(isa, &[0.0, 3f32.ln()], &mut out, 1.0, checkpoints).unwrap();
        assert!((out[0] - 0.25).abs() < 1e-6 && (out[1] - 0.75).abs() < 1e-6);
        log_softmax_lane(isa, &[0.0, 3f32.ln()], &mut out, 1.0, checkpoints).unwrap();
        assert!((out[0] - 0.25f32.ln()).abs() < 1e-6 && (out[1] - 0.75f32.ln()).abs() < 1e-6);
    }

    /// Lanes of every length around those that are computed at a time: near the exact result, and the same bits for all instructions.
    #[test]
    fn float_lanes_of_every_length() {
        for len in (1..70).chain([255, 256, 257, 1001]) {
            let number =
                |at: usize| f32::from(u16::try_from(at * 7919 % 1013).unwrap()) / 50.0 - 9.0;
            let values: Vec<f32> = (0..len).map(number).collect();
            let exact: Vec<f64> = values.iter().map(|x| (f64::from(*x) * 0.7).exp()).collect();
            let sum: f64 = exact.iter().sum();
            let lanes = |isa| {
                let checkpoints = &mut Stop::default().checkpoints();
                let mut out = [vec![0.0; len], vec![0.0; len]];
                softmax_lane(isa, &values, &mut out[0], 0.7, checkpoints).unwrap();
                log_softmax_lane(isa, &values, &mut out[1], 0.7, checkpoints).unwrap();
                out
            };
            let got = lanes(Isa::PORTABLE);
            for ((share, log), exact) in got[0].iter().zip(&got[1]).zip(&exact) {
                let want = exact / sum;
                assert!(
                    (f64::from(*share) - want).abs() <= 2e-6 * want,
                    "{len}: {share}, not {want}"
                );
                assert!(
                    (f64::from(*log) - want.ln()).abs() <= 2e-6,
                    "{len}: {log}, not {}",
                    want.ln()
                );
            }
            for isa in Isa::each_here() {
                assert_eq!(lanes(isa), got, "{len}");
            }
        }
    }

    #[test]
    fn what_is_no_number_makes_all_of_a_lane_none() {
        let mut out = [0.0; 20];
        let checkpoints = &mut Stop::default().checkpoints();
        let mut values = [1.0; 20];
        values[17] = f32::NAN;
        softmax_lane(Isa::detect(), &values, &mut out, 1.0, checkpoints).unwrap();
        assert!(out.iter().all(|x| x.is_nan()));
        values[17] = f32::NEG_INFINITY;
        softmax_lane(Isa::detect(), &values, &mut out, 1.0, checkpoints).unwrap();
        assert_eq!((out[17], out[0]), (0.0, 1.0 / 19.0));
    }
}
