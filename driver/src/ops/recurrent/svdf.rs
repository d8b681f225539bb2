//! SVDF: one step of a layer of rank-1 filters with a memory of its inputs.
//!
//! Inputs: input `[batch, inputs]`, feature weights `[filters, inputs]`, time weights
//! `[filters, memory]`, bias `[units]` (optional), state `[batch, memory * filters]`, rank
//! (`filters = units * rank`), activation. Outputs: the next state, the output `[batch, units]`.
//!
//! The specification's text gives the state one slot less per filter; its reference and its test
//! vectors have `memory` slots, of which the last is 0 between steps.
//!
//! Source: NNAPI `types.hal`, `OperationType::SVDF`.

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::OperationType;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::rnn::Activation;
use crate::kernels::svdf::{self, Svdf};
use crate::op::types::{I32, TF16, TF32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, Prepared, Run, Signature,
    WithAttributes,
};
use crate::ops::attributes::{positive_i32, recurrent_activation};
use crate::ops::recurrent::operands::{
    Floats, Shapes, expect, expect_if_given, output, sizes, store,
};
use crate::ops::recurrent::sequence::{vector, vector_mut};
use crate::ops::recurrent::vectors;
use crate::tensor::Args;

/// The definition of SVDF.
pub static DEF: OpDef = OpDef {
    code: OperationType::Svdf,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.omit(&[3]).no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, TF32, TF32, TF32, TF32, I32, I32], &[TF32, TF32]),
    Form::new(V1_2, &[TF16, TF16, TF16, TF16, TF16, I32, I32], &[TF16, TF16]),
];

const INPUT: usize = 0;
const FEATURE_WEIGHTS: usize = 1;
const TIME_WEIGHTS: usize = 2;
const BIAS: usize = 3;
const STATE: usize = 4;
const RANK: usize = 5;
const ACTIVATION: usize = 6;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

/// The sizes of a layer.
struct Sizes {
    batches: u32,
    inputs: u32,
    units: u32,
    memory: u32,
    /// Slots of all filters' memories.
    state: u32,
}

impl Sizes {
    /// Floats of working memory.
    fn work(&self) -> usize {
        self.units as usize + self.batches as usize * self.state as usize
    }
}

fn check(shapes: &(impl Shapes + ?Sized), rank: u32) -> Result<Sizes, OpError> {
    let [batches, inputs] = sizes(shapes, INPUT)?;
    let [filters, memory] = sizes(shapes, TIME_WEIGHTS)?;
    if !filters.is_multiple_of(rank) {
        return Err(OpError::shape("filters and their rank", &[filters], &[rank]));
    }
    let units = filters / rank;
    let state =
        memory.checked_mul(filters).ok_or(OpError::Range { what: "size of a layer's state" })?;
    expect(shapes, FEATURE_WEIGHTS, &[filters, inputs])?;
    expect_if_given(shapes, BIAS, &[units])?;
    expect(shapes, STATE, &[batches, state])?;
    Ok(Sizes { batches, inputs, units, memory, state })
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    /// Filters per unit.
    rank: u32,
    activation: Activation,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let rank = positive_i32(operands, RANK, "rank")?;
    Ok(Attributes { rank, activation: recurrent_activation(operands, ACTIVATION)? })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let Sizes { batches, units, state, .. } = check(args, attributes?.rank)?;
    Ok(Inferred::many([[batches, state].as_slice().into(), [batches, units].as_slice().into()]))
}

fn prepare(
    args: &Args<'_>,
    attributes: &Attributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    // Of shapes that are not known yet it is not known either.
    let work = check(args, attributes.rank).map_or(0, |sizes| sizes.work());
    Ok(vectors::prepared(attributes, context, execute_with, work))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    execute_with(run, attributes, Isa::PORTABLE)
}

fn execute_with(run: &mut Run<'_, '_>, attributes: &Attributes, isa: Isa) -> Result<(), OpError> {
    let Attributes { rank, activation } = *attributes;
    let sizes = check(run.inputs, rank)?;
    let Sizes { batches, inputs, units, memory, state } = sizes;
    let (units, state) = (units as usize, state as usize);
    let (floats, work) = Floats::new(run.inputs, run.scratch, sizes.work())?;
    let (out, states) = work.split_at_mut(units);
    let layer = Svdf {
        feature: floats.required(FEATURE_WEIGHTS)?,
        time: floats.required(TIME_WEIGHTS)?,
        bias: floats.optional(BIAS),
        rank: rank as usize,
        memory: memory as usize,
        activation,
    };
    let states = &mut states[..batches as usize * state];
    states.copy_from_slice(floats.required(STATE)?);
    for batch in 0..batches as usize {
        run.stop.check()?;
        let x = vector(floats.required(INPUT)?, batch, inputs as usize)?;
        svdf::step(isa, &layer, x, vector_mut(states, batch, state)?, out);
        store(output(run.outputs, 1)?, batch * units, out)?;
    }
    store(output(run.outputs, 0)?, 0, states)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run, run_fast};
    use burst_hal::OperandType::{TensorFloat16, TensorFloat32};

    /// Two batches, one input, two filters of two slots each.
    fn inputs(make: fn(&[u32], &[f32]) -> Tensor, bias: Option<&[f32]>, rank: i32) -> Vec<Tensor> {
        let units = 2 / u32::try_from(rank).unwrap();
        vec![
            make(&[2, 1], &[1.0, 2.0]),
            make(&[2, 1], &[1.0, -1.0]),
            make(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            bias.map_or(Tensor::omitted(TensorFloat32), |bias| make(&[units], bias)),
            make(&[2, 4], &[10.0, 99.0, 20.0, 99.0, 30.0, 99.0, 40.0, 99.0]),
            Tensor::scalar_i32(rank),
            Tensor::scalar_i32(1),
        ]
    }

    #[test]
    fn every_unit_sums_its_filters() {
        // Filters: 10 + 2 and 60 - 4; 30 + 4 and 120 - 8.
        let out = || [Tensor::output(TensorFloat32), Tensor::output(TensorFloat32)];
        let got = run(&DEF, &inputs(Tensor::f32, None, 1), &out()).unwrap();
        assert_eq!(got[1].values::<f32>(), [12.0, 56.0, 34.0, 112.0]);
        assert_eq!(got[0].values::<f32>(), [1.0, 0.0, -1.0, 0.0, 2.0, 0.0, -2.0, 0.0]);
        let got = run(&DEF, &inputs(Tensor::f32, Some(&[-100.0]), 2), &out()).unwrap();
        assert_eq!(got[1].values::<f32>(), [0.0, 46.0]);
        assert_eq!(got[1].dims.as_slice(), [2, 1]);
        let out = [Tensor::output(TensorFloat16), Tensor::output(TensorFloat16)];
        let got = run(&DEF, &inputs(Tensor::f16, Some(&[1.0, 2.0]), 1), &out).unwrap();
        assert_eq!(got[1].halves(), [13.0, 58.0, 35.0, 114.0]);
    }

    #[test]
    fn the_kernel_computes_what_the_reference_does() {
        let out = [Tensor::output(TensorFloat32), Tensor::output(TensorFloat32)];
        for (bias, rank) in [(None, 1), (Some([-100.0].as_slice()), 2)] {
            let inputs = inputs(Tensor::f32, bias, rank);
            let want = run(&DEF, &inputs, &out).unwrap();
            let got = run_fast(&DEF, &inputs, &out).unwrap().unwrap();
            for (got, want) in got.iter().zip(&want) {
                assert_eq!(got.values::<f32>(), want.values::<f32>());
            }
        }
    }

    #[test]
    fn ranks_that_do_not_divide_the_filters_are_refused() {
        let out = [Tensor::output(TensorFloat32), Tensor::output(TensorFloat32)];
        for rank in [0, -1, 3, i32::MIN] {
            let mut list = inputs(Tensor::f32, None, 1);
            list[RANK] = Tensor::scalar_i32(rank);
            assert!(run(&DEF, &list, &out).is_err(), "{rank}");
        }
        let mut list = inputs(Tensor::f32, None, 1);
        list[STATE] = Tensor::f32(&[2, 2], &[0.0; 4]);
        assert!(run(&DEF, &list, &out).is_err(), "a state of one slot less");
    }
}
