//! Plans graphs, and decides which control flow is interpreted.

use burst_hal::validate::GraphId;
use burst_hal::{Model, Operand, OperandLifeTime, Operation, OperationType, Subgraph};

use super::choice::{Chooser, graph};
use super::error::PartitionError;
use super::offer::{Offer, PartitionOptions};
use super::plan::{Branch, GraphPlan, IfStep, Step, WhileStep};
use super::sizes;
use super::steps::Cut;
use super::walk::{Group, walk};

/// Operations in the plans of all graphs that interpreted control flow runs, each counted as often as its graph is
/// planned: a model may name one graph from many places, and these from others. Control flow beyond it
/// stays an operation of its device.
pub const MAX_BRANCH_OPERATIONS: usize = 1 << 14;

/// Who runs an operation.
pub(super) enum Verdict {
    /// This device.
    Device(usize),
    /// The executor, which runs plans of these two graphs: of an IF the one that runs where the condition
    /// holds and the other, of a WHILE the condition and the body.
    Interpreted(Box<[Branch; 2]>),
}

/// The device that runs everything, where it is one.
pub(super) fn only_device(verdicts: &[Verdict]) -> Option<usize> {
    let device = |verdict: &Verdict| match verdict {
        Verdict::Device(device) => Some(*device),
        Verdict::Interpreted(_) => None,
    };
    let first = verdicts.first().and_then(device)?;
    verdicts.iter().all(|verdict| device(verdict) == Some(first)).then_some(first)
}

pub(super) struct Planner<'a> {
    model: &'a Model,
    offers: &'a [Offer<'a>],
    options: &'a PartitionOptions,
    chooser: Chooser<'a>,
    /// How many operations of branches may still be planned.
    left: usize,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        model: &'a Model,
        offers: &'a [Offer<'a>],
        options: &'a PartitionOptions,
    ) -> Self {
        let chooser = Chooser::new(model, offers, options.preference);
        Planner { model, offers, options, chooser, left: MAX_BRANCH_OPERATIONS }
    }

    /// Who runs each operation of a graph.
    ///
    /// # Errors
    /// [`PartitionError::NoDevice`].
    pub(super) fn verdicts(&mut self, id: GraphId) -> Result<Vec<Verdict>, PartitionError> {
        let graph = graph(self.model, id);
        let choices = self.chooser.choose_all(id)?;
        let mut verdicts = Vec::with_capacity(choices.len());
        for (operation, choice) in graph.operations.iter().zip(choices) {
            let branches = match self.offers[choice.device].is_reference {
                true => self.taken_apart(graph, operation, choice.device),
                false => None,
            };
            verdicts.push(match branches {
                Some(branches) => Verdict::Interpreted(Box::new(branches)),
                None => Verdict::Device(choice.device),
            });
        }
        Ok(verdicts)
    }

    /// The plans of the graphs that a control flow operation of the reference device runs, where others run
    /// a part of them. `None` where it stays one operation: for no gain, or since it cannot be taken apart.
    fn taken_apart(
        &mut self,
        graph: &Subgraph,
        operation: &Operation,
        reference: usize,
    ) -> Option<[Branch; 2]> {
        let control = Control::of(graph, operation)?;
        let subgraphs = control.subgraphs;
        let operands = control.values.iter().chain(&operation.outputs);
        let mut all: Vec<&Operand> =
            operands.map(|index| &graph.operands[*index as usize]).collect();
        for index in subgraphs {
            let inner = &self.model.referenced[index as usize];
            let interface = inner.input_indexes.iter().chain(&inner.output_indexes);
            all.extend(interface.map(|index| &inner.operands[*index as usize]));
        }
        let may_be_handed_over = |operand: &&Operand| {
            operand.lifetime != OperandLifeTime::NoValue && sizes::is_known(operand, self.options)
        };
        if !all.iter().all(may_be_handed_over) {
            return None;
        }
        let mut verdicts = Vec::with_capacity(2);
        for index in subgraphs {
            let count = self.model.referenced[index as usize].operations.len();
            self.left = self.left.checked_sub(count)?;
            verdicts.push(self.verdicts(GraphId::Referenced(index)).ok()?);
        }
        if verdicts.iter().all(|graph| only_device(graph) == Some(reference)) {
            return None;
        }
        let mut branches = subgraphs.into_iter().zip(verdicts).map(|(subgraph, verdicts)| {
            let plan = self.plan(GraphId::Referenced(subgraph), verdicts).ok()?;
            Some(Branch { subgraph, plan: Box::new(plan) })
        });
        Some([branches.next()??, branches.next()??])
    }

    /// The steps of a graph whose operations are run as decided.
    ///
    /// # Errors
    /// [`PartitionError::UnknownSize`], [`PartitionError::TooManySteps`].
    pub(super) fn plan(
        &self,
        id: GraphId,
        verdicts: Vec<Verdict>,
    ) -> Result<GraphPlan, PartitionError> {
        let graph = graph(self.model, id);
        let interpreter = self.offers.len();
        let runner = |verdict: &Verdict| match verdict {
            Verdict::Device(device) => *device,
            Verdict::Interpreted(_) => interpreter,
        };
        let runners: Vec<usize> = verdicts.iter().map(runner).collect();
        let groups = walk(graph, &runners, interpreter + 1)
            .ok_or(PartitionError::TooManySteps { graph: id })?;
        let cut = Cut::new(self.model, graph, &groups);
        let mut verdicts: Vec<Option<Verdict>> = verdicts.into_iter().map(Some).collect();
        let mut steps = Vec::with_capacity(groups.len());
        for (index, group) in groups.iter().enumerate() {
            let taken = match group.operations.first() {
                Some(operation) if group.runner == interpreter => verdicts[*operation].take(),
                _ => None,
            };
            steps.push(match taken {
                Some(Verdict::Interpreted(branches)) => interpreted(graph, group, *branches),
                _ => Step::Device(cut.device_step(index, group, (id, self.options))?),
            });
        }
        Ok(GraphPlan { steps })
    }
}

/// What an IF or WHILE hands to which graphs.
struct Control<'a> {
    subgraphs: [u32; 2],
    values: &'a [u32],
}

impl<'a> Control<'a> {
    fn of(graph: &Subgraph, operation: &'a Operation) -> Option<Self> {
        let first = match operation.ty {
            OperationType::If => 1,
            OperationType::While => 0,
            _ => return None,
        };
        let subgraph = |position: usize| {
            let operand = graph.operands.get(*operation.inputs.get(position)? as usize)?;
            Some(operand.location.offset)
        };
        let subgraphs = [subgraph(first)?, subgraph(first + 1)?];
        Some(Control { subgraphs, values: operation.inputs.get(first + 2..)? })
    }
}

/// The step of a control flow operation that is interpreted.
fn interpreted(graph: &Subgraph, group: &Group, [first, second]: [Branch; 2]) -> Step {
    let index = group.operations[0];
    let operation = &graph.operations[index];
    let outputs = operation.outputs.clone();
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    match operation.ty {
        OperationType::If => Step::If(IfStep {
            operation: index,
            condition: operation.inputs[0],
            then: first,
            otherwise: second,
            inputs: operation.inputs[3..].to_vec(),
            outputs,
        }),
        _ => Step::While(WhileStep {
            operation: index,
            condition: first,
            body: second,
            inputs: operation.inputs[2..].to_vec(),
            outputs,
        }),
    }
}
