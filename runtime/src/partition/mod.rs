//! Divides a model among devices: which device runs which operations, in which order, and the models that each
//! of them is given.
//!
//! Pure: no device is called here. Who asks has [`SupportedBy`] ready, the devices' own answers, and gets a
//! [`Plan`]: one device for everything, or steps in the order in which they run.
//!
//! 1. Each operation goes to the device with the smallest [weight](Choice) among those that run it
//!    (`choice.rs`, `weights.rs`).
//! 2. The graph is walked along its data flow; whoever has operations that are ready runs as many of them as
//!    it can, which is one step (`walk.rs`).
//! 3. Each step becomes a model that is legal by itself: what goes from step to step is an output of
//!    one and an input of the others (`steps.rs`, `extract.rs`, `constants.rs`).
//! 4. IF and WHILE that the reference device would run, but whose graphs are better run by others, are
//!    taken apart: the executor interprets them, and their graphs have plans of their own (`planner.rs`).
//!
//! A value whose size is not known before the execution cannot go from step to step:
//! [`PartitionError::UnknownSize`].
//!
//! Source: NNAPI 1.3, the runtime's way to partition; where this one differs, `docs/SPEC.md` says so.

mod choice;
mod constants;
mod error;
mod extract;
mod offer;
mod plan;
mod planner;
mod sizes;
mod steps;
mod walk;
mod weights;

#[cfg(test)]
mod tests;

use burst_hal::validate::{GraphId, validate_model};
use burst_hal::{HalVersion, Model};

use self::planner::Planner;

pub use self::choice::Choice;
pub use self::constants::constant_bytes;
pub use self::error::PartitionError;
pub use self::extract::subgraph_model;
pub use self::offer::{Offer, PartitionOptions, SupportedBy};
pub use self::plan::{Branch, DeviceStep, GraphPlan, IfStep, Plan, Step, WhileStep};
pub use self::planner::MAX_BRANCH_OPERATIONS;
pub use self::walk::MAX_STEPS;

/// Divides a model among these devices.
///
/// # Errors
/// A model that is not legal; an operation that none of the devices runs; a value of unknown size that would
/// have to go from one step to another; more than [`MAX_STEPS`] steps in a graph.
pub fn partition(
    model: &Model,
    offers: &[Offer<'_>],
    options: &PartitionOptions,
) -> Result<Plan, PartitionError> {
    validate_model(model, HalVersion::LATEST)?;
    let mut planner = Planner::new(model, offers, options);
    let verdicts = planner.verdicts(GraphId::Main)?;
    match planner::only_device(&verdicts) {
        Some(device) => Ok(Plan::Simple { device }),
        None => planner.plan(GraphId::Main, verdicts).map(Plan::Compound),
    }
}

/// For each operation of the main graph which device is the best, and what every device would take for
/// it. This is what [`partition`] goes by, before it looks into control flow.
///
/// # Errors
/// A model that is not legal; an operation that none of the devices runs.
pub fn choices(
    model: &Model,
    offers: &[Offer<'_>],
    options: &PartitionOptions,
) -> Result<Vec<Choice>, PartitionError> {
    validate_model(model, HalVersion::LATEST)?;
    choice::Chooser::new(model, offers, options.preference).choose_all(GraphId::Main)
}
