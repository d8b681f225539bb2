//! A part of a model as a model that is legal by itself.

use std::collections::BTreeSet;

use burst_hal::{ExtensionCode, Model, OperandLifeTime, Operation, Subgraph};

use super::constants;

/// What a part of a graph takes from outside and gives there, by operand of the graph.
#[derive(Debug, Clone, Default)]
pub(super) struct Interface {
    pub(super) inputs: Vec<u32>,
    pub(super) outputs: Vec<u32>,
}

/// These operations of a graph as a model, with the operands that they name, the graphs that they run and the
/// constants, pools and extensions that all of these use. Operands keep their order.
pub(super) fn extract(
    model: &Model,
    graph: &Subgraph,
    operations: &[usize],
    interface: &Interface,
) -> Model {
    let chosen: Vec<&Operation> = operations.iter().map(|one| &graph.operations[*one]).collect();
    let mut named: Vec<u32> =
        chosen.iter().flat_map(|one| one.inputs.iter().chain(&one.outputs)).copied().collect();
    named.sort_unstable();
    named.dedup();
    // All of them are in the list.
    let number = |operand: &u32| narrow(named.binary_search(operand).unwrap_or(usize::MAX));
    let numbers = |list: &[u32]| list.iter().map(number).collect::<Vec<u32>>();
    let mut operands: Vec<_> =
        named.iter().map(|operand| graph.operands[*operand as usize].clone()).collect();
    for operand in &mut operands {
        if operand.lifetime == OperandLifeTime::SubgraphOutput {
            operand.lifetime = OperandLifeTime::TemporaryVariable;
        }
    }
    let (inputs, outputs) = (numbers(&interface.inputs), numbers(&interface.outputs));
    for input in &inputs {
        operands[*input as usize].lifetime = OperandLifeTime::SubgraphInput;
    }
    for output in &outputs {
        operands[*output as usize].lifetime = OperandLifeTime::SubgraphOutput;
    }
    let operation = |one: &&Operation| Operation {
        ty: one.ty,
        inputs: numbers(&one.inputs),
        outputs: numbers(&one.outputs),
    };
    let main = Subgraph {
        operands,
        operations: chosen.iter().map(operation).collect(),
        input_indexes: inputs,
        output_indexes: outputs,
    };
    around(model, main)
}

/// A referenced graph of a legal model as a model: its operations have the positions that they have in the
/// graph. So a device can be asked about it.
#[must_use]
pub fn subgraph_model(model: &Model, index: u32) -> Model {
    let graph = model.referenced.get(index as usize).cloned().unwrap_or_default();
    around(model, graph)
}

/// A model around a new main graph, whose operands still name the graphs and constants of the old one.
fn around(model: &Model, main: Subgraph) -> Model {
    let reached = reached(model, &main);
    let mut graphs = vec![main];
    graphs.extend(reached.iter().map(|index| model.referenced[*index as usize].clone()));
    let new_number: Vec<u32> = reached.into_iter().collect();
    for graph in &mut graphs {
        renumber(graph, &new_number);
        let counts = graph.count_consumers();
        for (operand, count) in graph.operands.iter_mut().zip(counts) {
            operand.number_of_consumers = count;
        }
    }
    let (operand_values, pools) = constants::carry(model, &mut graphs);
    let extension_name_to_prefix = extensions(model, &graphs);
    let main = graphs.remove(0);
    Model {
        main,
        referenced: graphs,
        operand_values,
        pools,
        relax_computation_float32_to_float16: model.relax_computation_float32_to_float16,
        extension_name_to_prefix,
    }
}

/// The referenced graphs that a graph runs, and those that they run, by index.
fn reached(model: &Model, main: &Subgraph) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Subgraph> = vec![main];
    while let Some(graph) = open.pop() {
        for operand in &graph.operands {
            let index = operand.location.offset;
            if operand.lifetime == OperandLifeTime::Subgraph
                && found.insert(index)
                && let Some(next) = model.referenced.get(index as usize)
            {
                open.push(next);
            }
        }
    }
    found
}

/// Has the operands that stand for graphs name them by their position in `kept`.
fn renumber(graph: &mut Subgraph, kept: &[u32]) {
    let subgraphs = graph.operands.iter_mut();
    for operand in subgraphs.filter(|operand| operand.lifetime == OperandLifeTime::Subgraph) {
        let offset = &mut operand.location.offset;
        *offset = narrow(kept.binary_search(offset).unwrap_or(usize::MAX));
    }
}

/// The extensions whose types these graphs use.
fn extensions(model: &Model, graphs: &[Subgraph]) -> Vec<(String, u16)> {
    let mut used = BTreeSet::new();
    for graph in graphs {
        let operands = graph.operands.iter().filter_map(|one| ExtensionCode::of_operand(one.ty));
        let operations =
            graph.operations.iter().filter_map(|one| ExtensionCode::of_operation(one.ty));
        used.extend(operands.chain(operations).map(|code| code.prefix));
    }
    let names = model.extension_name_to_prefix.iter();
    names.filter(|(_, prefix)| used.contains(prefix)).cloned().collect()
}

/// Counts of a legal model fit 32 bits.
fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
