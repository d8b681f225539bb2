//! Products of bytes with AVX-VNNI, in tiles of rows and a panel of channels, which takes two registers.
//!
//! The one rule of the `unsafe` here: the activations of a piece of a tile are asserted to be as many as the
//! loop over the depth reads before that loop begins, so that the loop itself checks no bounds of theirs.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a tile")]

use core::arch::x86_64::*;

use super::ByteRows;
use super::quads::{LANES, QUAD, Quad, QuadPanels};
use crate::kernels::conv::{MAX_SEGMENTS, Segments};
use crate::kernels::requantize::Channels;
use crate::kernels::requantize::avx2::{Bounds, Rules};
use crate::kernels::simd::avx2::{load_quads, store_bytes};

/// Rows of a tile: their sums, of a panel's two registers each, fill 12 of 16, and weights, activations and the mask
/// the others.
const ROWS: usize = 6;

/// Units of half a panel: one register of sums.
const HALF: usize = LANES / 2;

/// Panels that all tiles of rows pass before the next ones have their turn, at most, and bytes of their weights: what
/// the second-level cache keeps from tile to tile. Where rows lie is listed once for all of them, and their rules are
/// read once for all rows.
const GROUP: usize = 8;
const GROUP_BYTES: usize = 256 << 10;

/// See [`multiply_quads`](super::dispatch::multiply_quads).
#[target_feature(enable = "avx2,avxvnni")]
pub(crate) fn multiply_quads(
    matrix: QuadPanels<'_>,
    rows: &ByteRows<'_>,
    flip: u8,
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    let mask = _mm256_set1_epi8(flip.cast_signed());
    let product = Product { matrix, rows, flip: mask, rules, row_terms };
    match (rules.low >= 0, flip != 0) {
        (true, true) => product.groups::<true, true>(out),
        (true, false) => product.groups::<true, false>(out),
        (false, true) => product.groups::<false, true>(out),
        (false, false) => product.groups::<false, false>(out),
    }
}

/// The operands of [`multiply_quads`].
struct Product<'a> {
    matrix: QuadPanels<'a>,
    rows: &'a ByteRows<'a>,
    /// What is XORed into each byte of the rows.
    flip: __m256i,
    rules: Channels<'a>,
    row_terms: &'a [i32],
}

/// Where the pieces of a tile's rows lie.
type Pieces<'a> = [[&'a [u8]; ROWS]];

impl Product<'_> {
    /// All rows of all panels.
    #[target_feature(enable = "avx2,avxvnni")]
    fn groups<const NOT_NEGATIVE: bool, const FLIPPED: bool>(&self, out: &mut [u8]) {
        let (units, depth) = (self.matrix.units(), self.matrix.depth());
        let (panels, count) = (units.div_ceil(LANES), self.rows.count());
        let bounds = Bounds::new(self.rules);
        let group = (GROUP_BYTES / (depth.div_ceil(QUAD) * size_of::<Quad>())).clamp(1, GROUP);
        let mut rules = [[Rules::zero(); 2]; GROUP];
        let mut list: Segments<'_, u8, ROWS> = [[&[]; ROWS]; MAX_SEGMENTS];
        for first in (0..panels).step_by(group) {
            let group = (panels - first).min(group);
            for (panel, [low, high]) in (first..first + group).zip(&mut rules) {
                low.set::<NOT_NEGATIVE>(self.rules, panel * LANES);
                high.set::<NOT_NEGATIVE>(self.rules, (panel * LANES + HALF).min(units));
            }
            let mut cursor = self.rows.start();
            for row in (0..count).step_by(ROWS) {
                let taken = (count - row).min(ROWS);
                let pieces = self.rows.list(&mut cursor, taken, &mut list);
                let tile = Tile { product: self, bounds, pieces: &list[..pieces], row, taken };
                for (panel, rules) in (first..first + group).zip(&rules) {
                    // A tile with rows that are not wanted costs as much as a whole one. Of few rows there are several sums
                    // for each output, so that none waits for itself.
                    match (units - panel * LANES > HALF, taken) {
                        (true, 1) => {
                            tile.panel::<NOT_NEGATIVE, FLIPPED, 1, 2, 4>(panel, rules, out)
                        }
                        (true, 2..4) => {
                            tile.panel::<NOT_NEGATIVE, FLIPPED, 3, 2, 2>(panel, rules, out)
                        }
                        (true, _) => {
                            tile.panel::<NOT_NEGATIVE, FLIPPED, ROWS, 2, 1>(panel, rules, out)
                        }
                        (false, 1) => {
                            tile.panel::<NOT_NEGATIVE, FLIPPED, 1, 1, 8>(panel, rules, out)
                        }
                        (false, _) => {
                            tile.panel::<NOT_NEGATIVE, FLIPPED, ROWS, 1, 2>(panel, rules, out)
                        }
                    }
                }
            }
        }
    }
}

/// Some rows of a product.
struct Tile<'a> {
    product: &'a Product<'a>,
    bounds: Bounds,
    pieces: &'a Pieces<'a>,
    /// The first of the rows, and how many are wanted.
    row: usize,
    taken: usize,
}

impl Tile<'_> {
    /// The first `H` halves of a panel's units, of `R` rows of which all that are wanted are some, with `S` sums for
    /// each output.
    #[inline]
    #[target_feature(enable = "avx2,avxvnni")]
    fn panel<
        const NOT_NEGATIVE: bool,
        const FLIPPED: bool,
        const R: usize,
        const H: usize,
        const S: usize,
    >(
        &self,
        panel: usize,
        rules: &[Rules; 2],
        out: &mut [u8],
    ) {
        let Product { matrix, row_terms, .. } = self.product;
        let (units, first) = (matrix.units(), panel * LANES);
        let used = (units - first).min(LANES);
        let mut start = [_mm256_setzero_si256(); H];
        for (start, rules) in start.iter_mut().zip(rules) {
            *start = rules.bias;
        }
        let sums = self.sums::<FLIPPED, R, H, S>(matrix.panel(panel), start);
        for (index, sums) in sums.iter().enumerate() {
            // Not a shorter loop: sums are to stay in registers.
            if index >= self.taken {
                break;
            }
            let row = self.row + index;
            let mut values = *sums;
            if let Some(term) = row_terms.get(row) {
                let term = _mm256_set1_epi32(*term);
                for value in &mut values {
                    *value = _mm256_add_epi32(*value, term);
                }
            }
            for (value, rules) in values.iter_mut().zip(rules) {
                *value = rules.apply::<NOT_NEGATIVE>(*value);
            }
            let out = &mut out[row * units + first..][..used];
            store_bytes(out, self.bounds.bytes(values[0], values[H - 1]));
        }
    }

    /// The sums of products of `R` rows with the weights of `H` halves of a panel.
    #[inline]
    #[target_feature(enable = "avx2,avxvnni")]
    fn sums<const FLIPPED: bool, const R: usize, const H: usize, const S: usize>(
        &self,
        mut panel: &[Quad],
        start: [__m256i; H],
    ) -> [[__m256i; H]; R] {
        let mut sums = [[[_mm256_setzero_si256(); H]; R]; S];
        sums[0] = [start; R];
        for rows in self.pieces {
            let len = rows[0].len();
            for row in rows {
                assert_eq!(row.len(), len, "rows of a tile");
            }
            let (now, rest) = panel.split_at(len.div_ceil(QUAD));
            panel = rest;
            let (whole, last) = now.split_at(len / QUAD);
            let (blocks, few) = whole.as_chunks::<S>();
            for (block, quads) in blocks.iter().enumerate() {
                for (index, (quad, sums)) in quads.iter().zip(&mut sums).enumerate() {
                    // SAFETY: quad `block * S + index` is one of `whole`, of which each row has the activations: the
                    // assertion above.
                    unsafe { self.add::<FLIPPED, R, H>(rows, block * S + index, quad, sums) };
                }
            }
            let done = blocks.len() * S;
            for (index, quad) in few.iter().enumerate() {
                // SAFETY: as above.
                unsafe { self.add::<FLIPPED, R, H>(rows, done + index, quad, &mut sums[0]) };
            }
            if let [quad] = last {
                let weights = weights::<H>(quad);
                for (row, sums) in rows.iter().zip(&mut sums[0]) {
                    let rest = row[whole.len() * QUAD..].iter().rev();
                    // What is flipped beyond the end meets weights of 0.
                    let values = rest.fold(0, |last, value| last << 8 | i32::from(*value));
                    self.add_values::<FLIPPED, H>(values, &weights, sums);
                }
            }
        }
        let (all, others) = sums.split_at_mut(1);
        for (row, sums) in all[0].iter_mut().enumerate() {
            for other in &*others {
                for (sum, other) in sums.iter_mut().zip(&other[row]) {
                    *sum = _mm256_add_epi32(*sum, *other);
                }
            }
        }
        all[0]
    }

    /// Adds the products of four activations of each row.
    ///
    /// # Safety
    /// Each row has them: `quad * 4 + 4` is at most its length.
    #[inline]
    #[target_feature(enable = "avx2,avxvnni")]
    unsafe fn add<const FLIPPED: bool, const R: usize, const H: usize>(
        &self,
        rows: &[&[u8]; ROWS],
        quad: usize,
        weights_of: &Quad,
        sums: &mut [[__m256i; H]; R],
    ) {
        let weights = weights::<H>(weights_of);
        for (row, sums) in rows.iter().zip(sums) {
            // SAFETY: of the caller.
            let values = unsafe { row.as_ptr().add(quad * QUAD) };
            // SAFETY: of the caller; it need not be aligned.
            let values = unsafe { values.cast::<i32>().read_unaligned() };
            self.add_values::<FLIPPED, H>(values, &weights, sums);
        }
    }

    /// Adds the products of four activations.
    #[inline]
    #[target_feature(enable = "avx2,avxvnni")]
    fn add_values<const FLIPPED: bool, const H: usize>(
        &self,
        values: i32,
        weights: &[__m256i; H],
        sums: &mut [__m256i; H],
    ) {
        let mut values = _mm256_set1_epi32(values);
        if FLIPPED {
            values = _mm256_xor_si256(values, self.product.flip);
        }
        for (sum, weights) in sums.iter_mut().zip(weights) {
            *sum = _mm256_dpbusd_avx_epi32(*sum, values, *weights);
        }
    }
}

/// The weights of the first `H` halves of a panel.
#[inline]
#[target_feature(enable = "avx2")]
fn weights<const H: usize>(quad: &Quad) -> [__m256i; H] {
    let mut weights = [_mm256_setzero_si256(); H];
    for (weights, half) in weights.iter_mut().zip(quad.0.as_chunks::<HALF>().0) {
        *weights = load_quads(half);
    }
    weights
}
