//! Which nodes are taken over, and their partitions, prepared.
//!
//! A node is wanted where the importer maps it by itself. The runtime then says into which partitions the wanted
//! nodes fall; a partition is imported as a whole and the devices are asked about its operations. What they do
//! not run stays with the runtime, which changes the partitions: the runtime is asked again, until all are
//! prepared.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use burst_tflite::{GivenModel, ImportError, Outcome};
use neuralnetworks::Model;

use crate::compiled::{Compiled, Ports};
use crate::error::DelegateError;
use crate::explain::Explain;
use crate::graph::{Cut, Graph};
use crate::piece::{Piece, Stay, piece};
use crate::target::Target;

/// How often the runtime is asked for partitions before whatever is not prepared then stays with it. Once or
/// twice is usual: a device that refuses one operation.
const ROUNDS_MAX: usize = 16;

/// What tokens are derived for; changes with whatever goes into them.
const TOKENS: &str = "burst delegate 2026-11 compilation of a partition";

/// What the runtime answers to the numbers of wanted nodes.
pub(crate) type Preview<'p> = dyn Fn(&[i32]) -> Result<Vec<Cut>, DelegateError> + 'p;

/// What is taken over.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Numbers of all nodes.
    pub(crate) nodes: Vec<i32>,
    /// Partitions by the numbers of their nodes.
    pub(crate) partitions: HashMap<Vec<i32>, Compiled>,
}

/// Selects nodes and prepares their partitions.
///
/// # Errors
/// The runtime's.
pub(crate) fn select(
    graph: &Graph<'_>,
    target: &Arc<Target>,
    preview: &Preview<'_>,
    explain: &Explain,
) -> Result<Selection, DelegateError> {
    let mut selector = Selector { graph, target, stays: BTreeMap::new(), examined: HashMap::new() };
    selector.judge_alone();
    let selection = selector.settle(preview)?;
    let (taken, all) = (selection.nodes.len(), graph.nodes.len());
    let partitions = selection.partitions.len();
    let names = target.names();
    explain.line(&format_args!("{taken} of {all} nodes in {partitions} partitions on {names}"));
    for (at, stay) in &selector.stays {
        let Some(node) = graph.nodes.get(*at) else { continue };
        explain.line(&format_args!("node {} ({}) stays: {stay}", node.number, node.name()));
    }
    Ok(selection)
}

struct Selector<'g, 'a> {
    graph: &'g Graph<'a>,
    target: &'g Arc<Target>,
    /// Why nodes stay, by their positions.
    stays: BTreeMap<usize, Stay>,
    /// Partitions that can be prepared, by the numbers of their nodes.
    examined: HashMap<Vec<i32>, Examined>,
}

/// A partition that the importer maps and the devices run.
struct Examined {
    model: Arc<Model>,
    token: Option<[u8; 32]>,
    ports: Ports,
}

impl Selector<'_, '_> {
    /// Finds the nodes that the importer does not map, whatever is around them.
    fn judge_alone(&mut self) {
        for at in 0..self.graph.nodes.len() {
            let judged = piece(self.graph, &[at], None)
                .and_then(|alone| Ok(alone.given.write().import()?));
            if let Err(stay) = judged {
                self.stays.insert(at, stay);
            }
        }
    }

    fn settle(&mut self, preview: &Preview<'_>) -> Result<Selection, DelegateError> {
        for round in 0..=ROUNDS_MAX {
            let nodes = self.wanted();
            if nodes.is_empty() {
                break;
            }
            let cuts = preview(&nodes)?;
            let before = self.stays.len();
            self.examine_all(&cuts, round == ROUNDS_MAX);
            if self.stays.len() > before {
                continue;
            }
            let partitions = self.prepare_all(&cuts);
            if self.stays.len() == before {
                return Ok(Selection { nodes, partitions });
            }
        }
        Ok(Selection::default())
    }

    /// Numbers of the nodes that do not stay.
    fn wanted(&self) -> Vec<i32> {
        let nodes = self.graph.nodes.iter().enumerate();
        let wanted = nodes.filter(|(at, _)| !self.stays.contains_key(at));
        wanted.map(|(_, node)| node.number).collect()
    }

    /// Examines each partition; in the last round one that is not whole stays as a whole.
    fn examine_all(&mut self, cuts: &[Cut], is_last: bool) {
        for cut in cuts {
            if self.examined.contains_key(&cut.nodes) {
                continue;
            }
            let nodes = self.positions(cut);
            match self.examine(cut, &nodes) {
                Ok(examined) => {
                    self.examined.insert(cut.nodes.clone(), examined);
                }
                Err(refused) if is_last => {
                    drop(refused);
                    self.stays.extend(nodes.into_iter().map(|at| (at, Stay::Divided)));
                }
                Err(refused) => self.stays.extend(refused),
            }
        }
    }

    /// Imports a partition and asks the devices, or says which nodes have to stay.
    fn examine(&self, cut: &Cut, nodes: &[usize]) -> Result<Examined, Vec<(usize, Stay)>> {
        let constants = self.constants_of_others(cut, nodes);
        if !constants.is_empty() {
            return Err(constants);
        }
        let all = |stay| whole_stays(nodes, cut, stay);
        let whole = piece(self.graph, nodes, Some(&cut.outputs)).map_err(all)?;
        let GivenModel { mut imported, state_tensors } =
            whole.given.write().import().map_err(|error| match error {
                ImportError::Refused { index, .. } if index < nodes.len() => {
                    vec![(nodes[index], error.into())]
                }
                error => all(error.into()),
            })?;
        let hal = std::mem::take(&mut imported.model);
        let operations: Vec<_> = hal.main.operations.iter().map(|one| one.ty).collect();
        let token = self.target.keeps_compilations().then(|| token(&hal));
        let model = Model::from_hal(hal).map_err(|error| all(Stay::Prepare(error)))?;
        let supported = model.supported_operations(self.target.devices());
        let supported = supported.map_err(|error| all(Stay::Prepare(error)))?;
        let mut refused = Vec::new();
        let mut answers = operations.iter().zip(supported);
        for (verdict, at) in imported.verdicts.iter().zip(nodes) {
            let Outcome::Mapped(mapped) = &verdict.outcome else { continue };
            let own = answers.by_ref().take(mapped.len());
            let missing: BTreeSet<&str> =
                own.filter(|(_, runs)| !runs).map(|(operation, _)| operation.name()).collect();
            if !missing.is_empty() {
                let operations = missing.into_iter().collect::<Vec<_>>().join(", ");
                refused.push((*at, Stay::Device { operations }));
            }
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        let ports = self.ports(&whole, &imported, &state_tensors).map_err(all)?;
        Ok(Examined { model, token, ports })
    }

    /// Nodes that compute from constants what nodes outside of the partition use.
    fn constants_of_others(&self, cut: &Cut, nodes: &[usize]) -> Vec<(usize, Stay)> {
        let is_constant = |tensor: &i32| {
            let index = usize::try_from(*tensor).ok();
            index.is_none_or(|at| self.graph.tensors.get(at).is_some_and(|one| one.data.is_some()))
        };
        let stays = |at: &&usize| {
            self.graph.nodes.get(**at).is_some_and(|node| {
                node.inputs.iter().all(is_constant)
                    && node.outputs.iter().any(|output| cut.outputs.contains(output))
            })
        };
        nodes.iter().filter(stays).map(|at| (*at, Stay::Constant)).collect()
    }

    /// Where inputs and outputs lie: those of the piece, then the states.
    fn ports(
        &self,
        piece: &Piece<'_>,
        imported: &burst_tflite::Imported,
        states: &[usize],
    ) -> Result<Ports, Stay> {
        let place = |tensor: &usize| {
            let number = piece.tensors.get(*tensor).copied().unwrap_or(usize::MAX);
            (number, self.graph.tensors.get(number).map_or(0, |found| found.bytes))
        };
        let inputs = piece.given.inputs.iter().chain(states).map(place);
        let outputs = piece.given.outputs.iter().chain(states).map(place);
        let inputs = imported.inputs.iter().zip(inputs);
        let outputs = imported.outputs.iter().zip(outputs);
        Ports::lay_out(
            inputs.map(|(info, (tensor, bytes))| (info, tensor, bytes)),
            outputs.map(|(info, (tensor, bytes))| (info, tensor, bytes)),
        )
    }

    /// Prepares what was examined; what cannot be prepared stays.
    fn prepare_all(&mut self, cuts: &[Cut]) -> HashMap<Vec<i32>, Compiled> {
        let mut partitions = HashMap::new();
        for cut in cuts {
            let Some(Examined { model, token, ports }) = self.examined.remove(&cut.nodes) else {
                continue;
            };
            match Compiled::prepare(self.target, model, token, ports) {
                Ok(compiled) => {
                    partitions.insert(cut.nodes.clone(), compiled);
                }
                Err(error) => {
                    let nodes = self.positions(cut);
                    self.stays.extend(whole_stays(&nodes, cut, Stay::Prepare(error)));
                }
            }
        }
        partitions
    }

    /// Positions of a partition's nodes, in the order in which they run.
    fn positions(&self, cut: &Cut) -> Vec<usize> {
        let numbers: BTreeSet<i32> = cut.nodes.iter().copied().collect();
        let nodes = self.graph.nodes.iter().enumerate();
        nodes.filter(|(_, node)| numbers.contains(&node.number)).map(|(at, _)| at).collect()
    }
}

/// What concerns a partition as a whole is told of its first node, and keeps the others too.
fn whole_stays(nodes: &[usize], cut: &Cut, stay: Stay) -> Vec<(usize, Stay)> {
    let first = cut.nodes.first().copied().unwrap_or_default();
    let others = nodes.iter().skip(1).map(|at| (*at, Stay::Partition { first }));
    nodes.first().map(|at| (*at, stay)).into_iter().chain(others).collect()
}

/// What stands for a model among those that are kept: another graph, other constants, and another mapping of them
/// by a later importer have another one.
fn token(model: &burst_hal::Model) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(TOKENS);
    // All fields but the bytes of the constants.
    hasher.update(format!("{model:?}").as_bytes());
    hasher.update(&model.operand_values);
    *hasher.finalize().as_bytes()
}
