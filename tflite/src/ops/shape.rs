//! Operators that give the same elements another shape or order.

use burst_hal::{OperandType, OperationType};

use super::{expect_inputs, positive};
use crate::error::Refusal;
use crate::file::Operator;
use crate::graph::OperandIndex;
use crate::mapper::{Mapper, options};
use crate::schema::{
    ConcatenationOptions, DepthToSpaceOptions, ReshapeOptions, SpaceToDepthOptions, SplitOptions,
    SqueezeOptions,
};

/// RESHAPE: the new shape is a constant input in newer files, an option in older ones.
pub(super) fn reshape(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[1, 2])?;
    let input = m.input(operator, 0, "the input")?;
    let shape = match m.input_tensor(operator, 1) {
        Some(_) => m.ints(operator, 1, "the new shape")?,
        None => options::<ReshapeOptions<'_>>(operator)?.new_shape().iter().collect(),
    };
    // A scalar has no axes in the file, one of size 1 here.
    let shape = m.graph.ints(if shape.is_empty() { &[1] } else { &shape })?;
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::Reshape, vec![input, shape], output)
}

/// SQUEEZE: without axes, all of size 1.
pub(super) fn squeeze(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[1])?;
    let o: SqueezeOptions<'_> = options(operator)?;
    let input = m.input(operator, 0, "the input")?;
    let axes: Vec<i32> = o.squeeze_dims().iter().collect();
    let axes = if axes.is_empty() {
        m.graph.absent(OperandType::TensorInt32)?
    } else {
        m.graph.ints(&axes)?
    };
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::Squeeze, vec![input, axes], output)
}

/// EXPAND_DIMS.
pub(super) fn expand_dims(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let input = m.input(operator, 0, "the input")?;
    let axis = m.only_int(operator, 1, "the axis")?;
    let inputs = vec![input, m.graph.int(axis)?];
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::ExpandDims, inputs, output)
}

/// TRANSPOSE.
pub(super) fn transpose(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let input = m.input(operator, 0, "the input")?;
    let order = m.ints(operator, 1, "the order of axes")?;
    let inputs = vec![input, m.graph.ints(&order)?];
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::Transpose, inputs, output)
}

/// CONCATENATION. NNAPI's axis counts only from the front.
pub(super) fn concatenation(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(), Refusal> {
    let o: ConcatenationOptions<'_> = options(operator)?;
    if o.activation() != 0 {
        return Err(Refusal::Activation { code: o.activation() });
    }
    if operator.inputs.is_empty() {
        return Err(Refusal::Count { what: "inputs", found: 0 });
    }
    let mut inputs = Vec::with_capacity(operator.inputs.len() + 1);
    for at in 0..operator.inputs.len() {
        inputs.push(m.input(operator, at, "an input")?);
    }
    let needed = inputs.first().map_or(OperandType::TensorFloat32, |&i| m.graph.operand(i).ty);
    if let Some(&odd) = inputs.iter().find(|&&input| m.graph.operand(input).ty != needed) {
        let found = m.graph.operand(odd).ty;
        return Err(Refusal::OperandType { what: "an input", found, needed });
    }
    let axis = axis_from_front(m, &inputs, o.axis())?;
    inputs.push(m.graph.int(axis)?);
    let output = m.output(operator, 0)?;
    m.emit(OperationType::Concatenation, inputs, output, None)
}

fn axis_from_front(m: &Mapper<'_, '_>, inputs: &[OperandIndex], axis: i32) -> Result<i32, Refusal> {
    if axis >= 0 {
        return Ok(axis);
    }
    let ranks = inputs.iter().map(|&input| m.graph.operand(input).dimensions.len());
    let rank = ranks.max().unwrap_or(0);
    if rank == 0 {
        return Err(Refusal::UnknownShape { what: "the inputs" });
    }
    let rank = i32::try_from(rank).unwrap_or(i32::MAX);
    match rank.checked_add(axis) {
        Some(axis) if axis >= 0 => Ok(axis),
        _ => Err(Refusal::OptionValue { option: "axis", value: axis.into() }),
    }
}

/// SPLIT into equal parts.
pub(super) fn split(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let o: SplitOptions<'_> = options(operator)?;
    let parts = positive("num_splits", o.num_splits())?;
    if usize::try_from(parts) != Ok(operator.outputs.len()) {
        return Err(Refusal::Count { what: "outputs", found: operator.outputs.len() });
    }
    let axis = m.only_int(operator, 0, "the axis")?;
    let input = m.input(operator, 1, "the input")?;
    let inputs = vec![input, m.graph.int(axis)?, m.graph.int(parts)?];
    let mut outputs = Vec::with_capacity(operator.outputs.len());
    for at in 0..operator.outputs.len() {
        let output = m.output(operator, at)?;
        let (made, given) = (m.graph.operand(output), m.graph.operand(input));
        if made.ty != given.ty {
            let (found, needed) = (made.ty, given.ty);
            return Err(Refusal::OperandType { what: "an output", found, needed });
        }
        if (made.scale, made.zero_point) != (given.scale, given.zero_point) {
            let tensor = operator.outputs.get(at).copied().unwrap_or_default();
            let problem = "has another scale or zero point than the input";
            return Err(Refusal::Quantization { tensor, ty: m.tensor(tensor)?.ty, problem });
        }
        outputs.push(output);
    }
    m.graph.operation(OperationType::Split, inputs, outputs)
}

/// DEPTH_TO_SPACE.
pub(super) fn depth_to_space(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(), Refusal> {
    let o: DepthToSpaceOptions<'_> = options(operator)?;
    block(m, operator, OperationType::DepthToSpace, o.block_size())
}

/// SPACE_TO_DEPTH.
pub(super) fn space_to_depth(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(), Refusal> {
    let o: SpaceToDepthOptions<'_> = options(operator)?;
    block(m, operator, OperationType::SpaceToDepth, o.block_size())
}

fn block(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
    size: i32,
) -> Result<(), Refusal> {
    expect_inputs(operator, &[1])?;
    let input = m.input(operator, 0, "the input")?;
    let inputs = vec![input, m.graph.int(positive("block_size", size)?)?];
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(ty, inputs, output)
}
