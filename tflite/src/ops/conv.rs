//! Convolutions and the fully connected layer: filters, biases, padding.

use burst_hal::{Dimensions, ExtraParams, OperandLifeTime, OperandType, OperationType};

use super::{expect_inputs, fused, padding, positive};
use crate::error::Refusal;
use crate::file::Operator;
use crate::graph::{OperandIndex, Quant};
use crate::mapper::{Mapper, element_count, options};
use crate::schema::{Conv2dOptions, DepthwiseOptions, FullyConnectedOptions};
use crate::verdict::Note;

/// Axis of a CONV_2D filter that has one scale per index.
const CONV_CHANNEL_AXIS: u32 = 0;
/// Axis of a DEPTHWISE_CONV_2D filter that has one scale per index.
const DEPTHWISE_CHANNEL_AXIS: u32 = 3;

/// CONV_2D; GROUPED_CONV_2D where the filter sees only part of the input's channels.
pub(super) fn conv_2d(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2, 3])?;
    let o: Conv2dOptions<'_> = options(operator)?;
    let input = m.input(operator, 0, "the input")?;
    let filter = filter(m, operator, input, Some(CONV_CHANNEL_AXIS))?;
    let units = size(m, filter, 0, "the filter")?;
    let bias = bias(m, operator, input, filter, units)?;
    let window = [
        padding(o.padding())?,
        positive("stride_w", o.stride_w())?,
        positive("stride_h", o.stride_h())?,
    ];
    let dilation =
        [positive("dilation_w", o.dilation_w())?, positive("dilation_h", o.dilation_h())?];
    let groups = groups(m, input, filter)?;

    let mut inputs = vec![input, filter, bias];
    for value in window {
        inputs.push(m.graph.int(value)?);
    }
    if groups > 1 {
        inputs.push(m.graph.int(groups)?);
    }
    inputs.push(m.graph.int(fused(o.activation())?)?);
    if groups > 1 {
        if dilation != [1, 1] {
            let value = dilation[0].max(dilation[1]).into();
            return Err(Refusal::OptionValue { option: "dilation of a grouped filter", value });
        }
        inputs.push(m.graph.bool(false)?);
    } else {
        push_dilation(m, &mut inputs, dilation)?;
    }
    let output = m.output(operator, 0)?;
    let ty = if groups > 1 { OperationType::GroupedConv2d } else { OperationType::Conv2d };
    m.emit(ty, inputs, output, None)
}

/// DEPTHWISE_CONV_2D.
pub(super) fn depthwise(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2, 3])?;
    let o: DepthwiseOptions<'_> = options(operator)?;
    let input = m.input(operator, 0, "the input")?;
    let filter = filter(m, operator, input, Some(DEPTHWISE_CHANNEL_AXIS))?;
    let units = size(m, filter, 3, "the filter")?;
    let bias = bias(m, operator, input, filter, units)?;
    let multiplier = multiplier(m, input, units, o.depth_multiplier())?;
    let dilation =
        [positive("dilation_w", o.dilation_w())?, positive("dilation_h", o.dilation_h())?];

    let mut inputs = vec![input, filter, bias];
    for value in [
        padding(o.padding())?,
        positive("stride_w", o.stride_w())?,
        positive("stride_h", o.stride_h())?,
        multiplier,
        fused(o.activation())?,
    ] {
        inputs.push(m.graph.int(value)?);
    }
    push_dilation(m, &mut inputs, dilation)?;
    let output = m.output(operator, 0)?;
    m.emit(OperationType::DepthwiseConv2d, inputs, output, None)
}

/// How many results each input channel has: from the shapes, as TFLite does it, and only where the
/// file leaves out the input's shape from the option.
fn multiplier(
    m: &Mapper<'_, '_>,
    input: OperandIndex,
    units: u32,
    option: i32,
) -> Result<i32, Refusal> {
    let misfit = Refusal::Shape { what: "the filter" };
    match m.graph.operand(input).dimensions.get(3) {
        None | Some(0) => positive("depth_multiplier", option),
        Some(depth) if units.is_multiple_of(*depth) => {
            i32::try_from(units / depth).map_err(|_| misfit)
        }
        Some(_) => Err(misfit),
    }
}

/// FULLY_CONNECTED. NNAPI's result has always two axes; where the file keeps those of the input, a
/// RESHAPE follows.
pub(super) fn fully_connected(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(), Refusal> {
    expect_inputs(operator, &[2, 3])?;
    let o: FullyConnectedOptions<'_> = options(operator)?;
    if o.weights_format() != 0 {
        let value = o.weights_format().into();
        return Err(Refusal::OptionValue { option: "weights_format", value });
    }
    let input = m.input(operator, 0, "the input")?;
    let weights = filter(m, operator, input, None)?;
    let units = size(m, weights, 0, "the weights")?;
    let bias = bias(m, operator, input, weights, units)?;
    let activation = m.graph.int(fused(o.activation())?)?;
    let inputs = vec![input, weights, bias, activation];
    let output = m.output(operator, 0)?;

    let rank = m.graph.operand(input).dimensions.len();
    if !o.keep_num_dims() || rank == 2 {
        return m.emit(OperationType::FullyConnected, inputs, output, None);
    }
    let shape = kept_shape(&m.graph.operand(input).dimensions, units)?;
    let made = m.graph.operand(output);
    let (ty, quant) = (made.ty, Quant::of(made));
    let flat = m.graph.temporary(ty, Dimensions::from_slice(&[0, units]), quant)?;
    m.emit(OperationType::FullyConnected, inputs, flat, None)?;
    let shape = m.graph.ints(&shape)?;
    m.emit_keeping_scale(OperationType::Reshape, vec![flat, shape], output)
}

/// The input's shape with `units` along the last axis, -1 for the one size that is unknown.
fn kept_shape(input: &[u32], units: u32) -> Result<Vec<i32>, Refusal> {
    let unknown = Refusal::UnknownShape { what: "the input" };
    let (_, kept) = input.split_last().ok_or(unknown.clone())?;
    if kept.iter().filter(|&&size| size == 0).count() > 1 {
        return Err(unknown);
    }
    kept.iter()
        .chain([&units])
        .map(|&size| match size {
            0 => Ok(-1),
            known => i32::try_from(known)
                .map_err(|_| Refusal::Range { what: "a size", value: known.into() }),
        })
        .collect()
}

/// The filter, with a type that goes with the input's.
fn filter(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    input: OperandIndex,
    channel_axis: Option<u32>,
) -> Result<OperandIndex, Refusal> {
    let what = "the filter";
    let filter = m.input(operator, 1, what)?;
    let needed = m.graph.operand(input).ty;
    let found = m.graph.operand(filter);
    let fits = match &found.extra_params {
        ExtraParams::ChannelQuant { channel_dim, .. } => {
            needed.is_quantized() && Some(*channel_dim) == channel_axis
        }
        _ => found.ty == needed,
    };
    if fits { Ok(filter) } else { Err(Refusal::OperandType { what, found: found.ty, needed }) }
}

/// The bias with the scale that NNAPI wants: input times filter, or 0 with a scale per channel.
/// Where the file has none, zeros.
fn bias(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    input: OperandIndex,
    filter: OperandIndex,
    units: u32,
) -> Result<OperandIndex, Refusal> {
    let what = "the bias";
    let main = m.graph.operand(input);
    let needed = if main.ty.is_quantized() { OperandType::TensorInt32 } else { main.ty };
    // 0 for float operands and for a filter with a scale per channel.
    let scale = main.scale * m.graph.operand(filter).scale;
    let Some(tensor) = m.input_tensor(operator, 2) else {
        m.notes.push(Note::ZeroBias);
        return zero_bias(m, needed, scale, filter, units);
    };
    let given = match needed {
        OperandType::TensorInt32 => m.scaled_ints(tensor, scale)?,
        _ => m.value(tensor)?,
    };
    let mut operand = m.graph.operand(given).clone();
    if operand.ty != needed {
        return Err(Refusal::OperandType { what, found: operand.ty, needed });
    }
    let shape = Dimensions::from_slice(&[units]);
    if operand.dimensions == shape || operand.dimensions.is_empty() {
        return Ok(given);
    }
    // A constant with further axes of size 1 is the same bytes.
    let is_constant = operand.lifetime == OperandLifeTime::ConstantCopy;
    if !is_constant || element_count(&operand.dimensions) != u64::from(units) {
        return Err(Refusal::Shape { what });
    }
    operand.dimensions = shape;
    m.graph.add(operand)
}

fn zero_bias(
    m: &mut Mapper<'_, '_>,
    ty: OperandType,
    scale: f32,
    filter: OperandIndex,
    units: u32,
) -> Result<OperandIndex, Refusal> {
    let given = m.graph.operand(filter);
    if given.lifetime != OperandLifeTime::ConstantCopy {
        return Err(Refusal::NotConstant { what: "the filter of a layer without bias" });
    }
    // The filter has at least one byte per unit, so that these zeros stay within a few times the
    // file's size whatever the file says.
    if given.location.length < units {
        return Err(Refusal::Shape { what: "the filter" });
    }
    let element = ty.element_bytes().unwrap_or_default();
    let bytes = usize::try_from(units).ok().and_then(|units| units.checked_mul(element));
    let zeros = vec![0; bytes.ok_or(Refusal::Shape { what: "the filter" })?];
    let location = m.graph.keep(&zeros)?;
    let quant = Quant { scale, zero_point: 0 };
    m.graph.constant(ty, Dimensions::from_slice(&[units]), quant, ExtraParams::None, location)
}

/// How many groups the channels fall into: 1 for an ordinary convolution.
fn groups(m: &Mapper<'_, '_>, input: OperandIndex, filter: OperandIndex) -> Result<i32, Refusal> {
    let deep = m.graph.operand(input).dimensions.get(3).copied().unwrap_or(0);
    let seen = size(m, filter, 3, "the filter")?;
    if deep == 0 || deep == seen {
        return Ok(1);
    }
    match deep.checked_rem(seen) {
        Some(0) => i32::try_from(deep / seen).map_err(|_| Refusal::Shape { what: "the filter" }),
        _ => Err(Refusal::Shape { what: "the filter" }),
    }
}

/// Dilation factors come behind the layout, and only where they are not 1: without them the
/// operation is already in HAL 1.0.
fn push_dilation(
    m: &mut Mapper<'_, '_>,
    inputs: &mut Vec<OperandIndex>,
    dilation: [i32; 2],
) -> Result<(), Refusal> {
    if dilation == [1, 1] {
        return Ok(());
    }
    inputs.push(m.graph.bool(false)?);
    for factor in dilation {
        inputs.push(m.graph.int(factor)?);
    }
    Ok(())
}

/// A size that the mapping needs to know.
fn size(
    m: &Mapper<'_, '_>,
    operand: OperandIndex,
    axis: usize,
    what: &'static str,
) -> Result<u32, Refusal> {
    match m.graph.operand(operand).dimensions.get(axis) {
        Some(0) | None => Err(Refusal::UnknownShape { what }),
        Some(&size) => Ok(size),
    }
}
