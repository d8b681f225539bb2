//! SOFTMAX: `e^(beta * (x - max))` over the sum of these along an axis.
//!
//! Inputs: a tensor of up to 4 dimensions, a float scalar (beta, above 0 and finite), an optional INT32 scalar
//! (the axis; default: the last). Output: the same shape; quantized types have scale 1/256 and the
//! lowest value as zero point.
//!
//! Source: NNAPI `types.hal`, `OperationType::SOFTMAX`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::OperationType;
use smallvec::SmallVec;

use crate::OpError;
use crate::kernels::Isa;
use crate::kernels::lanes::Lanes;
use crate::kernels::quant::type_range;
use crate::kernels::softmax::{ExpTable, softmax_lane};
use crate::op::types::{F16, F32, I32, TF16, TF32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, Kernel, OpDef, OpTraits, Parsed, PrepareContext, Prepared, Run, Signature,
    WithAttributes,
};
use crate::ops::activation::float_lanes::FloatLanes;
use crate::ops::activation::{MAX_RANK, SoftmaxAttributes, unary};
use crate::ops::attributes::Axis;
use crate::ops::quantization::rules::{expect_fixed, quant8};
use crate::tensor::Args;

/// The definition of SOFTMAX.
pub static DEF: OpDef = OpDef {
    code: OperationType::Softmax,
    validate,
    body: &WithAttributes {
        parse: SoftmaxAttributes::parse,
        infer,
        prepare: Some(prepare),
        execute,
    },
    traits: OpTraits::PLAIN,
};

const COUNTS: &[(usize, burst_hal::HalVersion)] = &[(2, V1_0), (3, V1_2)];

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, F32, I32], &[TF32]).counts(COUNTS),
    Form::new(V1_0, &[TQ8, F32, I32], &[TQ8]).counts(COUNTS),
    Form::new(V1_2, &[TF16, F16, I32], &[TF16]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, F32, I32], &[TQ8S]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    let rank = signature.input(0).map_or(0, |input| input.dimensions.len());
    let old_rank = signature.version >= V1_2 || rank == 2 || rank == 4;
    signature.rule(old_rank, "before HAL 1.2 SOFTMAX takes 2 or 4 dimensions")
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, SoftmaxAttributes>) -> Result<Inferred, OpError> {
    let output = unary::output_info(args)?;
    expect_fixed(output, 1.0 / 256.0, 0)?;
    let shape = unary::infer(args, MAX_RANK)?;
    let SoftmaxAttributes { axis, beta } = *attributes?;
    axis.position(args.dims(0)?.len())?;
    if let Some(quant) = quant8(args.input(0)?.info) {
        ExpTable::check(beta, quant.scale)?;
    }
    Ok(shape)
}

fn prepare(
    args: &Args<'_>,
    attributes: &SoftmaxAttributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    let Some(quant) = quant8(args.input(0)?.info) else {
        return Ok(Some(floats(*attributes, context.isa).prepared()));
    };
    let table = ExpTable::new(attributes.beta, quant.scale)?;
    let kernel = Box::new(TableKernel { table, axis: attributes.axis });
    Ok(Some(Prepared { kernel, packed_inputs: SmallVec::new() }))
}

fn execute(run: &mut Run<'_, '_>, attributes: &SoftmaxAttributes) -> Result<(), OpError> {
    let SoftmaxAttributes { axis, beta } = *attributes;
    if let Some(quant) = quant8(run.input(0)?.info) {
        return quantized(run, &ExpTable::new(beta, quant.scale)?, axis);
    }
    floats(*attributes, Isa::PORTABLE).run(run)
}

fn floats(attributes: SoftmaxAttributes, isa: Isa) -> FloatLanes {
    FloatLanes { function: softmax_lane, attributes, isa, name: "softmax of floats" }
}

fn quantized(run: &mut Run<'_, '_>, table: &ExpTable, axis: Axis) -> Result<(), OpError> {
    let input = run.input(0)?;
    let lanes = Lanes::new(input.dims, axis.position(input.dims.len())?);
    let (low, _) = type_range(input.info.ty);
    let stop = run.stop;
    table.softmax(&lanes, low, input.u8()?, run.output(0)?.u8_mut()?, stop)
}

/// The exponentials worked out for a known beta.
#[derive(Debug)]
struct TableKernel {
    table: ExpTable,
    axis: Axis,
}

impl Kernel for TableKernel {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        quantized(run, &self.table, self.axis)
    }

    fn held_bytes(&self) -> usize {
        size_of::<ExpTable>()
    }

    fn name(&self) -> &'static str {
        "table of 256 exponentials"
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};
    use burst_hal::HalVersion;

    const F32_OUT: OperandType = OperandType::TensorFloat32;

    fn close(got: &[f32], want: &[f32]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-6, "{got} against {want}");
        }
    }

    #[test]
    fn along_the_last_axis_and_along_the_first() {
        // Logarithms of 1, 3 and of 2, 2.
        let input = Tensor::f32(&[2, 2], &[0.0, 3f32.ln(), 2f32.ln(), 2f32.ln()]);
        let beta = Tensor::scalar_f32(1.0);
        let inputs = [input.clone(), beta.clone()];
        let out = run_one(&DEF, &inputs, Tensor::output(F32_OUT)).unwrap();
        close(&out.values::<f32>(), &[0.25, 0.75, 0.5, 0.5]);
        let inputs = [input, beta, Tensor::scalar_i32(-2)];
        let out = run_one(&DEF, &inputs, Tensor::output(F32_OUT)).unwrap();
        close(&out.values::<f32>(), &[1.0 / 3.0, 0.6, 2.0 / 3.0, 0.4]);
    }

    #[test]
    fn beta_sharpens() {
        let inputs = [Tensor::f32(&[1, 2], &[0.0, 3f32.ln()]), Tensor::scalar_f32(2.0)];
        let out = run_one(&DEF, &inputs, Tensor::output(F32_OUT)).unwrap();
        close(&out.values::<f32>(), &[0.1, 0.9]);
        let inputs = [Tensor::f16(&[1, 2], &[1.0, 1.0]), Tensor::scalar_f16(2.0)];
        let out = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(out.halves(), [0.5, 0.5]);
    }

    #[test]
    fn quantized_along_both_axes() {
        // A difference of 11 steps of 0.1 is e^-1.1 = 0.33287: shares 0.75026 and 0.24974.
        let values = [100, 111, 7, 7];
        let out = || Tensor::output(OperandType::TensorQuant8Asymm).quantized(1.0 / 256.0, 0);
        let beta = Tensor::scalar_f32(1.0);
        let input = Tensor::u8(&[2, 2], &values, 0.1, 0);
        let got = run_one(&DEF, &[input, beta.clone()], out()).unwrap();
        assert_eq!(got.values::<u8>(), [64, 192, 128, 128]);
        let columns = Tensor::u8(&[2, 2], &[100, 7, 111, 7], 0.1, 0);
        let got = run_one(&DEF, &[columns, beta, Tensor::scalar_i32(0)], out()).unwrap();
        assert_eq!(got.values::<u8>(), [64, 128, 192, 128]);
    }

    #[test]
    fn beta_must_be_above_zero_and_the_output_scale_fixed() {
        let run = |beta: f32, scale: f32| {
            let input = Tensor::u8(&[1, 2], &[1, 2], 0.1, 0);
            let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(scale, 0);
            run_one(&DEF, &[input, Tensor::scalar_f32(beta)], out)
        };
        assert!(run(1.0, 1.0 / 256.0).is_ok());
        assert!(run(0.0, 1.0 / 256.0).is_err());
        assert!(run(-1.0, 1.0 / 256.0).is_err());
        assert!(run(f32::NAN, 1.0 / 256.0).is_err());
        assert!(run(f32::INFINITY, 1.0 / 256.0).is_err());
        assert!(run(1.0, 1.0 / 128.0).is_err());
    }

    /// Infinity times the difference 0 of the largest value to itself is NaN.
    #[test]
    fn an_infinite_beta_is_refused_for_floats() {
        let input = || Tensor::f32(&[1, 2], &[1.0, 2.0]);
        for (beta, fits) in [(f32::INFINITY, false), (f32::NAN, false), (f32::MAX, true)] {
            let got = run_one(&DEF, &[input(), Tensor::scalar_f32(beta)], Tensor::output(F32_OUT));
            assert_eq!(got.map(|got| got.values::<f32>()).ok(), fits.then(|| vec![0.0, 1.0]));
        }
    }

    #[test]
    fn the_axis_is_new_in_1_2() {
        let types = [F32_OUT, OperandType::Float32, OperandType::Int32];
        assert!(has_form(&DEF, HalVersion::V1_2, &types, &types[..1]));
        assert!(!has_form(&DEF, HalVersion::V1_1, &types, &types[..1]));
    }

    #[test]
    fn empty_batches_are_fine() {
        let inputs = [Tensor::f32(&[0, 3], &[]), Tensor::scalar_f32(1.0)];
        let out = run_one(&DEF, &inputs, Tensor::output(F32_OUT)).unwrap();
        assert_eq!(out.dims.as_slice(), [0, 3]);
    }
}
