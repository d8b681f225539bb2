//! What the three RNN operations share: the operands of a plain cell, and a pass through time.

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::rnn::{self, Activation, Rnn};
use crate::op::Stop;
use crate::ops::recurrent::operands::{Floats, Shapes, expect, sizes};
use crate::ops::recurrent::sequence::{Direction, Sequence, vector, vector_mut};

/// Where the operands of a cell stand in the list of inputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellOperands {
    pub(super) weights: usize,
    pub(super) recurrent: usize,
    pub(super) bias: usize,
    pub(super) hidden: usize,
}

impl CellOperands {
    /// Weights, recurrent weights, bias and hidden state one after the other.
    pub(super) const fn from(first: usize) -> Self {
        CellOperands { weights: first, recurrent: first + 1, bias: first + 2, hidden: first + 3 }
    }

    /// Checks the shapes for vectors of `inputs` values; gives the number of units.
    pub(super) fn check(
        self,
        shapes: &(impl Shapes + ?Sized),
        batches: u32,
        inputs: u32,
    ) -> Result<u32, OpError> {
        let [units, _] = sizes(shapes, self.weights)?;
        expect(shapes, self.weights, &[units, inputs])?;
        expect(shapes, self.recurrent, &[units, units])?;
        expect(shapes, self.bias, &[units])?;
        expect(shapes, self.hidden, &[batches, units])?;
        Ok(units)
    }

    /// The cell over these values.
    pub(super) fn cell<'a>(
        self,
        floats: &Floats<'a>,
        aux_weights: Option<&'a [f32]>,
        activation: Activation,
    ) -> Result<Rnn<'a>, OpError> {
        Ok(Rnn {
            weights: floats.required(self.weights)?,
            aux_weights,
            recurrent: floats.required(self.recurrent)?,
            bias: floats.required(self.bias)?,
            activation,
        })
    }
}

/// A cell going through a sequence.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub(super) cell: Rnn<'a>,
    pub(super) sequence: Sequence,
    pub(super) direction: Direction,
    pub(super) input: &'a [f32],
    pub(super) aux: Option<&'a [f32]>,
    pub(super) stop: Stop<'a>,
    /// What its steps may be computed with.
    pub(super) isa: Isa,
}

impl Pass<'_> {
    /// Floats of working memory that a pass with this much hidden state takes.
    pub(super) fn work(batches: u32, units: u32) -> usize {
        (batches as usize + 1) * units as usize
    }

    /// Starts `hidden` off from the values in `start`, steps through time, and gives every output
    /// with its row to `emit`. Returns the last hidden state, which lies in `work`.
    pub(super) fn run<'w>(
        &self,
        start: &[f32],
        work: &'w mut [f32],
        mut emit: impl FnMut(usize, &[f32]) -> Result<(), OpError>,
    ) -> Result<&'w [f32], OpError> {
        let units = self.cell.bias.len();
        let rows = self.sequence.times * self.sequence.batches;
        let (inputs, aux_inputs) = (self.input.len() / rows, self.aux.map(|aux| aux.len() / rows));
        let (hidden, next) = work.split_at_mut(start.len());
        hidden.copy_from_slice(start);
        self.sequence.walk(self.direction, |row, batch| {
            self.stop.check()?;
            let x = vector(self.input, row, inputs)?;
            let aux = self.aux.zip(aux_inputs).map(|(aux, size)| vector(aux, row, size));
            let state = vector_mut(hidden, batch, units)?;
            rnn::step(self.isa, &self.cell, x, aux.transpose()?, state, &mut next[..units]);
            emit(row, state)
        })?;
        Ok(hidden)
    }
}
