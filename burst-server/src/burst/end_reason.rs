//! Why a burst ends by itself.

use burst_wire::WireError;
use fmq::QueueError;

use crate::metrics::GivenUp;

/// Why a burst's thread stops serving it. The service sends the text to the client.
#[derive(Debug, thiserror::Error)]
pub(super) enum EndReason {
    /// Its client, or the end of the session, closed its queues.
    #[error("the burst was closed")]
    Closed,
    /// The client broke the queue.
    #[error("the queue failed: {0}")]
    Queue(QueueError),
    /// The client has more requests under way than it said it would.
    #[error("there are more requests in the queue than the agreed depth of {depth}")]
    DepthExceeded {
        /// How many there may be.
        depth: usize,
    },
    /// Several packets may lie in the queue, and it is unknown where this one ends.
    #[error("a request cannot be told from the next: {0}")]
    Framing(WireError),
    /// The client leaves its result queue full.
    #[error("the client did not take a result in time")]
    ResultsNotTaken,
    /// The driver panicked; whatever state it left behind is not used again.
    #[error("the driver failed inside (it panicked)")]
    Panicked,
}

impl EndReason {
    /// How the metrics count it; `None` where the client or its session closed the burst.
    pub(super) fn given_up(&self) -> Option<GivenUp> {
        match self {
            EndReason::Closed => None,
            EndReason::Queue(_) | EndReason::Framing(_) => Some(GivenUp::Queue),
            EndReason::DepthExceeded { .. } => Some(GivenUp::DepthExceeded),
            EndReason::ResultsNotTaken => Some(GivenUp::ResultsNotTaken),
            EndReason::Panicked => Some(GivenUp::Panicked),
        }
    }
}

impl From<QueueError> for EndReason {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::PeerDied => EndReason::Closed,
            error => EndReason::Queue(error),
        }
    }
}

impl From<WireError> for EndReason {
    fn from(_: WireError) -> Self {
        // Only a result of 2^32 datums cannot be encoded, and that fits no queue.
        EndReason::Queue(QueueError::TooLarge { wanted: u64::MAX, limit: 0 })
    }
}
