//! Forms of what slides over pictures, normalizes or multiplies matrices.

use super::notation::Slot::{self, Axis, Bias, Dilation, Filter, Flag};
use super::notation::short::{I32, M, REAL, TI32};
use super::notation::{COMMON, COMMON_1_2, Counts, FLOAT_FIRST, FLOATS, FLOATS_1_2, Form, form};
use crate::HalVersion::{V1_0, V1_2, V1_3};
use crate::OperationType as Op;

/// Explicit padding (four sides, two strides, two sizes, activation), then the layout.
const POOLED: &[Slot] = &[M, I32, I32, I32, I32, I32, I32, I32, I32, I32, Flag];
/// A padding scheme in place of the four sides.
const POOLED_BY_SCHEME: &[Slot] = &[M, I32, I32, I32, I32, I32, I32, Flag];
/// To a size in pixels.
const SIZED: &[Slot] = &[M, I32, I32, Flag, Flag, Flag];
/// By factors, which came later.
const SCALED: &[Slot] = &[M, REAL, REAL, Flag, Flag, Flag];

const POOLED_COUNTS: Counts = &[(10, V1_0), (11, V1_2)];
const SCHEME_COUNTS: Counts = &[(7, V1_0), (8, V1_2)];

pub(super) const FORMS: &[Form] = &[
    form(Op::AveragePool2d, COMMON, POOLED, &[M]).inputs(POOLED_COUNTS),
    form(Op::AveragePool2d, COMMON, POOLED_BY_SCHEME, &[M]).inputs(SCHEME_COUNTS),
    form(Op::MaxPool2d, COMMON, POOLED, &[M]).inputs(POOLED_COUNTS),
    form(Op::MaxPool2d, COMMON, POOLED_BY_SCHEME, &[M]).inputs(SCHEME_COUNTS),
    form(Op::L2Pool2d, FLOATS, POOLED, &[M]).inputs(POOLED_COUNTS),
    form(Op::L2Pool2d, FLOATS, POOLED_BY_SCHEME, &[M]).inputs(SCHEME_COUNTS),
    form(
        Op::Conv2d,
        COMMON,
        &[M, Filter, Bias, I32, I32, I32, I32, I32, I32, I32, Flag, Dilation, Dilation],
        &[M],
    )
    .inputs(&[(10, V1_0), (11, V1_2), (13, V1_2)]),
    form(
        Op::Conv2d,
        COMMON,
        &[M, Filter, Bias, I32, I32, I32, I32, Flag, Dilation, Dilation],
        &[M],
    )
    .inputs(&[(7, V1_0), (8, V1_2), (10, V1_2)]),
    form(
        Op::DepthwiseConv2d,
        COMMON,
        &[M, Filter, Bias, I32, I32, I32, I32, I32, I32, I32, I32, Flag, Dilation, Dilation],
        &[M],
    )
    .inputs(&[(11, V1_0), (12, V1_2), (14, V1_2)]),
    form(
        Op::DepthwiseConv2d,
        COMMON,
        &[M, Filter, Bias, I32, I32, I32, I32, I32, Flag, Dilation, Dilation],
        &[M],
    )
    .inputs(&[(8, V1_0), (9, V1_2), (11, V1_2)]),
    form(
        Op::GroupedConv2d,
        COMMON_1_2,
        &[M, Filter, Bias, I32, I32, I32, I32, I32, I32, I32, I32, Flag],
        &[M],
    ),
    form(Op::GroupedConv2d, COMMON_1_2, &[M, Filter, Bias, I32, I32, I32, I32, I32, Flag], &[M]),
    form(
        Op::TransposeConv2d,
        COMMON_1_2,
        &[M, Filter, Bias, I32, I32, I32, I32, I32, I32, I32, Flag],
        &[M],
    ),
    form(Op::TransposeConv2d, COMMON_1_2, &[M, Filter, Bias, TI32, I32, I32, I32, I32, Flag], &[M]),
    form(Op::FullyConnected, COMMON, &[M, M, Bias, I32], &[M]),
    form(Op::ResizeBilinear, FLOAT_FIRST, SIZED, &[M]).inputs(&[
        (3, V1_0),
        (4, V1_2),
        (5, V1_3),
        (6, V1_3),
    ]),
    form(Op::ResizeBilinear, COMMON_1_2, SCALED, &[M]).inputs(&[
        (3, V1_2),
        (4, V1_2),
        (5, V1_3),
        (6, V1_3),
    ]),
    form(Op::ResizeNearestNeighbor, COMMON_1_2, SIZED, &[M]).inputs(&[
        (4, V1_2),
        (5, V1_3),
        (6, V1_3),
    ]),
    form(Op::ResizeNearestNeighbor, COMMON_1_2, SCALED, &[M]).inputs(&[
        (4, V1_2),
        (5, V1_3),
        (6, V1_3),
    ]),
    form(Op::L2Normalization, FLOAT_FIRST, &[M, Axis], &[M]).inputs(&[(1, V1_0), (2, V1_2)]),
    form(Op::LocalResponseNormalization, FLOATS, &[M, I32, REAL, REAL, REAL, Axis], &[M])
        .inputs(&[(5, V1_0), (6, V1_2)]),
    form(Op::InstanceNormalization, FLOATS_1_2, &[M, REAL, REAL, REAL, Flag], &[M]),
    form(Op::Softmax, COMMON, &[M, REAL, Axis], &[M]).inputs(&[(2, V1_0), (3, V1_2)]),
    form(Op::LogSoftmax, FLOATS_1_2, &[M, REAL, I32], &[M]),
];
