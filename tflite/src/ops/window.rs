//! Operators that take parts of a tensor, repeat it, or put a border around it.

use burst_hal::{OperandType, OperationType};

use super::expect_inputs;
use crate::error::Refusal;
use crate::file::Operator;
use crate::mapper::{Mapper, options};
use crate::schema::{GatherOptions, StridedSliceOptions};

/// PAD.
pub(super) fn pad(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let input = m.input(operator, 0, "the input")?;
    // A constant must be there: TFLite allows a computed border, but then no shape is known.
    m.ints(operator, 1, "the border")?;
    let border = m.input(operator, 1, "the border")?;
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::Pad, vec![input, border], output)
}

/// STRIDED_SLICE, without the masks that NNAPI's has not.
pub(super) fn strided_slice(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
) -> Result<(), Refusal> {
    expect_inputs(operator, &[4])?;
    let o: StridedSliceOptions<'_> = options(operator)?;
    for (option, value) in [
        ("ellipsis_mask", o.ellipsis_mask()),
        ("new_axis_mask", o.new_axis_mask()),
        ("offset", o.offset().into()),
    ] {
        if value != 0 {
            return Err(Refusal::OptionValue { option, value: value.into() });
        }
    }
    let mut inputs = vec![m.input(operator, 0, "the input")?];
    for (at, what) in [(1, "begin"), (2, "end"), (3, "strides")] {
        let values = m.ints(operator, at, what)?;
        inputs.push(m.graph.ints(&values)?);
    }
    for mask in [o.begin_mask(), o.end_mask(), o.shrink_axis_mask()] {
        inputs.push(m.graph.int(mask)?);
    }
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::StridedSlice, inputs, output)
}

/// SLICE.
pub(super) fn slice(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[3])?;
    let mut inputs = vec![m.input(operator, 0, "the input")?];
    for (at, what) in [(1, "begin"), (2, "size")] {
        let values = m.ints(operator, at, what)?;
        inputs.push(m.graph.ints(&values)?);
    }
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::Slice, inputs, output)
}

/// GATHER along one axis.
pub(super) fn gather(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let o: GatherOptions<'_> = options(operator)?;
    if o.batch_dims() != 0 {
        let value = o.batch_dims().into();
        return Err(Refusal::OptionValue { option: "batch_dims", value });
    }
    let input = m.input(operator, 0, "the input")?;
    let axis = m.graph.int(o.axis())?;
    let indexes = m.input(operator, 1, "the indexes")?;
    let (found, needed) = (m.graph.operand(indexes).ty, OperandType::TensorInt32);
    if found != needed {
        return Err(Refusal::OperandType { what: "the indexes", found, needed });
    }
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::Gather, vec![input, axis, indexes], output)
}

/// TILE.
pub(super) fn tile(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let input = m.input(operator, 0, "the input")?;
    let multiples = m.ints(operator, 1, "the multiples")?;
    let inputs = vec![input, m.graph.ints(&multiples)?];
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::Tile, inputs, output)
}
