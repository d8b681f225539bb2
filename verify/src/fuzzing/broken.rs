//! Models that are wrong somewhere, or only odd: validation says which.

use std::sync::Arc;

use burst_hal::{
    DataLocation, ExtraParams, Model, OperandLifeTime, OperandType, OperationType, Subgraph,
};

use super::bytes::Bytes;

/// Changes one thing in a model.
pub(super) fn break_model(model: &mut Model, bytes: &mut Bytes<'_>) {
    match bytes.below(8) {
        0..4 => break_operand(model, bytes),
        4 | 5 => break_operation(model, bytes),
        6 => break_graph(model, bytes),
        _ => break_rest(model, bytes),
    }
}

/// The main graph, or one that it refers to.
fn graph<'m>(model: &'m mut Model, bytes: &mut Bytes<'_>) -> &'m mut Subgraph {
    let count = model.referenced.len();
    match bytes.below(count + 1) {
        0 => &mut model.main,
        index => &mut model.referenced[index - 1],
    }
}

fn break_operand(model: &mut Model, bytes: &mut Bytes<'_>) {
    let operands = &mut graph(model, bytes).operands;
    let index = bytes.below(operands.len());
    let Some(operand) = operands.get_mut(index) else { return };
    match bytes.below(10) {
        0 => operand.ty = any_type(bytes),
        1 => {
            let axis = bytes.below(operand.dimensions.len());
            let size = any_number(bytes);
            operand.dimensions.get_mut(axis).into_iter().for_each(|old| *old = size);
        }
        2 => operand.dimensions.push(any_number(bytes)),
        3 => {
            operand.dimensions.pop();
        }
        4 => operand.scale = f32::from_bits(any_number(bytes)),
        5 => operand.zero_point = any_number(bytes).cast_signed(),
        6 => {
            operand.lifetime = OperandLifeTime::ALL[bytes.below(OperandLifeTime::ALL.len())];
        }
        7 => {
            let (offset, length) = (any_number(bytes), any_number(bytes));
            operand.location = DataLocation { pool_index: bytes.word() % 3, offset, length };
        }
        8 => operand.number_of_consumers = any_number(bytes),
        _ => {
            operand.extra_params = match bytes.below(3) {
                0 => ExtraParams::None,
                1 => ExtraParams::Extension(Arc::from([1_u8, 2])),
                _ => {
                    let scales = [f32::from_bits(bytes.word()), 1.0];
                    let channel_dim = any_number(bytes);
                    ExtraParams::ChannelQuant { scales: Arc::from(scales), channel_dim }
                }
            };
        }
    }
}

fn break_operation(model: &mut Model, bytes: &mut Bytes<'_>) {
    let operations = &mut graph(model, bytes).operations;
    let index = bytes.below(operations.len());
    let Some(operation) = operations.get_mut(index) else { return };
    let lists = [&mut operation.inputs, &mut operation.outputs];
    let is_output = bytes.below(2);
    match bytes.below(6) {
        0 => operation.ty = OperationType::from_code(any_code(bytes)),
        1 => lists.into_iter().skip(is_output).take(1).for_each(|list| {
            list.pop();
        }),
        2 => {
            let number = any_number(bytes);
            lists.into_iter().skip(is_output).take(1).for_each(|list| list.push(number));
        }
        3 => {
            let (at, number) = (bytes.byte(), any_number(bytes));
            let list = lists.into_iter().nth(is_output);
            let slot = list.and_then(|list| {
                let at = usize::from(at).checked_rem(list.len())?;
                list.get_mut(at)
            });
            slot.into_iter().for_each(|slot| *slot = number);
        }
        4 => drop(operations.remove(index)),
        _ => {
            let other = bytes.below(operations.len());
            operations.swap(index, other);
        }
    }
}

fn break_graph(model: &mut Model, bytes: &mut Bytes<'_>) {
    let graph = graph(model, bytes);
    let number = any_number(bytes);
    match bytes.below(5) {
        0 => graph.input_indexes.push(number),
        1 => graph.output_indexes.push(number),
        2 => {
            graph.input_indexes.pop();
        }
        3 => {
            graph.output_indexes.pop();
        }
        _ => graph.operands.truncate(usize::from(bytes.byte())),
    }
}

fn break_rest(model: &mut Model, bytes: &mut Bytes<'_>) {
    match bytes.below(5) {
        0 => *model = Model::default(),
        1 => model.extension_name_to_prefix.push(("com.example.fuzz".to_owned(), 1)),
        2 => model.extension_name_to_prefix.push(("No Name".to_owned(), 0)),
        3 => drop(model.referenced.pop()),
        _ => model.operand_values = vec![0; usize::from(bytes.byte())].into(),
    }
}

fn any_type(bytes: &mut Bytes<'_>) -> OperandType {
    match bytes.below(4) {
        0 => OperandType::from_code(any_code(bytes)),
        _ => OperandType::ALL[bytes.below(OperandType::ALL.len())],
    }
}

fn any_code(bytes: &mut Bytes<'_>) -> i32 {
    bytes.pick([0x1_0000, -1, 99, 0xFFFF, 10_000, 0x7FFF_FFFF, 22])
}

/// A small number, or one at an edge.
fn any_number(bytes: &mut Bytes<'_>) -> u32 {
    match bytes.below(6) {
        0 => bytes.pick([u32::MAX, 1 << 31, i32::MAX.cast_unsigned(), 0x7F80_0000, 1 << 16]),
        1 => bytes.word(),
        _ => u32::from(bytes.byte() % 16),
    }
}
