//! Forms of recurrent cells and of what walks sequences with them.

use super::notation::short::{BOOL, F32, I32, M, REAL, TI32, TQ8};
use super::notation::{FLOATS, FLOATS_1_2, Form, MainTypes, Slot, form};
use crate::HalVersion::{V1_0, V1_2, V1_3};
use crate::OperandType::{
    TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant16Symm,
};
use crate::OperationType as Op;

const BYTES: MainTypes = &[(TensorQuant8Asymm, V1_2)];
const SIGNED: MainTypes = &[(TensorQuant8AsymmSigned, V1_3)];
/// Symmetric weights.
const W: Slot = Slot::Is(TensorQuant8Symm);
/// Cells, and scales of intermediate values.
const C: Slot = Slot::Is(TensorQuant16Symm);

#[rustfmt::skip]
const LSTM: &[Slot] = &[
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, I32, REAL, REAL,
    M, M, M, M,
];
#[rustfmt::skip]
const SEQUENCE_LSTM: &[Slot] = &[
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, I32, REAL, REAL, BOOL,
    M, M, M, M,
];
/// Input, weights and states of two cells, auxiliary input and its weights.
#[rustfmt::skip]
const BIDIRECTIONAL_LSTM: &[Slot] = &[
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    I32, REAL, REAL, BOOL, BOOL,
    M, M, M, M, M, M, M, M,
];
const BIDIRECTIONAL_RNN: &[Slot] = &[M, M, M, M, M, M, M, M, M, M, M, M, I32, BOOL, BOOL];
#[rustfmt::skip]
const QUANTIZED_LSTM: &[Slot] = &[
    M, W, W, W, W, W, W, W, W, C, C, C, TI32, TI32, TI32, TI32, W, TI32, M, C, C, C, C, C,
    F32, F32, F32, F32, F32, F32, I32, F32,
];
const QUANTIZED_16BIT_LSTM: &[Slot] = &[M, M, M, M, M, M, M, M, M, TI32, TI32, TI32, TI32, C, TQ8];

pub(super) const FORMS: &[Form] =
    &[
        form(Op::Rnn, FLOATS, &[M, M, M, M, M, I32], &[M, M]),
        form(Op::Svdf, FLOATS, &[M, M, M, M, M, I32, I32], &[M, M]),
        form(Op::Lstm, FLOATS, LSTM, &[M, M, M, M]).inputs(&[(23, V1_0), (27, V1_2)]),
        form(Op::UnidirectionalSequenceRnn, FLOATS_1_2, &[M, M, M, M, M, I32, I32], &[M, M])
            .outputs(&[(1, V1_2), (2, V1_3)]),
        form(Op::UnidirectionalSequenceLstm, FLOATS_1_2, SEQUENCE_LSTM, &[M, M, M])
            .outputs(&[(1, V1_2), (3, V1_3)]),
        form(Op::BidirectionalSequenceRnn, FLOATS_1_2, BIDIRECTIONAL_RNN, &[M, M, M, M])
            .outputs(&[(1, V1_2), (2, V1_2), (3, V1_3), (4, V1_3)]),
        form(Op::BidirectionalSequenceLstm, FLOATS_1_2, BIDIRECTIONAL_LSTM, &[M, M, M, M, M, M])
            .outputs(&[(1, V1_2), (2, V1_2), (5, V1_3), (6, V1_3)]),
        form(Op::Quantized16bitLstm, BYTES, QUANTIZED_16BIT_LSTM, &[C, M]),
        form(Op::QuantizedLstm, SIGNED, QUANTIZED_LSTM, &[M, C, M]),
    ];
