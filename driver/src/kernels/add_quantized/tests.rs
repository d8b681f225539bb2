//! Sums against the rule value by value.

use super::portable::{InputFactor, OutputFactor};
use super::*;
use crate::kernels::quant::Multiplier;
use crate::kernels::testing::Numbers;

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

/// A multiplier, a negative one for a difference.
fn factor(real: f64) -> Multiplier {
    let multiplier = Multiplier::new(real.abs()).unwrap();
    let sign = if real < 0.0 { -1 } else { 1 };
    Multiplier { multiplier: sign * multiplier.multiplier, ..multiplier }
}

/// Rules with factors of 1 and below, and with a negative one, which stands for a difference.
fn rules() -> impl Iterator<Item = [(i32, Multiplier); 3]> + Clone {
    // The last two make every second sum one in the middle between two stored values, and most of them large.
    let factors = [
        (0.5, 0.3, 2e-6),
        (0.01, 0.5, 9e-7),
        (0.5, -0.25, 1e-5),
        (0.5, 0.5, 2f64.powi(-20)),
        (0.5, 0.4, 0.01),
    ];
    factors
        .into_iter()
        .map(|(a, b, out): (f64, f64, f64)| [(3, factor(a)), (-7, factor(b)), (11, factor(out))])
}

/// Rules as models have them: inputs of about the scale of the output, and zero points anywhere.
fn rules_of_models() -> impl Iterator<Item = [(i32, Multiplier); 3]> {
    let mut numbers = Numbers::new(9);
    (0..24).map(move |_| {
        let mut between = |low: i32, high: i32| {
            low + i32::try_from(numbers.below((high - low).cast_unsigned() as usize)).unwrap()
        };
        let mut thousandths = |low, high| f64::from(between(low, high)) / 1_000.0;
        let [a, b] = [(); 2].map(|()| factor(thousandths(50, 500)));
        let out = factor(thousandths(600, 5_000) / f64::from(1 << SHIFT));
        let mut zero = || between(-128, 128);
        [(zero(), a), (zero(), b), (zero(), out)]
    })
}

/// Compares sums of values that look random with the rule.
fn compare<T: Copy + Into<i32>>(
    range: (i32, i32),
    stored: impl Fn(u8) -> T,
    sum: impl Fn(&Sum, &[T], &[T]) -> Vec<T>,
) {
    let numbers = &mut Numbers::new(1);
    let lens = [0, 1, 15, 16, 33, 100, 1000].into_iter().chain(31..66);
    let mut cases: Vec<_> = lens
        .zip(rules().cycle())
        .map(|(len, rule)| (rule, [(); 2].map(|()| numbers.bytes(len))))
        .collect();
    // All pairs of values.
    let all = |value: fn(u16) -> u8| (0..=u16::MAX).map(value).collect::<Vec<u8>>();
    let pairs = [all(|pair| pair.to_le_bytes()[0]), all(|pair| pair.to_le_bytes()[1])];
    cases.extend(rules().chain(rules_of_models()).map(|rule| (rule, pairs.clone())));
    for ([a, b, out], values) in cases {
        let [left, right] =
            values.map(|values| values.into_iter().map(&stored).collect::<Vec<T>>());
        let scaled = |(zero, factor): (i32, Multiplier), value: T| {
            factor.apply((value.into() - zero) << SHIFT)
        };
        let want = left.iter().zip(&right).map(|(x, y)| {
            let sum = out.1.apply(scaled(a, *x) + scaled(b, *y)) + out.0;
            sum.clamp(range.0, range.1)
        });
        let got = sum(&Sum::new(a, b, out, range).unwrap(), &left, &right);
        assert_eq!(got.into_iter().map(Into::into).collect::<Vec<i32>>(), want.collect::<Vec<_>>());
    }
}

pub(crate) fn unsigned(isa: Isa) {
    compare(
        (5, 250),
        |byte| byte,
        |rule, a, b| {
            let mut out = vec![0; a.len()];
            rule.unsigned(isa, a, b, &mut out).unwrap();
            out
        },
    );
}

pub(crate) fn signed(isa: Isa) {
    compare((-120, 127), u8::cast_signed, |rule, a, b| {
        let mut out = vec![0; a.len()];
        rule.signed(isa, a, b, &mut out).unwrap();
        out
    });
}

#[test]
fn summands_of_different_lengths_are_refused() {
    let [a, b, out] = rules().next().unwrap();
    let rule = Sum::new(a, b, out, (0, 255)).unwrap();
    assert!(rule.unsigned(Isa::PORTABLE, &[1], &[1, 2], &mut [0]).is_err());
    assert!(rule.signed(Isa::PORTABLE, &[1], &[1], &mut [0, 0]).is_err());
}
