//! Bursts that the driver serves itself: one with a thread, an event loop or a hardware queue of its
//! own takes the two queues and does the rest.

use std::sync::Arc;

use burst_hal::{ErrorStatus, Failure, PreparedModel, Request};
use burst_wire::Features;
use fmq::{Consumer, Producer};

use super::memories::BurstMemories;
use crate::metrics::BurstCounts;
use crate::prepared::PreparedEntry;

/// Makes the contexts of bursts, in place of the one thread per burst that this crate starts
/// ([`ServiceOptions::contexts`](crate::ServiceOptions)).
pub trait BurstContexts: std::fmt::Debug + Send + Sync {
    /// Takes a burst over. It is called on the thread that reads the client's socket, so it must
    /// not wait for that client.
    ///
    /// # Errors
    /// The failure that the service answers the client's call with; there is no burst then.
    fn configure(&self, setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure>;
}

/// One burst that the driver serves. To end it, the service closes both queues, so that a thread that
/// waits at one of them returns with [`QueueError::PeerDied`](fmq::QueueError), and then drops this
/// value. After the drop nothing may be executed for the burst. The drop may wait for an execution
/// that is under way: the service never drops a context on a thread that reads a connected client's
/// socket.
pub trait BurstContext: Send {
    /// The client has freed a slot. [`BurstMemories`] has forgotten it already; a context that keeps
    /// resources of its own for the slot releases them. It is called on the thread that reads the
    /// client's socket, so it must not wait.
    fn free_memory(&mut self, slot: i32) {
        let _ = slot;
    }
}

/// Everything a burst is made of.
///
/// Its server waits at [`requests`](BurstSetup::requests), copies one packet out at a time,
/// decodes it ([`burst_wire::decode_request`]), finds its memories
/// ([`BurstMemories::resolve`]), checks it ([`BurstSetup::check`]), executes, and answers each
/// packet with one [`burst_wire::ResultPacket`], in order. Without [`Features::PIPELINING`] a
/// packet is everything there is; with it [`burst_wire::packet_datums`] says where it ends. The
/// metrics know of its requests only what the server reports to [`counts`](BurstSetup::counts).
#[derive(Debug)]
pub struct BurstSetup {
    /// The client's requests.
    pub requests: Consumer,
    /// The results for it. It has room for a failure at least; a result that is longer than the
    /// queue is answered as GENERAL_FAILURE.
    pub results: Producer,
    /// The memories that its slots stand for.
    pub memories: BurstMemories,
    /// Additions to HAL 1.2 in use.
    pub features: Features,
    /// Requests that may be under way at once.
    pub depth: u16,
    /// Where its packets are counted, for the service's metrics.
    pub counts: BurstCounts,
    pub(crate) entry: Arc<PreparedEntry>,
}

impl BurstSetup {
    /// The model to execute.
    #[must_use]
    pub fn model(&self) -> Arc<dyn PreparedModel> {
        Arc::clone(&self.entry.model)
    }

    /// The check of requests for this model, which the executing thread may keep.
    #[must_use]
    pub fn check(&self) -> RequestCheck {
        RequestCheck(Arc::clone(&self.entry))
    }
}

/// Whether a request is legal for a model.
#[derive(Clone)]
pub struct RequestCheck(Arc<PreparedEntry>);

impl std::fmt::Debug for RequestCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestCheck").finish_non_exhaustive()
    }
}

impl RequestCheck {
    /// # Errors
    /// The status to answer; the request must not reach the device.
    pub fn check(&self, request: &Request) -> Result<(), ErrorStatus> {
        self.0.check(request).map_err(|error| {
            tracing::debug!(%error, "request refused");
            error.status()
        })
    }
}
