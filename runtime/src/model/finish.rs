//! From what was added to a legal model of the HAL.

use std::sync::Arc;

use burst_hal::validate::validate_model_of;
use burst_hal::{HalVersion, Model, Operation, Subgraph, forms};

use super::builder::Builder;
use super::run_order::run_order;
use super::{constants, control_flow, subgraphs};
use crate::error::Result;

/// A legal model.
#[derive(Debug, Clone)]
pub(super) struct Finished {
    pub(super) model: Arc<Model>,
    /// For each operation its place in the order in which they were added.
    pub(super) order: Vec<u32>,
}

/// Sorts the operations, puts the constants in their places, and checks all of it.
///
/// # Errors
/// BAD_DATA for whatever is not legal; OUT_OF_MEMORY.
pub(super) fn finish(builder: Builder) -> Result<Finished> {
    let Builder { graph, values, relaxed, mut extensions } = builder;
    let order = run_order(&graph)?;
    let operations = order.iter().map(|position| graph.operations[*position].clone()).collect();
    let mut model = Model {
        main: Subgraph { operations, ..graph },
        relax_computation_float32_to_float16: relaxed,
        ..Model::default()
    };
    let references = constants::lay(&mut model, values)?;
    subgraphs::add(&mut model, &mut extensions, references)?;
    model.extension_name_to_prefix = extensions.into_list();
    leave_off_defaults(&mut model);
    let counts = model.main.count_consumers();
    for (operand, count) in model.main.operands.iter_mut().zip(counts) {
        operand.number_of_consumers = count;
    }
    validate_model_of(&model, HalVersion::LATEST)?;
    control_flow::check(&model)?;
    let order = order.iter().map(|position| u32::try_from(*position).unwrap_or(u32::MAX)).collect();
    Ok(Finished { model: Arc::new(model), order })
}

/// Leaves off trailing inputs that only repeat their defaults, where an older version has the operation
/// without them: more devices can run it then.
fn leave_off_defaults(model: &mut Model) {
    let shortest = |operation: &Operation| {
        let since = forms::since(model, &model.main, operation)?;
        forms::inputs_for(model, &model.main, operation, since)
    };
    let counts: Vec<Option<usize>> = model.main.operations.iter().map(shortest).collect();
    for (operation, count) in model.main.operations.iter_mut().zip(counts) {
        operation.inputs.truncate(count.unwrap_or(usize::MAX));
    }
}
