//! What an operation costs on a device, by the figures that the device reports.

use burst_hal::{
    ExecutionPreference, Model, OperandType, Operation, OperationType, PerformanceInfo, Subgraph,
};

use super::offer::Offer;

/// Of what a device does not say, or says in a way that means nothing.
pub(super) const MISSING: f32 = f32::MAX;

/// The weights of a model's operations. Those of referenced graphs are added up once for each device: many
/// operations may name the same graph.
pub(super) struct Weights<'a> {
    model: &'a Model,
    offers: &'a [Offer<'a>],
    preference: ExecutionPreference,
    /// By device, then by referenced graph.
    graphs: Vec<Vec<Option<f32>>>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(
        model: &'a Model,
        offers: &'a [Offer<'a>],
        preference: ExecutionPreference,
    ) -> Self {
        let graphs = vec![vec![None; model.referenced.len()]; offers.len()];
        Weights { model, offers, preference, graphs }
    }

    /// What an operation of this graph costs on a device: of the type of its first input, or, of
    /// control flow, its own figure with what the operations in its graphs cost.
    pub(super) fn of(&mut self, device: usize, graph: &Subgraph, operation: &Operation) -> f32 {
        let capabilities = self.offers[device].capabilities;
        let referenced = |position: usize| {
            let operand = graph.operands.get(*operation.inputs.get(position)? as usize)?;
            Some(operand.location.offset as usize)
        };
        match operation.ty {
            OperationType::If => {
                let own = self.figure(capabilities.if_performance);
                // Either graph runs, one as likely as the other.
                let half = |weight: f32| if weight == MISSING { MISSING } else { weight / 2.0 };
                let then = half(self.of_graph(device, referenced(1)));
                let otherwise = half(self.of_graph(device, referenced(2)));
                sum(own, sum(then, otherwise))
            }
            OperationType::While => {
                let own = self.figure(capabilities.while_performance);
                let condition = self.of_graph(device, referenced(0));
                let body = self.of_graph(device, referenced(1));
                sum(own, sum(condition, body))
            }
            _ => {
                let first = operation.inputs.first().map(|index| *index as usize);
                let Some(operand) = first.and_then(|index| graph.operands.get(index)) else {
                    return MISSING;
                };
                let is_relaxed = self.model.relax_computation_float32_to_float16;
                let info = match operand.ty {
                    OperandType::Float32 if is_relaxed => {
                        capabilities.relaxed_float32_to_float16_scalar
                    }
                    OperandType::TensorFloat32 if is_relaxed => {
                        capabilities.relaxed_float32_to_float16_tensor
                    }
                    ty => capabilities.performance_of(ty),
                };
                self.figure(info)
            }
        }
    }

    /// What all operations of a referenced graph cost. The graphs of a legal model nest at most
    /// [`burst_hal::validate::MAX_NESTING`] deep.
    fn of_graph(&mut self, device: usize, index: Option<usize>) -> f32 {
        let model = self.model;
        let Some((index, graph)) = index.and_then(|i| Some((i, model.referenced.get(i)?))) else {
            return MISSING;
        };
        if let Some(known) = self.graphs[device][index] {
            return known;
        }
        let mut total = 0.0;
        for operation in &graph.operations {
            total = sum(total, self.of(device, graph, operation));
        }
        self.graphs[device][index] = Some(total);
        total
    }

    fn figure(&self, info: PerformanceInfo) -> f32 {
        let figure = match self.preference {
            ExecutionPreference::LowPower => info.power_usage,
            ExecutionPreference::FastSingleAnswer | ExecutionPreference::SustainedSpeed => {
                info.exec_time
            }
        };
        // A NaN is not above zero either.
        if figure > 0.0 { figure.min(MISSING) } else { MISSING }
    }
}

/// Costs added up: what is missing stays missing, and nothing costs more.
fn sum(a: f32, b: f32) -> f32 {
    (a + b).min(MISSING)
}
