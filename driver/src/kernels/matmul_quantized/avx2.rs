//! Products of bytes for AVX2, with weights of 16 bits, and activations that are widened to as many tile by tile.
//!
//! The one rule of the `unsafe` here: the rows of a tile are asserted to be as long as the weights of a panel
//! before the loop over the depth begins, so that the loop itself checks no bounds.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a tile")]

use core::arch::x86_64::*;

use super::ByteRows;
use super::pairs::{LANES, PairPanels, WIDE_ROWS, WeightPairs};
use crate::kernels::conv::{Cursor, MAX_SEGMENTS, Segments};
use crate::kernels::requantize::Channels;
use crate::kernels::requantize::avx2::{Bounds, Rules};
use crate::kernels::simd::avx2::{
    load_8_bytes, load_16_bytes, load_pairs, store_8_i16s, store_bytes, store_i16s,
};

/// Units of half a panel: one register of sums.
const HALF: usize = LANES / 2;

/// Weights that all tiles of rows pass before the next ones have their turn: what the second-level cache
/// keeps from tile to tile.
const GROUP_BYTES: usize = 192 << 10;

/// Most panels of such weights: their rules are worked out once for all tiles.
const GROUP: usize = 16;

/// See [`multiply_wide`](super::dispatch::multiply_wide).
#[target_feature(enable = "avx2")]
pub(crate) fn multiply_wide(
    matrix: PairPanels<'_>,
    rows: &ByteRows<'_>,
    flip: u8,
    rules: Channels<'_>,
    space: &mut [i32],
    out: &mut [u8],
) {
    if rules.low >= 0 {
        multiply::<true>(matrix, rows, flip, rules, space, out);
    } else {
        multiply::<false>(matrix, rows, flip, rules, space, out);
    }
}

#[target_feature(enable = "avx2")]
fn multiply<const NOT_NEGATIVE: bool>(
    matrix: PairPanels<'_>,
    rows: &ByteRows<'_>,
    flip: u8,
    rules: Channels<'_>,
    space: &mut [i32],
    out: &mut [u8],
) {
    let (count, pairs) = (rows.count(), matrix.pairs());
    let flip = _mm_set1_epi8(flip.cast_signed());
    let product = Product { matrix, bounds: Bounds::new(rules) };
    let (units, panels) = (matrix.units(), matrix.units().div_ceil(LANES));
    let group = (GROUP_BYTES / (pairs * size_of::<WeightPairs>())).clamp(1, GROUP);
    let mut kept = [[Rules::zero(); 2]; GROUP];
    for first in (0..panels).step_by(group) {
        let panels = first..(first + group).min(panels);
        for (panel, [low, high]) in panels.clone().zip(&mut kept) {
            low.set::<NOT_NEGATIVE>(rules, panel * LANES);
            high.set::<NOT_NEGATIVE>(rules, (panel * LANES + HALF).min(units));
        }
        let mut tiles = Tiles::new(rows, flip);
        for row in (0..count).step_by(WIDE_ROWS) {
            let taken = (count - row).min(WIDE_ROWS);
            tiles.widen(row, taken, bytemuck::cast_slice_mut(&mut space[..taken * pairs]));
            for panel in panels.clone().zip(&kept) {
                // A tile with a row that is not wanted costs less than one row more by itself.
                match taken {
                    1 => product.tile::<NOT_NEGATIVE, 1>(space, panel, (row, taken), out),
                    2 => product.tile::<NOT_NEGATIVE, 2>(space, panel, (row, taken), out),
                    3 | 4 => product.tile::<NOT_NEGATIVE, 4>(space, panel, (row, taken), out),
                    _ => product.tile::<NOT_NEGATIVE, WIDE_ROWS>(space, panel, (row, taken), out),
                }
            }
        }
    }
}

/// Tiles of rows, one after the other.
struct Tiles<'a> {
    rows: &'a ByteRows<'a>,
    flip: __m128i,
    cursor: Cursor,
    list: Segments<'a, u8, WIDE_ROWS>,
}

impl<'a> Tiles<'a> {
    #[target_feature(enable = "avx2")]
    fn new(rows: &'a ByteRows<'a>, flip: __m128i) -> Self {
        Tiles { rows, flip, cursor: rows.start(), list: [[&[]; WIDE_ROWS]; MAX_SEGMENTS] }
    }

    /// Writes rows `row..row + taken`, which are the next ones, flipped and with 16 bits each; behind a row of an odd
    /// length stands a 0.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn widen(&mut self, row: usize, taken: usize, wide: &mut [i16]) {
        let depth = self.rows.depth();
        if let ByteRows::Matrix { values, .. } = self.rows
            && wide.len() == taken * depth
        {
            // One row follows the other, here and there.
            widen_all(&values[row * depth..(row + taken) * depth], self.flip, wide);
            return;
        }
        let pieces = self.rows.list(&mut self.cursor, taken, &mut self.list);
        for (index, wide) in wide.chunks_exact_mut(depth.next_multiple_of(2)).enumerate() {
            widen(&self.list[..pieces], index, self.flip, wide);
        }
    }
}

/// Writes rows that lie one behind the other, flipped and with 16 bits each. Not by [`widen`]: with two callers that is
/// compiled as a function, and to call it for each short piece takes a first layer a quarter longer.
#[inline]
#[target_feature(enable = "avx2")]
fn widen_all(from: &[u8], flip: __m128i, to: &mut [i16]) {
    let blocks = from.as_chunks::<16>().0.iter().zip(to.as_chunks_mut::<16>().0);
    for (from, to) in blocks {
        store_i16s(to, _mm256_cvtepu8_epi16(_mm_xor_si128(load_16_bytes(from), flip)));
    }
    // The end again with what stands before it, or where there is not as much, one by one.
    if let (Some(from), Some(to)) = (from.last_chunk::<16>(), to.last_chunk_mut::<16>()) {
        store_i16s(to, _mm256_cvtepu8_epi16(_mm_xor_si128(load_16_bytes(from), flip)));
    } else {
        let flip = _mm_cvtsi128_si32(flip).to_le_bytes()[0];
        for (from, to) in from.iter().zip(to) {
            *to = i16::from(from ^ flip);
        }
    }
}

/// Writes row `index` of a tile, flipped and with 16 bits each; what is left of `wide` becomes 0.
#[inline]
#[target_feature(enable = "avx2")]
fn widen(pieces: &[[&[u8]; WIDE_ROWS]], index: usize, flip: __m128i, wide: &mut [i16]) {
    let mut begin = 0;
    for piece in pieces {
        let from = piece[index];
        let to = &mut wide[begin..begin + from.len()];
        begin += from.len();
        // The line of a first layer, three taps of three channels: its first 8 values and its last.
        if let (8..16, Some(first), Some(last)) =
            (from.len(), from.first_chunk::<8>(), from.last_chunk::<8>())
        {
            let wider = |from| _mm_cvtepu8_epi16(_mm_xor_si128(load_8_bytes(from), flip));
            if let Some(to) = to.first_chunk_mut() {
                store_8_i16s(to, wider(first));
            }
            if let Some(to) = to.last_chunk_mut() {
                store_8_i16s(to, wider(last));
            }
            continue;
        }
        let blocks = from.as_chunks::<16>().0.iter().zip(to.as_chunks_mut::<16>().0);
        for (from, to) in blocks {
            store_i16s(to, _mm256_cvtepu8_epi16(_mm_xor_si128(load_16_bytes(from), flip)));
        }
        let done = from.len() / 16 * 16;
        if done == from.len() {
            continue;
        }
        // The end again with what stands before it, or where there is not as much, one by one. Rows of 24 values are
        // common.
        if let (Some(from), Some(to)) = (from.last_chunk::<16>(), to.last_chunk_mut::<16>()) {
            store_i16s(to, _mm256_cvtepu8_epi16(_mm_xor_si128(load_16_bytes(from), flip)));
        } else {
            let flip = _mm_cvtsi128_si32(flip).to_le_bytes()[0];
            for (from, to) in from.iter().zip(to) {
                *to = i16::from(from ^ flip);
            }
        }
    }
    wide[begin..].fill(0);
}

/// What all tiles share.
struct Product<'a> {
    matrix: PairPanels<'a>,
    bounds: Bounds,
}

impl Product<'_> {
    /// Rows `row..row + taken` of the units of a panel, whose rules come with it, `taken` at most `R`, from rows of pairs
    /// that `wide` begins with.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn tile<const NOT_NEGATIVE: bool, const R: usize>(
        &self,
        wide: &[i32],
        (panel, [low, high]): (usize, &[Rules; 2]),
        (row, taken): (usize, usize),
        out: &mut [u8],
    ) {
        let (units, pairs) = (self.matrix.units(), self.matrix.pairs());
        let first = panel * LANES;
        let used = (units - first).min(LANES);
        let mut rows: [&[i32]; R] = [&[]; R];
        for (index, slot) in rows.iter_mut().enumerate() {
            *slot = &wide[index.min(taken - 1) * pairs..][..pairs];
        }
        let weights = self.matrix.panel(panel);
        if used <= HALF {
            let sums = sums::<R, 1>(weights, &rows, [low.bias]);
            for (index, [sums]) in sums.iter().enumerate() {
                // Not a shorter loop: sums are to stay in registers.
                if index >= taken {
                    break;
                }
                let values = low.apply::<NOT_NEGATIVE>(*sums);
                let out = &mut out[(row + index) * units + first..][..used];
                store_bytes(out, self.bounds.bytes(values, values));
            }
            return;
        }
        let sums = sums::<R, 2>(weights, &rows, [low.bias, high.bias]);
        for (index, [low_sums, high_sums]) in sums.iter().enumerate() {
            if index >= taken {
                break;
            }
            let low_values = low.apply::<NOT_NEGATIVE>(*low_sums);
            let high_values = high.apply::<NOT_NEGATIVE>(*high_sums);
            let out = &mut out[(row + index) * units + first..][..used];
            store_bytes(out, self.bounds.bytes(low_values, high_values));
        }
    }
}

/// How far ahead weights are fetched from the second-level cache: half a kilobyte and more. The panels of a group
/// follow each other, so that the end of one fetches the beginning of the next. The processor's own fetching does
/// it too, but not always: depending on where the loop came to lie in the program a product took a tenth longer.
const AHEAD: usize = 12;

/// The sums of products of `R` rows with the weights of `H` halves of a panel.
#[inline]
#[target_feature(enable = "avx2")]
fn sums<const R: usize, const H: usize>(
    panel: &[WeightPairs],
    rows: &[&[i32]; R],
    start: [__m256i; H],
) -> [[__m256i; H]; R] {
    for row in rows {
        assert_eq!(row.len(), panel.len(), "rows of a tile");
    }
    let mut sums = [start; R];
    for (index, pairs) in panel.iter().enumerate() {
        let halves = pairs.as_chunks::<HALF>().0;
        // A single row takes each weight once: it waits for what the loop reads, and not for what comes next.
        if R > 2 {
            _mm_prefetch::<_MM_HINT_T0>(panel.as_ptr().wrapping_add(index + AHEAD).cast());
        }
        let mut weights = [_mm256_setzero_si256(); H];
        for (weights, pairs) in weights.iter_mut().zip(halves) {
            *weights = load_pairs(pairs);
        }
        for (row, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: `index` is below the length of the panel, which each row has: the assertion above.
            let pair = _mm256_set1_epi32(unsafe { *row.get_unchecked(index) });
            for (sum, weights) in sums.iter_mut().zip(&weights) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pair, *weights));
            }
        }
    }
    sums
}
