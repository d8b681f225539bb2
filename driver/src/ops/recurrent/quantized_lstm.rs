//! QUANTIZED_LSTM: one step of a layer of LSTM cells with 8-bit weights and a 16-bit cell, with all
//! options of LSTM but the activation.
//!
//! Inputs: input, weights, peephole weights, biases, projection and states as in LSTM, of quantized
//! types; four weights of layer normalisation; cell clip, projection clip; the scale of what each
//! gate sums up; zero point and scale of what a projection reads. Outputs: output state, cell
//! state, the output (equal to the output state).
//!
//! As in the reference: biases of gates count only with layer normalisation; the projection clip is
//! in steps of the projection weights; the zero point before a projection is subtracted.
//!
//! Source: NNAPI 1.3 `types.hal`, `OperationType::QUANTIZED_LSTM`.

use burst_hal::HalVersion::V1_3;
use burst_hal::{Dimensions, OperationType};

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::lstm::quant8::{Gate, LayerNorm, Lstm8, Projection, Step};
use crate::kernels::lstm::quant8_step;
use crate::kernels::quant::Multiplier;
use crate::op::types::{F32, I32, TI32, TQ8S, TQ8SYMM, TQ16S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, Prepared, Run, Signature,
    WithAttributes,
};
use crate::ops::attributes::positive_float;
use crate::ops::quantization::rules::expect_same;
use crate::ops::recurrent::lstm_pass::{
    CELL_GATE, CellOperands, FORGET_GATE, INPUT_GATE, OUTPUT_GATE,
};
use crate::ops::recurrent::operands::{cell_integer_bits, clip, sizes};
use crate::ops::recurrent::vectors;
use crate::tensor::{Args, TensorInfo};

/// The definition of QUANTIZED_LSTM.
pub static DEF: OpDef = OpDef {
    code: OperationType::QuantizedLstm,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.omit(&[1, 5, 9, 10, 11, 12, 16, 17, 20, 21, 22, 23]).no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(
    V1_3,
    &[
        TQ8S, TQ8SYMM, TQ8SYMM, TQ8SYMM, TQ8SYMM, TQ8SYMM, TQ8SYMM, TQ8SYMM, TQ8SYMM, TQ16S, TQ16S,
        TQ16S, TI32, TI32, TI32, TI32, TQ8SYMM, TI32, TQ8S, TQ16S, TQ16S, TQ16S, TQ16S, TQ16S, F32,
        F32, F32, F32, F32, F32, I32, F32,
    ],
    &[TQ8S, TQ16S, TQ8S],
)];

const INPUT: usize = 0;
const CELL: CellOperands = CellOperands { first: 1, state: 18, aux: None, layer_norm: LAYER_NORM };
const LAYER_NORM: usize = 20;
const CELL_CLIP: usize = 24;
const PROJECTION_CLIP: usize = 25;
const GATE_SCALES: usize = 26;
const HIDDEN_ZERO_POINT: usize = 30;
const HIDDEN_SCALE: usize = 31;

/// Most integer bits that a cell's format can have: its scale is at most 2^-9.
const MAX_CELL_INTEGER_BITS: u32 = 6;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    cell_clip: f32,
    projection_clip: f32,
    /// Scales of the sums of each gate.
    gate_scales: [f32; 4],
    hidden_zero_point: i32,
    hidden_scale: f32,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let scale =
        |index| positive_float(operands, index, "scale of a gate's sums or of the hidden state");
    let (cell_clip, projection_clip) =
        (clip(operands, CELL_CLIP)?, clip(operands, PROJECTION_CLIP)?);
    let gate = |gate: usize| scale(GATE_SCALES + gate);
    let gate_scales = [gate(0)?, gate(1)?, gate(2)?, gate(3)?];
    let hidden_scale = scale(HIDDEN_SCALE)?;
    let zero_point = operands.i32(HIDDEN_ZERO_POINT)?;
    let hidden_zero_point = i8::try_from(zero_point)
        .map(i32::from)
        .map_err(|_| OpError::value("hidden zero point", zero_point))?;
    Ok(Attributes { cell_clip, projection_clip, gate_scales, hidden_zero_point, hidden_scale })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let [batches, inputs] = sizes(args, INPUT)?;
    let cell = CELL.check(args, batches, inputs, None)?;
    attributes?;
    check_quantization(args)?;
    let output = Dimensions::from_slice(&[batches, cell.outputs]);
    let state = Dimensions::from_slice(&[batches, cell.units]);
    Ok(Inferred::many([output.clone(), state, output]))
}

fn check_quantization(args: &Args<'_>) -> Result<(), OpError> {
    let [(state, _), (cell, _), (out, _)] = *args.outputs else {
        return Err(OpError::Arity { want: 3, got: args.outputs.len() });
    };
    let previous = args.input(CELL.output_state())?.info;
    expect_same(previous, state)?;
    expect_same(previous, out)?;
    let scale = args.input(CELL.cell_state())?.info.scale;
    if cell_integer_bits(scale)? > MAX_CELL_INTEGER_BITS || cell.scale != scale {
        return Err(OpError::Range { what: "scale of the cell state" });
    }
    Ok(())
}

fn prepare(
    _: &Args<'_>,
    attributes: &Attributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    Ok(vectors::prepared(attributes, context, execute_with, 0))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    execute_with(run, attributes, Isa::PORTABLE)
}

fn execute_with(run: &mut Run<'_, '_>, attributes: &Attributes, isa: Isa) -> Result<(), OpError> {
    let [batches, inputs] = sizes(run.inputs, INPUT)?;
    let sizes = CELL.check(run.inputs, batches, inputs, None)?;
    let (inputs, units, outputs) = (inputs as usize, sizes.units as usize, sizes.outputs as usize);
    let lstm = Layer { run, attributes }.build()?;
    let (x, stop) = (run.input(INPUT)?.i8()?, run.stop);
    let previous = run.input(CELL.output_state())?.i8()?;
    let cell = run.input(CELL.cell_state())?.i16()?;
    let work = run.scratch.i32(Lstm8::work(units))?;
    let [state_out, cell_out, out] = &mut *run.outputs else {
        return Err(OpError::Arity { want: 3, got: run.outputs.len() });
    };
    let reads = x.chunks_exact(inputs).zip(previous.chunks_exact(outputs));
    let next = cell_out.i16_mut()?.chunks_exact_mut(units);
    let writes = next.zip(out.i8_mut()?.chunks_exact_mut(outputs));
    for (((x, previous), cell), (next, out)) in reads.zip(cell.chunks_exact(units)).zip(writes) {
        stop.check()?;
        quant8_step(isa, &lstm, Step { x, previous, cell }, next, out, work);
    }
    state_out.i8_mut()?.copy_from_slice(out.i8_mut()?);
    Ok(())
}

/// Reads a layer from the operands of a run.
struct Layer<'a, 'r, 't> {
    run: &'a Run<'r, 't>,
    attributes: &'a Attributes,
}

impl<'t> Layer<'_, '_, 't> {
    fn build(&self) -> Result<Lstm8<'t>, OpError> {
        let run = self.run;
        let cell_scale = run.input(CELL.cell_state())?.info.scale;
        let coupled = run.optional(CELL.input(INPUT_GATE)).is_none();
        let hidden_scale = 2f64.powi(-30) / f64::from(self.attributes.hidden_scale);
        let cell_clip = self.attributes.cell_clip / cell_scale;
        Ok(Lstm8 {
            input_gate: if coupled { None } else { Some(self.gate(INPUT_GATE)?) },
            forget_gate: self.gate(FORGET_GATE)?,
            cell_gate: self.gate(CELL_GATE)?,
            output_gate: self.gate(OUTPUT_GATE)?,
            projection: self.projection()?,
            input_zero_point: run.input(INPUT)?.info.zero_point,
            output_zero_point: run.input(CELL.output_state())?.info.zero_point,
            cell_integer_bits: cell_integer_bits(cell_scale)?,
            cell_clip: truncate(cell_clip, i16::MAX.into()),
            hidden_scale: multiplier(hidden_scale)?,
            hidden_zero_point: self.attributes.hidden_zero_point,
        })
    }

    fn gate(&self, gate: usize) -> Result<Gate<'t>, OpError> {
        let run = self.run;
        let own_scale = self.attributes.gate_scales[gate];
        let scale = |weights: &TensorInfo, values: &TensorInfo| {
            multiplier(f64::from(weights.scale * values.scale / own_scale))
        };
        let (x, previous) = (run.input(INPUT)?.info, run.input(CELL.output_state())?.info);
        let input = run.input(CELL.input(gate))?;
        let recurrent = run.input(CELL.recurrent(gate))?;
        let peephole = CELL.peephole(gate).and_then(|index| run.optional(index));
        let cell = run.input(CELL.cell_state())?.info;
        Ok(Gate {
            input: input.i8()?,
            input_scale: scale(input.info, x)?,
            recurrent: recurrent.i8()?,
            recurrent_scale: scale(recurrent.info, previous)?,
            peephole: match peephole {
                Some(weights) => {
                    let exact = exact_scale(cell.scale)? * f64::from(weights.info.scale);
                    Some((weights.i16()?, multiplier(exact / f64::from(own_scale))?))
                }
                None => None,
            },
            layer_norm: match run.optional(LAYER_NORM + gate) {
                Some(weights) => Some(LayerNorm {
                    weights: weights.i16()?,
                    bias: run.input(CELL.bias(gate))?.i32()?,
                    scale: multiplier(weights.info.scale.into())?,
                }),
                None => None,
            },
        })
    }

    fn projection(&self) -> Result<Option<Projection<'t>>, OpError> {
        let run = self.run;
        let Some(weights) = run.optional(CELL.projection()) else { return Ok(None) };
        let output = run.input(CELL.output_state())?.info;
        let scale = weights.info.scale * self.attributes.hidden_scale / output.scale;
        let clip = self.attributes.projection_clip / weights.info.scale;
        Ok(Some(Projection {
            weights: weights.i8()?,
            bias: match run.optional(CELL.projection_bias()) {
                Some(bias) => Some(bias.i32()?),
                None => None,
            },
            scale: multiplier(scale.into())?,
            clip: truncate(clip, i8::MAX.into()),
        }))
    }
}

/// The power of two that a cell's scale stands for.
fn exact_scale(scale: f32) -> Result<f64, OpError> {
    let fraction_bits = 15 - cell_integer_bits(scale)?.cast_signed();
    Ok(2f64.powi(-fraction_bits))
}

/// The reference works scales out in `f32`.
#[allow(clippy::cast_possible_truncation, reason = "rounded on purpose")]
fn multiplier(scale: f64) -> Result<Multiplier, OpError> {
    Multiplier::new((scale as f32).into())
}

/// A clip in steps of a type; the cast cuts fractions off and holds what is too large.
#[allow(clippy::cast_possible_truncation, reason = "a saturating cast")]
fn truncate(clip: f32, largest: i32) -> i32 {
    (clip as i32).clamp(0, largest)
}

#[cfg(test)]
#[path = "quantized_lstm_tests.rs"]
mod tests;
