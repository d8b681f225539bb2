//! A long short-term memory cell on `f32`, with all its options.
//!
//! Every gate sums products of the input, an auxiliary input and the previous output; an input
//! gate, a forget gate and an output gate may also see the cell ("peephole"). Sums may be
//! normalised over the units of a layer. Without an input gate of its own a cell adds as much
//! of the candidate as it forgets of itself ("coupled input and forget gate", CIFG).

use crate::kernels::rnn::{Activation, add_product};

/// Added to a variance before its root is divided by.
pub(crate) const VARIANCE_EPSILON: f32 = 1e-8;

/// The weights of one gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate<'a> {
    /// `[units, inputs]`.
    pub(crate) input: &'a [f32],
    /// `[units, auxiliary inputs]`.
    pub(crate) aux: Option<&'a [f32]>,
    /// `[units, outputs]`.
    pub(crate) recurrent: &'a [f32],
    /// `[units]`, for the cell's own value.
    pub(crate) peephole: Option<&'a [f32]>,
    /// `[units]`, for normalised sums.
    pub(crate) layer_norm: Option<&'a [f32]>,
    /// `[units]`.
    pub(crate) bias: &'a [f32],
}

/// The weights that turn units into outputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Projection<'a> {
    /// `[outputs, units]`.
    pub(crate) weights: &'a [f32],
    /// `[outputs]`.
    pub(crate) bias: Option<&'a [f32]>,
}

/// A layer of cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lstm<'a> {
    /// How much of the candidate is added to the cell; `None`: 1 less the forget gate ("coupled").
    pub(crate) input_gate: Option<Gate<'a>>,
    /// How much of the cell is kept.
    pub(crate) forget_gate: Gate<'a>,
    /// The candidate: what may be added to the cell.
    pub(crate) cell_gate: Gate<'a>,
    /// How much of the activated cell is the hidden value.
    pub(crate) output_gate: Gate<'a>,
    /// Outputs from units; `None`: the units are the outputs.
    pub(crate) projection: Option<Projection<'a>>,
    /// Of the candidate, and of the cell before the output gate.
    pub(crate) activation: Activation,
    /// Bound of the cell's magnitude; 0 for none.
    pub(crate) cell_clip: f32,
    /// Bound of a projected output's magnitude; 0 for none.
    pub(crate) projection_clip: f32,
}

/// What one sequence carries from step to step.
#[derive(Debug)]
pub(crate) struct State<'a> {
    /// `[outputs]`.
    pub(crate) output: &'a mut [f32],
    /// `[units]`.
    pub(crate) cell: &'a mut [f32],
}

/// What the gates of one step see.
#[derive(Debug, Clone, Copy)]
struct Seen<'a> {
    x: &'a [f32],
    aux: Option<&'a [f32]>,
    output: &'a [f32],
}

impl Gate<'_> {
    /// The gate's sums for every unit, before its activation.
    fn sums(&self, seen: Seen<'_>, cell: &[f32], out: &mut [f32]) {
        match self.layer_norm {
            Some(_) => out.fill(0.0),
            None => out.copy_from_slice(self.bias),
        }
        add_product(self.input, seen.x, out);
        if let (Some(weights), Some(aux)) = (self.aux, seen.aux) {
            add_product(weights, aux, out);
        }
        add_product(self.recurrent, seen.output, out);
        if let Some(weights) = self.peephole {
            for ((out, weight), cell) in out.iter_mut().zip(weights).zip(cell) {
                *out += weight * cell;
            }
        }
        if let Some(weights) = self.layer_norm {
            normalise(out);
            for ((out, weight), bias) in out.iter_mut().zip(weights).zip(self.bias) {
                *out = *out * weight + bias;
            }
        }
    }

    /// How far the gate is open, in 0 to 1.
    fn open(&self, seen: Seen<'_>, cell: &[f32], out: &mut [f32]) {
        self.sums(seen, cell, out);
        Activation::Sigmoid.apply(out);
    }
}

/// Shifts and scales the values to a mean of 0 and a variance of 1.
fn normalise(values: &mut [f32]) {
    #[allow(clippy::cast_precision_loss, reason = "a layer has far fewer units than 2^24")]
    let count = values.len() as f32;
    let mean = values.iter().sum::<f32>() / count;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
    let scale = 1.0 / (variance + VARIANCE_EPSILON).sqrt();
    for value in values {
        *value = (*value - mean) * scale;
    }
}

/// Holds the values' magnitudes at `bound`, if there is one.
fn clip(values: &mut [f32], bound: f32) {
    if bound > 0.0 {
        for value in values {
            *value = value.clamp(-bound, bound);
        }
    }
}

impl Lstm<'_> {
    /// Floats of working memory that a step of this many units takes.
    #[must_use]
    pub(crate) fn work(units: usize) -> usize {
        4 * units
    }

    /// Takes one sequence a step further.
    pub(crate) fn step(&self, x: &[f32], aux: Option<&[f32]>, state: State<'_>, work: &mut [f32]) {
        let State { output, cell } = state;
        let units = cell.len();
        let (input_gate, work) = work.split_at_mut(units);
        let (forget_gate, work) = work.split_at_mut(units);
        let (candidate, work) = work.split_at_mut(units);
        let output_gate = &mut work[..units];
        let seen = Seen { x, aux, output };

        self.forget_gate.open(seen, cell, forget_gate);
        match &self.input_gate {
            Some(gate) => gate.open(seen, cell, input_gate),
            None => input_gate
                .iter_mut()
                .zip(&*forget_gate)
                .for_each(|(input_gate, forget_gate)| *input_gate = 1.0 - forget_gate),
        }
        self.cell_gate.sums(seen, cell, candidate);
        self.activation.apply(candidate);
        for (((cell, forget_gate), input_gate), candidate) in
            cell.iter_mut().zip(forget_gate).zip(input_gate).zip(&*candidate)
        {
            *cell = *forget_gate * *cell + *input_gate * candidate;
        }
        clip(cell, self.cell_clip);
        self.output_gate.open(seen, cell, output_gate);

        let seen_cell = candidate;
        seen_cell.copy_from_slice(cell);
        self.activation.apply(seen_cell);
        for (output_gate, cell) in output_gate.iter_mut().zip(seen_cell) {
            *output_gate *= *cell;
        }
        self.project(output_gate, output);
    }

    fn project(&self, units: &[f32], output: &mut [f32]) {
        let Some(projection) = &self.projection else {
            return output.copy_from_slice(units);
        };
        match projection.bias {
            Some(bias) => output.copy_from_slice(bias),
            None => output.fill(0.0),
        }
        add_product(projection.weights, units, output);
        clip(output, self.projection_clip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights for one input, one unit, one output.
    fn gate(input: &'static [f32], bias: &'static [f32]) -> Gate<'static> {
        Gate { input, aux: None, recurrent: &[0.0], peephole: None, layer_norm: None, bias }
    }

    /// A cell whose gates stand still: half open by a bias of 0, shut or open by a large one.
    fn cell() -> Lstm<'static> {
        Lstm {
            input_gate: Some(gate(&[0.0], &[100.0])),
            forget_gate: gate(&[0.0], &[0.0]),
            cell_gate: gate(&[1.0], &[0.0]),
            output_gate: gate(&[0.0], &[0.0]),
            projection: None,
            activation: Activation::None,
            cell_clip: 0.0,
            projection_clip: 0.0,
        }
    }

    fn step(lstm: &Lstm<'_>, x: f32, output: f32, cell: f32) -> (f32, f32) {
        let (mut output, mut cell) = ([output], [cell]);
        let state = State { output: &mut output, cell: &mut cell };
        lstm.step(&[x], Some(&[1.0]), state, &mut [f32::NAN; 4]);
        (output[0], cell[0])
    }

    #[test]
    fn a_cell_forgets_and_adds_its_candidate() {
        // 4 / 2 + 3, of which the output gate passes half.
        assert_eq!(step(&cell(), 3.0, 0.0, 4.0), (2.5, 5.0));
    }

    #[test]
    fn coupled_gates_add_as_much_as_they_forget() {
        let lstm = Lstm { input_gate: None, ..cell() };
        assert_eq!(step(&lstm, 3.0, 0.0, 4.0), (1.75, 3.5));
    }

    #[test]
    fn clips_bound_the_cell_and_the_projection() {
        let projection = Some(Projection { weights: &[10.0], bias: Some(&[1.0]) });
        let lstm = Lstm { cell_clip: 2.0, projection, ..cell() };
        assert_eq!(step(&lstm, 3.0, 0.0, 4.0), (11.0, 2.0));
        let lstm = Lstm { projection_clip: 5.0, ..lstm };
        assert_eq!(step(&lstm, 3.0, 0.0, 4.0), (5.0, 2.0));
        assert_eq!(step(&lstm, -30.0, 0.0, 4.0), (-5.0, -2.0));
    }

    #[test]
    fn the_output_gate_sees_the_new_cell() {
        // Sums of -1000 shut the gate; with the old cell they would be 1000 and open it.
        let output_gate = Gate { peephole: Some(&[200.0]), ..cell().output_gate };
        let (output, cell) = step(&Lstm { output_gate, ..cell() }, -10.0, 0.0, 10.0);
        assert_eq!((output, cell), (0.0, -5.0));
        let forget_gate = Gate { peephole: Some(&[200.0]), ..self::cell().forget_gate };
        assert_eq!(step(&Lstm { forget_gate, ..self::cell() }, -10.0, 0.0, 10.0).1, 0.0);
    }

    #[test]
    fn previous_outputs_and_auxiliary_inputs_are_added() {
        let cell_gate = Gate { recurrent: &[2.0], aux: Some(&[30.0]), ..cell().cell_gate };
        assert_eq!(step(&Lstm { cell_gate, ..cell() }, 3.0, 4.0, 0.0).1, 41.0);
    }

    #[test]
    fn normalised_sums_have_a_mean_of_0_and_a_variance_of_1() {
        let mut values = [1.0, 3.0, 1.0, 3.0];
        normalise(&mut values);
        assert_eq!(values, [-1.0, 1.0, -1.0, 1.0]);
        let mut same = [5.0; 3];
        normalise(&mut same);
        assert_eq!(same, [0.0; 3]);
        // The sum of one unit is its own mean: only the bias is left.
        let cell_gate = Gate { layer_norm: Some(&[7.0]), bias: &[-2.0], ..cell().cell_gate };
        assert_eq!(step(&Lstm { cell_gate, ..cell() }, 3.0, 0.0, 0.0).1, -2.0);
    }
}
