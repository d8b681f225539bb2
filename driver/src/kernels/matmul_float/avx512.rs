//! Products of floats, in tiles of rows and panels of units.
//!
//! The one rule of the `unsafe` here: the rows of a tile are asserted, and the weights of a panel and the
//! outputs of the tile cut, to what is read and written before that begins, so that loops check no bounds.
//!
//! Sums stay in registers only where every function that has them is compiled into its caller, which the
//! compiler does for functions with one caller: so these have parameters that only tell their callers apart.
#![allow(unsafe_code, reason = "loads and stores within bounds that are checked once for a tile")]

use core::arch::x86_64::*;
use core::ops::Range;

use super::ONE_ROW_UNITS;
use super::portable::{Product, Start, Weights};
use crate::kernels::conv::{Cursor, MAX_SEGMENTS, Segments};
use crate::kernels::simd::avx512::{LANES, Lanes16, load_floats};

/// Most panels of a tile of several rows.
const WIDE: usize = 4;

/// The same where rows are so short that setting up a tile counts.
const WIDE_SHALLOW: usize = 6;

/// Length of the longest such rows.
const SHALLOW: usize = 96;

/// Fewest panels with which there is time, beside sums, to ask for the weights of the next group.
const FETCHING: usize = 3;

/// Positions of a single row that are multiplied at once with the weights of one panel after the other.
const CHUNK: usize = 16;

/// Most panels of a single row.
const WIDEST: usize = ONE_ROW_UNITS / LANES;

/// As [`portable::multiply`](super::portable::multiply).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn multiply_panels(product: &Product<'_>, out: &mut [f32]) {
    let panels = product.units.count().div_ceil(LANES);
    let is_single = product.rows.count() == 1;
    let wide = if product.units.depth() <= SHALLOW { WIDE_SHALLOW } else { WIDE };
    let groups = panels.div_ceil(if is_single { WIDEST } else { wide });
    for group in 0..groups {
        // Groups of nearly equal size.
        let first = panels * group / groups;
        let size = panels * (group + 1) / groups - first;
        // Sums, weights and one value fit into 32 registers, and where each row lies into 16. Of two panels twelve rows would,
        // too; where so many lie is worked out anew for every tile, and eight take less of that.
        match (is_single, size) {
            (false, 1) => Group::<1>::new(product, first).rows::<12, 6>(out),
            (false, 2) => Group::<2>::new(product, first).rows::<8, 4>(out),
            (false, 3) => Group::<3>::new(product, first).rows::<8, 3>(out),
            (false, WIDE) => Group::<WIDE>::new(product, first).rows::<6, 2>(out),
            (false, 5) => Group::<5>::new(product, first).rows::<5, 2>(out),
            (false, _) => Group::<WIDE_SHALLOW>::new(product, first).rows::<4, 2>(out),
            (true, 1) => Group::<1>::new(product, first).row(out),
            (true, 2) => Group::<2>::new(product, first).row(out),
            (true, 3) => Group::<3>::new(product, first).row(out),
            (true, 4) => Group::<4>::new(product, first).row(out),
            (true, 5) => Group::<5>::new(product, first).row(out),
            (true, 6) => Group::<6>::new(product, first).row(out),
            (true, 7) => Group::<7>::new(product, first).row(out),
            (true, _) => Group::<WIDEST>::new(product, first).row(out),
        }
    }
}

/// `P` panels of a product.
struct Group<'a, const P: usize> {
    product: &'a Product<'a>,
    /// The first unit.
    first: usize,
    panels: [&'a [Weights]; P],
    /// Which lanes are those of units.
    lanes: [Lanes16; P],
    /// How many units there are.
    width: usize,
}

impl<'a, const P: usize> Group<'a, P> {
    fn new(product: &'a Product<'a>, first: usize) -> Self {
        let mut group = Group {
            product,
            first: first * LANES,
            panels: [product.units.panel(first); P],
            lanes: [Lanes16::ALL; P],
            width: (product.units.count() - first * LANES).min(P * LANES),
        };
        for panel in 0..P {
            group.panels[panel] = product.units.panel(first + panel);
            group.lanes[panel] = Lanes16::holding((first + panel) * LANES, product.units.count());
        }
        group
    }

    /// The only row.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn row(&self, out: &mut [f32]) {
        let mut cursor = self.product.rows.start();
        if self.product.rows.are_whole() {
            self.part::<1, true>(&mut cursor, 0, 1, out);
        } else {
            self.part::<1, false>(&mut cursor, 0, 1, out);
        }
    }

    /// All rows, `R` at a time, and those that are left `FEW` at a time, which are as many as have enough sums to hide
    /// how long a multiplication takes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn rows<const R: usize, const FEW: usize>(&self, out: &mut [f32]) {
        let rows = &self.product.rows;
        let count = rows.count();
        let mut cursor = rows.start();
        // A tile with rows that are not wanted costs as much as a whole one.
        let left = count % R;
        let is_few = left.next_multiple_of(FEW) < R;
        let tiled = if is_few { count - left } else { count };
        if rows.are_whole() {
            self.part::<R, true>(&mut cursor, 0, tiled, out);
            self.part::<FEW, true>(&mut cursor, tiled, count, out);
        } else {
            self.part::<R, false>(&mut cursor, 0, tiled, out);
            self.part::<FEW, false>(&mut cursor, tiled, count, out);
        }
    }

    /// The weights that tile `tile` asks for while it computes: those of a panel of the next group, of which each of
    /// the first tiles takes one; its own where there is none.
    #[inline(always)]
    fn ahead(&self, tile: usize) -> *const Weights {
        let units = &self.product.units;
        let next = self.first / LANES + P + tile;
        let is_there = tile < WIDE_SHALLOW && next < units.count().div_ceil(LANES);
        if is_there { units.panel(next).as_ptr() } else { self.panels[0].as_ptr() }
    }

    /// Rows `row..end`, `R` at a time.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn part<const R: usize, const WHOLE: bool>(
        &self,
        cursor: &mut Cursor,
        row: usize,
        end: usize,
        out: &mut [f32],
    ) {
        let mut list: Segments<'_, f32, R> = [[&[]; R]; MAX_SEGMENTS];
        for (tile, row) in (row..end).step_by(R).enumerate() {
            let taken = (end - row).min(R);
            let ahead = self.ahead(tile);
            let mut sums = self.start::<R, WHOLE>(row, taken, out);
            if let Some(rows) = self.product.rows.slices::<R>(cursor, taken) {
                let whole: (&[usize], usize) = (&[0], rows[0].len());
                let (offsets, len) = if WHOLE { whole } else { self.product.rows.pieces() };
                for (piece, offset) in offsets.iter().enumerate() {
                    sums = self.piece::<R, WHOLE, true>(
                        &rows,
                        (*offset, len),
                        piece * len,
                        ahead,
                        sums,
                    );
                }
            } else {
                assert!(!WHOLE, "rows of one piece are there as slices");
                let pieces = self.product.rows.list(cursor, taken, &mut list);
                let mut begin = 0;
                for rows in &list[..pieces] {
                    let len = rows[0].len();
                    sums = self.piece::<R, WHOLE, false>(rows, (0, len), begin, ahead, sums);
                    begin += len;
                }
            }
            self.store::<R, WHOLE>(row, taken, &sums, out);
        }
    }

    /// What the sums of `R` rows begin with; those that are not taken begin as the last one that is.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn start<const R: usize, const WHOLE: bool>(
        &self,
        row: usize,
        taken: usize,
        out: &[f32],
    ) -> [[__m512; P]; R] {
        let mut sums = [[_mm512_setzero_ps(); P]; R];
        if let Start::Bias(bias) = self.product.start {
            let mut first = [_mm512_setzero_ps(); P];
            for (panel, first) in first.iter_mut().enumerate() {
                *first = load_floats(bias, self.first + panel * LANES, self.lanes[panel]);
            }
            return [first; R];
        }
        let mut at = out[self.range_in_output(row, taken)].as_ptr();
        for (index, sums) in sums.iter_mut().enumerate() {
            for (panel, sum) in sums.iter_mut().enumerate() {
                let at = at.wrapping_add(panel * LANES);
                // SAFETY: `at` began at the units of the first row and has gone a step for each row after it
                // that is taken; the lanes are those of units, so what is read is in the range above.
                *sum = unsafe { _mm512_maskz_loadu_ps(self.lanes[panel].mask(), at) };
            }
            if index + 1 < taken {
                at = at.wrapping_add(self.product.out_step);
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
    /// `begin` on; meanwhile asks for those at the same positions of `ahead`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn piece<const R: usize, const WHOLE: bool, const SLICES: bool>(
        &self,
        rows: &[&[f32]; R],
        (offset, len): (usize, usize),
        begin: usize,
        ahead: *const Weights,
        mut sums: [[__m512; P]; R],
    ) -> [[__m512; P]; R] {
        let span = rows[0].len();
        assert!(offset <= span && len <= span - offset, "pieces of a row");
        for row in rows {
            assert_eq!(row.len(), span, "rows of a tile");
        }
        let mut weights = self.panels;
        for (panel, weights) in weights.iter_mut().enumerate() {
            *weights = &self.panels[panel][begin..begin + len];
        }
        let ahead = ahead.wrapping_add(begin);
        // Of a single row: panel by panel, of each as many lines as a core then fetches by itself ahead of what is read.
        // Where it reads one line of each panel in turn, it waits for all that its first cache does not have.
        let single = if R == 1 { &rows[0][offset..offset + len] } else { &[] };
        let (chunks, _) = single.as_chunks::<CHUNK>();
        for (number, chunk) in chunks.iter().enumerate() {
            let mut values = [_mm512_setzero_ps(); CHUNK];
            for (value, from) in values.iter_mut().zip(chunk) {
                *value = _mm512_set1_ps(*from);
            }
            for panel in 0..P {
                let now = &weights[panel].as_chunks::<CHUNK>().0[number];
                for (value, Weights(now)) in values.iter().zip(now) {
                    // SAFETY: 64 bytes are read from an array of 16 floats.
                    let now = unsafe { _mm512_loadu_ps(now.as_ptr()) };
                    sums[0][panel] = _mm512_fmadd_ps(*value, now, sums[0][panel]);
                }
            }
        }
        for position in chunks.len() * CHUNK..len {
            if P >= FETCHING {
                _mm_prefetch::<_MM_HINT_T1>(ahead.wrapping_add(position).cast());
            }
            let mut now = [_mm512_setzero_ps(); P];
            for panel in 0..P {
                // SAFETY: each slice of weights has `len` elements: it was cut above.
                let Weights(weights) = unsafe { weights[panel].get_unchecked(position) };
                // SAFETY: 64 bytes are read from an array of 16 floats.
                now[panel] = unsafe { _mm512_loadu_ps(weights.as_ptr()) };
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                // SAFETY: each row has `span` elements, and `offset + len` is at most that: the assertions above.
                let value = _mm512_set1_ps(*unsafe { row.get_unchecked(offset + position) });
                for panel in 0..P {
                    sums[panel] = _mm512_fmadd_ps(value, now[panel], sums[panel]);
                }
            }
        }
        sums
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn store<const R: usize, const WHOLE: bool>(
        &self,
        row: usize,
        taken: usize,
        sums: &[[__m512; P]; R],
        out: &mut [f32],
    ) {
        let (low, high) = self.product.range;
        let (low, high) = (_mm512_set1_ps(low), _mm512_set1_ps(high));
        let mut at = out[self.range_in_output(row, taken)].as_mut_ptr();
        for (index, sums) in sums.iter().enumerate() {
            // Not a shorter loop: sums are to stay in registers.
            if index >= taken {
                break;
            }
            for (panel, sum) in sums.iter().enumerate() {
                // Operands in this order keep a NaN: the second one is the answer for it.
                let sum = _mm512_min_ps(high, _mm512_max_ps(low, *sum));
                let at = at.wrapping_add(panel * LANES);
                // SAFETY: `at` began at the units of the first row and has gone a step for each row before this
                // one, which is taken; the lanes are those of units, so what is written is in the range above.
                unsafe { _mm512_mask_storeu_ps(at, self.lanes[panel].mask(), sum) };
            }
            at = at.wrapping_add(self.product.out_step);
        }
    }
}
