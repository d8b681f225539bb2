//! MEAN: the arithmetic mean along some axes.
//!
//! Inputs: a tensor of up to 4 dimensions, a 1-D INT32 tensor (the axes), an INT32 scalar (above 0:
//! the axes stay with size 1). Output: the input's shape without the axes, `[1]` when nothing is
//! left.
//!
//! NNAPI's quantized output keeps the input's scale and zero point. Here it may have its own, and the mean is
//! brought to them: TFLite's does so and converted models rely on it, equal ones give the same answer either way,
//! and the step is part of the division.
//!
//! Source: NNAPI `types.hal`, `OperationType::MEAN`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "values are clamped to their 8-bit type before they are narrowed; counts are below 2^23"
)]

use burst_hal::HalVersion::{V1_1, V1_2, V1_3};
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::kernels::quant::{Multiplier, type_range};
use crate::kernels::reduce::Reduction;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::AxisList;
use crate::ops::quantization::rules::quant8;
use crate::ops::reduce::{MAX_RANK, ReduceAttributes, reduced_shape};
use crate::tensor::{Args, TensorInfo};

/// The definition of MEAN.
pub static DEF: OpDef = OpDef {
    code: OperationType::Mean,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TI32, I32], &[TF32]),
    Form::new(V1_1, &[TQ8, TI32, I32], &[TQ8]),
    Form::new(V1_2, &[TF16, TI32, I32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TI32, I32], &[TQ8S]),
];

/// Most 8-bit values that go into one mean: their sum must fit in 32 bits.
const MAX_COUNT: usize = 1 << 23;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn parse(operands: &dyn Operands) -> Result<ReduceAttributes, OpError> {
    Ok(ReduceAttributes { axes: AxisList::parse(operands, 1)?, keep: operands.i32(2)? > 0 })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, ReduceAttributes>) -> Result<Inferred, OpError> {
    let dims = args.dims(0)?;
    let ReduceAttributes { axes, keep } = *attributes?;
    let axes = axes.of(dims.len())?;
    let shape = reduced_shape(dims, MAX_RANK, axes, keep)?;
    if let (Some(_), Some((output, _))) = (quant8(args.input(0)?.info), args.outputs.first()) {
        let count = Reduction::new(dims, |axis| axes.has(axis)).count();
        Rescale::new(args.input(0)?.info, output, count)?;
    }
    Ok(Inferred::one(shape))
}

fn execute(run: &mut Run<'_, '_>, attributes: &ReduceAttributes) -> Result<(), OpError> {
    let input = run.input(0)?;
    let axes = attributes.axes.of(input.dims.len())?;
    let reduction = Reduction::new(input.dims, |axis| axes.has(axis));
    let count = reduction.count();
    let Run { outputs, scratch, stop, .. } = run;
    let stop = *stop;
    let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    let info = out.info;
    match info.ty {
        OperandType::TensorFloat32 => {
            let sums = out.f32_mut()?;
            sums.fill(0.0);
            reduction.fold(input.f32()?, sums, stop, |sum, x| sum + x)?;
            for sum in sums {
                *sum /= count as f32;
            }
        }
        OperandType::TensorFloat16 => {
            let out = out.f16_mut()?;
            let sums = scratch.f32(out.len())?;
            sums.fill(0.0);
            reduction.fold(input.f16()?, sums, stop, |sum, x| sum + x.to_f32())?;
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = f16::from_f32(*sum / count as f32);
            }
        }
        OperandType::TensorQuant8AsymmSigned => {
            let rescale = Rescale::new(input.info, info, count)?;
            let out = out.i8_mut()?;
            let sums = scratch.i32(out.len())?;
            sums.fill(0);
            reduction.fold(input.i8()?, sums, stop, |sum, x| sum + i32::from(x))?;
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = rescale.apply(*sum) as i8;
            }
        }
        _ => {
            let rescale = Rescale::new(input.info, info, count)?;
            let out = out.u8_mut()?;
            let sums = scratch.i32(out.len())?;
            sums.fill(0);
            reduction.fold(input.u8()?, sums, stop, |sum, x| sum + i32::from(x))?;
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = rescale.apply(*sum) as u8;
            }
        }
    }
    Ok(())
}

/// From a sum of stored values to the stored value of the mean.
///
/// NNAPI's own reference truncates `sum / count`, but its vectors round to nearest, and so does
/// TFLite: it multiplies by one fixed-point number that holds both the change of scale and
/// `1 / count`. That is done here, so that models give TFLite's answer bit for bit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rescale {
    multiplier: Multiplier,
    /// What the sum would be if all values were real 0.
    sum_of_zeros: i32,
    zero_point: i32,
    range: (i32, i32),
}

impl Rescale {
    fn new(input: &TensorInfo, output: &TensorInfo, count: usize) -> Result<Self, OpError> {
        if count == 0 || count > MAX_COUNT {
            return Err(OpError::Range { what: "number of values in a quantized mean" });
        }
        let Multiplier { multiplier, shift } =
            Multiplier::new(f64::from(input.scale) / f64::from(output.scale))?;
        // Dividing a number shifted up by the bits of the count keeps 31 bits of precision. The
        // total shift may not go below -31.
        let bits = count.ilog2().min((31 + shift).max(0) as u32);
        let divided = (i64::from(multiplier) << bits) / count as i64;
        Ok(Rescale {
            multiplier: Multiplier {
                multiplier: divided as i32, // not above `multiplier`: `2^bits <= count`
                shift: shift - bits as i32,
            },
            sum_of_zeros: input.zero_point * count as i32,
            zero_point: output.zero_point,
            range: type_range(output.ty),
        })
    }

    fn apply(&self, sum: i32) -> i32 {
        let steps = self.multiplier.apply(sum - self.sum_of_zeros);
        steps.saturating_add(self.zero_point).clamp(self.range.0, self.range.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};
    use burst_hal::HalVersion;

    fn mean(input: Tensor, axes: &[i32], keep: i32, out: Tensor) -> Result<Tensor, OpError> {
        let count = u32::try_from(axes.len()).unwrap();
        run_one(&DEF, &[input, Tensor::i32(&[count], axes), Tensor::scalar_i32(keep)], out)
    }

    #[test]
    fn axes_from_both_ends_named_twice_kept_or_not() {
        let input = || Tensor::f32(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 9.0]);
        let out = || Tensor::output(OperandType::TensorFloat32);
        for (axes, keep, dims, want) in [
            (&[0][..], 0, &[3][..], &[2.5, 3.5, 6.0][..]),
            (&[-2, 0], 1, &[1, 3], &[2.5, 3.5, 6.0]),
            (&[1], 0, &[2], &[2.0, 6.0]),
            (&[1], -1, &[2], &[2.0, 6.0]),
            (&[0, 1], 0, &[1], &[4.0]),
            (&[0, -1], 2, &[1, 1], &[4.0]),
            (&[], 0, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 9.0]),
        ] {
            let got = mean(input(), axes, keep, out()).unwrap();
            assert_eq!(got.dims.as_slice(), dims, "{axes:?}");
            assert_eq!(got.values::<f32>(), want, "{axes:?}");
        }
        assert!(mean(input(), &[2], 0, out()).is_err());
        assert!(mean(input(), &[-3], 0, out()).is_err());
    }

    #[test]
    fn halves_are_rounded_once() {
        // 2048 + 1 + 1 is not exact in half precision step by step; the mean 683.333 is 683.5.
        let input = Tensor::f16(&[3], &[2048.0, 1.0, 1.0]);
        let got = mean(input, &[0], 0, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(got.halves(), [683.5]);
    }

    /// Rounding to nearest, where NNAPI's reference kernel would truncate: its own vectors and
    /// TFLite's kernels round.
    #[test]
    fn quantized_means_are_rounded_to_nearest() {
        let u8s = |values: &[u8; 2]| {
            let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, 10);
            mean(Tensor::u8(&[2], values, 0.5, 10), &[0], 0, out).unwrap().values::<u8>()[0]
        };
        assert_eq!(u8s(&[11, 12]), 12); // real 0.5 and 1.0: 1.5 steps above the zero point
        assert_eq!(u8s(&[8, 9]), 9); // 1.5 steps below it: the fixed-point product rounds ties up
        assert_eq!(u8s(&[7, 9]), 8);
        assert_eq!(u8s(&[255, 255]), 255);
        let out = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.5, 0);
        let input = Tensor::i8(&[2, 3], &[-1, -1, 0, 127, 127, 126], 0.5, 0);
        let got = mean(input, &[1], 0, out).unwrap();
        assert_eq!(got.values::<i8>(), [-1, 127]); // -2/3 and 126 2/3
    }

    /// Scale rule: NNAPI keeps the input's scale; TFLite rescales, and converted models do so.
    #[test]
    fn an_output_with_its_own_scale_is_rescaled() {
        // Real mean of 1, 2, 6 is 3: 12 steps of 0.25 above 4.
        let input = Tensor::u8(&[3], &[2, 4, 12], 0.5, 0);
        let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.25, 4);
        assert_eq!(mean(input, &[0], 0, out).unwrap().values::<u8>(), [16]);
    }

    /// Division by zero: an empty axis has no mean, and is refused.
    #[test]
    fn nothing_has_no_mean() {
        let out = Tensor::output(OperandType::TensorFloat32);
        assert!(mean(Tensor::f32(&[2, 0], &[]), &[1], 0, out).is_err());
    }

    #[test]
    fn forms_by_version() {
        let types = |ty| ([ty, OperandType::TensorInt32, OperandType::Int32], [ty]);
        for (ty, since) in [
            (OperandType::TensorFloat32, HalVersion::V1_1),
            (OperandType::TensorQuant8Asymm, HalVersion::V1_1),
            (OperandType::TensorFloat16, HalVersion::V1_2),
            (OperandType::TensorQuant8AsymmSigned, HalVersion::V1_3),
        ] {
            let (inputs, outputs) = types(ty);
            for version in [HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3] {
                assert_eq!(has_form(&DEF, version, &inputs, &outputs), version >= since, "{ty}");
            }
        }
    }
}
