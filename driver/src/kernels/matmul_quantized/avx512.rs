//! Products of bytes with VNNI, in tiles of rows and panels of channels.
//!
//! The one rule of the `unsafe` here: a [`Piece`] has checked where its rows lie, so that the loop over the depth checks
//! no bounds of theirs.
//!
//! Sums stay in registers where rows are written out by [`each_row`] and every function that has sums is compiled into its
//! caller, which the compiler does for functions with one caller: so some have parameters that only tell callers apart.
#![allow(unsafe_code, reason = "loads within bounds that are checked once for a tile")]

use core::arch::x86_64::*;

use super::ByteRows;
use super::quads::{QUAD, Quad, QuadPanels};
use crate::kernels::conv::{Cursor, EvenRows, MAX_SEGMENTS, Piece, Segments, each_row};
use crate::kernels::requantize::Channels;
use crate::kernels::requantize::avx512::{
    ANY, Bounds, Ending, NOT_NEGATIVE, Rules, SMALL, largest_sum,
};
use crate::kernels::simd::avx512::{LANES, Lanes16};

/// See [`multiply_quads`](super::dispatch::multiply_quads).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) fn multiply_quads(
    matrix: QuadPanels<'_>,
    rows: &ByteRows<'_>,
    flip: u8,
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    if flip == 0 {
        quads::<false>(matrix, rows, flip, rules, row_terms, out);
    } else {
        quads::<true>(matrix, rows, flip, rules, row_terms, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn quads<const FLIPPED: bool>(
    matrix: QuadPanels<'_>,
    rows: &ByteRows<'_>,
    flip: u8,
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    let panels = matrix.units().div_ceil(LANES);
    let (flip, bounds) = (_mm512_set1_epi8(flip.cast_signed()), Bounds::new(rules));
    let product = Product { matrix, rows, flip, rules, row_terms, bounds };
    for first in (0..panels).step_by(4) {
        // Sums, weights, activations and the mask fit into 32 registers, and where each row lies into 16.
        match panels - first {
            1 => product.panels::<FLIPPED, 1, 12, 6>(first, out),
            2 => product.panels::<FLIPPED, 2, 12, 4>(first, out),
            3 => product.panels::<FLIPPED, 3, 8, 3>(first, out),
            _ => product.panels::<FLIPPED, 4, 6, 2>(first, out),
        }
    }
}

/// The operands of [`multiply_quads`].
struct Product<'a> {
    matrix: QuadPanels<'a>,
    rows: &'a ByteRows<'a>,
    /// What is XORed into each byte of the rows.
    flip: __m512i,
    rules: Channels<'a>,
    row_terms: &'a [i32],
    bounds: Bounds,
}

/// `P` panels of a product: their weights, rules and lanes.
struct Group<'a, const P: usize> {
    panels: [&'a [Quad]; P],
    rules: [Rules; P],
    ending: Ending,
    /// The first channel, and how many there are.
    channels: (usize, usize),
}

impl<const P: usize> Group<'_, P> {
    /// What the sums of a row begin with.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn start(&self) -> [__m512i; P] {
        let mut start = [_mm512_setzero_si512(); P];
        for (start, rules) in start.iter_mut().zip(&self.rules) {
            *start = rules.bias;
        }
        start
    }
}

impl Product<'_> {
    /// All rows of `P` panels from panel `first` on, `R` at a time, and those that are left `FEW` at a time, which are
    /// as many as have about enough sums to hide how long a multiplication takes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn panels<const FLIPPED: bool, const P: usize, const R: usize, const FEW: usize>(
        &self,
        first: usize,
        out: &mut [u8],
    ) {
        let (depth, units) = (self.matrix.depth(), self.matrix.units());
        let lanes = |panel: usize| Lanes16::holding((first + panel) * LANES, units);
        let channels = first * LANES..units.min((first + P) * LANES);
        let ending = Rules::ending(self.rules, channels.clone(), largest_sum(depth));
        let mut group = Group {
            panels: [self.matrix.panel(first); P],
            rules: [Rules::zero(); P],
            ending,
            channels: (channels.start, channels.len()),
        };
        for panel in 0..P {
            group.panels[panel] = self.matrix.panel(first + panel);
            assert_eq!(group.panels[panel].len(), depth.div_ceil(QUAD), "weights of a panel");
            let channel = (first + panel) * LANES;
            group.rules[panel].set(ending, self.rules, channel, lanes(panel));
        }
        let count = self.rows.count();
        let mut cursor = self.rows.start();
        // A tile with rows that are not wanted costs as much as a whole one.
        let left = count % R;
        let is_few = left.next_multiple_of(FEW) < R;
        let tiled = if is_few { count - left } else { count };
        self.part::<FLIPPED, P, R>(&group, &mut cursor, (0, tiled), out);
        self.part::<FLIPPED, P, FEW>(&group, &mut cursor, (tiled, count), out);
    }

    /// Rows `row..end`, `R` at a time.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn part<const FLIPPED: bool, const P: usize, const R: usize>(
        &self,
        group: &Group<'_, P>,
        cursor: &mut Cursor,
        (row, end): (usize, usize),
        out: &mut [u8],
    ) {
        let mut list: Segments<'_, u8, R> = [[&[]; R]; MAX_SEGMENTS];
        let mut sums = [[_mm512_setzero_si512(); P]; R];
        for row in (row..end).step_by(R) {
            let taken = (end - row).min(R);
            // Rows that are not taken lie nowhere.
            let even = if taken == R { self.rows.even(cursor, R) } else { None };
            if let Some(rows) = even {
                self.even_tile::<FLIPPED, P, R>(group, rows, self.rows.pieces(), row, out);
                continue;
            }
            let pieces = self.rows.list(cursor, taken, &mut list);
            self.listed_sums::<FLIPPED, P, R>(group, &list[..pieces], &mut sums);
            self.end_in_memory::<P, R>(group, &sums, (row, taken), out);
        }
    }

    /// Stores what becomes of sums that lie in memory: of the first `taken` rows from `row` on.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn end_in_memory<const P: usize, const R: usize>(
        &self,
        group: &Group<'_, P>,
        sums: &[[__m512i; P]; R],
        rows: (usize, usize),
        out: &mut [u8],
    ) {
        match group.ending {
            NOT_NEGATIVE => self.end::<NOT_NEGATIVE, P, R>(group, sums, rows, out),
            SMALL => self.end::<SMALL, P, R>(group, sums, rows, out),
            _ => self.end::<ANY, P, R>(group, sums, rows, out),
        }
    }

    /// As [`Product::end_in_memory`], with this ending.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn end<const ENDING: Ending, const P: usize, const R: usize>(
        &self,
        group: &Group<'_, P>,
        sums: &[[__m512i; P]; R],
        (row, taken): (usize, usize),
        out: &mut [u8],
    ) {
        let units = self.matrix.units();
        let (first, channels) = group.channels;
        // Two whole rows of two panels are as many values as one store takes.
        let paired = if P == 2 && units == 2 * LANES { taken & !1 } else { 0 };
        for (pair, [upper, lower]) in sums[..paired].as_chunks().0.iter().enumerate() {
            let row = row + 2 * pair;
            let upper = self.ended::<ENDING, P>(group, upper, row);
            let lower = self.ended::<ENDING, P>(group, lower, row + 1);
            let values = [upper[0], upper[P - 1], lower[0], lower[P - 1]];
            self.bounds.store(values, &mut out[row * units..][..2 * units]);
        }
        for (index, sums) in sums[..taken].iter().enumerate().skip(paired) {
            let values = self.ended::<ENDING, P>(group, sums, row + index);
            let out = &mut out[(row + index) * units + first..][..channels];
            self.bounds.store(values, out);
        }
    }

    /// What becomes of the sums of one row.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn ended<const ENDING: Ending, const P: usize>(
        &self,
        group: &Group<'_, P>,
        sums: &[__m512i; P],
        row: usize,
    ) -> [__m512i; P] {
        let mut values = *sums;
        if let Some(term) = self.row_terms.get(row) {
            let term = _mm512_set1_epi32(*term);
            for value in &mut values {
                *value = _mm512_add_epi32(*value, term);
            }
        }
        for (value, rules) in values.iter_mut().zip(&group.rules) {
            *value = rules.apply::<ENDING>(*value);
        }
        values
    }

    /// `R` whole rows from row `row` on, from activations to stored values: their sums are in registers all the way.
    /// Each row is in pieces of `len` values, which begin at these offsets from its own begin.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn even_tile<const FLIPPED: bool, const P: usize, const R: usize>(
        &self,
        group: &Group<'_, P>,
        rows: EvenRows<'_, u8>,
        (offsets, len): (&[usize], usize),
        row: usize,
        out: &mut [u8],
    ) {
        let mut sums = [group.start(); R];
        let mut begin = 0;
        for offset in offsets {
            let piece = Piece::<u8, R>::even(rows, *offset, len);
            self.add_piece::<FLIPPED, P, R, true>(&group.panels, begin, piece, &mut sums);
            begin += len.div_ceil(QUAD);
        }
        match group.ending {
            NOT_NEGATIVE => self.end_tile::<NOT_NEGATIVE, FLIPPED, P, R>(group, sums, row, out),
            SMALL => self.end_tile::<SMALL, FLIPPED, P, R>(group, sums, row, out),
            _ => {
                // Too long to be written out for every row. Sums that a call is given a reference to are not in registers,
                // even before it: so these are others.
                let mut kept = [[_mm512_setzero_si512(); P]; R];
                each_row!(R, row => { kept[row] = sums[row] });
                self.end_in_memory::<P, R>(group, &kept, (row, R), out);
            }
        }
    }

    /// Stores what becomes of the sums of `R` rows from `row` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn end_tile<const ENDING: Ending, const FLIPPED: bool, const P: usize, const R: usize>(
        &self,
        group: &Group<'_, P>,
        mut sums: [[__m512i; P]; R],
        row: usize,
        out: &mut [u8],
    ) {
        let units = self.matrix.units();
        let (first, channels) = group.channels;
        if !self.row_terms.is_empty() {
            let terms = &self.row_terms[row..][..R];
            each_row!(R, row => {
                let term = _mm512_set1_epi32(terms[row]);
                for sum in &mut sums[row] {
                    *sum = _mm512_add_epi32(*sum, term);
                }
            });
        }
        let out = &mut out[row * units..][..R * units];
        // Two whole rows of two panels are as many values as one store takes.
        let is_paired = P == 2 && units == 2 * LANES;
        each_row!(R, row => {
            for (value, rules) in sums[row].iter_mut().zip(&group.rules) {
                *value = rules.apply::<ENDING>(*value);
            }
            let is_lower = row % 2 == 1;
            if is_paired && is_lower {
                let (upper, lower) = (sums[row - 1], sums[row]);
                let values = [upper[0], upper[P - 1], lower[0], lower[P - 1]];
                self.bounds.store(values, &mut out[(row - 1) * units..][..2 * units]);
            } else if !is_paired || row + 1 == R {
                self.bounds.store(sums[row], &mut out[row * units + first..][..channels]);
            }
        });
    }

    /// The sums of rows whose pieces lie anywhere. Those that are stored later lie in memory.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn listed_sums<const FLIPPED: bool, const P: usize, const R: usize>(
        &self,
        group: &Group<'_, P>,
        pieces: &[[&[u8]; R]],
        out: &mut [[__m512i; P]; R],
    ) {
        let mut sums = [group.start(); R];
        let mut begin = 0;
        for rows in pieces {
            let piece = Piece::listed(rows);
            self.add_piece::<FLIPPED, P, R, false>(&group.panels, begin, piece, &mut sums);
            begin += piece.len().div_ceil(QUAD);
        }
        each_row!(R, row => { out[row] = sums[row] });
    }

    /// Adds the products of a piece of `R` rows with the weights of `P` panels from quad `begin` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn add_piece<const FLIPPED: bool, const P: usize, const R: usize, const EVEN: bool>(
        &self,
        panels: &[&[Quad]; P],
        begin: usize,
        piece: Piece<'_, u8, R>,
        sums: &mut [[__m512i; P]; R],
    ) {
        let len = piece.len();
        let quads = len / QUAD;
        let mut now = *panels;
        for (now, panel) in now.iter_mut().zip(panels) {
            *now = &panel[begin..][..len.div_ceil(QUAD)];
        }
        for quad in 0..quads {
            let weights = weights(&now, quad);
            each_row!(R, row => {
                let values = piece.row(row).wrapping_add(quad * QUAD).cast::<i32>();
                // SAFETY: 4 bytes from `quad * 4` on end at most at `len`, and each row of the piece has as many; they
                // need not be aligned.
                let values = unsafe { values.read_unaligned() };
                self.add::<FLIPPED, P>(values, &weights, &mut sums[row]);
            });
        }
        if !len.is_multiple_of(QUAD) {
            let weights = weights(&now, quads);
            each_row!(R, row => {
                let mut last = 0;
                for position in (quads * QUAD..len).rev() {
                    let value = piece.row(row).wrapping_add(position);
                    // SAFETY: each row of the piece has `len` values.
                    last = last << 8 | i32::from(unsafe { value.read() });
                }
                // What is flipped beyond the end meets weights of 0.
                self.add::<FLIPPED, P>(last, &weights, &mut sums[row]);
            });
        }
    }

    /// Adds the products of four activations.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn add<const FLIPPED: bool, const P: usize>(
        &self,
        values: i32,
        weights: &[__m512i; P],
        sums: &mut [__m512i; P],
    ) {
        let mut values = _mm512_set1_epi32(values);
        if FLIPPED {
            values = _mm512_xor_si512(values, self.flip);
        }
        for panel in 0..P {
            sums[panel] = _mm512_dpbusd_epi32(sums[panel], values, weights[panel]);
        }
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
