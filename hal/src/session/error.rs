//! Why a session cannot be opened, or a run of it fails.

use crate::{Dimensions, ErrorStatus, Failure, MemoryError, OperandType};

/// Why the tensors of a model cannot be laid out in pools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The model leaves the shape of an input open, or that of an output for which no room is set
    /// aside.
    #[error("{what} {index} has the open shape {dimensions:?}")]
    OpenShape {
        /// "input" or "output".
        what: &'static str,
        /// Which.
        index: usize,
        /// What the model says of it.
        dimensions: Dimensions,
    },
    /// An input or output has a type of an extension that the device does not have, or that nobody named: see
    /// [`LayoutOptions::extensions`](super::LayoutOptions::extensions).
    #[error("{what} {index} has the type {ty}, of an extension that is not known")]
    UnknownType {
        /// "input" or "output".
        what: &'static str,
        /// Which.
        index: usize,
        /// The type.
        ty: OperandType,
    },
    /// The inputs, or the outputs with the states, need a larger pool than there may be.
    #[error("the tensors need {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Bytes needed.
        bytes: u64,
        /// Bytes that a pool may have.
        limit: u64,
    },
    /// A state's output or input does not exist, the two differ in type or shape, or one of them
    /// belongs to another state too.
    #[error("output {output} cannot be carried into input {input}")]
    NotAState {
        /// Position among the inputs.
        input: usize,
        /// Position among the outputs.
        output: usize,
    },
}

/// Why a session cannot be opened, or a run of it fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The tensors cannot be laid out in pools.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The device does not take the model.
    #[error("the device does not take the model: {0}")]
    Prepare(Failure),
    /// There is no burst.
    #[error("no burst on the prepared model: {0}")]
    Burst(Failure),
    /// There is no memory.
    #[error("no memory of {bytes} bytes: {cause}")]
    Memory {
        /// How much was asked for.
        bytes: u64,
        /// Why.
        cause: Failure,
    },
    /// Memory cannot be read or written.
    #[error("the request's memory: {0}")]
    Access(#[from] MemoryError),
    /// An input has another size than the model says.
    #[error("input {index} has {found} bytes, the model takes {wanted}")]
    InputSize {
        /// Which.
        index: usize,
        /// Bytes that the caller wrote.
        found: usize,
        /// Bytes that the model takes; 0 where it has no such input.
        wanted: usize,
    },
    /// The execution failed.
    #[error("the execution ended with {0}")]
    Status(ErrorStatus),
}
