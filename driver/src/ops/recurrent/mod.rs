//! LSTM, RNN, SVDF and their sequence forms.

use crate::op::OpDef;

mod bidirectional;
pub mod bidirectional_sequence_lstm;
pub mod bidirectional_sequence_rnn;
pub mod lstm;
mod lstm_pass;
#[cfg(test)]
mod lstm_testing;
mod operands;
mod packed_layer;
pub mod quantized_16bit_lstm;
pub mod quantized_lstm;
pub mod rnn;
mod rnn_pass;
mod sequence;
pub mod svdf;
pub mod unidirectional_sequence_lstm;
pub mod unidirectional_sequence_rnn;
mod vectors;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &bidirectional_sequence_lstm::DEF,
    &bidirectional_sequence_rnn::DEF,
    &lstm::DEF,
    &quantized_16bit_lstm::DEF,
    &quantized_lstm::DEF,
    &rnn::DEF,
    &svdf::DEF,
    &unidirectional_sequence_lstm::DEF,
    &unidirectional_sequence_rnn::DEF,
];
