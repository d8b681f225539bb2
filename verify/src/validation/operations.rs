//! One operation made wrong: position in the order, type, operand lists, or gone.

use burst_hal::{
    Model, Operand, OperandLifeTime as LifeTime, OperandType, Operation, OperationType,
};

use super::exceptions::{input_is_optional, input_may_be_added};
use super::{Breaker, indexes};

/// Type codes just outside of the ranges that mean something.
const UNKNOWN_TYPES: [i32; 3] = [102, 9_999, 10_001];

/// A reader before its writer: moved to the front, or the writer moved to the end.
pub(crate) fn execution_order(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, operation| {
        let operands = &breaker.model().main.operands;
        let reads = operation.inputs.iter().any(|input| is_result(&operands[*input as usize]));
        if reads {
            breaker.refuses(
                || format!("operation {at}, which reads a result, moved to the front"),
                |model| model.main.operations[..=at].rotate_right(1),
            );
        }
        let is_read = |output: &u32| operands[*output as usize].number_of_consumers > 0;
        if operation.outputs.iter().any(is_read) {
            breaker.refuses(
                || format!("operation {at}, whose result is read, moved to the end"),
                |model| model.main.operations[at..].rotate_left(1),
            );
        }
    });
}

fn is_result(operand: &Operand) -> bool {
    matches!(operand.lifetime, LifeTime::TemporaryVariable | LifeTime::SubgraphOutput)
}

pub(crate) fn unknown_types(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, _| {
        for code in UNKNOWN_TYPES {
            breaker.refuses(
                || format!("operation {at} with the unknown type {code}"),
                |model| model.main.operations[at].ty = OperationType::from_code(code),
            );
        }
    });
}

/// As an input, the index of an operand that the graph does not have.
pub(crate) fn unknown_inputs(breaker: &mut Breaker<'_>) {
    let unknown = unknown_operand(breaker);
    each(breaker, |breaker, at, operation| {
        for input in 0..operation.inputs.len() {
            breaker.refuses(
                || format!("operation {at} with the unknown operand {unknown} as input {input}"),
                |model| model.main.operations[at].inputs[input] = unknown,
            );
        }
    });
}

/// The same as an output.
pub(crate) fn unknown_outputs(breaker: &mut Breaker<'_>) {
    let unknown = unknown_operand(breaker);
    each(breaker, |breaker, at, operation| {
        for output in 0..operation.outputs.len() {
            breaker.refuses(
                || format!("operation {at} with the unknown operand {unknown} as output {output}"),
                |model| model.main.operations[at].outputs[output] = unknown,
            );
        }
    });
}

fn unknown_operand(breaker: &Breaker<'_>) -> u32 {
    u32::try_from(breaker.model().main.operands.len()).unwrap_or(u32::MAX)
}

/// An operation done again at the end of the graph: it writes one result for a second time, and
/// its other results into operands of their own.
pub(crate) fn second_writers(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, operation| {
        for (position, operand) in indexes(&operation.outputs) {
            breaker.refuses(
                || format!("operand {operand} written again, by a copy of operation {at}"),
                |model| {
                    let mut copy = model.main.operations[at].clone();
                    for input in &copy.inputs {
                        let readers = &mut model.main.operands[*input as usize].number_of_consumers;
                        *readers = readers.saturating_add(1);
                    }
                    for (other, output) in (0..).zip(&mut copy.outputs) {
                        if other != position {
                            *output = unread_copy(model, *output);
                        }
                    }
                    model.main.operations.push(copy);
                },
            );
        }
    });
}

/// A result that nobody writes: its operation writes into an operand of its own instead.
pub(crate) fn missing_writers(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, operation| {
        for (position, operand) in operation.outputs.iter().enumerate() {
            breaker.refuses(
                || format!("operation {at} no longer writes operand {operand}"),
                |model| {
                    model.main.operations[at].outputs[position] = unread_copy(model, *operand);
                },
            );
        }
    });
}

/// Adds a temporary like an operand, which nobody reads.
fn unread_copy(model: &mut Model, operand: u32) -> u32 {
    let mut copy = model.main.operands[operand as usize].clone();
    copy.number_of_consumers = 0;
    copy.lifetime = LifeTime::TemporaryVariable;
    add_operand(model, copy)
}

fn add_operand(model: &mut Model, operand: Operand) -> u32 {
    let index = u32::try_from(model.main.operands.len()).unwrap_or(u32::MAX);
    model.main.operands.push(operand);
    index
}

pub(crate) fn removed(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, operation| {
        breaker.refuses(
            || format!("operation {at} removed"),
            |model| {
                model.main.operations.remove(at);
                operation.inputs.iter().for_each(|input| unread(model, *input));
            },
        );
    });
}

pub(crate) fn removed_inputs(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, operation| {
        for input in 0..operation.inputs.len() {
            if input_is_optional(operation, input) {
                continue;
            }
            breaker.refuses(
                || format!("operation {at} without its input {input}"),
                |model| {
                    let operand = model.main.operations[at].inputs.remove(input);
                    unread(model, operand);
                },
            );
        }
    });
}

pub(crate) fn removed_outputs(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, operation| {
        for output in 0..operation.outputs.len() {
            breaker.refuses(
                || format!("operation {at} without its output {output}"),
                |model| {
                    model.main.operations[at].outputs.remove(output);
                },
            );
        }
    });
}

pub(crate) fn added_inputs(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, operation| {
        if input_may_be_added(operation) {
            return;
        }
        breaker.refuses(
            || format!("operation {at} with one more input"),
            |model| {
                let mut operand = Operand::new(OperandType::Int32, LifeTime::SubgraphInput);
                operand.number_of_consumers = 1;
                let index = add_operand(model, operand);
                model.main.operations[at].inputs.push(index);
                model.main.input_indexes.push(index);
            },
        );
    });
}

/// The original suite counts a reader for the new operand, which nobody reads: wrong in two ways.
pub(crate) fn added_outputs(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, at, _| {
        breaker.refuses(
            || format!("operation {at} with one more output"),
            |model| {
                let operand = Operand::new(OperandType::Int32, LifeTime::SubgraphOutput);
                let index = add_operand(model, operand);
                model.main.operations[at].outputs.push(index);
                model.main.output_indexes.push(index);
            },
        );
    });
}

/// One reader of an operand less.
fn unread(model: &mut Model, operand: u32) {
    let readers = &mut model.main.operands[operand as usize].number_of_consumers;
    *readers = readers.saturating_sub(1);
}

/// Calls for every operation of the main graph.
fn each<'a>(
    breaker: &mut Breaker<'a>,
    mut visit: impl FnMut(&mut Breaker<'a>, usize, &'a Operation),
) {
    for (at, operation) in breaker.model().main.operations.iter().enumerate() {
        visit(breaker, at, operation);
    }
}
