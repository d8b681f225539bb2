//! The answers to a client's calls.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use burst_hal::ErrorStatus;
use burst_wire::control::{Answer, Refusal, Reply, ServerMessage};
use burst_wire::{Features, WireError};

use crate::ServerError;
use crate::admission::Limit;
use crate::client::ClientSocket;
use crate::metrics::Metrics;

/// What a call gives its client.
pub(super) struct CallOutput {
    pub(super) answer: Answer,
    /// Kept until the reply is sent, beside what is charged for the thing that it stands for: one at most for
    /// each thread that sends, and threads are charged.
    pub(super) descriptor: Option<OwnedFd>,
}

impl From<Answer> for CallOutput {
    fn from(answer: Answer) -> Self {
        CallOutput { answer, descriptor: None }
    }
}

/// Whether a call is finished when its reader has handled it.
pub(super) enum Progress {
    /// It is done.
    Done(CallOutput),
    /// Another thread will reply to it.
    ReplyFollows,
    /// It was to be replied to on the way, and its client is gone or has not read its socket for too long. No other
    /// reply is tried, which would have the client's time begin again.
    ClientLost(WireError),
}

impl<T: Into<CallOutput>> From<T> for Progress {
    fn from(output: T) -> Self {
        Progress::Done(output.into())
    }
}

/// Replies to the calls of one client, from any thread. It outlives the session where a reply is
/// still to follow.
pub(super) struct Replies {
    socket: Arc<ClientSocket>,
    features: Features,
    metrics: Arc<Metrics>,
}

impl Replies {
    pub(super) fn new(
        socket: Arc<ClientSocket>,
        features: Features,
        metrics: Arc<Metrics>,
    ) -> Self {
        Replies { socket, features, metrics }
    }

    /// Replies to the call with this number.
    ///
    /// # Errors
    /// The client is gone, or has not read its socket for too long.
    pub(super) fn send(
        &self,
        id: u64,
        output: Result<CallOutput, ServerError>,
    ) -> Result<(), WireError> {
        let (outcome, descriptor) = match output {
            Ok(CallOutput { answer, descriptor }) => (Ok(answer), descriptor),
            Err(error) => {
                if error.is_descriptor_shortage() {
                    self.metrics.limits.refused(Limit::Descriptors);
                }
                (Err(self.refusal(&error)), None)
            }
        };
        let fds: Vec<BorrowedFd<'_>> = descriptor.iter().map(AsFd::as_fd).collect();
        match self.socket.send(&ServerMessage::Reply(Reply { id, outcome }), &fds) {
            // The device's answer is too large for a message.
            Err(error @ (WireError::Malformed { .. } | WireError::MessageTooLong { .. })) => {
                let outcome = Err(self.refusal(&error.into()));
                self.socket.send(&ServerMessage::Reply(Reply { id, outcome }), &[])
            }
            other => other,
        }
    }

    /// Replies to a call that was finished after its reader had gone on to the next one. A client
    /// that does not read the reply is disconnected, as its reader would have done.
    pub(super) fn send_later(&self, id: u64, outcome: Result<Answer, ServerError>) {
        if let Err(error) = self.send(id, outcome.map(CallOutput::from)) {
            tracing::debug!(%error, "client already disconnected");
            self.socket.hang_up();
        }
    }

    /// A refusal in the words of the wire.
    fn refusal(&self, error: &ServerError) -> Refusal {
        let mut status = error.status();
        let is_hal_1_3 = status.code() > ErrorStatus::InvalidArgument.code();
        if is_hal_1_3 && !self.features.contains(Features::STATUS_1_3) {
            status = ErrorStatus::GeneralFailure;
        }
        tracing::debug!(%status, %error, "call refused");
        Refusal::new(status, &error.to_string()).because(error.cause())
    }
}
