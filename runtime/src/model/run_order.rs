//! Operations in an order in which each comes after what it reads was written.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use burst_hal::{OperandLifeTime, Subgraph};

use crate::error::{Error, Result};

/// Positions of the operations as they are to run: of those that are ready, the one that was added first.
///
/// # Errors
/// BAD_DATA for a value that nobody or more than one writes, and for operations that wait for each other.
pub(super) fn run_order(graph: &Subgraph) -> Result<Vec<usize>> {
    let writers = writers(graph)?;
    let mut missing = vec![0_usize; graph.operations.len()];
    let mut readers = vec![Vec::new(); graph.operands.len()];
    for (position, operation) in graph.operations.iter().enumerate() {
        for index in &operation.inputs {
            if !is_result(graph, *index) {
                continue;
            }
            let at = usize::try_from(*index).unwrap_or(usize::MAX);
            if writers.get(at).copied().flatten().is_none() {
                return Err(Error::bad_data(format!(
                    "operation {position} reads operand {index}, which has no value"
                )));
            }
            missing[position] += 1;
            readers[at].push(position);
        }
    }
    let nothing_missing = missing.iter().enumerate().filter(|(_, missing)| **missing == 0);
    let mut ready: BinaryHeap<Reverse<usize>> =
        nothing_missing.map(|(position, _)| Reverse(position)).collect();
    let mut order = Vec::with_capacity(graph.operations.len());
    while let Some(Reverse(position)) = ready.pop() {
        order.push(position);
        for index in &graph.operations[position].outputs {
            let at = usize::try_from(*index).unwrap_or(usize::MAX);
            for reader in readers.get(at).into_iter().flatten() {
                missing[*reader] -= 1;
                if missing[*reader] == 0 {
                    ready.push(Reverse(*reader));
                }
            }
        }
    }
    match order.len() == graph.operations.len() {
        true => Ok(order),
        false => Err(Error::bad_data("operations wait for each other's results")),
    }
}

/// For each operand the operation that writes it.
fn writers(graph: &Subgraph) -> Result<Vec<Option<usize>>> {
    let mut writers = vec![None; graph.operands.len()];
    for (position, operation) in graph.operations.iter().enumerate() {
        for index in &operation.outputs {
            let writer = usize::try_from(*index).ok().and_then(|at| writers.get_mut(at));
            let unknown =
                || Error::bad_data(format!("operation {position} writes operand {index}"));
            let writer = writer.ok_or_else(unknown)?;
            if writer.replace(position).is_some() {
                return Err(Error::bad_data(format!("two operations write operand {index}")));
            }
        }
    }
    Ok(writers)
}

/// Whether an operation has to write this operand.
fn is_result(graph: &Subgraph, index: u32) -> bool {
    let operand = usize::try_from(index).ok().and_then(|at| graph.operands.get(at));
    operand.is_some_and(|operand| {
        matches!(
            operand.lifetime,
            OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput
        )
    })
}

#[cfg(test)]
mod tests {
    use burst_hal::{Operand, OperandType, Operation, OperationType};

    use super::*;

    /// Operand 0 is the input; operations read and write these.
    fn graph(operations: &[(&[u32], &[u32])]) -> Subgraph {
        let operand = |lifetime| Operand::new(OperandType::TensorFloat32, lifetime);
        let mut operands = vec![operand(OperandLifeTime::TemporaryVariable); 6];
        operands[0].lifetime = OperandLifeTime::SubgraphInput;
        let operation = |(inputs, outputs): &(&[u32], &[u32])| Operation {
            ty: OperationType::Add,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
        };
        let operations = operations.iter().map(operation).collect();
        Subgraph { operands, operations, ..Subgraph::default() }
    }

    #[test]
    fn operations_run_after_what_they_read_and_otherwise_as_they_were_added() {
        let order = |operations: &[(&[u32], &[u32])]| run_order(&graph(operations)).ok();
        assert_eq!(order(&[(&[0], &[1]), (&[1], &[2])]), Some(vec![0, 1]));
        assert_eq!(order(&[(&[1, 1], &[2]), (&[0], &[1])]), Some(vec![1, 0]));
        let diamond: &[(&[u32], &[u32])] =
            &[(&[2, 3], &[4]), (&[1], &[3]), (&[1], &[2]), (&[0], &[1])];
        assert_eq!(order(diamond), Some(vec![3, 1, 2, 0]));
        for (what, operations) in [
            ("a cycle", &[(&[2_u32][..], &[1_u32][..]), (&[1], &[2])][..]),
            ("its own result", &[(&[1], &[1])]),
            ("a value nobody writes", &[(&[5], &[1])]),
            ("a value written twice", &[(&[0], &[1]), (&[0], &[1])]),
            ("an operand that is none", &[(&[0], &[9])]),
        ] {
            assert_eq!(order(operations), None, "{what}");
        }
    }
}
