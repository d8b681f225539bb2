//! QUANTIZED_16BIT_LSTM: one step of a layer of LSTM cells with 8-bit weights and a 16-bit cell.
//!
//! Inputs: input `[batch, inputs]`; input weights `[outputs, inputs]` and recurrent weights
//! `[outputs, outputs]` of the input, forget, cell and output gate; their INT32 biases `[outputs]`;
//! cell state and output of the step before, both `[batch, outputs]`. Outputs: cell state, output.
//!
//! Inputs and outputs have scale 1/128 and zero point 128, the cell state 1/2048. All weights share
//! one scale and zero point; biases have a 128th of that scale.
//!
//! In the reference, rows of recurrent and input weights (in this order) meet inputs and previous
//! outputs (in this order); so they do here.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::QUANTIZED_16BIT_LSTM`.

use burst_hal::HalVersion::V1_2;
use burst_hal::{Dimensions, OperationType};

use crate::OpError;
use crate::kernels::lstm::quant16::{CELL_INTEGER_BITS, Gate, Lstm16};
use crate::kernels::quant::Multiplier;
use crate::op::types::{TI32, TQ8, TQ16S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::ops::recurrent::operands::{cell_integer_bits, expect, sizes};
use crate::tensor::{Args, TensorInfo, TensorRef};

/// The definition of QUANTIZED_16BIT_LSTM.
pub static DEF: OpDef = OpDef {
    code: OperationType::Quantized16bitLstm,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[Form::new(
    V1_2,
    &[TQ8, TQ8, TQ8, TQ8, TQ8, TQ8, TQ8, TQ8, TQ8, TI32, TI32, TI32, TI32, TQ16S, TQ8],
    &[TQ16S, TQ8],
)];

const INPUT: usize = 0;
const INPUT_WEIGHTS: usize = 1;
const RECURRENT_WEIGHTS: usize = 5;
const BIASES: usize = 9;
const CELL: usize = 13;
const PREVIOUS: usize = 14;

/// Real value of one step of inputs and outputs.
const SCALE: f32 = 1.0 / 128.0;
const ZERO_POINT: i32 = 128;
/// Fraction bits of what gates are computed from.
const GATE_FRACTION_BITS: i32 = 12;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let [batches, inputs] = sizes(args, INPUT)?;
    let [_, units] = sizes(args, PREVIOUS)?;
    for gate in 0..4 {
        expect(args, INPUT_WEIGHTS + gate, &[units, inputs])?;
        expect(args, RECURRENT_WEIGHTS + gate, &[units, units])?;
        expect(args, BIASES + gate, &[units])?;
    }
    let state = [batches, units];
    expect(args, CELL, &state)?;
    expect(args, PREVIOUS, &state)?;
    check_scales(args)?;
    Ok(Inferred::many([Dimensions::from_slice(&state), Dimensions::from_slice(&state)]))
}

fn check_scales(args: &Args<'_>) -> Result<(), OpError> {
    let [(cell_out, _), (out, _)] = *args.outputs else {
        return Err(OpError::Arity { want: 2, got: args.outputs.len() });
    };
    let unit_range = |info: &TensorInfo| info.scale == SCALE && info.zero_point == ZERO_POINT;
    let range = OpError::Range { what: "scale or zero point of an input or output of the cell" };
    if ![args.input(INPUT)?.info, args.input(PREVIOUS)?.info, out].into_iter().all(unit_range) {
        return Err(range);
    }
    let cell = args.input(CELL)?.info;
    if cell_integer_bits(cell.scale)? != CELL_INTEGER_BITS || cell_out.scale != cell.scale {
        return Err(OpError::Range { what: "scale of the cell state" });
    }
    let weights = args.input(INPUT_WEIGHTS)?.info;
    for index in INPUT_WEIGHTS..BIASES {
        let info = args.input(index)?.info;
        if info.scale != weights.scale || info.zero_point != weights.zero_point {
            return Err(OpError::Range { what: "scales of weights, which must be equal" });
        }
    }
    let bias_scale = f64::from(weights.scale) / 128.0;
    for index in BIASES..CELL {
        let info = args.input(index)?.info;
        if f64::from(info.scale) != bias_scale || info.zero_point != 0 {
            return Err(OpError::Range { what: "scale of a bias, a 128th of the weights'" });
        }
    }
    Multiplier::new(gate_scale(args.input(BIASES)?.info)).map(drop)
}

/// From the biases' scale to that of what gates are computed from.
fn gate_scale(bias: &TensorInfo) -> f64 {
    f64::from(bias.scale) * f64::from(1 << GATE_FRACTION_BITS)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let gate = |index: usize| -> Result<Gate<'_>, OpError> {
        Ok(Gate {
            input: run.input(INPUT_WEIGHTS + index)?.u8()?,
            recurrent: run.input(RECURRENT_WEIGHTS + index)?.u8()?,
            bias: run.input(BIASES + index)?.i32()?,
        })
    };
    let lstm = Lstm16 {
        input_gate: gate(0)?,
        forget_gate: gate(1)?,
        cell_gate: gate(2)?,
        output_gate: gate(3)?,
        weights_zero_point: run.input(INPUT_WEIGHTS)?.info.zero_point,
        multiplier: Multiplier::new(gate_scale(run.input(BIASES)?.info))?,
    };
    let rows = |tensor: &TensorRef<'_>| tensor.dims.last().map_or(1, |size| *size as usize).max(1);
    let (x, previous, cell) = (run.input(INPUT)?, run.input(PREVIOUS)?, run.input(CELL)?);
    let (inputs, units, stop) = (rows(&x), rows(&previous), run.stop);
    let [cell_out, out] = &mut *run.outputs else {
        return Err(OpError::Arity { want: 2, got: run.outputs.len() });
    };
    let next = cell_out.i16_mut()?.chunks_exact_mut(units);
    let out = out.u8_mut()?.chunks_exact_mut(units);
    let previous = previous.u8()?.chunks_exact(units);
    let cell = cell.i16()?.chunks_exact(units);
    let states = next.zip(out).zip(previous.zip(cell));
    for (((next, out), (previous, cell)), x) in states.zip(x.u8()?.chunks_exact(inputs)) {
        stop.check()?;
        lstm.step(x, previous, cell, next, out);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run, validate as check};
    use burst_hal::HalVersion::V1_1;
    use burst_hal::OperandType::{TensorInt32, TensorQuant8Asymm, TensorQuant16Symm};

    fn cell(values: &[i16]) -> Tensor {
        Tensor::new(TensorQuant16Symm, &[2, 1], values).quantized(1.0 / 2048.0, 0)
    }

    /// Two batches, one input, one unit; weights of 0 but for the output gate, whose sum is
    /// `(x - 128) * 64 * 2^-12`.
    fn inputs() -> Vec<Tensor> {
        let weights = |value| Tensor::u8(&[1, 1], &[value], 1.0 / 32.0, 50);
        let mut list = vec![Tensor::u8(&[2, 1], &[128, 255], SCALE, ZERO_POINT)];
        list.extend([weights(50), weights(50), weights(50), weights(50)]);
        // With one input and one output the "recurrent" weights are those that meet the input.
        list.extend([weights(50), weights(50), weights(50), weights(114)]);
        for _ in 0..4 {
            list.push(Tensor::new(TensorInt32, &[1], &[0i32]).quantized(1.0 / 4096.0, 0));
        }
        list.extend([cell(&[1000, 20_000]), Tensor::u8(&[2, 1], &[128, 128], SCALE, ZERO_POINT)]);
        list
    }

    fn outputs() -> [Tensor; 2] {
        [
            Tensor::output(TensorQuant16Symm).quantized(1.0 / 2048.0, 0),
            Tensor::output(TensorQuant8Asymm).quantized(SCALE, ZERO_POINT),
        ]
    }

    #[test]
    fn cells_are_halved_and_given_out() {
        let got = run(&DEF, &inputs(), &outputs()).unwrap();
        assert_eq!(got[0].values::<i16>(), [500, 10_000]);
        // In 128ths: 0.5 * tanh(500 / 2048) is 15.3, and sigmoid(127 * 64 / 4096) = 0.87913 times
        // tanh(10,000 / 2048) = 0.99989 is 112.516.
        assert_eq!(got[1].values::<u8>(), [128 + 15, 128 + 113]);
        assert_eq!(got[1].dims.as_slice(), [2, 1]);
    }

    #[test]
    fn scales_are_fixed() {
        for (index, tensor) in [
            (0, Tensor::u8(&[2, 1], &[0, 0], SCALE, 127)),
            (1, Tensor::u8(&[1, 1], &[0], 1.0 / 64.0, 50)),
            (8, Tensor::u8(&[1, 1], &[0], 1.0 / 32.0, 51)),
            (12, Tensor::new(TensorInt32, &[1], &[0i32]).quantized(1.0 / 4095.0, 0)),
            (13, cell(&[0, 0]).quantized(1.0 / 4096.0, 0)),
            (14, Tensor::u8(&[2, 1], &[0, 0], 1.0 / 64.0, ZERO_POINT)),
        ] {
            let mut list = inputs();
            list[index] = tensor;
            assert!(run(&DEF, &list, &outputs()).is_err(), "input {index}");
        }
        let [cell, out] = outputs();
        assert!(run(&DEF, &inputs(), &[cell.clone(), out.clone().quantized(SCALE, 0)]).is_err());
        assert!(run(&DEF, &inputs(), &[cell.quantized(1.0 / 1024.0, 0), out]).is_err());
    }

    #[test]
    fn came_with_1_2() {
        assert!(check(&DEF, V1_1, &inputs(), &outputs()).is_err());
        assert!(check(&DEF, V1_2, &inputs(), &outputs()).is_ok());
        assert!(check(&DEF, V1_2, &inputs()[..14], &outputs()).is_err());
    }
}
