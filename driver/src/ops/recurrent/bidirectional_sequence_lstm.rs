//! BIDIRECTIONAL_SEQUENCE_LSTM: two layers of long short-term memory cells over a sequence, one
//! from each end.
//!
//! Inputs: input `[time, batch, inputs]` or `[batch, time, inputs]`; weights and biases of LSTM for
//! the forward and the backward direction; output state and cell state of both; an auxiliary input
//! with four weights for each direction (optional); activation, cell clip, projection clip; BOOL
//! scalars: outputs merged, time first; weights of layer normalisation for both (optional).
//! Outputs: of both directions, in one tensor when merged, else in two; since 1.3 also output state
//! and cell state of both.
//!
//! Without weights of its own an auxiliary input is the backward direction's input; with weights
//! it has the input's size.
//!
//! Source: NNAPI 1.2 and 1.3 `types.hal`, `OperationType::BIDIRECTIONAL_SEQUENCE_LSTM`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use crate::OpError;
use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32};
use crate::op::{
    Form, Inferred, Kernel, OpDef, OpTraits, Operands, Parsed, PrepareContext, Prepared, Run,
    Signature, TypeSet, WithAttributes,
};
use crate::ops::recurrent::bidirectional::{Linking, output_shapes};
use crate::ops::recurrent::lstm_pass::{CellOperands, CellSizes, Pass, Tuning};
use crate::ops::recurrent::operands::{Floats, Shapes, agree, expect, output, sizes, store};
use crate::ops::recurrent::packed_layer::{Fed, PackedLayer};
use crate::ops::recurrent::sequence::{Columns, Direction, Sequence};
use crate::tensor::{Args, TensorRef};

/// The definition of BIDIRECTIONAL_SEQUENCE_LSTM.
pub static DEF: OpDef = OpDef {
    code: OperationType::BidirectionalSequenceLstm,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN
        .omit(&[1, 5, 9, 10, 11, 12, 16, 17])
        .omit(&[18, 22, 26, 27, 28, 29, 33, 34])
        .omit(&[39, 40, 41, 42, 43, 44, 45, 46, 47])
        .omit(&[53, 54, 55, 56, 57, 58, 59, 60])
        .no_zero_sized(),
};

/// 48 tensors, five scalars, eight tensors.
const fn inputs(tensor: TypeSet, scalar: TypeSet) -> [TypeSet; 61] {
    let mut types = [tensor; 61];
    types[TUNING] = I32;
    types[TUNING + 1] = scalar;
    types[TUNING + 2] = scalar;
    types[MERGED] = BOOL;
    types[TIME_MAJOR] = BOOL;
    types
}

const SINGLE: &[TypeSet] = &inputs(TF32, F32);
const HALF: &[TypeSet] = &inputs(TF16, F16);
const FORMS: &[Form] = &[
    Form::new(V1_2, SINGLE, &[TF32]),
    Form::new(V1_2, SINGLE, &[TF32, TF32]),
    Form::new(V1_3, SINGLE, &[TF32, TF32, TF32, TF32, TF32]),
    Form::new(V1_3, SINGLE, &[TF32, TF32, TF32, TF32, TF32, TF32]),
    Form::new(V1_2, HALF, &[TF16]),
    Form::new(V1_2, HALF, &[TF16, TF16]),
    Form::new(V1_3, HALF, &[TF16, TF16, TF16, TF16, TF16]),
    Form::new(V1_3, HALF, &[TF16, TF16, TF16, TF16, TF16, TF16]),
];

const INPUT: usize = 0;
const FORWARD: CellOperands = CellOperands { first: 1, state: 35, aux: Some(40), layer_norm: 53 };
const BACKWARD: CellOperands = CellOperands { first: 18, state: 37, aux: Some(44), layer_norm: 57 };
const AUX: usize = 39;
const TUNING: usize = 48;
const MERGED: usize = 51;
const TIME_MAJOR: usize = 52;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

/// The sizes of both layers, and what the auxiliary input is for.
struct Layers {
    outer: u32,
    inner: u32,
    batches: u32,
    forward: CellSizes,
    backward: CellSizes,
    /// `None` while it is not known.
    linking: Option<Linking>,
}

fn check(shapes: &(impl Shapes + ?Sized), time_major: bool) -> Result<Layers, OpError> {
    let [outer, inner, inputs] = sizes(shapes, INPUT)?;
    let batches = if time_major { inner } else { outer };
    let linking = linking(shapes)?;
    let (mut backward_inputs, mut aux_inputs) = (Some(inputs), None);
    match linking {
        None => backward_inputs = None,
        Some(Linking::None) => {}
        Some(Linking::Cross) => {
            expect(shapes, AUX, &[outer, inner, inputs])?;
            aux_inputs = Some(inputs);
        }
        Some(Linking::Parallel) => {
            let [_, _, aux] = sizes(shapes, AUX)?;
            expect(shapes, AUX, &[outer, inner, aux])?;
            backward_inputs = Some(aux);
        }
    }
    let backward_inputs = match backward_inputs {
        Some(inputs) => inputs,
        None => BACKWARD.weights_inputs(shapes)?,
    };
    let forward = FORWARD.check(shapes, batches, inputs, aux_inputs)?;
    let backward = BACKWARD.check(shapes, batches, backward_inputs, aux_inputs)?;
    agree(forward.coupled, backward.coupled, BACKWARD.first)?;
    Ok(Layers { outer, inner, batches, forward, backward, linking })
}

fn linking(shapes: &(impl Shapes + ?Sized)) -> Result<Option<Linking>, OpError> {
    let (forward, backward) = (FORWARD.has_aux(shapes)?, BACKWARD.has_aux(shapes)?);
    agree(forward, backward, AUX)?;
    Linking::of(shapes, AUX, forward.or(backward))
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    tuning: Tuning,
    /// Whether time is the outermost dimension.
    time_major: bool,
    /// Whether both directions share one output.
    merged: bool,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let (time_major, merged) = (operands.bool(TIME_MAJOR)?, operands.bool(MERGED)?);
    Ok(Attributes { tuning: Tuning::parse(operands, TUNING)?, time_major, merged })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let Attributes { time_major, merged, .. } = *attributes?;
    let Layers { outer, inner, batches, forward, backward, .. } = check(args, time_major)?;
    let states = [
        [batches, forward.outputs],
        [batches, forward.units],
        [batches, backward.outputs],
        [batches, backward.units],
    ];
    let widths = [forward.outputs, backward.outputs];
    output_shapes([outer, inner], widths, merged, &states, args.outputs.len()).map(Inferred::Shapes)
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    let Attributes { tuning, time_major, merged } = *attributes;
    let layers = check(run.inputs, time_major)?;
    let linking = layers.linking.ok_or(OpError::NotYet)?;
    let Layers { batches, forward, backward, .. } = layers;
    let work = Pass::work(batches, forward).max(Pass::work(batches, backward));
    let (floats, work) = Floats::new(run.inputs, run.scratch, work)?;
    let columns = Columns::pair(forward.outputs as usize, backward.outputs as usize, merged);
    let mut next_state = if merged { 1 } else { 2 };
    for (direction, columns) in Direction::BOTH.into_iter().zip(columns) {
        let operands = match direction {
            Direction::Forward => FORWARD,
            Direction::Backward => BACKWARD,
        };
        let (input, aux) =
            linking.sources(direction, floats.required(INPUT)?, floats.optional(AUX));
        let pass = Pass {
            cell: operands.cell(&floats, tuning)?,
            sequence: Sequence::new(layers.outer, layers.inner, time_major),
            direction,
            input,
            aux,
            stop: run.stop,
        };
        let states = pass
            .run(operands, &floats, work, |row, values| columns.store(run.outputs, row, values))?;
        if run.outputs.len() > next_state {
            store(output(run.outputs, next_state)?, 0, states.output)?;
            store(output(run.outputs, next_state + 1)?, 0, states.cell)?;
            next_state += 2;
        }
    }
    Ok(())
}

/// Both layers with their weights packed, when these are constants.
fn prepare(
    args: &Args<'_>,
    attributes: &Attributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    infer(args, Ok(attributes))?;
    let layer = |operands| PackedLayer::new(args, operands, attributes.tuning, context);
    let layers = [layer(FORWARD)?, layer(BACKWARD)?];
    let linking = linking(args)?.ok_or(OpError::NotYet)?;
    for layer in &layers {
        layer.keep(context)?;
    }
    let packed_inputs = layers.iter().flat_map(|layer| layer.packed_inputs(args)).collect();
    let kernel = Box::new(PackedPair { layers, linking, attributes: *attributes });
    Ok(Some(Prepared { kernel, packed_inputs }))
}

#[derive(Debug)]
struct PackedPair {
    layers: [PackedLayer; 2],
    linking: Linking,
    attributes: Attributes,
}

impl PackedPair {
    /// Checks the shapes of everything that is no weight.
    fn check(&self, shapes: &[TensorRef<'_>], time_major: bool) -> Result<Sequence, OpError> {
        let [outer, inner, inputs] = sizes(shapes, INPUT)?;
        let batches = if time_major { inner } else { outer };
        let backward_inputs = match self.linking {
            Linking::None => inputs,
            Linking::Cross => {
                expect(shapes, AUX, &[outer, inner, inputs])?;
                inputs
            }
            Linking::Parallel => {
                let [_, _, aux] = sizes(shapes, AUX)?;
                expect(shapes, AUX, &[outer, inner, aux])?;
                aux
            }
        };
        self.layers[0].check(shapes, batches, inputs)?;
        self.layers[1].check(shapes, batches, backward_inputs)?;
        Ok(Sequence::new(outer, inner, time_major))
    }
}

impl Kernel for PackedPair {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let Attributes { time_major, merged, .. } = self.attributes;
        let sequence = self.check(run.inputs, time_major)?;
        let [forward, backward] = &self.layers;
        let columns = Columns::pair(forward.outputs(), backward.outputs(), merged);
        let work = forward.work(sequence).max(backward.work(sequence));
        // Input, auxiliary input, and the states of both layers.
        let mut list = [run.input(INPUT)?; 6];
        for (value, index) in list.iter_mut().zip([
            INPUT,
            AUX,
            FORWARD.output_state(),
            FORWARD.cell_state(),
            BACKWARD.output_state(),
            BACKWARD.cell_state(),
        ]) {
            *value = run.input(index)?;
        }
        let (floats, work) = Floats::new(&list, run.scratch, work)?;
        let mut next_state = if merged { 1 } else { 2 };
        for (index, direction) in Direction::BOTH.into_iter().enumerate() {
            let (input, aux) =
                self.linking.sources(direction, floats.required(0)?, floats.optional(1));
            let state = 2 + 2 * index;
            let states = [floats.required(state)?, floats.required(state + 1)?];
            let fed = Fed { sequence, direction, input, aux, states, stop: run.stop };
            let states = self.layers[index]
                .run(&fed, work, |row, values| columns[index].store(run.outputs, row, values))?;
            if run.outputs.len() > next_state {
                store(output(run.outputs, next_state)?, 0, states.output)?;
                store(output(run.outputs, next_state + 1)?, 0, states.cell)?;
                next_state += 2;
            }
        }
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        self.layers.iter().map(PackedLayer::held_bytes).sum()
    }

    fn name(&self) -> &'static str {
        "cells with packed weights"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::recurrent::lstm_testing::{Layer, Make};
    use crate::ops::testing::{Tensor, run};
    use burst_hal::OperandType::{TensorFloat16, TensorFloat32};

    /// Two layers of [`Layer::halving`] over two steps of one batch; the backward cell starts at 8.
    fn inputs(make: Make, merged: bool) -> Vec<Tensor> {
        let layer = Layer::halving(make);
        let mut list = vec![make(&[2, 1, 1], &[1.0, 2.0])];
        list.extend(layer.weights());
        list.extend(layer.weights());
        for start in [0.0, 4.0, 0.0, 8.0] {
            list.push(make(&[1, 1], &[start]));
        }
        list.extend(layer.absent(9));
        list.extend(layer.tuning(0, 0.0, 0.0));
        list.extend([Tensor::scalar_bool(merged), Tensor::scalar_bool(true)]);
        list.extend(layer.absent(8));
        list
    }

    fn values(list: &[Tensor], outputs: usize) -> Result<Vec<Vec<f32>>, OpError> {
        let got = run(&DEF, list, &vec![Tensor::output(TensorFloat32); outputs])?;
        Ok(got.iter().map(Tensor::values).collect())
    }

    // Forward cells: 4 / 2 + 1 = 3, 3 / 2 + 2 = 3.5. Backward: 8 / 2 + 2 = 6, 6 / 2 + 1 = 4.
    // Half of each is given out.

    #[test]
    fn both_directions_keep_the_order_of_time() {
        let want = [vec![1.5, 1.75], vec![2.0, 3.0], vec![1.75], vec![3.5], vec![2.0], vec![4.0]];
        let list = inputs(Tensor::f32, false);
        assert_eq!(values(&list, 6).unwrap(), want);
        assert_eq!(values(&list, 2).unwrap(), want[..2]);
        assert!(values(&inputs(Tensor::f32, false), 1).is_err());
        let outputs = vec![Tensor::output(TensorFloat16); 2];
        let got = run(&DEF, &inputs(Tensor::f16, false), &outputs).unwrap();
        assert_eq!(got[1].halves(), [2.0, 3.0]);
    }

    #[test]
    fn merged_outputs_stand_side_by_side() {
        let list = inputs(Tensor::f32, true);
        let want = [vec![1.5, 2.0, 1.75, 3.0], vec![1.75], vec![3.5], vec![2.0], vec![4.0]];
        assert_eq!(values(&list, 5).unwrap(), want);
        assert_eq!(values(&list, 1).unwrap(), want[..1]);
    }

    #[test]
    fn an_auxiliary_input_is_read_backward_or_added() {
        let mut list = inputs(Tensor::f32, false);
        list[AUX] = Tensor::f32(&[2, 1, 1], &[10.0, 20.0]);
        // Backward: 8 / 2 + 20 = 24, 24 / 2 + 10 = 22.
        assert_eq!(values(&list, 2).unwrap(), [vec![1.5, 1.75], vec![11.0, 12.0]]);
        for (gate, weight) in [(0, 0.0), (1, 0.0), (2, 1.0), (3, 0.0)] {
            list[40 + gate] = Tensor::f32(&[1, 1], &[weight]);
            assert!(values(&list, 2).is_err(), "weights up to gate {gate} of one direction");
            list[44 + gate] = Tensor::f32(&[1, 1], &[-weight]);
        }
        // Forward: 2 + 1 + 10 = 13, 6.5 + 2 + 20 = 28.5. Backward: 4 + 2 - 20 = -14,
        // -7 + 1 - 10 = -16.
        assert_eq!(values(&list, 2).unwrap(), [vec![6.5, 14.25], vec![-8.0, -7.0]]);
        list[AUX] = Tensor::f32(&[2, 1, 2], &[0.0; 4]);
        assert!(values(&list, 2).is_err(), "an auxiliary input of another size");
        list[AUX] = Tensor::omitted(TensorFloat32);
        assert!(values(&list, 2).is_err(), "weights without their input");
    }

    #[test]
    fn directions_must_agree_on_coupled_gates() {
        let mut list = inputs(Tensor::f32, false);
        for index in [1, 5, 12] {
            list[index] = Tensor::omitted(TensorFloat32);
        }
        assert!(values(&list, 2).is_err());
        for index in [18, 22, 29] {
            list[index] = Tensor::omitted(TensorFloat32);
        }
        // Half of x is taken in: 4 / 2 + 1 / 2 = 2.5, 1.25 + 1 = 2.25; 4 + 1 = 5, 2.5 + 0.5 = 3.
        assert_eq!(values(&list, 2).unwrap(), [vec![1.25, 1.125], vec![1.5, 2.5]]);
    }
}
