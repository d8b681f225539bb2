//! Whether a model is legal: the one check that every question about a model and every preparation
//! begins with.
//!
//! An illegal model breaks the contract; questions about it and preparations of it fail with
//! INVALID_ARGUMENT. The check reads only the declarations of operands, so a legal model may still have
//! shapes or values that no execution could compute with. Android's own tests contain such models, and
//! accept INVALID_ARGUMENT, "not supported" or a failing execution. This driver finds them when it
//! [plans](super::plan) the model.

use burst_hal::validate::{GraphId, validate_model};
use burst_hal::{HalVersion, Model, Operation, Subgraph};

use crate::error::DriverError;
use crate::op::Signature;
use crate::ops::control::boundary;
use crate::{SignatureError, ops};

/// Checks the whole model, including graphs that no operation runs.
///
/// # Errors
/// The first thing that is wrong; its status is always INVALID_ARGUMENT.
pub(crate) fn check_legal(model: &Model) -> Result<(), DriverError> {
    validate_model(model, HalVersion::LATEST)?;
    let referenced = (0..).map(GraphId::Referenced).zip(&model.referenced);
    for (graph, subgraph) in std::iter::once((GraphId::Main, &model.main)).chain(referenced) {
        for (index, operation) in subgraph.operations.iter().enumerate() {
            check_operation(model, subgraph, operation).map_err(|cause| {
                DriverError::Signature { graph, index, op: operation.ty, cause }
            })?;
        }
    }
    Ok(())
}

/// Accepts an operation that this driver does not know: it has no signature to check.
fn check_operation(
    model: &Model,
    subgraph: &Subgraph,
    operation: &Operation,
) -> Result<(), SignatureError> {
    let Some(def) = ops::find(operation.ty) else { return Ok(()) };
    let signature = Signature::new(&subgraph.operands, operation, HalVersion::LATEST);
    (def.validate)(&signature)?;
    match boundary::control(model, &subgraph.operands, operation)? {
        // A legal model may leave out operands that are passed to a graph.
        Some(_) => Ok(()),
        None => signature.check_omitted(def.traits),
    }
}
