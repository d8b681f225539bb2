//! LOGISTIC: `1 / (1 + e^-x)`.
//!
//! Input: a tensor of up to 4 dimensions. Output: the same shape; quantized types have scale 1/256
//! and the lowest value as zero point.
//!
//! Source: NNAPI `types.hal`, `OperationType::LOGISTIC`.

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

/// The definition of LOGISTIC.
pub static DEF: OpDef = OpDef {
    code: OperationType::Logistic,
    validate,
    body: &Plain { infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32], &[TF32]),
    Form::new(V1_0, &[TQ8], &[TQ8]),
    Form::new(V1_2, &[TF16], &[TF16]),
    Form::new(V1_3, &[TQ8S], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    expect_fixed(unary::output_info(args)?, 1.0 / 256.0, 0)?;
    unary::infer(args, MAX_RANK)
}

fn prepare(args: &Args<'_>, context: &PrepareContext<'_>) -> Result<Option<Prepared>, OpError> {
    let floats = FloatMap { function: functions::logistic_all, name: "logistic of floats" };
    match floats.prepare(args, context)? {
        Some(kernel) => Ok(Some(kernel)),
        None => unary::prepare(args, table),
    }
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    unary::execute(run, functions::logistic, table)
}

/// For tables, as exact as floats are: a stored value that is off by one would be another one.
fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

fn table(input: &TensorInfo, output: &TensorInfo) -> Result<Table, OpError> {
    match (quant8(input), quant8(output)) {
        (Some(input), Some(output)) => Ok(lut::real_table(input, output, logistic)),
        _ => Err(OpError::Type { want: "an 8-bit asymmetric type", got: input.ty }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};
    use burst_hal::OperandType;

    #[test]
    fn floats() {
        let input = Tensor::f32(&[4], &[0.0, 3f32.ln(), -200.0, 200.0]);
        let out = run_one(&DEF, &[input], Tensor::output(OperandType::TensorFloat32)).unwrap();
        let out = out.values::<f32>();
        assert_eq!([out[0], out[2], out[3]], [0.5, 0.0, 1.0]);
        assert!((out[1] - 0.75).abs() < 1e-6);
        let out =
            run_one(&DEF, &[Tensor::f16(&[1], &[0.0])], Tensor::output(OperandType::TensorFloat16));
        assert_eq!(out.unwrap().halves(), [0.5]);
    }

    /// Rounding: the real value in `f32`, rounded to the nearest step, as TFLite's reference does
    /// it by table. Fixed-point versions differ from it by one step here and there.
    #[test]
    fn quantized_values_are_rounded_to_the_nearest_step() {
        // Real -1, 0, 1, 10: 0.26894, 0.5, 0.73106, 0.99995 of 256 steps.
        let input = Tensor::u8(&[4], &[118, 128, 138, 228], 0.1, 128);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0 / 256.0, 0);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<u8>(), [69, 128, 187, 255]);
        let input = Tensor::i8(&[4], &[-10, 0, 10, 100], 0.1, 0);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(1.0 / 256.0, -128);
        assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<i8>(), [-59, 0, 59, 127]);
    }

    #[test]
    fn another_output_scale_is_refused() {
        let input = Tensor::u8(&[1], &[118], 0.1, 128);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0 / 128.0, 0);
        assert!(run_one(&DEF, &[input], out).is_err());
    }
}
