//! A graph cut into steps: what goes from step to step, and each step as a model.

use burst_hal::validate::GraphId;
use burst_hal::{Model, OperandLifeTime, Subgraph};

use super::error::PartitionError;
use super::extract::{Interface, extract};
use super::offer::PartitionOptions;
use super::plan::DeviceStep;
use super::sizes;
use super::walk::{Group, is_result};

/// A graph that was cut.
pub(super) struct Cut<'a> {
    model: &'a Model,
    graph: &'a Subgraph,
    operands: Vec<Use>,
}

/// What the steps do with an operand.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    /// The step that writes it.
    writer: Option<usize>,
    /// Whether some operation reads it.
    is_read: bool,
    /// Whether an operation of another step than the writer's reads it.
    is_read_elsewhere: bool,
    /// Its position among the graph's inputs or outputs.
    position: Option<usize>,
}

impl<'a> Cut<'a> {
    pub(super) fn new(model: &'a Model, graph: &'a Subgraph, groups: &[Group]) -> Self {
        let mut operands = vec![Use::default(); graph.operands.len()];
        for list in [&graph.input_indexes, &graph.output_indexes] {
            for (position, operand) in list.iter().enumerate() {
                operands[*operand as usize].position = Some(position);
            }
        }
        let each = |group: &'_ Group| group.operations.clone();
        for (index, group) in groups.iter().enumerate() {
            for operation in each(group) {
                for output in &graph.operations[operation].outputs {
                    operands[*output as usize].writer = Some(index);
                }
            }
        }
        for (index, group) in groups.iter().enumerate() {
            for operation in each(group) {
                for input in &graph.operations[operation].inputs {
                    let used = &mut operands[*input as usize];
                    used.is_read = true;
                    used.is_read_elsewhere |= used.writer != Some(index);
                }
            }
        }
        Cut { model, graph, operands }
    }

    /// Step number `index` as a model.
    ///
    /// # Errors
    /// [`PartitionError::UnknownSize`] where it gives a value to others whose size nobody knows.
    pub(super) fn device_step(
        &self,
        index: usize,
        group: &Group,
        (id, options): (GraphId, &PartitionOptions),
    ) -> Result<DeviceStep, PartitionError> {
        let interface = self.interface(index, group);
        for output in &interface.outputs {
            let operand = &self.graph.operands[*output as usize];
            let used = &self.operands[*output as usize];
            // What leaves the graph, and nothing else, goes straight to where the execution says.
            let is_final =
                operand.lifetime == OperandLifeTime::SubgraphOutput && !used.is_read_elsewhere;
            if !is_final && !sizes::is_known(operand, options) {
                return Err(PartitionError::UnknownSize { graph: id, operand: *output });
            }
        }
        Ok(DeviceStep {
            device: group.runner,
            operations: group.operations.iter().map(|one| narrow(*one)).collect(),
            model: extract(self.model, self.graph, &group.operations, &interface),
            inputs: interface.inputs,
            outputs: interface.outputs,
        })
    }

    /// What the step takes and gives: the graph's own inputs and outputs first, in their order, then what
    /// comes from and goes to other steps.
    fn interface(&self, index: usize, group: &Group) -> Interface {
        let operations = || group.operations.iter().map(|one| &self.graph.operations[*one]);
        let at = |operand: u32| {
            (self.graph.operands[operand as usize].lifetime, self.operands[operand as usize])
        };
        let comes_in = |operand: &u32| {
            let value = &self.graph.operands[*operand as usize];
            value.lifetime == OperandLifeTime::SubgraphInput
                || is_result(value) && at(*operand).1.writer != Some(index)
        };
        let goes_out = |operand: &u32| {
            let (lifetime, used) = at(*operand);
            lifetime == OperandLifeTime::SubgraphOutput || used.is_read_elsewhere
        };
        let inputs = operations().flat_map(|one| &one.inputs).copied().filter(comes_in);
        let inputs = self.in_order(inputs.collect(), OperandLifeTime::SubgraphInput);
        let outputs = operations().flat_map(|one| &one.outputs).copied().filter(goes_out);
        let mut outputs = self.in_order(outputs.collect(), OperandLifeTime::SubgraphOutput);
        if outputs.is_empty() {
            // Nobody wants what it computes, but a model has outputs.
            let unread = |operand: &u32| !at(*operand).1.is_read;
            let written = operations().flat_map(|one| &one.outputs).copied();
            outputs =
                self.in_order(written.filter(unread).collect(), OperandLifeTime::SubgraphOutput);
        }
        Interface { inputs, outputs }
    }

    /// Each operand once: those of this lifetime by their position in the graph's list, then the others.
    fn in_order(&self, mut operands: Vec<u32>, first: OperandLifeTime) -> Vec<u32> {
        operands.sort_unstable_by_key(|operand| {
            let is_listed = self.graph.operands[*operand as usize].lifetime == first;
            let position = self.operands[*operand as usize].position.filter(|_| is_listed);
            (position.unwrap_or(usize::MAX), *operand)
        });
        operands.dedup();
        operands
    }
}

/// Counts of a legal model fit 32 bits.
fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
