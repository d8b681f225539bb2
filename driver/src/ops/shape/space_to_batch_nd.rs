//! SPACE_TO_BATCH_ND: blocks of rows and columns gathered into images, the inverse of
//! BATCH_TO_SPACE_ND, with room added around the images first.
//!
//! Inputs: images, rows and columns of a block (INT32, `[2]`, above 0), room before and after rows
//! and columns (INT32, `[2, 2]`, not below 0), since 1.2 the layout flag. The sizes with their room
//! must be multiples of the block's. Output: `out[(i * columns + j) * images + b, h, w, c]` is
//! `padded[b, h * rows + i, w * columns + j, c]`. The room holds what stands for 0.
//!
//! Source: NNAPI 1.1 `types.hal`, `OperationType::SPACE_TO_BATCH_ND`.

use burst_hal::HalVersion::{self, V1_1, V1_2, V1_3};
use burst_hal::OperationType;

use super::common::{self, Images};
use super::{blocks, pad, padding};
use crate::kernels::strided::Move;
use crate::op::types::{BOOL, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::{Layout, pairs};
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of SPACE_TO_BATCH_ND.
pub static DEF: OpDef = OpDef {
    code: OperationType::SpaceToBatchNd,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const COUNTS: &[(usize, HalVersion)] = &[(3, V1_1), (4, V1_2)];

const FORMS: &[Form] = &[
    Form::new(V1_1, &[TF32, TI32, TI32, BOOL], &[TF32]).counts(COUNTS),
    Form::new(V1_1, &[TQ8, TI32, TI32, BOOL], &[TQ8]).counts(COUNTS),
    Form::new(V1_2, &[TF16, TI32, TI32, BOOL], &[TF16]).counts(COUNTS),
    Form::new(V1_3, &[TQ8S, TI32, TI32, BOOL], &[TQ8S]).counts(COUNTS),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)?;
    pad::padding_is_defined(signature)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    /// Rows and columns of a block.
    sides: [i64; 2],
    /// Above and below the rows, before and after the columns.
    padding: [[i32; 2]; 2],
    layout: Layout,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    let layout = Layout::optional(operands, 3)?;
    let sides = blocks::sides(operands, 1)?;
    let pairs = pairs(operands, 2)?;
    let padding = <[[i32; 2]; 2]>::try_from(pairs.as_slice()).map_err(|_| OpError::Range {
        what: "number of paddings, not one pair each for rows and columns,",
    })?;
    Ok(Attributes { sides, padding, layout })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = args.dims(0)?;
    let Attributes { sides: [rows, columns], padding, layout } = *attributes?;
    let images = Images::new(dims, layout)?;
    let [[top, bottom], [left, right]] = padding;
    let [n, h, w, c] = images.sizes;
    let padded = |size: i64, before: i32, after: i32, side: i64| {
        let size = size + i64::from(before) + i64::from(after);
        if size % side != 0 {
            return Err(OpError::value("rows or columns to cut into blocks", size));
        }
        Ok(size / side)
    };
    let (h, w) = (padded(h, top, bottom, rows)?, padded(w, left, right, columns)?);
    let count = n.checked_mul(rows * columns).ok_or(OpError::Range { what: "number of images" })?;
    Ok(Inferred::one(images.shape([count, h, w, c])?))
}

/// The elements at one position in all blocks are one group of images of the output, and lie in the
/// input at regular distances: each position is a move of its own.
fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    padding::fill_zero(run.output(0)?);
    let Attributes { sides: [rows, columns], padding, layout } = *attributes;
    let [[top, _], [left, _]] = padding;
    let input = run.input(0)?.dims;
    let output = run.output(0)?.dims.clone();
    let [n, h, w, c] = Images::new(input, layout)?.sizes;
    let from = Images::steps(input, layout)?;
    let to = Images::steps(&output, layout)?;
    let too_large = |_| OpError::Range { what: "a position in a tensor" };
    for row in positions_in_block(h, rows, top.into()) {
        for column in positions_in_block(w, columns, left.into()) {
            let group = (row.in_block * columns + column.in_block) * n;
            let mut moves = Move::default();
            for (first, step) in [(row.from, from[1]), (column.from, from[2])] {
                moves.from += usize::try_from(first).map_err(too_large)? * step.unsigned_abs();
            }
            for (first, step) in [(group, to[0]), (row.to, to[1]), (column.to, to[2])] {
                moves.to += usize::try_from(first).map_err(too_large)? * step.unsigned_abs();
            }
            for (size, from, to) in [
                (n, from[0], to[0]),
                (row.count, from[1] * blocks::step(rows)?, to[1]),
                (column.count, from[2] * blocks::step(columns)?, to[2]),
                (c, from[3], to[3]),
            ] {
                moves.axis(usize::try_from(size).map_err(too_large)?, from, to);
            }
            common::apply(run, &moves)?;
        }
    }
    Ok(())
}

/// The rows (or columns) of the input at one position in their blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockPosition {
    in_block: i64,
    /// First of them in the input, and how many there are.
    from: i64,
    count: i64,
    /// Block that the first is in.
    to: i64,
}

/// Every position that some of `size` rows have, in blocks of `side` rows with `before` rows of room.
fn positions_in_block(size: i64, side: i64, before: i64) -> impl Iterator<Item = BlockPosition> {
    (0..side.min(size)).map(move |from| {
        let padded = from + before;
        let count = (size - from + side - 1) / side;
        BlockPosition { in_block: padded % side, from, count, to: padded / side }
    })
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one, validate};

    fn gather(
        input: Tensor,
        sides: &[i32],
        paddings: &[i32; 4],
        nchw: Option<bool>,
    ) -> Result<Tensor, OpError> {
        let out = Tensor::output(input.info.ty);
        let out = out.quantized(input.info.scale, input.info.zero_point);
        let sides = Tensor::i32(&[u32::try_from(sides.len()).unwrap()], sides);
        let mut inputs = vec![input, sides, Tensor::i32(&[2, 2], paddings)];
        inputs.extend(nchw.map(Tensor::scalar_bool));
        run_one(&DEF, &inputs, out)
    }

    #[test]
    fn blocks_become_images() {
        let values: Vec<i8> = (1..=12).collect();
        let input = Tensor::i8(&[1, 2, 6, 1], &values, 0.5, 3);
        let got = gather(input, &[2, 3], &[0; 4], None).unwrap();
        assert_eq!(got.dims.as_slice(), [6, 1, 2, 1]);
        assert_eq!(got.values::<i8>(), [1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12]);
    }

    /// 3 columns with one of room before and two after, in blocks of 2: `0 a`, `b c`, `0 0`.
    #[test]
    fn room_holds_the_zero_point() {
        let input = Tensor::u8(&[2, 1, 3, 1], &[1, 2, 3, 4, 5, 6], 0.5, 99);
        let got = gather(input, &[1, 2], &[0, 0, 1, 2], None).unwrap();
        assert_eq!(got.dims.as_slice(), [4, 1, 3, 1]);
        // First columns of both images, then second columns.
        assert_eq!(got.values::<u8>(), [99, 2, 99, 99, 5, 99, 1, 3, 99, 4, 6, 99]);
    }

    #[test]
    fn room_may_be_larger_than_a_block_and_blocks_larger_than_the_image() {
        let input = Tensor::f32(&[1, 1, 1, 2], &[1.0, 2.0]);
        let got = gather(input, &[3, 1], &[4, 1, 0, 0], None).unwrap();
        assert_eq!(got.dims.as_slice(), [3, 2, 1, 2]);
        let mut want = [0.0; 12];
        // Row 4 of the padded image is row 1 of block 1.
        want[4 + 2..4 + 4].copy_from_slice(&[1.0, 2.0]);
        assert_eq!(got.values::<f32>(), want);
    }

    #[test]
    fn channels_may_come_first() {
        let input = Tensor::f16(&[1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0]);
        let got = gather(input, &[2, 1], &[0; 4], Some(true)).unwrap();
        assert_eq!(got.dims.as_slice(), [2, 2, 1, 1]);
        assert_eq!(got.halves(), [1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let input = || Tensor::f32(&[1, 2, 2, 1], &[0.0; 4]);
        assert!(gather(input(), &[2, 3], &[0; 4], None).is_err());
        assert!(gather(input(), &[0, 1], &[0; 4], None).is_err());
        assert!(gather(input(), &[2, 2, 1], &[0; 4], None).is_err());
        assert!(gather(input(), &[1, 1], &[-1, 0, 0, 0], None).is_err());
        assert!(
            gather(input(), &[i32::MAX; 2], &[i32::MAX - 2, 0, i32::MAX - 2, 0], None).is_err()
        );
    }

    #[test]
    fn before_1_2_only_a_zero_point_of_zero_is_defined() {
        let verdict = |version, zero| {
            let inputs = [
                Tensor::u8(&[1, 1, 1, 1], &[0], 0.5, zero),
                Tensor::i32(&[2], &[1, 1]),
                Tensor::i32(&[2, 2], &[0; 4]),
            ];
            let out = Tensor::output(OperandType::TensorQuant8Asymm).quantized(0.5, zero);
            validate(&DEF, version, &inputs, &[out]).is_ok()
        };
        assert!(verdict(V1_1, 0) && !verdict(V1_1, 9) && verdict(V1_2, 9));
    }
}
