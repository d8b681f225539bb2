//! What the three LSTM operations share: the operands of a cell, the rules which of them go
//! together, and a pass through time.

use crate::OpError;
use crate::kernels::lstm::LayerSizes;
use crate::kernels::lstm::float::{Gate, Lstm, Projection, State};
use crate::kernels::rnn::Activation;
use crate::op::{Operands, Stop};
use crate::ops::attributes::recurrent_activation;
use crate::ops::recurrent::operands::{
    Floats, Known, Shapes, agree, clip, expect, expect_if_given, sizes, together,
};
use crate::ops::recurrent::sequence::{Direction, Sequence, vector, vector_mut};
use smallvec::SmallVec;

/// Gates in the order in which their operands are listed.
pub(super) const INPUT_GATE: usize = 0;
pub(super) const FORGET_GATE: usize = 1;
pub(super) const CELL_GATE: usize = 2;
pub(super) const OUTPUT_GATE: usize = 3;
const GATES: [usize; 4] = [INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE];

/// Where the operands of a cell stand in the list of inputs. Each names the first of its kind: the
/// input gate's.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellOperands {
    /// Input weights of four gates, then recurrent weights, the peephole weights of three gates,
    /// biases of four, projection weights and bias: 17 consecutive operands.
    pub(super) first: usize,
    /// The previous output; the cell state follows.
    pub(super) state: usize,
    /// Four auxiliary weights.
    pub(super) aux: Option<usize>,
    /// Four weights of layer normalisation.
    pub(super) layer_norm: usize,
}

/// The sizes of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellSizes {
    pub(super) units: u32,
    pub(super) outputs: u32,
    /// Whether input and forget gate are coupled; `None` while it is not known.
    pub(super) coupled: Option<bool>,
}

impl CellOperands {
    pub(super) fn input(self, gate: usize) -> usize {
        self.first + gate
    }

    pub(super) fn recurrent(self, gate: usize) -> usize {
        self.first + 4 + gate
    }

    /// The cell gate has none.
    pub(super) fn peephole(self, gate: usize) -> Option<usize> {
        match gate {
            INPUT_GATE => Some(self.first + 8),
            FORGET_GATE => Some(self.first + 9),
            OUTPUT_GATE => Some(self.first + 10),
            _ => None,
        }
    }

    pub(super) fn bias(self, gate: usize) -> usize {
        self.first + 11 + gate
    }

    pub(super) fn projection(self) -> usize {
        self.first + 15
    }

    pub(super) fn projection_bias(self) -> usize {
        self.first + 16
    }

    /// Operands that are constants in most models: weights and biases.
    pub(super) fn constants(self) -> SmallVec<[usize; 25]> {
        let four = |first: usize| first..first + 4;
        let aux = self.aux.map(four).unwrap_or_default();
        (self.first..self.first + 17).chain(aux).chain(four(self.layer_norm)).collect()
    }

    /// The matrices among them.
    pub(super) fn matrices(self) -> SmallVec<[usize; 16]> {
        let aux = self.aux.map(|aux| aux..aux + 4).unwrap_or_default();
        (self.first..self.first + 8).chain(aux).chain([self.projection()]).collect()
    }

    pub(super) fn output_state(self) -> usize {
        self.state
    }

    pub(super) fn cell_state(self) -> usize {
        self.state + 1
    }

    /// Size of the vectors that the input weights are for.
    pub(super) fn weights_inputs(self, shapes: &(impl Shapes + ?Sized)) -> Result<u32, OpError> {
        sizes::<2>(shapes, self.input(OUTPUT_GATE)).map(|[_, inputs]| inputs)
    }

    /// Whether auxiliary weights are there.
    pub(super) fn has_aux(self, shapes: &(impl Shapes + ?Sized)) -> Result<Option<bool>, OpError> {
        let Some(aux) = self.aux else { return Ok(Some(false)) };
        let given = together(shapes, &[aux + FORGET_GATE, aux + CELL_GATE, aux + OUTPUT_GATE])?;
        self.check_input_gate(shapes, aux, given)?;
        Ok(given)
    }

    /// Checks presence and shapes for vectors of `inputs` values and, where auxiliary weights are
    /// there, `aux_inputs` values.
    pub(super) fn check(
        self,
        shapes: &(impl Shapes + ?Sized),
        batches: u32,
        inputs: u32,
        aux_inputs: Option<u32>,
    ) -> Result<CellSizes, OpError> {
        let [units, _] = sizes(shapes, self.input(OUTPUT_GATE))?;
        let [_, outputs] = sizes(shapes, self.recurrent(OUTPUT_GATE))?;
        self.check_presence(shapes)?;
        for gate in [FORGET_GATE, CELL_GATE, OUTPUT_GATE] {
            expect(shapes, self.input(gate), &[units, inputs])?;
            expect(shapes, self.recurrent(gate), &[units, outputs])?;
            expect(shapes, self.bias(gate), &[units])?;
        }
        expect_if_given(shapes, self.input(INPUT_GATE), &[units, inputs])?;
        expect_if_given(shapes, self.recurrent(INPUT_GATE), &[units, outputs])?;
        expect_if_given(shapes, self.bias(INPUT_GATE), &[units])?;
        for gate in GATES {
            if let Some(peephole) = self.peephole(gate) {
                expect_if_given(shapes, peephole, &[units])?;
            }
            expect_if_given(shapes, self.layer_norm + gate, &[units])?;
            if let (Some(aux), Some(aux_inputs)) = (self.aux, aux_inputs) {
                expect_if_given(shapes, aux + gate, &[units, aux_inputs])?;
            }
        }
        if shapes.optional(self.projection()) == Known::Omitted && outputs != units {
            return Err(OpError::shape(
                "units and outputs without projection",
                &[units],
                &[outputs],
            ));
        }
        expect_if_given(shapes, self.projection(), &[outputs, units])?;
        expect_if_given(shapes, self.projection_bias(), &[outputs])?;
        expect(shapes, self.output_state(), &[batches, outputs])?;
        expect(shapes, self.cell_state(), &[batches, units])?;
        Ok(CellSizes { units, outputs, coupled: self.coupled(shapes)? })
    }

    /// Coupled gates: everything of the input gate is left out.
    pub(super) fn coupled(self, shapes: &(impl Shapes + ?Sized)) -> Result<Option<bool>, OpError> {
        let own = [self.input(INPUT_GATE), self.recurrent(INPUT_GATE), self.bias(INPUT_GATE)];
        Ok(together(shapes, &own)?.map(|given| !given))
    }

    /// What must be there together, or left out together.
    fn check_presence(self, shapes: &(impl Shapes + ?Sized)) -> Result<(), OpError> {
        let coupled = self.coupled(shapes)?;
        let own = coupled.map(|coupled| !coupled);
        // With coupled gates the input gate's peephole is never looked at, but may be there.
        let input_peephole = self.first + 8;
        let peephole = together(shapes, &[input_peephole + 1, input_peephole + 2])?;
        let given = together(shapes, &[input_peephole])?;
        match (own, peephole) {
            (Some(true), peephole) => agree(given, peephole, input_peephole)?,
            (_, Some(false)) => agree(given, Some(false), input_peephole)?,
            _ => {}
        }
        let norm = self.layer_norm;
        let normalised = [norm + FORGET_GATE, norm + CELL_GATE, norm + OUTPUT_GATE];
        self.check_input_gate(shapes, norm, together(shapes, &normalised)?)?;
        let projected = together(shapes, &[self.projection()])?;
        match (together(shapes, &[self.projection_bias()])?, projected) {
            (Some(true), Some(false)) => Err(OpError::Omitted { index: self.projection() }),
            _ => Ok(()),
        }
    }

    /// Weights of the input gate: there when the other gates' are and the gate is.
    fn check_input_gate(
        self,
        shapes: &(impl Shapes + ?Sized),
        weights: usize,
        others: Option<bool>,
    ) -> Result<(), OpError> {
        let own = self.coupled(shapes)?.map(|coupled| !coupled);
        let want = match (others, own) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        agree(together(shapes, &[weights])?, want, weights)
    }

    /// What goes in and comes out, by the shapes of the weights.
    pub(super) fn layer_sizes(
        self,
        shapes: &(impl Shapes + ?Sized),
    ) -> Result<LayerSizes, OpError> {
        let depth = |matrix| sizes::<2>(shapes, matrix).map(|[_, depth]| depth as usize);
        let has_aux = self.has_aux(shapes)? == Some(true);
        let aux = self.aux.filter(|_| has_aux).map(|aux| depth(aux + OUTPUT_GATE));
        Ok(LayerSizes {
            inputs: depth(self.input(OUTPUT_GATE))?,
            aux_inputs: aux.transpose()?,
            outputs: depth(self.recurrent(OUTPUT_GATE))?,
        })
    }

    fn gate<'a>(self, floats: &Floats<'a>, gate: usize) -> Result<Gate<'a>, OpError> {
        Ok(Gate {
            input: floats.required(self.input(gate))?,
            aux: self.aux.and_then(|aux| floats.optional(aux + gate)),
            recurrent: floats.required(self.recurrent(gate))?,
            peephole: self.peephole(gate).and_then(|peephole| floats.optional(peephole)),
            layer_norm: floats.optional(self.layer_norm + gate),
            bias: floats.required(self.bias(gate))?,
        })
    }

    /// The cell over these values.
    pub(super) fn cell<'a>(self, floats: &Floats<'a>, tuning: Tuning) -> Result<Lstm<'a>, OpError> {
        let coupled = floats.optional(self.input(INPUT_GATE)).is_none();
        let projection = floats
            .optional(self.projection())
            .map(|weights| Projection { weights, bias: floats.optional(self.projection_bias()) });
        Ok(Lstm {
            input_gate: if coupled { None } else { Some(self.gate(floats, INPUT_GATE)?) },
            forget_gate: self.gate(floats, FORGET_GATE)?,
            cell_gate: self.gate(floats, CELL_GATE)?,
            output_gate: self.gate(floats, OUTPUT_GATE)?,
            projection,
            activation: tuning.activation,
            cell_clip: tuning.cell_clip,
            projection_clip: tuning.projection_clip,
        })
    }
}

/// The scalars of a cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuning {
    activation: Activation,
    cell_clip: f32,
    projection_clip: f32,
}

impl Tuning {
    /// Parses activation and both clips, which stand one after the other from input `first` on.
    pub(super) fn parse(operands: &dyn Operands, first: usize) -> Result<Self, OpError> {
        Ok(Tuning {
            activation: recurrent_activation(operands, first)?,
            cell_clip: clip(operands, first + 1)?,
            projection_clip: clip(operands, first + 2)?,
        })
    }
}

/// A layer going through a sequence.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub(super) cell: Lstm<'a>,
    pub(super) sequence: Sequence,
    pub(super) direction: Direction,
    pub(super) input: &'a [f32],
    pub(super) aux: Option<&'a [f32]>,
    pub(super) stop: Stop<'a>,
}

/// The states after a pass.
#[derive(Debug)]
pub(super) struct LastStates<'w> {
    pub(super) output: &'w [f32],
    pub(super) cell: &'w [f32],
}

impl Pass<'_> {
    /// Floats of working memory that a pass of a layer of this size takes.
    pub(super) fn work(batches: u32, sizes: CellSizes) -> usize {
        let (batches, units, outputs) =
            (batches as usize, sizes.units as usize, sizes.outputs as usize);
        batches * (outputs + units) + Lstm::work(units)
    }

    /// Starts off from the states at `operands`, steps through time, and gives every output with
    /// its row to `emit`. The states returned lie in `work`.
    pub(super) fn run<'w>(
        &self,
        operands: CellOperands,
        floats: &Floats<'_>,
        work: &'w mut [f32],
        mut emit: impl FnMut(usize, &[f32]) -> Result<(), OpError>,
    ) -> Result<LastStates<'w>, OpError> {
        let batches = self.sequence.batches;
        let rows = self.sequence.times * batches;
        let (inputs, aux_inputs) = (self.input.len() / rows, self.aux.map(|aux| aux.len() / rows));
        let start =
            (floats.required(operands.output_state())?, floats.required(operands.cell_state())?);
        let (outputs, units) = (start.0.len() / batches, start.1.len() / batches);
        let (output, work) = work.split_at_mut(start.0.len());
        let (cell, work) = work.split_at_mut(start.1.len());
        output.copy_from_slice(start.0);
        cell.copy_from_slice(start.1);
        self.sequence.walk(self.direction, |row, batch| {
            self.stop.check()?;
            let x = vector(self.input, row, inputs)?;
            let aux = self.aux.zip(aux_inputs).map(|(aux, size)| vector(aux, row, size));
            let output = vector_mut(output, batch, outputs)?;
            let state = State { output, cell: vector_mut(cell, batch, units)? };
            self.cell.step(x, aux.transpose()?, state, work);
            emit(row, vector(output, 0, outputs)?)
        })?;
        Ok(LastStates { output, cell })
    }
}
