//! TANH: the hyperbolic tangent.
//!
//! Input: a tensor of up to 4 dimensions. Output: the same shape; quantized types have scale 1/128
//! and the middle value as zero point.
//!
//! Source: NNAPI `types.hal`, `OperationType::TANH`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::OperationType;

use crate::OpError;
use crate::kernels::functions;
use crate::kernels::lut::{self, Table};
use crate::op::types::{TF16, TF32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, PrepareContext, Prepared, Run, Signature};
use crate::ops::activation::{MAX_RANK, unary};
use crate::ops::float_map::FloatMap;
use crate::ops::quantization::rules::{expect_fixed, quant8};
use crate::tensor::{Args, TensorInfo};

/// The definition of TANH.
pub static DEF: OpDef = OpDef {
    code: OperationType::Tanh,
    validate,
    body: &Plain { infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32], &[TF32]),
    Form::new(V1_2, &[TF16], &[TF16]),
    Form::new(V1_2, &[TQ8], &[TQ8]),
    Form::new(V1_3, &[TQ8S], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    expect_fixed(unary::output_info(args)?, 1.0 / 128.0, 128)?;
    unary::infer(args, MAX_RANK)
}

fn prepare(args: &Args<'_>, context: &PrepareContext<'_>) -> Result<Option<Prepared>, OpError> {
    let floats = FloatMap { function: functions::tanh_all, name: "tanh of floats" };
    match floats.prepare(args, context)? {
        Some(kernel) => Ok(Some(kernel)),
        None => unary::prepare(args, table),
    }
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, functions::tanh, table)
}

fn table(input: &TensorInfo, output: &TensorInfo) -> Result<Table, OpError> {
    match (quant8(input), quant8(output)) {
        (Some(input), Some(output)) => Ok(lut::real_table(input, output, f32::tanh)),
        _ => Err(OpError::Type { want: "an 8-bit asymmetric type", got: input.ty }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};
    use burst_hal::HalVersion;
    use burst_hal::OperandType;

    #[test]
    fn floats() {
        let input = Tensor::f32(&[3], &[0.0, 100.0, -100.0]);
        let out = run_one(&DEF, &[input], Tensor::output(OperandType::TensorFloat32)).unwrap();
        assert_eq!(out.values::<f32>(), [0.0, 1.0, -1.0]);
    }

    #[test]
    fn quantized() {
        // Real -5, 0, 0.5, 5: -0.9999, 0, 0.46212, 0.9999 of 128 steps.
        let input = Tensor::u8(&[4], &[78, 128, 133, 178], 0.1, 128);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0 / 128.0, 128);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<u8>(), [0, 128, 187, 255]);
        let input = Tensor::i8(&[4], &[-50, 0, 5, 50], 0.1, 0);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(1.0 / 128.0, 0);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<i8>(), [-128, 0, 59, 127]);
    }

    #[test]
    fn quantized_since_1_2() {
        let types = [OperandType::TensorQuant8Asymm];
        assert!(!has_form(&DEF, HalVersion::V1_1, &types, &types));
        assert!(has_form(&DEF, HalVersion::V1_2, &types, &types));
    }
}
