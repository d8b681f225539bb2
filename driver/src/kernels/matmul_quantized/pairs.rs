//! Products of unsigned bytes with signed ones where no instruction for them is exact: weights are
//! widened to 16 bits and multiplied two by two, which every vector unit does without saturating.

use crate::OpError;
use crate::budget::Budget;
pub(crate) use crate::kernels::panels::LANES;
use crate::kernels::panels::Panels;

/// Rows that share a pass over the weights.
pub(crate) const ROWS: usize = 4;

/// Weights of 16 bits, in blocks of [`LANES`] output channels: for each two positions of the depth
/// the two weights of each channel. Missing channels and an odd last position are 0.
#[derive(Debug, Clone)]
pub(crate) struct PairMatrix(Panels<[[i16; 2]; LANES], 2>);

impl PairMatrix {
    /// Packs weights `[units, depth]`; there must be that many.
    ///
    /// # Errors
    /// What the budget says.
    pub(crate) fn new(
        weights: &[i8],
        units: usize,
        depth: usize,
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        let wide = |block: [[i8; 2]; LANES]| block.map(|pair| pair.map(i16::from));
        Ok(PairMatrix(Panels::pack(weights, units, depth, budget, wide)?))
    }

    /// Weights in the same order, as bytes.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        let weights = self.0.blocks().as_flattened().as_flattened().iter();
        // Each was widened from a signed byte.
        weights.map(|weight| weight.to_le_bytes()[0])
    }

    /// Weights that [`PairMatrix::bytes`] gave once.
    ///
    /// # Errors
    /// As [`Panels::restored`].
    pub(super) fn restored(
        bytes: &[u8],
        units: usize,
        depth: usize,
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        let wide = |bytes: &[u8; 2 * LANES]| {
            std::array::from_fn(|lane| {
                std::array::from_fn(|step| i16::from(bytes[2 * lane + step].cast_signed()))
            })
        };
        Ok(PairMatrix(Panels::restored(bytes, units, depth, budget, wide)?))
    }

    /// Number of output channels.
    #[inline(always)]
    pub(crate) fn units(&self) -> usize {
        self.0.units()
    }

    /// Length of a row of activations.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.0.depth()
    }

    /// The weights of a block of channels, for each two positions of the depth.
    pub(crate) fn block(&self, block: usize) -> &[[[i16; 2]; LANES]] {
        self.0.panel(block)
    }

    /// `out[row, unit] = sum(rows[row, ..] * weights[unit, ..])`, in whatever instructions the caller
    /// is compiled for. Sizes must fit, and the depth be above 0.
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
    pub(crate) fn held_bytes(&self) -> usize {
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
