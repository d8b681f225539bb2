//! CONV_2D and FULLY_CONNECTED of 32-bit floats as products of matrices, see
//! [`matrix`](super::matrix): with kernels of our own that read pixels where they lie, or by the
//! matrix library from rows gathered into scratch memory.

use burst_hal::Dimensions;

use crate::OpError;
use crate::budget::Budget;
use crate::kept::{KeptValue, What};
use crate::kernels::conv::{Conv, Source, fill_rows};
use crate::kernels::matmul_float::FloatMatrix;
use crate::kernels::matmul_float::{
    EVERYTHING, FloatPanels, FloatRows, ONE_ROW_UNITS, Product, Start,
};
use crate::kernels::{Isa, add_float, matmul_float};
use crate::op::{FloatSum, Kernel, PrepareContext, Run};
use crate::ops::conv::row_tiles::{
    PACKED_INPUTS, Rows, SHARE_ROWS, SHARED_STEP, TILE_BYTES, one_row_tiling, sizes_differ,
    tile_rows,
};
use crate::scratch::Scratch;
use crate::tensor::TensorRef;
use crate::threads::{Tiling, speed};

/// A layer of floats with its weights packed.
#[derive(Debug)]
pub(super) struct FloatProduct {
    rows: Rows,
    weights: Weights,
    bias: Vec<f32>,
    range: (f32, f32),
    /// An ADD that it computes, too: of its results and its last input.
    sum: Option<FloatSum>,
    isa: Isa,
}

#[derive(Debug)]
enum Weights {
    /// For kernels of our own.
    Panels(FloatPanels),
    /// For the library, which has kernels for more instruction sets.
    Library(FloatMatrix),
}

/// Whether no weight is infinite or not a number. A look at each that may end the loop is no vector code, so whole
/// parts are looked at.
fn are_finite(weights: &[f32]) -> bool {
    const PART: usize = 1024;
    let all_are = |part: &[f32]| part.iter().fold(true, |all, one| all & one.is_finite());
    weights.chunks(PART).all(all_are)
}

impl FloatProduct {
    /// Packs filter and bias of `units` outputs with `depth` weights each; `None` for pictures where a weight is
    /// infinite or not a number.
    ///
    /// Rows of pictures are gathered with zeros around them. Taps there do not count, but a product with such
    /// a weight would.
    pub(super) fn new(
        rows: Rows,
        filter: TensorRef<'_>,
        bias: TensorRef<'_>,
        (units, depth): (usize, usize),
        range: (f32, f32),
        context: &PrepareContext<'_>,
    ) -> Result<Option<Self>, OpError> {
        let PrepareContext { isa, budget, .. } = *context;
        if let Some(values) = budget.kept().take(What::Packed) {
            let (weights, bias) = restored(&values, (units, depth), budget)?;
            let weights = Weights::Panels(weights);
            return Ok(Some(FloatProduct { rows, weights, bias, range, sum: None, isa }));
        }
        let bias = bias.f32()?;
        budget.charge(size_of_val(bias))?;
        let filter = filter.f32()?;
        if Some(filter.len()) != units.checked_mul(depth) {
            return Err(sizes_differ());
        }
        let has_to_be_finite = matches!(rows, Rows::Images(_));
        let weights = if matmul_float::has_panels(isa) {
            let mut is_finite = true;
            // A row is looked at when it is about to be packed, so that it comes from memory once.
            let row = |unit: usize| {
                let row = &filter[unit * depth..][..depth];
                is_finite &= !has_to_be_finite || are_finite(row);
                row
            };
            let panels = FloatPanels::of_rows(isa, row, (units, depth), budget)?;
            if !is_finite {
                return Ok(None);
            }
            if budget.kept().is_recording() {
                let values = [panels.bytes(), bytemuck::cast_slice(bias)];
                let copies = values.map(|bytes| Ok((Dimensions::new(), budget.copy_of(bytes)?)));
                budget.kept().record(What::Packed, &PACKED_INPUTS, copies.into_iter())?;
            }
            Weights::Panels(panels)
        } else {
            if has_to_be_finite && !are_finite(filter) {
                return Ok(None);
            }
            Weights::Library(FloatMatrix::new(filter, units, depth, budget)?)
        };
        Ok(Some(FloatProduct { rows, weights, bias: bias.to_vec(), range, sum: None, isa }))
    }

    /// How the rows are cut.
    fn tiling(&self, conv: &Conv, threads: usize) -> Tiling {
        let (depth, units, rows) = (conv.depth(), conv.filter.outputs, conv.output.pixels());
        let values = match self.weights {
            Weights::Panels(_) => conv.input.channels + units,
            Weights::Library(_) => depth + units,
        };
        // Every tile reads all weights: where they do not stay in a core's own cache, there is only
        // one for each thread.
        let is_large = size_of::<f32>() * conv.filter.values() > TILE_BYTES;
        Tiling {
            row_len: units,
            step: SHARED_STEP,
            share_step: Some(SHARE_ROWS),
            least: if is_large { rows.div_ceil(threads) } else { SHARED_STEP },
            most: tile_rows(size_of::<f32>() * values),
            nanos: speed::nanos(&[rows, depth, units], speed::FLOAT_PRODUCTS),
        }
    }

    /// Adds what is to be added to results from `first` on, of which all results' are these. They were just computed, so
    /// they are near.
    fn add(&self, all: &[f32], first: usize, out: &mut [f32]) {
        if let Some(FloatSum { range }) = self.sum {
            add_float::add_to(self.isa, out, &all[first..][..out.len()], range);
        }
    }

    /// Rows from `first` on, as many as `out` has room for.
    fn part(
        &self,
        conv: &Conv,
        (input, addends): (&[f32], &[f32]),
        first: usize,
        scratch: &mut Scratch,
        out: &mut [f32],
    ) -> Result<(), OpError> {
        let (depth, units) = (conv.depth(), conv.filter.outputs);
        let count = out.len() / units;
        match &self.weights {
            Weights::Panels(panels) => {
                let (values, range) = (Source::whole(input, 0.0), (first, count));
                let rows = FloatRows::of_conv(conv, values, 1, range, |len| scratch.f32(len))?;
                let (start, range) = (Start::Bias(&self.bias), self.range);
                Product { units: panels.all(), rows, start, range, out_step: units }
                    .run(self.isa, out)?;
                self.add(addends, first * units, out);
                Ok(())
            }
            Weights::Library(matrix) => {
                let rows = if conv.is_pointwise() {
                    &input[first * depth..][..count * depth]
                } else {
                    let rows = scratch.f32(count * depth)?;
                    fill_rows(conv, Source::whole(input, 0.0), first, rows);
                    rows
                };
                matrix.multiply(rows, &self.bias, out)?;
                if self.range != EVERYTHING {
                    let (low, high) = self.range;
                    matmul_float::clamp(self.isa, out, low, high);
                }
                Ok(())
            }
        }
    }
}

/// What an earlier preparation has kept of `units` outputs with `depth` weights each.
fn restored(
    values: &[KeptValue],
    (units, depth): (usize, usize),
    budget: &Budget<'_>,
) -> Result<(FloatPanels, Vec<f32>), OpError> {
    let other = || OpError::Internal { what: "what was kept of a matrix" };
    let [weights, bias] = values else { return Err(other()) };
    let bias: &[f32] = bytemuck::try_cast_slice(bias.bytes()).map_err(|_| other())?;
    if bias.len() != units {
        return Err(other());
    }
    budget.charge(size_of_val(bias))?;
    Ok((FloatPanels::kept(weights, units, depth)?, bias.to_vec()))
}

impl Kernel for FloatProduct {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?;
        let conv = self.rows.geometry(input.dims, run.input(1)?.dims)?;
        let input = input.f32()?;
        let out = run.outputs.first_mut().ok_or_else(sizes_differ)?.f32_mut()?;
        if !conv.fits(input.len(), conv.filter.values(), self.bias.len(), out.len()) {
            return Err(sizes_differ());
        }
        let addends = match (self.sum, run.inputs.last()) {
            (Some(_), Some(last)) => last.f32()?,
            _ => &[],
        };
        if self.sum.is_some() && addends.len() != out.len() {
            return Err(sizes_differ());
        }
        let Run { scratch, stop, parallelism, .. } = run;
        if let (1, Weights::Panels(panels)) = (conv.output.pixels(), &self.weights) {
            // Each thread reads weights of its own.
            let tiling = one_row_tiling(&conv, ONE_ROW_UNITS, size_of::<f32>());
            return parallelism.tiles(&tiling, out, scratch, *stop, |first, out, scratch| {
                let values = Source::whole(input, 0.0);
                let rows = FloatRows::of_conv(&conv, values, 1, (0, 1), |len| scratch.f32(len))?;
                let units = panels.part(first, out.len());
                let start = Start::Bias(&self.bias[first..][..out.len()]);
                let (range, out_step) = (self.range, out.len());
                Product { units, rows, start, range, out_step }.run(self.isa, out)?;
                self.add(addends, first, out);
                Ok(())
            });
        }
        let tiling = self.tiling(&conv, parallelism.threads());
        parallelism.tiles(&tiling, out, scratch, *stop, |first, out, scratch| {
            self.part(&conv, (input, addends), first, scratch, out)
        })
    }

    fn held_bytes(&self) -> usize {
        let weights = match &self.weights {
            Weights::Panels(panels) => panels.held_bytes(),
            Weights::Library(matrix) => matrix.held_bytes(),
        };
        weights + size_of_val(self.bias.as_slice())
    }

    fn name(&self) -> &'static str {
        match (&self.weights, self.sum) {
            (Weights::Panels(_), None) => "matrix f32, panels",
            (Weights::Panels(_), Some(_)) => "matrix f32, panels, ADD",
            (Weights::Library(_), _) => "matrix f32, library",
        }
    }

    fn take_over(&mut self, sum: FloatSum) -> bool {
        let takes = matches!(self.weights, Weights::Panels(_)) && self.sum.is_none();
        if takes {
            self.sum = Some(sum);
        }
        takes
    }
}
