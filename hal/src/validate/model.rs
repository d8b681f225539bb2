//! Rules for a whole model: counts, graphs, interfaces, references between graphs.

use super::error::{Direction, GraphId, InterfaceFault, OperandFault, ValidationError};
use super::limits::{Limit, MAX_CONSTANT_BYTES};
use super::operation::Written;
use super::{extension, operand, operation, within};
use crate::{HalVersion, Model, OperandLifeTime, Subgraph};

/// Checks everything about a model that holds whatever its operations compute.
///
/// Not checked here: the form of each operation, which its driver checks, or
/// [`validate_model_of`](super::validate_model_of).
///
/// # Errors
/// The first thing that is wrong; for its status see [`ValidationError::status`].
pub fn validate_model(model: &Model, version: HalVersion) -> Result<(), ValidationError> {
    check_counts(model)?;
    if model.pools.iter().any(|pool| pool.kind().since() > version) {
        return Err(ValidationError::NotYet { what: "buffers of devices", version });
    }
    extension::check_list(model)?;
    for (id, graph) in graphs(model) {
        check_graph(model, id, graph, version)?;
    }
    check_references(model)
}

/// Every graph of the model, with its name for errors.
pub(super) fn graphs(model: &Model) -> impl Iterator<Item = (GraphId, &Subgraph)> {
    let referenced = (0..).map(GraphId::Referenced).zip(&model.referenced);
    std::iter::once((GraphId::Main, &model.main)).chain(referenced)
}

/// Refuses counts above their limits, before any memory is allocated in proportion to them.
fn check_counts(model: &Model) -> Result<(), ValidationError> {
    if model.main.operands.is_empty() {
        return Err(ValidationError::NoOperands);
    }
    if model.main.operations.is_empty() {
        return Err(ValidationError::NoOperations);
    }
    within(model.referenced.len(), Limit::Subgraphs)?;
    within(model.pools.len(), Limit::ModelPools)?;
    within(graphs(model).map(|(_, g)| g.operands.len()).sum(), Limit::Operands)?;
    within(graphs(model).map(|(_, g)| g.operations.len()).sum(), Limit::Operations)?;
    let found = constant_bytes(model);
    if found > MAX_CONSTANT_BYTES {
        return Err(ValidationError::LimitExceeded { limit: Limit::ConstantBytes, found });
    }
    Ok(())
}

/// Lengths of all constants together, and of the values that travel with the model if that is
/// more: no operand need name them, but they are held.
fn constant_bytes(model: &Model) -> u64 {
    let is_constant = |lifetime| {
        matches!(lifetime, OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference)
    };
    let named = graphs(model)
        .flat_map(|(_, graph)| &graph.operands)
        .filter(|operand| is_constant(operand.lifetime))
        .fold(0_u64, |sum, operand| sum.saturating_add(u64::from(operand.location.length)));
    named.max(model.operand_values.len() as u64)
}

fn check_graph(
    model: &Model,
    id: GraphId,
    graph: &Subgraph,
    version: HalVersion,
) -> Result<(), ValidationError> {
    let at = |operand| move |fault| ValidationError::Operand { graph: id, operand, fault };
    for (index, operand) in (0..).zip(&graph.operands) {
        operand::check(model, operand, version).map_err(at(index))?;
    }
    check_operations(model, id, graph, version)?;
    check_interface(id, graph, Direction::Input)?;
    check_interface(id, graph, Direction::Output)?;
    check_consumers(graph).map_err(|(index, fault)| at(index)(fault))
}

/// Types and lists of all operations first, then their order.
fn check_operations(
    model: &Model,
    id: GraphId,
    graph: &Subgraph,
    version: HalVersion,
) -> Result<(), ValidationError> {
    let mut written = Written::nothing(graph);
    for (index, op) in (0..).zip(&graph.operations) {
        operation::check(model, graph, op, version)
            .and_then(|()| written.run(graph, op))
            .map_err(|fault| ValidationError::Operation { graph: id, operation: index, fault })?;
    }
    match written.first_missing(graph) {
        Some(operand) => {
            let fault = OperandFault::NotWritten;
            Err(ValidationError::Operand { graph: id, operand, fault })
        }
        None => Ok(()),
    }
}

/// The list must name every operand of its lifetime, each once, and no other.
fn check_interface(
    id: GraphId,
    graph: &Subgraph,
    direction: Direction,
) -> Result<(), ValidationError> {
    let (list, wanted) = match direction {
        Direction::Input => (&graph.input_indexes, OperandLifeTime::SubgraphInput),
        Direction::Output => (&graph.output_indexes, OperandLifeTime::SubgraphOutput),
    };
    let mut listed = vec![false; graph.operands.len()];
    for (position, operand) in (0..).zip(list) {
        list_once(graph, &mut listed, *operand, wanted).map_err(|fault| {
            ValidationError::Interface { graph: id, direction, position, fault }
        })?;
    }
    for (operand, (value, is_listed)) in (0..).zip(graph.operands.iter().zip(&listed)) {
        if value.lifetime == wanted && !is_listed {
            let fault = OperandFault::NotListed { direction };
            return Err(ValidationError::Operand { graph: id, operand, fault });
        }
    }
    Ok(())
}

/// Checks one entry of a graph's list of inputs or outputs and marks its operand as listed.
fn list_once(
    graph: &Subgraph,
    listed: &mut [bool],
    operand: u32,
    wanted: OperandLifeTime,
) -> Result<(), InterfaceFault> {
    let position = usize::try_from(operand).unwrap_or(usize::MAX);
    let (Some(value), Some(seen)) = (graph.operands.get(position), listed.get_mut(position)) else {
        let operands = super::saturate(graph.operands.len());
        return Err(InterfaceFault::UnknownOperand { operand, operands });
    };
    if value.lifetime != wanted {
        return Err(InterfaceFault::Lifetime { operand, lifetime: value.lifetime });
    }
    if std::mem::replace(seen, true) {
        return Err(InterfaceFault::Twice { operand });
    }
    Ok(())
}

fn check_consumers(graph: &Subgraph) -> Result<(), (u32, OperandFault)> {
    let counts = graph.count_consumers();
    for (index, (operand, counted)) in (0..).zip(graph.operands.iter().zip(counts)) {
        let declared = operand.number_of_consumers;
        if declared != counted {
            return Err((index, OperandFault::Consumers { declared, counted }));
        }
    }
    Ok(())
}

/// What is known of a subgraph while references are followed.
#[derive(Clone, Copy)]
enum Visit {
    NotYet,
    /// Being followed right now: meeting it again is a cycle.
    Open,
    /// Followed to the end: how many levels it spans, itself included.
    Done(usize),
}

/// Refuses references that lead back to their own graph, and nesting that is too deep.
fn check_references(model: &Model) -> Result<(), ValidationError> {
    let mut visits = vec![Visit::NotYet; model.referenced.len()];
    for target in references(&model.main) {
        follow(model, &mut visits, target, 2)?;
    }
    for index in 0..visits.len() {
        follow(model, &mut visits, index, 2)?;
    }
    Ok(())
}

/// Follows one subgraph's references; it stands at `level`, where the main graph is level 1.
/// Each subgraph is followed once, and recursion ends at [`MAX_NESTING`].
fn follow(
    model: &Model,
    visits: &mut [Visit],
    index: usize,
    level: usize,
) -> Result<usize, ValidationError> {
    let (Some(graph), Some(visit)) = (model.referenced.get(index), visits.get_mut(index)) else {
        return Ok(0); // the operand's own check has refused such an index
    };
    match *visit {
        Visit::Open => {
            let subgraph = super::saturate(index);
            return Err(ValidationError::ReferenceCycle { subgraph });
        }
        Visit::Done(height) => return within(level - 1 + height, Limit::Nesting).map(|()| height),
        Visit::NotYet => {}
    }
    within(level, Limit::Nesting)?;
    *visit = Visit::Open;
    let mut height = 1;
    for target in references(graph) {
        height = height.max(1 + follow(model, visits, target, level + 1)?);
    }
    visits[index] = Visit::Done(height);
    Ok(height)
}

/// Indexes of the subgraphs that a graph refers to.
fn references(graph: &Subgraph) -> impl Iterator<Item = usize> + '_ {
    let operands = graph.operands.iter();
    operands
        .filter(|operand| operand.lifetime == OperandLifeTime::Subgraph)
        .map(|operand| usize::try_from(operand.location.offset).unwrap_or(usize::MAX))
}
