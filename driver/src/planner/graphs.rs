//! Plans the graphs of a model, each once, however often it is referred to.
//!
//! A legal model can reach a graph along exponentially many paths; it is planned when the first of
//! them meets it. References nest at most [`burst_hal::validate::MAX_NESTING`] deep and form no
//! cycles, as [`check_legal`](super::check_legal) has checked, so the recursion here ends.

use burst_hal::Model;
use burst_hal::validate::GraphId;

use self::builder::Builder;
use self::folding::Allowance;
use crate::OpError;
use crate::error::DriverError;
use crate::offer::Offer;
use crate::op::{Budget, PrepareContext};
use crate::plan::{GraphPlan, MAX_ARENA_BYTES, Plan};

mod builder;
mod constants;
mod folding;
mod joining;
mod lifetimes;

/// Plans a model that is legal; fails at the first operation that cannot be planned.
pub(crate) fn plan(
    model: &Model,
    offer: Offer<'_>,
    context: &PrepareContext<'_>,
) -> Result<Plan, DriverError> {
    let allowance = Allowance::of_plan(model);
    let mut graphs = Graphs::new(model, offer, Some(context), context.budget, allowance);
    let main = graphs.build(GraphId::Main)?;
    // Drops the plans of graphs that no execution reaches: they were made only to check the graphs.
    let runs = graphs.referenced.into_iter().zip(&main.reaches);
    let referenced = runs.map(|(graph, reached)| graph.into_plan().filter(|_| *reached)).collect();
    let plan = Plan { main, referenced };
    within_arena(plan.arena_bytes())?;
    Ok(plan)
}

/// Refuses more working memory than a model may have.
fn within_arena(bytes: usize) -> Result<(), DriverError> {
    if bytes <= MAX_ARENA_BYTES {
        return Ok(());
    }
    Err(DriverError::TooLarge { bytes: bytes as u64, limit: MAX_ARENA_BYTES as u64 })
}

/// Says for each operation of a legal model's main graph whether it can be planned; one that runs
/// other graphs can when everything in them can.
///
/// Where all that can be planned would together need more working memory than a model may have, it is none of
/// them: what is supported can be prepared.
///
/// # Errors
/// A model whose constants cannot be read; a survey that was given up.
pub(crate) fn survey(
    model: &Model,
    offer: Offer<'_>,
    budget: &Budget<'_>,
) -> Result<Vec<bool>, DriverError> {
    let mut graphs = Graphs::new(model, offer, None, budget, Allowance::OF_SURVEY);
    let mut builder = Builder::new(&mut graphs, GraphId::Main)?;
    let mut verdicts = Vec::with_capacity(builder.subgraph.operations.len());
    for index in 0..builder.subgraph.operations.len() {
        let verdict = builder.operation(index);
        verdicts.push(verdict.is_ok());
        match verdict {
            Err(error) if error.is_given_up() => return Err(error),
            Err(_) => builder.trust_declared_shapes(index),
            Ok(()) => {}
        }
    }
    match builder.finish().and_then(|main| within_arena(graphs.arena_bytes(&main))) {
        Ok(()) => Ok(verdicts),
        Err(DriverError::TooLarge { bytes, .. }) => {
            tracing::debug!(bytes, "not supported: it needs too much working memory");
            Ok(vec![false; verdicts.len()])
        }
        Err(error) => Err(error),
    }
}

/// The graphs of a model as far as they are planned.
pub(super) struct Graphs<'m> {
    pub(super) model: &'m Model,
    pub(super) offer: Offer<'m>,
    /// `None` in a survey.
    pub(super) context: Option<&'m PrepareContext<'m>>,
    pub(super) budget: &'m Budget<'m>,
    /// What may still be folded.
    allowance: Allowance,
    referenced: Vec<Referenced>,
}

#[derive(Debug, Default)]
enum Referenced {
    #[default]
    NotYet,
    Planned(Box<GraphPlan>),
    Failed(DriverError),
}

impl Referenced {
    fn into_plan(self) -> Option<GraphPlan> {
        match self {
            Referenced::Planned(plan) => Some(*plan),
            Referenced::NotYet | Referenced::Failed(_) => None,
        }
    }
}

impl<'m> Graphs<'m> {
    fn new(
        model: &'m Model,
        offer: Offer<'m>,
        context: Option<&'m PrepareContext<'m>>,
        budget: &'m Budget<'m>,
        allowance: Allowance,
    ) -> Self {
        let referenced = model.referenced.iter().map(|_| Referenced::NotYet).collect();
        Graphs { model, offer, context, budget, allowance, referenced }
    }

    /// Plans a referenced graph, unless an earlier operation had it planned or failed to.
    pub(super) fn require(&mut self, index: usize) -> Result<(), DriverError> {
        if matches!(self.referenced[index], Referenced::NotYet) {
            let graph = GraphId::Referenced(u32::try_from(index).unwrap_or(u32::MAX));
            self.referenced[index] = match self.build(graph) {
                Ok(plan) => Referenced::Planned(Box::new(plan)),
                Err(error) => Referenced::Failed(error),
            };
        }
        match &self.referenced[index] {
            Referenced::Failed(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// A referenced graph's plan, where there is one.
    pub(super) fn planned(&self, index: usize) -> Option<&GraphPlan> {
        match self.referenced.get(index)? {
            Referenced::Planned(plan) => Some(plan),
            Referenced::NotYet | Referenced::Failed(_) => None,
        }
    }

    /// Bytes of working memory that an execution of this main graph needs, with those that it runs.
    fn arena_bytes(&self, main: &GraphPlan) -> usize {
        let runs = |index: &usize| main.reaches.get(*index).is_some_and(|reached| *reached);
        let reached = (0..self.referenced.len()).filter(runs);
        reached
            .filter_map(|index| self.planned(index))
            .fold(main.arena_bytes, |sum, graph| sum.saturating_add(graph.arena_bytes))
    }

    fn build(&mut self, graph: GraphId) -> Result<GraphPlan, DriverError> {
        let mut builder = Builder::new(self, graph)?;
        for index in 0..builder.subgraph.operations.len() {
            builder.operation(index)?;
        }
        builder.finish()
    }
}

/// The error of a step of planning that is no operation's.
fn outside_of_operations(cause: &OpError) -> DriverError {
    DriverError::given_up(cause).unwrap_or_else(|| {
        let limit = MAX_ARENA_BYTES as u64;
        DriverError::TooLarge { bytes: u64::MAX, limit }
    })
}
