//! What holds for every model and every request, whatever the operations do.
//!
//! What a single operation asks of its operands is the driver's to check.

mod error;
mod limits;

pub use error::{
    ArgumentFault, Direction, GraphId, InterfaceFault, OperandFault, OperationFault,
    ValidationError,
};
pub use limits::{
    Limit, MAX_CONSTANT_BYTES, MAX_EXTENSION_NAME_BYTES, MAX_EXTENSIONS, MAX_MODEL_POOLS,
    MAX_NESTING, MAX_OPERANDS, MAX_OPERATION_OPERANDS, MAX_OPERATIONS, MAX_RANK, MAX_REQUEST_POOLS,
    MAX_SUBGRAPHS,
};
