//! RESIZE_NEAREST_NEIGHBOR: pictures of another size, each pixel the nearest of the input.
//!
//! Operands as for RESIZE_BILINEAR; the layout must be given.
//!
//! Source: NNAPI `types.hal`, `OperationType::RESIZE_NEAREST_NEIGHBOR`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{HalVersion, OperandType, OperationType};

use crate::OpError;
use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32, TQ8, TQ8S};
use crate::op::{Form, OpDef, OpTraits, Run, Signature, WithAttributes};
use crate::ops::attributes::ResizeAttributes;
use crate::ops::pooling::resizing;

/// The definition of RESIZE_NEAREST_NEIGHBOR.
pub static DEF: OpDef = OpDef {
    code: OperationType::ResizeNearestNeighbor,
    validate,
    body: &WithAttributes {
        parse: ResizeAttributes::parse,
        infer: resizing::infer,
        prepare: None,
        execute,
    },
    traits: OpTraits::PLAIN,
};

const COUNTS: &[(usize, HalVersion)] = &[(4, V1_2), (5, V1_3), (6, V1_3)];

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, I32, I32, BOOL, BOOL, BOOL], &[TF32]).counts(COUNTS),
    Form::new(V1_2, &[TF32, F32, F32, BOOL, BOOL, BOOL], &[TF32]).counts(COUNTS),
    Form::new(V1_2, &[TF16, I32, I32, BOOL, BOOL, BOOL], &[TF16]).counts(COUNTS),
    Form::new(V1_2, &[TF16, F16, F16, BOOL, BOOL, BOOL], &[TF16]).counts(COUNTS),
    Form::new(V1_2, &[TQ8, I32, I32, BOOL, BOOL, BOOL], &[TQ8]).counts(COUNTS),
    Form::new(V1_2, &[TQ8, F32, F32, BOOL, BOOL, BOOL], &[TQ8]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, I32, I32, BOOL, BOOL, BOOL], &[TQ8S]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, F32, F32, BOOL, BOOL, BOOL], &[TQ8S]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn execute(run: &mut Run<'_, '_>, attributes: &ResizeAttributes) -> Result<(), OpError> {
    let (input, stop) = (run.input(0)?, run.stop);
    let (resize, _) = resizing::sizes(attributes, input.dims)?;
    let out = run.output(0)?;
    match out.info.ty {
        OperandType::TensorFloat32 => resize.nearest(input.f32()?, out.f32_mut()?, stop),
        OperandType::TensorFloat16 => resize.nearest(input.f16()?, out.f16_mut()?, stop),
        _ => resize.nearest(input.u8()?, out.u8_mut()?, stop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    fn run(input: Tensor, w: i32, h: i32, flags: &[bool]) -> Tensor {
        let out = Tensor::output(input.info.ty).quantized(input.info.scale, input.info.zero_point);
        let mut inputs = vec![input, Tensor::scalar_i32(w), Tensor::scalar_i32(h)];
        inputs.extend(flags.iter().map(|flag| Tensor::scalar_bool(*flag)));
        run_one(&DEF, &inputs, out).unwrap()
    }

    #[test]
    fn every_alignment() {
        let input = || Tensor::f32(&[1, 1, 3, 1], &[1.0, 2.0, 3.0]);
        // Ratio 3/5: 0, 0.6, 1.2, 1.8, 2.4 rounded down.
        let got = run(input(), 5, 1, &[false]);
        assert_eq!(got.values::<f32>(), [1.0, 1.0, 2.0, 2.0, 3.0]);
        // Ratio 2/4: 0, 0.5, 1, 1.5, 2 rounded, halves up.
        let got = run(input(), 5, 1, &[false, true]);
        assert_eq!(got.values::<f32>(), [1.0, 2.0, 2.0, 3.0, 3.0]);
        // 0.3, 0.9, 1.5, 2.1, 2.7 rounded down.
        let got = run(input(), 5, 1, &[false, false, true]);
        assert_eq!(got.values::<f32>(), [1.0, 1.0, 2.0, 3.0, 3.0]);
    }

    #[test]
    fn layouts_and_types() {
        let got = run(Tensor::u8(&[1, 2, 1, 2], &[1, 2, 3, 4], 0.5, 1), 3, 2, &[true]);
        assert_eq!(got.dims.as_slice(), [1, 2, 2, 3]);
        assert_eq!(got.values::<u8>(), [1, 1, 2, 1, 1, 2, 3, 3, 4, 3, 3, 4]);
        let got = run(Tensor::i8(&[1, 1, 2, 2], &[-1, 2, -3, 4], 0.5, 1), 3, 1, &[false]);
        assert_eq!(got.values::<i8>(), [-1, 2, -1, 2, -3, 4]);
        let got = run(Tensor::f16(&[1, 1, 1, 1], &[0.5]), 2, 1, &[false]);
        assert_eq!(got.halves(), [0.5, 0.5]);
    }

    #[test]
    fn the_layout_must_be_given() {
        let types =
            [OperandType::TensorFloat32, OperandType::Int32, OperandType::Int32, OperandType::Bool];
        assert!(has_form(&DEF, HalVersion::V1_2, &types, &types[..1]));
        assert!(!has_form(&DEF, HalVersion::V1_2, &types[..3], &types[..1]));
        assert!(!has_form(&DEF, HalVersion::V1_1, &types, &types[..1]));
    }
}
