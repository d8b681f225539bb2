//! One operand made wrong: type, rank, quantization, number of readers, or gone.

use std::sync::Arc;

use burst_hal::{ExtraParams, Model, Operand, OperandKind, OperandType, Operation, Subgraph};
use smallvec::smallvec;

use super::exceptions::{input_is_optional, outputs_vary, takes_type};
use super::{Breaker, indexes};

/// Type codes just outside of the two ranges that mean something.
const UNKNOWN_TYPES: [i32; 4] = [-1, 16, 9_999, 10_002];

pub(crate) fn unknown_types(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, index, _| {
        for code in UNKNOWN_TYPES {
            let what = || format!("operand {index} with the unknown type {code}");
            breaker.change(index, what, |operand| operand.ty = OperandType::from_code(code));
        }
    });
}

/// A scalar with a dimension.
pub(crate) fn ranks(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, index, operand| {
        if operand.ty.is_scalar() {
            let what = || format!("scalar operand {index} with a dimension");
            breaker.change(index, what, |operand| operand.dimensions = smallvec![0]);
        }
    });
}

pub(crate) fn scales(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, index, operand| {
        let scale = match operand.ty {
            OperandType::TensorInt32 => -1.0,
            ty if ty.is_quantized() || ty.is_oem() => 0.0,
            _ => 1.0,
        };
        let what = || format!("operand {index} with the scale {scale}");
        breaker.change(index, what, |operand| operand.scale = scale);
    });
}

/// Zero points just outside of the type's range; of symmetric types also others than 0.
pub(crate) fn zero_points(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, index, operand| {
        let wrong: &[i32] = match operand.ty {
            OperandType::TensorQuant8Asymm => &[-1, 256],
            OperandType::TensorQuant8AsymmSigned => &[-129, 128],
            OperandType::TensorQuant8Symm => &[-129, -1, 1, 128],
            OperandType::TensorQuant16Asymm => &[-1, 65_536],
            OperandType::TensorQuant16Symm => &[-32_769, -1, 1, 32_768],
            ty if ty.is_oem() => &[],
            _ => &[1],
        };
        for zero_point in wrong {
            let what = || format!("operand {index} with the zero point {zero_point}");
            breaker.change(index, what, |operand| operand.zero_point = *zero_point);
        }
    });
}

pub(crate) fn consumers(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, index, operand| {
        let right = operand.number_of_consumers;
        for wrong in [right.checked_sub(1), right.checked_add(1)].into_iter().flatten() {
            let what = || format!("operand {index} with {wrong} readers instead of {right}");
            breaker.change(index, what, |operand| operand.number_of_consumers = wrong);
        }
    });
}

/// Every other type, with scale, zero point and dimensions as that type needs them.
pub(crate) fn other_types(breaker: &mut Breaker<'_>) {
    let model = breaker.model();
    each(breaker, |breaker, index, operand| {
        let types = OperandType::ALL.iter().copied();
        let types = types.filter(|ty| *ty != operand.ty && !ty.is_oem());
        for ty in types.filter(|ty| !takes_type(model, index, *ty)) {
            let what = || format!("operand {index} with the type {ty} instead of {}", operand.ty);
            breaker.change(index, what, |operand| become_type(operand, ty));
        }
    });
}

fn become_type(operand: &mut Operand, ty: OperandType) {
    operand.ty = ty;
    operand.extra_params = ExtraParams::None;
    match ty.kind() {
        OperandKind::Scalar => operand.dimensions.clear(),
        OperandKind::Tensor if operand.dimensions.is_empty() => operand.dimensions = smallvec![1],
        _ => {}
    }
    if ty.is_quantized() {
        let has_scale = operand.scale > 0.0;
        operand.scale = if has_scale { operand.scale } else { 1.0 };
        let (min, max) = ty.zero_point_range();
        operand.zero_point = operand.zero_point.clamp(min, max);
        return;
    }
    operand.zero_point = 0;
    if ty != OperandType::TensorInt32 {
        operand.scale = 0.0;
    }
    if ty == OperandType::TensorQuant8SymmPerChannel {
        let channels = operand.dimensions.first().copied().unwrap_or_default();
        let scales: Arc<[f32]> = (0..channels).map(|_| 1.0).collect();
        operand.extra_params = ExtraParams::ChannelQuant { scales, channel_dim: 0 };
    }
}

/// An operand that is read somewhere taken out of every list: once with all later indexes moved
/// up, and once (as the original suite does) with the indexes left as they are.
pub(crate) fn removed(breaker: &mut Breaker<'_>) {
    let main = &breaker.model().main;
    each(breaker, |breaker, index, operand| {
        let varies = |op: &Operation| outputs_vary(op) && op.outputs.contains(&index);
        if operand.number_of_consumers == 0 || main.operations.iter().any(varies) {
            return;
        }
        breaker.refuses(
            || format!("operand {index} removed, other indexes left as they were"),
            |model| remove(&mut model.main, index, false),
        );
        if !main.operations.iter().any(|op| can_do_without(op, index)) {
            let what = || format!("operand {index} removed");
            breaker.refuses(what, |model| remove(&mut model.main, index, true));
        }
    });
}

fn can_do_without(operation: &Operation, operand: u32) -> bool {
    let mut inputs = operation.inputs.iter().enumerate();
    inputs.any(|(at, input)| *input == operand && input_is_optional(operation, at))
}

fn remove(graph: &mut Subgraph, index: u32, renumber: bool) {
    graph.operands.remove(index as usize);
    let operations = graph.operations.iter_mut();
    let lists = operations.flat_map(|operation| [&mut operation.inputs, &mut operation.outputs]);
    for list in lists.chain([&mut graph.input_indexes, &mut graph.output_indexes]) {
        list.retain(|one| *one != index);
        list.iter_mut().filter(|one| renumber && **one > index).for_each(|one| *one -= 1);
    }
}

/// Calls for every operand of the main graph.
pub(super) fn each<'a>(
    breaker: &mut Breaker<'a>,
    mut visit: impl FnMut(&mut Breaker<'a>, u32, &'a Operand),
) {
    for (index, operand) in indexes(&breaker.model().main.operands) {
        visit(breaker, index, operand);
    }
}

impl Breaker<'_> {
    /// Shows the device a copy with one operand changed.
    fn change(
        &mut self,
        index: u32,
        what: impl FnOnce() -> String,
        change: impl FnOnce(&mut Operand),
    ) {
        self.refuses(what, |model: &mut Model| change(&mut model.main.operands[index as usize]));
    }
}
