//! Branches and loops: the graphs that they name take and give what the operation does.

use burst_hal::validate::combine_dimensions;
use burst_hal::{Model, Operand, OperandLifeTime, OperandType, Operation, OperationType, Subgraph};

use crate::error::{Error, Result};

/// Checks every IF and WHILE of a model whose operations have legal forms.
///
/// # Errors
/// BAD_DATA for a graph with other inputs or outputs than the operation that runs it.
pub(super) fn check(model: &Model) -> Result<()> {
    for graph in std::iter::once(&model.main).chain(&model.referenced) {
        for operation in &graph.operations {
            let Boundary { run, inputs, given } = match operation.ty {
                OperationType::If => branches(model, graph, operation),
                OperationType::While => rounds(model, graph, operation),
                _ => continue,
            }
            .ok_or_else(|| Error::bad_data(format!("{} of no graphs", operation.ty)))?;
            for (what, referenced, outputs) in run {
                let wrong =
                    |why: String| Error::bad_data(format!("the {what} of {}: {why}", operation.ty));
                agree(&inputs, &operands(referenced, &referenced.input_indexes))
                    .map_err(|why| wrong(format!("its inputs: {why}")))?;
                agree(&outputs, &operands(referenced, &referenced.output_indexes))
                    .map_err(|why| wrong(format!("its outputs: {why}")))?;
            }
            let (outputs, of_body) = given;
            agree(&outputs, &of_body).map_err(|why| {
                Error::bad_data(format!("what {} gives of its body: {why}", operation.ty))
            })?;
        }
    }
    Ok(())
}

/// The graphs that an operation runs, each with what it has to give, and what all of them take.
struct Boundary<'a> {
    run: Vec<(&'static str, &'a Subgraph, Vec<&'a Operand>)>,
    inputs: Vec<&'a Operand>,
    /// What a loop gives, and the same in its body: the first of its outputs.
    given: (Vec<&'a Operand>, Vec<&'a Operand>),
}

fn branches<'a>(
    model: &'a Model,
    graph: &'a Subgraph,
    operation: &Operation,
) -> Option<Boundary<'a>> {
    let [_, then, otherwise, inputs @ ..] = &*operation.inputs else { return None };
    let outputs = operands(graph, &operation.outputs);
    let run = vec![
        ("first graph", referenced(model, graph, *then)?, outputs.clone()),
        ("second graph", referenced(model, graph, *otherwise)?, outputs),
    ];
    Some(Boundary { run, inputs: operands(graph, inputs), given: Default::default() })
}

/// The body gives the next values of the first inputs; the loop gives the first of these.
fn rounds<'a>(
    model: &'a Model,
    graph: &'a Subgraph,
    operation: &Operation,
) -> Option<Boundary<'a>> {
    let [condition, body, inputs @ ..] = &*operation.inputs else { return None };
    let (condition, body) =
        (referenced(model, graph, *condition)?, referenced(model, graph, *body)?);
    let inputs = operands(graph, inputs);
    let count = body.output_indexes.len();
    let state = inputs.get(..count).filter(|state| state.len() >= operation.outputs.len())?;
    let is_answer = |operand: &&Operand| {
        operand.ty == OperandType::TensorBool8 && matches!(&operand.dimensions[..], [] | [0 | 1])
    };
    let answer = operands(condition, &condition.output_indexes);
    let run = vec![
        ("condition", condition, answer.into_iter().filter(is_answer).take(1).collect()),
        ("body", body, state.to_vec()),
    ];
    let outputs = operands(graph, &operation.outputs);
    let of_body = operands(body, &body.output_indexes).into_iter().take(outputs.len()).collect();
    Some(Boundary { run, inputs, given: (outputs, of_body) })
}

fn referenced<'a>(model: &'a Model, graph: &Subgraph, index: u32) -> Option<&'a Subgraph> {
    let operand = graph.operands.get(usize::try_from(index).ok()?)?;
    let is_reference = operand.lifetime == OperandLifeTime::Subgraph;
    model.referenced.get(usize::try_from(operand.location.offset).ok()?).filter(|_| is_reference)
}

fn operands<'a>(graph: &'a Subgraph, indexes: &[u32]) -> Vec<&'a Operand> {
    let operand = |index: &u32| graph.operands.get(usize::try_from(*index).ok()?);
    indexes.iter().filter_map(operand).collect()
}

/// Whether the values of one list can be those of the other.
#[allow(clippy::float_cmp, reason = "the same scale, not one that is near")]
fn agree(outside: &[&Operand], inside: &[&Operand]) -> std::result::Result<(), String> {
    if outside.len() != inside.len() {
        return Err(format!("{} where there are {}", inside.len(), outside.len()));
    }
    for (position, (outside, inside)) in outside.iter().zip(inside).enumerate() {
        let is_same = outside.ty == inside.ty
            && outside.scale == inside.scale
            && outside.zero_point == inside.zero_point;
        if !is_same {
            return Err(format!("{position} is {} where it is {}", inside.ty, outside.ty));
        }
        combine_dimensions(&outside.dimensions, &inside.dimensions)
            .map_err(|error| format!("{position}: {error}"))?;
    }
    Ok(())
}
