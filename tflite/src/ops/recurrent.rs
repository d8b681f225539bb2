//! Recurrent layers. Their variable tensors become inputs and outputs of the graph: NNAPI keeps no
//! state between executions.

use burst_hal::{OperandType, OperationType};

use super::{expect_inputs, integer_lstm};
use crate::error::Refusal;
use crate::file::Operator;
use crate::graph::OperandIndex;
use crate::mapper::{Mapper, options};
use crate::schema::{RnnOptions, SequenceLstmOptions, SvdfOptions};
use crate::verdict::Note;

/// Inputs of an LSTM before its states: input, weights, peepholes, biases, projection.
const LSTM_INPUTS_BEFORE_STATES: usize = 18;
/// Inputs of an LSTM without, and with, layer normalization.
const LSTM_INPUTS: [usize; 2] = [20, 24];
/// Inputs of an LSTM that may be left out: the input gate, peepholes, projection.
const LSTM_OPTIONAL: [usize; 8] = [1, 5, 9, 10, 11, 12, 16, 17];
/// The first layer normalization weight; all four may be left out.
const LSTM_FIRST_NORM: usize = 20;

/// UNIDIRECTIONAL_SEQUENCE_LSTM, in its float form, or step by step in its integer form.
pub(super) fn sequence_lstm(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(), Refusal> {
    expect_inputs(operator, &LSTM_INPUTS)?;
    let o: SequenceLstmOptions<'_> = options(operator)?;
    if o.diagonal_recurrent_tensors() {
        return Err(Refusal::OptionValue { option: "diagonal_recurrent_tensors", value: 1.0 });
    }
    let activation = cell_activation(o.activation())?;
    let input = m.input(operator, 0, "the input")?;
    if m.graph.operand(input).ty == OperandType::TensorQuant8AsymmSigned {
        return integer_lstm::map(m, operator, o, input);
    }
    only_float(m, OperationType::UnidirectionalSequenceLstm, input)?;

    let mut inputs = vec![input];
    for at in 1..LSTM_INPUTS_BEFORE_STATES {
        inputs.push(lstm_input(m, operator, at)?);
    }
    let (output_state, output_state_after) = m.state(operator, LSTM_INPUTS_BEFORE_STATES)?;
    let (cell_state, cell_state_after) = m.state(operator, LSTM_INPUTS_BEFORE_STATES + 1)?;
    inputs.extend([output_state, cell_state, m.graph.int(activation)?]);
    for (option, clip) in [("cell_clip", o.cell_clip()), ("proj_clip", o.proj_clip())] {
        if !(clip.is_finite() && clip >= 0.0) {
            return Err(Refusal::OptionValue { option, value: clip.into() });
        }
        inputs.push(m.graph.float(clip)?);
    }
    inputs.push(m.graph.bool(o.time_major())?);
    for at in LSTM_FIRST_NORM..LSTM_FIRST_NORM + 4 {
        inputs.push(lstm_input(m, operator, at)?);
    }
    m.notes.push(Note::StateExposed);
    let output = m.output(operator, 0)?;
    all_float(m, &[output, output_state, cell_state])?;
    m.graph.operation(
        OperationType::UnidirectionalSequenceLstm,
        inputs,
        vec![output, output_state_after, cell_state_after],
    )
}

/// A weight of an LSTM. One that may be left out is then an operand without value.
fn lstm_input(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    at: usize,
) -> Result<OperandIndex, Refusal> {
    let operand = if LSTM_OPTIONAL.contains(&at) || at >= LSTM_FIRST_NORM {
        m.optional_input(operator, at, OperandType::TensorFloat32)?
    } else {
        m.input(operator, at, "a weight")?
    };
    all_float(m, &[operand])?;
    Ok(operand)
}

/// SVDF.
pub(super) fn svdf(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[5])?;
    let o: SvdfOptions<'_> = options(operator)?;
    let rank = super::positive("rank", o.rank())?;
    let activation = cell_activation(o.activation())?;
    let input = m.input(operator, 0, "the input")?;
    only_float(m, OperationType::Svdf, input)?;
    let feature = m.input(operator, 1, "the feature weights")?;
    let time = m.input(operator, 2, "the time weights")?;
    let bias = m.optional_input(operator, 3, OperandType::TensorFloat32)?;
    let (before, after) = m.state(operator, 4)?;
    let output = m.output(operator, 0)?;
    all_float(m, &[feature, time, bias, before, output])?;
    m.notes.push(Note::StateExposed);
    let inputs =
        vec![input, feature, time, bias, before, m.graph.int(rank)?, m.graph.int(activation)?];
    m.graph.operation(OperationType::Svdf, inputs, vec![after, output])
}

/// RNN.
pub(super) fn rnn(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[5])?;
    let o: RnnOptions<'_> = options(operator)?;
    let activation = cell_activation(o.activation())?;
    let input = m.input(operator, 0, "the input")?;
    only_float(m, OperationType::Rnn, input)?;
    let weights = m.input(operator, 1, "the weights")?;
    let recurrent = m.input(operator, 2, "the recurrent weights")?;
    let bias = m.input(operator, 3, "the bias")?;
    let (before, after) = m.state(operator, 4)?;
    let output = m.output(operator, 0)?;
    all_float(m, &[weights, recurrent, bias, before, output])?;
    m.notes.push(Note::StateExposed);
    let inputs = vec![input, weights, recurrent, bias, before, m.graph.int(activation)?];
    m.graph.operation(OperationType::Rnn, inputs, vec![after, output])
}

/// The activation of a cell: none, RELU, RELU6 and TANH have the same codes on both sides.
fn cell_activation(code: i8) -> Result<i32, Refusal> {
    match code {
        0 | 1 | 3 | 4 => Ok(code.into()),
        code => Err(Refusal::Activation { code }),
    }
}

/// Integer forms of these layers exist in TFLite only.
fn only_float(
    m: &Mapper<'_, '_>,
    operation: OperationType,
    input: OperandIndex,
) -> Result<(), Refusal> {
    match m.graph.operand(input).ty {
        OperandType::TensorFloat32 => Ok(()),
        ty => Err(Refusal::MainType { operation, ty }),
    }
}

/// Weights stored as integers beside float inputs ("hybrid") have no NNAPI form.
fn all_float(m: &Mapper<'_, '_>, operands: &[OperandIndex]) -> Result<(), Refusal> {
    let needed = OperandType::TensorFloat32;
    match operands.iter().map(|&operand| m.graph.operand(operand).ty).find(|&ty| ty != needed) {
        Some(found) => Err(Refusal::OperandType { what: "a weight or state", found, needed }),
        None => Ok(()),
    }
}
