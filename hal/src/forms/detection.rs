//! Forms of what finds things in pictures, looks up values, or runs other graphs.

use super::notation::Slot::{self, Any, Boxes, Flag};
use super::notation::short::{BOOL, F32, GRAPH, I32, M, REAL, TB8, TI32, TQ8};
use super::notation::{BYTES_1_2, COMMON_1_2, FLOATS, FLOATS_1_2, Form, MainTypes, form};
use crate::HalVersion::{V1_0, V1_2, V1_3};
use crate::OperandType::{
    TensorBool8, TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm,
    TensorQuant8AsymmSigned, TensorQuant16Asymm, TensorQuant16Symm,
};
use crate::OperationType as Op;

const QUANT16: MainTypes = &[(TensorQuant16Asymm, V1_2)];
const TABLES: MainTypes = &[(TensorFloat32, V1_0), (TensorInt32, V1_0), (TensorQuant8Asymm, V1_0)];
const EMBEDDED: MainTypes = &[
    (TensorFloat32, V1_0),
    (TensorInt32, V1_2),
    (TensorQuant8Asymm, V1_2),
    (TensorFloat16, V1_3),
    (TensorQuant8AsymmSigned, V1_3),
];
/// Control flow asks nothing of the types that pass through it.
const CONTROL: MainTypes = &[(TensorBool8, V1_3)];
const DELTAS: Slot = Slot::Among(&[TensorQuant8Asymm, TensorQuant8AsymmSigned]);
const ANCHORS: Slot = Slot::Is(TensorQuant16Symm);
const HASHED: Slot = Slot::Among(&[TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm]);

#[rustfmt::skip]
const DETECTION: &[Slot] = &[
    M, M, M, REAL, REAL, REAL, REAL, BOOL, I32, I32, I32, REAL, REAL, BOOL,
];

pub(super) const FORMS: &[Form] = &[
    form(Op::AxisAlignedBboxTransform, FLOATS_1_2, &[M, M, TI32, M], &[M]),
    form(Op::AxisAlignedBboxTransform, QUANT16, &[M, DELTAS, TI32, M], &[M]),
    form(
        Op::BoxWithNmsLimit,
        COMMON_1_2,
        &[M, Boxes, TI32, REAL, I32, I32, REAL, REAL, REAL],
        &[M, Boxes, TI32, TI32],
    ),
    form(Op::DetectionPostprocessing, FLOATS_1_2, DETECTION, &[M, M, TI32, TI32]),
    form(
        Op::GenerateProposals,
        FLOATS_1_2,
        &[M, M, M, M, REAL, REAL, I32, I32, REAL, REAL, Flag],
        &[M, M, TI32],
    ),
    form(
        Op::GenerateProposals,
        BYTES_1_2,
        &[M, M, ANCHORS, Boxes, F32, F32, I32, I32, F32, F32, Flag],
        &[M, Boxes, TI32],
    ),
    form(Op::HeatmapMaxKeypoint, COMMON_1_2, &[M, Boxes, Flag], &[M, Boxes]),
    form(Op::RoiAlign, COMMON_1_2, &[M, Boxes, TI32, I32, I32, REAL, REAL, I32, I32, Flag], &[M]),
    form(Op::RoiPooling, COMMON_1_2, &[M, Boxes, TI32, I32, I32, REAL, REAL, Flag], &[M]),
    form(Op::EmbeddingLookup, EMBEDDED, &[TI32, M], &[M]),
    form(Op::HashtableLookup, TABLES, &[TI32, TI32, M], &[M, TQ8]),
    form(Op::LshProjection, FLOATS, &[M, HASHED, M, I32], &[TI32]),
    form(Op::RandomMultinomial, FLOATS_1_2, &[M, I32, TI32], &[TI32]),
    form(Op::If, CONTROL, &[TB8, GRAPH, GRAPH, Any], &[Any]).repeat_input(3, 0).repeat_output(0, 1),
    form(Op::While, CONTROL, &[GRAPH, GRAPH, Any], &[Any]).repeat_input(2, 1).repeat_output(0, 1),
];
