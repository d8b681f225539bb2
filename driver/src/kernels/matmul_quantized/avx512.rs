//! Products of bytes with VNNI, in tiles of rows and panels of channels.
//!
//! The one rule of the `unsafe` here: the activations of a tile and the weights of a panel are asserted
//! to be as many as the loop over the depth reads before that loop begins, so that the loop itself
//! checks no bounds.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a tile")]

use core::arch::x86_64::*;

use super::quads::{Quad, QuadPanels};
use crate::kernels::requantize::Channels;
use crate::kernels::requantize::avx512::{Bounds, Rules};
use crate::kernels::simd::avx512::{LANES, Lanes16, store_16_bytes};

/// Rows that [`multiply_quads`] computes at a time: with four panels of sums, four registers of
/// weights and one of activations they fill 29 of 32 registers.
const TILE: usize = 6;

/// See [`multiply_quads`](super::dispatch::multiply_quads).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) fn multiply_quads(
    matrix: QuadPanels<'_>,
    rows: &[u8],
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    if rules.low >= 0 {
        quads::<true>(matrix, rows, rules, row_terms, out);
    } else {
        quads::<false>(matrix, rows, rules, row_terms, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn quads<const NOT_NEGATIVE: bool>(
    matrix: QuadPanels<'_>,
    rows: &[u8],
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    let panels = matrix.units().div_ceil(LANES);
    let product = Product { matrix, rows, rules, row_terms, bounds: Bounds::new(rules) };
    for first in (0..panels).step_by(4) {
        match panels - first {
            1 => product.panels::<NOT_NEGATIVE, 1>(first, out),
            2 => product.panels::<NOT_NEGATIVE, 2>(first, out),
            3 => product.panels::<NOT_NEGATIVE, 3>(first, out),
            _ => product.panels::<NOT_NEGATIVE, 4>(first, out),
        }
    }
}

/// The operands of [`multiply_quads`].
struct Product<'a> {
    matrix: QuadPanels<'a>,
    rows: &'a [u8],
    rules: Channels<'a>,
    row_terms: &'a [i32],
    bounds: Bounds,
}

impl Product<'_> {
    /// All rows of `P` panels from panel `first` on.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn panels<const NOT_NEGATIVE: bool, const P: usize>(&self, first: usize, out: &mut [u8]) {
        let mut lanes = [Lanes16::ALL; P];
        for (panel, lanes) in lanes.iter_mut().enumerate() {
            *lanes = Lanes16::holding((first + panel) * LANES, self.matrix.units());
        }
        let mut rules = [Rules::new::<NOT_NEGATIVE>(self.rules, first * LANES, lanes[0]); P];
        for panel in 1..P {
            let channel = (first + panel) * LANES;
            rules[panel] = Rules::new::<NOT_NEGATIVE>(self.rules, channel, lanes[panel]);
        }
        let count = self.rows.len() / self.matrix.depth();
        let whole = count - count % TILE;
        for row in (0..whole).step_by(TILE) {
            self.tile::<NOT_NEGATIVE, P, TILE>(first, row, &rules, &lanes, out);
        }
        for row in whole..count {
            self.tile::<NOT_NEGATIVE, P, 1>(first, row, &rules, &lanes, out);
        }
    }

    /// `R` rows of `P` panels.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn tile<const NOT_NEGATIVE: bool, const P: usize, const R: usize>(
        &self,
        first: usize,
        row: usize,
        rules: &[Rules; P],
        lanes: &[Lanes16; P],
        out: &mut [u8],
    ) {
        let (depth, units) = (self.matrix.depth(), self.matrix.units());
        let sums = self.sums::<P, R>(first, &self.rows[row * depth..(row + R) * depth]);
        for (line, sums) in sums.iter().enumerate() {
            let term = self.row_terms.get(row + line).copied().unwrap_or(0);
            let term = _mm512_set1_epi32(term);
            let out = &mut out[(row + line) * units..][..units];
            for panel in 0..P {
                let biased = _mm512_add_epi32(sums[panel], rules[panel].bias);
                let values = rules[panel].apply::<NOT_NEGATIVE>(_mm512_add_epi32(biased, term));
                let bytes = self.bounds.bytes(values);
                store_16_bytes(&mut out[(first + panel) * LANES..], lanes[panel], bytes);
            }
        }
    }

    /// The sums of products of `R` rows with the weights of `P` panels from panel `first` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn sums<const P: usize, const R: usize>(&self, first: usize, rows: &[u8]) -> [[__m512i; P]; R] {
        let depth = self.matrix.depth();
        assert_eq!(rows.len(), R * depth, "activations of a tile");
        let mut panels = [self.matrix.panel(first); P];
        for (panel, quads) in panels.iter_mut().enumerate() {
            *quads = self.matrix.panel(first + panel);
            assert_eq!(quads.len(), depth.div_ceil(4), "weights of a panel");
        }
        let mut sums = [[_mm512_setzero_si512(); P]; R];
        for quad in 0..depth / 4 {
            let weights = weights(&panels, quad);
            for (line, sums) in sums.iter_mut().enumerate() {
                // SAFETY: 4 bytes from `line * depth + quad * 4` on end at most at
                // `line * depth + depth`, which is within `rows`: the assertion above.
                let values = unsafe { rows.as_ptr().add(line * depth + quad * 4) };
                // SAFETY: as said for the pointer; it need not be aligned.
                let values = unsafe { values.cast::<i32>().read_unaligned() };
                let values = _mm512_set1_epi32(values);
                for panel in 0..P {
                    sums[panel] = _mm512_dpbusd_epi32(sums[panel], values, weights[panel]);
                }
            }
        }
        if !depth.is_multiple_of(4) {
            let weights = weights(&panels, depth / 4);
            for (line, sums) in sums.iter_mut().enumerate() {
                let rest = &rows[line * depth + depth / 4 * 4..(line + 1) * depth];
                let last = rest.iter().rev().fold(0, |last, value| last << 8 | i32::from(*value));
                let values = _mm512_set1_epi32(last);
                for panel in 0..P {
                    sums[panel] = _mm512_dpbusd_epi32(sums[panel], values, weights[panel]);
                }
            }
        }
        sums
    }
}

/// The quads with this index of each panel, which must have one.
#[inline]
#[target_feature(enable = "avx512f")]
fn weights<const P: usize>(panels: &[&[Quad]; P], quad: usize) -> [__m512i; P] {
    let mut weights = [_mm512_setzero_si512(); P];
    for (weights, panel) in weights.iter_mut().zip(panels) {
        let quad: &[[i8; 4]; LANES] = &panel[quad].0;
        // SAFETY: 64 bytes are read from an array of 64.
        *weights = unsafe { _mm512_loadu_si512(quad.as_ptr().cast()) };
    }
    weights
}
