//! Forms of what moves, picks, repeats or sums up elements.

use super::notation::Slot::Flag;
use super::notation::short::{BOOL, I32, M, REAL, TI32};
use super::notation::{
    BOOLS, BYTES_1_2, COMMON, COMMON_1_2, COMMON_I32, FLOATS_1_2, Form, MainTypes, form,
};
use crate::HalVersion::{V1_0, V1_2, V1_3};
use crate::OperandType::{
    TensorBool8, TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm,
    TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant8SymmPerChannel, TensorQuant16Asymm,
    TensorQuant16Symm,
};
use crate::OperationType as Op;

const FILLED: MainTypes = &[(TensorFloat32, V1_3), (TensorFloat16, V1_3)];
const FILLED_I32: MainTypes = &[(TensorInt32, V1_3)];
/// Every tensor of the base range.
const RANKED: MainTypes = &[
    (TensorFloat32, V1_3),
    (TensorFloat16, V1_3),
    (TensorInt32, V1_3),
    (TensorQuant8Asymm, V1_3),
    (TensorQuant16Symm, V1_3),
    (TensorBool8, V1_3),
    (TensorQuant8SymmPerChannel, V1_3),
    (TensorQuant16Asymm, V1_3),
    (TensorQuant8Symm, V1_3),
    (TensorQuant8AsymmSigned, V1_3),
];

pub(super) const FORMS: &[Form] = &[
    form(Op::Reshape, COMMON, &[M, TI32], &[M]),
    form(Op::Squeeze, COMMON, &[M, TI32], &[M]),
    form(Op::Transpose, COMMON, &[M, TI32], &[M]),
    form(Op::ExpandDims, COMMON_I32, &[M, I32], &[M]),
    form(Op::Concatenation, COMMON, &[M, I32], &[M]).repeat_input(0, 1),
    form(Op::Split, COMMON_I32, &[M, I32, I32], &[M]).repeat_output(0, 1),
    form(Op::Slice, COMMON_I32, &[M, TI32, TI32], &[M]),
    form(Op::StridedSlice, COMMON, &[M, TI32, TI32, TI32, I32, I32, I32], &[M]),
    form(Op::Gather, COMMON_I32, &[M, I32, TI32], &[M]),
    form(Op::Tile, COMMON_I32, &[M, TI32], &[M]),
    form(Op::Pad, COMMON, &[M, TI32], &[M]),
    form(Op::PadV2, FLOATS_1_2, &[M, TI32, REAL], &[M]),
    form(Op::PadV2, BYTES_1_2, &[M, TI32, I32], &[M]),
    form(Op::DepthToSpace, COMMON, &[M, I32, Flag], &[M]).inputs(&[(2, V1_0), (3, V1_2)]),
    form(Op::SpaceToDepth, COMMON, &[M, I32, Flag], &[M]).inputs(&[(2, V1_0), (3, V1_2)]),
    form(Op::BatchToSpaceNd, COMMON, &[M, TI32, Flag], &[M]).inputs(&[(2, V1_0), (3, V1_2)]),
    form(Op::SpaceToBatchNd, COMMON, &[M, TI32, TI32, Flag], &[M]).inputs(&[(3, V1_0), (4, V1_2)]),
    form(Op::ChannelShuffle, COMMON_1_2, &[M, I32, I32], &[M]),
    form(Op::TopkV2, COMMON_I32, &[M, I32], &[M, TI32]),
    form(Op::Argmax, COMMON_I32, &[M, I32], &[TI32]),
    form(Op::Argmin, COMMON_I32, &[M, I32], &[TI32]),
    form(Op::Mean, COMMON, &[M, TI32, I32], &[M]),
    form(Op::ReduceAll, BOOLS, &[M, TI32, BOOL], &[M]),
    form(Op::ReduceAny, BOOLS, &[M, TI32, BOOL], &[M]),
    form(Op::ReduceMax, COMMON_1_2, &[M, TI32, BOOL], &[M]),
    form(Op::ReduceMin, COMMON_1_2, &[M, TI32, BOOL], &[M]),
    form(Op::ReduceProd, FLOATS_1_2, &[M, TI32, BOOL], &[M]),
    form(Op::ReduceSum, FLOATS_1_2, &[M, TI32, BOOL], &[M]),
    form(Op::Fill, FILLED, &[TI32, REAL], &[M]),
    form(Op::Fill, FILLED_I32, &[TI32, I32], &[M]),
    form(Op::Rank, RANKED, &[M], &[I32]),
];
