//! A model, or the part of it that an older version can carry.

use super::loss::{Converted, Loss};
use crate::compliance::inputs_kept;
use crate::{Compliance, HalVersion, Model, OperandLifeTime, Operation, Subgraph, compliant_with};

/// The part of a model that a version can carry.
#[derive(Debug, Clone)]
pub struct Slice {
    /// A legal model of the version: what the other operations wrote are its inputs, what they read are
    /// outputs of it.
    pub model: Model,
    /// For each of its operations the index of that operation in the whole model.
    pub operations: Vec<u32>,
}

/// The operations of the main graph that a version can carry, as a model that can be shown to a device of
/// this version. `None` where there are none.
///
/// The model must be legal at the newest version.
#[must_use]
pub fn slice(model: &Model, version: HalVersion) -> Option<Slice> {
    // Each part has all pools of the model.
    if model.pools.iter().any(|pool| pool.kind().since() > version) {
        return None;
    }
    let kept = Kept::of(model, version);
    if kept.inputs.iter().all(Option::is_none) {
        return None;
    }
    let graph = kept.cut_out(&model.main);
    let operations = (0..).zip(&kept.inputs).filter_map(|(index, kept)| kept.map(|_| index));
    Some(Slice { operations: operations.collect(), model: carried(model, graph, version) })
}

/// A model as an older version says it. Inputs and outputs stay what they are, so that requests for the
/// one fit the other; operands that are not used any more are left out.
///
/// # Errors
/// What the version cannot carry; see [`compliant_with`].
pub fn model_to(model: &Model, version: HalVersion) -> Result<Converted<Model>, Compliance> {
    let compliance = compliant_with(model, version);
    if !compliance.is_compliant() {
        return Err(compliance);
    }
    let mut lost = Vec::new();
    if model.relax_computation_float32_to_float16 && version < HalVersion::V1_1 {
        lost.push(Loss::RelaxedComputation);
    }
    let kept = Kept::of(model, version);
    let counts = kept.inputs.iter().zip(&model.main.operations);
    for (operation, (count, whole)) in (0..).zip(counts) {
        let fewer = count.map_or(0, |count| whole.inputs.len() - count);
        if fewer > 0 {
            let count = u32::try_from(fewer).unwrap_or(u32::MAX);
            lost.push(Loss::DefaultInputs { operation, count });
        }
    }
    let graph = match lost.iter().any(|loss| matches!(loss, Loss::DefaultInputs { .. })) {
        true => kept.shortened(&model.main),
        false => model.main.clone(),
    };
    Ok(Converted { value: carried(model, graph, version), lost })
}

/// The model around its new main graph.
fn carried(model: &Model, main: Subgraph, version: HalVersion) -> Model {
    let has_extensions = version >= HalVersion::V1_2;
    Model {
        main,
        referenced: match version >= HalVersion::V1_3 {
            true => model.referenced.clone(),
            false => Vec::new(),
        },
        operand_values: model.operand_values.clone(),
        pools: model.pools.clone(),
        relax_computation_float32_to_float16: model.relax_computation_float32_to_float16
            && version >= HalVersion::V1_1,
        extension_name_to_prefix: match has_extensions {
            true => model.extension_name_to_prefix.clone(),
            false => Vec::new(),
        },
    }
}

/// For each operation of a main graph how many of its inputs are carried; `None` where it is not.
struct Kept {
    inputs: Vec<Option<usize>>,
}

/// What the operations of both kinds do with an operand.
#[derive(Clone, Copy, Default)]
struct Use {
    is_read: bool,
    is_written: bool,
    is_read_outside: bool,
    is_written_outside: bool,
}

impl Kept {
    fn of(model: &Model, version: HalVersion) -> Self {
        let kept = |operation| inputs_kept(model, &model.main, operation, version);
        Kept { inputs: model.main.operations.iter().map(kept).collect() }
    }

    /// The kept operations, without the inputs that are not carried.
    fn operations(&self, graph: &Subgraph) -> Vec<Operation> {
        let kept = graph.operations.iter().zip(&self.inputs);
        kept.filter_map(|(operation, count)| {
            let inputs = operation.inputs.get(..(*count)?)?.to_vec();
            Some(Operation { ty: operation.ty, inputs, outputs: operation.outputs.clone() })
        })
        .collect()
    }

    /// The graph of the kept operations alone.
    fn cut_out(&self, graph: &Subgraph) -> Subgraph {
        let uses = self.uses(graph);
        let mut cut = Subgraph {
            operands: graph.operands.clone(),
            operations: self.operations(graph),
            ..Subgraph::default()
        };
        for (index, (operand, used)) in (0..).zip(cut.operands.iter_mut().zip(uses)) {
            let comes_in = operand.lifetime == OperandLifeTime::SubgraphInput
                || (used.is_written_outside && !used.is_written);
            let goes_out = operand.lifetime == OperandLifeTime::SubgraphOutput
                || used.is_read_outside
                || !used.is_read;
            if used.is_read && comes_in {
                operand.lifetime = OperandLifeTime::SubgraphInput;
                cut.input_indexes.push(index);
            } else if used.is_written && goes_out {
                operand.lifetime = OperandLifeTime::SubgraphOutput;
                cut.output_indexes.push(index);
            }
        }
        compact(cut)
    }

    /// The whole graph, without the inputs that are not carried.
    fn shortened(&self, graph: &Subgraph) -> Subgraph {
        compact(Subgraph { operations: self.operations(graph), ..graph.clone() })
    }

    fn uses(&self, graph: &Subgraph) -> Vec<Use> {
        let mut uses = vec![Use::default(); graph.operands.len()];
        let mut note = |indexes: &[u32], what: fn(&mut Use)| {
            for index in indexes {
                if let Some(used) = usize::try_from(*index).ok().and_then(|at| uses.get_mut(at)) {
                    what(used);
                }
            }
        };
        for (operation, count) in graph.operations.iter().zip(&self.inputs) {
            match count {
                Some(count) => {
                    note(&operation.inputs[..*count], |used| used.is_read = true);
                    note(&operation.outputs, |used| used.is_written = true);
                }
                None => {
                    note(&operation.inputs, |used| used.is_read_outside = true);
                    note(&operation.outputs, |used| used.is_written_outside = true);
                }
            }
        }
        uses
    }
}

/// The graph without operands that nothing names, the others numbered anew, their uses counted.
fn compact(mut graph: Subgraph) -> Subgraph {
    let mut is_named = vec![false; graph.operands.len()];
    each_index(&mut graph, |index| {
        if let Some(named) = is_named.get_mut(*index as usize) {
            *named = true;
        }
    });
    let mut next = 0;
    let number = |named: &bool| {
        let number = next;
        next += u32::from(*named);
        number
    };
    let numbers: Vec<u32> = is_named.iter().map(number).collect();
    each_index(&mut graph, |index| {
        *index = numbers.get(*index as usize).copied().unwrap_or(u32::MAX);
    });
    let mut named = is_named.into_iter();
    graph.operands.retain(|_| named.next().unwrap_or(false));
    let counts = graph.count_consumers();
    for (operand, count) in graph.operands.iter_mut().zip(counts) {
        operand.number_of_consumers = count;
    }
    graph
}

fn each_index(graph: &mut Subgraph, mut each: impl FnMut(&mut u32)) {
    let lists = [&mut graph.input_indexes, &mut graph.output_indexes];
    lists.into_iter().flatten().for_each(&mut each);
    for operation in &mut graph.operations {
        operation.inputs.iter_mut().chain(&mut operation.outputs).for_each(&mut each);
    }
}
