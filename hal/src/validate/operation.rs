//! Rules for one operation: type, operand lists, and its position in the order of execution.

use super::error::{Direction, OperationFault as Fault};
use super::limits::MAX_OPERATION_OPERANDS;
use crate::{
    ExtensionCode, HalVersion, Model, Operand, OperandLifeTime, OperandType, Operation,
    OperationType, Subgraph,
};

/// Checks the operation's type and that its lists name operands of the graph.
pub(super) fn check(
    model: &Model,
    graph: &Subgraph,
    operation: &Operation,
    version: HalVersion,
) -> Result<(), Fault> {
    check_type(model, operation.ty, version)?;
    check_list(graph, &operation.inputs, Direction::Input)?;
    check_list(graph, &operation.outputs, Direction::Output)?;
    check_subgraph_inputs(graph, operation)
}

fn check_type(model: &Model, ty: OperationType, version: HalVersion) -> Result<(), Fault> {
    let since = ty.since().ok_or(Fault::UnknownType { code: ty.code() })?;
    if since > version {
        return Err(Fault::TypeTooNew { ty, version });
    }
    match ty {
        OperationType::Extension(code) => {
            let prefix = ExtensionCode::from_code(code).prefix;
            super::extension::is_declared(model, prefix)
                .then_some(())
                .ok_or(Fault::UndeclaredExtension { prefix })
        }
        _ => Ok(()),
    }
}

fn check_list(graph: &Subgraph, list: &[u32], direction: Direction) -> Result<(), Fault> {
    if list.len() > MAX_OPERATION_OPERANDS {
        return Err(Fault::TooManyOperands { direction, count: list.len() as u64 });
    }
    list.iter().try_for_each(|index| operand(graph, *index).map(drop))
}

/// The operands of IF and WHILE that name the graphs to run.
fn check_subgraph_inputs(graph: &Subgraph, operation: &Operation) -> Result<(), Fault> {
    let positions = match operation.ty {
        OperationType::If => 1..3_u32,
        OperationType::While => 0..2_u32,
        _ => return Ok(()),
    };
    for position in positions {
        let is_subgraph = operation.inputs.get(position as usize).is_some_and(|index| {
            operand(graph, *index).is_ok_and(|o| o.ty == OperandType::Subgraph)
        });
        if !is_subgraph {
            return Err(Fault::NotASubgraph { position });
        }
    }
    Ok(())
}

fn operand(graph: &Subgraph, index: u32) -> Result<&Operand, Fault> {
    let found = usize::try_from(index).ok().and_then(|position| graph.operands.get(position));
    found.ok_or(Fault::UnknownOperand {
        operand: index,
        operands: super::saturate(graph.operands.len()),
    })
}

/// Which temporaries and outputs of a graph have been written so far, in execution order.
pub(super) struct Written(Vec<bool>);

impl Written {
    /// Nothing yet.
    pub(super) fn nothing(graph: &Subgraph) -> Self {
        Written(vec![false; graph.operands.len()])
    }

    /// Runs one checked operation: it may read what is there already, and write what is not.
    pub(super) fn run(&mut self, graph: &Subgraph, operation: &Operation) -> Result<(), Fault> {
        for index in &operation.inputs {
            if is_result(operand(graph, *index)?) && !self.contains(*index) {
                return Err(Fault::ReadBeforeWrite { operand: *index });
            }
        }
        for index in &operation.outputs {
            let operand = operand(graph, *index)?;
            if !is_result(operand) {
                let lifetime = operand.lifetime;
                return Err(Fault::WritesReadOnly { operand: *index, lifetime });
            }
            if std::mem::replace(&mut self.0[*index as usize], true) {
                return Err(Fault::WrittenTwice { operand: *index });
            }
        }
        Ok(())
    }

    fn contains(&self, index: u32) -> bool {
        self.0.get(index as usize).copied().unwrap_or(false)
    }

    /// The first temporary or output that nothing wrote.
    pub(super) fn first_missing(&self, graph: &Subgraph) -> Option<u32> {
        let missing = graph.operands.iter().zip(&self.0).position(|(o, w)| is_result(o) && !w)?;
        u32::try_from(missing).ok()
    }
}

/// Whether an operation has to write this operand.
fn is_result(operand: &Operand) -> bool {
    matches!(operand.lifetime, OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput)
}
