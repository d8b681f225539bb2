//! What the device says with NNAPI's tags of log lines (`burst_hal::log_tags`). Fields are worked out inside
//! of the macros: only where somebody listens.

use burst_hal::log_tags::{COMPILATION, CPU_EXECUTION, DRIVER, EXECUTION};
use burst_hal::{ErrorStatus, Model, log_graph};

use crate::error::DriverError;
use crate::plan::{GraphPlan, Plan, Step};

/// An answer to which operations of a model run.
pub(crate) fn surveyed(device: &str, model: &Model, answer: &Result<Vec<bool>, DriverError>) {
    let operations = model.main.operations.len();
    match answer {
        Ok(answer) => {
            let supported = || answer.iter().filter(|supported| **supported).count();
            tracing::debug!(
                target: DRIVER,
                device,
                operations,
                supported = supported(),
                "supported_operations"
            );
        }
        Err(error) => {
            tracing::debug!(target: DRIVER, device, operations, %error, "supported_operations failed");
        }
    }
}

/// A model that is to be prepared.
pub(crate) fn preparing(device: &str, model: &Model) {
    let operations = model.main.operations.len();
    tracing::debug!(target: DRIVER, device, operations, "prepare_model");
    log_graph(device, model);
}

/// What preparing made of it.
pub(crate) fn planned(device: &str, planned: Result<&Plan, &DriverError>) {
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) => {
            return tracing::debug!(target: COMPILATION, device, %error, "not prepared");
        }
    };
    tracing::debug!(
        target: COMPILATION,
        device,
        steps = plan.main.steps.len(),
        arena_bytes = plan.arena_bytes(),
        held_bytes = plan.held_bytes(),
        "prepared"
    );
    if tracing::enabled!(target: COMPILATION, tracing::Level::TRACE) {
        for Step { index, op, kernel, fixed_shapes, .. } in &plan.main.steps {
            let is_packed = kernel.is_some();
            tracing::trace!(target: COMPILATION, index, %op, is_packed, fixed_shapes, "step");
        }
    }
}

/// A model that is run so often with zeros: operations and executions that are named next are these runs.
pub(crate) fn rehearsing(runs: usize) {
    tracing::debug!(target: COMPILATION, runs, "rehearsing");
}

/// An execution that has ended.
pub(crate) fn executed(status: ErrorStatus) {
    tracing::debug!(target: EXECUTION, %status, "executed");
}

/// An operation that is to be computed.
pub(crate) fn computing(graph: &GraphPlan, step: &Step) {
    let Step { index, op, .. } = step;
    tracing::trace!(target: CPU_EXECUTION, graph = %graph.graph, index, %op, "computing");
}
