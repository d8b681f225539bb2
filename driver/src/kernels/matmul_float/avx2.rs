//! Products of floats for AVX2 and FMA, in tiles of rows and panels of units, as that for AVX-512 computes them: a
//! panel is two registers. Both add the same products in the same order, and give the same bits.
//!
//! The one rule of the `unsafe` here: the rows of a tile are asserted, and the weights of a panel and the
//! outputs of the tile cut, to what is read and written before that begins, so that loops check no bounds.
//!
//! Sums stay in registers only where every function that has them is compiled into its caller, which the
//! compiler does for functions with one caller: so these have parameters that only tell their callers apart.
#![allow(unsafe_code, reason = "loads and stores within bounds that are checked once for a tile")]

use core::arch::x86_64::*;
use core::ops::Range;

use super::portable::{Product, Start, Weights};
use crate::kernels::conv::{Cursor, MAX_SEGMENTS, Segments};
use crate::kernels::panels;
use crate::kernels::simd::avx2::{LANES, Lanes8};

/// Registers of a panel.
const HALVES: usize = panels::LANES / LANES;

/// Rows of a tile: their sums are 12 of the 16 registers, weights and one value three more.
const ROWS: usize = 6;

/// Rows of a tile where the units of a panel fill only one register, whose sums are as many.
const ROWS_OF_HALVES: usize = 2 * ROWS;

/// Positions of a single row that are multiplied at once with the weights of two panels after the other.
const CHUNK: usize = 16;

/// Most panels of a single row, whose sums are twice as many; weights are multiplied where they lie. There are registers
/// for six, but from more places at once weights that are beyond the core's own cache come more slowly.
const WIDEST: usize = 4;

/// The sums of a panel, of which `H` registers are those of units.
type Sums<const H: usize> = [__m256; H];

/// As [`portable::multiply`](super::portable::multiply).
#[target_feature(enable = "avx2,fma")]
pub(crate) fn multiply_panels(product: &Product<'_>, out: &mut [f32]) {
    let panels = product.units.count().div_ceil(panels::LANES);
    if product.rows.count() > 1 {
        for panel in 0..panels {
            if product.units.count() - panel * panels::LANES > LANES {
                Group::<1, HALVES>::new(product, panel).rows::<ROWS, 3>(out);
            } else {
                Group::<1, 1>::new(product, panel).rows::<ROWS_OF_HALVES, 4>(out);
            }
        }
        return;
    }
    let groups = panels.div_ceil(WIDEST);
    for group in 0..groups {
        // Groups of nearly equal size.
        let first = panels * group / groups;
        match panels * (group + 1) / groups - first {
            1 => Group::<1, HALVES>::new(product, first).row(out),
            2 => Group::<2, HALVES>::new(product, first).row(out),
            3 => Group::<3, HALVES>::new(product, first).row(out),
            _ => Group::<WIDEST, HALVES>::new(product, first).row(out),
        }
    }
}

/// `P` panels of a product, each `H` registers wide.
struct Group<'a, const P: usize, const H: usize> {
    product: &'a Product<'a>,
    /// The first unit.
    first: usize,
    panels: [&'a [Weights]; P],
    /// Which lanes are those of units.
    lanes: [[Lanes8; H]; P],
    /// How many units there are.
    width: usize,
}

impl<'a, const P: usize, const H: usize> Group<'a, P, H> {
    #[target_feature(enable = "avx2,fma")]
    fn new(product: &'a Product<'a>, first: usize) -> Self {
        let (unit, units) = (first * panels::LANES, product.units.count());
        let mut group = Group {
            product,
            first: unit,
            panels: [product.units.panel(first); P],
            lanes: [[Lanes8::holding(0, LANES); H]; P],
            width: (units - unit).min(P * panels::LANES),
        };
        for (panel, lanes) in group.lanes.iter_mut().enumerate() {
            group.panels[panel] = product.units.panel(first + panel);
            for (half, lanes) in lanes.iter_mut().enumerate() {
                let at = unit + panel * panels::LANES + half * LANES;
                *lanes = Lanes8::holding(at.min(units), units);
            }
        }
        group
    }

    /// The only row.
    #[target_feature(enable = "avx2,fma")]
    fn row(&self, out: &mut [f32]) {
        let mut cursor = self.product.rows.start();
        if self.product.rows.are_whole() {
            self.part::<1, true, false>(&mut cursor, 0..1, out);
        } else {
            self.part::<1, false, false>(&mut cursor, 0..1, out);
        }
    }

    /// All rows, `R` at a time, or `FEW` where no more are left.
    #[target_feature(enable = "avx2,fma")]
    fn rows<const R: usize, const FEW: usize>(&self, out: &mut [f32]) {
        let rows = &self.product.rows;
        let count = rows.count();
        let mut cursor = rows.start();
        let full = if self.is_full() { count - count % R } else { 0 };
        // A tile with rows that are not wanted costs as much as a whole one.
        let is_few = count % R <= FEW;
        let tiled = if is_few { count - count % R } else { count };
        if rows.are_whole() {
            self.part::<R, true, true>(&mut cursor, 0..full, out);
            self.part::<R, true, false>(&mut cursor, full..tiled, out);
            self.part::<FEW, true, false>(&mut cursor, tiled..count, out);
        } else {
            self.part::<R, false, true>(&mut cursor, 0..full, out);
            self.part::<R, false, false>(&mut cursor, full..tiled, out);
            self.part::<FEW, false, false>(&mut cursor, tiled..count, out);
        }
    }

    /// Whether all lanes are those of units.
    fn is_full(&self) -> bool {
        self.lanes.iter().flatten().all(|lanes| lanes.count() == LANES)
    }

    /// These rows, `R` at a time. `FULL`: that divides them, and all lanes are those of units; where rows are short, to
    /// ask for each of them takes as long as their products.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn part<const R: usize, const WHOLE: bool, const FULL: bool>(
        &self,
        cursor: &mut Cursor,
        rows: Range<usize>,
        out: &mut [f32],
    ) {
        if rows.is_empty() {
            return;
        }
        assert!(!FULL || self.is_full() && rows.len().is_multiple_of(R), "whole tiles");
        let mut list: Segments<'_, f32, R> = [[&[]; R]; MAX_SEGMENTS];
        let end = rows.end;
        for row in rows.step_by(R) {
            let taken = if FULL { R } else { (end - row).min(R) };
            let mut sums = self.start::<R, WHOLE, FULL>(row, taken, out);
            if let Some(rows) = self.product.rows.slices::<R>(cursor, taken) {
                let whole: (&[usize], usize) = (&[0], rows[0].len());
                let (offsets, len) = if WHOLE { whole } else { self.product.rows.pieces() };
                for (piece, offset) in offsets.iter().enumerate() {
                    sums = self.piece::<R, WHOLE, FULL, true>(
                        &rows,
                        (*offset, len),
                        piece * len,
                        sums,
                    );
                }
            } else {
                assert!(!WHOLE, "rows of one piece are there as slices");
                let pieces = self.product.rows.list(cursor, taken, &mut list);
                let mut begin = 0;
                for rows in &list[..pieces] {
                    let len = rows[0].len();
                    sums = self.piece::<R, WHOLE, FULL, false>(rows, (0, len), begin, sums);
                    begin += len;
                }
            }
            self.store::<R, WHOLE, FULL>(row, taken, &sums, out);
        }
    }

    /// What the sums of `R` rows begin with; those that are not taken begin as the last one that is.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn start<const R: usize, const WHOLE: bool, const FULL: bool>(
        &self,
        row: usize,
        taken: usize,
        out: &[f32],
    ) -> [[Sums<H>; P]; R] {
        let mut sums = [[[_mm256_setzero_ps(); H]; P]; R];
        if let Start::Bias(bias) = self.product.start {
            let bias = &bias[self.first..][..self.width];
            let mut first = [[_mm256_setzero_ps(); H]; P];
            for (panel, first) in first.iter_mut().enumerate() {
                for (half, first) in first.iter_mut().enumerate() {
                    let at = bias.as_ptr().wrapping_add(panel * panels::LANES + half * LANES);
                    // SAFETY: the lanes are those of units, of which there are `width` numbers in `bias`; `FULL`
                    // says of them what `part` has asserted.
                    *first = unsafe { load::<FULL>(at, self.lanes[panel][half]) };
                }
            }
            return [first; R];
        }
        let mut row_at = out[self.range_in_output(row, taken)].as_ptr();
        for (index, sums) in sums.iter_mut().enumerate() {
            for (panel, sums) in sums.iter_mut().enumerate() {
                for (half, sum) in sums.iter_mut().enumerate() {
                    let at = row_at.wrapping_add(panel * panels::LANES + half * LANES);
                    // SAFETY: `row_at` began at the units of the first row and has gone a step for each row after it
                    // that is taken; the lanes are those of units, so what is read is in the range above. `FULL` says of
                    // them what `part` has asserted.
                    *sum = unsafe { load::<FULL>(at, self.lanes[panel][half]) };
                }
            }
            if index + 1 < taken {
                row_at = row_at.wrapping_add(self.product.out_step);
            }
        }
        sums
    }

    /// Where the units of rows `row..row + taken` lie in the output, from the first one's first to the last one's last.
    #[inline(always)]
    fn range_in_output(&self, row: usize, taken: usize) -> Range<usize> {
        let step = self.product.out_step;
        let begin = row * step + self.first;
        begin..begin + (taken - 1) * step + self.width
    }

    /// Adds the products of a piece of `R` rows, which begins at the same place in each, with the weights from
    /// `begin` on.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn piece<const R: usize, const WHOLE: bool, const FULL: bool, const SLICES: bool>(
        &self,
        rows: &[&[f32]; R],
        (offset, len): (usize, usize),
        begin: usize,
        mut sums: [[Sums<H>; P]; R],
    ) -> [[Sums<H>; P]; R] {
        let span = rows[0].len();
        assert!(offset <= span && len <= span - offset, "pieces of a row");
        for row in rows {
            assert_eq!(row.len(), span, "rows of a tile");
        }
        let mut weights = self.panels;
        for (panel, weights) in weights.iter_mut().enumerate() {
            *weights = &self.panels[panel][begin..begin + len];
        }
        // As with AVX-512; two panels at a time, or else there is a value to be loaded for each panel of it.
        let single = if R == 1 { &rows[0][offset..offset + len] } else { &[] };
        let (chunks, _) = single.as_chunks::<CHUNK>();
        for (number, chunk) in chunks.iter().enumerate() {
            for pair in (0..P).step_by(2) {
                for (step, value) in chunk.iter().enumerate() {
                    let value = _mm256_set1_ps(*value);
                    for panel in pair..(pair + 2).min(P) {
                        let Weights(now) = &weights[panel].as_chunks::<CHUNK>().0[number][step];
                        for (half, sum) in sums[0][panel].iter_mut().enumerate() {
                            let at = now.as_ptr().wrapping_add(half * LANES);
                            // SAFETY: 32 bytes are read from a half of an array of 16 floats.
                            let now = unsafe { _mm256_loadu_ps(at) };
                            *sum = _mm256_fmadd_ps(value, now, *sum);
                        }
                    }
                }
            }
        }
        for position in chunks.len() * CHUNK..len {
            for panel in 0..P {
                // SAFETY: each slice of weights has `len` elements: it was cut above.
                let Weights(weights) = unsafe { weights[panel].get_unchecked(position) };
                let mut now = [_mm256_setzero_ps(); H];
                for (half, now) in now.iter_mut().enumerate() {
                    let at = weights.as_ptr().wrapping_add(half * LANES);
                    // SAFETY: 32 bytes are read from a half of an array of 16 floats.
                    *now = unsafe { _mm256_loadu_ps(at) };
                }
                // Value by value: of all rows' at once there are not enough registers.
                for (sums, row) in sums.iter_mut().zip(rows) {
                    // SAFETY: each row has `span` elements, and `offset + len` is at most that: the assertions above.
                    let value = _mm256_set1_ps(*unsafe { row.get_unchecked(offset + position) });
                    for half in 0..H {
                        sums[panel][half] = _mm256_fmadd_ps(value, now[half], sums[panel][half]);
                    }
                }
            }
        }
        sums
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn store<const R: usize, const WHOLE: bool, const FULL: bool>(
        &self,
        row: usize,
        taken: usize,
        sums: &[[Sums<H>; P]; R],
        out: &mut [f32],
    ) {
        let (low, high) = self.product.range;
        let (low, high) = (_mm256_set1_ps(low), _mm256_set1_ps(high));
        let mut row_at = out[self.range_in_output(row, taken)].as_mut_ptr();
        for (index, sums) in sums.iter().enumerate() {
            // Not a shorter loop: sums are to stay in registers.
            if index >= taken {
                break;
            }
            for (panel, sums) in sums.iter().enumerate() {
                for (half, sum) in sums.iter().enumerate() {
                    // Operands in this order keep a NaN: the second one is the answer for it.
                    let sum = _mm256_min_ps(high, _mm256_max_ps(low, *sum));
                    let at = row_at.wrapping_add(panel * panels::LANES + half * LANES);
                    // SAFETY: `row_at` began at the units of the first row and has gone a step for each row before
                    // this one, which is taken; the lanes are those of units, so what is written is in the range above.
                    // `FULL` says of them what `part` has asserted.
                    unsafe { store::<FULL>(at, self.lanes[panel][half], sum) };
                }
            }
            row_at = row_at.wrapping_add(self.product.out_step);
        }
    }
}

/// The numbers of these lanes; others are 0.
///
/// # Safety
/// `at` is that of the first lane, and there are as many numbers as lanes: 8 where they are `FULL`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<const FULL: bool>(at: *const f32, lanes: Lanes8) -> __m256 {
    if FULL || lanes.count() == LANES {
        // SAFETY: of the caller: there are all 8.
        return unsafe { _mm256_loadu_ps(at) };
    }
    // SAFETY: of the caller; lanes that are not in the mask are not read.
    unsafe { _mm256_maskload_ps(at, lanes.mask()) }
}

/// Writes the numbers of these lanes. With a mask that takes some processors many times as long.
///
/// # Safety
/// `at` is that of the first lane, and there is room for as many numbers as lanes: for 8 where they are `FULL`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store<const FULL: bool>(at: *mut f32, lanes: Lanes8, values: __m256) {
    if FULL || lanes.count() == LANES {
        // SAFETY: of the caller: there is room for all 8.
        unsafe { _mm256_storeu_ps(at, values) };
    } else if lanes.count() > 0 {
        // SAFETY: of the caller; lanes that are not in the mask are not written.
        unsafe { _mm256_maskstore_ps(at, lanes.mask(), values) };
    }
}
