//! Why something that the runtime asked for did not work.

/// Why something that the runtime asked for did not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DelegateError {
    /// Structures of another layout than the one that is known here.
    #[error("the runtime's structures are not laid out as this delegate knows them: {what}")]
    Layout { what: &'static str },
    /// The runtime failed at what it was asked for.
    #[error("the runtime's {call} ended with status {status}")]
    Runtime { call: &'static str, status: i32 },
    /// The runtime refers to a tensor, node or structure that there is not.
    #[error("the runtime shows no {what}")]
    Absent { what: &'static str },
    /// A tensor that is not as it was when its partition was prepared.
    #[error("tensor {tensor} has {found} bytes where the partition has {wanted}")]
    Size { tensor: usize, found: usize, wanted: usize },
    /// A tensor without memory during an execution.
    #[error("tensor {tensor} has no memory")]
    NoMemory { tensor: usize },
    /// A partition that was not selected before.
    #[error("a partition that was not prepared: nodes {nodes:?}")]
    UnknownPartition { nodes: Vec<i32> },
    /// The framework's answer.
    #[error("{0}")]
    Framework(#[from] neuralnetworks::Error),
    /// Memory of a request cannot be reached.
    #[error("the request's memory: {0}")]
    Memory(#[from] burst_hal::MemoryError),
    /// A fault of ours, which must not reach the runtime.
    #[error("an internal fault, reported where this program reports its panics")]
    Panicked,
}
