//! Normalisations: to length one, by neighbours, by mean and variance.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "products of fixed-point fractions fit in 32 bits again; counts are small"
)]

use crate::kernels::quant::{
    Multiplier, doubling_high_mul, rounding_divide_by_power_of_two as divide,
};
use crate::kernels::simd::portable_kernel;

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
pub(crate) fn l2_lane(input: &[f32], output: &mut [f32]) {
    let length = input.iter().map(|x| x * x).sum::<f32>().sqrt().max(SHORTEST);
    for (out, x) in output.iter_mut().zip(input) {
        *out = x / length;
    }
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
    bias: f32,
    alpha: f32,
    beta: f32,
) {
    for (index, out) in output.iter_mut().enumerate() {
        let first = index.saturating_sub(radius);
        let last = index.saturating_add(radius).min(input.len().saturating_sub(1));
        let sum: f32 = input[first..=last].iter().map(|x| x * x).sum();
        *out = input[index] * (bias + alpha * sum).powf(-beta);
    }
}

/// For each channel of one picture, of `channels` values per pixel, subtracts the mean, divides by
/// `sqrt(variance + epsilon)`, multiplies by `gamma` and adds `beta`.
///
/// `scratch` is working memory of two values per channel.
pub(crate) fn instance<T: Copy>(
    input: &[T],
    output: &mut [T],
    scratch: &mut [f32],
    (gamma, beta, epsilon): (f32, f32, f32),
    load: impl Fn(T) -> f32,
    store: impl Fn(f32) -> T,
) {
    let channels = scratch.len() / 2;
    if channels == 0 {
        return;
    }
    let count = (input.len() / channels) as f32;
    let (means, factors) = scratch.split_at_mut(channels);
    means.fill(0.0);
    factors.fill(0.0);
    for pixel in input.chunks_exact(channels) {
        for (sum, x) in means.iter_mut().zip(pixel) {
            *sum += load(*x);
        }
    }
    for mean in means.iter_mut() {
        *mean /= count;
    }
    for pixel in input.chunks_exact(channels) {
        for ((sum, mean), x) in factors.iter_mut().zip(&*means).zip(pixel) {
            let away = load(*x) - mean;
            *sum += away * away;
        }
    }
    for factor in factors.iter_mut() {
        *factor = gamma / (*factor / count + epsilon).sqrt();
    }
    for (out, pixel) in output.chunks_exact_mut(channels).zip(input.chunks_exact(channels)) {
        for (((out, x), mean), factor) in out.iter_mut().zip(pixel).zip(&*means).zip(&*factors) {
            *out = store((load(*x) - mean) * factor + beta);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        l2_lane(&[0.0, 0.0], &mut out);
        assert_eq!(out, [0.0, 0.0]);
        l2_lane(&[3.0, -4.0], &mut out);
        assert_eq!(out, [0.6, -0.8]);
    }

    #[test]
    fn neighbours_are_cut_at_the_ends() {
        let mut out = [0.0; 3];
        local_response_lane(&[1.0, 2.0, 4.0], &mut out, 1, 3.0, 1.0, 1.0);
        assert_eq!(out, [1.0 / 8.0, 2.0 / 24.0, 4.0 / 23.0]);
        local_response_lane(&[1.0, 2.0, 4.0], &mut out, usize::MAX, 3.0, 1.0, 1.0);
        assert_eq!(out, [1.0 / 24.0, 2.0 / 24.0, 4.0 / 24.0]);
    }

    #[test]
    fn channels_are_normalised_by_themselves() {
        let mut out = [0.0; 4];
        let input = [1.0, 10.0, 3.0, 50.0];
        instance(&input, &mut out, &mut [0.0; 4], (2.0, 1.0, 0.0), |x| x, |x| x);
        assert_eq!(out, [-1.0, -1.0, 3.0, 3.0]);
    }
}
