//! Products of unsigned bytes with signed ones where no instruction for them is exact: weights are
//! widened to 16 bits and multiplied two by two, which every vector unit does without saturating.

use crate::OpError;
use crate::kernels::{Isa, simd};

/// Output channels that are computed side by side.
pub(crate) const LANES: usize = 16;

/// Rows that share a pass over the weights.
pub(crate) const ROWS: usize = 4;

/// Weights of 16 bits, in blocks of [`LANES`] output channels: for each two positions of the depth
/// the two weights of each channel. Missing channels and an odd last position are 0.
#[derive(Clone)]
pub struct PairMatrix {
    units: usize,
    depth: usize,
    pairs: Vec<[[i16; 2]; LANES]>,
}

impl std::fmt::Debug for PairMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PairMatrix({} x {})", self.depth, self.units)
    }
}

impl PairMatrix {
    /// Packs weights `[units, depth]`; there must be that many.
    #[must_use]
    pub fn new(weights: &[i8], units: usize, depth: usize) -> Self {
        let weight = |unit: usize, position: usize| {
            let inside = unit < units && position < depth;
            if inside { i16::from(weights[unit * depth + position]) } else { 0 }
        };
        let mut pairs = Vec::with_capacity(units.div_ceil(LANES) * depth.div_ceil(2));
        for first in (0..units).step_by(LANES) {
            for position in (0..depth).step_by(2) {
                pairs.push(std::array::from_fn(|lane| {
                    [weight(first + lane, position), weight(first + lane, position + 1)]
                }));
            }
        }
        PairMatrix { units, depth, pairs }
    }

    /// `out[row, unit] = sum(rows[row, ..] * weights[unit, ..])`.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub fn multiply(&self, isa: Isa, rows: &[u8], out: &mut [i32]) -> Result<(), OpError> {
        let count = out.len() / self.units.max(1);
        if rows.len() != count * self.depth || out.len() != count * self.units {
            return Err(OpError::Internal { what: "sizes of a matrix product" });
        }
        if self.depth == 0 {
            out.fill(0);
        } else {
            simd::multiply_pairs(isa, self, rows, out);
        }
        Ok(())
    }

    pub(crate) fn units(&self) -> usize {
        self.units
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The weights of a block of channels, for each two positions of the depth.
    pub(crate) fn block(&self, block: usize) -> &[[[i16; 2]; LANES]] {
        let len = self.depth.div_ceil(2);
        &self.pairs[block * len..(block + 1) * len]
    }

    /// As [`PairMatrix::multiply`], in whatever instructions the caller is compiled for.
    #[inline(always)]
    pub(crate) fn product(&self, rows: &[u8], out: &mut [i32]) {
        let block_len = self.depth.div_ceil(2);
        for (rows, out) in rows.chunks(ROWS * self.depth).zip(out.chunks_mut(ROWS * self.units)) {
            let count = rows.len() / self.depth;
            for (block, first) in
                self.pairs.chunks_exact(block_len).zip((0..self.units).step_by(LANES))
            {
                let mut sums = [[0i32; LANES]; ROWS];
                for (row, sums) in rows.chunks_exact(self.depth).zip(&mut sums) {
                    row_times_block(row, block, sums);
                }
                let used = LANES.min(self.units - first);
                for (row, sums) in sums.iter().take(count).enumerate() {
                    let at = row * self.units + first;
                    out[at..at + used].copy_from_slice(&sums[..used]);
                }
            }
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        size_of_val(self.pairs.as_slice())
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
