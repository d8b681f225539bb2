//! RNN: one step of a plain recurrent layer, `act(weights * x + recurrent * hidden + bias)`.
//!
//! Inputs: input `[batch, inputs]`, weights `[units, inputs]`, recurrent weights `[units, units]`,
//! bias `[units]`, hidden state `[batch, units]`, activation. Outputs: the next hidden state and the
//! output, both `[batch, units]` and equal.
//!
//! Source: NNAPI `types.hal`, `OperationType::RNN`.

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::OperationType;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::rnn::Activation;
use crate::op::types::{I32, TF16, TF32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, Prepared, Run, Signature,
    WithAttributes,
};
use crate::ops::attributes::recurrent_activation;
use crate::ops::recurrent::operands::{Floats, output, sizes, store};
use crate::ops::recurrent::rnn_pass::{CellOperands, Pass};
use crate::ops::recurrent::sequence::{Direction, Sequence};
use crate::ops::recurrent::vectors;
use crate::tensor::Args;

/// The definition of RNN.
pub static DEF: OpDef = OpDef {
    code: OperationType::Rnn,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, TF32, TF32, TF32, TF32, I32], &[TF32, TF32]),
    Form::new(V1_2, &[TF16, TF16, TF16, TF16, TF16, I32], &[TF16, TF16]),
];

const INPUT: usize = 0;
const CELL: CellOperands = CellOperands::from(1);
const ACTIVATION: usize = 5;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn parse(operands: &dyn Operands) -> Result<Activation, OpError> {
    recurrent_activation(operands, ACTIVATION)
}

fn infer(args: &Args<'_>, activation: Parsed<'_, Activation>) -> Result<Inferred, OpError> {
    let [batches, inputs] = sizes(args, INPUT)?;
    let units = CELL.check(args, batches, inputs)?;
    activation?;
    let shape = [batches, units];
    Ok(Inferred::many([shape.as_slice().into(), shape.as_slice().into()]))
}

fn prepare(
    args: &Args<'_>,
    activation: &Activation,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    let work = || {
        let [batches, inputs] = sizes(args, INPUT)?;
        Ok::<_, OpError>(Pass::work(batches, CELL.check(args, batches, inputs)?))
    };
    // Of shapes that are not known yet it is not known either.
    Ok(vectors::prepared(activation, context, execute_with, work().unwrap_or(0)))
}

fn execute(run: &mut Run<'_, '_>, activation: &Activation) -> Result<(), OpError> {
    execute_with(run, activation, Isa::PORTABLE)
}

fn execute_with(run: &mut Run<'_, '_>, activation: &Activation, isa: Isa) -> Result<(), OpError> {
    let [batches, inputs] = sizes(run.inputs, INPUT)?;
    let units = CELL.check(run.inputs, batches, inputs)?;
    let (floats, work) = Floats::new(run.inputs, run.scratch, Pass::work(batches, units))?;
    let pass = Pass {
        cell: CELL.cell(&floats, None, *activation)?,
        sequence: Sequence::single_step(batches),
        direction: Direction::Forward,
        input: floats.required(INPUT)?,
        aux: None,
        stop: run.stop,
        isa,
    };
    let hidden = pass.run(floats.required(CELL.hidden)?, work, |_, _| Ok(()))?;
    store(output(run.outputs, 0)?, 0, hidden)?;
    store(output(run.outputs, 1)?, 0, hidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run, run_fast, validate as check};
    use burst_hal::OperandType::{Int32, TensorFloat16, TensorFloat32};

    /// Two batches, two inputs, one unit: `relu(2 x0 - x1 + 3 h + 1)`.
    fn inputs(make: fn(&[u32], &[f32]) -> Tensor, activation: i32) -> Vec<Tensor> {
        vec![
            make(&[2, 2], &[1.0, 0.5, -4.0, 2.0]),
            make(&[1, 2], &[2.0, -1.0]),
            make(&[1, 1], &[3.0]),
            make(&[1], &[1.0]),
            make(&[2, 1], &[0.5, 1.0]),
            Tensor::scalar_i32(activation),
        ]
    }

    #[test]
    fn both_outputs_are_the_new_state() {
        for (activation, want) in [(0, [4.0, -6.0]), (1, [4.0, 0.0])] {
            let outputs = [Tensor::output(TensorFloat32), Tensor::output(TensorFloat32)];
            let got = run(&DEF, &inputs(Tensor::f32, activation), &outputs).unwrap();
            let fast = run_fast(&DEF, &inputs(Tensor::f32, activation), &outputs).unwrap().unwrap();
            for out in got.into_iter().chain(fast) {
                assert_eq!(out.dims.as_slice(), [2, 1]);
                assert_eq!(out.values::<f32>(), want);
            }
            let outputs = [Tensor::output(TensorFloat16), Tensor::output(TensorFloat16)];
            let got = run(&DEF, &inputs(Tensor::f16, activation), &outputs).unwrap();
            assert_eq!(got[0].halves(), want);
            assert_eq!(got[1].halves(), want);
        }
    }

    #[test]
    fn shapes_that_do_not_fit_and_unknown_activations_are_refused() {
        let outputs = [Tensor::output(TensorFloat32), Tensor::output(TensorFloat32)];
        let good = inputs(Tensor::f32, 0);
        for (index, dims, values) in [
            (0, vec![2, 1], vec![0.0; 2]),
            (0, vec![0, 2], vec![]),
            (1, vec![2, 1], vec![0.0; 2]),
            (2, vec![1, 1, 1], vec![0.0]),
            (3, vec![2], vec![0.0; 2]),
            (4, vec![1, 1], vec![0.0]),
        ] {
            let mut bad = good.clone();
            bad[index] = Tensor::f32(&dims, &values);
            assert!(run(&DEF, &bad, &outputs).is_err(), "input {index} of shape {dims:?}");
        }
        for activation in [2, 5, 7, -1] {
            assert!(run(&DEF, &inputs(Tensor::f32, activation), &outputs).is_err(), "{activation}");
        }
    }

    #[test]
    fn halves_came_later() {
        let form = |ty, version| has_form(&DEF, version, &[ty, ty, ty, ty, ty, Int32], &[ty, ty]);
        assert!(form(TensorFloat32, V1_0));
        assert!(!form(TensorFloat16, V1_0) && form(TensorFloat16, V1_2));
        let short = &inputs(Tensor::f32, 0)[1..];
        let outputs = [Tensor::output(TensorFloat32), Tensor::output(TensorFloat32)];
        assert!(check(&DEF, V1_2, short, &outputs).is_err());
    }
}
