//! SPACE_TO_DEPTH: blocks of rows and columns gathered into channels, the inverse of
//! DEPTH_TO_SPACE.
//!
//! Inputs: images, the side of a block (INT32, above 0, divides rows and columns), since 1.2 the
//! layout flag. Output: `out[b, h, w, (i * side + j) * depth + c]` is
//! `in[b, h * side + i, w * side + j, c]`, where `depth` is the input's.
//!
//! Source: NNAPI `types.hal`, `OperationType::SPACE_TO_DEPTH`.

use burst_hal::HalVersion::{self, V1_0, V1_2, V1_3};
use burst_hal::OperationType;

use super::blocks::{self, Direction, SquareBlocks};
use super::common;
use crate::op::types::{BOOL, I32, TF16, TF32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Parsed, Run, Signature, WithAttributes};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of SPACE_TO_DEPTH.
pub static DEF: OpDef = OpDef {
    code: OperationType::SpaceToDepth,
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
    for size in [h, w] {
        if size % side != 0 {
            return Err(OpError::value("rows or columns to cut into blocks", size));
        }
    }
    let channels =
        c.checked_mul(side * side).ok_or(OpError::Range { what: "number of channels" })?;
    Ok(Inferred::one(images.shape([n, h / side, w / side, channels])?))
}

fn execute(run: &mut Run<'_, '_>, blocks: &SquareBlocks) -> Result<(), OpError> {
    blocks::between_depth_and_space(run, *blocks, Direction::SpaceToDepth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn gather(input: Tensor, side: i32, nchw: Option<bool>) -> Result<Tensor, OpError> {
        let out = Tensor::output(input.info.ty);
        let out = out.quantized(input.info.scale, input.info.zero_point);
        let mut inputs = vec![input, Tensor::scalar_i32(side)];
        inputs.extend(nchw.map(Tensor::scalar_bool));
        run_one(&DEF, &inputs, out)
    }

    #[test]
    fn blocks_become_channels() {
        let values: Vec<i8> = (1..=16).collect();
        let got = gather(Tensor::i8(&[1, 2, 4, 2], &values, 0.5, 3), 2, None).unwrap();
        assert_eq!(got.dims.as_slice(), [1, 1, 2, 8]);
        let want = [1, 2, 3, 4, 9, 10, 11, 12, 5, 6, 7, 8, 13, 14, 15, 16];
        assert_eq!(got.values::<i8>(), want);
    }

    #[test]
    fn channels_may_come_first() {
        let input = Tensor::f16(&[1, 1, 2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let got = gather(input, 2, Some(true)).unwrap();
        assert_eq!(got.dims.as_slice(), [1, 4, 1, 2]);
        assert_eq!(got.halves(), [1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 6.0, 8.0]);
    }

    #[test]
    fn sides_that_do_not_fit_are_refused() {
        let input = || Tensor::f32(&[1, 2, 4, 1], &[0.0; 8]);
        for side in [0, -1, 4, 3, i32::MIN, i32::MAX] {
            assert!(gather(input(), side, None).is_err(), "{side}");
        }
    }
}
