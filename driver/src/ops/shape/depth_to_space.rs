//! DEPTH_TO_SPACE: channels spread over blocks of rows and columns.
//!
//! Inputs: images, the side of a block (INT32, above 0, its square divides the channels), since 1.2
//! the layout flag. Output: `out[b, h * side + i, w * side + j, c]` is
//! `in[b, h, w, (i * side + j) * depth + c]`, where `depth` is the output's.
//!
//! Source: NNAPI `types.hal`, `OperationType::DEPTH_TO_SPACE`.

use burst_hal::HalVersion::{self, V1_0, V1_2, V1_3};
use burst_hal::OperationType;

use super::blocks::{self, Direction, SquareBlocks};
use super::common;
use crate::op::types::{BOOL, I32, TF16, TF32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Parsed, Run, Signature, WithAttributes};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of DEPTH_TO_SPACE.
pub static DEF: OpDef = OpDef {
    code: OperationType::DepthToSpace,
    validate,
    body: &WithAttributes { parse: SquareBlocks::parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const COUNTS: &[(usize, HalVersion)] = &[(2, V1_0), (3, V1_2)];

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, I32, BOOL], &[TF32]).counts(COUNTS),
    Form::new(V1_0, &[TQ8, I32, BOOL], &[TQ8]).counts(COUNTS),
    Form::new(V1_2, &[TF16, I32, BOOL], &[TF16]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, I32, BOOL], &[TQ8S]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>, blocks: Parsed<'_, SquareBlocks>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = args.dims(0)?;
    let SquareBlocks { side, layout } = *blocks?;
    let images = common::Images::new(dims, layout)?;
    let [n, h, w, c] = images.sizes;
    if c % (side * side) != 0 {
        return Err(OpError::value("channels to spread over blocks", c));
    }
    Ok(Inferred::one(images.shape([n, h * side, w * side, c / (side * side)])?))
}

fn execute(run: &mut Run<'_, '_>, blocks: &SquareBlocks) -> Result<(), OpError> {
    blocks::between_depth_and_space(run, *blocks, Direction::DepthToSpace)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    fn spread(input: Tensor, side: i32, nchw: Option<bool>) -> Result<Tensor, OpError> {
        let out = Tensor::output(input.info.ty);
        let out = out.quantized(input.info.scale, input.info.zero_point);
        let mut inputs = vec![input, Tensor::scalar_i32(side)];
        inputs.extend(nchw.map(Tensor::scalar_bool));
        run_one(&DEF, &inputs, out)
    }

    #[test]
    fn channels_become_blocks() {
        let values: Vec<u8> = (1..=16).collect();
        let got = spread(Tensor::u8(&[1, 1, 2, 8], &values, 0.5, 3), 2, None).unwrap();
        assert_eq!(got.dims.as_slice(), [1, 2, 4, 2]);
        // First row of each block: channels 0..4 of each pixel; second row: 4..8.
        let want = [1, 2, 3, 4, 9, 10, 11, 12, 5, 6, 7, 8, 13, 14, 15, 16];
        assert_eq!(got.values::<u8>(), want);
    }

    #[test]
    fn channels_may_come_first() {
        // Eight channels of one row of two pixels, numbered by pixel, then channel.
        let values: Vec<f32> =
            (1u8..=8).flat_map(|channel| [channel, channel + 8]).map(f32::from).collect();
        let got = spread(Tensor::f32(&[1, 8, 1, 2], &values), 2, Some(true)).unwrap();
        assert_eq!(got.dims.as_slice(), [1, 2, 2, 4]);
        let want: [f32; 16] = [
            1.0, 3.0, 9.0, 11.0, 5.0, 7.0, 13.0, 15.0, // channel 0
            2.0, 4.0, 10.0, 12.0, 6.0, 8.0, 14.0, 16.0,
        ];
        assert_eq!(got.values::<f32>(), want);
    }

    #[test]
    fn sides_that_do_not_fit_are_refused() {
        let input = || Tensor::f32(&[1, 1, 1, 8], &[0.0; 8]);
        for side in [0, -1, -2, 3, i32::MAX] {
            assert!(spread(input(), side, None).is_err(), "{side}");
        }
        assert!(spread(Tensor::f32(&[1, 1, 8], &[0.0; 8]), 2, None).is_err());
    }

    #[test]
    fn the_layout_came_with_1_2() {
        use OperandType::{Bool, Int32, TensorFloat32};
        let form =
            |version, inputs: &[OperandType]| has_form(&DEF, version, inputs, &[TensorFloat32]);
        assert!(form(V1_0, &[TensorFloat32, Int32]));
        assert!(!form(V1_0, &[TensorFloat32, Int32, Bool]));
        assert!(form(V1_2, &[TensorFloat32, Int32, Bool]));
        assert!(!form(V1_3, &[TensorFloat32, Int32, Bool, Int32]));
    }
}
