//! BATCH_TO_SPACE_ND: images spread over blocks of rows and columns.
//!
//! Inputs: images, rows and columns of a block (INT32, `[2]`, above 0, their product divides the
//! images), since 1.2 the layout flag. Output: `out[b, h * rows + i, w * columns + j, c]` is
//! `in[(i * columns + j) * images + b, h, w, c]`, where `images` is the output's number.
//!
//! Source: NNAPI 1.1 `types.hal`, `OperationType::BATCH_TO_SPACE_ND`.

use burst_hal::HalVersion::{self, V1_1, V1_2, V1_3};
use burst_hal::OperationType;

use super::blocks;
use super::common::{self, Images};
use crate::kernels::strided::Move;
use crate::op::types::{BOOL, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::Layout;
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of BATCH_TO_SPACE_ND.
pub static DEF: OpDef = OpDef {
    code: OperationType::BatchToSpaceNd,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const COUNTS: &[(usize, HalVersion)] = &[(2, V1_1), (3, V1_2)];

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TI32, BOOL], &[TF32]).counts(COUNTS),
    Form::new(V1_1, &[TQ8, TI32, BOOL], &[TQ8]).counts(COUNTS),
    Form::new(V1_2, &[TF16, TI32, BOOL], &[TF16]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, TI32, BOOL], &[TQ8S]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    /// Rows and columns of a block.
    sides: [i64; 2],
    layout: Layout,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let layout = Layout::optional(operands, 2)?;
    Ok(Attributes { sides: blocks::sides(operands, 1)?, layout })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = args.dims(0)?;
    let Attributes { sides: [rows, columns], layout } = *attributes?;
    let images = Images::new(dims, layout)?;
    let [n, h, w, c] = images.sizes;
    if n % (rows * columns) != 0 {
        return Err(OpError::value("images to spread over blocks", n));
    }
    Ok(Inferred::one(images.shape([n / (rows * columns), h * rows, w * columns, c])?))
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let Attributes { sides: [rows, columns], layout } = *attributes;
    let input = run.input(0)?.dims;
    let output = &*run.output(0)?.dims;
    let [_, h, w, c] = Images::new(input, layout)?.sizes;
    let [n, ..] = Images::new(output, layout)?.sizes;
    let from = Images::steps(input, layout)?;
    let to = Images::steps(output, layout)?;
    let (images, row_step, column_step) =
        (blocks::step(n)?, blocks::step(rows)?, blocks::step(columns)?);
    let mut moves = Move::default();
    for (size, from, to) in [
        (n, from[0], to[0]),
        (h, from[1], to[1] * row_step),
        (rows, from[0] * images * column_step, to[1]),
        (w, from[2], to[2] * column_step),
        (columns, from[0] * images, to[2]),
        (c, from[3], to[3]),
    ] {
        let size = usize::try_from(size).map_err(|_| OpError::Range { what: "a dimension" })?;
        moves.axis(size, from, to);
    }
    common::apply(run, &moves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn spread(input: Tensor, sides: &[i32], nchw: Option<bool>) -> Result<Tensor, OpError> {
        let out = Tensor::output(input.info.ty);
        let out = out.quantized(input.info.scale, input.info.zero_point);
        let sides = Tensor::i32(&[u32::try_from(sides.len()).unwrap()], sides);
        let mut inputs = vec![input, sides];
        inputs.extend(nchw.map(Tensor::scalar_bool));
        run_one(&DEF, &inputs, out)
    }

    #[test]
    fn images_become_blocks() {
        let values: Vec<u8> = (1..=12).collect();
        let got = spread(Tensor::u8(&[6, 1, 2, 1], &values, 0.5, 3), &[2, 3], None).unwrap();
        assert_eq!(got.dims.as_slice(), [1, 2, 6, 1]);
        assert_eq!(got.values::<u8>(), [1, 3, 5, 2, 4, 6, 7, 9, 11, 8, 10, 12]);
    }

    #[test]
    fn the_images_that_are_left_come_last() {
        let input = Tensor::f32(&[4, 1, 1, 1], &[1.0, 2.0, 3.0, 4.0]);
        let got = spread(input, &[1, 2], None).unwrap();
        assert_eq!(got.dims.as_slice(), [2, 1, 2, 1]);
        assert_eq!(got.values::<f32>(), [1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    fn channels_may_come_first() {
        let input = Tensor::f16(&[2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0]);
        let got = spread(input, &[2, 1], Some(true)).unwrap();
        assert_eq!(got.dims.as_slice(), [1, 2, 2, 1]);
        assert_eq!(got.halves(), [1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    fn sides_that_do_not_fit_are_refused() {
        let input = || Tensor::f32(&[2, 1, 1, 1], &[0.0; 2]);
        for sides in [&[3, 1][..], &[2, 2], &[0, 1], &[-1, -2], &[2], &[1, 1, 2], &[i32::MAX; 2]] {
            assert!(spread(input(), sides, None).is_err(), "{sides:?}");
        }
    }
}
