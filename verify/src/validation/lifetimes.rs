//! An operand with another lifetime: one that gives it a writer it must not have, or takes away
//! the one it needs; or one that the graph's lists of inputs and outputs do not agree with.

use burst_hal::{
    DataLocation, Model, Operand, OperandLifeTime as LifeTime, OperandValues, Subgraph,
};

use super::Breaker;
use super::operands::each;

/// Lifetimes with the wrong writer; the graph's lists follow.
pub(crate) fn lifetimes(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, index, operand| {
        let wrong: &[LifeTime] = match operand.lifetime {
            LifeTime::SubgraphOutput | LifeTime::TemporaryVariable => {
                &[LifeTime::SubgraphInput, LifeTime::ConstantCopy]
            }
            LifeTime::ConstantCopy | LifeTime::ConstantReference | LifeTime::SubgraphInput => {
                &[LifeTime::TemporaryVariable, LifeTime::SubgraphOutput]
            }
            LifeTime::NoValue | LifeTime::Subgraph => &[],
        };
        for lifetime in wrong.iter().filter(|lifetime| can_become(operand, **lifetime)) {
            breaker.refuses(
                || describe(index, operand.lifetime, *lifetime),
                |model| {
                    leave_lists(&mut model.main, index);
                    set_lifetime(model, index, *lifetime);
                    match lifetime {
                        LifeTime::SubgraphInput => model.main.input_indexes.push(index),
                        LifeTime::SubgraphOutput => model.main.output_indexes.push(index),
                        _ => {}
                    }
                },
            );
        }
    });
}

/// Lifetimes with the right writer, but the graph's lists stay as they were.
pub(crate) fn interfaces(breaker: &mut Breaker<'_>) {
    each(breaker, |breaker, index, operand| {
        let lifetime = match operand.lifetime {
            LifeTime::ConstantCopy | LifeTime::ConstantReference => LifeTime::SubgraphInput,
            LifeTime::SubgraphInput => LifeTime::ConstantCopy,
            LifeTime::SubgraphOutput => LifeTime::TemporaryVariable,
            LifeTime::TemporaryVariable => LifeTime::SubgraphOutput,
            LifeTime::NoValue | LifeTime::Subgraph => return,
        };
        if can_become(operand, lifetime) {
            let what =
                || format!("{}, lists unchanged", describe(index, operand.lifetime, lifetime));
            breaker.refuses(what, |model| set_lifetime(model, index, lifetime));
        }
    });
}

fn describe(index: u32, was: LifeTime, is: LifeTime) -> String {
    format!("operand {index} with the lifetime {is:?} instead of {was:?}")
}

/// A constant has a known size; anything can become the rest.
fn can_become(operand: &Operand, lifetime: LifeTime) -> bool {
    lifetime != LifeTime::ConstantCopy || constant_bytes(operand).is_some()
}

/// Bytes of the operand as a constant; `None` where its size is not known, or none.
fn constant_bytes(operand: &Operand) -> Option<u32> {
    let has_rank = operand.ty.is_scalar() || !operand.dimensions.is_empty();
    let bytes = operand.ty.byte_length(&operand.dimensions).filter(|bytes| *bytes > 0);
    bytes.filter(|_| has_rank).and_then(|bytes| u32::try_from(bytes).ok())
}

fn leave_lists(graph: &mut Subgraph, index: u32) {
    graph.input_indexes.retain(|one| *one != index);
    graph.output_indexes.retain(|one| *one != index);
}

/// Gives an operand another lifetime, and a byte range where it becomes a constant: any bytes of the
/// model will do, more are added where they are too few.
fn set_lifetime(model: &mut Model, index: u32, lifetime: LifeTime) {
    let operand = &mut model.main.operands[index as usize];
    operand.lifetime = lifetime;
    operand.location = DataLocation::default();
    let Some(length) = constant_bytes(operand).filter(|_| lifetime == LifeTime::ConstantCopy)
    else {
        return;
    };
    operand.location.length = length;
    if model.operand_values.len() < length as usize {
        let mut values = model.operand_values.to_vec();
        values.resize(length as usize, 0);
        model.operand_values = OperandValues::new(values);
    }
}
