//! The best device for each operation.

use burst_hal::validate::GraphId;
use burst_hal::{ExecutionPreference, Model, Subgraph};

use super::error::PartitionError;
use super::offer::Offer;
use super::weights::Weights;

/// Which device is the best for an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Which of the offers.
    pub device: usize,
    /// What each of the offers would take; `None` where it does not run the operation. The smallest wins; among
    /// equal ones the reference device, else the first.
    pub weights: Vec<Option<f32>>,
}

/// Chooses devices for the operations of a model.
pub(super) struct Chooser<'a> {
    model: &'a Model,
    offers: &'a [Offer<'a>],
    weights: Weights<'a>,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(
        model: &'a Model,
        offers: &'a [Offer<'a>],
        preference: ExecutionPreference,
    ) -> Self {
        Chooser { model, offers, weights: Weights::new(model, offers, preference) }
    }

    /// A device for each operation of a graph.
    ///
    /// # Errors
    /// [`PartitionError::NoDevice`].
    pub(super) fn choose_all(&mut self, id: GraphId) -> Result<Vec<Choice>, PartitionError> {
        let graph = graph(self.model, id);
        (0..graph.operations.len()).map(|index| self.choose(id, graph, index)).collect()
    }

    fn choose(
        &mut self,
        id: GraphId,
        graph: &Subgraph,
        index: usize,
    ) -> Result<Choice, PartitionError> {
        let operation = &graph.operations[index];
        let mut best: Option<(usize, f32)> = None;
        let mut weights = Vec::with_capacity(self.offers.len());
        for (device, offer) in self.offers.iter().enumerate() {
            if !offer.supported.says(id, index, graph.operations.len()) {
                weights.push(None);
                continue;
            }
            let weight = self.weights.of(device, graph, operation);
            weights.push(Some(weight));
            #[allow(clippy::float_cmp, reason = "a tie is a tie only where the figures are equal")]
            let wins = best.is_none_or(|(_, smallest)| {
                weight < smallest || (weight == smallest && offer.is_reference)
            });
            if wins {
                best = Some((device, weight));
            }
        }
        let Some((device, _)) = best else {
            let operation_index = u32::try_from(index).unwrap_or(u32::MAX);
            let ty = operation.ty;
            return Err(PartitionError::NoDevice { graph: id, operation: operation_index, ty });
        };
        Ok(Choice { device, weights })
    }
}

/// A graph of a legal model.
pub(super) fn graph(model: &Model, id: GraphId) -> &Subgraph {
    match id {
        GraphId::Main => &model.main,
        GraphId::Referenced(index) => &model.referenced[index as usize],
    }
}
