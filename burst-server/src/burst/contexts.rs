//! Bursts that the driver serves itself: one with a thread, an event loop or a hardware queue of its
//! own takes the two queues and does the rest.

use std::sync::Arc;

use burst_hal::{Caller, ErrorStatus, Failure, PreparedModel, Request, TimePoint};
use burst_wire::Features;
use fmq::{Consumer, Producer, QueueError};

use super::end_reason::EndReason;
use super::ender::BurstEnder;
use super::idle_monitor::IdleMonitor;
use super::memories::BurstMemories;
use crate::metrics::BurstCounts;
use crate::prepared::{PreparedEntry, left_until};
use crate::scheduler::{Entered, NoToken, Run};

/// Makes the contexts of a device's bursts, in place of the one thread per burst that this crate starts
/// ([`ServiceOptions::contexts`](crate::ServiceOptions)).
pub trait BurstContexts: std::fmt::Debug + Send + Sync {
    /// Takes a burst over. It is called on a thread of its own, which answers the client's call when this
    /// returns.
    ///
    /// # Errors
    /// The failure that the service answers the client's call with; there is no burst then.
    fn configure(&self, setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure>;

    /// Whether buffers of the device may lie in the slots of its bursts, which then
    /// [keep](BurstMemories::resolve_with_buffers) them while they execute. By default not: requests with
    /// buffers come over the control socket instead.
    fn takes_buffers(&self) -> bool {
        false
    }

    /// Whether its bursts know packets that say where they differ from the one before: whether it decodes requests with
    /// [`burst_wire::RequestDecoder`], and asks [`burst_wire::packet_datums`] where they end. By default not: a service with such
    /// contexts then does not offer [`Features::DIFFERENCES`].
    fn takes_differences(&self) -> bool {
        false
    }
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
///
/// | what a server owes the others | by |
/// |---|---|
/// | it executes nothing once the burst has ended, and lets go of resources when it is idle | [`next_request`](BurstSetup::next_request), or the same of its own after [`idle_time`](BurstSetup::idle_time) |
/// | it gives up what nobody wants any more | the cancel word of [`caller`](BurstSetup::caller) |
/// | it computes on the cores of this machine by turns | [`turns`](BurstSetup::turns), and the caller handed on to the model |
/// | its client is told why it ends | [`ender`](BurstSetup::ender) |
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
    /// For whom it executes: to be handed to [`PreparedModel::execute_for`]. Its word is set when the
    /// client is gone, or the service stops.
    pub caller: Caller,
    /// The burst's turns.
    pub turns: BurstTurns,
    /// Ends the burst.
    pub ender: BurstEnder,
    /// After how long without requests it should let go of what it can allocate again; `None` for never.
    pub idle_time: Option<std::time::Duration>,
    pub(super) idle: IdleMonitor,
    pub(crate) entry: Arc<PreparedEntry>,
}

/// Lends a burst run tokens, one at a time. Whoever computes on the cores of this machine holds one;
/// there are as many as [`ServiceOptions::run_tokens`](crate::ServiceOptions) says.
#[derive(Debug)]
pub struct BurstTurns {
    pub(super) run: Arc<Run>,
    /// For its pace.
    pub(super) entry: Arc<PreparedEntry>,
}

/// The right to compute for one request, given back when dropped. It belongs to the thread that it was
/// lent to; a thread has one at a time, and has none while it waits for a client.
#[derive(Debug)]
#[must_use]
pub struct BurstTurn<'t> {
    _entered: Entered,
    _turns: &'t mut BurstTurns,
}

impl BurstTurns {
    /// Waits for the burst's turn, until `deadline` at most; not at all where it is hopeless by the model's
    /// [`Pace`](burst_hal::Pace).
    ///
    /// # Errors
    /// MISSED_DEADLINE_PERSISTENT where even the model's quickest execution would not have fitted into the time
    /// that is left now, MISSED_DEADLINE_TRANSIENT where its executions usually do not, or the deadline passes
    /// meanwhile: the request's answer. GENERAL_FAILURE where the burst has ended: nothing
    /// is executed or answered any more.
    pub fn begin(&mut self, deadline: Option<TimePoint>) -> Result<BurstTurn<'_>, ErrorStatus> {
        if self.run.is_called_off() {
            return Err(ErrorStatus::GeneralFailure);
        }
        let left = left_until(deadline);
        if let Some(hopeless) = self.entry.refusal(left) {
            return Err(hopeless);
        }
        let entered = self.run.enter();
        self.run.begin(deadline).map_err(|none| match none {
            NoToken::MissedDeadline => self.entry.missed(left),
            NoToken::CalledOff => ErrorStatus::GeneralFailure,
        })?;
        Ok(BurstTurn { _entered: entered, _turns: self })
    }
}

impl BurstSetup {
    /// Waits for the next request; gives how many datums are readable. Meanwhile it does for the burst
    /// what the service does for its own: it polls no longer than the operator lets it, and where no
    /// request comes for the idle time it calls `release`, once, and asks for no high-performance state.
    ///
    /// # Errors
    /// [`QueueError::PeerDied`] once the burst has ended, also where requests are left; what the
    /// client did to the queue otherwise.
    pub fn next_request(&mut self, mut release: impl FnMut()) -> Result<usize, QueueError> {
        let BurstSetup { requests, counts, idle, turns, .. } = self;
        let waited = idle.next_request(requests, counts, || {
            release();
            Ok(())
        });
        match waited {
            Ok(_) if turns.run.is_called_off() => Err(QueueError::PeerDied),
            Ok(datums) => Ok(datums),
            Err(EndReason::Queue(error)) => Err(error),
            Err(_) => Err(QueueError::PeerDied),
        }
    }

    /// The model to execute.
    #[must_use]
    pub fn model(&self) -> Arc<dyn PreparedModel> {
        Arc::clone(&self.entry.model)
    }

    /// The model to execute, as the type that the driver's own [`Device`](burst_hal::Device) prepared, for
    /// what the trait has no method for.
    ///
    /// # Errors
    /// GENERAL_FAILURE where it is of another type: this context serves the bursts of another device than
    /// its own.
    pub fn own_model<M: PreparedModel>(&self) -> Result<Arc<M>, Failure> {
        self.model().downcast_arc().map_err(|_| {
            let (device, ty) = (self.entry.device(), std::any::type_name::<M>());
            Failure::general(format!("the models of {device} are no {ty}"))
        })
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

#[cfg(test)]
#[path = "contexts_tests.rs"]
mod tests;
