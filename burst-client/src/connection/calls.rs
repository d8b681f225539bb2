//! Calls to the service, each with its reply.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use burst_wire::control::{self, Answer, Call, ClientMessage, Refusal, RefusalCause};
use burst_wire::{WireError, socket};
use fmq::Deadline;

use super::pending_calls::{Late, LateReply, NoReply, Undo};
use super::{Connection, REASON_PATIENCE};
use crate::ClientError;
use crate::waiting::Patience;

/// How long a call may take that does nothing but keep books.
const QUICK_CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long dropping an object waits for the service to acknowledge that it released its part. The
/// service releases it all the same when the acknowledgement comes later, and a service that owes another
/// answer already is not waited for at all.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

impl Connection {
    /// Makes a call that the service answers without running or preparing anything, and waits for that as long
    /// as the caller does, at most [`QUICK_CALL_TIMEOUT`].
    pub(crate) fn quick_call<'a>(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
        patience: impl Into<Patience<'a>>,
    ) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        self.call(call, descriptors, quick(patience.into()))
    }

    /// Makes a call and waits for its reply. One that its caller calls off before it is sent is not; of one
    /// that was sent the reply is not waited for any more, and what it says was made is undone.
    pub(crate) fn call<'a>(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
        patience: impl Into<Patience<'a>>,
    ) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        self.call_leaving(call, descriptors, patience.into(), &mut None)
    }

    /// The same. Where it gives up at its deadline, `late` is the reply that may come yet.
    pub(crate) fn call_leaving(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
        patience: Patience<'_>,
        late: &mut Option<LateReply>,
    ) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        self.check_not_forked()?;
        let permit = match call.is_slow() {
            true => Some(self.slow_calls.acquire(patience)?),
            false => None,
        };
        patience.check()?;
        let (id, waiting) = self.calls.open().map_err(|reason| self.no_reply(reason))?;
        let (undo, what) = (Undo::of(&call), subject(&call));
        if let Err(error) = self.send(id, call, descriptors) {
            let is_gone = matches!(error, WireError::Closed);
            if is_gone {
                // The watcher reads what the service said last and marks the connection dead before it
                // wakes the callers: wait for that, so that a caller that learns of the end also finds the
                // connection dead, and learns whether the service was told to stop.
                let _ = waiting.wait(Deadline::after(REASON_PATIENCE).into());
            }
            self.calls.forget(id);
            return Err(match error {
                _ if is_gone => self.peer_died(),
                // The service reads nothing, and the socket is full.
                error if socket::timed_out(&error) => ClientError::Timeout,
                error => error.into(),
            });
        }
        let outcome = match waiting.wait(patience) {
            // The call is abandoned here, unless its reply came at this very moment.
            Err(reason @ (NoReply::Timeout | NoReply::Cancelled)) => {
                if self.calls.abandon(id, undo.clone(), permit) {
                    *late = Some(LateReply::to(&waiting));
                    return Err(self.no_reply(reason));
                }
                waiting.wait(Deadline::never().into())
            }
            other => other,
        };
        match outcome {
            Ok((Ok(answer), Ok(descriptors))) => Ok((answer, descriptors)),
            // What it made is of no use without them.
            Ok((Ok(answer), Err(lost))) => {
                self.undo(undo, answer);
                Err(lost.into())
            }
            Ok((Err(Refusal { cause: RefusalCause::UnknownCall, detail, .. }), _)) => {
                Err(ClientError::UnknownCall { what, detail: detail.as_str().into() })
            }
            Ok((Err(refusal), _)) => Err(ClientError::Refused {
                status: refusal.status(),
                detail: refusal.detail.as_str().into(),
            }),
            Err(reason) => Err(self.no_reply(reason)),
        }
    }

    /// Tells the service something that it acknowledges, which is not waited for.
    fn tell(&self, call: Call) -> Result<(), WireError> {
        self.send(self.calls.next_oneway_id(), call, &[])
    }

    /// Undoes what was done, according to this answer.
    fn undo(&self, undo: Undo, answer: Answer) {
        let Late::Undo(calls) = undo.late(&Ok(answer)) else { return };
        for call in calls {
            if let Err(error) = self.tell(call) {
                tracing::debug!(%error, "the service keeps what nobody has");
            }
        }
    }

    fn send(&self, id: u64, call: Call, descriptors: &[BorrowedFd<'_>]) -> Result<(), WireError> {
        let message = control::encode(&ClientMessage::Call { id, call })?;
        socket::send(&self.socket, &message, descriptors)
    }

    fn no_reply(&self, reason: NoReply) -> ClientError {
        match reason {
            NoReply::Lost => self.peer_died(),
            NoReply::Timeout => ClientError::Timeout,
            NoReply::Cancelled => ClientError::Cancelled,
        }
    }

    /// Tells the service to release its part of an object that is dropped here. Does nothing in a
    /// forked child, or when the service is gone. A failure is logged and not returned: a caller
    /// that drops an object cannot do anything about it.
    pub(crate) fn release_remote(&self, call: Call, what: &'static str, number: u32) {
        if !self.is_usable() {
            return;
        }
        if self.calls.owes_an_answer() {
            return self.release_later(call, what, number);
        }
        if let Err(error) = self.call(call, &[], Deadline::after(RELEASE_TIMEOUT)) {
            tracing::debug!(number, %error, "the service keeps {what} for now");
        }
    }

    /// The same for an object with which the service is late: nobody who gave up waiting for it waits here.
    pub(crate) fn release_later(&self, call: Call, what: &'static str, number: u32) {
        if !self.is_usable() {
            return;
        }
        if let Err(error) = self.tell(call) {
            tracing::debug!(number, %error, "the service keeps {what}");
        }
    }

    /// Makes a call that starts an execution, which the service answers without executing anything: until then its
    /// answer is waited for, at most [`QUICK_CALL_TIMEOUT`]. Where that takes longer, `late` is the reply that
    /// may come yet; there is none where nothing was sent.
    pub(crate) fn launch(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
        deadline: Deadline,
        late: &mut Option<LateReply>,
    ) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        self.call_leaving(call, descriptors, quick(deadline.into()), late)
    }

    /// Asks the service to give up an execution. Its acknowledgement is not waited for.
    pub(crate) fn cancel_execution(&self, execution: u32) {
        if !self.is_usable() {
            return;
        }
        if let Err(error) = self.tell(Call::CancelExecution { execution }) {
            tracing::debug!(execution, %error, "not cancelled");
        }
    }

    /// Makes a call that the service answers with a mere acknowledgement, and waits for that until
    /// the caller's deadline, at most [`QUICK_CALL_TIMEOUT`].
    pub(crate) fn call_acknowledged<'a>(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
        patience: impl Into<Patience<'a>>,
    ) -> Result<(), ClientError> {
        match self.quick_call(call, descriptors, patience)? {
            (Answer::Done, _) => Ok(()),
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }
}

/// As long as the caller waits, at most [`QUICK_CALL_TIMEOUT`].
fn quick(patience: Patience<'_>) -> Patience<'_> {
    patience.at_most(Deadline::after(QUICK_CALL_TIMEOUT))
}

/// What a call is about, for whoever is told that the service does not know it.
fn subject(call: &Call) -> &'static str {
    match call {
        Call::ExecuteAsynchronously { .. } => "asynchronous executions",
        Call::ExecuteFenced(_) | Call::ExecutionInfo { .. } | Call::ReleaseExecution { .. } => {
            "fenced executions"
        }
        Call::CancelExecution { .. } => "cancelling executions",
        Call::PrepareCaching { .. } | Call::PrepareFromCache { .. } => "compilations in files",
        Call::AllocateBuffer { .. }
        | Call::CopyFromBuffer { .. }
        | Call::CopyToBuffer { .. }
        | Call::ReleaseBuffer { .. } => "buffers of drivers",
        _ => "this",
    }
}
