//! Reductions along axes.

use burst_hal::{OperandType, OperationType};

use super::{expect_inputs, rescale};
use crate::ElementType;
use crate::error::Refusal;
use crate::file::Operator;
use crate::graph::{OperandIndex, Quant};
use crate::mapper::{Mapper, options};
use crate::schema::ReducerOptions;
use crate::verdict::Note;

/// MEAN, which has an integer for `keep_dims` in NNAPI.
pub(super) fn mean(m: &mut Mapper<'_, '_>, operator: &Operator<'_>) -> Result<(), Refusal> {
    expect_inputs(operator, &[2])?;
    let o: ReducerOptions<'_> = options(operator)?;
    let input = m.input(operator, 0, "the input")?;
    let axes = m.ints(operator, 1, "the axes")?;
    let output = m.output(operator, 0)?;
    let (given, made) = (m.graph.operand(input), m.graph.operand(output));
    let same = given.ty != made.ty || Quant::of(given) == Quant::of(made);
    if given.ty.is_quantized() && !same {
        return rescaling_mean(m, input, &axes, o.keep_dims(), output);
    }
    let inputs = vec![input, m.graph.ints(&axes)?, m.graph.int(o.keep_dims().into())?];
    m.emit(OperationType::Mean, inputs, output, None)
}

/// A mean with another scale than its input's: by a convolution where that is exact, else by way
/// of real numbers, which round once where TFLite rounds twice.
fn rescaling_mean(
    m: &mut Mapper<'_, '_>,
    input: OperandIndex,
    axes: &[i32],
    keep_dims: bool,
    output: OperandIndex,
) -> Result<(), Refusal> {
    if rescale::mean(m, input, axes, output)? {
        return Ok(());
    }
    m.notes.push(Note::Requantized);
    let real = OperandType::TensorFloat32;
    let before = m.graph.operand(input).dimensions.clone();
    let after = m.graph.operand(output).dimensions.clone();
    let before = m.graph.temporary(real, before, Quant::NONE)?;
    m.graph.operation(OperationType::Dequantize, vec![input], vec![before])?;
    let after = m.graph.temporary(real, after, Quant::NONE)?;
    let inputs = vec![before, m.graph.ints(axes)?, m.graph.int(keep_dims.into())?];
    m.emit(OperationType::Mean, inputs, after, None)?;
    m.graph.operation(OperationType::Quantize, vec![after], vec![output])
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
