//! The logistic function and the hyperbolic tangent.
//!
//! Both are within a few units in the last place of the exact value (the tests say how many), and keep a NaN.

use super::apply;
use super::exponential::exp_held;

/// Below this `e^-x` is infinite in 32 bits.
const NOTHING: f32 = -88.722_84;

/// `1 / (1 + e^-x)`: nothing at all where `e^-x` is infinite, so that a gate that is closed lets nothing through,
/// and makes NaN of what is infinite.
#[inline(always)]
pub(crate) fn logistic(x: f32) -> f32 {
    let value = 1.0 / (1.0 + exp_held(-x));
    if x < NOTHING { 0.0 } else { value }
}

/// Where the tangent is computed from the exponential, and below it from a polynomial: the
/// difference from 1 would lose the digits of a small result.
const SMALL: f32 = 0.625;

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let large = 1.0 - 2.0 / (exp_held(2.0 * magnitude) + 1.0);
    // tanh(x) = x + x^3 q(x^2): an interpolation at the zeros of a Chebyshev polynomial.
    let square = x * x;
    let q = -6.070_581_7e-3;
    let q = q * square + 2.097_996e-2;
    let q = q * square - 5.384_750_3e-2;
    let q = q * square + 1.333_275e-1;
    let q = q * square - 3.333_333e-1;
    let small = q * square * x + x;
    // A NaN is not below and takes the way of the large numbers, which keeps it.
    if magnitude < SMALL { small } else { large.copysign(x) }
}

/// The logistic function of each value.
#[inline(always)]
pub(crate) fn logistic_all(values: &[f32], out: &mut [f32]) {
    apply(logistic, values, out);
}

/// The hyperbolic tangent of each value.
#[inline(always)]
pub(crate) fn tanh_all(values: &[f32], out: &mut [f32]) {
    apply(tanh, values, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers over the whole range, dense around 0, of both signs.
    fn numbers() -> impl Iterator<Item = f32> {
        (0u16..=60_000).flat_map(|step| {
            let x = f32::from(step) / 60_000.0;
            let values = [x, x * 12.0, x * 120.0, x * x * x * x * 1e-3, 0.55 + x / 8.0];
            values.into_iter().flat_map(|x| [x, -x])
        })
    }

    /// The largest relative difference from what `exact` says.
    fn worst(fast: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let difference = |x: f32| {
            let want = exact(f64::from(x));
            let got = f64::from(fast(x));
            // Tiny values are compared loosely: `e^x` is held in its range.
            (got - want).abs() / want.abs().max(1e-30)
        };
        numbers().map(difference).fold(0.0, f64::max)
    }

    /// A unit in the last place is 6e-8 to 1.2e-7 of a number.
    #[test]
    fn values_are_within_a_few_units_in_the_last_place() {
        let logistic_worst = worst(logistic, |x| 1.0 / (1.0 + (-x).exp()));
        assert!(logistic_worst < 3e-7, "{logistic_worst:e}");
        let tanh_worst = worst(tanh, f64::tanh);
        assert!(tanh_worst < 3e-7, "{tanh_worst:e}");
    }

    #[test]
    fn ends_and_what_is_no_number() {
        assert_eq!((logistic(0.0), tanh(0.0)), (0.5, 0.0));
        assert_eq!((logistic(f32::INFINITY), tanh(f32::INFINITY)), (1.0, 1.0));
        assert_eq!((logistic(1e30), tanh(1e30)), (1.0, 1.0));
        assert_eq!(tanh(f32::NEG_INFINITY), -1.0);
        assert_eq!(
            (logistic(f32::NEG_INFINITY), logistic(-1e30), logistic(-88.73)),
            (0.0, 0.0, 0.0)
        );
        assert!(logistic(-88.72) > 0.0 && logistic(-88.72) < 1e-37);
        assert!(logistic(f32::NAN).is_nan() && tanh(f32::NAN).is_nan());
    }
}
