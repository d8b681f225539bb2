//! The threads that read a client's socket. None of them waits for another thread: while one runs a
//! slow call, another one reads.
//!
//! A connection has a thread of its own, which is paid for with it, and *helpers*: one starts where all
//! readers are in slow calls. It is charged to the user for as long as its thread lives. A reader whose slow
//! call is done counts as one that reads, although it may wait in `send` first, for a client that does not
//! read its socket: such a client waits for itself, and cannot have one thread after the other started.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

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
use crate::panics::{catch_panic, lock};
use crate::threads;

/// So many readers that are in no slow call stay: one reads the next message, and one is there when that is a
/// slow call, so that a client which makes one after the other does not have a thread started for each.
const FREE_MAX: u64 = 2;

/// The readers of one client. There is never more than one of them beyond its slow calls, but for those that
/// are about to end.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Helpers that read, or are about to.
    helpers: u64,
    /// Readers in slow calls.
    slow: u64,
}

impl Counts {
    /// Readers in no slow call. One is the connection's own.
    fn free(&self) -> u64 {
        (1 + self.helpers).saturating_sub(self.slow)
    }
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// The connection's own thread, which stays until the connection ends.
    Own,
    Helper,
}

/// A helper is not needed any more, and counted as one no longer.
struct NotNeeded;

/// A reader is in a slow call, and has a permit for it, until this is dropped.
struct SlowCall<'a> {
    readers: &'a Readers,
    _permit: Charge,
}

impl Drop for SlowCall<'_> {
    fn drop(&mut self) {
        self.readers.counts().slow -= 1;
    }
}

impl Readers {
    /// Whether a reader in no slow call reads on; a helper may not be needed any more.
    fn stays(&self, reader: Reader) -> bool {
        let mut counts = self.counts();
        let stays = reader == Reader::Own || counts.free() <= FREE_MAX;
        counts.helpers -= u64::from(!stays);
        stays
    }

    /// A reader begins a slow call. Says whether nobody would read now: then one more helper is counted.
    fn begin(&self, permit: Charge) -> (SlowCall<'_>, bool) {
        let mut counts = self.counts();
        counts.slow += 1;
        let wants_helper = counts.free() == 0;
        counts.helpers += u64::from(wants_helper);
        (SlowCall { readers: self, _permit: permit }, wants_helper)
    }

    /// A helper that was counted does not come.
    fn helper_fails(&self) {
        self.counts().helpers -= 1;
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        lock(&self.0)
    }
}

impl Session {
    /// Reads messages until the connection ends, together with the other readers, and ends it for all
    /// of them.
    ///
    /// All of them wait in `recvmsg` on the same socket, and the kernel wakes one of them
    /// per message; so a slow call occupies only its own thread.
    pub(super) fn read(self: &Arc<Self>) -> Result<(), ServerError> {
        self.read_as(Reader::Own)
    }

    fn read_as(self: &Arc<Self>, reader: Reader) -> Result<(), ServerError> {
        let result = match catch_panic(|| self.read_messages(reader)) {
            Ok(Ok(NotNeeded)) => return Ok(()), // others read on
            Ok(Err(error)) => Err(error),
            Err(panicked) => Err(panicked.into()),
        };
        // A service that stops lets running executions finish.
        if !self.socket.is_stopped() {
            self.link.cancel();
        }
        self.close();
        result
    }

    fn read_messages(self: &Arc<Self>, reader: Reader) -> Result<NotNeeded, ServerError> {
        let mut inbox = Inbox::default();
        while self.readers.stays(reader) {
            match self.socket.receive(&mut inbox) {
                Err(WireError::DescriptorsLost) => self.refuse_without_descriptors(&inbox)?,
                Err(error @ WireError::MessageTooLong { .. }) => {
                    self.refuse_longer(inbox.message(), error)?
                }
                other => {
                    other?;
                    self.handle(&mut inbox)?;
                }
            }
        }
        Ok(NotNeeded)
    }

    fn handle(self: &Arc<Self>, inbox: &mut Inbox) -> Result<(), ServerError> {
        // Nobody pays for them yet. So they are gone before anything is sent, for which a client may have this
        // thread wait, and before the next message is waited for.
        let descriptors = inbox.take_descriptors();
        let message = match control::decode(inbox.message()) {
            Err(error @ WireError::TrailingBytes { .. }) => {
                drop(descriptors);
                return self.refuse_longer(inbox.message(), error);
            }
            message => message?,
        };
        match message {
            ClientMessage::Call { id, call } => self.call(id, call, descriptors),
            ClientMessage::Memories { id, status, lengths } => {
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
    fn refuse_longer(&self, message: &[u8], error: WireError) -> Result<(), ServerError> {
        let Some(id) = control::call_number(message) else { return Err(error.into()) };
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
            dispatch::check_counts(&call, &self.host.metrics.limits)?;
            let (wanted, got) = (call.descriptors(), descriptors.len());
            if wanted != got && !matches!(call, Call::Unknown { .. }) {
                return Err(ServerError::Descriptors { wanted, got });
            }
            dispatch::perform(self, id, call, descriptors)
        });
        match performed {
            Ok(Progress::ReplyFollows) => Ok(()),
            Ok(Progress::ClientLost(lost)) => Err(lost.into()),
            Ok(Progress::Done(output)) => Ok(self.replies.send(id, Ok(output))?),
            Err(error) => Ok(self.replies.send(id, Err(error))?),
        }
    }

    /// Charges a call to its user, or gives it a permit where it may take long; another thread then
    /// reads the socket meanwhile.
    fn permit(self: &Arc<Self>, call: &Call) -> Result<Option<SlowCall<'_>>, ServerError> {
        if is_set_up(call) {
            self.presence.user().set_up()?;
        }
        if !call.is_slow() {
            return Ok(None);
        }
        let permit = self.budgets.slow_calls.charge(1)?;
        let (slow_call, wants_helper) = self.readers.begin(permit);
        if wants_helper {
            self.start_helper()?;
        }
        Ok(Some(slow_call))
    }

    /// Starts one more reader, which was counted.
    ///
    /// # Errors
    /// Its user may not have a thread more.
    fn start_helper(self: &Arc<Self>) -> Result<(), ServerError> {
        let charge = self.budgets.thread().inspect_err(|_| self.readers.helper_fails())?;
        let client = self.presence.client();
        // The charge stands last, and so is given back when the thread has let go of everything else.
        let parcel = (Arc::clone(self), charge);
        let started = threads::start(format!("client-{client}"), parcel, |(session, charge)| {
            let result = session.read_as(Reader::Helper);
            count_malformed(&session.host.metrics, &result);
            if let Err(error) = &result {
                tracing::debug!(client = session.presence.client(), %error, "reading ended");
            }
            drop(session);
            drop(charge);
        });
        if started.is_err() {
            self.readers.helper_fails();
            // That no thread is to be had stands in the log by now.
            tracing::debug!(client, "the client's other calls wait for this slow one");
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Budget, Limit};

    #[test]
    fn a_helper_comes_where_all_are_in_slow_calls_and_goes_where_two_are_in_none() {
        let meters = Arc::default();
        let budget = Budget::new(Limit::SlowCalls, 9, &meters);
        let readers = Readers::default();
        let begin = || readers.begin(budget.charge(1).unwrap());
        assert!(readers.stays(Reader::Own));
        let (first, wants_helper) = begin();
        assert!(wants_helper, "the connection's own thread was the only one");
        assert!(readers.stays(Reader::Helper));
        let (second, wants_helper) = begin();
        assert!(wants_helper);
        drop(first);
        let (first, wants_helper) = begin();
        assert!(!wants_helper, "one more has just done its call, wherever it is now");
        drop((first, second));
        assert!(!readers.stays(Reader::Helper), "there are two others");
        assert!(readers.stays(Reader::Helper) && readers.stays(Reader::Own));
        let (_first, wants_helper) = begin();
        assert!(!wants_helper);
        let (_second, wants_helper) = begin();
        assert!(wants_helper, "the one that ended is not counted any more");
        readers.helper_fails();
        assert!(readers.stays(Reader::Own), "the connection's own thread stays, come what may");
        assert!(begin().1, "and the next one tries again");
    }
}
