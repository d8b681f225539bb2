//! Rows of sums against the scalar rule.

use proptest::prelude::*;

use super::*;
use crate::kernels::quant::{Multiplier, Rounding};

fn check(real: f64, zero_point: i32, sums: &[i32], isa: Isa) -> Result<(), TestCaseError> {
    let factor = Multiplier::new(real).unwrap();
    let bias: Vec<i32> = (0..).take(sums.len()).map(|channel| channel * 7 - 50).collect();
    let rules = Requantize::new(bias.clone(), |_| Ok(factor), zero_point, (3, 250)).unwrap();
    for rounding in [Rounding::Twice, Rounding::Once] {
        let rules = Requantize { rounding, ..rules.clone() };
        let mut out = vec![0; sums.len()];
        rules.rows(isa, sums, &[11], &mut out);
        for (channel, (sum, got)) in sums.iter().zip(&out).enumerate() {
            let biased = sum.wrapping_add(bias[channel]).wrapping_add(11);
            let scaled = match rounding {
                Rounding::Twice => factor.apply(biased),
                Rounding::Once => factor.apply_once(biased),
            };
            let want = scaled.saturating_add(zero_point).clamp(3, 250);
            prop_assert_eq!(i32::from(*got), want, "sum {} times {}, {:?}", sum, real, rounding);
        }
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
        for isa in Isa::each_here() {
            check(exponent.exp2(), zero_point, &sums, isa)?;
            check(exponent.exp2(), zero_point, &small, isa)?;
        }
    }
}

/// Ties and extremes, and what the random sums of the test above are not.
pub(crate) fn rows(isa: Isa) {
    let sums: Vec<i32> =
        (-40..40).chain([i32::MIN, i32::MIN + 1, i32::MAX, i32::MAX - 1]).collect();
    for real in [0.5, 0.25, 0.125, 1.0, 2.0, 2f64.powi(-31), 0.999_999_999, 0.0] {
        check(real, 128, &sums, isa).unwrap();
    }
}
