//! DEQUANTIZE: from quantized values to the real numbers they stand for.
//!
//! Input: a quantized tensor. Output: a float tensor of the same shape,
//! `scale * (stored - zero point)`; per-channel types have one scale per index of a dimension.
//!
//! Source: NNAPI `types.hal`, `OperationType::DEQUANTIZE`.

#![allow(clippy::cast_precision_loss, reason = "differences of 8-bit values are exact in f32")]

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use half::f16;
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::lanes::Lanes;
use crate::kernels::lut::Quant8;
use crate::kernels::{Isa, quantize};
use crate::op::types::{TF16, TF32, TQ8, TQ8PC, TQ8S, TQ8SYMM};
use crate::op::{
    Form, Inferred, Kernel, OpDef, OpTraits, Plain, PrepareContext, Prepared, Run, Signature,
};
use crate::ops::quantization::rules::quant8;
use crate::ops::rank_limit::expect_rank;
use crate::tensor::{Args, TensorInfo, TensorRef};
use crate::threads::{TileRunner, Tiling};

/// The definition of DEQUANTIZE.
pub static DEF: OpDef = OpDef {
    code: OperationType::Dequantize,
    validate,
    body: &Plain { infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TQ8], &[TF32]),
    Form::new(V1_2, &[TQ8.or(TQ8SYMM).or(TQ8PC)], &[TF32.or(TF16)]),
    Form::new(V1_3, &[TQ8S], &[TF32.or(TF16)]),
];

/// Most dimensions of an input.
const MAX_RANK: usize = 4;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let dims = args.dims(0)?;
    expect_rank(dims, MAX_RANK)?;
    if let Some((scales, dim)) = &args.input(0)?.info.channel_scales
        && dims.get(*dim).is_none_or(|size| *size as usize != scales.len())
    {
        return Err(OpError::shape("one scale per channel", dims, &[]));
    }
    Ok(Inferred::one(dims))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let input = run.input(0)?;
    let (out, mut runner) = run.output_and_runner()?;
    match out.info.ty {
        OperandType::TensorFloat32 => dequantize(&mut runner, &input, out.f32_mut()?, |x| x),
        _ => dequantize(&mut runner, &input, out.f16_mut()?, f16::from_f32),
    }
}

fn dequantize<T: Send>(
    runner: &mut TileRunner<'_>,
    input: &TensorRef<'_>,
    out: &mut [T],
    store: impl Fn(f32) -> T + Sync,
) -> Result<(), OpError> {
    let TensorInfo { scale, zero_point, .. } = *input.info;
    let real = |stored: i32, scale: f32| store(scale * (stored - zero_point) as f32);
    if let Some((scales, dim)) = &input.info.channel_scales {
        let lanes = Lanes::new(input.dims, *dim);
        let rows = input.i8()?.chunks(lanes.inner.max(1));
        let rows = rows.zip(out.chunks_mut(lanes.inner.max(1)));
        let mut checkpoints = runner.stop.checkpoints();
        for ((stored, out), scale) in rows.zip(scales.iter().cycle()) {
            checkpoints.after(out.len())?;
            for (out, stored) in out.iter_mut().zip(stored) {
                *out = real(i32::from(*stored), *scale);
            }
        }
        Ok(())
    } else if input.info.ty == OperandType::TensorQuant8Asymm {
        runner.map(input.u8()?, out, 1, |stored| real(i32::from(stored), scale))
    } else {
        runner.map(input.i8()?, out, 1, |stored| real(i32::from(stored), scale))
    }
}

/// The kernel of asymmetric types to 32-bit floats.
#[derive(Debug)]
struct Bytes {
    quant: Quant8,
    isa: Isa,
}

fn prepare(args: &Args<'_>, context: &PrepareContext<'_>) -> Result<Option<Prepared>, OpError> {
    let is_float =
        args.outputs.first().is_some_and(|(out, _)| out.ty == OperandType::TensorFloat32);
    let Some(quant) = quant8(args.input(0)?.info).filter(|_| is_float) else { return Ok(None) };
    let kernel = Box::new(Bytes { quant, isa: context.isa });
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::new() }))
}

/// Bytes that are read and written for each value.
const VALUE_BYTES: usize = 5;

impl Kernel for Bytes {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let input = run.input(0)?.bytes.ok_or(OpError::Omitted { index: 0 })?;
        let (out, mut runner) = run.output_and_runner()?;
        let out = out.f32_mut()?;
        if input.len() != out.len() {
            return Err(OpError::Internal { what: "an output has not its input's length" });
        }
        runner.tiles(&Tiling::values(VALUE_BYTES * out.len()), out, |first, out, _| {
            quantize::bytes(self.isa, &input[first..][..out.len()], self.quant, out);
            Ok(())
        })
    }

    fn name(&self) -> &'static str {
        "8 bit to floats"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};
    use burst_hal::HalVersion;

    #[test]
    fn every_type() {
        let floats = || Tensor::output(OperandType::TensorFloat32);
        let input = Tensor::u8(&[3], &[0, 10, 255], 0.5, 10);
        assert_eq!(run_one(&DEF, &[input], floats()).unwrap().values::<f32>(), [-5.0, 0.0, 122.5]);
        let input = Tensor::i8(&[3], &[-128, 10, 127], 0.5, 10);
        assert_eq!(run_one(&DEF, &[input], floats()).unwrap().values::<f32>(), [-69.0, 0.0, 58.5]);
        let symmetric: [i8; 2] = [-128, 2];
        let input = Tensor::new(OperandType::TensorQuant8Symm, &[2], &symmetric).quantized(2.0, 0);
        let out = run_one(&DEF, &[input], Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(out.halves(), [-256.0, 4.0]);
    }

    #[test]
    fn channels_have_scales_of_their_own() {
        let values: [i8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
        for (dim, want) in [
            (0, [1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 70.0, 80.0]),
            (1, [1.0, 2.0, 30.0, 40.0, 5.0, 6.0, 70.0, 80.0]),
            (2, [1.0, 20.0, 3.0, 40.0, 5.0, 60.0, 7.0, 80.0]),
        ] {
            let mut input =
                Tensor::new(OperandType::TensorQuant8SymmPerChannel, &[2, 2, 2], &values);
            input.info.channel_scales = Some(([1.0, 10.0].into(), dim));
            let out = Tensor::output(OperandType::TensorFloat32);
            assert_eq!(run_one(&DEF, &[input], out).unwrap().values::<f32>(), want, "{dim}");
        }
    }

    #[test]
    fn halves_are_new_in_1_2() {
        let inputs = [OperandType::TensorQuant8Asymm];
        let half = [OperandType::TensorFloat16];
        assert!(!has_form(&DEF, HalVersion::V1_1, &inputs, &half));
        assert!(has_form(&DEF, HalVersion::V1_2, &inputs, &half));
        assert!(has_form(&DEF, HalVersion::V1_0, &inputs, &[OperandType::TensorFloat32]));
    }
}
