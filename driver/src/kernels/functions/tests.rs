//! Against the exact functions, and every form against the one for a single value.

use super::{exp, exp_all, ln, ln_all, logistic, logistic_all, tanh, tanh_all};
use crate::kernels::simd::Isa;

/// Numbers of all sizes, most of them around 1, where a small result must keep its digits; and those at the edges.
fn numbers() -> Vec<f32> {
    let all = (1..f32::INFINITY.to_bits()).step_by(9_973).map(f32::from_bits);
    let around_one = (0x3f00_0000..0x4000_0000_u32).step_by(101).map(f32::from_bits);
    let tiny = [f32::MIN_POSITIVE, f32::from_bits(1), f32::from_bits(0x7f_ffff), f32::MAX, 1.0];
    all.chain(around_one).chain(tiny).collect()
}

/// Infinities, zeros, numbers below and what is none.
const EDGES: [f32; 7] =
    [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -1.0, -f32::MIN_POSITIVE / 2.0];

/// Holds what a kernel makes of these to the function of each, in whole vectors and with a rest of every length.
fn compare(kernel: fn(Isa, &[f32], &mut [f32]), function: fn(f32) -> f32, isa: Isa) {
    let mut values = numbers();
    values.extend(numbers().into_iter().map(|x| -x));
    values.extend(EDGES);
    for len in (1..40).chain([values.len()]) {
        let values = &values[values.len() - len..];
        let mut got = vec![7.0; len];
        kernel(isa, values, &mut got);
        for (value, got) in values.iter().zip(got) {
            let want = function(*value);
            let is_same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(is_same, "{value}: {got}, not {want}");
        }
    }
}

pub(crate) fn exponentials(isa: Isa) {
    compare(exp_all, exp, isa);
}

pub(crate) fn logarithms(isa: Isa) {
    compare(ln_all, ln, isa);
}

pub(crate) fn logistics(isa: Isa) {
    compare(logistic_all, logistic, isa);
}

pub(crate) fn tangents(isa: Isa) {
    compare(tanh_all, tanh, isa);
}

#[test]
fn logarithms_are_within_one_unit_in_the_last_place() {
    for x in numbers() {
        let (got, want) = (f64::from(ln(x)), f64::from(x).ln());
        assert!((got - want).abs() <= 0.9 * unit_at(want), "ln {x}: {got}, not {want}");
    }
}

/// The distance of floats around this number.
#[allow(clippy::cast_possible_truncation, reason = "a float near it is asked for")]
fn unit_at(x: f64) -> f64 {
    let rounded = x.abs() as f32;
    f64::from(rounded.next_up()) - f64::from(rounded)
}

#[test]
fn exponentials_are_within_two_units_in_the_last_place() {
    for step in -1_200_000..1_000_000_i32 {
        // From where they are 0 to where they are infinite, and around 0 the closer the smaller.
        let near = f64::from(step) * 1e-9;
        for x in [f64::from(step) * 8.9e-5, near] {
            #[allow(clippy::cast_possible_truncation, reason = "a float near it is asked for")]
            let x = x as f32;
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            if want > f64::from(f32::MAX) {
                assert_eq!(got, f64::INFINITY, "e^{x}");
                continue;
            }
            assert!((got - want).abs() <= 1.2 * unit_at(want), "e^{x}: {got:e}, not {want:e}");
        }
    }
    assert_eq!([exp(f32::NEG_INFINITY), exp(-1e30), exp(-104.0)], [0.0; 3]);
    assert_eq!([exp(f32::INFINITY), exp(1e30)], [f32::INFINITY; 2]);
    assert_eq!((exp(0.0).to_bits(), exp(-0.0)), (1f32.to_bits(), 1.0));
    assert!(exp(f32::NAN).is_nan());
}

#[test]
fn edges_follow_ieee() {
    let [zero, minus_zero, infinity, .., below, just_below] = EDGES.map(ln);
    assert_eq!([zero, minus_zero, infinity], [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY]);
    assert!([below, just_below, ln(f32::NAN), ln(f32::NEG_INFINITY)].iter().all(|x| x.is_nan()));
    assert_eq!(ln(1.0).to_bits(), 0);
}
