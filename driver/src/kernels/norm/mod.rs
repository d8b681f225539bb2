//! Normalisations: to length one, by neighbours, by mean and variance.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "products of fixed-point fractions fit in 32 bits again; counts are small"
)]

use crate::OpError;
use crate::kernels::quant::{
    Multiplier, doubling_high_mul, rounding_divide_by_power_of_two as divide,
};
use crate::kernels::simd::portable_kernel;
use crate::stop::{Checkpoints, STEPS_PER_CHECK};

portable_kernel! {
    /// `norm/l2`: see [`l2_lane`].
    L2 = "norm/l2",
    operations: [L2Normalization],
    types: [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned],
}

portable_kernel! {
    /// `norm/local_response`: see [`local_response_lane`].
    LOCAL_RESPONSE = "norm/local_response",
    operations: [LocalResponseNormalization],
    types: [TensorFloat32, TensorFloat16],
}

portable_kernel! {
    /// `norm/instance`: see [`instance`].
    INSTANCE = "norm/instance",
    operations: [InstanceNormalization],
    types: [TensorFloat32, TensorFloat16],
}

/// Lengths below this count as this: nothing is divided by zero.
const SHORTEST: f32 = 1e-6;

/// Divides a lane by its length.
pub(crate) fn l2_lane(
    input: &[f32],
    output: &mut [f32],
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    let square = sum_of_squares(input, checkpoints)?;
    let length = square.sqrt().max(SHORTEST);
    for (out, input) in output.chunks_mut(STEPS_PER_CHECK).zip(input.chunks(STEPS_PER_CHECK)) {
        checkpoints.after(out.len())?;
        for (out, x) in out.iter_mut().zip(input) {
            *out = x / length;
        }
    }
    Ok(())
}

/// The squares added up one after the other.
fn sum_of_squares(values: &[f32], checkpoints: &mut Checkpoints<'_>) -> Result<f32, OpError> {
    // What a sum of floats begins with: it keeps a sum of negative zeros one.
    let mut sum: f32 = std::iter::empty::<f32>().sum();
    for part in values.chunks(STEPS_PER_CHECK) {
        checkpoints.after(part.len())?;
        sum = part.iter().fold(sum, |sum, x| sum + x * x);
    }
    Ok(sum)
}

/// `1 / sqrt(square)` for a sum of squares, as a multiplier; sums of 0 and 1 give 1.
///
/// Five Newton steps in fixed point, as the answers of quantized models are defined by them.
#[must_use]
pub(crate) fn inverse_sqrt(square: i32) -> Multiplier {
    const HALF_OF_SQRT_TWO: i32 = 1_518_500_250; // Q0
    const THREE_HALVES: i32 = (1 << 28) + (1 << 27); // Q3
    if square <= 1 {
        return Multiplier { multiplier: i32::MAX, shift: 0 };
    }
    // Shift pairs of bits, so that the root shifts by single ones, until 29 bits are in use.
    let (mut square, mut right) = (square, 11);
    while square >= 1 << 29 {
        square /= 4;
        right += 1;
    }
    let pairs = (square.leading_zeros() - 1) / 2 - 1;
    right -= pairs as i32;
    square <<= 2 * pairs;
    // `x` and `half` are Q3; a product of two is Q6, of three Q9.
    let half = divide(square >> 1, 1);
    let mut x = 1 << 28;
    for _ in 0..5 {
        let cube = saturating_shl(doubling_high_mul(doubling_high_mul(x, x), x), 6);
        let next = doubling_high_mul(THREE_HALVES, x) - doubling_high_mul(half, cube);
        x = saturating_shl(next, 3);
    }
    let root = doubling_high_mul(x, HALF_OF_SQRT_TWO);
    if right < 0 {
        Multiplier { multiplier: root << -right, shift: 0 }
    } else {
        Multiplier { multiplier: root, shift: -right }
    }
}

fn saturating_shl(x: i32, bits: u32) -> i32 {
    let wide = i64::from(x) << bits;
    wide.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// Divides each value by a power of a sum over its neighbours: `radius` to either side.
pub(crate) fn local_response_lane(
    input: &[f32],
    output: &mut [f32],
    radius: usize,
    (bias, alpha, beta): (f32, f32, f32),
    checkpoints: &mut Checkpoints<'_>,
) -> Result<(), OpError> {
    let window = radius.saturating_mul(2).saturating_add(1).min(input.len());
    let values = (STEPS_PER_CHECK / window.max(1)).max(1);
    for (part, output) in output.chunks_mut(values).enumerate() {
        checkpoints.after(output.len() * window.min(STEPS_PER_CHECK))?;
        for (index, out) in (part * values..).zip(output) {
            let first = index.saturating_sub(radius);
            let last = index.saturating_add(radius).min(input.len().saturating_sub(1));
            let neighbours = &input[first..=last];
            let sum: f32 = if window > STEPS_PER_CHECK {
                sum_of_squares(neighbours, checkpoints)?
            } else {
                neighbours.iter().map(|x| x * x).sum()
            };
            *out = input[index] * (bias + alpha * sum).powf(-beta);
        }
    }
    Ok(())
}

/// For each channel of one picture, of `channels` values per pixel, subtracts the mean, divides by
/// `sqrt(variance + epsilon)`, multiplies by `gamma` and adds `beta`.
///
/// `scratch` is working memory of two values per channel.
pub(crate) fn instance<T: Copy>(
    input: &[T],
    output: &mut [T],
    (scratch, checkpoints): (&mut [f32], &mut Checkpoints<'_>),
    (gamma, beta, epsilon): (f32, f32, f32),
    (load, store): (impl Fn(T) -> f32, impl Fn(f32) -> T),
) -> Result<(), OpError> {
    let channels = scratch.len() / 2;
    if channels == 0 {
        return Ok(());
    }
    // Whole pixels between two checks.
    let part = (STEPS_PER_CHECK / channels).max(1) * channels;
    let count = (input.len() / channels) as f32;
    let (means, factors) = scratch.split_at_mut(channels);
    means.fill(0.0);
    factors.fill(0.0);
    for input in input.chunks(part) {
        checkpoints.after(input.len())?;
        for pixel in input.chunks_exact(channels) {
            for (sum, x) in means.iter_mut().zip(pixel) {
                *sum += load(*x);
            }
        }
    }
    for mean in means.iter_mut() {
        *mean /= count;
    }
    for input in input.chunks(part) {
        checkpoints.after(input.len())?;
        for pixel in input.chunks_exact(channels) {
            for ((sum, mean), x) in factors.iter_mut().zip(&*means).zip(pixel) {
                let away = load(*x) - mean;
                *sum += away * away;
            }
        }
    }
    for factor in factors.iter_mut() {
        *factor = gamma / (*factor / count + epsilon).sqrt();
    }
    for (output, input) in output.chunks_mut(part).zip(input.chunks(part)) {
        checkpoints.after(input.len())?;
        for (out, pixel) in output.chunks_exact_mut(channels).zip(input.chunks_exact(channels)) {
            let factors = means.iter().zip(&*factors);
            for ((out, x), (mean, factor)) in out.iter_mut().zip(pixel).zip(factors) {
                *out = store((load(*x) - mean) * factor + beta);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;

    #[test]
    fn inverse_roots_are_right_as_far_as_five_steps_go() {
        for square in [2, 3, 4, 5, 100, 65_025, 1 << 20, (1 << 29) - 1, 1 << 29, i32::MAX] {
            let Multiplier { multiplier, shift } = inverse_sqrt(square);
            let got = f64::from(multiplier) / 2f64.powi(31 - shift);
            let want = 1.0 / f64::from(square).sqrt();
            assert!((got / want - 1.0).abs() < 2e-6, "{square}: {got}, {want}");
        }
        assert_eq!(inverse_sqrt(0), inverse_sqrt(1));
        assert_eq!(inverse_sqrt(1).apply(1 << 20), 1 << 20);
    }

    #[test]
    fn a_lane_of_zeros_stays() {
        let mut out = [1.0; 2];
        let checkpoints = &mut Stop::default().checkpoints();
        l2_lane(&[0.0, 0.0], &mut out, checkpoints).unwrap();
        assert_eq!(out, [0.0, 0.0]);
        l2_lane(&[3.0, -4.0], &mut out, checkpoints).unwrap();
        assert_eq!(out, [0.6, -0.8]);
    }

    #[test]
    fn neighbours_are_cut_at_the_ends() {
        let checkpoints = &mut Stop::default().checkpoints();
        let mut lane = |radius| {
            let mut out = [0.0; 3];
            let (input, rule) = ([1.0, 2.0, 4.0], (3.0, 1.0, 1.0));
            local_response_lane(&input, &mut out, radius, rule, checkpoints).unwrap();
            out
        };
        assert_eq!(lane(1), [1.0 / 8.0, 2.0 / 24.0, 4.0 / 23.0]);
        assert_eq!(lane(usize::MAX), [1.0 / 24.0, 2.0 / 24.0, 4.0 / 24.0]);
    }

    #[test]
    fn channels_are_normalised_by_themselves() {
        let mut out = [0.0; 4];
        let input = [1.0, 10.0, 3.0, 50.0];
        let mut checkpoints = Stop::default().checkpoints();
        let work = (&mut [0.0; 4][..], &mut checkpoints);
        instance(&input, &mut out, work, (2.0, 1.0, 0.0), (|x| x, |x| x)).unwrap();
        assert_eq!(out, [-1.0, -1.0, 3.0, 3.0]);
    }
}
