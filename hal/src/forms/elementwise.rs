//! Forms of what works on each element: arithmetic, comparisons, activations, types.

use super::notation::short::{CAST, I32, M, REAL, TB8};
use super::notation::{
    BOOLS, COMMON, COMMON_1_2, COMMON_I32, FLOAT_FIRST, FLOATS, FLOATS_1_2, Form, MainTypes, Slot,
    form,
};
use crate::HalVersion::{V1_0, V1_2, V1_3};
use crate::OperandType::{
    TensorBool8, TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm,
    TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant8SymmPerChannel, TensorQuant16Asymm,
    TensorQuant16Symm,
};
use crate::OperationType as Op;

/// Bytes from the start, integers last.
const SUMS: MainTypes = &[
    (TensorFloat32, V1_0),
    (TensorQuant8Asymm, V1_0),
    (TensorFloat16, V1_2),
    (TensorQuant8AsymmSigned, V1_3),
    (TensorInt32, V1_3),
];
const DIFFERENCES: MainTypes = &[
    (TensorFloat32, V1_0),
    (TensorFloat16, V1_2),
    (TensorQuant8Asymm, V1_2),
    (TensorQuant8AsymmSigned, V1_3),
    (TensorInt32, V1_3),
];
const QUOTIENTS: MainTypes = &[(TensorFloat32, V1_0), (TensorFloat16, V1_2), (TensorInt32, V1_3)];
const COMPARED: MainTypes = &[
    (TensorBool8, V1_2),
    (TensorFloat16, V1_2),
    (TensorFloat32, V1_2),
    (TensorInt32, V1_2),
    (TensorQuant8Asymm, V1_2),
    (TensorQuant8AsymmSigned, V1_3),
];
const MAGNITUDES: MainTypes = &[(TensorFloat32, V1_2), (TensorFloat16, V1_2), (TensorInt32, V1_3)];
const NEGATED: MainTypes = &[(TensorFloat32, V1_2), (TensorFloat16, V1_2), (TensorInt32, V1_2)];
const DEQUANTIZED: MainTypes = &[
    (TensorQuant8Asymm, V1_0),
    (TensorQuant8Symm, V1_2),
    (TensorQuant8SymmPerChannel, V1_2),
    (TensorQuant8AsymmSigned, V1_3),
];
const CAST_1_2: MainTypes =
    &[(TensorFloat16, V1_2), (TensorFloat32, V1_2), (TensorInt32, V1_2), (TensorQuant8Asymm, V1_2)];
/// Since 1.3 a cast may also change nothing.
const CAST_TO_SELF: MainTypes = &[
    (TensorBool8, V1_3),
    (TensorQuant8AsymmSigned, V1_3),
    (TensorQuant16Asymm, V1_3),
    (TensorQuant16Symm, V1_3),
    (TensorQuant8Symm, V1_3),
];
const FLOATS_1_3: MainTypes = &[(TensorFloat32, V1_3), (TensorFloat16, V1_3)];
const SWISHED: MainTypes = &[
    (TensorFloat32, V1_3),
    (TensorFloat16, V1_3),
    (TensorQuant8Asymm, V1_3),
    (TensorQuant8AsymmSigned, V1_3),
];

pub(super) const FORMS: &[Form] = &[
    form(Op::Add, SUMS, &[M, M, I32], &[M]),
    form(Op::Mul, SUMS, &[M, M, I32], &[M]),
    form(Op::Sub, DIFFERENCES, &[M, M, I32], &[M]),
    form(Op::Div, QUOTIENTS, &[M, M, I32], &[M]),
    form(Op::Maximum, COMMON_I32, &[M, M], &[M]),
    form(Op::Minimum, COMMON_I32, &[M, M], &[M]),
    form(Op::Pow, FLOATS_1_2, &[M, M], &[M]),
    form(Op::Prelu, COMMON_1_2, &[M, M], &[M]),
    form(Op::Equal, COMPARED, &[M, M], &[TB8]),
    form(Op::NotEqual, COMPARED, &[M, M], &[TB8]),
    form(Op::Less, COMPARED, &[M, M], &[TB8]),
    form(Op::LessEqual, COMPARED, &[M, M], &[TB8]),
    form(Op::Greater, COMPARED, &[M, M], &[TB8]),
    form(Op::GreaterEqual, COMPARED, &[M, M], &[TB8]),
    form(Op::LogicalAnd, BOOLS, &[M, M], &[M]),
    form(Op::LogicalOr, BOOLS, &[M, M], &[M]),
    form(Op::LogicalNot, BOOLS, &[M], &[M]),
    form(Op::Select, COMMON_I32, &[TB8, M, M], &[M]),
    form(Op::Abs, MAGNITUDES, &[M], &[M]),
    form(Op::Neg, NEGATED, &[M], &[M]),
    form(Op::Exp, FLOATS_1_2, &[M], &[M]),
    form(Op::Log, FLOATS_1_2, &[M], &[M]),
    form(Op::Sin, FLOATS_1_2, &[M], &[M]),
    form(Op::Sqrt, FLOATS_1_2, &[M], &[M]),
    form(Op::Rsqrt, FLOATS_1_2, &[M], &[M]),
    form(Op::Floor, FLOATS, &[M], &[M]),
    form(Op::Relu, COMMON, &[M], &[M]),
    form(Op::Relu1, COMMON, &[M], &[M]),
    form(Op::Relu6, COMMON, &[M], &[M]),
    form(Op::Logistic, COMMON, &[M], &[M]),
    form(Op::Tanh, FLOAT_FIRST, &[M], &[M]),
    form(Op::Elu, FLOATS_1_3, &[M, REAL], &[M]),
    form(Op::HardSwish, SWISHED, &[M], &[M]),
    form(Op::Dequantize, DEQUANTIZED, &[M], &[Slot::Among(&[TensorFloat32, TensorFloat16])]),
    form(
        Op::Quantize,
        FLOATS_1_2,
        &[M],
        &[Slot::Among(&[TensorQuant8Asymm, TensorQuant8AsymmSigned])],
    ),
    form(Op::Cast, CAST_1_2, &[M], &[Slot::Among(CAST)]),
    form(Op::Cast, CAST_TO_SELF, &[M], &[M]),
];
