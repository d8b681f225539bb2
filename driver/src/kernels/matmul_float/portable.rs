//! Products of rows of floats with weights in panels of [`LANES`] units, each sum held in the range
//! of an activation before it leaves the registers.

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::float_rows::{FloatRows, MAX_SEGMENTS, Segments};
pub(crate) use crate::kernels::panels::LANES;
use crate::kernels::panels::Panels;
use crate::kernels::simd;

/// The weights of the units of a panel at one position of the depth.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Weights(pub(crate) [f32; LANES]);

/// Weights in panels: for each panel and each position of the depth one weight per unit. Units that
/// fill up the last panel have weights of 0.
#[derive(Debug, Clone)]
pub struct FloatPanels(Panels<Weights, 1>);

impl FloatPanels {
    /// Packs weights `[units, depth]`.
    ///
    /// # Errors
    /// [`OpError::Internal`] when there are not that many, or one of the sizes is 0.
    pub fn new(weights: &[f32], units: usize, depth: usize) -> Result<Self, OpError> {
        if units == 0 || depth == 0 || Some(weights.len()) != units.checked_mul(depth) {
            return Err(wrong_size());
        }
        let block = |block: [[f32; 1]; LANES]| Weights(block.map(|[weight]| weight));
        Ok(FloatPanels(Panels::pack(weights, units, depth, block)))
    }

    /// Number of units.
    #[must_use]
    pub fn units(&self) -> usize {
        self.0.units()
    }

    /// Length of a row.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.depth()
    }

    /// The weights of a panel in the order of the depth.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize) -> &[Weights] {
        self.0.panel(panel)
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

fn wrong_size() -> OpError {
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
    /// The weights.
    pub(crate) panels: &'a FloatPanels,
    /// The rows.
    pub(crate) rows: FloatRows<'a>,
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
    /// Computes the product. Values of `out` between the rows stay.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub(crate) fn run(&self, isa: Isa, out: &mut [f32]) -> Result<(), OpError> {
        let units = self.panels.units();
        let count = self.rows.count();
        if count == 0 {
            return Ok(());
        }
        let bias_fits = match self.start {
            Start::Bias(bias) => bias.len() == units,
            Start::Output => true,
        };
        let fits = self.rows.depth() == self.panels.depth()
            && bias_fits
            && self.out_step >= units
            && out.len() >= (count - 1) * self.out_step + units;
        if !fits {
            return Err(wrong_size());
        }
        simd::multiply_panels(isa, self, out);
        Ok(())
    }

    /// What the sums of row `row` begin with, for units from `first` on.
    #[inline(always)]
    pub(crate) fn start<'s>(&'s self, row: usize, first: usize, out: &'s [f32]) -> &'s [f32] {
        match self.start {
            Start::Bias(bias) => &bias[first..],
            Start::Output => &out[row * self.out_step..][first..self.panels.units()],
        }
    }
}

/// Rows that the portable kernel takes at a time.
const TILE: usize = 4;

/// The product without instructions of its own.
#[inline(always)]
pub(crate) fn multiply(product: &Product<'_>, out: &mut [f32]) {
    let count = product.rows.count();
    for first in (0..product.panels.units()).step_by(LANES) {
        let mut cursor = product.rows.start();
        let mut list: Segments<'_, TILE> = [[&[]; TILE]; MAX_SEGMENTS];
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
    let lanes = (product.panels.units() - first).min(LANES);
    let mut sums = [[0f32; LANES]; TILE];
    for (index, sums) in sums[..taken].iter_mut().enumerate() {
        sums[..lanes].copy_from_slice(&product.start(row + index, first, out)[..lanes]);
    }
    let mut weights = product.panels.panel(first / LANES).iter();
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
    let (low, high) = product.range;
    for (index, sums) in sums[..taken].iter().enumerate() {
        let out = &mut out[(row + index) * product.out_step..][first..first + lanes];
        for (out, sum) in out.iter_mut().zip(sums) {
            let sum = if *sum < low { low } else { *sum };
            *out = if sum > high { high } else { sum };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Isa;

    /// Small whole numbers, whose sums of products are exact in any order.
    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        #[allow(clippy::cast_precision_loss, reason = "numbers below 13")]
        (0..count).map(|index| ((index * 7 + seed * 5) % 13) as f32 - 6.0).collect()
    }

    fn plain(
        rows: &[f32],
        weights: &[f32],
        depth: usize,
        start: impl Fn(usize) -> f32,
    ) -> Vec<f32> {
        let mut out = Vec::new();
        for row in rows.chunks_exact(depth) {
            for unit in weights.chunks_exact(depth) {
                let sum: f32 = row.iter().zip(unit).map(|(a, b)| a * b).sum();
                out.push(start(out.len()) + sum);
            }
        }
        out
    }

    const ISAS: [fn() -> Isa; 3] =
        [Isa::detect, || Isa { avx512: false, vnni: false, ..Isa::detect() }, || Isa::PORTABLE];

    #[test]
    fn products_of_every_shape_are_exact() {
        for (count, units, depth) in [
            (1, 1, 1),
            (1, 300, 7),
            (2, 17, 3),
            (5, 16, 40),
            (7, 33, 5),
            (11, 48, 9),
            (25, 64, 12),
            (31, 65, 2),
            (13, 150, 21),
        ] {
            let (rows, weights) = (numbers(count * depth, 1), numbers(units * depth, 2));
            let bias = numbers(units, 3);
            let panels = FloatPanels::new(&weights, units, depth).unwrap();
            let want = plain(&rows, &weights, depth, |index| bias[index % units]);
            for isa in ISAS {
                let mut product = Product {
                    panels: &panels,
                    rows: FloatRows::Matrix { values: &rows, depth },
                    start: Start::Bias(&bias),
                    range: EVERYTHING,
                    out_step: units,
                };
                let mut out = vec![f32::NAN; count * units];
                product.run(isa(), &mut out).unwrap();
                assert_eq!(out, want, "{count} x {units} x {depth}");

                // Once more on top of it, rows further apart, within bounds.
                (product.start, product.range) = (Start::Output, (-9.0, 40.0));
                product.out_step = units + 3;
                let mut wide = vec![5.0; count * (units + 3)];
                product.run(isa(), &mut wide).unwrap();
                let want = plain(&rows, &weights, depth, |_| 5.0);
                for (wide, want) in wide.chunks_exact(units + 3).zip(want.chunks_exact(units)) {
                    let want: Vec<f32> = want.iter().map(|x| x.clamp(-9.0, 40.0)).collect();
                    assert_eq!(wide[..units], want, "{count} x {units} x {depth}");
                    assert_eq!(wide[units..], [5.0; 3], "values between rows");
                }
            }
        }
    }

    #[test]
    fn a_range_keeps_what_is_no_number() {
        let panels = FloatPanels::new(&[1.0; 3], 3, 1).unwrap();
        for isa in ISAS {
            let mut out = [0.0; 3];
            let product = Product {
                panels: &panels,
                rows: FloatRows::Matrix { values: &[0.0], depth: 1 },
                start: Start::Bias(&[f32::NAN, f32::INFINITY, -1.0]),
                range: (0.0, 6.0),
                out_step: 3,
            };
            product.run(isa(), &mut out).unwrap();
            assert!(out[0].is_nan() && out[1..] == [6.0, 0.0], "{out:?}");
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        assert!(FloatPanels::new(&[1.0; 5], 2, 3).is_err());
        assert!(FloatPanels::new(&[], 0, 3).is_err());
        let panels = FloatPanels::new(&[1.0; 6], 2, 3).unwrap();
        let run = |depth, bias: &[f32], out_step, out: usize| {
            let rows = FloatRows::Matrix { values: &[1.0; 6], depth };
            let start = Start::Bias(bias);
            let product = Product { panels: &panels, rows, start, range: EVERYTHING, out_step };
            product.run(Isa::detect(), &mut vec![0.0; out]).is_ok()
        };
        assert!(run(3, &[0.0; 2], 2, 4));
        assert!(!run(2, &[0.0; 2], 2, 6));
        assert!(!run(3, &[0.0; 3], 2, 4));
        assert!(!run(3, &[0.0; 2], 1, 4));
        assert!(!run(3, &[0.0; 2], 3, 4));
    }
}
