//! Between real and quantized numbers, and from type to type.

use burst_hal::{ExtraParams, OperandType, OperationType};
use half::f16;

use super::{expect_inputs, rescale};
use crate::ElementType;
use crate::error::Refusal;
use crate::file::{Operator, Tensor};
use crate::graph::{OperandIndex, Quant};
use crate::mapper::{Mapper, constant_sizes};

/// QUANTIZE; NNAPI's takes only real numbers, so that from one quantized type to another it takes
/// more than that.
pub(super) fn quantize(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[1])?;
    let input = m.input(operator, 0, "the input")?;
    let output = m.output(operator, 0)?;
    let found = m.graph.operand(output).ty;
    if !matches!(found, OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned) {
        let needed = OperandType::TensorQuant8AsymmSigned;
        return Err(Refusal::OperandType { what: "the output", found, needed });
    }
    if m.graph.operand(input).ty.is_quantized() {
        requantize(m, input, output)
    } else {
        m.graph.operation(OperationType::Quantize, vec![input], vec![output])
    }
}

/// From one quantized type, scale and zero point to another. By way of real numbers only the zero
/// point moves exactly, so a convolution changes the scale first, where the shape is known.
fn requantize(
    m: &mut Mapper<'_, '_>,
    input: OperandIndex,
    output: OperandIndex,
) -> Result<(), Refusal> {
    let (given, made) = (m.graph.operand(input), m.graph.operand(output));
    if given.scale == made.scale {
        return m.requantize(input, output);
    }
    if given.ty == made.ty {
        return match rescale::elementwise(m, input, output, 0)? {
            true => Ok(()),
            false => m.requantize(input, output),
        };
    }
    // The same bytes but for the highest bit, so that the limits of both types are alike.
    let (lowest, others) = (given.ty.zero_point_range().0, made.ty.zero_point_range().0);
    let zero_point = made.zero_point - others + lowest;
    let (ty, shape) = (given.ty, given.dimensions.clone());
    let quant = Quant { scale: made.scale, zero_point };
    let rescaled = m.graph.temporary(ty, shape, quant)?;
    match rescale::elementwise(m, input, rescaled, 0)? {
        true => m.requantize(rescaled, output),
        false => m.requantize(input, output),
    }
}

/// DEQUANTIZE. Constants stored as float16 become float32 here and now: NNAPI has no operation for
/// it before HAL 1.2, and the model needs it only once.
pub(super) fn dequantize(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[1])?;
    let index = m.input_tensor(operator, 0).ok_or(Refusal::Missing { what: "the input" })?;
    let tensor = m.tensor(index)?;
    if tensor.ty != ElementType::Float16 {
        let input = m.value(index)?;
        let output = m.output(operator, 0)?;
        return to_real(m, OperationType::Dequantize, input, output);
    }
    match (tensor.data, operator.outputs.as_slice()) {
        (Some(data), &[result]) if !m.is_graph_output(result) => widen(m, &tensor, data, result),
        _ => {
            let input = m.value(index)?;
            let output = m.output(operator, 0)?;
            to_real(m, OperationType::Cast, input, output)
        }
    }
}

fn to_real(
    m: &mut Mapper<'_, '_>,
    ty: OperationType,
    input: u32,
    output: u32,
) -> Result<(), Refusal> {
    let (found, needed) = (m.graph.operand(output).ty, OperandType::TensorFloat32);
    if found != needed {
        return Err(Refusal::OperandType { what: "the output", found, needed });
    }
    m.graph.operation(ty, vec![input], vec![output])
}

/// Keeps a float16 constant as float32.
fn widen(
    m: &mut Mapper<'_, '_>,
    tensor: &Tensor<'_>,
    data: &[u8],
    result: usize,
) -> Result<(), Refusal> {
    if tensor.is_sparse() {
        return Err(Refusal::Sparse { tensor: tensor.index });
    }
    let location = m.keep_widened(tensor.buffer, || {
        let (halves, _) = data.as_chunks::<2>();
        halves.iter().flat_map(|half| f16::from_le_bytes(*half).to_f32().to_le_bytes()).collect()
    })?;
    let shape = constant_sizes(tensor);
    let ty = OperandType::TensorFloat32;
    let constant = m.graph.constant(ty, shape, Quant::NONE, ExtraParams::None, location)?;
    m.rebind(result, constant);
    Ok(())
}

/// CAST, between the types that NNAPI's takes.
pub(super) fn cast(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[1])?;
    let input = m.input(operator, 0, "the input")?;
    let output = m.output(operator, 0)?;
    let (from, to) = (m.graph.operand(input).ty, m.graph.operand(output).ty);
    let convertible = |ty| {
        matches!(
            ty,
            OperandType::TensorFloat16
                | OperandType::TensorFloat32
                | OperandType::TensorInt32
                | OperandType::TensorQuant8Asymm
        )
    };
    if from == to || (convertible(from) && convertible(to)) {
        m.graph.operation(OperationType::Cast, vec![input], vec![output])
    } else {
        let ty = if convertible(from) { to } else { from };
        Err(Refusal::MainType { operation: OperationType::Cast, ty })
    }
}
