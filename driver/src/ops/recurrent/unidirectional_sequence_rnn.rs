//! UNIDIRECTIONAL_SEQUENCE_RNN: a plain recurrent layer over a whole sequence.
//!
//! Inputs: input `[time, batch, inputs]` or `[batch, time, inputs]`, the operands of RNN, activation,
//! INT32 scalar (1: time first, 0: batch first). Outputs: the output of every step in the input's
//! order; since 1.3 also the hidden state after the last step.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::UNIDIRECTIONAL_SEQUENCE_RNN`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{Dimensions, OperationType};
use smallvec::SmallVec;

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

/// The definition of UNIDIRECTIONAL_SEQUENCE_RNN.
pub static DEF: OpDef = OpDef {
    code: OperationType::UnidirectionalSequenceRnn,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TF32, TF32, TF32, TF32, I32, I32], &[TF32]),
    Form::new(V1_3, &[TF32, TF32, TF32, TF32, TF32, I32, I32], &[TF32, TF32]),
    Form::new(V1_2, &[TF16, TF16, TF16, TF16, TF16, I32, I32], &[TF16]),
    Form::new(V1_3, &[TF16, TF16, TF16, TF16, TF16, I32, I32], &[TF16, TF16]),
];

const INPUT: usize = 0;
const CELL: CellOperands = CellOperands::from(1);
const ACTIVATION: usize = 5;
const TIME_MAJOR: usize = 6;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    activation: Activation,
    /// Whether time is the outermost dimension.
    time_major: bool,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let time_major = match operands.i32(TIME_MAJOR)? {
        0 => false,
        1 => true,
        code => return Err(OpError::value("order of time and batch", code)),
    };
    Ok(Attributes { activation: recurrent_activation(operands, ACTIVATION)?, time_major })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let [outer, inner, inputs] = sizes(args, INPUT)?;
    let batches = if attributes?.time_major { inner } else { outer };
    let units = CELL.check(args, batches, inputs)?;
    let mut shapes: SmallVec<[Dimensions; 2]> = SmallVec::new();
    shapes.push([outer, inner, units].as_slice().into());
    if args.outputs.len() > 1 {
        shapes.push([batches, units].as_slice().into());
    }
    Ok(Inferred::Shapes(shapes))
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
    let Attributes { activation, time_major } = *attributes;
    let [outer, inner, inputs] = sizes(run.inputs, INPUT)?;
    let batches = if time_major { inner } else { outer };
    let units = CELL.check(run.inputs, batches, inputs)?;
    let (floats, work) = Floats::new(run.inputs, run.scratch, Pass::work(batches, units))?;
    let pass = Pass {
        cell: CELL.cell(&floats, None, activation)?,
        sequence: Sequence::new(outer, inner, time_major),
        direction: Direction::Forward,
        input: floats.required(INPUT)?,
        aux: None,
        stop: run.stop,
        isa,
    };
    let out = output(run.outputs, 0)?;
    let hidden = pass.run(floats.required(CELL.hidden)?, work, |row, values| {
        store(out, row * units as usize, values)
    })?;
    match run.outputs.get_mut(1) {
        Some(out) => store(out, 0, hidden),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run};
    use burst_hal::OperandType::{TensorFloat16, TensorFloat32};

    /// One unit over two steps of two batches: `x + 10 h`.
    fn inputs(x: Tensor, make: fn(&[u32], &[f32]) -> Tensor, time_major: i32) -> Vec<Tensor> {
        vec![
            x,
            make(&[1, 1], &[1.0]),
            make(&[1, 1], &[10.0]),
            make(&[1], &[0.0]),
            make(&[2, 1], &[1.0, 2.0]),
            Tensor::scalar_i32(0),
            Tensor::scalar_i32(time_major),
        ]
    }

    #[test]
    fn the_state_runs_through_time_in_both_orders() {
        for (time_major, x, want) in [
            (1, [3.0, 4.0, 5.0, 6.0], [13.0, 24.0, 135.0, 246.0]),
            (0, [3.0, 5.0, 4.0, 6.0], [13.0, 135.0, 24.0, 246.0]),
        ] {
            let outputs = [Tensor::output(TensorFloat32), Tensor::output(TensorFloat32)];
            let list = inputs(Tensor::f32(&[2, 2, 1], &x), Tensor::f32, time_major);
            let got = run(&DEF, &list, &outputs).unwrap();
            assert_eq!(got[0].values::<f32>(), want, "time major {time_major}");
            assert_eq!(got[1].values::<f32>(), [135.0, 246.0], "time major {time_major}");
            assert_eq!(got[1].dims.as_slice(), [2, 1]);
            let list = inputs(Tensor::f16(&[2, 2, 1], &x), Tensor::f16, time_major);
            let got = run(&DEF, &list, &[Tensor::output(TensorFloat16)]).unwrap();
            assert_eq!(got[0].halves(), want, "time major {time_major}");
        }
    }

    #[test]
    fn an_order_that_is_neither_is_refused() {
        let list = inputs(Tensor::f32(&[2, 2, 1], &[0.0; 4]), Tensor::f32, 2);
        assert!(run(&DEF, &list, &[Tensor::output(TensorFloat32)]).is_err());
    }
}
