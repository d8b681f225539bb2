//! INSTANCE_NORMALIZATION: each channel of each picture brought to one mean and variance.
//!
//! Inputs: a tensor of 4 dimensions, three float scalars (gamma, beta, epsilon), a BOOL scalar (the
//! layout). Output: the same shape, `gamma * (x - mean) / sqrt(variance + epsilon) + beta`.
//!
//! Source: NNAPI `types.hal`, `OperationType::INSTANCE_NORMALIZATION`.

use burst_hal::HalVersion::V1_2;
use burst_hal::{OperandType, OperationType};
use half::f16;

use crate::OpError;
use crate::kernels::norm::instance;
use crate::op::types::{BOOL, F16, F32, TF16, TF32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::Layout;
use crate::tensor::Args;

/// The definition of INSTANCE_NORMALIZATION.
pub static DEF: OpDef = OpDef {
    code: OperationType::InstanceNormalization,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, F32, F32, F32, BOOL], &[TF32]),
    Form::new(V1_2, &[TF16, F16, F16, F16, BOOL], &[TF16]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug)]
struct Attributes {
    /// Gamma, beta and epsilon.
    parameters: (f32, f32, f32),
    layout: Layout,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    Ok(Attributes {
        parameters: (operands.float(1)?, operands.float(2)?, operands.float(3)?),
        layout: Layout::required(operands, 4)?,
    })
}

fn infer(args: &Args<'_>, _: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    let dims = args.dims(0)?;
    if dims.len() != 4 || dims.contains(&0) {
        return Err(OpError::shape("pictures that must not be empty", dims, &[0; 4]));
    }
    Ok(Inferred::one(dims))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    let input = run.input(0)?;
    let Attributes { parameters, layout } = *attributes;
    let dims = <[u32; 4]>::try_from(input.dims)
        .map_err(|_| OpError::shape("the shape of a picture", input.dims, &[0; 4]))?;
    let [_, height, width, channels] = layout.sizes(dims).map(|size| size as usize);
    // Channels first, a picture of one channel after the other is normalised.
    let channels = if layout == Layout::Nchw { 1 } else { channels };
    let picture = height * width * channels;
    let picture = picture.max(1);
    let Run { outputs, scratch, stop, .. } = run;
    let checkpoints = &mut stop.checkpoints();
    let out = outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
    let scratch = scratch.f32(2 * channels)?;
    match out.info.ty {
        OperandType::TensorFloat32 => {
            let pictures = input.f32()?.chunks_exact(picture);
            for (input, out) in pictures.zip(out.f32_mut()?.chunks_exact_mut(picture)) {
                instance(input, out, (scratch, checkpoints), parameters, (|x| x, |x| x))?;
            }
        }
        _ => {
            let pictures = input.f16()?.chunks_exact(picture);
            for (input, out) in pictures.zip(out.f16_mut()?.chunks_exact_mut(picture)) {
                let convert = (f16::to_f32, f16::from_f32);
                instance(input, out, (scratch, checkpoints), parameters, convert)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    #[test]
    fn both_layouts() {
        let parameters = [2.0, 1.0, 0.0].map(Tensor::scalar_f32);
        let run = |dims: &[u32], values: &[f32], channels_first| {
            let mut inputs = vec![Tensor::f32(dims, values)];
            inputs.extend(parameters.clone());
            inputs.push(Tensor::scalar_bool(channels_first));
            run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat32))
        };
        // Channels 1 3 and 10 50: one deviation from the mean each. The second batch is the first,
        // turned round.
        let nhwc = [1.0, 10.0, 3.0, 50.0, 3.0, 50.0, 1.0, 10.0];
        let got = run(&[2, 1, 2, 2], &nhwc, false).unwrap();
        assert_eq!(got.values::<f32>(), [-1.0, -1.0, 3.0, 3.0, 3.0, 3.0, -1.0, -1.0]);
        let nchw = [1.0, 3.0, 10.0, 50.0];
        let got = run(&[1, 2, 1, 2], &nchw, true).unwrap();
        assert_eq!(got.values::<f32>(), [-1.0, 3.0, -1.0, 3.0]);
        assert!(run(&[1, 0, 1, 2], &[], true).is_err());
    }

    #[test]
    fn epsilon_keeps_a_flat_picture_from_a_division_by_zero() {
        let mut inputs = vec![Tensor::f16(&[1, 1, 2, 1], &[4.0, 4.0])];
        inputs.extend([2.0, 1.0, 0.25].map(Tensor::scalar_f16));
        inputs.push(Tensor::scalar_bool(false));
        let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert_eq!(got.halves(), [1.0, 1.0]);
    }
}
