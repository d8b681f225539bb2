//! RELU: `max(0, x)`.
//!
//! Input: a tensor of up to 4 dimensions. Output: the same shape; quantized types keep the input's
//! scale and zero point, or are rescaled where the output has its own.
//!
//! Source: NNAPI `types.hal`, `OperationType::RELU`.

use burst_hal::{FusedActivation, OperationType};

use crate::OpError;
use crate::kernels::lut::Table;
use crate::op::{OpDef, OpTraits, Plain, Prepared, Run};
use crate::ops::activation::clamp;
use crate::tensor::{Args, TensorInfo};

/// The definition of RELU.
pub static DEF: OpDef = OpDef {
    code: OperationType::Relu,
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
    clamp::execute(run, FusedActivation::Relu)
}

fn table(input: &TensorInfo, output: &TensorInfo) -> Result<Table, OpError> {
    clamp::table(input, output, FusedActivation::Relu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};
    use burst_hal::OperandType;

    #[test]
    fn floats() {
        let input = Tensor::f32(&[2, 2], &[-1.5, 0.0, 2.5, -0.0]);
        let out = run_one(&DEF, &[input], Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(out.values::<f32>(), [0.0, 0.0, 2.5, 0.0]);
        let input = Tensor::f16(&[3], &[-1.5, 0.25, 65504.0]);
        let out = run_one(&DEF, &[input], Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(out.halves(), [0.0, 0.25, 65504.0]);
    }

    #[test]
    fn stored_values_are_held_at_the_zero_point() {
        let input = Tensor::u8(&[4], &[0, 9, 10, 255], 0.5, 10);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 10);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<u8>(), [10, 10, 10, 255]);
        let input = Tensor::i8(&[3], &[-128, -5, 127], 0.5, -6);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, -6);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<i8>(), [-6, -5, 127]);
    }

    /// Scale rule: NNAPI wants the input's scale here, TFLite rescales, and converted models rely
    /// on it (a super-resolution network ends so). Equal scales give the same answer either way.
    #[test]
    fn an_output_with_its_own_scale_is_rescaled() {
        // Real values -1, 0, 1.5, 40 at scale 0.5, zero point 10; then at scale 0.25, zero point 4.
        let input = Tensor::u8(&[4], &[8, 10, 13, 90], 0.5, 10);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 4);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<u8>(), [4, 4, 10, 164]);
    }
}
