//! Products against plain sums.

use super::*;
use crate::budget::Budget;
use crate::kernels::panels::LANES;
use crate::kernels::simd::Isa;

/// Small whole numbers, whose sums of products are exact in any order.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    #[allow(clippy::cast_precision_loss, reason = "numbers below 13")]
    (0..count).map(|index| ((index * 7 + seed * 5) % 13) as f32 - 6.0).collect()
}

fn plain(rows: &[f32], weights: &[f32], depth: usize, start: impl Fn(usize) -> f32) -> Vec<f32> {
    let mut out = Vec::new();
    for row in rows.chunks_exact(depth) {
        for unit in weights.chunks_exact(depth) {
            let sum: f32 = row.iter().zip(unit).map(|(a, b)| a * b).sum();
            out.push(start(out.len()) + sum);
        }
    }
    out
}

/// Products of every shape are exact.
pub(crate) fn panels(isa: Isa) {
    for (count, units, depth) in [
        (1, 1, 1),
        (1, 300, 7),
        (1, 150, 53),
        (1, 16, 16),
        (2, 17, 3),
        (5, 16, 40),
        (7, 33, 5),
        (11, 48, 9),
        (25, 64, 12),
        (31, 65, 2),
        (13, 150, 21),
    ] {
        let (rows, weights) = (numbers(count * depth, 1), numbers(units * depth, 2));
        let bias = numbers(units, 3);
        let panels = FloatPanels::new(isa, &weights, units, depth, &Budget::default()).unwrap();
        let want = plain(&rows, &weights, depth, |index| bias[index % units]);
        let mut product = Product {
            units: panels.all(),
            rows: FloatRows::Matrix { values: &rows, depth },
            start: Start::Bias(&bias),
            range: EVERYTHING,
            out_step: units,
        };
        let mut out = vec![f32::NAN; count * units];
        product.run(isa, &mut out).unwrap();
        assert_eq!(out, want, "{count} x {units} x {depth}");

        // The same from a panel in the middle on, and without the last unit.
        let first = units / 2 / LANES * LANES;
        for count_of_units in [units - first, units - first - 1] {
            let mut out = vec![f32::NAN; count * count_of_units];
            let part = Product {
                units: panels.part(first, count_of_units),
                start: Start::Bias(&bias[first..][..count_of_units]),
                out_step: count_of_units,
                ..product
            };
            if count_of_units > 0 {
                part.run(isa, &mut out).unwrap();
            }
            let rows = want.chunks_exact(units).map(|row| &row[first..][..count_of_units]);
            assert_eq!(out, rows.collect::<Vec<_>>().concat(), "{count} x {units} x {depth}");
        }

        // Once more on top of it, rows further apart, within bounds.
        (product.start, product.range) = (Start::Output, (-9.0, 40.0));
        product.out_step = units + 3;
        let mut wide = vec![5.0; count * (units + 3)];
        product.run(isa, &mut wide).unwrap();
        let want = plain(&rows, &weights, depth, |_| 5.0);
        for (wide, want) in wide.chunks_exact(units + 3).zip(want.chunks_exact(units)) {
            let want: Vec<f32> = want.iter().map(|x| x.clamp(-9.0, 40.0)).collect();
            assert_eq!(wide[..units], want, "{count} x {units} x {depth}");
            assert_eq!(wide[units..], [5.0; 3], "values between rows");
        }
    }
}

/// Whatever registers they are in, with AVX2 as with AVX-512.
#[test]
fn products_are_added_in_order_and_rounded_once() {
    for isa in Isa::each_here().filter(|isa| has_panels(*isa)) {
        for (count, units, depth) in [(1, 200, 33), (7, 24, 50), (13, 70, 9), (12, 8, 31)] {
            let thirds = |floats: Vec<f32>| floats.into_iter().map(|x| x / 3.0).collect();
            let rows: Vec<f32> = thirds(numbers(count * depth, 1));
            let weights: Vec<f32> = thirds(numbers(units * depth, 2));
            let bias: Vec<f32> = thirds(numbers(units, 3));
            let panels = FloatPanels::new(isa, &weights, units, depth, &Budget::default()).unwrap();
            let mut out = vec![f32::NAN; count * units];
            let rows_of = FloatRows::Matrix { values: &rows, depth };
            let (start, range) = (Start::Bias(&bias), EVERYTHING);
            let product =
                Product { units: panels.all(), rows: rows_of, start, range, out_step: units };
            product.run(isa, &mut out).unwrap();
            let sum = |row: &[f32], (weights, bias): (&[f32], &f32)| {
                row.iter().zip(weights).fold(*bias, |sum, (a, b)| a.mul_add(*b, sum))
            };
            let of_units = || weights.chunks_exact(depth).zip(&bias);
            let rows = rows.chunks_exact(depth);
            let want: Vec<f32> =
                rows.flat_map(|row| of_units().map(move |unit| sum(row, unit))).collect();
            assert_eq!(out, want, "{count} x {units} x {depth}");
        }
    }
}

#[test]
fn a_range_keeps_what_is_no_number() {
    let panels = FloatPanels::new(Isa::detect(), &[1.0; 3], 3, 1, &Budget::default()).unwrap();
    for isa in Isa::each_here() {
        let mut out = [0.0; 3];
        let product = Product {
            units: panels.all(),
            rows: FloatRows::Matrix { values: &[0.0], depth: 1 },
            start: Start::Bias(&[f32::NAN, f32::INFINITY, -1.0]),
            range: (0.0, 6.0),
            out_step: 3,
        };
        product.run(isa, &mut out).unwrap();
        assert!(out[0].is_nan() && out[1..] == [6.0, 0.0], "{out:?}");
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    assert!(FloatPanels::new(Isa::detect(), &[1.0; 5], 2, 3, &Budget::default()).is_err());
    assert!(FloatPanels::new(Isa::detect(), &[], 0, 3, &Budget::default()).is_err());
    let panels = FloatPanels::new(Isa::detect(), &[1.0; 6], 2, 3, &Budget::default()).unwrap();
    let run = |depth, bias: &[f32], out_step, out: usize| {
        let rows = FloatRows::Matrix { values: &[1.0; 6], depth };
        let start = Start::Bias(bias);
        let product = Product { units: panels.all(), rows, start, range: EVERYTHING, out_step };
        product.run(Isa::detect(), &mut vec![0.0; out]).is_ok()
    };
    assert!(run(3, &[0.0; 2], 2, 4));
    assert!(!run(2, &[0.0; 2], 2, 6));
    assert!(!run(3, &[0.0; 3], 2, 4));
    assert!(!run(3, &[0.0; 2], 1, 4));
    assert!(!run(3, &[0.0; 2], 3, 4));
}

pub(crate) fn clamp(isa: Isa) {
    for len in [0, 1, 15, 16, 17, 100] {
        let mut values = numbers(len, 4);
        let want: Vec<f32> = values.iter().map(|x| x.clamp(-2.0, 3.0)).collect();
        super::clamp(isa, &mut values, -2.0, 3.0);
        assert_eq!(values, want);
    }
    let mut values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    super::clamp(isa, &mut values, -2.0, 3.0);
    assert!(values[0].is_nan() && values[1..] == [3.0, -2.0], "{values:?}");
}
