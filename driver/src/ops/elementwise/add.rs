//! ADD: the sum of two tensors that broadcast, with a fused activation.
//!
//! Inputs: two tensors of one type, an INT32 scalar (the activation). Output: a tensor of the
//! broadcast shape. Quantized: `2^20` times each input is rescaled to twice the larger input scale,
//! summed, and rescaled to the output.
//!
//! Source: NNAPI `types.hal`, `OperationType::ADD`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::OperationType;

use crate::OpError;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Inferred, OpDef, OpTraits, Row, Run, Signature};
use crate::ops::broadcast::broadcast_shape;
use crate::ops::elementwise::arithmetic::{self, QuantizedSum};
use crate::tensor::Args;

/// The definition of ADD.
pub static DEF: OpDef = OpDef {
    code: OperationType::Add,
    validate,
    infer,
    prepare: None,
    execute,
    traits: OpTraits::PLAIN,
};

const ROWS: &[Row] = &[
    Row::new(V1_0, &[TF32, TF32, I32], &[TF32]),
    Row::new(V1_0, &[TQ8, TQ8, I32], &[TQ8]),
    Row::new(V1_2, &[TF16, TF16, I32], &[TF16]),
    Row::new(V1_3, &[TQ8S, TQ8S, I32], &[TQ8S]),
    Row::new(V1_3, &[TI32, TI32, I32], &[TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_rows(ROWS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(broadcast_shape(args.dims(0)?, args.dims(1)?)?))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    arithmetic::execute(
        run,
        |a, b| a + b,
        i32::wrapping_add,
        |a, b, out| QuantizedSum::new(a, b, out, 1),
    )
}
