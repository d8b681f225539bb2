//! Steps of a layer with packed weights: what the gates take from the inputs is computed for many time
//! steps in one product, what they take from the previous output for all gates at once.

use super::dispatch;
use super::packed::PackedLstm;
use crate::OpError;
use crate::kernels::matmul_float::{
    EVERYTHING, FloatPanels, FloatRows, ONE_ROW_UNITS, Product, Start,
};
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
    /// inputs, `output` and `cell` their states, all of them one after the other. Which step it is changes no result.
    ///
    /// # Errors
    /// [`OpError::Internal`] when sizes do not fit.
    pub(crate) fn step(
        &self,
        isa: Isa,
        step: usize,
        sums: &mut [f32],
        output: &mut [f32],
        cell: &mut [f32],
    ) -> Result<(), OpError> {
        let count = self.sums();
        self.take_output(isa, step, sums, output)?;
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

impl PackedLstm {
    /// What the gates take from the previous output. Weights that are more than a core's own cache has room for would
    /// never be there when they are wanted, each step having put out the first ones with its last ones: so every
    /// other step of a single sequence begins at the end, with those that the step before read last.
    fn take_output(
        &self,
        isa: Isa,
        step: usize,
        sums: &mut [f32],
        output: &[f32],
    ) -> Result<(), OpError> {
        let count = self.sums();
        if step.is_multiple_of(2) || sums.len() > count {
            return product(&self.recurrent, output, Start::Output, count).run(isa, sums);
        }
        for first in (0..count).step_by(ONE_ROW_UNITS).rev() {
            let units = self.recurrent.part(first, ONE_ROW_UNITS.min(count - first));
            let sums = &mut sums[first..][..units.count()];
            let rows = FloatRows::Matrix { values: output, depth: units.depth() };
            let (start, out_step) = (Start::Output, units.count());
            Product { units, rows, start, range: EVERYTHING, out_step }.run(isa, sums)?;
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
