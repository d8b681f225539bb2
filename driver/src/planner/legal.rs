//! Whether a model is legal: the one check that every question about a model and every preparation
//! begins with.
//!
//! An illegal model breaks the contract; questions about it and preparations of it fail with
//! INVALID_ARGUMENT. The check reads only the declarations of operands, so a legal model may still have
//! shapes or values that no execution could compute with. Android's own tests contain such models, and
//! accept INVALID_ARGUMENT, "not supported" or a failing execution. This driver finds them when it
//! [plans](super::plan) the model.

use burst_hal::validate::{GraphId, ValidationError, validate_extension_operand, validate_model};
use burst_hal::{HalVersion, Model, Operation, Subgraph};

use crate::SignatureError;
use crate::error::DriverError;
use crate::op::Signature;
use crate::ops::control::boundary;
use crate::registry::{Registry, Types};

/// Checks the whole model, including graphs that no operation runs.
///
/// # Errors
/// The first thing that is wrong; INVALID_ARGUMENT but for a rank that nothing here takes.
pub(crate) fn check_legal(model: &Model, registry: &Registry) -> Result<(), DriverError> {
    validate_model(model, HalVersion::LATEST)?;
    let types = registry.of_model(model);
    let referenced = (0..).map(GraphId::Referenced).zip(&model.referenced);
    for (graph, subgraph) in std::iter::once((GraphId::Main, &model.main)).chain(referenced) {
        check_extension_operands(types, graph, subgraph)?;
        for (index, operation) in subgraph.operations.iter().enumerate() {
            check_operation(types, model, subgraph, operation).map_err(|cause| {
                DriverError::Signature { graph, index, op: operation.ty, cause }
            })?;
        }
    }
    Ok(())
}

/// Accepts operands whose extension this driver does not know.
fn check_extension_operands(
    types: Types<'_>,
    graph: GraphId,
    subgraph: &Subgraph,
) -> Result<(), ValidationError> {
    for (operand, declared) in (0..).zip(&subgraph.operands) {
        if let Ok(Some(ty)) = types.operand(declared) {
            validate_extension_operand(declared, &ty.def.information())
                .map_err(|fault| ValidationError::Operand { graph, operand, fault })?;
        }
    }
    Ok(())
}

/// Accepts an operation that this driver does not know: it has no signature to check.
fn check_operation(
    types: Types<'_>,
    model: &Model,
    subgraph: &Subgraph,
    operation: &Operation,
) -> Result<(), SignatureError> {
    let Ok(Some(rules)) = types.operation(operation.ty) else { return Ok(()) };
    let signature = Signature::new(&subgraph.operands, operation, HalVersion::LATEST)
        .with_extensions(types.prefixes());
    (rules.validate)(&signature)?;
    match boundary::control(model, &subgraph.operands, operation)? {
        // A legal model may leave out operands that are passed to a graph.
        Some(_) => Ok(()),
        None => signature.check_omitted(rules.traits),
    }
}
