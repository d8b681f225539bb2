//! What can go wrong in a service, and the status that its clients receive.

use std::path::PathBuf;
use std::time::Duration;

use burst_hal::validate::ValidationError;
use burst_hal::{CACHE_FILES_MAX, ErrorStatus, Failure};
use burst_launch::LaunchError;
use burst_shm::ShmError;
use burst_wire::WireError;
use burst_wire::control::{RefusalCause, Versions};
use fmq::QueueError;
use rustix::io::Errno;

use crate::admission::{Limit, LimitError};
use crate::panics::Panicked;
use crate::scheduler::NoToken;

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
    /// What a supervisor handed over is not a socket to listen on.
    #[error("the socket that was handed over cannot be used: {reason}")]
    Inherited {
        /// What is wrong with it.
        reason: String,
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
    /// A call in a message that is longer than any may be, or than it says.
    #[error("the call is refused: {0}")]
    Longer(#[source] WireError),
    /// A call of a later version.
    #[error("this service knows no call {number}; it speaks protocol {}", Versions::SPOKEN)]
    UnknownCall {
        /// Its number.
        number: u32,
    },
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
    /// The device restored a model, and does not say what its requests have to be.
    #[error("the device does not say what a request for the model from files has to be")]
    NoRequestRules,
    /// The device panicked; a defect of the driver.
    #[error("the driver failed inside (it panicked)")]
    Panicked,
    /// A number that names no model, burst or memory of the client.
    #[error("there is no {what} {number}")]
    Unknown {
        /// What kind of thing.
        what: &'static str,
        /// The number.
        number: u32,
    },
    /// A number that is in use already.
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
    /// More files of a kind than a compilation is kept in.
    #[error("{files} files of a kind are over the limit of {CACHE_FILES_MAX}")]
    CacheFiles {
        /// How many there are said to be.
        files: u32,
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
    /// Spans of the client are written to a memory already.
    #[error("spans of this client are written to a memory already")]
    AlreadyTracing,
    /// A memory for spans in which not one has room.
    #[error("a memory of {length} bytes has no room for a span")]
    TraceTooShort {
        /// Its length.
        length: u64,
    },
    /// A buffer where only memory can be used.
    #[error("{what} takes memory only, and no buffer")]
    MemoryOnly {
        /// What.
        what: &'static str,
    },
    /// A buffer, or a role of one, with a model of another device.
    #[error("{what} of device {other}, and not of {device}")]
    OtherDevice {
        /// What.
        what: &'static str,
        /// The device that is asked.
        device: String,
        /// The one that it belongs to.
        other: String,
    },
    /// An execution cannot be started: a fence is none, or has failed already.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The system has no thread left.
    #[error("the system has no thread left")]
    NoThread,
    /// The service stops although something is still executed for clients that are gone: it was
    /// cancelled, and does not give up.
    #[error("still running: {}", what.join(", "))]
    StillRunning {
        /// What, in words.
        what: Vec<String>,
    },
    /// The process may not open more descriptors just now.
    #[error("the service has no file descriptor left")]
    NoDescriptor,
    /// Set-up calls of one user come too fast.
    #[error("{}", LimitError::TooFast { rate: *rate, wait: *wait })]
    TooFast {
        /// How many per second there may be, over time.
        rate: u64,
        /// How long until the next one is allowed.
        wait: Duration,
    },
    /// A limit that the client may stay within later, once it has released something.
    #[error("{}", LimitError::Exhausted { what: *what, limit: *limit })]
    Exhausted {
        /// Of what.
        what: Limit,
        /// How many there may be.
        limit: u64,
    },
    /// More than will ever be allowed.
    #[error("{}", LimitError::NeverAllowed { what: *what, asked: *asked, limit: *limit })]
    NeverAllowed {
        /// Of what.
        what: Limit,
        /// How many were asked for.
        asked: u64,
        /// How many there may be.
        limit: u64,
    },
}

impl ServerError {
    /// The status that a HAL client receives.
    #[must_use]
    pub fn status(&self) -> ErrorStatus {
        match self {
            ServerError::Device(failure) => failure.status,
            _ if self.is_descriptor_shortage() => ErrorStatus::ResourceExhaustedTransient,
            ServerError::Exhausted { .. } | ServerError::TooFast { .. } | ServerError::NoThread => {
                ErrorStatus::ResourceExhaustedTransient
            }
            ServerError::NeverAllowed { .. } => ErrorStatus::ResourceExhaustedPersistent,
            ServerError::Model(error) => error.status(),
            ServerError::Launch(error) => error.status(),
            ServerError::Wire(_)
            | ServerError::Longer(_)
            | ServerError::UnknownCall { .. }
            | ServerError::Memory(_)
            | ServerError::Unknown { .. }
            | ServerError::InUse { .. }
            | ServerError::NegativeSlot { .. }
            | ServerError::Descriptors { .. }
            | ServerError::CacheFiles { .. }
            | ServerError::ModelNotSealed
            | ServerError::NotNegotiated
            | ServerError::AlreadyTracing
            | ServerError::TraceTooShort { .. }
            | ServerError::MemoryOnly { .. }
            | ServerError::OtherDevice { .. } => ErrorStatus::InvalidArgument,
            _ => ErrorStatus::GeneralFailure,
        }
    }

    /// What the client's program can do about it that the status does not say.
    pub(crate) fn cause(&self) -> RefusalCause {
        match self {
            ServerError::UnknownCall { .. } => RefusalCause::UnknownCall,
            ServerError::Longer(_) => RefusalCause::TooLong,
            _ => RefusalCause::Stated,
        }
    }

    /// Whether the process, or the system, had no file descriptor left for it.
    pub(crate) fn is_descriptor_shortage(&self) -> bool {
        let errno = match self {
            ServerError::NoDescriptor => return true,
            ServerError::System { errno, .. }
            | ServerError::Launch(LaunchError::System { errno, .. })
            | ServerError::Memory(ShmError::System { errno, .. })
            | ServerError::Queue(QueueError::System { errno, .. })
            | ServerError::Queue(QueueError::Memory(ShmError::System { errno, .. })) => *errno,
            _ => return false,
        };
        matches!(errno, Errno::MFILE | Errno::NFILE)
    }
}

impl From<LimitError> for ServerError {
    fn from(error: LimitError) -> Self {
        match error {
            LimitError::Exhausted { what, limit } => ServerError::Exhausted { what, limit },
            LimitError::NeverAllowed { what, asked, limit } => {
                ServerError::NeverAllowed { what, asked, limit }
            }
            LimitError::TooFast { rate, wait } => ServerError::TooFast { rate, wait },
        }
    }
}

impl From<NoToken> for ServerError {
    fn from(none: NoToken) -> Self {
        match none {
            NoToken::CalledOff => WireError::Closed.into(),
            NoToken::MissedDeadline => Failure::from(ErrorStatus::MissedDeadlineTransient).into(),
        }
    }
}

impl From<Panicked> for ServerError {
    fn from(_: Panicked) -> Self {
        ServerError::Panicked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_of_descriptors_passes_and_says_what_it_is() {
        for error in [
            ServerError::NoDescriptor,
            ServerError::System { call: "dup", errno: Errno::MFILE },
            ServerError::Memory(ShmError::System { call: "memfd_create", errno: Errno::NFILE }),
        ] {
            assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient, "{error}");
        }
        let other = ServerError::System { call: "dup", errno: Errno::BADF };
        assert_eq!(other.status(), ErrorStatus::GeneralFailure);
    }
}
