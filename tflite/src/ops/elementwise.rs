//! Operators that treat each element by itself, and those that normalise along one axis.

use burst_hal::{Dimensions, ExtraParams, OperandType, OperationType};

use super::{expect_inputs, fused, rescale};
use crate::error::Refusal;
use crate::file::Operator;
use crate::graph::{OperandIndex, Quant};
use crate::mapper::{Mapper, options};
use crate::schema::{
    AddOptions, DivOptions, L2NormOptions, LeakyReluOptions, MulOptions, SoftmaxOptions, SubOptions,
};

/// The scale that NNAPI fixes for quantized results between 0 and 1.
const UNIT_SCALE: f32 = 1.0 / 256.0;
/// The scale that NNAPI fixes for quantized results between -1 and 1.
const SIGNED_UNIT_SCALE: f32 = 1.0 / 128.0;

pub(super) fn add(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let o: AddOptions<'_> = options(operator)?;
    arithmetic(m, operator, OperationType::Add, o.activation())
}

pub(super) fn sub(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let o: SubOptions<'_> = options(operator)?;
    arithmetic(m, operator, OperationType::Sub, o.activation())
}

pub(super) fn mul(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let o: MulOptions<'_> = options(operator)?;
    arithmetic(m, operator, OperationType::Mul, o.activation())
}

pub(super) fn div(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let o: DivOptions<'_> = options(operator)?;
    arithmetic(m, operator, OperationType::Div, o.activation())
}

fn arithmetic(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
    activation: i8,
) -> Result<(), Refusal> {
    let (first, second) = two_alike(m, operator)?;
    let activation = fused(activation)?;
    if m.graph.operand(first).ty == OperandType::TensorInt32 && activation != 0 {
        let value = activation.into();
        return Err(Refusal::OptionValue { option: "fused activation on integers", value });
    }
    let activation = m.graph.int(activation)?;
    let output = m.output(operator, 0)?;
    m.emit(ty, vec![first, second, activation], output, None)
}

/// Two inputs that broadcast, one output of their type.
pub(super) fn binary(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
) -> Result<(), Refusal> {
    let (first, second) = two_alike(m, operator)?;
    let output = m.output(operator, 0)?;
    m.emit(ty, vec![first, second], output, None)
}

/// Two inputs that broadcast, one output of truth values.
pub(super) fn compare(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
) -> Result<(), Refusal> {
    let (first, second) = two_alike(m, operator)?;
    let output = m.output(operator, 0)?;
    let (found, needed) = (m.graph.operand(output).ty, OperandType::TensorBool8);
    if found != needed {
        return Err(Refusal::OperandType { what: "the output", found, needed });
    }
    m.graph.operation(ty, vec![first, second], vec![output])
}

fn two_alike(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(OperandIndex, OperandIndex), Refusal> {
    expect_inputs(operator, &[2])?;
    let first = m.input(operator, 0, "the first input")?;
    let second = m.input(operator, 1, "the second input")?;
    let (needed, found) = (m.graph.operand(first).ty, m.graph.operand(second).ty);
    if found == needed {
        Ok((first, second))
    } else {
        Err(Refusal::OperandType { what: "the second input", found, needed })
    }
}

/// One input, one output of its type.
pub(super) fn unary(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    m.emit(ty, vec![input], output, None)
}

/// RELU and its bounded forms. TFLite's may change the scale on the way, NNAPI's not.
pub(super) fn rectify(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
    fused: i32,
) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    let (given, made) = (m.graph.operand(input), m.graph.operand(output));
    if !given.ty.is_quantized() || Quant::of(given) == Quant::of(made) || given.ty != made.ty {
        return m.emit(ty, vec![input], output, None);
    }
    let (main, shape, quant) = (given.ty, given.dimensions.clone(), Quant::of(given));
    if rescale::elementwise(m, input, output, fused)? {
        return Ok(());
    }
    let between = m.graph.temporary(main, shape, quant)?;
    m.emit(ty, vec![input], between, None)?;
    m.requantize(between, output)
}

fn one(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(OperandIndex, OperandIndex), Refusal> {
    expect_inputs(operator, &[1])?;
    Ok((m.input(operator, 0, "the input")?, m.output(operator, 0)?))
}

pub(super) fn logistic(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    let needed = unit_quant(m.graph.operand(input).ty);
    m.emit(OperationType::Logistic, vec![input], output, Some(needed))
}

pub(super) fn tanh(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    let zero_point = match m.graph.operand(input).ty {
        OperandType::TensorQuant8Asymm => 128,
        _ => 0,
    };
    let needed = Quant { scale: SIGNED_UNIT_SCALE, zero_point };
    m.emit(OperationType::Tanh, vec![input], output, Some(needed))
}

pub(super) fn softmax(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    let o: SoftmaxOptions<'_> = options(operator)?;
    if !(o.beta().is_finite() && o.beta() > 0.0) {
        return Err(Refusal::OptionValue { option: "beta", value: o.beta().into() });
    }
    let beta = scalar_like(m, input, o.beta())?;
    let needed = unit_quant(m.graph.operand(input).ty);
    m.emit(OperationType::Softmax, vec![input, beta], output, Some(needed))
}

/// LOG_SOFTMAX: TFLite's is that of NNAPI with beta 1 along the last axis.
pub(super) fn log_softmax(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    let inputs = vec![input, scalar_like(m, input, 1.0)?, m.graph.int(-1)?];
    m.emit(OperationType::LogSoftmax, inputs, output, None)
}

/// ELU: TFLite's has no factor, NNAPI's has one.
pub(super) fn elu(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    let inputs = vec![input, scalar_like(m, input, 1.0)?];
    m.emit(OperationType::Elu, inputs, output, None)
}

/// LEAKY_RELU: PRELU with one factor for all elements.
pub(super) fn leaky_relu(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    let o: LeakyReluOptions<'_> = options(operator)?;
    let ty = m.graph.operand(input).ty;
    if ty != OperandType::TensorFloat32 {
        return Err(Refusal::MainType { operation: OperationType::Prelu, ty });
    }
    let location = m.graph.keep(&o.alpha().to_le_bytes())?;
    let shape = Dimensions::from_slice(&[1]);
    let alpha = m.graph.constant(ty, shape, Quant::NONE, ExtraParams::None, location)?;
    m.emit(OperationType::Prelu, vec![input, alpha], output, None)
}

/// L2_NORMALIZATION along the last axis.
pub(super) fn l2_normalization(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(), Refusal> {
    let (input, output) = one(m, operator)?;
    let o: L2NormOptions<'_> = options(operator)?;
    if o.activation() != 0 {
        return Err(Refusal::Activation { code: o.activation() });
    }
    let zero_point = match m.graph.operand(input).ty {
        OperandType::TensorQuant8Asymm => 128,
        _ => 0,
    };
    let needed = Quant { scale: SIGNED_UNIT_SCALE, zero_point };
    let inputs = vec![input, m.graph.int(-1)?];
    m.emit(OperationType::L2Normalization, inputs, output, Some(needed))
}

/// The scale that NNAPI fixes for quantized results between 0 and 1.
fn unit_quant(ty: OperandType) -> Quant {
    let zero_point = if ty == OperandType::TensorQuant8AsymmSigned { -128 } else { 0 };
    Quant { scale: UNIT_SCALE, zero_point }
}

/// A float scalar of the width that goes with an operand.
fn scalar_like(
    m: &mut Mapper<'_, '_>,
    operand: OperandIndex,
    value: f32,
) -> Result<OperandIndex, Refusal> {
    match m.graph.operand(operand).ty {
        OperandType::TensorFloat16 => m.graph.half(value),
        _ => m.graph.float(value),
    }
}
