//! Products of unsigned bytes with signed ones where no instruction for them is exact: weights are
//! widened to 16 bits and multiplied two by two, which every vector unit does without saturating.

use crate::OpError;
pub(crate) use crate::kernels::panels::LANES;
use crate::kernels::panels::Panels;
use crate::kernels::{Isa, simd};

/// Rows that share a pass over the weights.
pub(crate) const ROWS: usize = 4;

/// Weights of 16 bits, in blocks of [`LANES`] output channels: for each two positions of the depth
/// the two weights of each channel. Missing channels and an odd last position are 0.
#[derive(Debug, Clone)]
pub struct PairMatrix(Panels<[[i16; 2]; LANES], 2>);

impl PairMatrix {
    /// Packs weights `[units, depth]`; there must be that many.
    #[must_use]
    pub fn new(weights: &[i8], units: usize, depth: usize) -> Self {
        let wide = |block: [[i8; 2]; LANES]| block.map(|pair| pair.map(i16::from));
        PairMatrix(Panels::pack(weights, units, depth, wide))
    }

    /// `out[row, unit] = sum(rows[row, ..] * weights[unit, ..])`.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub fn multiply(&self, isa: Isa, rows: &[u8], out: &mut [i32]) -> Result<(), OpError> {
        let (units, depth) = (self.units(), self.depth());
        let count = out.len() / units.max(1);
        if rows.len() != count * depth || out.len() != count * units {
            return Err(OpError::Internal { what: "sizes of a matrix product" });
        }
        if depth == 0 {
            out.fill(0);
        } else {
            simd::multiply_pairs(isa, self, rows, out);
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn units(&self) -> usize {
        self.0.units()
    }

    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.0.depth()
    }

    /// The weights of a block of channels, for each two positions of the depth.
    pub(crate) fn block(&self, block: usize) -> &[[[i16; 2]; LANES]] {
        self.0.panel(block)
    }

    /// As [`PairMatrix::multiply`], in whatever instructions the caller is compiled for.
    #[inline(always)]
    pub(crate) fn product(&self, rows: &[u8], out: &mut [i32]) {
        let (units, depth, block_len) = (self.units(), self.depth(), self.0.panel_len());
        for (rows, out) in rows.chunks(ROWS * depth).zip(out.chunks_mut(ROWS * units)) {
            let count = rows.len() / depth;
            for (block, first) in
                self.0.blocks().chunks_exact(block_len).zip((0..units).step_by(LANES))
            {
                let mut sums = [[0i32; LANES]; ROWS];
                for (row, sums) in rows.chunks_exact(depth).zip(&mut sums) {
                    row_times_block(row, block, sums);
                }
                let used = LANES.min(units - first);
                for (row, sums) in sums.iter().take(count).enumerate() {
                    let at = row * units + first;
                    out[at..at + used].copy_from_slice(&sums[..used]);
                }
            }
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

#[inline(always)]
fn row_times_block(row: &[u8], block: &[[[i16; 2]; LANES]], sums: &mut [i32; LANES]) {
    let (couples, last) = row.as_chunks::<2>();
    let odd = last.first().map(|value| [*value, 0]);
    let mut totals = [0i32; LANES];
    for ([a, b], weights) in couples.iter().chain(&odd).zip(block) {
        let (a, b) = (i32::from(*a), i32::from(*b));
        for (total, [v, w]) in totals.iter_mut().zip(weights) {
            *total += a * i32::from(*v) + b * i32::from(*w);
        }
    }
    *sums = totals;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            let matrix = PairMatrix::new(&weights, units, depth);
            for isa in [Isa::PORTABLE, Isa::detect()] {
                let mut got = vec![-1; count * units];
                matrix.multiply(isa, &rows, &mut got).unwrap();
                prop_assert_eq!(&got, &want);
            }
        }
    }

    #[test]
    fn the_largest_products_do_not_saturate() {
        let depth = 1000;
        let matrix = PairMatrix::new(&vec![-128; depth], 1, depth);
        for isa in [Isa::PORTABLE, Isa::detect()] {
            let mut out = [0];
            matrix.multiply(isa, &vec![255; depth], &mut out).unwrap();
            assert_eq!(out, [-128 * 255 * 1000]);
        }
        assert!(matrix.multiply(Isa::PORTABLE, &[1; 3], &mut [0]).is_err());
    }
}
