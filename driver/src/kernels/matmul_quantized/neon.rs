//! Products of bytes for 64-bit Arm, four rows and a panel of channels at a time: with products of matrices
//! (I8MM), or with those of four pairs of signed bytes (DotProd).
//!
//! The one rule of the `unsafe` here: the pieces of a tile's rows are asserted to be of one length before the
//! loop over the depth begins, so that the loop itself checks no bounds of theirs.
#![allow(unsafe_code, reason = "reads within bounds that are checked once for a tile")]

use core::arch::aarch64::*;

use super::ByteRows;
use super::quads::{LANES, QUAD, Quad, QuadPanels};
use crate::kernels::conv::{MAX_SEGMENTS, Segments};
use crate::kernels::requantize::Channels;
use crate::kernels::requantize::neon::{Bounds, Rules};
use crate::kernels::simd::neon::{
    add_matrix_products, add_signed_dots, add_unsigned_dots, load_8_bytes, load_16_bytes,
    load_quads, store_16_bytes,
};

/// Rows of a tile: their sums fill half of the 32 registers.
const ROWS: usize = 4;

/// Registers of weights of a quad, and of sums of a row.
const PARTS: usize = LANES / 4;

/// Sums of a row with the units of a panel.
type Sums = [int32x4_t; PARTS];

/// The pieces of a tile's rows.
type Pieces<'a> = [[&'a [u8]; ROWS]];

/// See [`multiply_quads`](super::dispatch::multiply_quads).
#[target_feature(enable = "neon,dotprod")]
pub(crate) fn multiply_by_dots(
    matrix: QuadPanels<'_>,
    rows: &ByteRows<'_>,
    flip: u8,
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    let product = Product { matrix, rules, row_terms, bounds: Bounds::new(rules) };
    // Bytes have to be signed: less 128, which the sums begin with.
    let flip = vdupq_n_u8(flip ^ 0x80);
    let mut list: Segments<'_, u8, ROWS> = [[&[]; ROWS]; MAX_SEGMENTS];
    for first in (0..matrix.units()).step_by(LANES) {
        let panel = Panel::new(matrix, rules, first);
        let mut start = panel.bias();
        add_128_weights(panel.quads, &mut start);
        let mut cursor = rows.start();
        for row in (0..rows.count()).step_by(ROWS) {
            let taken = (rows.count() - row).min(ROWS);
            let count = rows.list(&mut cursor, taken, &mut list);
            let pieces = &list[..count];
            // A tile with a row that is not wanted costs less than one row more by itself.
            match taken {
                1 => product.end(&panel, row, &signed::<1>(panel.quads, pieces, flip, start), out),
                2 => product.end(&panel, row, &signed::<2>(panel.quads, pieces, flip, start), out),
                _ => {
                    let sums = signed::<ROWS>(panel.quads, pieces, flip, start);
                    product.end(&panel, row, &sums[..taken], out);
                }
            }
        }
    }
}

/// See [`multiply_quads`](super::dispatch::multiply_quads).
#[target_feature(enable = "neon,i8mm")]
pub(crate) fn multiply_by_matrices(
    matrix: QuadPanels<'_>,
    rows: &ByteRows<'_>,
    flip: u8,
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    let product = Product { matrix, rules, row_terms, bounds: Bounds::new(rules) };
    let flip = vdupq_n_u8(flip);
    let mut list: Segments<'_, u8, ROWS> = [[&[]; ROWS]; MAX_SEGMENTS];
    for first in (0..matrix.units()).step_by(LANES) {
        let panel = Panel::new(matrix, rules, first);
        let start = panel.bias();
        let mut cursor = rows.start();
        for row in (0..rows.count()).step_by(ROWS) {
            let taken = (rows.count() - row).min(ROWS);
            let count = rows.list(&mut cursor, taken, &mut list);
            let pieces = &list[..count];
            match taken {
                1 => product.end(&panel, row, &[unsigned(panel.quads, pieces, flip, start)], out),
                2 => {
                    let sums = couples::<1>(panel.quads, pieces, flip, start);
                    product.end(&panel, row, sums.as_flattened(), out);
                }
                _ => {
                    let sums = couples::<{ ROWS / 2 }>(panel.quads, pieces, flip, start);
                    product.end(&panel, row, &sums.as_flattened()[..taken], out);
                }
            }
        }
    }
}

/// What all panels share.
struct Product<'a> {
    matrix: QuadPanels<'a>,
    rules: Channels<'a>,
    row_terms: &'a [i32],
    bounds: Bounds,
}

/// A panel's weights and rules, and which channels it has.
struct Panel<'a> {
    quads: &'a [Quad],
    rules: [Rules; PARTS],
    first: usize,
    used: usize,
}

impl<'a> Panel<'a> {
    /// The panel whose first channel this is.
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(matrix: QuadPanels<'a>, rules: Channels<'_>, first: usize) -> Self {
        let quads = matrix.panel(first / LANES);
        assert_eq!(quads.len(), matrix.depth().div_ceil(QUAD), "weights of a panel");
        let mut parts = [Rules::new(rules, first); PARTS];
        for (index, part) in parts.iter_mut().enumerate().skip(1) {
            *part = Rules::new(rules, first + index * 4);
        }
        Panel { quads, rules: parts, first, used: (matrix.units() - first).min(LANES) }
    }

    /// What the sums of each row begin with.
    #[inline]
    #[target_feature(enable = "neon")]
    fn bias(&self) -> Sums {
        let [a, b, c, d] = &self.rules;
        [a.bias, b.bias, c.bias, d.bias]
    }
}

impl Product<'_> {
    /// Stored values of rows from `row` on, from their sums with a panel.
    #[inline]
    #[target_feature(enable = "neon")]
    fn end(&self, panel: &Panel<'_>, row: usize, sums: &[Sums], out: &mut [u8]) {
        if self.rules.low >= 0 {
            self.stored::<true>(panel, row, sums, out);
        } else {
            self.stored::<false>(panel, row, sums, out);
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn stored<const NOT_NEGATIVE: bool>(
        &self,
        panel: &Panel<'_>,
        row: usize,
        sums: &[Sums],
        out: &mut [u8],
    ) {
        let units = self.matrix.units();
        for (row, sums) in (row..).zip(sums) {
            let mut values = *sums;
            if let Some(term) = self.row_terms.get(row) {
                for value in &mut values {
                    *value = vaddq_s32(*value, vdupq_n_s32(*term));
                }
            }
            for (value, rules) in values.iter_mut().zip(&panel.rules) {
                *value = rules.apply::<NOT_NEGATIVE>(*value);
            }
            let out = &mut out[row * units + panel.first..][..panel.used];
            store_16_bytes(out, self.bounds.bytes(values));
        }
    }
}

/// The weights of a quad.
#[inline]
#[target_feature(enable = "neon")]
fn weights(quad: &Quad) -> [int8x16_t; PARTS] {
    let [a, b, c, d] = quad.0.as_chunks::<4>().0 else { unreachable!("16 units of a quad") };
    [load_quads(a), load_quads(b), load_quads(c), load_quads(d)]
}

/// Adds 128 times each unit's weights: what is missing in products with bytes less 128.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_128_weights(quads: &[Quad], sums: &mut Sums) {
    let mut totals = [vdupq_n_s32(0); PARTS];
    for quad in quads {
        for (total, weights) in totals.iter_mut().zip(weights(quad)) {
            *total = add_signed_dots::<0>(*total, weights, vdupq_n_s8(1));
        }
    }
    for (sum, total) in sums.iter_mut().zip(totals) {
        *sum = vaddq_s32(*sum, vshlq_n_s32::<7>(total));
    }
}

/// The first four bytes; where there are not as many, 0 for the others, which meet weights of 0.
#[inline(always)]
fn quad_of(bytes: &[u8]) -> u32 {
    match bytes.first_chunk() {
        Some(quad) => u32::from_le_bytes(*quad),
        // Not a copy: a call would put all sums into memory.
        None => bytes.iter().rev().fold(0, |quad, byte| quad << 8 | u32::from(*byte)),
    }
}

/// Up to eight bytes, and 0 for the others.
#[inline]
#[target_feature(enable = "neon")]
fn octet_of(bytes: &[u8]) -> uint8x8_t {
    let second = quad_of(bytes.get(QUAD..).unwrap_or_default());
    vcreate_u8(u64::from(quad_of(bytes)) | u64::from(second) << 32)
}

/// Takes the quads of a piece of this length off those of a panel.
#[inline(always)]
fn take<'a>(panel: &mut &'a [Quad], len: usize) -> &'a [Quad] {
    let (quads, later) = panel.split_at(len.div_ceil(QUAD));
    *panel = later;
    quads
}

/// The length of a piece, which the first `R` rows have in common.
#[inline(always)]
fn common_len<const R: usize>(rows: &[&[u8]; ROWS]) -> usize {
    let len = rows[0].len();
    for row in &rows[..R] {
        assert_eq!(row.len(), len, "rows of a tile");
    }
    len
}

/// The sums of products of `R` rows with a panel, flipped so that their bytes are signed.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn signed<const R: usize>(
    mut panel: &[Quad],
    pieces: &Pieces<'_>,
    flip: uint8x16_t,
    start: Sums,
) -> [Sums; R] {
    let mut sums = [start; R];
    for rows in pieces {
        let len = common_len::<R>(rows);
        let (blocks, last) = take(&mut panel, len).split_at(len / 16 * 4);
        for (index, quads) in blocks.as_chunks::<4>().0.iter().enumerate() {
            let mut values = [vdupq_n_s8(0); R];
            for (values, row) in values.iter_mut().zip(rows) {
                // SAFETY: there are as many blocks of quads as whole blocks of bytes in each row: a
                // sixteenth of the length that the rows have in common.
                let bytes = unsafe { row.as_chunks::<16>().0.get_unchecked(index) };
                *values = vreinterpretq_s8_u8(veorq_u8(load_16_bytes(bytes), flip));
            }
            let [a, b, c, d] = quads;
            add_signed::<R, 0>(&mut sums, a, &values);
            add_signed::<R, 1>(&mut sums, b, &values);
            add_signed::<R, 2>(&mut sums, c, &values);
            add_signed::<R, 3>(&mut sums, d, &values);
        }
        for (quad, at) in last.iter().zip((len / 16 * 16..len).step_by(QUAD)) {
            let mut values = [vdupq_n_s8(0); R];
            for (values, row) in values.iter_mut().zip(rows) {
                let bytes = vreinterpretq_u8_u32(vdupq_n_u32(quad_of(&row[at..])));
                *values = vreinterpretq_s8_u8(veorq_u8(bytes, flip));
            }
            add_signed::<R, 0>(&mut sums, quad, &values);
        }
    }
    sums
}

/// Adds the products of a quad with the four bytes of each row at `LANE`.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_signed<const R: usize, const LANE: usize>(
    sums: &mut [Sums; R],
    quad: &Quad,
    values: &[int8x16_t; R],
) {
    let weights = weights(quad);
    for (sums, values) in sums.iter_mut().zip(values) {
        for (sum, weights) in sums.iter_mut().zip(&weights) {
            *sum = add_signed_dots::<LANE>(*sum, *weights, *values);
        }
    }
}

/// The sums of products of the first row with a panel. A product of matrices would do half of its work for nothing.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn unsigned(mut panel: &[Quad], pieces: &Pieces<'_>, flip: uint8x16_t, start: Sums) -> Sums {
    let mut sums = start;
    for [row, ..] in pieces {
        let (blocks, last) = take(&mut panel, row.len()).split_at(row.len() / 16 * 4);
        let (full, tail) = row.as_chunks::<16>();
        for (bytes, [a, b, c, d]) in full.iter().zip(blocks.as_chunks::<4>().0) {
            let values = veorq_u8(load_16_bytes(bytes), flip);
            add_unsigned::<0>(&mut sums, a, values);
            add_unsigned::<1>(&mut sums, b, values);
            add_unsigned::<2>(&mut sums, c, values);
            add_unsigned::<3>(&mut sums, d, values);
        }
        for (quad, bytes) in last.iter().zip(tail.chunks(QUAD)) {
            let bytes = vreinterpretq_u8_u32(vdupq_n_u32(quad_of(bytes)));
            add_unsigned::<0>(&mut sums, quad, veorq_u8(bytes, flip));
        }
    }
    sums
}

/// Adds the products of a quad with the four bytes at `LANE`.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn add_unsigned<const LANE: usize>(sums: &mut Sums, quad: &Quad, values: uint8x16_t) {
    for (sum, weights) in sums.iter_mut().zip(weights(quad)) {
        *sum = add_unsigned_dots::<LANE>(*sum, weights, values);
    }
}

/// Sums of two rows with two units each, as the product of matrices leaves them, for all units of a panel.
type Couple = [int32x4_t; 2 * PARTS];

/// The sums of products of two rows `C` times with a panel.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn couples<const C: usize>(
    mut panel: &[Quad],
    pieces: &Pieces<'_>,
    flip: uint8x16_t,
    start: Sums,
) -> [[Sums; 2]; C] {
    let mut sums = [mixed([start; 2]); C];
    for rows in pieces {
        let len = common_len::<ROWS>(rows);
        let (blocks, last) = take(&mut panel, len).split_at(len / 8 * 2);
        for (index, [first, second]) in blocks.as_chunks::<2>().0.iter().enumerate() {
            let mut values = [vdupq_n_u8(0); C];
            for (values, [one, other]) in values.iter_mut().zip(rows.as_chunks::<2>().0) {
                // SAFETY: there are as many blocks of quads as whole blocks of bytes in each row: an
                // eighth of the length that all rows have in common.
                let one = unsafe { one.as_chunks::<8>().0.get_unchecked(index) };
                // SAFETY: as above.
                let other = unsafe { other.as_chunks::<8>().0.get_unchecked(index) };
                *values = vcombine_u8(load_8_bytes(one), load_8_bytes(other));
                *values = veorq_u8(*values, flip);
            }
            add_products(&mut sums, weights(first), weights(second), &values);
        }
        if let Some((first, second)) = last.split_first() {
            let mut values = [vdupq_n_u8(0); C];
            for (values, [one, other]) in values.iter_mut().zip(rows.as_chunks::<2>().0) {
                let one = octet_of(one.as_chunks::<8>().1);
                let other = octet_of(other.as_chunks::<8>().1);
                *values = veorq_u8(vcombine_u8(one, other), flip);
            }
            let none = [vdupq_n_s8(0); PARTS];
            let second = second.first().map_or(none, |quad| weights(quad));
            add_products(&mut sums, weights(first), second, &values);
        }
    }
    sums.map(|sums| apart(sums))
}

/// Adds the products of two quads with 8 bytes of each row.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn add_products<const C: usize>(
    sums: &mut [Couple; C],
    first: [int8x16_t; PARTS],
    second: [int8x16_t; PARTS],
    values: &[uint8x16_t; C],
) {
    for part in 0..PARTS {
        // Eight weights of a unit side by side, as the rows have their bytes.
        let (first, second) =
            (vreinterpretq_s32_s8(first[part]), vreinterpretq_s32_s8(second[part]));
        let low = vreinterpretq_s8_s32(vzip1q_s32(first, second));
        let high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
        for (sums, values) in sums.iter_mut().zip(values) {
            sums[2 * part] = add_matrix_products(sums[2 * part], *values, low);
            sums[2 * part + 1] = add_matrix_products(sums[2 * part + 1], *values, high);
        }
    }
}

/// Sums of two rows with two units side by side, from those of either row.
#[inline]
#[target_feature(enable = "neon")]
fn mixed([one, other]: [Sums; 2]) -> Couple {
    let mut couple = [vdupq_n_s32(0); 2 * PARTS];
    for part in 0..PARTS {
        couple[2 * part] = first_halves(one[part], other[part]);
        couple[2 * part + 1] = second_halves(one[part], other[part]);
    }
    couple
}

/// The reverse of [`mixed`].
#[inline]
#[target_feature(enable = "neon")]
fn apart(couple: Couple) -> [Sums; 2] {
    let mut rows = [[vdupq_n_s32(0); PARTS]; 2];
    for part in 0..PARTS {
        rows[0][part] = first_halves(couple[2 * part], couple[2 * part + 1]);
        rows[1][part] = second_halves(couple[2 * part], couple[2 * part + 1]);
    }
    rows
}

#[inline]
#[target_feature(enable = "neon")]
fn first_halves(a: int32x4_t, b: int32x4_t) -> int32x4_t {
    vcombine_s32(vget_low_s32(a), vget_low_s32(b))
}

#[inline]
#[target_feature(enable = "neon")]
fn second_halves(a: int32x4_t, b: int32x4_t) -> int32x4_t {
    vcombine_s32(vget_high_s32(a), vget_high_s32(b))
}
