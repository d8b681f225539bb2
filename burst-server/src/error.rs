//! What can go wrong in a service, and what its clients are told of it.

use std::path::PathBuf;

use burst_hal::validate::ValidationError;
use burst_hal::{ErrorStatus, Failure};
use burst_shm::ShmError;
use burst_wire::WireError;
use fmq::QueueError;
use rustix::io::Errno;

/// Why a service cannot start, a connection ended, or a call was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Another service listens at this path.
    #[error("another service listens at {}", path.display())]
    PathInUse {
        /// The path.
        path: PathBuf,
    },
    /// Something that is no socket lies at this path; it is left alone.
    #[error("{} exists and is not a socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot listen at {}: {errno}", path.display())]
    Listen {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        errno: Errno,
    },
    /// A system call failed.
    #[error("{call}: {errno}")]
    System {
        /// Which.
        call: &'static str,
        /// The system's reason.
        errno: Errno,
    },
    /// Bytes from a client are not what they should be, or its socket failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A client's queue cannot be used.
    #[error("the queue cannot be used: {0}")]
    Queue(#[from] QueueError),
    /// A client's memory cannot be used.
    #[error("the memory cannot be used: {0}")]
    Memory(#[from] ShmError),
    /// A model is not legal.
    #[error(transparent)]
    Model(#[from] ValidationError),
    /// The device said no.
    #[error("{}", .0.cause)]
    Device(#[from] Failure),
    /// The device panicked; a defect of the driver.
    #[error("the driver failed inside (it panicked)")]
    Panicked,
    /// A number that stands for nothing.
    #[error("there is no {what} {number}")]
    Unknown {
        /// What kind of thing.
        what: &'static str,
        /// The number.
        number: u32,
    },
    /// A number that stands for something already.
    #[error("{what} {number} is in use")]
    InUse {
        /// What kind of thing.
        what: &'static str,
        /// The number.
        number: i64,
    },
    /// A negative slot.
    #[error("slot {slot} is negative")]
    NegativeSlot {
        /// The slot.
        slot: i32,
    },
    /// A message came with another number of descriptors than it needs.
    #[error("the call needs {wanted} descriptors and came with {got}")]
    Descriptors {
        /// How many it needs.
        wanted: usize,
        /// How many came.
        got: usize,
    },
    /// A model's memory is not sealed against writing.
    #[error("the memory with the model is not sealed against writing")]
    ModelNotSealed,
    /// A queue without a word to wake sleepers by.
    #[error("the queue has no event flag word")]
    NoEventFlag,
    /// A result queue in which not even an error fits.
    #[error("a result queue of {datums} datums cannot hold even an error")]
    QueueTooShort {
        /// Its length.
        datums: usize,
    },
    /// Additions that were not agreed on in the greeting.
    #[error("the burst asks for additions that were not negotiated")]
    NotNegotiated,
    /// A buffer of the driver, which this service does not offer.
    #[error("this service has no driver-managed buffers")]
    NoBuffers,
    /// The system has no thread left.
    #[error("the system has no thread left")]
    NoThread,
    /// A limit that the client may pass later, when it has let go of something.
    #[error("the limit of {limit} {what} is reached")]
    Exhausted {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
    /// More than will ever be allowed.
    #[error("{asked} {what} are over the limit of {limit}")]
    NeverAllowed {
        /// Of what.
        what: &'static str,
        /// How many were asked for.
        asked: u64,
        /// How many there may be.
        limit: u64,
    },
}

impl ServerError {
    /// What a HAL client is told of it.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match self {
            ServerError::Device(failure) => failure.status,
            ServerError::Exhausted { .. } | ServerError::NoThread => {
                ErrorStatus::ResourceExhaustedTransient
            }
            ServerError::NeverAllowed { .. } => ErrorStatus::ResourceExhaustedPersistent,
            ServerError::Model(error) => error.status(),
            ServerError::Wire(_)
            | ServerError::Memory(_)
            | ServerError::Unknown { .. }
            | ServerError::InUse { .. }
            | ServerError::NegativeSlot { .. }
            | ServerError::Descriptors { .. }
            | ServerError::ModelNotSealed
            | ServerError::NotNegotiated
            | ServerError::NoBuffers => ErrorStatus::InvalidArgument,
            _ => ErrorStatus::GeneralFailure,
        }
    }
}
