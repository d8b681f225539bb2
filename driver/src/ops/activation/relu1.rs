//! RELU1: `min(1, max(-1, x))`.
//!
//! Input: a tensor of up to 4 dimensions. Output: the same shape; quantized types keep the input's
//! scale and zero point, or are rescaled where the output has its own.
//!
//! Source: NNAPI `types.hal`, `OperationType::RELU1`.

use burst_hal::{FusedActivation, OperationType};

use crate::OpError;
use crate::kernels::lut::Table;
use crate::op::{OpDef, OpTraits, Plain, Prepared, Run};
use crate::ops::activation::clamp;
use crate::tensor::{Args, TensorInfo};

/// The definition of RELU1.
pub static DEF: OpDef = OpDef {
    code: OperationType::Relu1,
    validate: clamp::validate,
    body: &Plain { infer: clamp::infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

fn prepare(
    args: &Args<'_>,
    _: &crate::op::PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    clamp::prepare(args, table)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    clamp::execute(run, FusedActivation::Relu1)
}

fn table(input: &TensorInfo, output: &TensorInfo) -> Result<Table, OpError> {
    clamp::table(input, output, FusedActivation::Relu1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};
    use burst_hal::OperandType;

    #[test]
    fn values_are_held_between_minus_one_and_one() {
        let input = Tensor::f32(&[5], &[-2.0, -1.0, 0.5, 1.0, 3.0]);
        let out = run_one(&DEF, &[input], Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(out.values::<f32>(), [-1.0, -1.0, 0.5, 1.0, 1.0]);
        // Scale 0.25: one is 4 steps.
        let input = Tensor::u8(&[4], &[0, 126, 132, 255], 0.25, 128);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 128);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<u8>(), [124, 126, 132, 132]);
    }

    /// All of -1 to 1 may lie outside of what the type can store; the nearest end remains.
    #[test]
    fn bounds_outside_of_the_type_end_at_its_edge() {
        let input = Tensor::i8(&[2], &[-128, 127], 0.01, 127);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.01, 127);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<i8>(), [27, 127]);
    }
}
