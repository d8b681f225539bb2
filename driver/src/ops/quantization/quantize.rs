//! QUANTIZE: from real numbers to 8-bit steps.
//!
//! Input: a float tensor. Output: a quantized tensor of the same shape,
//! `zero point + round(x / scale)` held in the type's range; ties are rounded away from zero.
//!
//! Source: NNAPI `types.hal`, `OperationType::QUANTIZE`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::lut::Quant8;
use crate::kernels::{Isa, quantize};
use crate::op::types::{TF16, TF32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, Kernel, OpDef, OpTraits, Plain, PrepareContext, Prepared, Run, Signature,
};
use crate::ops::quantization::rules::quant8;
use crate::tensor::{Args, TensorMut};
use crate::threads::{TileRunner, Tiling, speed};

/// The definition of QUANTIZE.
pub static DEF: OpDef = OpDef {
    code: OperationType::Quantize,
    validate,
    body: &Plain { infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] =
    &[Form::new(V1_2, &[TF32.or(TF16)], &[TQ8]), Form::new(V1_3, &[TF32.or(TF16)], &[TQ8S])];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(args.dims(0)?))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (out, mut runner) = run.output_and_runner()?;
    match input.info.ty {
        OperandType::TensorFloat32 => store(&mut runner, input.f32()?, out, |x| x),
        _ => store(&mut runner, input.f16()?, out, half::f16::to_f32),
    }
}

fn store<T: Copy + Sync>(
    runner: &mut TileRunner<'_>,
    input: &[T],
    out: &mut TensorMut<'_>,
    load: impl Fn(T) -> f32 + Sync,
) -> Result<(), OpError> {
    let quant = rule(out)?;
    runner.map(input, out.u8_mut()?, 1, |x| quantize::stored(load(x), quant))
}

fn rule(out: &TensorMut<'_>) -> Result<Quant8, OpError> {
    let other = OpError::Type { want: "an 8-bit asymmetric type", got: out.info.ty };
    quant8(out.info).ok_or(other)
}

/// The kernel of 32-bit floats.
#[derive(Debug)]
struct Floats {
    isa: Isa,
}

fn prepare(args: &Args<'_>, context: &PrepareContext<'_>) -> Result<Option<Prepared>, OpError> {
    let kernel = Box::new(Floats { isa: context.isa });
    let is_float = args.input(0)?.info.ty == OperandType::TensorFloat32;
    Ok(is_float.then_some(Prepared { kernel, packed_inputs: SmallVec::new() }))
}

/// Values in a nanosecond: each is divided.
const VALUES: usize = 2;

impl Kernel for Floats {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?;
        let (out, mut runner) = run.output_and_runner()?;
        let (quant, input, out) = (rule(out)?, input.f32()?, out.u8_mut()?);
        if input.len() != out.len() {
            return Err(OpError::Internal { what: "an output has not its input's length" });
        }
        let tiling = Tiling { nanos: speed::nanos(&[out.len()], VALUES), ..Tiling::values(0) };
        runner.tiles(&tiling, out, |first, out, _| {
            quantize::floats(self.isa, &input[first..][..out.len()], quant, out);
            Ok(())
        })
    }

    fn name(&self) -> &'static str {
        "floats to 8 bit"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_fast, run_one};
    use burst_hal::HalVersion;

    #[test]
    fn ties_go_away_from_zero_and_ends_are_clamped() {
        let values = [0.0, 0.25, -0.25, 0.24, 1.0, -1000.0, 1000.0, f32::NAN];
        let input = Tensor::f32(&[8], &values);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 10);
        let got = run_one(&DEF, std::slice::from_ref(&input), out.clone()).unwrap();
        assert_eq!(got.values::<u8>(), [10, 11, 9, 10, 12, 0, 255, 10]);
        let fast = run_fast(&DEF, std::slice::from_ref(&input), &[out]).unwrap();
        assert_eq!(fast.expect("a kernel of floats")[0].values::<u8>(), got.values::<u8>());
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, -118);
        let got = run_one(&DEF, &[input], out).unwrap();
        assert_eq!(got.values::<i8>(), [-118, -117, -119, -118, -116, -128, 127, -118]);
        let half = Tensor::f16(&[2], &[1.0, -1.5]);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0, 100);
        assert_eq!(run_one(&DEF, &[half], out).unwrap().values::<u8>(), [101, 98]);
    }

    #[test]
    fn the_output_decides_the_version() {
        let inputs = [OperandType::TensorFloat32];
        let signed = [OperandType::TensorQuant8AsymmSigned];
        assert!(has_form(&DEF, HalVersion::V1_2, &inputs, &[OperandType::TensorQuant8Asymm]));
        assert!(!has_form(&DEF, HalVersion::V1_2, &inputs, &signed));
        assert!(has_form(&DEF, HalVersion::V1_3, &inputs, &signed));
    }
}
