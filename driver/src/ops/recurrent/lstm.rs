//! LSTM: one step of a layer of long short-term memory cells.
//!
//! Inputs: input `[batch, inputs]`; input weights `[units, inputs]`, recurrent weights
//! `[units, outputs]`, peephole weights and biases `[units]` of the gates; projection weights
//! `[outputs, units]` and bias `[outputs]`; output state `[batch, outputs]`, cell state
//! `[batch, units]`; activation, cell clip, projection clip; since 1.2 optionally four weights of
//! layer normalisation. Outputs: a scratch buffer of unspecified content, the next output state and
//! cell state, the output (equal to the output state).
//!
//! Source: NNAPI 1.0 and 1.2 `types.hal`, `OperationType::LSTM`.

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::{Dimensions, HalVersion, OperationType};

use crate::OpError;
use crate::op::types::{F16, F32, I32, TF16, TF32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, Prepared, Run, Signature,
    WithAttributes,
};
use crate::ops::recurrent::lstm_pass::{CellOperands, Pass, Tuning};
use crate::ops::recurrent::operands::{Floats, output, sizes, store};
use crate::ops::recurrent::packed_layer::PackedLayer;
use crate::ops::recurrent::sequence::{Direction, Sequence};
use crate::tensor::Args;

/// The definition of LSTM.
pub static DEF: OpDef = OpDef {
    code: OperationType::Lstm,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.omit(&[1, 5, 9, 10, 11, 12, 16, 17, 23, 24, 25, 26]).no_zero_sized(),
};

const COUNTS: &[(usize, HalVersion)] = &[(23, V1_0), (27, V1_2)];
const FORMS: &[Form] = &[
    Form::new(
        V1_0,
        &[
            TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32,
            TF32, TF32, TF32, TF32, TF32, TF32, I32, F32, F32, TF32, TF32, TF32, TF32,
        ],
        &[TF32, TF32, TF32, TF32],
    )
    .counts(COUNTS),
    Form::new(
        V1_2,
        &[
            TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16,
            TF16, TF16, TF16, TF16, TF16, TF16, I32, F16, F16, TF16, TF16, TF16, TF16,
        ],
        &[TF16, TF16, TF16, TF16],
    )
    .counts(COUNTS),
];

const INPUT: usize = 0;
const CELL: CellOperands = CellOperands { first: 1, state: 18, aux: None, layer_norm: 23 };
const TUNING: usize = 20;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn parse(operands: &dyn Operands) -> Result<Tuning, OpError> {
    Tuning::parse(operands, TUNING)
}

fn infer(args: &Args<'_>, tuning: Parsed<'_, Tuning>) -> Result<Inferred, OpError> {
    let [batches, inputs] = sizes(args, INPUT)?;
    let cell = CELL.check(args, batches, inputs, None)?;
    tuning?;
    // The scratch buffer has room for the gates that there are.
    let gates = if cell.coupled.ok_or(OpError::NotYet)? { 3 } else { 4 };
    let scratch =
        cell.units.checked_mul(gates).ok_or(OpError::Range { what: "size of a scratch buffer" })?;
    let shape = |size| Dimensions::from_slice(&[batches, size]);
    Ok(Inferred::many([
        shape(scratch),
        shape(cell.outputs),
        shape(cell.units),
        shape(cell.outputs),
    ]))
}

fn execute(run: &mut Run<'_, '_>, tuning: &Tuning) -> Result<(), OpError> {
    let [batches, inputs] = sizes(run.inputs, INPUT)?;
    let cell = CELL.check(run.inputs, batches, inputs, None)?;
    let (floats, work) = Floats::new(run.inputs, run.scratch, Pass::work(batches, cell))?;
    let pass = Pass {
        cell: CELL.cell(&floats, *tuning)?,
        sequence: Sequence::single_step(batches),
        direction: Direction::Forward,
        input: floats.required(INPUT)?,
        aux: None,
        stop: run.stop,
    };
    let states = pass.run(CELL, &floats, work, |_, _| Ok(()))?;
    output(run.outputs, 0)?.bytes_mut().fill(0);
    store(output(run.outputs, 1)?, 0, states.output)?;
    store(output(run.outputs, 2)?, 0, states.cell)?;
    store(output(run.outputs, 3)?, 0, states.output)
}

/// The layer with its weights packed, when these are constants.
fn prepare(
    args: &Args<'_>,
    tuning: &Tuning,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    infer(args, Ok(tuning))?;
    let [batches, _] = sizes(args, INPUT)?;
    let layer = PackedLayer::new(args, CELL, *tuning, context)?;
    layer.into_kernel(args, Sequence::single_step(batches), run_packed, context).map(Some)
}

fn run_packed(layer: &PackedLayer, _: bool, run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let [batches, inputs] = sizes(run.inputs, INPUT)?;
    layer.check(run.inputs, batches, inputs)?;
    let given = layer.given(run, INPUT)?;
    let (sequence, at) = (Sequence::single_step(batches), (&mut *run.scratch, run.stop));
    let states = layer.run_forward(&given, at, sequence, |_, _| Ok(()))?;
    output(run.outputs, 0)?.bytes_mut().fill(0);
    store(output(run.outputs, 1)?, 0, states.output)?;
    store(output(run.outputs, 2)?, 0, states.cell)?;
    store(output(run.outputs, 3)?, 0, states.output)
}

#[cfg(test)]
#[path = "lstm_tests.rs"]
mod tests;
