//! What one version of the HAL takes, to the letter: for drivers of that version.

use super::error::{OperationFault, ValidationError};
use super::model::{graphs, validate_model};
use super::request::{RequestRules, UnspecifiedOutputs};
use crate::{
    ExecutionPreference, HalVersion, Model, Priority, Request, RequestPool, forms, request_complies,
};

impl UnspecifiedOutputs {
    /// What executions of this version that are not fenced may leave open.
    #[must_use]
    pub fn of(version: HalVersion) -> Self {
        match version >= HalVersion::V1_2 {
            true => UnspecifiedOutputs::Allowed,
            false => UnspecifiedOutputs::Refused,
        }
    }
}

/// As [`validate_model`], and refuses also what the version has no place for (subgraphs, extensions),
/// operations in a form that it lacks, and operations without an operand that they need.
///
/// What a driver asks of a model before anything else, at the version that it is of. The CPU driver has the rules
/// of each operation beside its code instead, and refuses the same.
///
/// ```
/// use burst_hal::validate::{validate_model, validate_model_of};
/// use burst_hal::*;
///
/// let mut builder = ModelBuilder::new();
/// let x = builder.input(OperandType::TensorInt32, &[2]);
/// let none = builder.scalar_i32(0);
/// let sum = OutputSpec::new(OperandType::TensorInt32, &[2]);
/// let y = builder.result_of(OperationType::Add, &[x, x, none], sum);
/// builder.output(y);
/// let model = builder.build()?;
/// // Every type is of HAL 1.0, and so is ADD; but not for integers.
/// assert!(validate_model(&model, HalVersion::V1_0).is_ok());
/// let error = validate_model_of(&model, HalVersion::V1_0).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "main graph, operation 0: HAL 1.0 has no ADD of these operands: HAL 1.3 was the first that has it"
/// );
/// assert!(validate_model_of(&model, HalVersion::V1_3).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first thing that is wrong; for its status see [`ValidationError::status`].
pub fn validate_model_of(model: &Model, version: HalVersion) -> Result<(), ValidationError> {
    let lacks = |what, version| Err(ValidationError::NotYet { what, version });
    if version < HalVersion::V1_3 && !model.referenced.is_empty() {
        return lacks("subgraphs", version);
    }
    if version < HalVersion::V1_2 && !model.extension_name_to_prefix.is_empty() {
        return lacks("extensions", version);
    }
    if version < HalVersion::V1_1 && model.relax_computation_float32_to_float16 {
        return lacks("flag for relaxed computation", version);
    }
    validate_model(model, version)?;
    for (id, graph) in graphs(model) {
        for (index, operation) in (0..).zip(&graph.operations) {
            forms::check(model, graph, operation, version).map_err(|mismatch| {
                let fault = OperationFault::NoSuchForm { ty: operation.ty, version, mismatch };
                ValidationError::Operation { graph: id, operation: index, fault }
            })?;
        }
    }
    Ok(())
}

/// As [`validate_request`](super::validate_request) for an execution that is not fenced, and refuses also
/// what the version lacks: buffers of the driver below 1.3, buffers of devices and outputs of unknown size
/// below 1.2.
///
/// # Errors
/// The first thing that is wrong; for its status see [`ValidationError::status`].
pub fn validate_request_of(
    request: &Request,
    model: &Model,
    version: HalVersion,
) -> Result<(), ValidationError> {
    let is_buffer = |pool: &RequestPool| matches!(pool, RequestPool::Token(_));
    if version < HalVersion::V1_3 && request.pools.iter().any(is_buffer) {
        return Err(ValidationError::NotYet { what: "buffers of the driver", version });
    }
    if !request_complies(request, version) {
        return Err(ValidationError::NotYet { what: "buffers of devices", version });
    }
    RequestRules::new(model)?.check(request, UnspecifiedOutputs::of(version))
}

/// The preference that this number stands for.
///
/// # Errors
/// A number that is none.
pub fn validate_execution_preference(code: i32) -> Result<ExecutionPreference, ValidationError> {
    let unknown = ValidationError::UnknownCode { what: "execution preference", code };
    ExecutionPreference::from_code(code).ok_or(unknown)
}

/// The priority that this number stands for.
///
/// # Errors
/// A number that is none.
pub fn validate_priority(code: i32) -> Result<Priority, ValidationError> {
    let unknown = ValidationError::UnknownCode { what: "priority", code };
    Priority::from_code(code).ok_or(unknown)
}
