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
        exponent in -40.0f64..31.0,
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
    // Shifted left, these leave 32 bits, or just do not.
    let around = [-1, 0, 1].into_iter().flat_map(|by| (0..31).map(move |bit| (1 << bit) + by));
    let large: Vec<i32> = around.flat_map(|sum| [sum, -sum]).chain(sums).collect();
    for bits in 0..31 {
        for real in [2f64.powi(bits), 2f64.powi(bits) * 1.7, 2f64.powi(bits + 1) - 1.0] {
            for zero_point in [0, 3, 128, 255] {
                check(real, zero_point, &large, isa).unwrap();
            }
        }
    }
}

/// 64 products of 255 and 255, with an output scale of a thousandth: what did not fit 32 bits came out as 0.
#[test]
fn large_sums_times_large_factors_saturate_at_every_instruction_set() {
    let factor = Multiplier::new(1000.0).unwrap();
    let sums: Vec<i32> = [1 << 22, 255 * 255 * 64, -(1 << 22), i32::MAX, i32::MIN].repeat(9);
    for rounding in [Rounding::Twice, Rounding::Once] {
        for (zero_point, low) in [(0, 0), (128, 128), (128, 0)] {
            let rules =
                Requantize::new(vec![0; sums.len()], |_| Ok(factor), zero_point, (low, 255));
            let rules = Requantize { rounding, ..rules.unwrap() };
            for isa in Isa::each_here() {
                let mut out = vec![7; sums.len()];
                rules.rows(isa, &sums, &[], &mut out);
                for (sum, got) in sums.iter().zip(out) {
                    let want = if *sum > 0 { 255 } else { low };
                    assert_eq!(i32::from(got), want, "{sum} at {isa:?}, {rounding:?}");
                }
            }
        }
    }
}
