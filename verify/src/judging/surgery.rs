//! Other models made of a random one: all of its values laid open, or only some of its operations.

use std::collections::BTreeMap;

use burst_hal::{Model, Operand, OperandLifeTime, Operation, Subgraph};

use super::tensors::Tensor;
use crate::random::{RandomModel, Shape};

/// Values of the main graph, by operand.
pub(super) type Values = BTreeMap<u32, Tensor>;

/// The same model with everything that its operations write as outputs, those it had first.
pub(super) fn laid_open(one: &RandomModel) -> RandomModel {
    let mut open = one.clone();
    let graph = &mut open.model.main;
    for operand in graph.operations.iter().flat_map(|operation| &operation.outputs) {
        let lifetime = &mut graph.operands[*operand as usize].lifetime;
        if *lifetime == OperandLifeTime::TemporaryVariable {
            *lifetime = OperandLifeTime::SubgraphOutput;
            graph.output_indexes.push(*operand);
        }
    }
    open
}

/// The operations that are to be kept, as a model of their own: what they read of others comes in with these
/// values. `None` where that cannot be: nothing comes in, or something without elements.
pub(super) fn part(
    one: &RandomModel,
    is_kept: impl Fn(usize) -> bool,
    values: &Values,
) -> Option<RandomModel> {
    let graph = &one.model.main;
    let kept = || {
        let operations = graph.operations.iter().enumerate();
        operations.filter(|(index, _)| is_kept(*index)).map(|(_, operation)| operation)
    };
    let mut parting = Parting { one, graph: Subgraph::default(), numbers: BTreeMap::new() };
    let mut inputs = Vec::new();
    let mut shapes = BTreeMap::new();
    let mut written = Vec::new();
    for operation in kept() {
        for operand in &operation.inputs {
            if parting.numbers.contains_key(operand) {
                continue;
            }
            let new = parting.take(*operand);
            if let Some(bytes) = parting.comes_in(*operand, new, values, &mut shapes)? {
                inputs.push(bytes);
            }
        }
        for operand in &operation.outputs {
            let new = parting.take(*operand);
            parting.graph.operands[new as usize].lifetime = OperandLifeTime::TemporaryVariable;
            shapes.extend(one.shape(*operand).cloned().map(|shape| (new, shape)));
            written.push((*operand, new));
        }
        let numbers = |list: &[u32]| list.iter().map(|operand| parting.numbers[operand]).collect();
        let (reads, writes) = (numbers(&operation.inputs), numbers(&operation.outputs));
        let operation = Operation { ty: operation.ty, inputs: reads, outputs: writes };
        parting.graph.operations.push(operation);
    }
    let mut graph = parting.graph;
    let readers = graph.count_consumers();
    for (operand, count) in graph.operands.iter_mut().zip(&readers) {
        operand.number_of_consumers = *count;
    }
    for (old, new) in written {
        if readers[new as usize] == 0 || one.model.main.output_indexes.contains(&old) {
            graph.operands[new as usize].lifetime = OperandLifeTime::SubgraphOutput;
            graph.output_indexes.push(new);
        }
    }
    let is_model = !graph.input_indexes.is_empty() && !graph.output_indexes.is_empty();
    let model = Model { main: graph, ..one.model.clone() };
    is_model.then(|| RandomModel { model, inputs, shapes, ..one.clone() })
}

struct Parting<'a> {
    one: &'a RandomModel,
    graph: Subgraph,
    /// The new numbers of operands, by the old ones.
    numbers: BTreeMap<u32, u32>,
}

impl Parting<'_> {
    /// A copy of an operand; its number.
    fn take(&mut self, old: u32) -> u32 {
        let new = u32::try_from(self.graph.operands.len()).unwrap_or(u32::MAX);
        self.graph.operands.push(self.one.model.main.operands[old as usize].clone());
        self.numbers.insert(old, new);
        new
    }

    /// Makes an operand an input, if it is neither a constant nor left out, and says with which bytes. `None`
    /// where it cannot be one.
    fn comes_in(
        &mut self,
        old: u32,
        new: u32,
        values: &Values,
        shapes: &mut BTreeMap<u32, Shape>,
    ) -> Option<Option<Vec<u8>>> {
        let operand: &mut Operand = &mut self.graph.operands[new as usize];
        if !is_computed(operand.lifetime) && operand.lifetime != OperandLifeTime::SubgraphInput {
            return Some(None);
        }
        let value = match values.get(&old) {
            Some(value) => value.clone(),
            None => self.one.input(old)?,
        };
        if value.bytes.is_empty() {
            return None;
        }
        if is_computed(operand.lifetime) {
            operand.dimensions.clone_from(&value.dims);
        }
        operand.lifetime = OperandLifeTime::SubgraphInput;
        self.graph.input_indexes.push(new);
        let dims = value.dims.to_vec();
        shapes.insert(new, Shape { dims, is_bound: false });
        Some(Some(value.bytes))
    }
}

/// Whether operations write it.
pub(super) fn is_computed(lifetime: OperandLifeTime) -> bool {
    matches!(lifetime, OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput)
}

impl RandomModel {
    /// What comes in at an operand of the main graph.
    fn input(&self, operand: u32) -> Option<Tensor> {
        let inputs = &self.model.main.input_indexes;
        let position = inputs.iter().position(|input| *input == operand)?;
        let dims = self.shape(operand)?.dims.as_slice().into();
        Some(Tensor { dims, bytes: self.inputs.get(position)?.clone() })
    }
}
