//! One function per operator of the file: which operations compute it, with which operands.

mod conv;
mod detection;
mod elementwise;
mod fixed_point;
mod flexbuffer;
mod integer_lstm;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod rescale;
mod resize;
mod shape;
mod window;

use burst_hal::OperationType as Op;

use crate::builtin;
use crate::error::Refusal;
use crate::file::Operator;
use crate::mapper::Mapper;

/// Largest fused activation that NNAPI's operations can have: none, RELU, RELU1 or RELU6. The
/// codes are the same on both sides.
const LAST_FUSED_ACTIVATION: i8 = 3;

/// Maps one operator, or says why that cannot be.
pub(crate) fn map(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    if operator.code == builtin::CUSTOM {
        return match operator.custom {
            Some("TFLite_Detection_PostProcess") => detection::map(m, operator),
            _ => Err(Refusal::NoNnapiForm),
        };
    }
    let Some(name) = builtin::name(operator.code) else { return Err(Refusal::NoNnapiForm) };
    match name {
        "CONV_2D" => conv::conv_2d(m, operator),
        "DEPTHWISE_CONV_2D" => conv::depthwise(m, operator),
        "FULLY_CONNECTED" => conv::fully_connected(m, operator),
        "AVERAGE_POOL_2D" => pool::map(m, operator, Op::AveragePool2d),
        "MAX_POOL_2D" => pool::map(m, operator, Op::MaxPool2d),
        "L2_POOL_2D" => pool::map(m, operator, Op::L2Pool2d),

        "ADD" => elementwise::add(m, operator),
        "SUB" => elementwise::sub(m, operator),
        "MUL" => elementwise::mul(m, operator),
        "DIV" => elementwise::div(m, operator),
        "MINIMUM" => elementwise::binary(m, operator, Op::Minimum),
        "MAXIMUM" => elementwise::binary(m, operator, Op::Maximum),
        "POW" => elementwise::binary(m, operator, Op::Pow),
        "PRELU" => elementwise::binary(m, operator, Op::Prelu),
        "LESS" => elementwise::compare(m, operator, Op::Less),
        "LESS_EQUAL" => elementwise::compare(m, operator, Op::LessEqual),
        "GREATER" => elementwise::compare(m, operator, Op::Greater),
        "GREATER_EQUAL" => elementwise::compare(m, operator, Op::GreaterEqual),
        "EQUAL" => elementwise::compare(m, operator, Op::Equal),
        "NOT_EQUAL" => elementwise::compare(m, operator, Op::NotEqual),
        "LOGICAL_AND" => elementwise::binary(m, operator, Op::LogicalAnd),
        "LOGICAL_OR" => elementwise::binary(m, operator, Op::LogicalOr),
        "LOGICAL_NOT" => elementwise::unary(m, operator, Op::LogicalNot),
        "RELU" => elementwise::rectify(m, operator, Op::Relu, 1),
        "RELU_N1_TO_1" => elementwise::rectify(m, operator, Op::Relu1, 2),
        "RELU6" => elementwise::rectify(m, operator, Op::Relu6, 3),
        "LOGISTIC" => elementwise::logistic(m, operator),
        "TANH" => elementwise::tanh(m, operator),
        "SOFTMAX" => elementwise::softmax(m, operator),
        "LOG_SOFTMAX" => elementwise::log_softmax(m, operator),
        "ELU" => elementwise::elu(m, operator),
        "LEAKY_RELU" => elementwise::leaky_relu(m, operator),
        "L2_NORMALIZATION" => elementwise::l2_normalization(m, operator),
        "HARD_SWISH" => elementwise::unary(m, operator, Op::HardSwish),
        "LOG" => elementwise::unary(m, operator, Op::Log),
        "EXP" => elementwise::unary(m, operator, Op::Exp),
        "SQRT" => elementwise::unary(m, operator, Op::Sqrt),
        "RSQRT" => elementwise::unary(m, operator, Op::Rsqrt),
        "SIN" => elementwise::unary(m, operator, Op::Sin),
        "ABS" => elementwise::unary(m, operator, Op::Abs),
        "NEG" => elementwise::unary(m, operator, Op::Neg),
        "FLOOR" => elementwise::unary(m, operator, Op::Floor),

        "QUANTIZE" => quantize::quantize(m, operator),
        "DEQUANTIZE" => quantize::dequantize(m, operator),
        "CAST" => quantize::cast(m, operator),

        "MEAN" => reduce::mean(m, operator),
        "SUM" => reduce::reduce(m, operator, Op::ReduceSum),
        "REDUCE_PROD" => reduce::reduce(m, operator, Op::ReduceProd),
        "REDUCE_MAX" => reduce::reduce(m, operator, Op::ReduceMax),
        "REDUCE_MIN" => reduce::reduce(m, operator, Op::ReduceMin),
        "REDUCE_ANY" => reduce::reduce(m, operator, Op::ReduceAny),
        "REDUCE_ALL" => reduce::reduce(m, operator, Op::ReduceAll),
        "ARG_MAX" => reduce::arg(m, operator, Op::Argmax),
        "ARG_MIN" => reduce::arg(m, operator, Op::Argmin),

        "RESHAPE" => shape::reshape(m, operator),
        "SQUEEZE" => shape::squeeze(m, operator),
        "EXPAND_DIMS" => shape::expand_dims(m, operator),
        "TRANSPOSE" => shape::transpose(m, operator),
        "CONCATENATION" => shape::concatenation(m, operator),
        "SPLIT" => shape::split(m, operator),
        "DEPTH_TO_SPACE" => shape::depth_to_space(m, operator),
        "SPACE_TO_DEPTH" => shape::space_to_depth(m, operator),

        "PAD" => window::pad(m, operator),
        "STRIDED_SLICE" => window::strided_slice(m, operator),
        "SLICE" => window::slice(m, operator),
        "GATHER" => window::gather(m, operator),
        "TILE" => window::tile(m, operator),

        "RESIZE_BILINEAR" => resize::bilinear(m, operator),
        "RESIZE_NEAREST_NEIGHBOR" => resize::nearest(m, operator),

        "UNIDIRECTIONAL_SEQUENCE_LSTM" => recurrent::sequence_lstm(m, operator),
        "SVDF" => recurrent::svdf(m, operator),
        "RNN" => recurrent::rnn(m, operator),

        _ => Err(Refusal::NoNnapiForm),
    }
}

/// The code of a fused activation, the same in NNAPI, where its operations can fuse it.
fn fused(code: i8) -> Result<i32, Refusal> {
    if (0..=LAST_FUSED_ACTIVATION).contains(&code) {
        Ok(code.into())
    } else {
        Err(Refusal::Activation { code })
    }
}

/// An option that must be greater than 0.
fn positive(option: &'static str, value: i32) -> Result<i32, Refusal> {
    if value > 0 { Ok(value) } else { Err(Refusal::OptionValue { option, value: value.into() }) }
}

/// NNAPI's code of an implicit padding scheme: SAME is 1, VALID is 2.
fn padding(code: i8) -> Result<i32, Refusal> {
    match code {
        0 => Ok(1),
        1 => Ok(2),
        code => Err(Refusal::OptionValue { option: "padding", value: code.into() }),
    }
}

/// Refuses other numbers of inputs.
fn expect_inputs(operator: &Operator<'_>, counts: &[usize]) -> Result<(), Refusal> {
    let found = operator.inputs.len();
    if counts.contains(&found) { Ok(()) } else { Err(Refusal::Count { what: "inputs", found }) }
}
