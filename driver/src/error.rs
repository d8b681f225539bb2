//! What can go wrong in an operation, in preparing a model, and in running it.

use std::fmt;

use burst_hal::validate::{GraphId, ValidationError};
use burst_hal::{ErrorStatus, Failure, HalVersion, OperandType, OperationType};

use crate::cache_error::CacheError;

/// What somebody said who refused: the account of a caller that does not suffice, or who keeps the buffers.
#[derive(Debug, Clone)]
pub struct Refusal(Failure);

impl Refusal {
    /// The status that the caller receives, and the reason in words, such as the account's limit.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        &self.0
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.cause.fmt(f)
    }
}

/// Two refusals are equal where they say the same.
impl PartialEq for Refusal {
    fn eq(&self, other: &Self) -> bool {
        self.0.status == other.0.status && self.to_string() == other.to_string()
    }
}

/// Why an operation cannot be inferred, prepared or executed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// A shape or value that the answer depends on is known only when the model runs. Not a
    /// failure while preparing; never returned while running.
    #[error("depends on a value that is known only at run time")]
    NotYet,
    /// A list of operands has the wrong length.
    #[error("expected {want} operands, got {got}")]
    Arity {
        /// How many the operation needs.
        want: usize,
        /// How many it got.
        got: usize,
    },
    /// An operand that must be there was left out.
    #[error("input {index} must not be omitted")]
    Omitted {
        /// Which input.
        index: usize,
    },
    /// An operand has another type than the kernel reads.
    #[error("operand has type {got}, the kernel reads {want}")]
    Type {
        /// What the kernel reads.
        want: &'static str,
        /// What it got.
        got: OperandType,
    },
    /// Shapes that do not go together.
    #[error("{what}: {a:?} against {b:?}")]
    Shape {
        /// Which rule was broken.
        what: &'static str,
        /// One side.
        a: Vec<u32>,
        /// The other side.
        b: Vec<u32>,
    },
    /// A parameter with a value that is not allowed.
    #[error("{what} must not be {value}")]
    Value {
        /// Which parameter.
        what: &'static str,
        /// Its value.
        value: i64,
    },
    /// A number that is not representable, such as a size over 32 bits or a scale of NaN.
    #[error("{what} is out of range")]
    Range {
        /// Which number.
        what: &'static str,
    },
    /// An input without elements, which the operation does not take.
    #[error("input {index} has no elements")]
    ZeroSized {
        /// Which input.
        index: usize,
    },
    /// Nobody wants the result any more.
    #[error("the execution was cancelled")]
    Cancelled,
    /// The whole execution ran longer than its deadline.
    #[error("the deadline passed")]
    Deadline,
    /// A loop ran longer than its time-out.
    #[error("a loop ran longer than its time-out")]
    LoopTimeout,
    /// The caller's account refused memory.
    #[error("{0}")]
    Refused(Refusal),
    /// The kernel wrote outside of the memory of an operand that it was given: a defect of this driver.
    #[error("the memory around operand {operand} was written to")]
    Overrun {
        /// Index of the operand in its graph.
        operand: usize,
    },
    /// The plan violates one of its invariants: a defect of this driver.
    #[error("internal: {what}")]
    Internal {
        /// Which rule.
        what: &'static str,
    },
}

impl OpError {
    /// A shape rule that was broken, with both sides.
    #[must_use]
    pub fn shape(what: &'static str, a: &[u32], b: &[u32]) -> Self {
        OpError::Shape { what, a: a.to_vec(), b: b.to_vec() }
    }

    /// A parameter with a value that is not allowed.
    pub fn value(what: &'static str, value: impl Into<i64>) -> Self {
        OpError::Value { what, value: value.into() }
    }

    /// What the caller's account said when it refused memory.
    #[must_use]
    pub fn refused(failure: Failure) -> Self {
        OpError::Refused(Refusal(failure))
    }

    /// Whether it is about the operands: their shapes or values go with no execution of the operation.
    #[must_use]
    pub(crate) fn is_of_operands(&self) -> bool {
        matches!(
            self,
            OpError::Arity { .. }
                | OpError::Omitted { .. }
                | OpError::Type { .. }
                | OpError::Shape { .. }
                | OpError::Value { .. }
                | OpError::Range { .. }
                | OpError::ZeroSized { .. }
        )
    }

    /// The status that a HAL client receives of an execution that ends with it. It is never INVALID_ARGUMENT:
    /// a launch has to say that, too, and it has looked at what can be seen of a request beforehand.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match self {
            OpError::Refused(refusal) => refusal.0.status,
            OpError::Deadline | OpError::LoopTimeout => ErrorStatus::MissedDeadlineTransient,
            _ => ErrorStatus::GeneralFailure,
        }
    }
}

/// Why the operands of an operation are not legal in any of its forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// This version does not have the operation.
    #[error("needs HAL {since}, the model is for {version}")]
    Version {
        /// The version that brought it.
        since: HalVersion,
        /// The version asked for.
        version: HalVersion,
    },
    /// No form of the operation has these operand types.
    #[error("no form takes inputs ({inputs}) and gives ({outputs}) in HAL {version}")]
    Types {
        /// Input types, separated by commas.
        inputs: String,
        /// Output types, separated by commas.
        outputs: String,
        /// The version asked for.
        version: HalVersion,
    },
    /// Types are fine, but another rule is broken.
    #[error("{what}")]
    Rule {
        /// Which rule.
        what: &'static str,
    },
    /// An operand differs in type or shape from the referenced graph's operand that it is passed to.
    #[error("{what} {position} has another type, shape or meaning than the operand it stands for")]
    Boundary {
        /// Which list of the referenced graph.
        what: &'static str,
        /// Position in the list.
        position: usize,
    },
}

/// What a model uses of an extension and a device lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionFault {
    /// The device has no extension of this name.
    #[error("the extension {name} is not known here")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The extension has no operation of this number.
    #[error("the extension {name} has no operation {number} here")]
    NoOperation {
        /// The extension.
        name: String,
        /// The number.
        number: u16,
    },
    /// The extension has no operand type of this number.
    #[error("the extension {name} has no operand type {number} here")]
    NoType {
        /// The extension.
        name: String,
        /// The number.
        number: u16,
    },
}

/// Why a model cannot be prepared or an execution failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The model or request breaks a rule that holds for every operation.
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// Operation `index` has operands that it must not have.
    #[error("operation {index} ({op}) of the {graph}: {cause}")]
    Signature {
        /// Which graph.
        graph: GraphId,
        /// Position in the graph.
        index: usize,
        /// What it is.
        op: OperationType,
        /// Which rule.
        cause: SignatureError,
    },
    /// Operation `index` is legal, but this driver does not have it.
    #[error("operation {index} ({op}) of the {graph} is not supported by this device")]
    Unsupported {
        /// Which graph.
        graph: GraphId,
        /// Position in the graph.
        index: usize,
        /// What it is.
        op: OperationType,
    },
    /// Operation `index` is of an extension that this driver lacks, or one of its operands is.
    #[error("operation {index} of the {graph}: {fault}")]
    Extension {
        /// Which graph.
        graph: GraphId,
        /// Position in the graph.
        index: usize,
        /// What is lacking.
        fault: ExtensionFault,
    },
    /// Operation `index` has legal operands, but shapes or values that no execution can compute
    /// with, or more than this driver takes.
    #[error("operation {index} ({op}) of the {graph}: {cause}")]
    Unplannable {
        /// Which graph.
        graph: GraphId,
        /// Position in the graph.
        index: usize,
        /// What it is.
        op: OperationType,
        /// Why.
        cause: OpError,
    },
    /// Operation `index` failed while the model ran.
    #[error("operation {index} ({op}) of the {graph}: {cause}")]
    Operation {
        /// Which graph.
        graph: GraphId,
        /// Position in the graph.
        index: usize,
        /// What it is.
        op: OperationType,
        /// Why.
        cause: OpError,
    },
    /// A pool could not be read or written.
    #[error("{what} {index}: {cause}")]
    Memory {
        /// Which argument.
        what: &'static str,
        /// Its position.
        index: usize,
        /// Why.
        cause: burst_hal::MemoryError,
    },
    /// A buffer was named where only memory can be used.
    #[error("pool {pool} is a buffer, and has to be memory here")]
    Token {
        /// Which pool.
        pool: u32,
    },
    /// An argument that cannot be brought or taken; of an input, dimensions that do not fit the model's.
    #[error("{what} {index}: {cause}")]
    Argument {
        /// Which argument.
        what: &'static str,
        /// Its position.
        index: usize,
        /// Why.
        cause: OpError,
    },
    /// The request says other dimensions of an output than the execution has computed.
    #[error("output {index}: the request says {asked:?}, computed are {computed:?}")]
    OutputShape {
        /// Its position.
        index: usize,
        /// What the request says; 0: not known.
        asked: Vec<u32>,
        /// What was computed.
        computed: Vec<u32>,
    },
    /// A buffer cannot be used as the request wants.
    #[error("{0}")]
    Buffer(Refusal),
    /// The plan violates one of its invariants: a defect of this driver.
    #[error("internal: {what}")]
    Internal {
        /// Which rule.
        what: &'static str,
    },
    /// Nobody wants the result any more.
    #[error("nobody wants the result any more")]
    Cancelled,
    /// The caller's account refused memory.
    #[error("{0}")]
    Refused(Refusal),
    /// The deadline passed before the work was done.
    #[error("the deadline passed")]
    Deadline,
    /// The deadline had passed when the work was to begin, or would have before its end.
    #[error("the deadline cannot be met")]
    Hopeless {
        /// Whether a retry may help.
        status: ErrorStatus,
    },
    /// A loop of the model ran longer than its time-out.
    #[error("a loop ran longer than its time-out")]
    LoopTimeout,
    /// Files of a compilation.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// More memory than this driver is willing to take for one model.
    #[error("needs {bytes} bytes of working memory, at most {limit} are allowed")]
    TooLarge {
        /// What it would need.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

impl DriverError {
    /// The error of a request whose buffers were refused.
    pub(crate) fn buffer(failure: Failure) -> Self {
        DriverError::Buffer(Refusal(failure))
    }

    /// The error of work that was given up, whatever operation it was at; `None` for a cause that is
    /// the operation's own.
    pub(crate) fn given_up(cause: &OpError) -> Option<Self> {
        match cause {
            OpError::Cancelled => Some(DriverError::Cancelled),
            OpError::Deadline => Some(DriverError::Deadline),
            OpError::LoopTimeout => Some(DriverError::LoopTimeout),
            OpError::Refused(refusal) => Some(DriverError::Refused(refusal.clone())),
            _ => None,
        }
    }

    /// Whether work was given up that may well be possible: it says nothing about the model.
    pub(crate) fn is_given_up(&self) -> bool {
        matches!(
            self,
            DriverError::Cancelled
                | DriverError::Deadline
                | DriverError::Hopeless { .. }
                | DriverError::LoopTimeout
                | DriverError::Refused(_)
        )
    }

    /// The status that a HAL client receives.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match self {
            DriverError::Refused(refusal) | DriverError::Buffer(refusal) => refusal.0.status,
            DriverError::Cache(cause) => cause.status(),
            DriverError::Invalid(cause) => cause.status(),
            DriverError::Operation { cause, .. } => cause.status(),
            DriverError::Argument { cause: OpError::Shape { .. }, .. }
            | DriverError::Signature { .. }
            | DriverError::Token { .. } => ErrorStatus::InvalidArgument,
            DriverError::Argument { cause, .. } => cause.status(),
            // The model is legal, and the caller learns that the operation is not supported.
            DriverError::Unsupported { .. }
            | DriverError::Extension { .. }
            | DriverError::Unplannable { .. }
            | DriverError::OutputShape { .. }
            | DriverError::Cancelled
            | DriverError::Internal { .. }
            | DriverError::Memory { .. } => ErrorStatus::GeneralFailure,
            // Of an execution its model's pace says more.
            DriverError::Deadline => ErrorStatus::MissedDeadlineTransient,
            DriverError::Hopeless { status } => *status,
            DriverError::LoopTimeout => ErrorStatus::MissedDeadlineTransient,
            DriverError::TooLarge { .. } => ErrorStatus::ResourceExhaustedPersistent,
        }
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Refused(Refusal(failure)) | DriverError::Buffer(Refusal(failure)) => {
                failure
            }
            error => Failure::new(error.status(), error),
        }
    }
}
