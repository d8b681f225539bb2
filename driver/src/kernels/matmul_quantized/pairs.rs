//! Products of unsigned bytes with signed ones where no instruction for them is exact: weights are
//! widened to 16 bits and multiplied two by two, which every vector unit does without saturating.

use crate::OpError;
use crate::budget::Budget;
pub(crate) use crate::kernels::panels::LANES;
use crate::kernels::panels::Panels;
use crate::kernels::simd::Isa;

/// Rows that share a pass over the weights.
const ROWS: usize = 4;

/// Rows that the kernel for AVX2 takes at a time: with two registers of weights and two to compute with, the sums
/// of as many fill all 16.
pub(crate) const WIDE_ROWS: usize = 6;

/// Two weights of each of 16 channels.
pub(crate) type WeightPairs = [[i16; 2]; LANES];

/// Weights of 16 bits, less their zero point, in blocks of [`LANES`] output channels: for each two positions of
/// the depth the two weights of each channel. What stands for missing channels and an odd last position is
/// multiplied with nothing that counts.
#[derive(Debug, Clone)]
pub(crate) struct PairMatrix {
    panels: Panels<WeightPairs, 2>,
    zero: i8,
}

impl PairMatrix {
    /// Packs `units` rows of `depth` weights, of which `row` gives each once, in their order: signed once each byte is
    /// XORed with `flip`, less `zero`.
    ///
    /// # Errors
    /// What the budget says.
    pub(crate) fn new<'w>(
        isa: Isa,
        row: impl FnMut(usize) -> &'w [u8],
        (flip, zero): (u8, i8),
        sizes: (usize, usize),
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        Ok(PairMatrix { panels: Panels::pack_pairs(isa, row, sizes, (flip, zero), budget)?, zero })
    }

    /// Weights as they were given, in the order of this matrix, as bytes.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        let weights = self.panels.blocks().as_flattened().as_flattened().iter();
        // Each was widened from a signed byte.
        weights.map(|weight| (weight + i16::from(self.zero)).to_le_bytes()[0])
    }

    /// Weights that [`PairMatrix::bytes`] gave once.
    ///
    /// # Errors
    /// As [`Panels::restored`].
    pub(super) fn restored(
        bytes: &[u8],
        (units, depth): (usize, usize),
        zero: i8,
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        let weight = |byte: u8| i16::from(byte.cast_signed()) - i16::from(zero);
        let wide = |bytes: &[u8; 2 * LANES]| {
            std::array::from_fn(|lane| std::array::from_fn(|step| weight(bytes[2 * lane + step])))
        };
        Ok(PairMatrix { panels: Panels::restored(bytes, units, depth, budget, wide)?, zero })
    }

    /// Number of output channels.
    #[inline(always)]
    pub(crate) fn units(&self) -> usize {
        self.panels.units()
    }

    /// Length of a row of activations.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.panels.depth()
    }

    /// The weights of `count` output channels from `first` on, which must be a multiple of
    /// [`LANES`].
    pub(crate) fn channels(&self, first: usize, count: usize) -> PairPanels<'_> {
        assert!(first.is_multiple_of(LANES), "channels of whole panels");
        let len = self.panels.panel_len();
        let panels = first / LANES * len..(first + count).div_ceil(LANES) * len;
        let weights = &self.panels.blocks()[panels];
        PairPanels { units: count, depth: self.depth(), weights }
    }

    /// `out[row, unit] = sum(rows[row, ..] * weights[unit, ..])`, in whatever instructions the caller
    /// is compiled for. Sizes must fit, and the depth be above 0.
    #[inline(always)]
    pub(crate) fn product(&self, rows: &[u8], out: &mut [i32]) {
        let (units, depth, block_len) = (self.units(), self.depth(), self.panels.panel_len());
        for (rows, out) in rows.chunks(ROWS * depth).zip(out.chunks_mut(ROWS * units)) {
            let count = rows.len() / depth;
            for (block, first) in
                self.panels.blocks().chunks_exact(block_len).zip((0..units).step_by(LANES))
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
        self.panels.held_bytes()
    }
}

/// Some panels of a [`PairMatrix`], or all.
#[derive(Clone, Copy)]
pub(crate) struct PairPanels<'a> {
    units: usize,
    depth: usize,
    weights: &'a [WeightPairs],
}

impl<'a> PairPanels<'a> {
    /// Number of output channels.
    #[inline(always)]
    pub(crate) fn units(&self) -> usize {
        self.units
    }

    /// Length of a row of activations.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Length of a row of activations, two by two.
    #[inline(always)]
    pub(crate) fn pairs(&self) -> usize {
        self.depth.div_ceil(2)
    }

    /// The weights of a panel in the order of the depth.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize) -> &'a [WeightPairs] {
        let len = self.pairs();
        &self.weights[panel * len..(panel + 1) * len]
    }
}

#[inline(always)]
fn row_times_block(row: &[u8], block: &[WeightPairs], sums: &mut [i32; LANES]) {
    let (couples, last) = row.as_chunks::<2>();
    let odd = last.first().map(|value| [*value, 0]);
    let mut totals = [0i32; LANES];
    for ([a, b], weights) in couples.iter().chain(&odd).zip(block) {
        let (a, b) = (i32::from(*a), i32::from(*b));
        for (total, [v, w]) in totals.iter_mut().zip(weights) {
            *total = total.wrapping_add(a * i32::from(*v) + b * i32::from(*w));
        }
    }
    *sums = totals;
}
