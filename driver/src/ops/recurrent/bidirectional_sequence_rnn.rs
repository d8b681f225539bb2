//! BIDIRECTIONAL_SEQUENCE_RNN: two plain recurrent layers over a sequence, one from each end.
//!
//! Inputs: input `[time, batch, inputs]` or `[batch, time, inputs]`; the operands of RNN for the
//! forward and the backward direction; an auxiliary input and its weights for both (optional);
//! activation; BOOL scalars: time first, outputs merged. Outputs: of both directions, in one tensor
//! when merged, else in two; since 1.3 also both last hidden states.
//!
//! Without weights of its own an auxiliary input is the backward direction's input.
//!
//! Source: NNAPI 1.2 and 1.3 `types.hal`, `OperationType::BIDIRECTIONAL_SEQUENCE_RNN`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::rnn::Activation;
use crate::op::types::{BOOL, I32, TF16, TF32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, Prepared, Run, Signature,
    TypeSet, WithAttributes,
};
use crate::ops::attributes::recurrent_activation;
use crate::ops::recurrent::bidirectional::{Linking, output_shapes};
use crate::ops::recurrent::operands::{
    Floats, Shapes, expect, expect_if_given, output, sizes, store, together,
};
use crate::ops::recurrent::rnn_pass::{CellOperands, Pass};
use crate::ops::recurrent::sequence::{Columns, Direction, Sequence};
use crate::ops::recurrent::vectors;
use crate::tensor::Args;

/// The definition of BIDIRECTIONAL_SEQUENCE_RNN.
pub static DEF: OpDef = OpDef {
    code: OperationType::BidirectionalSequenceRnn,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.omit(&[9, 10, 11]).no_zero_sized(),
};

const SINGLE: &[TypeSet] =
    &[TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, TF32, I32, BOOL, BOOL];
const HALF: &[TypeSet] =
    &[TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, TF16, I32, BOOL, BOOL];
const FORMS: &[Form] = &[
    Form::new(V1_2, SINGLE, &[TF32]),
    Form::new(V1_2, SINGLE, &[TF32, TF32]),
    Form::new(V1_3, SINGLE, &[TF32, TF32, TF32]),
    Form::new(V1_3, SINGLE, &[TF32, TF32, TF32, TF32]),
    Form::new(V1_2, HALF, &[TF16]),
    Form::new(V1_2, HALF, &[TF16, TF16]),
    Form::new(V1_3, HALF, &[TF16, TF16, TF16]),
    Form::new(V1_3, HALF, &[TF16, TF16, TF16, TF16]),
];

const INPUT: usize = 0;
const FORWARD: CellOperands = CellOperands::from(1);
const BACKWARD: CellOperands = CellOperands::from(5);
const AUX: usize = 9;
const FORWARD_AUX_WEIGHTS: usize = 10;
const BACKWARD_AUX_WEIGHTS: usize = 11;
const ACTIVATION: usize = 12;
const TIME_MAJOR: usize = 13;
const MERGED: usize = 14;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

/// The sizes of a layer, and what its auxiliary input is for.
struct Layer {
    outer: u32,
    inner: u32,
    batches: u32,
    forward: u32,
    backward: u32,
    /// `None` while it is not known.
    linking: Option<Linking>,
}

fn check(shapes: &(impl Shapes + ?Sized), time_major: bool) -> Result<Layer, OpError> {
    let [outer, inner, inputs] = sizes(shapes, INPUT)?;
    let batches = if time_major { inner } else { outer };
    let weights = together(shapes, &[FORWARD_AUX_WEIGHTS, BACKWARD_AUX_WEIGHTS])?;
    let linking = Linking::of(shapes, AUX, weights)?;
    let forward = FORWARD.check(shapes, batches, inputs)?;
    let [backward, backward_inputs] = sizes(shapes, BACKWARD.weights)?;
    if matches!(linking, Some(Linking::Cross | Linking::Parallel)) {
        let [_, _, aux_inputs] = sizes(shapes, AUX)?;
        expect(shapes, AUX, &[outer, inner, aux_inputs])?;
        expect_if_given(shapes, FORWARD_AUX_WEIGHTS, &[forward, aux_inputs])?;
        expect_if_given(shapes, BACKWARD_AUX_WEIGHTS, &[backward, aux_inputs])?;
    }
    BACKWARD.check(
        shapes,
        batches,
        match linking {
            Some(Linking::None | Linking::Cross) => inputs,
            Some(Linking::Parallel) => sizes::<3>(shapes, AUX)?[2],
            None => backward_inputs,
        },
    )?;
    Ok(Layer { outer, inner, batches, forward, backward, linking })
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    activation: Activation,
    /// Whether time is the outermost dimension.
    time_major: bool,
    /// Whether both directions share one output.
    merged: bool,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let (time_major, merged) = (operands.bool(TIME_MAJOR)?, operands.bool(MERGED)?);
    let activation = recurrent_activation(operands, ACTIVATION)?;
    Ok(Attributes { activation, time_major, merged })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let Attributes { time_major, merged, .. } = *attributes?;
    let Layer { outer, inner, batches, forward, backward, .. } = check(args, time_major)?;
    let states = [[batches, forward], [batches, backward]];
    let outputs = args.outputs.len();
    output_shapes([outer, inner], [forward, backward], merged, &states, outputs)
        .map(Inferred::Shapes)
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
    let Attributes { activation, time_major, merged } = *attributes;
    let layer = check(run.inputs, time_major)?;
    let linking = layer.linking.ok_or(OpError::NotYet)?;
    let units = layer.forward.max(layer.backward);
    let (floats, work) = Floats::new(run.inputs, run.scratch, Pass::work(layer.batches, units))?;
    let columns = Columns::pair(layer.forward as usize, layer.backward as usize, merged);
    let first_state = if merged { 1 } else { 2 };
    for (position, direction) in Direction::BOTH.into_iter().enumerate() {
        let (operands, aux_weights) = match direction {
            Direction::Forward => (FORWARD, FORWARD_AUX_WEIGHTS),
            Direction::Backward => (BACKWARD, BACKWARD_AUX_WEIGHTS),
        };
        let (input, aux) =
            linking.sources(direction, floats.required(INPUT)?, floats.optional(AUX));
        let pass = Pass {
            cell: operands.cell(&floats, floats.optional(aux_weights), activation)?,
            sequence: Sequence::new(layer.outer, layer.inner, time_major),
            direction,
            input,
            aux,
            stop: run.stop,
            isa,
        };
        let start = floats.required(operands.hidden)?;
        let hidden =
            pass.run(start, work, |row, values| columns[position].store(run.outputs, row, values))?;
        if run.outputs.len() > first_state {
            store(output(run.outputs, first_state + position)?, 0, hidden)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run};
    use burst_hal::OperandType::{TensorFloat16, TensorFloat32};

    type Make = fn(&[u32], &[f32]) -> Tensor;

    /// One unit each over two steps of one batch: `x + 10 h` forward, `2 x + 10 h` backward.
    fn inputs(make: Make, merged: bool) -> Vec<Tensor> {
        let absent = make(&[1], &[0.0]).info.ty;
        let one = |value| make(&[1, 1], &[value]);
        let mut list = vec![make(&[2, 1, 1], &[3.0, 4.0])];
        for weight in [1.0, 2.0] {
            list.extend([one(weight), one(10.0), make(&[1], &[0.0]), one(0.0)]);
        }
        list.extend([Tensor::omitted(absent), Tensor::omitted(absent), Tensor::omitted(absent)]);
        list.extend([
            Tensor::scalar_i32(0),
            Tensor::scalar_bool(true),
            Tensor::scalar_bool(merged),
        ]);
        list
    }

    fn outputs(count: usize) -> Vec<Tensor> {
        vec![Tensor::output(TensorFloat32); count]
    }

    // Forward: 3, 34. Backward: 8 for the last step, 86 for the first.

    #[test]
    fn two_outputs_keep_the_order_of_time() {
        let got = run(&DEF, &inputs(Tensor::f32, false), &outputs(4)).unwrap();
        let got: Vec<Vec<f32>> = got.iter().map(Tensor::values).collect();
        assert_eq!(got, [vec![3.0, 34.0], vec![86.0, 8.0], vec![34.0], vec![86.0]]);
        let halves = vec![Tensor::output(TensorFloat16); 2];
        let got = run(&DEF, &inputs(Tensor::f16, false), &halves).unwrap();
        assert_eq!(got[1].halves(), [86.0, 8.0]);
    }

    #[test]
    fn merged_outputs_stand_side_by_side() {
        let got = run(&DEF, &inputs(Tensor::f32, true), &outputs(3)).unwrap();
        assert_eq!(got[0].dims.as_slice(), [2, 1, 2]);
        let got: Vec<Vec<f32>> = got.iter().map(Tensor::values).collect();
        assert_eq!(got, [vec![3.0, 86.0, 34.0, 8.0], vec![34.0], vec![86.0]]);
        assert!(run(&DEF, &inputs(Tensor::f32, true), &outputs(2)).is_err());
    }

    #[test]
    fn an_auxiliary_input_is_added_or_read_backward() {
        let mut list = inputs(Tensor::f32, false);
        list[AUX] = Tensor::f32(&[2, 1, 1], &[5.0, 6.0]);
        let got = run(&DEF, &list, &outputs(2)).unwrap();
        // Backward: 2 * 6, then 2 * 5 + 10 * 12.
        assert_eq!(got[0].values::<f32>(), [3.0, 34.0]);
        assert_eq!(got[1].values::<f32>(), [130.0, 12.0]);
        list[FORWARD_AUX_WEIGHTS] = Tensor::f32(&[1, 1], &[100.0]);
        assert!(run(&DEF, &list, &outputs(2)).is_err(), "weights for one direction");
        list[BACKWARD_AUX_WEIGHTS] = Tensor::f32(&[1, 1], &[1000.0]);
        let got = run(&DEF, &list, &outputs(2)).unwrap();
        // Forward: 3 + 500, then 4 + 5030 + 600. Backward: 8 + 6000, then 6 + 60080 + 5000.
        assert_eq!(got[0].values::<f32>(), [503.0, 5634.0]);
        assert_eq!(got[1].values::<f32>(), [65086.0, 6008.0]);
        list[AUX] = Tensor::omitted(TensorFloat32);
        assert!(run(&DEF, &list, &outputs(2)).is_err(), "weights without their input");
    }
}
