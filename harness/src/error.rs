//! What can go wrong with a measurement.

use burst_shm::{Errno, ShmError};
use burst_wire::WireError;
use fmq::QueueError;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// Shared memory.
    #[error("shared memory: {0}")]
    Shm(#[from] ShmError),
    /// A queue of ours.
    #[error("queue: {0}")]
    Queue(#[from] QueueError),
    /// A socket between the processes, or a packet of a burst.
    #[error("wire: {0}")]
    Wire(#[from] WireError),
    /// A job or an outcome that cannot be read.
    #[error("job or outcome: {0}")]
    Json(#[from] serde_json::Error),
    /// The system refused.
    #[error("{call}: {errno}")]
    System {
        /// What was called.
        call: &'static str,
        /// Its error.
        errno: Errno,
    },
    /// A process could not be started, or a file of the system could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The answer was not that to the request.
    #[error("answer to request {sequence}: word {word} is {got:#x}, expected {expected:#x}")]
    WrongAnswer {
        /// Number of the request.
        sequence: u64,
        /// Which 64-bit word of the answer.
        word: usize,
        /// What it is.
        got: u64,
        /// What it should be.
        expected: u64,
    },
    /// A message of another length than the work has.
    #[error("{got} bytes came, expected {expected}")]
    WrongLength {
        /// What came.
        got: usize,
        /// What should have come.
        expected: usize,
    },
    /// No such peer in this program.
    #[error("no peer is called {name}; there are: {}", known.join(", "))]
    UnknownPeer {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
    /// A message between the two ends that is not what the peer's other end sends.
    #[error("the other end sent something else than {expected}")]
    Handshake {
        /// What was expected.
        expected: &'static str,
    },
    /// An end failed, with its own message.
    #[error("{peer}, {role}: {message}")]
    EndFailed {
        /// Which peer.
        peer: String,
        /// Which end: `client` or `server`.
        role: &'static str,
        /// Its message.
        message: String,
    },
    /// The two ends did not finish in time.
    #[error("{peer}: no outcome after {seconds} s")]
    Stuck {
        /// Which peer.
        peer: String,
        /// How long the coordinator waited.
        seconds: u64,
    },
    /// A peer's own error.
    #[error("{0}")]
    Peer(Box<dyn std::error::Error + Send + Sync>),
}

impl HarnessError {
    /// For `map_err` after a system call.
    pub fn system(call: &'static str) -> impl Fn(Errno) -> HarnessError {
        move |errno| HarnessError::System { call, errno }
    }

    /// For `map_err` after a call of a third party.
    pub fn peer(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> HarnessError {
        HarnessError::Peer(error.into())
    }
}
