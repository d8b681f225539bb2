//! The order of a graph's operations, cut into steps.

use std::collections::VecDeque;

use burst_hal::{Operand, OperandLifeTime, Subgraph};

/// Steps that a graph may fall apart into: each is a model to prepare and, at every execution, a request. A
/// graph with more of them is faster on one device, whatever it is.
pub const MAX_STEPS: usize = 1 << 12;

/// Operations that run at once, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Who runs them.
    pub(super) runner: usize,
    /// Positions in the graph.
    pub(super) operations: Vec<usize>,
}

/// Walks a legal graph along its data flow. `runners` says who runs each operation; the last of `count`
/// is the interpreter, which takes one operation at a time.
///
/// Who has operations that are ready runs all that it can, and what becomes ready by that too. Where
/// several have some it is the interpreter's turn first, then that of the last device: the first ones,
/// which are preferred, get more to do at once when the others are done. `None`: more than [`MAX_STEPS`] steps.
pub(super) fn walk(graph: &Subgraph, runners: &[usize], count: usize) -> Option<Vec<Group>> {
    let mut flow = Flow::new(graph);
    let mut queues: Vec<VecDeque<usize>> = vec![VecDeque::new(); count];
    for operation in 0..graph.operations.len() {
        if flow.waiting[operation] == 0 {
            queues[runners[operation]].push_back(operation);
        }
    }
    let mut groups = Vec::new();
    while let Some(runner) = queues.iter().rposition(|queue| !queue.is_empty()) {
        if groups.len() == MAX_STEPS {
            return None;
        }
        let mut operations = Vec::new();
        while let Some(operation) = queues[runner].pop_front() {
            operations.push(operation);
            flow.done(graph, operation, |ready| queues[runners[ready]].push_back(ready));
            if runner + 1 == count {
                break;
            }
        }
        groups.push(Group { runner, operations });
    }
    Some(groups)
}

/// What operations still wait for.
struct Flow {
    /// How many of an operation's inputs are not written yet.
    waiting: Vec<usize>,
    /// Operations that read an operand, as often as they do.
    readers: Vec<Vec<usize>>,
}

impl Flow {
    fn new(graph: &Subgraph) -> Self {
        let mut readers = vec![Vec::new(); graph.operands.len()];
        let mut waiting = Vec::with_capacity(graph.operations.len());
        for (index, operation) in graph.operations.iter().enumerate() {
            let results = operation.inputs.iter().map(|input| *input as usize);
            let results = results.filter(|input| is_result(&graph.operands[*input]));
            let before: Vec<usize> = results.collect();
            waiting.push(before.len());
            before.into_iter().for_each(|input| readers[input].push(index));
        }
        Flow { waiting, readers }
    }

    fn done(&mut self, graph: &Subgraph, operation: usize, mut ready: impl FnMut(usize)) {
        for output in &graph.operations[operation].outputs {
            for reader in &self.readers[*output as usize] {
                self.waiting[*reader] -= 1;
                if self.waiting[*reader] == 0 {
                    ready(*reader);
                }
            }
        }
    }
}

/// Whether an operation writes this operand.
pub(super) fn is_result(operand: &Operand) -> bool {
    matches!(operand.lifetime, OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput)
}
