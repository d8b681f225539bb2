//! What is known of the devices before a model is divided among them.

use burst_hal::validate::GraphId;
use burst_hal::{Capabilities, ExecutionPreference, ExtensionOperandType, Model, OperandType};

use super::extract::subgraph_model;

/// A device, as far as dividing a model needs to know it.
#[derive(Debug, Clone)]
pub struct Offer<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// How fast and how economical it says it is.
    pub capabilities: &'a Capabilities,
    /// Which operations of the model it runs.
    pub supported: SupportedBy,
    /// Whether it is the reference device: it wins every tie, and control flow that it would run may be
    /// interpreted instead.
    pub is_reference: bool,
}

/// Which operations of a model a device runs, graph by graph.
///
/// An answer of the wrong length, or none at all, counts as "none of them".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SupportedBy {
    /// Of the main graph, by position.
    pub main: Vec<bool>,
    /// Of each referenced graph, each asked about as a model of its own ([`subgraph_model`]).
    pub referenced: Vec<Vec<bool>>,
}

impl SupportedBy {
    /// Asks about every graph of a legal model. `ask` gets a model whose main graph is meant; where a device
    /// fails to answer it gives an empty list.
    pub fn ask(model: &Model, mut ask: impl FnMut(&Model) -> Vec<bool>) -> Self {
        let main = ask(model);
        let indexes = 0..u32::try_from(model.referenced.len()).unwrap_or(u32::MAX);
        let referenced = indexes.map(|index| ask(&subgraph_model(model, index))).collect();
        SupportedBy { main, referenced }
    }

    /// Whether the device runs operation `index` of a graph that has `count` operations.
    pub(super) fn says(&self, graph: GraphId, index: usize, count: usize) -> bool {
        let answers = match graph {
            GraphId::Main => Some(&self.main),
            GraphId::Referenced(graph) => self.referenced.get(graph as usize),
        };
        let answers = answers.filter(|answers| answers.len() == count);
        answers.and_then(|answers| answers.get(index)).is_some_and(|supported| *supported)
    }
}

/// How a model is to be divided.
#[derive(Debug, Clone)]
pub struct PartitionOptions {
    /// What the compilation should be good at: LOW_POWER looks at energy, the others at time.
    pub preference: ExecutionPreference,
    /// Types of extensions that the model uses, as its devices describe them. A value of another extension's
    /// type cannot go from step to step: nobody knows its size.
    pub extension_types: Vec<(OperandType, ExtensionOperandType)>,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        PartitionOptions {
            preference: ExecutionPreference::FastSingleAnswer,
            extension_types: Vec::new(),
        }
    }
}
