//! TFLite's LSTM on int8 sequences, as one QUANTIZED_LSTM per step.
//!
//! NNAPI's operation computes one step in the same integer arithmetic, but for one thing: the biases
//! of the gates take no part in it without layer normalisation. So they become weights of inputs
//! that are constant: a bias is a sum of such weights times how far the constants are above the
//! input's zero point, and sums of integers are exact. Its own biases are zeros, so that a driver
//! that does add them gives the same.

use burst_hal::{Dimensions, ExtraParams, OperandType, OperationType};

use crate::ElementType;
use crate::error::Refusal;
use crate::file::Operator;
use crate::graph::{OperandIndex, Quant};
use crate::mapper::{Mapper, element_count};
use crate::schema::SequenceLstmOptions;
use crate::verdict::Note;

/// The one activation of the integer form: TANH.
const TANH: i8 = 4;
/// Inputs of the operator, from these on: weights of the input and of the last output, each for the
/// input, forget, cell and output gate; peephole weights; biases; projection; states; layer norm.
const INPUT_WEIGHTS: usize = 1;
const RECURRENT_WEIGHTS: usize = 5;
const PEEPHOLES: std::ops::Range<usize> = 9..12;
const BIASES: usize = 12;
const PROJECTION: std::ops::Range<usize> = 16..18;
const STATES: usize = 18;
const NORMS: std::ops::Range<usize> = 20..24;
const GATES: usize = 4;
/// Which of the operator's internal values says what an output is before it is rounded.
const HIDDEN: usize = 4;
/// The scale in which a gate sums up without layer normalisation: 3 integer bits of 16.
const GATE_SCALE: f32 = 1.0 / 4096.0;
/// Largest weight; -128 is left out, as weights are symmetric. The hidden zero point, which changes
/// its sign, has the same limits.
const MAX_WEIGHT: i32 = 127;
/// Most constant inputs. With 255 steps above the zero point, one holds biases up to 32,385, where
/// real ones have some tens of thousands.
const MAX_CONSTANT_INPUTS: usize = 64;
/// Most operations that a graph may have once its layers are unrolled. A second of speech has a
/// hundred steps.
const MAX_OPERATIONS: usize = 1 << 14;

/// A sequence: its sizes, and what goes in and comes out.
struct Sequence {
    input: OperandIndex,
    quant: Quant,
    time_major: bool,
    steps: u32,
    batches: u32,
    inputs: u32,
    units: u32,
}

/// Maps the operator, or says why its form has no exact one.
pub(super) fn map(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    o: SequenceLstmOptions<'_>,
    input: OperandIndex,
) -> Result<(), Refusal> {
    if o.activation() != TANH {
        return Err(Refusal::Activation { code: o.activation() });
    }
    plain(m, operator)?;
    let sequence = Sequence::of(m, operator, input, o.time_major())?;
    let hidden = hidden(m, operator)?;
    let (biases, widest) = biases(m, operator, sequence.units)?;
    let constants = ConstantInputs::of(sequence.quant.zero_point, widest)?;
    let steps = usize::try_from(sequence.steps).unwrap_or(usize::MAX);
    if m.graph.operation_count().saturating_add(steps.saturating_mul(2)) > MAX_OPERATIONS {
        let value = i64::from(sequence.steps);
        return Err(Refusal::Range { what: "the number of steps", value });
    }
    let (output_state, output_after) = m.state(operator, STATES)?;
    let (cell_state, cell_after) = m.state(operator, STATES + 1)?;
    expect_type(m, output_state, OperandType::TensorQuant8AsymmSigned, "the output state")?;
    expect_type(m, cell_state, OperandType::TensorQuant16Symm, "the cell state")?;
    let output = m.output(operator, 0)?;
    let state_quant = Quant::of(m.graph.operand(output_state));
    if Quant::of(m.graph.operand(output)) != state_quant {
        let Quant { scale, zero_point } = state_quant;
        let operation = OperationType::QuantizedLstm;
        return Err(Refusal::FixedScale { operation, scale, zero_point });
    }

    let x = split(m, &sequence, &constants)?;
    let mut layer = weights(m, operator, &sequence, &constants, &biases)?;
    layer.extend([output_state, cell_state]);
    for _ in NORMS {
        layer.push(m.graph.absent(OperandType::TensorQuant16Symm)?);
    }
    for clip in [o.cell_clip(), o.proj_clip()] {
        if !(clip.is_finite() && clip >= 0.0) {
            return Err(Refusal::OptionValue { option: "clip", value: clip.into() });
        }
        layer.push(m.graph.float(clip)?);
    }
    for _ in 0..GATES {
        layer.push(m.graph.float(GATE_SCALE)?);
    }
    // TFLite adds this zero point to what it gives out, NNAPI's reference takes it off.
    layer.extend([m.graph.int(-hidden.zero_point)?, m.graph.float(hidden.scale)?]);
    let made = unroll(m, &layer, &x, (output_after, cell_after))?;
    join(m, &sequence, made, output)?;
    m.notes.extend([Note::StateExposed, Note::StepsUnrolled]);
    Ok(())
}

/// Without peephole weights, projection and layer normalisation, with all four gates: for the others
/// nothing shows that NNAPI's arithmetic is TFLite's.
fn plain(m: &Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    for (range, what) in
        [(PEEPHOLES, "peephole weights"), (PROJECTION, "a projection"), (NORMS, "layer norms")]
    {
        if range.into_iter().any(|at| m.input_tensor(operator, at).is_some()) {
            return Err(Refusal::IntegerLstm { what });
        }
    }
    if m.input_tensor(operator, INPUT_WEIGHTS).is_none() {
        return Err(Refusal::IntegerLstm { what: "no input gate" });
    }
    Ok(())
}

fn expect_type(
    m: &Mapper<'_, '_>,
    operand: OperandIndex,
    needed: OperandType,
    what: &'static str,
) -> Result<(), Refusal> {
    let found = m.graph.operand(operand).ty;
    if found == needed { Ok(()) } else { Err(Refusal::OperandType { what, found, needed }) }
}

impl Sequence {
    fn of(
        m: &mut Mapper<'_, '_>,
        operator: &Operator<'_>,
        input: OperandIndex,
        time_major: bool,
    ) -> Result<Self, Refusal> {
        let given = m.graph.operand(input);
        let &[first, second, inputs] = given.dimensions.as_slice() else {
            return Err(Refusal::UnknownShape { what: "the input" });
        };
        if first == 0 || second == 0 || inputs == 0 {
            return Err(Refusal::UnknownShape { what: "the input" });
        }
        let quant = Quant::of(given);
        let (steps, batches) = if time_major { (first, second) } else { (second, first) };
        let weights = m.input_tensor(operator, INPUT_WEIGHTS);
        let weights = m.tensor(weights.ok_or(Refusal::Missing { what: "a weight" })?)?;
        let units = weights.shape().next().and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
        Ok(Sequence { input, quant, time_major, steps, batches, inputs, units })
    }

    fn time_axis(&self) -> i32 {
        i32::from(!self.time_major)
    }

    /// A shape with this many steps and values per step.
    fn shape(&self, steps: u32, values: u32) -> Dimensions {
        let (first, second) =
            if self.time_major { (steps, self.batches) } else { (self.batches, steps) };
        Dimensions::from_slice(&[first, second, values])
    }
}

/// Scale and zero point of what an output is rounded to.
fn hidden(m: &Mapper<'_, '_>, operator: &Operator<'_>) -> Result<Quant, Refusal> {
    let missing = Refusal::Missing { what: "the scale of the hidden state" };
    let index = operator.intermediates.get(HIDDEN).ok_or_else(|| missing.clone())?;
    let found = m.tensor(*index)?.quantization().ok_or_else(|| missing.clone())?;
    let scale = found.scale().get(0).filter(|scale| scale.is_finite() && *scale > 0.0);
    let zero_point = found.zero_point().get(0).unwrap_or_default();
    let zero_point = i32::try_from(zero_point)
        .ok()
        .filter(|zero_point| (-MAX_WEIGHT..=MAX_WEIGHT).contains(zero_point))
        .ok_or(Refusal::Range { what: "the hidden zero point", value: zero_point })?;
    Ok(Quant { scale: scale.ok_or(missing)?, zero_point })
}

/// The biases of each gate, and the largest of them all.
fn biases(
    m: &Mapper<'_, '_>,
    operator: &Operator<'_>,
    units: u32,
) -> Result<(Vec<Vec<i32>>, u32), Refusal> {
    let gate = |gate| {
        let found = m.ints(operator, BIASES + gate, "a bias")?;
        let fits = u32::try_from(found.len()) == Ok(units);
        if fits { Ok(found) } else { Err(Refusal::Shape { what: "a bias" }) }
    };
    let biases: Vec<Vec<i32>> = (0..GATES).map(gate).collect::<Result<_, _>>()?;
    let widest = biases.iter().flatten().map(|bias| bias.unsigned_abs()).max().unwrap_or(0);
    Ok((biases, widest))
}

/// Constant inputs whose weights make biases: one that is one step from the zero point, the others
/// as far from it as the type goes.
#[derive(Debug, PartialEq, Eq)]
struct ConstantInputs {
    /// Stored values, and how far each is above the zero point.
    values: Vec<(i8, i32)>,
}

impl ConstantInputs {
    /// As few as can make every bias up to this one; `zero_point` is one of int8.
    fn of(zero_point: i32, widest: u32) -> Result<Self, Refusal> {
        let far = [i8::MAX, i8::MIN].map(|value| (value, i32::from(value) - zero_point));
        let far = if far[0].1 >= -far[1].1 { far[0] } else { far[1] };
        let step = if far.1 > 0 { 1 } else { -1 };
        let too_large = || Refusal::Range { what: "a bias", value: widest.into() };
        let near = i8::try_from(zero_point + step).map_err(|_| too_large())?;
        let times = (widest + far.1.unsigned_abs() / 2) / far.1.unsigned_abs();
        let count =
            usize::try_from(times.div_ceil(MAX_WEIGHT.unsigned_abs())).unwrap_or(usize::MAX);
        if count >= MAX_CONSTANT_INPUTS {
            return Err(too_large());
        }
        let mut values = vec![(near, step)];
        values.extend(std::iter::repeat_n(far, count));
        Ok(ConstantInputs { values })
    }

    /// Weights of these inputs that make this bias.
    fn weights(&self, bias: i32) -> Vec<i8> {
        let [(_, step), far @ ..] = self.values.as_slice() else { return Vec::new() };
        let distance = far.first().map_or(1, |(_, distance)| *distance);
        let mut times = nearest(bias, distance);
        let rest = (bias - times * distance) * step;
        let narrow = |weight: i32| i8::try_from(weight).unwrap_or(i8::MAX);
        let mut weights = vec![narrow(if far.is_empty() { bias * step } else { rest })];
        for _ in far {
            let weight = times.clamp(-MAX_WEIGHT, MAX_WEIGHT);
            times -= weight;
            weights.push(narrow(weight));
        }
        weights
    }
}

/// The multiple of `distance` that is nearest to `value`.
fn nearest(value: i32, distance: i32) -> i32 {
    let half = distance.abs() / 2;
    (value + if value < 0 { -half } else { half }) / distance
}

/// The sequence with the constant inputs, as one operand per step.
fn split(
    m: &mut Mapper<'_, '_>,
    sequence: &Sequence,
    constants: &ConstantInputs,
) -> Result<Vec<OperandIndex>, Refusal> {
    let ty = OperandType::TensorQuant8AsymmSigned;
    let more = u32::try_from(constants.values.len()).unwrap_or(u32::MAX);
    let wide = sequence.inputs.saturating_add(more);
    let shape = sequence.shape(sequence.steps, more);
    let row: Vec<u8> = constants.values.iter().map(|(value, _)| value.cast_unsigned()).collect();
    let rows = element_count(&sequence.shape(sequence.steps, 1));
    let rows = usize::try_from(rows).map_err(|_| Refusal::Shape { what: "the input" })?;
    let location = m.graph.keep(&row.repeat(rows))?;
    let extra = m.graph.constant(ty, shape, sequence.quant, ExtraParams::None, location)?;

    let whole = sequence.shape(sequence.steps, wide);
    let joined = m.graph.temporary(ty, whole, sequence.quant)?;
    let axis = m.graph.int(2)?;
    m.emit(OperationType::Concatenation, vec![sequence.input, extra, axis], joined, None)?;

    let one = sequence.shape(1, wide);
    let piece = |m: &mut Mapper<'_, '_>| m.graph.temporary(ty, one.clone(), sequence.quant);
    let pieces: Vec<_> = (0..sequence.steps).map(|_| piece(m)).collect::<Result<_, _>>()?;
    let steps = i32::try_from(sequence.steps).unwrap_or(i32::MAX);
    let inputs = vec![joined, m.graph.int(sequence.time_axis())?, m.graph.int(steps)?];
    m.graph.operation(OperationType::Split, inputs, pieces.clone())?;

    let number = |size: u32| i32::try_from(size).unwrap_or(i32::MAX);
    let flat = m.graph.ints(&[number(sequence.batches), number(wide)])?;
    let shape = Dimensions::from_slice(&[sequence.batches, wide]);
    let flatten = |piece: OperandIndex| {
        let x = m.graph.temporary(ty, shape.clone(), sequence.quant)?;
        m.emit(OperationType::Reshape, vec![piece, flat], x, None)?;
        Ok(x)
    };
    pieces.into_iter().map(flatten).collect()
}

/// Operands 1 to 17 of each step: weights, left-out peepholes, biases of zeros, no projection.
fn weights(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    sequence: &Sequence,
    constants: &ConstantInputs,
    biases: &[Vec<i32>],
) -> Result<Vec<OperandIndex>, Refusal> {
    let Sequence { units, inputs, quant, .. } = *sequence;
    let mut operands = Vec::new();
    let mut scales = Vec::with_capacity(GATES);
    for (gate, biases) in biases.iter().enumerate() {
        let (data, scale) = weight(m, operator, INPUT_WEIGHTS + gate, [units, inputs])?;
        let depth = usize::try_from(inputs).unwrap_or(usize::MAX);
        let mut wide = Vec::new();
        for (row, bias) in data.chunks_exact(depth).zip(biases) {
            wide.extend(row);
            wide.extend(constants.weights(*bias).iter().map(|weight| weight.cast_unsigned()));
        }
        let more = u32::try_from(constants.values.len()).unwrap_or(u32::MAX);
        operands.push(symmetric(m, &wide, [units, inputs.saturating_add(more)], scale)?);
        scales.push(scale);
    }
    for gate in 0..GATES {
        let (data, scale) = weight(m, operator, RECURRENT_WEIGHTS + gate, [units, units])?;
        operands.push(symmetric(m, data, [units, units], scale)?);
    }
    for _ in PEEPHOLES {
        operands.push(m.graph.absent(OperandType::TensorQuant16Symm)?);
    }
    let zeros = vec![0; usize::try_from(units).unwrap_or(0).saturating_mul(4)];
    let zeros = m.graph.keep(&zeros)?;
    for scale in scales {
        let quant = Quant { scale: quant.scale * scale, zero_point: 0 };
        let (ty, shape) = (OperandType::TensorInt32, Dimensions::from_slice(&[units]));
        operands.push(m.graph.constant(ty, shape, quant, ExtraParams::None, zeros)?);
    }
    operands.push(m.graph.absent(OperandType::TensorQuant8Symm)?);
    operands.push(m.graph.absent(OperandType::TensorInt32)?);
    Ok(operands)
}

/// The bytes and the scale of a weight of this shape.
fn weight<'a>(
    m: &Mapper<'_, 'a>,
    operator: &Operator<'_>,
    at: usize,
    shape: [u32; 2],
) -> Result<(&'a [u8], f32), Refusal> {
    let what = "a weight";
    let index = m.input_tensor(operator, at).ok_or(Refusal::Missing { what })?;
    let tensor = m.tensor(index)?;
    let problem = "is no int8 constant with one scale and zero point 0";
    let refused = Refusal::Quantization { tensor: index, ty: tensor.ty, problem };
    let data = tensor.data.filter(|_| tensor.ty == ElementType::Int8 && !tensor.is_sparse());
    let data = data.ok_or_else(|| refused.clone())?;
    if !tensor.shape().map(u32::try_from).eq(shape.map(Ok)) {
        return Err(Refusal::Shape { what });
    }
    let quantization = tensor.quantization().ok_or_else(|| refused.clone())?;
    let scale = quantization.scale().get(0).filter(|scale| scale.is_finite() && *scale > 0.0);
    let plain = quantization.scale().len() == 1 && quantization.zero_point().iter().all(|z| z == 0);
    scale.filter(|_| plain).map(|scale| (data, scale)).ok_or(refused)
}

fn symmetric(
    m: &mut Mapper<'_, '_>,
    data: &[u8],
    shape: [u32; 2],
    scale: f32,
) -> Result<OperandIndex, Refusal> {
    let location = m.graph.keep(data)?;
    let quant = Quant { scale, zero_point: 0 };
    let shape = Dimensions::from_slice(&shape);
    m.graph.constant(OperandType::TensorQuant8Symm, shape, quant, ExtraParams::None, location)
}

/// One operation per step. `layer` has its operands 1 and on, with the states before the first step;
/// `after` are the states after the last. Returns the output of each step.
fn unroll(
    m: &mut Mapper<'_, '_>,
    layer: &[OperandIndex],
    x: &[OperandIndex],
    after: (OperandIndex, OperandIndex),
) -> Result<Vec<OperandIndex>, Refusal> {
    let mut layer = layer.to_vec();
    let x_count = x.len();
    let mut made = Vec::with_capacity(x_count);
    for (step, x) in x.iter().enumerate() {
        let states = [layer[STATES - 1], layer[STATES]];
        let is_last = step + 1 == x_count;
        let next =
            if is_last { [after.0, after.1] } else { [like(m, states[0])?, like(m, states[1])?] };
        let output = like(m, states[0])?;
        let inputs = std::iter::once(*x).chain(layer.iter().copied()).collect();
        let outputs = vec![next[0], next[1], output];
        m.graph.operation(OperationType::QuantizedLstm, inputs, outputs)?;
        layer[STATES - 1..=STATES].copy_from_slice(&next);
        made.push(output);
    }
    Ok(made)
}

/// A value of the same type and shape.
fn like(m: &mut Mapper<'_, '_>, operand: OperandIndex) -> Result<OperandIndex, Refusal> {
    let found = m.graph.operand(operand);
    let (ty, shape, quant) = (found.ty, found.dimensions.clone(), Quant::of(found));
    m.graph.temporary(ty, shape, quant)
}

/// The outputs of all steps as one sequence.
fn join(
    m: &mut Mapper<'_, '_>,
    sequence: &Sequence,
    made: Vec<OperandIndex>,
    output: OperandIndex,
) -> Result<(), Refusal> {
    let quant = Quant::of(m.graph.operand(output));
    let (steps, batches, units) = (sequence.steps, sequence.batches, sequence.units);
    let flat = match sequence.time_major {
        true => [steps.saturating_mul(batches), units],
        false => [batches, steps.saturating_mul(units)],
    };
    let (ty, shape) = (OperandType::TensorQuant8AsymmSigned, Dimensions::from_slice(&flat));
    let joined = m.graph.temporary(ty, shape, quant)?;
    let mut inputs = made;
    inputs.push(m.graph.int(sequence.time_axis())?);
    m.emit(OperationType::Concatenation, inputs, joined, None)?;
    let shape: Vec<i32> = sequence
        .shape(steps, units)
        .iter()
        .map(|size| i32::try_from(*size).unwrap_or(i32::MAX))
        .collect();
    let shape = m.graph.ints(&shape)?;
    m.emit_keeping_scale(OperationType::Reshape, vec![joined, shape], output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bias that weights of constant inputs make.
    fn sum(constants: &ConstantInputs, weights: &[i8]) -> i32 {
        assert_eq!(weights.len(), constants.values.len());
        let terms = weights.iter().zip(&constants.values);
        terms.map(|(weight, (_, distance))| i32::from(*weight) * distance).sum()
    }

    #[test]
    fn weights_of_constant_inputs_make_every_bias() {
        for zero_point in [-128, -127, -1, 0, 1, 126, 127] {
            for widest in [0, 1, 127, 128, 255, 16_256, 46_807, 100_000] {
                let constants = ConstantInputs::of(zero_point, widest).unwrap();
                for (value, distance) in &constants.values {
                    assert_eq!(i32::from(*value) - zero_point, *distance);
                }
                let widest = widest.cast_signed();
                let near = (-300..=300).filter(|bias: &i32| bias.abs() <= widest);
                for bias in near.chain([widest, -widest, widest / 2, 1 - widest.max(1)]) {
                    let weights = constants.weights(bias);
                    assert_eq!(sum(&constants, &weights), bias, "{zero_point} {widest}");
                    assert!(!weights.contains(&i8::MIN), "{weights:?}");
                }
            }
        }
    }

    #[test]
    fn few_constant_inputs_are_enough_and_absurd_biases_are_refused() {
        assert_eq!(ConstantInputs::of(-128, 46_807).unwrap().values.len(), 3);
        assert_eq!(ConstantInputs::of(-128, 0).unwrap().values.len(), 1);
        assert!(ConstantInputs::of(0, i32::MIN.unsigned_abs()).is_err());
    }
}
