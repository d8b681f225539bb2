//! UNIDIRECTIONAL_SEQUENCE_LSTM: a layer of long short-term memory cells over a whole sequence.
//!
//! Inputs: input `[time, batch, inputs]` or `[batch, time, inputs]`; the operands of LSTM up to the
//! projection clip; BOOL scalar: time first; four weights of layer normalisation (optional).
//! Outputs: the output of every step in the input's order; since 1.3 also output state and cell
//! state after the last step.
//!
//! Source: NNAPI 1.2 and 1.3 `types.hal`, `OperationType::UNIDIRECTIONAL_SEQUENCE_LSTM`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{Dimensions, OperationType};
use smallvec::SmallVec;

use crate::OpError;
use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, Prepared, Run, Signature,
    TypeSet, WithAttributes,
};
use crate::ops::recurrent::lstm_pass::{CellOperands, Pass, Tuning};
use crate::ops::recurrent::operands::{Floats, output, sizes, store};
use crate::ops::recurrent::packed_layer::PackedLayer;
use crate::ops::recurrent::sequence::{Direction, Sequence};
use crate::tensor::Args;

/// The definition of UNIDIRECTIONAL_SEQUENCE_LSTM.
pub static DEF: OpDef = OpDef {
    code: OperationType::UnidirectionalSequenceLstm,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.omit(&[1, 5, 9, 10, 11, 12, 16, 17, 24, 25, 26, 27]).no_zero_sized(),
};

const SINGLE: &[TypeSet] = &[
    TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32,
    TF32, TF32, TF32, TF32, I32, F32, F32, BOOL, TF32, TF32, TF32, TF32,
];
const HALF: &[TypeSet] = &[
    TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16,
    TF16, TF16, TF16, TF16, I32, F16, F16, BOOL, TF16, TF16, TF16, TF16,
];
const FORMS: &[Form] = &[
    Form::new(V1_2, SINGLE, &[TF32]),
    Form::new(V1_3, SINGLE, &[TF32, TF32, TF32]),
    Form::new(V1_2, HALF, &[TF16]),
    Form::new(V1_3, HALF, &[TF16, TF16, TF16]),
];

const INPUT: usize = 0;
const CELL: CellOperands = CellOperands { first: 1, state: 18, aux: None, layer_norm: 24 };
const TUNING: usize = 20;
const TIME_MAJOR: usize = 23;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    tuning: Tuning,
    /// Whether time is the outermost dimension.
    time_major: bool,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let time_major = operands.bool(TIME_MAJOR)?;
    Ok(Attributes { tuning: Tuning::parse(operands, TUNING)?, time_major })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let [outer, inner, inputs] = sizes(args, INPUT)?;
    let batches = if attributes?.time_major { inner } else { outer };
    let cell = CELL.check(args, batches, inputs, None)?;
    let mut shapes: SmallVec<[Dimensions; 2]> = SmallVec::new();
    shapes.push([outer, inner, cell.outputs].as_slice().into());
    if args.outputs.len() > 1 {
        shapes.push([batches, cell.outputs].as_slice().into());
        shapes.push([batches, cell.units].as_slice().into());
    }
    Ok(Inferred::Shapes(shapes))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    let Attributes { tuning, time_major } = *attributes;
    let [outer, inner, inputs] = sizes(run.inputs, INPUT)?;
    let batches = if time_major { inner } else { outer };
    let cell = CELL.check(run.inputs, batches, inputs, None)?;
    let (floats, work) = Floats::new(run.inputs, run.scratch, Pass::work(batches, cell))?;
    let pass = Pass {
        cell: CELL.cell(&floats, tuning)?,
        sequence: Sequence::new(outer, inner, time_major),
        direction: Direction::Forward,
        input: floats.required(INPUT)?,
        aux: None,
        stop: run.stop,
    };
    let out = output(run.outputs, 0)?;
    let states = pass
        .run(CELL, &floats, work, |row, values| store(out, row * cell.outputs as usize, values))?;
    if run.outputs.len() > 1 {
        store(output(run.outputs, 1)?, 0, states.output)?;
        store(output(run.outputs, 2)?, 0, states.cell)?;
    }
    Ok(())
}

/// The layer with its weights packed, when these are constants.
fn prepare(
    args: &Args<'_>,
    attributes: &Attributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    infer(args, Ok(attributes))?;
    let [outer, inner, _] = sizes(args, INPUT)?;
    let sequence = Sequence::new(outer, inner, attributes.time_major);
    let layer = PackedLayer::new(args, CELL, attributes.tuning, context)?;
    layer.into_kernel(args, sequence, run_packed, context).map(Some)
}

fn run_packed(layer: &PackedLayer, time_major: bool, run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let [outer, inner, inputs] = sizes(run.inputs, INPUT)?;
    layer.check(run.inputs, if time_major { inner } else { outer }, inputs)?;
    let given = layer.given(run, INPUT)?;
    let sequence = Sequence::new(outer, inner, time_major);
    let out = output(run.outputs, 0)?;
    let emit = |row, values: &[f32]| store(out, row * layer.outputs(), values);
    let states = layer.run_forward(&given, (&mut *run.scratch, run.stop), sequence, emit)?;
    if run.outputs.len() > 1 {
        store(output(run.outputs, 1)?, 0, states.output)?;
        store(output(run.outputs, 2)?, 0, states.cell)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::recurrent::lstm_testing::{Layer, Make};
    use crate::ops::testing::{Tensor, run};
    use burst_hal::OperandType::{TensorFloat16, TensorFloat32};

    /// The layer of [`Layer::halving`] over two steps of two batches.
    fn inputs(make: Make, x: &[f32; 4], time_major: bool) -> Vec<Tensor> {
        let layer = Layer::halving(make);
        let mut list = vec![make(&[2, 2, 1], x)];
        list.extend(layer.weights());
        list.extend([make(&[2, 1], &[0.0, 0.0]), make(&[2, 1], &[4.0, 8.0])]);
        list.extend(layer.tuning(0, 0.0, 0.0));
        list.push(Tensor::scalar_bool(time_major));
        list.extend(layer.absent(4));
        list
    }

    // Every step halves the cell and adds x: 4 -> 3 -> 3.5 and 8 -> 6 -> 7.

    #[test]
    fn cells_run_through_time_in_both_orders() {
        for (time_major, x, want) in [
            (true, [1.0, 2.0, 2.0, 4.0], [1.5, 3.0, 1.75, 3.5]),
            (false, [1.0, 2.0, 2.0, 4.0], [1.5, 1.75, 3.0, 3.5]),
        ] {
            let x = if time_major { x } else { [x[0], x[2], x[1], x[3]] };
            let list = inputs(Tensor::f32, &x, time_major);
            let outputs = vec![Tensor::output(TensorFloat32); 3];
            let got = run(&DEF, &list, &outputs).unwrap();
            let values: Vec<Vec<f32>> = got.iter().map(Tensor::values).collect();
            assert_eq!(values, [want.to_vec(), vec![1.75, 3.5], vec![3.5, 7.0]]);
            assert_eq!(got[0].dims.as_slice(), [2, 2, 1]);
            let list = inputs(Tensor::f16, &x, time_major);
            let got = run(&DEF, &list, &[Tensor::output(TensorFloat16)]).unwrap();
            assert_eq!(got[0].halves(), want);
        }
    }

    #[test]
    fn two_outputs_are_no_form() {
        use crate::ops::testing::validate;
        let list = inputs(Tensor::f32, &[0.0; 4], true);
        for (count, version, legal) in
            [(1, V1_2, true), (2, V1_3, false), (3, V1_2, false), (3, V1_3, true)]
        {
            let outputs = vec![Tensor::output(TensorFloat32); count];
            assert_eq!(validate(&DEF, version, &list, &outputs).is_ok(), legal, "{count}");
        }
    }
}
