//! AXIS_ALIGNED_BBOX_TRANSFORM: boxes moved and scaled by what a network found, cut to the image.
//!
//! Inputs: boxes `[rois, 4]`, deltas `[rois, classes * 4]` (dx, dy, dw, dh), the batch of each box,
//! image sizes `[batches, 2]` (height, width). Output: `[rois, classes * 4]` boxes.
//!
//! The centre moves by `dx`, `dy` sizes of the box, and the size is scaled by `exp(dw)`, `exp(dh)`.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::AXIS_ALIGNED_BBOX_TRANSFORM`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use crate::op::types::{TF16, TF32, TI32, TQ8, TQ8S, TQ16A};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::ops::detection::boxes::{Image, expect_ordered, refine};
use crate::ops::detection::reals::{Reals, RealsMut, expect, expect_eighths};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of AXIS_ALIGNED_BBOX_TRANSFORM.
pub static DEF: OpDef = OpDef {
    code: OperationType::AxisAlignedBboxTransform,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TF32, TI32, TF32], &[TF32]),
    Form::new(V1_2, &[TF16, TF16, TI32, TF16], &[TF16]),
    Form::new(V1_2, &[TQ16A, TQ8, TI32, TQ16A], &[TQ16A]),
    Form::new(V1_3, &[TQ16A, TQ8S, TI32, TQ16A], &[TQ16A]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    expect_eighths(args.input(0)?.info)?;
    expect_eighths(args.input(3)?.info)?;
    if let Some((output, _)) = args.outputs.first() {
        expect_eighths(output)?;
    }
    let (rois, deltas) = (args.dims(0)?, args.dims(1)?);
    let [count, 4] = *rois else {
        return Err(OpError::shape("boxes are rows of 4", rois, &[0, 4]));
    };
    let [rows, numbers] = *deltas else {
        return Err(OpError::shape("deltas have 2 dimensions", deltas, &[0, 4]));
    };
    if rows != count || numbers == 0 || !numbers.is_multiple_of(4) {
        return Err(OpError::shape("deltas against boxes", deltas, rois));
    }
    let split = args.dims(2)?;
    expect(*split == [count], "one batch index per box", split)?;
    let images = args.dims(3)?;
    expect(matches!(*images, [count, 2] if count > 0), "image sizes are rows of 2", images)?;
    Ok(Inferred::one(deltas))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let rois = Reals::of(&run.input(0)?)?;
    let deltas = Reals::of(&run.input(1)?)?;
    let split = run.input(2)?.i32()?;
    let sizes = Reals::of(&run.input(3)?)?;
    let (delta_dims, image_dims) = (run.input(1)?.dims, run.input(3)?.dims);
    let classes = delta_dims.get(1).map_or(0, |numbers| *numbers as usize / 4);
    let images = image_dims.first().map_or(0, |count| *count as usize);
    let mut checkpoints = run.stop.checkpoints();
    let mut out = RealsMut::of(run.output(0)?)?;
    for (row, batch) in split.iter().enumerate() {
        let image = usize::try_from(*batch)
            .ok()
            .filter(|image| *image < images)
            .ok_or(OpError::value("batch index of a box", *batch))?;
        let image = Image { height: sizes.get(image * 2), width: sizes.get(image * 2 + 1) };
        let corners = rois.quad(row);
        expect_ordered(corners)?;
        for at in row * classes..(row + 1) * classes {
            // A box is a dozen numbers, two of them exponentials.
            checkpoints.after(16)?;
            out.set_quad(at, refine(corners, deltas.quad(at), image));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn inputs() -> Vec<Tensor> {
        vec![
            Tensor::f32(&[2, 4], &[2.0, 2.0, 4.0, 6.0, 0.0, 0.0, 10.0, 10.0]),
            Tensor::f32(
                &[2, 8],
                &[
                    0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 50.0, 50.0, 0.0, 0.0, 0.0, 0.0, -0.5, 0.0, 0.0,
                    0.0,
                ],
            ),
            Tensor::i32(&[2], &[1, 0]),
            Tensor::f32(&[2, 2], &[32.0, 64.0, 9.0, 7.0]),
        ]
    }

    #[test]
    fn boxes_move_and_grow_and_stay_in_their_own_image() {
        let out = run_one(&DEF, &inputs(), Tensor::output(OperandType::TensorFloat32)).unwrap();
        let expected = [
            [3.0, 3.0, 5.0, 7.0],
            [0.0, 0.0, 7.0, 9.0],
            [0.0, 0.0, 10.0, 10.0],
            [0.0, 0.0, 5.0, 10.0],
        ];
        assert_eq!(out.values::<f32>(), expected.concat());
    }

    #[test]
    fn quantized_boxes_are_eighths_of_a_pixel_and_deltas_have_their_own_scale() {
        let eighths = |dims: &[u32], values: &[u16]| {
            Tensor::new(OperandType::TensorQuant16Asymm, dims, values).quantized(0.125, 0)
        };
        let inputs = [
            eighths(&[1, 4], &[16, 16, 32, 48]),
            Tensor::i8(&[1, 4], &[1, -9, -4, -4], 0.05, -4),
            Tensor::i32(&[1], &[0]),
            eighths(&[1, 2], &[800, 800]),
        ];
        let output = Tensor::output(OperandType::TensorQuant16Asymm).quantized(0.125, 0);
        // dx 0.25 of 2, dy -0.25 of 4.
        let out = run_one(&DEF, &inputs, output).unwrap();
        assert_eq!(out.values::<u16>(), [20, 8, 36, 40]);
        let mut inputs = inputs;
        inputs[3] = eighths(&[1, 2], &[800, 800]).quantized(1.0, 0);
        let output = Tensor::output(OperandType::TensorQuant16Asymm).quantized(0.125, 0);
        assert!(run_one(&DEF, &inputs, output).is_err());
    }

    #[test]
    fn a_batch_without_image_and_a_box_in_the_wrong_order_fail() {
        let output = || Tensor::output(OperandType::TensorFloat32);
        for batch in [-1, 2] {
            let mut inputs = inputs();
            inputs[2] = Tensor::i32(&[2], &[0, batch]);
            assert!(matches!(run_one(&DEF, &inputs, output()), Err(OpError::Value { .. })));
        }
        let mut inputs = inputs();
        inputs[0] = Tensor::f32(&[2, 4], &[2.0, 2.0, 1.0, 6.0, 0.0, 0.0, 1.0, 1.0]);
        assert!(matches!(run_one(&DEF, &inputs, output()), Err(OpError::Range { .. })));
    }

    #[test]
    fn no_boxes_are_fine_but_no_classes_are_not() {
        let mut inputs = inputs();
        inputs[0] = Tensor::f32(&[0, 4], &[]);
        inputs[1] = Tensor::f32(&[0, 8], &[]);
        inputs[2] = Tensor::i32(&[0], &[]);
        let output = || Tensor::output(OperandType::TensorFloat32);
        let out = run_one(&DEF, &inputs, output()).unwrap();
        assert_eq!(&*out.dims, [0, 8]);
        inputs[1] = Tensor::f32(&[0, 0], &[]);
        assert!(run_one(&DEF, &inputs, output()).is_err());
    }
}
