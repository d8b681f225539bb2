//! RELU6: `min(6, max(0, x))`.
//!
//! Input: a tensor of up to 4 dimensions. Output: the same shape; quantized types keep the input's
//! scale and zero point, or are rescaled where the output has its own.
//!
//! Source: NNAPI `types.hal`, `OperationType::RELU6`.

use burst_hal::{FusedActivation, OperationType};

use crate::OpError;
use crate::kernels::lut::Table;
use crate::op::{OpDef, OpTraits, Plain, Prepared, Run};
use crate::ops::activation::clamp;
use crate::tensor::{Args, TensorInfo};

/// The definition of RELU6.
pub static DEF: OpDef = OpDef {
    code: OperationType::Relu6,
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
    clamp::execute(run, FusedActivation::Relu6)
}

fn table(input: &TensorInfo, output: &TensorInfo) -> Result<Table, OpError> {
    clamp::table(input, output, FusedActivation::Relu6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};
    use burst_hal::OperandType;

    #[test]
    fn values_are_held_between_zero_and_six() {
        let input = Tensor::f32(&[4], &[-2.0, 5.5, 6.0, 7.0]);
        let out = run_one(&DEF, &[input], Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(out.values::<f32>(), [0.0, 5.5, 6.0, 6.0]);
        let input = Tensor::i8(&[4], &[-128, -100, -20, 127], 0.0625, -120);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.0625, -120);
        // 6 is 96 steps above -120.
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<i8>(), [-120, -100, -24, -24]);
    }

    #[test]
    fn not_a_number_stays() {
        let input = Tensor::f32(&[1], &[f32::NAN]);
        let out = run_one(&DEF, &[input], Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert!(out.values::<f32>()[0].is_nan());
    }
}
