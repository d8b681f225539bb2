//! Whether a model is legal: the one check that every question about a model and every preparation
//! begins with.
//!
//! What it refuses is not a model by the contract, and INVALID_ARGUMENT for both. Only what the
//! declarations of operands say counts: a legal model may still have shapes or values that no
//! execution could compute with. Android's own tests have such models, and ask for an answer of
//! "not supported", or a failing execution, where they are not refused as invalid. Here that is
//! found when the model is [planned](super::plan).

use burst_hal::validate::{GraphId, validate_model};
use burst_hal::{HalVersion, Model, Operation, Subgraph};

use crate::error::DriverError;
use crate::op::Signature;
use crate::ops::control::boundary;
use crate::{SignatureError, ops};

/// Checks the whole model, those of its graphs that nothing runs included.
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

/// Of an operation that this driver does not know, nothing can be said.
fn check_operation(
    model: &Model,
    subgraph: &Subgraph,
    operation: &Operation,
) -> Result<(), SignatureError> {
    let Some(def) = ops::find(operation.ty) else { return Ok(()) };
    let signature = Signature::new(&subgraph.operands, operation, HalVersion::LATEST);
    (def.validate)(&signature)?;
    match boundary::control(model, &subgraph.operands, operation)? {
        // What is handed to a graph may be left out in a legal model.
        Some(_) => Ok(()),
        None => signature.check_omitted(def.traits),
    }
}
