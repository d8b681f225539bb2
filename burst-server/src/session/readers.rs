//! The threads that read a client's socket. None of them waits for another thread: while one runs a
//! slow call, another one reads.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burst_hal::ErrorStatus;
use burst_wire::WireError;
use burst_wire::control::{self, Call, ClientMessage};
use burst_wire::socket::Inbox;

use super::replies::Progress;
use super::{Session, dispatch};
use crate::ServerError;
use crate::admission::Charge;
use crate::client::Memories;
use crate::metrics::Metrics;
use crate::panics::catch_panic;
use crate::threads;

/// The readers of one client.
#[derive(Debug, Default)]
pub(super) struct Readers {
    /// How many of them wait for a message just now.
    idle: AtomicUsize,
}

impl Session {
    /// Reads messages until the connection ends, together with the other readers, and ends it for all
    /// of them.
    ///
    /// All of them wait in `recvmsg` on the same socket, and the kernel wakes one of them
    /// per message; so a slow call occupies only its own thread.
    pub(super) fn read(self: &Arc<Self>) -> Result<(), ServerError> {
        let result = catch_panic(|| self.read_messages());
        // A service that stops lets running executions finish.
        if !self.socket.is_stopped() {
            self.link.cancel();
        }
        self.close();
        result?
    }

    fn read_messages(self: &Arc<Self>) -> Result<(), ServerError> {
        let mut inbox = Inbox::default();
        loop {
            self.readers.idle.fetch_add(1, Ordering::SeqCst);
            let received = self.socket.receive(&mut inbox);
            self.readers.idle.fetch_sub(1, Ordering::SeqCst);
            match received {
                Err(WireError::DescriptorsLost) => self.refuse_without_descriptors(&inbox)?,
                Err(error @ WireError::MessageTooLong { .. }) => {
                    self.refuse_longer(&inbox, error)?
                }
                other => {
                    other?;
                    self.handle(&mut inbox)?;
                }
            }
        }
    }

    fn handle(self: &Arc<Self>, inbox: &mut Inbox) -> Result<(), ServerError> {
        let message = match control::decode(inbox.message()) {
            Err(error @ WireError::TrailingBytes { .. }) => {
                return self.refuse_longer(inbox, error);
            }
            message => message?,
        };
        match message {
            ClientMessage::Call { id, call } => self.call(id, call, inbox.take_descriptors()),
            ClientMessage::Memories { id, status, lengths } => {
                let descriptors = inbox.take_descriptors();
                self.link.answer(id, Memories { status, lengths: lengths.0, descriptors });
                Ok(())
            }
            ClientMessage::Unknown { kind } => {
                ignore(kind);
                Ok(())
            }
        }
    }

    /// Refuses a call in a message that is longer than any may be, or than it says. Of another
    /// message nobody could be told; it ends the connection.
    fn refuse_longer(&self, inbox: &Inbox, error: WireError) -> Result<(), ServerError> {
        let Some(id) = control::call_number(inbox.message()) else { return Err(error.into()) };
        self.host.metrics.malformed_message();
        Ok(self.replies.send(id, Err(ServerError::Longer(error)))?)
    }

    /// Handles a message whose descriptors this process has no room for; the message is whole.
    fn refuse_without_descriptors(&self, inbox: &Inbox) -> Result<(), ServerError> {
        match control::decode(inbox.message())? {
            ClientMessage::Call { id, .. } => {
                Ok(self.replies.send(id, Err(ServerError::NoDescriptor))?)
            }
            ClientMessage::Memories { id, .. } => {
                let status = ErrorStatus::ResourceExhaustedTransient.code();
                let none = Memories { status, lengths: Vec::new(), descriptors: Vec::new() };
                self.link.answer(id, none);
                Ok(())
            }
            ClientMessage::Unknown { kind } => {
                ignore(kind);
                Ok(())
            }
        }
    }

    fn call(
        self: &Arc<Self>,
        id: u64,
        call: Call,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), ServerError> {
        let performed = self.permit(&call).and_then(|_slow_call_permit| {
            let (wanted, got) = (call.descriptors(), descriptors.len());
            if wanted != got && !matches!(call, Call::Unknown { .. }) {
                return Err(ServerError::Descriptors { wanted, got });
            }
            dispatch::perform(self, id, call, descriptors)
        });
        match performed {
            Ok(Progress::ReplyFollows) => Ok(()),
            Ok(Progress::Done(output)) => Ok(self.replies.send(id, Ok(output))?),
            Err(error) => Ok(self.replies.send(id, Err(error))?),
        }
    }

    /// Charges a call to its user, or gives it a permit where it may take long; another thread then
    /// reads the socket meanwhile.
    fn permit(self: &Arc<Self>, call: &Call) -> Result<Option<Charge>, ServerError> {
        if is_set_up(call) {
            self.presence.user().set_up()?;
        }
        if !call.is_slow() {
            return Ok(None);
        }
        let permit = self.budgets.slow_calls.charge(1)?;
        if self.readers.idle.load(Ordering::SeqCst) == 0 {
            self.start_helper();
        }
        Ok(Some(permit))
    }

    /// Starts one more reader. There is never more than one reader beyond the slow calls in progress,
    /// since a reader is started only when all others are in slow calls.
    fn start_helper(self: &Arc<Self>) {
        let client = self.presence.client();
        let started = threads::start(format!("client-{client}"), Arc::clone(self), |session| {
            let result = session.read();
            count_malformed(&session.host.metrics, &result);
            if let Err(error) = &result {
                tracing::debug!(client = session.presence.client(), %error, "reading ended");
            }
        });
        if started.is_err() {
            tracing::warn!(client, "the client's other calls wait for this slow one");
        }
    }
}

/// A later version's client says something that this service need not know of.
fn ignore(kind: u32) {
    tracing::debug!(kind, "a message of an unknown kind is ignored");
}

/// Counts a malformed message, for which its reader ended the connection. The other
/// readers find the connection closed, which is not counted.
pub(super) fn count_malformed(metrics: &Metrics, result: &Result<(), ServerError>) {
    if let Err(ServerError::Wire(wire)) = result
        && !matches!(wire, WireError::Closed | WireError::Socket(_))
    {
        metrics.malformed_message();
    }
}

/// Whether a call makes something that costs the service more than the call itself.
fn is_set_up(call: &Call) -> bool {
    match call {
        Call::SupportedOperations { .. }
        | Call::Prepare { .. }
        | Call::ShareMemory { .. }
        | Call::AllocateMemory { .. }
        | Call::ConfigureBurst { .. }
        | Call::PrepareCaching { .. }
        | Call::PrepareFromCache { .. }
        | Call::AllocateBuffer { .. }
        | Call::BeginTrace { .. }
        | Call::Unknown { .. } => true, // it may come with as many descriptors as any
        // An execution, too, may bring memories, each of which is mapped for it.
        other => other.descriptors() > 0,
    }
}
