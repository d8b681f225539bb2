//! Products of bytes against plain sums.

use crate::budget::Budget;
use proptest::prelude::*;

use super::ByteRows;
use super::dispatch::{has_quads, multiply_quads, multiply_wide, wide_len};
use super::matrix::multiply_pairs;
use super::pairs::PairMatrix;
use super::quads::{QUAD, QuadMatrix};
use crate::kernels::conv::{Axis, Conv, Filter, Images, Source, fill_rows};
use crate::kernels::quant::{Multiplier, Rounding};
use crate::kernels::requantize::Requantize;
use crate::kernels::simd::{Isa, has_avx2};
use crate::kernels::testing::Numbers;

proptest! {
    #[test]
    fn equals_plain_sums(
        count in 1usize..10,
        units in 1usize..40,
        depth in 1usize..50,
        bytes in proptest::collection::vec(any::<u8>(), 500),
    ) {
        let rows: Vec<u8> = bytes.iter().copied().cycle().take(count * depth).collect();
        let weights: Vec<i8> =
            bytes.iter().rev().copied().cycle().take(units * depth).map(u8::cast_signed).collect();
        let mut want = Vec::new();
        for row in rows.chunks(depth) {
            for unit in weights.chunks(depth) {
                let products = row.iter().zip(unit).map(|(a, w)| i32::from(*a) * i32::from(*w));
                want.push(products.sum::<i32>());
            }
        }
        let matrix = pair_matrix(Isa::detect(), &weights, (units, depth), 0);
        for isa in Isa::each_here() {
            let mut got = vec![-1; count * units];
            multiply_pairs(isa, &matrix, &rows, &mut got).unwrap();
            prop_assert_eq!(&got, &want);
        }
    }
}

/// Each row of weights as bytes.
fn rows_of<'w>(weights: &'w [i8], depth: usize) -> impl Fn(usize) -> &'w [u8] {
    move |unit| bytemuck::cast_slice(&weights[unit * depth..][..depth])
}

/// Weights as they are, less this zero point.
fn pair_matrix(isa: Isa, weights: &[i8], sizes: (usize, usize), zero: i8) -> PairMatrix {
    PairMatrix::new(isa, rows_of(weights, sizes.1), (0, zero), sizes, &Budget::default()).unwrap()
}

#[test]
fn the_largest_products_do_not_saturate() {
    let depth = 1000;
    let matrix = pair_matrix(Isa::detect(), &vec![-128; depth], (1, depth), 0);
    for isa in Isa::each_here() {
        let mut out = [0];
        multiply_pairs(isa, &matrix, &vec![255; depth], &mut out).unwrap();
        assert_eq!(out, [-128 * 255 * 1000]);
    }
    assert!(multiply_pairs(Isa::PORTABLE, &matrix, &[1; 3], &mut [0]).is_err());
}

/// Rows, weights and their sums of products.
fn product(count: usize, units: usize, depth: usize) -> (Vec<u8>, Vec<i8>, Vec<i32>) {
    let numbers = &mut Numbers::new((count * 1000 + units * 100 + depth) as u64);
    let rows = numbers.bytes(count * depth);
    let weights: Vec<i8> = numbers.bytes(units * depth).into_iter().map(u8::cast_signed).collect();
    let products = |row: &[u8], unit: &[i8]| {
        row.iter().zip(unit).map(|(a, w)| i32::from(*a) * i32::from(*w)).sum::<i32>()
    };
    let sums = rows
        .chunks_exact(depth)
        .flat_map(|row| weights.chunks_exact(depth).map(move |unit| products(row, unit)))
        .collect();
    (rows, weights, sums)
}

const SHAPES: [(usize, usize, usize); 12] = [
    (1, 1, 1),
    (2, 17, 3),
    (4, 16, 4),
    (6, 64, 40),
    (7, 33, 5),
    (13, 150, 21),
    (25, 65, 2),
    (3, 300, 7),
    (24, 32, 36),
    (19, 48, 8),
    (30, 63, 9),
    (23, 20, 12),
];

pub(crate) fn pairs(isa: Isa) {
    for (count, units, depth) in SHAPES {
        let (rows, weights, want) = product(count, units, depth);
        let mut got = vec![-1; want.len()];
        multiply_pairs(isa, &pair_matrix(isa, &weights, (units, depth), 0), &rows, &mut got)
            .unwrap();
        assert_eq!(got, want, "{count} x {units} x {depth}");
    }
}

/// Rules, and what they make of rows of sums, each with its term.
fn stored(
    units: usize,
    (low, rounding): (i32, Rounding),
    sums: &[i32],
    terms: &[i32],
) -> (Requantize, Vec<u8>) {
    let bias: Vec<i32> = (0..).take(units).map(|unit| unit * 71 - 500).collect();
    let factor = |unit: usize| Multiplier::new(1e-3 / f64::from(u16::try_from(unit + 1).unwrap()));
    let rules = Requantize::new(bias.clone(), factor, low, (low, low + 200)).unwrap();
    let rules = Requantize { rounding, ..rules };
    let rows = sums.chunks_exact(units).zip(terms);
    let sums = rows.flat_map(|(sums, term)| sums.iter().enumerate().map(move |sum| (sum, *term)));
    let want = sums.map(|((unit, sum), term)| {
        let (factor, sum) = (factor(unit).unwrap(), sum + bias[unit] + term);
        let scaled = match rounding {
            Rounding::Twice => factor.apply(sum),
            Rounding::Once => factor.apply_once(sum),
        };
        (scaled + low).clamp(low, low + 200).to_le_bytes()[0]
    });
    let want = want.collect();
    (rules, want)
}

fn quad_matrix(isa: Isa, weights: &[i8], sizes: (usize, usize)) -> QuadMatrix {
    QuadMatrix::new(isa, rows_of(weights, sizes.1), 0, sizes, &Budget::default()).unwrap()
}

/// Shapes with ends of tiles of rows, of panels and of rows, each of every size, and weights that not all tiles pass at once.
fn shapes_of_all_ends() -> impl Iterator<Item = (usize, usize, usize)> {
    let counts = (1..14).map(|count| (count, 20, 37));
    let units = (1..34).map(|units| (7, units, 18));
    let depths = (1..52).map(|depth| (3, 18, depth));
    SHAPES.into_iter().chain(counts).chain(units).chain(depths).chain([(8, 130, 1000)])
}

pub(crate) fn quads(isa: Isa) {
    for (count, units, depth) in shapes_of_all_ends() {
        for form in [(0, Rounding::Twice), (-128, Rounding::Twice), (-128, Rounding::Once)] {
            let (rows, weights, sums) = product(count, units, depth);
            let terms: Vec<i32> = (0..).take(count).map(|row| 300 - row * 37).collect();
            let (rules, want) = stored(units, form, &sums, &terms);
            let matrix = quad_matrix(isa, &weights, (units, depth));
            let (panels, rules) = (matrix.channels(0, units), rules.channels(0..units));
            let mut got = vec![0xA5; want.len()];
            for flip in [0, 0x80] {
                let values: Vec<u8> = rows.iter().map(|byte| byte ^ flip).collect();
                let rows = (&ByteRows::Matrix { values: &values, depth }, flip);
                multiply_quads(isa, panels, rows, rules, &terms, &mut got).unwrap();
                assert_eq!(got, want, "{count} x {units} x {depth}, {flip}");
            }
        }
    }
}

pub(crate) fn wide_pairs(isa: Isa) {
    for (count, units, depth) in shapes_of_all_ends() {
        for (low, zero, flip, rounding) in [
            (0, 0, 0, Rounding::Twice),
            (-128, -128, 0x80, Rounding::Once),
            (0, 127, 0x80, Rounding::Twice),
            (-128, 5, 0, Rounding::Twice),
        ] {
            let (rows, weights, sums) = product(count, units, depth);
            let row_sum = |row: &[u8]| row.iter().map(|byte| i32::from(*byte)).sum::<i32>();
            let terms: Vec<i32> =
                rows.chunks_exact(depth).map(|row| row_sum(row) * -i32::from(zero)).collect();
            let (rules, want) = stored(units, (low, rounding), &sums, &terms);
            let matrix = pair_matrix(isa, &weights, (units, depth), zero);
            let bytes: Vec<u8> = matrix.bytes().collect();
            let restored =
                PairMatrix::restored(&bytes, (units, depth), zero, &Budget::default()).unwrap();
            let values: Vec<u8> = rows.iter().map(|byte| byte ^ flip).collect();
            let rows = ByteRows::Matrix { values: &values, depth };
            for matrix in [matrix, restored] {
                let (panels, rules) = (matrix.channels(0, units), rules.channels(0..units));
                let mut got = vec![0xA5; want.len()];
                let space = &mut vec![-1; wide_len(depth)];
                multiply_wide(isa, panels, (&rows, flip), rules, space, &mut got).unwrap();
                assert_eq!(got, want, "{count} x {units} x {depth}, {low}, {zero}, {flip}");
            }
        }
    }
}

/// What kernels take for the largest sum of four products and a row's term.
const LARGEST: i32 = 4 * 2 * 255 * 255;

/// Sums to end with: ties of a factor and what lies beside them, the largest ones that kernels take for small, and any.
fn sums_of_all_kinds(factor: f64) -> Vec<i32> {
    let numbers = &mut Numbers::new(7);
    let mut sums = vec![i32::MIN, i32::MIN + 1, -1, 0, 1, i32::MAX - 1, i32::MAX];
    for odd in (-41..=41).step_by(2) {
        #[allow(clippy::cast_possible_truncation, reason = "saturates")]
        let tie = (f64::from(odd) / (2.0 * factor)) as i32;
        sums.extend([-1, 0, 1].map(|beside| tie.saturating_add(beside)));
    }
    for size in [1 << 30, (1 << 30) - LARGEST] {
        sums.extend((-2..=2).flat_map(|beside| [size + beside, -size + beside]));
    }
    for shift in 0..31 {
        let bytes = numbers.bytes(4);
        sums.push(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) >> shift);
    }
    sums
}

/// A product of bytes by some kernel: rows with a depth of 4, weights, rules, and what becomes of the sums.
type Multiply<'m> = &'m dyn Fn(&ByteRows<'_>, &[i8], &Requantize, &mut [u8]);

/// These biases, and the sums that they are with products added, against the scalar rule.
fn compare_ends(bias: &[i32], real: f64, multiply: Multiply<'_>) {
    let factor = Multiplier::new(real).unwrap();
    let weights = [-127, 3, 9, 127].repeat(bias.len());
    let rows = ByteRows::Matrix { values: &[0, 0, 0, 0, 200, 1, 0, 255], depth: 4 };
    let sums = [0, 200 * -127 + 3 + 255 * 127]
        .map(|added| bias.iter().map(move |sum| sum.wrapping_add(added)));
    let sums: Vec<i32> = sums.into_iter().flatten().collect();
    for (zero_point, (low, high)) in
        [(0, (0, 255)), (-128, (-128, 127)), (3, (-128, 127)), (7, (5, 250))]
    {
        for rounding in [Rounding::Twice, Rounding::Once] {
            let range = (low, high);
            let rules = Requantize::new(bias.to_vec(), |_| Ok(factor), zero_point, range).unwrap();
            let mut got = vec![0xA5; sums.len()];
            multiply(&rows, &weights, &Requantize { rounding, ..rules }, &mut got);
            for (sum, got) in sums.iter().zip(got) {
                let scaled = match rounding {
                    Rounding::Twice => factor.apply(*sum),
                    Rounding::Once => factor.apply_once(*sum),
                };
                let want = scaled.saturating_add(zero_point).clamp(low, high).to_le_bytes()[0];
                assert_eq!(got, want, "{sum} times {real} from {low} to {high}, {rounding:?}");
            }
        }
    }
}

/// With factors of every size and ties of each.
fn compare_all_ends(multiply: Multiply<'_>) {
    let powers = [-31, -30, -20, -9, -8, -2, -1, 0, 1, 4].map(|power| 2f64.powi(power));
    for real in [0.0, 0.3, 3e-4, 1.7e-6, 0.999_999_999_9, 1.5].into_iter().chain(powers) {
        let mut bias = sums_of_all_kinds(real);
        compare_ends(&bias, real, multiply);
        // Kernels look at some channels together: without the large sums they may take their shorter way.
        bias.retain(|sum| sum.unsigned_abs() < (1 << 30) - LARGEST.unsigned_abs());
        compare_ends(&bias, real, multiply);
    }
}

#[test]
fn sums_of_every_kind_end_as_the_rules_say() {
    for isa in Isa::each_here() {
        if has_quads(isa) {
            compare_all_ends(&|rows, weights, rules, out| {
                let units = rules.bias.len();
                let matrix = quad_matrix(isa, weights, (units, 4));
                let (panels, rules) = (matrix.channels(0, units), rules.channels(0..units));
                multiply_quads(isa, panels, (rows, 0), rules, &[], out).unwrap();
            });
        }
        if has_avx2(isa) {
            compare_all_ends(&|rows, weights, rules, out| {
                let units = rules.bias.len();
                let matrix = pair_matrix(isa, weights, (units, 4), 0);
                let (panels, rules) = (matrix.channels(0, units), rules.channels(0..units));
                let space = &mut vec![0; wide_len(4)];
                multiply_wide(isa, panels, (rows, 0), rules, space, out).unwrap();
            });
        }
    }
}

/// Pixels under filters that reach over the edges, read where they lie, against gathered rows; the function
/// multiplies rows with the weights of so many units.
fn compare_pixels(step: usize, multiply: impl Fn(&ByteRows<'_>, &[i8], &Requantize, &mut [u8])) {
    for (taps, stride, dilation, pad, channels, units) in [
        (3, 1, 1, 1, 32, 32),
        (3, 2, 1, 0, 8, 70),
        (3, 1, 2, 2, 4, 16),
        (5, 1, 1, 2, 3, 33),
        (1, 2, 1, 0, 12, 130),
        (6, 1, 2, 3, 4, 5),
    ] {
        let (size, span) = (13, (taps - 1) * dilation + 1);
        let axis = Axis { stride, dilation, pad };
        let out = (size + 2 * pad - span) / stride + 1;
        let conv = Conv {
            input: Images::nhwc([2, size, size, channels]),
            filter: Filter::dense([units, taps, taps, channels]),
            output: Images::nhwc([2, out, out, units]),
            vertical: axis,
            horizontal: axis,
            groups: 1,
        };
        let numbers = &mut Numbers::new(units as u64);
        let input = numbers.bytes(conv.input.values());
        let weights: Vec<i8> =
            numbers.bytes(conv.filter.values()).into_iter().map(u8::cast_signed).collect();
        let bias: Vec<i32> = (0..).take(units).map(|unit| unit * 71 - 500).collect();
        let rules = Requantize::new(bias, |_| Multiplier::new(3e-4), -7, (-128, 127)).unwrap();
        let multiply = |rows: &ByteRows<'_>| {
            let mut out = vec![0; conv.output.values()];
            multiply(rows, &weights, &rules, &mut out);
            out
        };
        let mut gathered = vec![0; conv.output.pixels() * conv.depth()];
        fill_rows(&conv, Source::whole(&input, 0x75), 0, &mut gathered);
        let want = multiply(&ByteRows::Matrix { values: &gathered, depth: conv.depth() });
        let mut edges = Vec::new();
        let range = (0, conv.output.pixels());
        let rows = ByteRows::of_conv(&conv, Source::whole(&input, 0x75), step, range, |len| {
            edges.resize(len, 0);
            Ok(edges.as_mut_slice())
        });
        assert_eq!(multiply(&rows.unwrap()), want, "{conv:?}");
    }
}

#[test]
fn pixels_in_place_are_the_gathered_rows() {
    for isa in Isa::each_here() {
        if has_quads(isa) {
            compare_pixels(QUAD, |rows, weights, rules, out| {
                let (units, depth) = (rules.bias.len(), rows.depth());
                let matrix = quad_matrix(isa, weights, (units, depth));
                let (panels, rules) = (matrix.channels(0, units), rules.channels(0..units));
                multiply_quads(isa, panels, (rows, 0x80), rules, &[], out).unwrap();
            });
        }
        if has_avx2(isa) {
            compare_pixels(1, |rows, weights, rules, out| {
                let (units, depth) = (rules.bias.len(), rows.depth());
                let matrix = pair_matrix(isa, weights, (units, depth), 9);
                let (panels, rules) = (matrix.channels(0, units), rules.channels(0..units));
                let space = &mut vec![0; wide_len(depth)];
                multiply_wide(isa, panels, (rows, 0x80), rules, space, out).unwrap();
            });
        }
    }
}

#[test]
fn wide_pairs_of_wrong_sizes_or_on_another_cpu_are_refused() {
    let matrix = pair_matrix(Isa::detect(), &[1; 6], (2, 3), 0);
    let rules = Requantize::new(vec![0; 2], |_| Multiplier::new(0.5), 0, (0, 255)).unwrap();
    let run = |isa, values: &[u8], space: usize, out: usize| {
        let (panels, rules) = (matrix.channels(0, 2), rules.channels(0..2));
        let rows = (&ByteRows::Matrix { values, depth: 3 }, 0);
        multiply_wide(isa, panels, rows, rules, &mut vec![0; space], &mut vec![0; out])
    };
    let here = Isa::detect();
    assert!(run(Isa::PORTABLE, &[1; 6], 12, 4).is_err());
    assert!(run(here, &[1; 5], 12, 4).is_err());
    assert!(run(here, &[1; 6], 11, 4).is_err());
    assert!(run(here, &[1; 6], 12, 3).is_err());
    assert_eq!(run(here, &[1; 6], 12, 4).is_ok(), has_avx2(here));
}

#[test]
fn quads_of_wrong_sizes_or_on_another_cpu_are_refused() {
    let matrix = quad_matrix(Isa::detect(), &[1; 6], (2, 3));
    let rules = Requantize::new(vec![0; 2], |_| Multiplier::new(0.5), 0, (0, 255)).unwrap();
    let run = |isa, values: &[u8], out: usize| {
        let (panels, rules) = (matrix.channels(0, 2), rules.channels(0..2));
        let rows = (&ByteRows::Matrix { values, depth: 3 }, 0);
        multiply_quads(isa, panels, rows, rules, &[], &mut vec![0; out])
    };
    assert!(run(Isa::PORTABLE, &[1; 6], 4).is_err());
    assert!(run(Isa::detect(), &[1; 5], 4).is_err());
    assert!(run(Isa::detect(), &[1; 6], 3).is_err());
}

pub(crate) fn row_sums(isa: Isa) {
    let short = [(1, 1), (3, 31), (9, 27), (8, 8), (6, 32), (11, 33)];
    for (count, depth) in short.into_iter().chain([(5, 64), (2, 1000), (4, 4099)]) {
        let rows = Numbers::new(1).bytes(count * depth);
        let sum = |row: &[u8]| row.iter().map(|byte| i32::from(*byte)).sum::<i32>() * -3;
        let mut got = vec![1; count];
        super::row_sums(isa, &rows, -3, &mut got);
        assert_eq!(got, rows.chunks_exact(depth).map(sum).collect::<Vec<i32>>());
    }
    let mut nothing = [9; 2];
    super::row_sums(isa, &[], -3, &mut nothing);
    assert_eq!(nothing, [0; 2], "sums of no values");
}

pub(crate) fn signed_sums(isa: Isa) {
    for (count, depth) in [(1, 1), (3, 31), (5, 64), (2, 1000)] {
        let rows = Numbers::new(1).bytes(count * depth);
        for flip in [0, 0x80] {
            let signed = |byte: &u8| i32::from((byte ^ flip).cast_signed());
            let sum = |row: &[u8]| row.iter().map(signed).sum::<i32>();
            let mut got = vec![1; count];
            super::signed_sums(isa, &rows, flip, &mut got);
            assert_eq!(got, rows.chunks_exact(depth).map(sum).collect::<Vec<i32>>());
        }
    }
    let mut nothing = [9; 2];
    super::signed_sums(isa, &[], 0x80, &mut nothing);
    assert_eq!(nothing, [0; 2], "sums of no values");
}

pub(crate) fn flip(isa: Isa) {
    for len in [0, 1, 63, 64, 65, 500] {
        let bytes = Numbers::new(1).bytes(len);
        let mut got = bytes.clone();
        super::flip(isa, &mut got, 0x80);
        assert!(got.iter().zip(&bytes).all(|(got, byte)| *got == *byte ^ 0x80));
    }
}

pub(crate) fn copy_flipped(isa: Isa) {
    for len in [0, 1, 63, 64, 65, 500] {
        let bytes = Numbers::new(2).bytes(len);
        let mut got = vec![1; len];
        super::copy_flipped(isa, &bytes, 0x80, &mut got);
        assert!(got.iter().zip(&bytes).all(|(got, byte)| *got == *byte ^ 0x80));
    }
}
