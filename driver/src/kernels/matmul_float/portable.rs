//! Products of rows of floats with weights in panels of [`LANES`] units, each sum held in the range
//! of an activation before it leaves the registers.

use bytemuck::{Pod, Zeroable};

use crate::OpError;
use crate::budget::Budget;
use crate::kept::KeptValue;
use crate::kernels::add_float::held;
use crate::kernels::conv::{MAX_SEGMENTS, MatrixRows, Segments};
use crate::kernels::panels::{LANES, Panels};
use crate::kernels::simd::Isa;

/// The weights of the units of a panel at one position of the depth.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Weights(pub(crate) [f32; LANES]);

/// Weights in panels: for each panel and each position of the depth one weight per unit. Units that
/// fill up the last panel have weights of 0.
#[derive(Debug, Clone)]
pub(crate) struct FloatPanels(Panels<Weights, 1>);

impl FloatPanels {
    /// Packs weights `[units, depth]`.
    ///
    /// # Errors
    /// [`OpError::Internal`] when there are not that many, or one of the sizes is 0; what the budget
    /// says.
    pub(crate) fn new(
        isa: Isa,
        weights: &[f32],
        units: usize,
        depth: usize,
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        if Some(weights.len()) != units.checked_mul(depth) {
            return Err(wrong_size());
        }
        let row = |unit: usize| &weights[unit * depth..][..depth];
        Self::of_rows(isa, row, (units, depth), budget)
    }

    /// Packs `units` rows of weights, of which `row` gives each once, in their order.
    ///
    /// # Errors
    /// [`OpError::Internal`] when one of the sizes is 0; what the budget says.
    pub(crate) fn of_rows<'w>(
        isa: Isa,
        mut row: impl FnMut(usize) -> &'w [f32],
        (units, depth): (usize, usize),
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        if units == 0 || depth == 0 {
            return Err(wrong_size());
        }
        let bytes = |unit: usize| bytemuck::cast_slice(row(unit));
        Ok(FloatPanels(Panels::pack_words(isa, bytes, (units, depth), 0, budget)?))
    }

    /// Weights as [`FloatPanels::bytes`] gave them once, which stay where they are kept.
    ///
    /// # Errors
    /// As [`Panels::kept`].
    pub(crate) fn kept(packed: &KeptValue, units: usize, depth: usize) -> Result<Self, OpError> {
        Ok(FloatPanels(Panels::kept(packed, units, depth)?))
    }

    /// The weights in the order in which kernels read them.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Number of units.
    #[must_use]
    pub(crate) fn units(&self) -> usize {
        self.0.units()
    }

    /// Length of a row.
    #[must_use]
    pub(crate) fn depth(&self) -> usize {
        self.0.depth()
    }

    /// All units.
    pub(crate) fn all(&self) -> Units<'_> {
        Units { panels: self, first: 0, count: self.units() }
    }

    /// At most `count` units from `first` on, which begins a panel.
    pub(crate) fn part(&self, first: usize, count: usize) -> Units<'_> {
        let left = self.units().saturating_sub(first);
        Units { panels: self, first: first / LANES, count: count.min(left) }
    }

    /// Bytes held.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

/// Units of a matrix, from one that begins a panel on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units<'a> {
    panels: &'a FloatPanels,
    /// The first panel.
    first: usize,
    count: usize,
}

impl<'a> Units<'a> {
    /// How many there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Length of a row.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.panels.0.depth()
    }

    /// The weights of a panel in the order of the depth.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize) -> &'a [Weights] {
        self.panels.0.panel(self.first + panel)
    }
}

pub(super) fn wrong_size() -> OpError {
    OpError::Internal { what: "sizes of a product of floats" }
}

/// What sums begin with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start<'a> {
    /// One number per unit.
    Bias(&'a [f32]),
    /// What the output holds.
    Output,
}

/// A product: `out[row, unit] = clamp(start + sum(rows[row, ..] * weights[unit, ..]))`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product<'a> {
    /// The units, with their weights.
    pub(crate) units: Units<'a>,
    /// The rows.
    pub(crate) rows: MatrixRows<'a, f32>,
    /// What sums begin with.
    pub(crate) start: Start<'a>,
    /// Smallest and largest result; NaN stays NaN.
    pub(crate) range: (f32, f32),
    /// From a row of the output to the next.
    pub(crate) out_step: usize,
}

/// The range that changes nothing.
pub(crate) const EVERYTHING: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

impl Product<'_> {
    /// What the sums of row `row` begin with, for units from `first` on.
    #[inline(always)]
    pub(crate) fn start<'s>(&'s self, row: usize, first: usize, out: &'s [f32]) -> &'s [f32] {
        match self.start {
            Start::Bias(bias) => &bias[first..],
            Start::Output => &out[row * self.out_step..][first..self.units.count()],
        }
    }
}

/// Rows that the portable kernel takes at a time.
const TILE: usize = 4;

/// The product, which [`Product::run`] has checked the sizes of.
#[inline(always)]
pub(crate) fn multiply(product: &Product<'_>, out: &mut [f32]) {
    let count = product.rows.count();
    for first in (0..product.units.count()).step_by(LANES) {
        let mut cursor = product.rows.start();
        let mut list: Segments<'_, f32, TILE> = [[&[]; TILE]; MAX_SEGMENTS];
        for row in (0..count).step_by(TILE) {
            let taken = (count - row).min(TILE);
            let pieces = product.rows.list(&mut cursor, taken, &mut list);
            tile(product, (row, taken), first, &list[..pieces], out);
        }
    }
}

/// Rows `row..row + taken` of the panel that begins with unit `first`.
#[inline(always)]
fn tile(
    product: &Product<'_>,
    (row, taken): (usize, usize),
    first: usize,
    pieces: &[[&[f32]; TILE]],
    out: &mut [f32],
) {
    let lanes = (product.units.count() - first).min(LANES);
    let mut sums = [[0f32; LANES]; TILE];
    for (index, sums) in sums[..taken].iter_mut().enumerate() {
        sums[..lanes].copy_from_slice(&product.start(row + index, first, out)[..lanes]);
    }
    let mut weights = product.units.panel(first / LANES).iter();
    for piece in pieces {
        for (position, Weights(weights)) in (0..piece[0].len()).zip(weights.by_ref()) {
            for (sums, values) in sums.iter_mut().zip(piece) {
                let value = values[position];
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum += value * weight;
                }
            }
        }
    }
    for (index, sums) in sums[..taken].iter().enumerate() {
        let out = &mut out[(row + index) * product.out_step..][first..first + lanes];
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = held(*sum, product.range);
        }
    }
}

/// Holds every value between two bounds; NaN stays NaN.
#[inline(always)]
pub(crate) fn clamp(values: &mut [f32], low: f32, high: f32) {
    for value in values {
        *value = held(*value, (low, high));
    }
}
