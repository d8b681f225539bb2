//! Reductions along axes.

use burst_hal::{OperandType, OperationType};

use super::expect_inputs;
use crate::ElementType;
use crate::error::Refusal;
use crate::file::Operator;
use crate::mapper::{Mapper, options};
use crate::schema::ReducerOptions;
use crate::verdict::Note;

/// MEAN, which has an integer for `keep_dims` in NNAPI.
pub(super) fn mean(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let o: ReducerOptions<'_> = options(operator)?;
    let input = m.input(operator, 0, "the input")?;
    let axes = m.ints(operator, 1, "the axes")?;
    let inputs = vec![input, m.graph.ints(&axes)?, m.graph.int(o.keep_dims().into())?];
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(OperationType::Mean, inputs, output)
}

/// The other reductions, which have a truth value for `keep_dims`.
pub(super) fn reduce(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let o: ReducerOptions<'_> = options(operator)?;
    let input = m.input(operator, 0, "the input")?;
    let axes = m.ints(operator, 1, "the axes")?;
    let inputs = vec![input, m.graph.ints(&axes)?, m.graph.bool(o.keep_dims())?];
    let output = m.output(operator, 0)?;
    m.emit_keeping_scale(ty, inputs, output)
}

/// ARG_MAX and ARG_MIN. NNAPI has only 32-bit indexes.
pub(super) fn arg(
    m: &mut Mapper<'_, '_>,
    operator: &Operator<'_>,
    ty: OperationType,
) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let input = m.input(operator, 0, "the input")?;
    let axis = m.only_int(operator, 1, "the axis")?;
    let axis = m.graph.int(axis)?;
    let found = operator.outputs.len();
    let &[result] = operator.outputs.as_slice() else {
        return Err(Refusal::Count { what: "outputs", found });
    };
    let output = match m.tensor(result)?.ty {
        ElementType::Int64 => {
            m.notes.push(Note::Int64AsInt32);
            m.written(result, Some(OperandType::TensorInt32))?
        }
        _ => m.written(result, None)?,
    };
    let (found, needed) = (m.graph.operand(output).ty, OperandType::TensorInt32);
    if found != needed {
        return Err(Refusal::OperandType { what: "the output", found, needed });
    }
    m.graph.operation(ty, vec![input, axis], vec![output])
}
