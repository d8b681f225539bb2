//! Steps of a layer with packed weights: what the gates take from the inputs is computed for many time
//! steps in one product, what they take from the previous output for all gates at once.

use super::dispatch;
use super::packed::PackedLstm;
use crate::OpError;
use crate::kernels::matmul_float::{EVERYTHING, FloatPanels, FloatRows, Product, Start};
use crate::kernels::simd::Isa;

impl PackedLstm {
    /// What the gates take from the input vectors in `rows` and the auxiliary ones in `aux`: sums,
    /// `step` apart.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub(crate) fn take_inputs(
        &self,
        isa: Isa,
        rows: &[f32],
        aux: Option<&[f32]>,
        sums: &mut [f32],
        step: usize,
    ) -> Result<(), OpError> {
        let start = Start::Bias(&self.start);
        product(&self.input, rows, start, step).run(isa, sums)?;
        match (&self.aux, aux) {
            (Some(weights), Some(aux)) => product(weights, aux, Start::Output, step).run(isa, sums),
            _ => Ok(()),
        }
    }

    /// Takes sequences a step further: `sums` are what [`PackedLstm::take_inputs`] made of their
    /// inputs, `output` and `cell` their states, all of them one after the other.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub(crate) fn step(
        &self,
        isa: Isa,
        sums: &mut [f32],
        output: &mut [f32],
        cell: &mut [f32],
    ) -> Result<(), OpError> {
        let count = self.sums();
        product(&self.recurrent, output, Start::Output, count).run(isa, sums)?;
        let states = output.chunks_exact_mut(self.outputs()).zip(cell.chunks_exact_mut(self.units));
        for (sums, (output, cell)) in sums.chunks_exact_mut(count).zip(states) {
            dispatch::gates(isa, self, sums, cell);
            let hidden = &sums[count - 2 * self.units..count - self.units];
            match &self.projection {
                None => output.copy_from_slice(hidden),
                Some((weights, bias)) => {
                    let clip = self.projection_clip;
                    let range = if clip > 0.0 { (-clip, clip) } else { EVERYTHING };
                    let product = product(weights, hidden, Start::Bias(bias), self.outputs());
                    Product { range, ..product }.run(isa, output)?;
                }
            }
        }
        Ok(())
    }
}

fn product<'a>(
    panels: &'a FloatPanels,
    values: &'a [f32],
    start: Start<'a>,
    out_step: usize,
) -> Product<'a> {
    let units = panels.all();
    let rows = FloatRows::Matrix { values, depth: units.depth() };
    Product { units, rows, start, range: EVERYTHING, out_step }
}
