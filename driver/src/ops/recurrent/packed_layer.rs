//! An LSTM layer with constant weights, packed at prepare time, going through a sequence.

use burst_hal::Dimensions;
use smallvec::SmallVec;

use crate::OpError;
use crate::kept::What;
use crate::kernels::Isa;
use crate::kernels::lstm::PackedLstm;
use crate::op::{Kernel, PrepareContext, Prepared, Run, Stop};
use crate::ops::recurrent::lstm_pass::{CellOperands, LastStates, Tuning};
use crate::ops::recurrent::operands::{Floats, expect};
use crate::ops::recurrent::sequence::{Direction, Sequence, vector};
use crate::scratch::Scratch;
use crate::tensor::{Args, TensorRef, Value};

/// Numbers that the gates sum up to before the steps are taken that need them: a part of the
/// second-level cache, which also holds the weights that every step reads.
const MAX_SUMS: usize = 1 << 16;

/// A layer and where its operands stand.
#[derive(Debug)]
pub(super) struct PackedLayer {
    lstm: PackedLstm,
    operands: CellOperands,
    isa: Isa,
}

/// What a layer is fed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fed<'a> {
    pub(super) sequence: Sequence,
    pub(super) direction: Direction,
    pub(super) input: &'a [f32],
    pub(super) aux: Option<&'a [f32]>,
    /// Output state and cell state to start from.
    pub(super) states: [&'a [f32]; 2],
    pub(super) stop: Stop<'a>,
}

/// What an operation of one layer does with it: checks, steps through the sequence, stores states.
/// The flag says whether time is the outermost dimension of the sequence.
pub(super) type RunLayer = fn(&PackedLayer, bool, &mut Run<'_, '_>) -> Result<(), OpError>;

/// The kernel of an operation of one layer that goes forward.
#[derive(Debug)]
struct PackedForward {
    layer: PackedLayer,
    time_major: bool,
    run: RunLayer,
    scratch_floats: usize,
}

impl Kernel for PackedForward {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        (self.run)(&self.layer, self.time_major, run)
    }

    fn held_bytes(&self) -> usize {
        self.layer.held_bytes()
    }

    fn scratch_floats(&self) -> usize {
        self.scratch_floats
    }

    fn name(&self) -> &'static str {
        "cells with packed weights"
    }
}

impl PackedLayer {
    /// The kernel of an operation of this one layer, which goes through this sequence.
    ///
    /// # Errors
    /// As [`PackedLayer::keep`].
    pub(super) fn into_kernel(
        self,
        args: &Args<'_>,
        sequence: Sequence,
        run: RunLayer,
        context: &PrepareContext<'_>,
    ) -> Result<Prepared, OpError> {
        self.keep(context)?;
        let packed_inputs = self.packed_inputs(args);
        let (time_major, scratch_floats) = (sequence.time_major, self.work(sequence));
        let kernel = Box::new(PackedForward { layer: self, time_major, run, scratch_floats });
        Ok(Prepared { kernel, packed_inputs })
    }

    /// What a step of an operation of this one layer reads: the vectors at operand `input`, output
    /// state and cell state.
    pub(super) fn given<'t>(
        &self,
        run: &Run<'_, 't>,
        input: usize,
    ) -> Result<[TensorRef<'t>; 3], OpError> {
        let [output, cell] = [self.operands.output_state(), self.operands.cell_state()];
        Ok([run.input(input)?, run.input(output)?, run.input(cell)?])
    }

    /// Steps forward through the sequence of vectors that is [given](PackedLayer::given), from the
    /// states there; as [`PackedLayer::run`].
    pub(super) fn run_forward<'w>(
        &self,
        given: &'w [TensorRef<'w>; 3],
        (scratch, stop): (&'w mut Scratch, Stop<'_>),
        sequence: Sequence,
        emit: impl FnMut(usize, &[f32]) -> Result<(), OpError>,
    ) -> Result<LastStates<'w>, OpError> {
        let (floats, work) = Floats::new(given, scratch, self.work(sequence))?;
        let fed = Fed {
            sequence,
            direction: Direction::Forward,
            input: floats.required(0)?,
            aux: None,
            states: [floats.required(1)?, floats.required(2)?],
            stop,
        };
        self.run(&fed, work, emit)
    }

    /// Packs the weights.
    ///
    /// # Errors
    /// [`OpError::NotYet`] when one of them is not a constant; what the budget says.
    pub(super) fn new(
        args: &Args<'_>,
        operands: CellOperands,
        tuning: Tuning,
        context: &PrepareContext<'_>,
    ) -> Result<Self, OpError> {
        // Only the operands of this cell: others may be constants that nothing here needs.
        let wanted = operands.constants();
        let constants: Vec<TensorRef<'_>> = args
            .inputs
            .iter()
            .enumerate()
            .map(|(index, arg)| {
                let bytes = match arg.value {
                    _ if !wanted.contains(&index) => None,
                    Value::Unknown => return Err(OpError::NotYet),
                    Value::Omitted => None,
                    Value::Bytes(bytes) => Some(bytes),
                };
                Ok(TensorRef { info: arg.info, dims: arg.dims.unwrap_or_default(), bytes })
            })
            .collect::<Result<_, OpError>>()?;
        let PrepareContext { isa, budget, .. } = *context;
        let mut scratch = Scratch::paid_by(budget.same_account());
        let (floats, _) = Floats::new(&constants, &mut scratch, 0)?;
        let cell = operands.cell(&floats, tuning)?;
        let lstm = match budget.kept().take(What::Packed) {
            None => PackedLstm::new(isa, &cell, budget)?,
            Some(matrices) => {
                PackedLstm::restored(&cell, operands.layer_sizes(args)?, &matrices, budget)?
            }
        };
        Ok(PackedLayer { lstm, operands, isa })
    }

    /// Keeps the packed matrices, where the compilation is to be kept. Only once it is sure that the layer
    /// is going to be used: where it is not, its operands are.
    ///
    /// # Errors
    /// What the budget says.
    pub(super) fn keep(&self, context: &PrepareContext<'_>) -> Result<(), OpError> {
        let budget = context.budget;
        let copies =
            self.lstm.matrices().map(|bytes| Ok((Dimensions::new(), budget.copy_of(bytes)?)));
        budget.kept().record(What::Packed, &self.operands.matrices(), copies)
    }

    /// Operands whose plain bytes are not needed any more.
    pub(super) fn packed_inputs(&self, args: &Args<'_>) -> SmallVec<[usize; 4]> {
        self.operands.constants().into_iter().filter(|index| args.has(*index)).collect()
    }

    /// Number of units.
    pub(super) fn units(&self) -> usize {
        self.lstm.units()
    }

    /// Number of outputs.
    pub(super) fn outputs(&self) -> usize {
        self.lstm.outputs()
    }

    /// Bytes held.
    pub(super) fn held_bytes(&self) -> usize {
        self.lstm.held_bytes()
    }

    /// Checks the shapes of the states, and the size of the vectors that go in.
    pub(super) fn check(
        &self,
        shapes: &[TensorRef<'_>],
        batches: u32,
        inputs: u32,
    ) -> Result<(), OpError> {
        let size = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        if inputs != size(self.lstm.inputs()) {
            let (got, want) = ([inputs], [size(self.lstm.inputs())]);
            return Err(OpError::shape("input vectors of a recurrent layer", &got, &want));
        }
        let operands = self.operands;
        expect(shapes, operands.output_state(), &[batches, size(self.outputs())])?;
        expect(shapes, operands.cell_state(), &[batches, size(self.units())])
    }

    /// Time steps whose sums are computed together.
    fn steps_at_once(&self, sequence: Sequence) -> usize {
        (MAX_SUMS / (self.lstm.sums() * sequence.batches).max(1)).clamp(1, sequence.times.max(1))
    }

    /// Floats of working memory that a pass takes.
    pub(super) fn work(&self, sequence: Sequence) -> usize {
        let states = self.outputs() + self.units();
        let sums = self.steps_at_once(sequence) * self.lstm.sums();
        sequence.batches * (states + sums)
    }

    /// Steps through time and gives every output with its row to `emit`. The states returned lie in
    /// `work`.
    pub(super) fn run<'w>(
        &self,
        fed: &Fed<'_>,
        work: &'w mut [f32],
        mut emit: impl FnMut(usize, &[f32]) -> Result<(), OpError>,
    ) -> Result<LastStates<'w>, OpError> {
        let Fed { sequence, direction, states, stop, .. } = *fed;
        let Sequence { times, batches, .. } = sequence;
        let (output, work) = work.split_at_mut(batches * self.outputs());
        let (cell, sums) = work.split_at_mut(batches * self.units());
        let fits = states[0].len() == output.len() && states[1].len() == cell.len();
        if !fits {
            return Err(OpError::Internal { what: "states of a layer" });
        }
        output.copy_from_slice(states[0]);
        cell.copy_from_slice(states[1]);
        let step = batches * self.lstm.sums();
        let at_once = self.steps_at_once(sequence);
        for done in (0..times).step_by(at_once) {
            let count = at_once.min(times - done);
            let first = match direction {
                Direction::Forward => done,
                Direction::Backward => times - done - count,
            };
            stop.check()?;
            self.take_inputs(fed, first, count, sums)?;
            for position in 0..count {
                stop.check()?;
                let time = match direction {
                    Direction::Forward => position,
                    Direction::Backward => count - 1 - position,
                };
                let sums = &mut sums[time * step..(time + 1) * step];
                self.lstm.step(self.isa, done + position, sums, output, cell)?;
                for batch in 0..batches {
                    let values = vector(output, batch, self.outputs())?;
                    emit(sequence.row(first + time, batch), values)?;
                }
            }
        }
        Ok(LastStates { output, cell })
    }

    /// The sums of `count` time steps from `first` on: of each step all batches.
    fn take_inputs(
        &self,
        fed: &Fed<'_>,
        first: usize,
        count: usize,
        sums: &mut [f32],
    ) -> Result<(), OpError> {
        let Sequence { batches, time_major, .. } = fed.sequence;
        // Rows that lie one after the other: all of them, or those of one batch.
        let (parts, rows) = if time_major { (1, count * batches) } else { (batches, count) };
        let step = self.lstm.sums() * if time_major { 1 } else { batches };
        for batch in 0..parts {
            let row = fed.sequence.row(first, batch);
            let input = vectors(fed.input, (row, rows), self.lstm.inputs())?;
            let aux = match (fed.aux, self.lstm.aux_inputs()) {
                (Some(aux), Some(size)) => Some(vectors(aux, (row, rows), size)?),
                _ => None,
            };
            let sums = &mut sums[batch * self.lstm.sums()..];
            self.lstm.take_inputs(self.isa, input, aux, sums, step)?;
        }
        Ok(())
    }
}

/// `rows` vectors of this size from row `first` on.
fn vectors(values: &[f32], (first, rows): (usize, usize), size: usize) -> Result<&[f32], OpError> {
    values
        .get(first * size..(first + rows) * size)
        .ok_or(OpError::Internal { what: "a sequence is shorter than its shape" })
}

#[cfg(test)]
#[path = "packed_layer_tests.rs"]
mod tests;
