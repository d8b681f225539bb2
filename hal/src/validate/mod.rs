//! What holds for every model, every request and every buffer, whatever the operations do.
//!
//! What a single operation demands of its operands is checked by the driver.

mod buffer;
mod capabilities;
mod error;
mod extension;
mod limits;
mod model;
mod operand;
mod operation;
mod overlap;
mod request;
mod result;
#[cfg(test)]
mod tests;
mod version;

pub use buffer::{BufferOperand, combine_dimensions, computed_dimensions, validate_buffer};
pub use capabilities::{CapabilitiesFault, FiguresFor, validate_capabilities};
pub use error::{
    ArgumentFault, BufferFault, Direction, GraphId, InterfaceFault, OperandFault, OperationFault,
    ValidationError,
};
pub use extension::validate_extension_name;
pub use limits::{
    Limit, MAX_BUFFER_MODELS, MAX_BUFFER_ROLES, MAX_CONSTANT_BYTES, MAX_EXTENSION_NAME_BYTES,
    MAX_EXTENSIONS, MAX_MODEL_POOLS, MAX_NESTING, MAX_OPERANDS, MAX_OPERATION_OPERANDS,
    MAX_OPERATIONS, MAX_RANK, MAX_REQUEST_POOLS, MAX_SUBGRAPHS,
};
pub use model::validate_model;
pub use operand::{validate_extension_operand, validate_operand_type};
pub use request::{ArgumentOperand, RequestRules, UnspecifiedOutputs, validate_request};
pub use result::{ResultFault, validate_result};
pub use version::{
    validate_execution_preference, validate_model_of, validate_priority, validate_request_of,
};

/// Refuses a count above its limit.
fn within(count: usize, limit: Limit) -> Result<(), ValidationError> {
    let found = count as u64;
    match found <= limit.maximum() {
        true => Ok(()),
        false => Err(ValidationError::LimitExceeded { limit, found }),
    }
}

/// A count as errors hold it, saturating at 32 bits.
fn saturate(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
