//! Recurrent cells, and what walks sequences with them.

use burst_hal::{OperandType, OperationType as Op, OutputSpec};

use super::Make;
use super::grower::{Grower, Within};
use super::value::{F16, FLOATS, I32, Q8S, Q16S, TQ8, TQ8S, Value};

pub(super) const RECIPES: &[(Op, Make)] = &[
    (Op::Rnn, rnn),
    (Op::UnidirectionalSequenceRnn, sequence_rnn),
    (Op::BidirectionalSequenceRnn, bidirectional_rnn),
    (Op::Lstm, lstm),
    (Op::UnidirectionalSequenceLstm, sequence_lstm),
    (Op::BidirectionalSequenceLstm, bidirectional_lstm),
    (Op::Svdf, svdf),
    (Op::Quantized16bitLstm, quantized_16bit_lstm),
    (Op::QuantizedLstm, quantized_lstm),
];

/// Where weights lie: sums stay small, also over a few steps.
const SMALL: Within = Within(-0.4, 0.4);
/// Activations of recurrent layers: none, RELU, RELU6, TANH, LOGISTIC.
const ACTIVATIONS: [i32; 5] = [0, 1, 3, 4, 6];
/// How far from 0 results are at most.
const BOUND: f32 = 2000.0;

/// A layer's sizes, and which of its optional operands it has.
#[derive(Debug, Clone, Copy)]
struct Layer {
    ty: OperandType,
    batches: u32,
    inputs: u32,
    units: u32,
    outputs: u32,
    /// Whether input and forget gate are one.
    is_coupled: bool,
    has_peepholes: bool,
    has_projection: bool,
    has_projection_bias: bool,
    is_normalized: bool,
}

impl Layer {
    fn new(g: &mut Grower<'_>, ty: OperandType, batches: u32, inputs: u32) -> Self {
        let (units, has_projection) = (g.rng.size(1, 5), g.rng.chance(0.4));
        Layer {
            ty,
            batches,
            inputs,
            units,
            outputs: if has_projection { g.rng.size(1, 4) } else { units },
            is_coupled: g.rng.chance(0.4),
            has_peepholes: g.rng.chance(0.4),
            has_projection,
            has_projection_bias: has_projection && g.rng.chance(0.5),
            is_normalized: g.rng.chance(0.4),
        }
    }

    /// A weight, or a place that is left out.
    fn weight(&self, g: &mut Grower<'_>, is_there: bool, dims: &[u32]) -> u32 {
        if is_there { weight(g, self.ty, dims) } else { g.b.omitted(self.ty) }
    }

    /// A weight for each gate: input, forget, cell, output.
    fn of_gates(&self, g: &mut Grower<'_>, dims: &[u32]) -> [u32; 4] {
        [!self.is_coupled, true, true, true].map(|is_there| self.weight(g, is_there, dims))
    }

    /// Weights of inputs and of the output before, peepholes, biases, projection.
    fn operands(&self, g: &mut Grower<'_>) -> Vec<u32> {
        let mut operands = self.of_gates(g, &[self.units, self.inputs]).to_vec();
        operands.extend(self.of_gates(g, &[self.units, self.outputs]));
        let peepholes =
            [self.has_peepholes && !self.is_coupled, self.has_peepholes, self.has_peepholes];
        operands.extend(peepholes.map(|is_there| self.weight(g, is_there, &[self.units])));
        operands.extend(self.of_gates(g, &[self.units]));
        operands.push(self.weight(g, self.has_projection, &[self.outputs, self.units]));
        operands.push(self.weight(g, self.has_projection_bias, &[self.outputs]));
        operands
    }

    /// The weights of layer normalization.
    fn norms(&self, g: &mut Grower<'_>) -> [u32; 4] {
        [!self.is_coupled, true, true, true]
            .map(|is_there| self.weight(g, is_there && self.is_normalized, &[self.units]))
    }

    fn output_state(&self) -> OutputSpec {
        OutputSpec::new(self.ty, &[self.batches, self.outputs])
    }

    fn cell_state(&self) -> OutputSpec {
        OutputSpec::new(self.ty, &[self.batches, self.units])
    }

    /// Both states of the step before.
    fn states(&self, g: &mut Grower<'_>) -> [u32; 2] {
        [self.output_state(), self.cell_state()].map(|spec| g.leaf_of(spec, SMALL).operand)
    }

    /// Activation, and how far from 0 cell and projection may be: 0 for any distance.
    fn tuning(&self, g: &mut Grower<'_>) -> [u32; 3] {
        let activation = activation(g);
        let clip = |g: &mut Grower<'_>| {
            let clip = if g.rng.chance(0.5) { 0.0 } else { g.rng.real(0.2, 2.0) };
            g.real(self.ty, clip)
        };
        [activation, clip(g), clip(g)]
    }
}

fn activation(g: &mut Grower<'_>) -> u32 {
    let code = g.rng.one_of(&ACTIVATIONS);
    g.b.scalar_i32(code)
}

/// A weight: most often a constant.
fn weight(g: &mut Grower<'_>, ty: OperandType, dims: &[u32]) -> u32 {
    let spec = OutputSpec::new(ty, dims);
    if g.rng.chance(0.9) {
        g.random_constant(spec, SMALL).operand
    } else {
        g.leaf_of(spec, SMALL).operand
    }
}

/// What a layer reads: of this rank, and small.
fn input(g: &mut Grower<'_>, rank: usize) -> Value {
    let x = g.tensor(FLOATS, rank..=rank);
    g.tame_to(x, 2.0)
}

/// A sequence: batches, steps, and whether steps come first.
struct Sequence {
    x: Value,
    batches: u32,
    is_time_major: bool,
}

impl Sequence {
    fn new(g: &mut Grower<'_>) -> Self {
        let (ty, inputs) = (g.rng.one_of(FLOATS), g.rng.size(1, 6));
        let is_short = |value: &Value| {
            FLOATS.contains(&value.ty)
                && value.rank() == 3
                && value.dims.iter().all(|size| *size <= 12)
        };
        let x = match g.pick(is_short) {
            Some(x) => x,
            None => {
                let dims = [g.rng.size(1, 4), g.rng.size(1, 4), inputs];
                g.leaf(ty, &dims)
            }
        };
        let x = g.tame_to(x, 2.0);
        let is_time_major = g.rng.chance(0.5);
        let batches = x.dims[usize::from(is_time_major)];
        Sequence { x, batches, is_time_major }
    }

    fn inputs(&self) -> u32 {
        self.x.dims[2]
    }

    /// The results of all steps, so many of each.
    fn results(&self, size: u32) -> OutputSpec {
        OutputSpec::new(self.x.ty, &[self.x.dims[0], self.x.dims[1], size])
    }
}

fn add(g: &mut Grower<'_>, op: Op, inputs: &[u32], outputs: &[OutputSpec]) -> Vec<Value> {
    let outputs: Vec<_> = outputs.iter().map(|spec| (spec.clone(), BOUND)).collect();
    g.apply_many(op, inputs, &outputs)
}

fn rnn(g: &mut Grower<'_>) {
    let x = input(g, 2);
    let (ty, batches, size, units) = (x.ty, x.dims[0], x.dims[1], g.rng.size(1, 5));
    let weights =
        [weight(g, ty, &[units, size]), weight(g, ty, &[units, units]), weight(g, ty, &[units])];
    let state = OutputSpec::new(ty, &[batches, units]);
    let before = g.leaf_of(state.clone(), SMALL);
    let activation = activation(g);
    let inputs = [x.operand, weights[0], weights[1], weights[2], before.operand, activation];
    add(g, Op::Rnn, &inputs, &[state.clone(), state]);
}

fn sequence_rnn(g: &mut Grower<'_>) {
    let sequence = Sequence::new(g);
    let (ty, units) = (sequence.x.ty, g.rng.size(1, 5));
    let state = OutputSpec::new(ty, &[sequence.batches, units]);
    let inputs = [
        sequence.x.operand,
        weight(g, ty, &[units, sequence.inputs()]),
        weight(g, ty, &[units, units]),
        weight(g, ty, &[units]),
        g.leaf_of(state.clone(), SMALL).operand,
        activation(g),
        g.b.scalar_i32(i32::from(sequence.is_time_major)),
    ];
    let outputs = [sequence.results(units), state];
    let count = 1 + g.rng.below(2);
    add(g, Op::UnidirectionalSequenceRnn, &inputs, &outputs[..count]);
}

/// How a second input goes into both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Linking {
    /// There is none.
    Alone,
    /// The backward direction reads it in place of the first.
    Parallel,
    /// Both read both.
    Cross,
}

/// The second input of a sequence in two directions, and how many values of it there are each step.
fn auxiliary(g: &mut Grower<'_>, sequence: &Sequence) -> (Linking, u32, u32) {
    let linking = g.rng.one_of(&[Linking::Alone, Linking::Parallel, Linking::Cross]);
    let size = if linking == Linking::Parallel { g.rng.size(1, 5) } else { sequence.inputs() };
    let operand = match linking {
        Linking::Alone => g.b.omitted(sequence.x.ty),
        _ => {
            let spec = sequence.results(size);
            g.leaf_of(spec, Within::USUAL).operand
        }
    };
    (linking, size, operand)
}

fn bidirectional_rnn(g: &mut Grower<'_>) {
    let sequence = Sequence::new(g);
    let ty = sequence.x.ty;
    let (linking, size, auxiliary) = auxiliary(g, &sequence);
    let units = [g.rng.size(1, 5), g.rng.size(1, 5)];
    let state = |units| OutputSpec::new(ty, &[sequence.batches, units]);
    let mut inputs = vec![sequence.x.operand];
    let backward = if linking == Linking::Parallel { size } else { sequence.inputs() };
    for (units, reads) in units.into_iter().zip([sequence.inputs(), backward]) {
        inputs.push(weight(g, ty, &[units, reads]));
        inputs.push(weight(g, ty, &[units, units]));
        inputs.push(weight(g, ty, &[units]));
        inputs.push(g.leaf_of(state(units), SMALL).operand);
    }
    inputs.push(auxiliary);
    for units in units {
        let is_there = linking == Linking::Cross;
        inputs.push(if is_there { weight(g, ty, &[units, size]) } else { g.b.omitted(ty) });
    }
    let is_merged = g.rng.chance(0.5);
    inputs.push(activation(g));
    inputs.push(g.b.scalar_bool(sequence.is_time_major));
    inputs.push(g.b.scalar_bool(is_merged));
    let mut outputs = results(&sequence, units, is_merged);
    if g.rng.chance(0.5) {
        outputs.extend(units.map(state));
    }
    add(g, Op::BidirectionalSequenceRnn, &inputs, &outputs);
}

/// The results of both directions, in one value or in two.
fn results(sequence: &Sequence, sizes: [u32; 2], is_merged: bool) -> Vec<OutputSpec> {
    match is_merged {
        true => vec![sequence.results(sizes[0] + sizes[1])],
        false => sizes.map(|size| sequence.results(size)).to_vec(),
    }
}

fn lstm(g: &mut Grower<'_>) {
    let x = input(g, 2);
    let layer = Layer::new(g, x.ty, x.dims[0], x.dims[1]);
    let mut inputs = vec![x.operand];
    inputs.extend(layer.operands(g));
    inputs.extend(layer.states(g));
    inputs.extend(layer.tuning(g));
    if layer.is_normalized || g.rng.chance(0.3) {
        inputs.extend(layer.norms(g));
    }
    let gates = if layer.is_coupled { 3 } else { 4 };
    let scratch = OutputSpec::new(x.ty, &[layer.batches, gates * layer.units]);
    let (output, cell) = (layer.output_state(), layer.cell_state());
    let made = add(g, Op::Lstm, &inputs, &[scratch, output.clone(), cell, output]);
    g.change(&made[0], |scratch| scratch.may_be_read = false);
}

fn sequence_lstm(g: &mut Grower<'_>) {
    let sequence = Sequence::new(g);
    let layer = Layer::new(g, sequence.x.ty, sequence.batches, sequence.inputs());
    let mut inputs = vec![sequence.x.operand];
    inputs.extend(layer.operands(g));
    inputs.extend(layer.states(g));
    inputs.extend(layer.tuning(g));
    inputs.push(g.b.scalar_bool(sequence.is_time_major));
    inputs.extend(layer.norms(g));
    let mut outputs = vec![sequence.results(layer.outputs)];
    if g.rng.chance(0.5) {
        outputs.extend([layer.output_state(), layer.cell_state()]);
    }
    add(g, Op::UnidirectionalSequenceLstm, &inputs, &outputs);
}

fn bidirectional_lstm(g: &mut Grower<'_>) {
    let sequence = Sequence::new(g);
    let (linking, size, auxiliary) = auxiliary(g, &sequence);
    let forward = Layer::new(g, sequence.x.ty, sequence.batches, sequence.inputs());
    let mut backward = Layer {
        is_coupled: forward.is_coupled,
        ..Layer::new(g, sequence.x.ty, sequence.batches, sequence.inputs())
    };
    if linking == Linking::Parallel {
        backward.inputs = size;
    }
    let layers = [forward, backward];
    let mut inputs = vec![sequence.x.operand];
    for layer in layers {
        inputs.extend(layer.operands(g));
    }
    for layer in layers {
        inputs.extend(layer.states(g));
    }
    inputs.push(auxiliary);
    for layer in layers {
        let weights = [!layer.is_coupled, true, true, true];
        let is_cross = linking == Linking::Cross;
        inputs.extend(weights.map(|one| layer.weight(g, one && is_cross, &[layer.units, size])));
    }
    let is_merged = g.rng.chance(0.5);
    inputs.extend(forward.tuning(g));
    inputs.push(g.b.scalar_bool(is_merged));
    inputs.push(g.b.scalar_bool(sequence.is_time_major));
    for layer in layers {
        inputs.extend(layer.norms(g));
    }
    let mut outputs = results(&sequence, layers.map(|layer| layer.outputs), is_merged);
    if g.rng.chance(0.5) {
        outputs.extend(layers.iter().flat_map(|layer| [layer.output_state(), layer.cell_state()]));
    }
    add(g, Op::BidirectionalSequenceLstm, &inputs, &outputs);
}

fn svdf(g: &mut Grower<'_>) {
    let x = input(g, 2);
    let (ty, batches, size) = (x.ty, x.dims[0], x.dims[1]);
    let [units, rank, memory] = [g.rng.size(1, 4), g.rng.size(1, 3), g.rng.size(1, 5)];
    let filters = units * rank;
    let state = OutputSpec::new(ty, &[batches, memory * filters]);
    let inputs = [
        x.operand,
        weight(g, ty, &[filters, size]),
        weight(g, ty, &[filters, memory]),
        if g.rng.chance(0.5) { weight(g, ty, &[units]) } else { g.b.omitted(ty) },
        g.leaf_of(state.clone(), SMALL).operand,
        g.b.scalar_i32(super::shape::int(rank)),
        activation(g),
    ];
    add(g, Op::Svdf, &inputs, &[state, OutputSpec::new(ty, &[batches, units])]);
}

fn quantized_16bit_lstm(g: &mut Grower<'_>) {
    let step = 1.0 / 128.0;
    let is_input = |value: &Value| {
        value.ty == TQ8 && value.rank() == 2 && (value.scale, value.zero_point) == (step, 128)
    };
    let x = match g.pick(is_input) {
        Some(x) => x,
        None => {
            let dims = g.dims(2..=2);
            g.leaf_of(OutputSpec::new(TQ8, &dims).quantized(step, 128), Within::USUAL)
        }
    };
    let (batches, size, outputs) = (x.dims[0], x.dims[1], g.rng.size(1, 5));
    let scale = g.rng.one_of(&[0.004, 0.007_812_5, 0.02]);
    let zero_point = g.rng.int(100, 156);
    let weights = |g: &mut Grower<'_>, inputs: u32| {
        let spec = OutputSpec::new(TQ8, &[outputs, inputs]).quantized(scale, zero_point);
        g.random_constant(spec, SMALL).operand
    };
    let mut inputs = vec![x.operand];
    inputs.extend([size; 4].map(|size| weights(g, size)));
    inputs.extend([outputs; 4].map(|size| weights(g, size)));
    for _ in 0..4 {
        let spec = OutputSpec::new(I32, &[outputs]).quantized(scale * step, 0);
        inputs.push(g.random_constant(spec, SMALL).operand);
    }
    let cell = OutputSpec::new(Q16S, &[batches, outputs]).quantized(1.0 / 2048.0, 0);
    let output = OutputSpec::new(TQ8, &[batches, outputs]).quantized(step, 128);
    inputs.push(g.leaf_of(cell.clone(), SMALL).operand);
    inputs.push(g.leaf_of(output.clone(), SMALL).operand);
    add(g, Op::Quantized16bitLstm, &inputs, &[cell, output]);
}

fn quantized_lstm(g: &mut Grower<'_>) {
    let x = g.tensor(&[TQ8S], 2..=2);
    let layer = Layer::new(g, F16, x.dims[0], x.dims[1]);
    let Layer { batches, inputs: size, units, outputs, .. } = layer;
    let step = 1.0 / 128.0;
    let is_there = [!layer.is_coupled, true, true, true];
    let placed = |g: &mut Grower<'_>, is_there: bool, spec: OutputSpec| match is_there {
        true => g.random_constant(spec, SMALL).operand,
        false => g.left_out(&spec),
    };
    let bytes = |dims: &[u32]| OutputSpec::new(Q8S, dims).quantized(0.008, 0);
    let wide = |scale| OutputSpec::new(Q16S, &[units]).quantized(scale, 0);
    let bias = |size| OutputSpec::new(I32, &[size]).quantized(0.008 / 128.0, 0);
    let mut inputs = vec![x.operand];
    inputs.extend(is_there.map(|one| placed(g, one, bytes(&[units, size]))));
    inputs.extend(is_there.map(|one| placed(g, one, bytes(&[units, outputs]))));
    let peepholes =
        [layer.has_peepholes && !layer.is_coupled, layer.has_peepholes, layer.has_peepholes];
    inputs.extend(peepholes.map(|one| placed(g, one, wide(1.0 / 32_768.0))));
    inputs.extend(is_there.map(|one| placed(g, one, bias(units))));
    inputs.push(placed(g, layer.has_projection, bytes(&[outputs, units])));
    // The original reads it wherever there is a projection.
    inputs.push(placed(g, layer.has_projection, bias(outputs)));
    let (scale, zero_point) = match layer.has_projection {
        true => (g.rng.one_of(&[step, 0.02]), g.rng.int(-20, 20)),
        false => (step, 0),
    };
    let output = OutputSpec::new(TQ8S, &[batches, outputs]).quantized(scale, zero_point);
    let cell_scale = g.rng.one_of(&[1.0 / 2048.0, 1.0 / 512.0, 1.0 / 32_768.0]);
    let cell = OutputSpec::new(Q16S, &[batches, units]).quantized(cell_scale, 0);
    inputs.push(g.leaf_of(output.clone(), SMALL).operand);
    inputs.push(g.leaf_of(cell.clone(), SMALL).operand);
    inputs.extend(is_there.map(|one| placed(g, one && layer.is_normalized, wide(1.0 / 4096.0))));
    for _ in 0..2 {
        let clip = if g.rng.chance(0.5) { 0.0 } else { g.rng.real(0.2, 1.0) };
        inputs.push(g.b.scalar_f32(clip));
    }
    inputs.extend([1.0 / 4096.0; 4].map(|scale| g.b.scalar_f32(scale)));
    inputs.push(g.b.scalar_i32(0));
    inputs.push(g.b.scalar_f32(step));
    add(g, Op::QuantizedLstm, &inputs, &[output.clone(), cell, output]);
}
