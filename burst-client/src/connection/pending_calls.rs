//! PendingCalls that were sent and not answered yet, and what becomes of replies that come too
//! late.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use burst_wire::WireError;
use burst_wire::control::{self, Answer, Refusal};
use fmq::Deadline;

use super::permits::Permit;
use crate::waiting::{Patience, lock, remaining};

/// PendingCalls that were given up and not answered yet. A service that owes more answers than this
/// gets no more calls.
const ABANDONED_MAX: usize = 1024;

/// A reply with its descriptors, or why there are none: this process had no room for them.
pub(super) type Outcome = (Result<Answer, Refusal>, Result<Vec<OwnedFd>, WireError>);

/// PendingCalls that wait for their reply.
#[derive(Debug, Default)]
pub(super) struct PendingCalls(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    closed: bool,
    waiting: HashMap<u64, Arc<PendingCall>>,
    abandoned: HashMap<u64, Abandoned>,
}

/// A call whose caller went away before the reply.
#[derive(Debug)]
struct Abandoned {
    undo: Undo,
    /// Told that its reply has come, for whoever may not go on before.
    call: Arc<PendingCall>,
    /// The service may still be busy with it, so its permit stays in use until the reply comes.
    permit: Option<Permit>,
}

/// How to undo a call that was done after its caller had given up: otherwise the service would
/// keep for ever what no object of this client refers to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Undo {
    /// It leaves nothing behind.
    Nothing,
    /// What was made has a number that only the reply tells.
    ByAnswer,
    /// What was made has a number that was chosen here.
    With(control::Call),
    /// An execution was started that nobody waits for.
    Execution(u32),
}

/// What is to be done about a reply that came after its caller had given up.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Late {
    /// Nothing: the caller has it, or nothing was made.
    Nothing,
    /// These calls undo what was done.
    Undo(Vec<control::Call>),
    /// No result of this execution will come.
    NeverStarted(u32),
}

impl Undo {
    pub(super) fn of(call: &control::Call) -> Undo {
        use control::Call;
        match *call {
            Call::Prepare { .. }
            | Call::PrepareCaching { .. }
            | Call::PrepareFromCache { .. }
            | Call::AllocateBuffer { .. }
            | Call::ConfigureBurst { .. }
            | Call::ExecuteFenced(_) => Undo::ByAnswer,
            Call::ExecuteAsynchronously { execution, .. } => Undo::Execution(execution),
            Call::ShareMemory { memory, .. } | Call::AllocateMemory { memory, .. } => {
                Undo::With(Call::ForgetMemory { memory })
            }
            Call::PushMemory { burst, slot, .. } => Undo::With(Call::FreeMemory { burst, slot }),
            Call::BeginTrace { .. } => Undo::With(Call::EndTrace),
            _ => Undo::Nothing,
        }
    }

    /// What is left to do after this reply, of which nobody makes use.
    pub(super) fn late(self, outcome: &Result<Answer, Refusal>) -> Late {
        use control::Call;
        let Ok(answer) = outcome else {
            return match self {
                Undo::Execution(execution) => Late::NeverStarted(execution),
                _ => Late::Nothing, // refused: there is nothing to undo
            };
        };
        match self {
            Undo::Nothing => Late::Nothing,
            Undo::With(call) => Late::Undo(vec![call]),
            Undo::Execution(execution) => Late::Undo(vec![Call::CancelExecution { execution }]),
            Undo::ByAnswer => match *answer {
                Answer::Prepared { model } | Answer::Restored { model, .. } => {
                    Late::Undo(vec![Call::ReleaseModel { model }])
                }
                Answer::Burst { burst, .. } => Late::Undo(vec![Call::CloseBurst { burst }]),
                Answer::Buffer { token } => Late::Undo(vec![Call::ReleaseBuffer { token }]),
                Answer::Fenced { execution } => Late::Undo(vec![
                    Call::CancelExecution { execution },
                    Call::ReleaseExecution { execution },
                ]),
                _ => Late::Nothing,
            },
        }
    }
}

/// One call that waits for its reply.
#[derive(Debug, Default)]
pub(super) struct PendingCall {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Waiting,
    Replied(Outcome),
    /// No reply will come.
    Lost,
}

/// Why there is no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoReply {
    /// The connection ended.
    Lost,
    /// It took too long.
    Timeout,
    /// Its caller called it off.
    Cancelled,
}

impl PendingCalls {
    /// An id for a new call, and what its caller waits on.
    pub(super) fn open(&self) -> Result<(u64, Arc<PendingCall>), NoReply> {
        let mut table = lock(&self.0);
        if table.closed {
            return Err(NoReply::Lost);
        }
        if table.abandoned.len() >= ABANDONED_MAX {
            return Err(NoReply::Timeout);
        }
        let id = table.next_id();
        let call = Arc::new(PendingCall::default());
        table.waiting.insert(id, Arc::clone(&call));
        Ok((id, call))
    }

    /// An id for a one-way call: its reply finds no caller and is dropped.
    pub(super) fn next_oneway_id(&self) -> u64 {
        lock(&self.0).next_id()
    }

    /// Whether the service is late with the answer to a call that needs no work, and that somebody has given up
    /// waiting for.
    pub(super) fn owes_an_answer(&self) -> bool {
        lock(&self.0).abandoned.values().any(|call| call.permit.is_none())
    }

    /// This call was never sent.
    pub(super) fn forget(&self, id: u64) {
        lock(&self.0).waiting.remove(&id);
    }

    /// The caller stops waiting for this call; what a late reply says was made is undone. `false`
    /// when the reply is there already.
    pub(super) fn abandon(&self, id: u64, undo: Undo, permit: Option<Permit>) -> bool {
        let mut table = lock(&self.0);
        let Some(call) = table.waiting.remove(&id) else { return false };
        table.abandoned.insert(id, Abandoned { undo, call, permit });
        true
    }

    /// Hands a reply to its caller. Where the caller gave up, returns what undoes what was done, if
    /// anything is needed, and closes the reply's descriptors.
    #[must_use]
    pub(super) fn reply(&self, id: u64, outcome: Outcome) -> Late {
        let (call, abandoned) = {
            let mut table = lock(&self.0);
            (table.waiting.remove(&id), table.abandoned.remove(&id))
        };
        match call {
            Some(call) => {
                call.set(State::Replied(outcome));
                Late::Nothing
            }
            None => abandoned.map_or(Late::Nothing, |Abandoned { undo, call, .. }| {
                call.set(State::Lost); // nobody takes it any more
                undo.late(&outcome.0)
            }),
        }
    }

    /// The connection has ended: wakes every caller without a reply.
    pub(super) fn close(&self) {
        let waiting = {
            let mut table = lock(&self.0);
            table.closed = true;
            let abandoned = table.abandoned.drain().map(|(_, abandoned)| abandoned.call);
            let mut calls: Vec<_> = abandoned.collect();
            calls.extend(table.waiting.drain().map(|(_, call)| call));
            calls
        };
        for call in waiting {
            call.set(State::Lost);
        }
    }
}

impl Table {
    fn next_id(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }
}

impl PendingCall {
    /// Wakes its caller, who called it off.
    fn look_again(&self) {
        // Under the lock, so that this cannot fall between the caller's last look and its wait.
        let _guard = lock(&self.state);
        self.changed.notify_all();
    }

    fn set(&self, state: State) {
        *lock(&self.state) = state;
        self.changed.notify_all();
    }

    /// Waits for the reply. One that is there is taken, also by a caller who called it off.
    pub(super) fn wait(self: &Arc<Self>, patience: Patience<'_>) -> Result<Outcome, NoReply> {
        let _hook = patience.when_cancelled(self, PendingCall::look_again);
        let mut state = lock(&self.state);
        loop {
            match std::mem::take(&mut *state) {
                State::Replied(outcome) => return Ok(outcome),
                State::Lost => return Err(NoReply::Lost),
                State::Waiting => {}
            }
            if patience.is_cancelled() {
                return Err(NoReply::Cancelled);
            }
            state = match remaining(patience.until()) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return Err(NoReply::Timeout),
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// The reply to a call that was given up, which has not come yet: what the call is about may be in use
/// until then.
#[derive(Debug)]
pub(crate) struct LateReply(Arc<PendingCall>);

impl LateReply {
    pub(super) fn to(call: &Arc<PendingCall>) -> Self {
        LateReply(Arc::clone(call))
    }

    /// Waits until it has come, or never will.
    ///
    /// # Errors
    /// Itself, where it has not by the deadline.
    pub(crate) fn wait(self, deadline: Deadline) -> Result<(), Self> {
        match self.0.wait(deadline.into()) {
            Err(NoReply::Timeout) => Err(self),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use burst_hal::{Caller, CancelWord};

    use super::super::permits::Permits;
    use super::*;
    use crate::ClientError;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_millis(1))
    }

    #[test]
    fn a_reply_reaches_its_call_and_no_other() {
        let calls = PendingCalls::default();
        let (first, waiting_first) = calls.open().unwrap();
        let (second, waiting_second) = calls.open().unwrap();
        assert_ne!(first, second);
        assert_eq!(calls.reply(second, (Ok(Answer::Done), Ok(Vec::new()))), Late::Nothing);
        assert_eq!(calls.reply(99, (Ok(Answer::Done), Ok(Vec::new()))), Late::Nothing);
        assert_eq!(waiting_second.wait(Deadline::never().into()).unwrap().0, Ok(Answer::Done));
        assert_eq!(waiting_first.wait(soon().into()).unwrap_err(), NoReply::Timeout);
        assert!(calls.abandon(first, Undo::Nothing, None));
        assert_eq!(calls.reply(first, (Ok(Answer::Done), Ok(Vec::new()))), Late::Nothing);
    }

    #[test]
    fn what_was_made_too_late_is_undone() {
        use control::Call;
        let refusal = || Err(Refusal::new(burst_hal::ErrorStatus::GeneralFailure, "no"));
        let cases = [
            (
                Undo::ByAnswer,
                Ok(Answer::Prepared { model: 7 }),
                Late::Undo(vec![Call::ReleaseModel { model: 7 }]),
            ),
            (
                Undo::of(&Call::PrepareFromCache {
                    device: 0,
                    cache: control::CachePlace::new([0; 32], burst_hal::CacheFiles::default()),
                    deadline: None,
                }),
                Ok(Answer::Restored {
                    model: 8,
                    inputs: 1,
                    outputs: 1,
                    longest_packet: 9,
                    prepared: (&burst_hal::PrepareOptions::default()).into(),
                }),
                Late::Undo(vec![Call::ReleaseModel { model: 8 }]),
            ),
            (
                Undo::ByAnswer,
                Ok(Answer::Buffer { token: 8 }),
                Late::Undo(vec![Call::ReleaseBuffer { token: 8 }]),
            ),
            (
                Undo::ByAnswer,
                Ok(Answer::Fenced { execution: 5 }),
                Late::Undo(vec![
                    Call::CancelExecution { execution: 5 },
                    Call::ReleaseExecution { execution: 5 },
                ]),
            ),
            (Undo::ByAnswer, refusal(), Late::Nothing),
            (
                Undo::Execution(6),
                Ok(Answer::Done),
                Late::Undo(vec![Call::CancelExecution { execution: 6 }]),
            ),
            (Undo::Execution(6), refusal(), Late::NeverStarted(6)),
            (
                Undo::of(&Call::AllocateMemory { memory: 3, length: 1 }),
                Ok(Answer::Done),
                Late::Undo(vec![Call::ForgetMemory { memory: 3 }]),
            ),
            (Undo::of(&Call::AllocateMemory { memory: 3, length: 1 }), refusal(), Late::Nothing),
            (
                Undo::of(&Call::BeginTrace { length: 4096 }),
                Ok(Answer::Done),
                Late::Undo(vec![Call::EndTrace]),
            ),
            (Undo::of(&Call::ListDevices), Ok(Answer::Done), Late::Nothing),
        ];
        let calls = PendingCalls::default();
        for (undo, outcome, want) in cases {
            let (id, _) = calls.open().unwrap();
            assert!(calls.abandon(id, undo.clone(), None));
            assert_eq!(calls.reply(id, (outcome, Ok(Vec::new()))), want, "{undo:?}");
        }
        // The reply came just before the caller gave up: it is the caller's.
        let (id, call) = calls.open().unwrap();
        assert_eq!(
            calls.reply(id, (Ok(Answer::Prepared { model: 1 }), Ok(Vec::new()))),
            Late::Nothing
        );
        assert!(!calls.abandon(id, Undo::ByAnswer, None));
        assert!(call.wait(Deadline::never().into()).is_ok());
    }

    #[test]
    fn a_service_is_late_with_an_answer_that_needs_no_work_until_it_has_come() {
        let (calls, slow) = (PendingCalls::default(), Permits::of_slow_calls(Some(1)));
        let (busy, _) = calls.open().unwrap();
        calls.abandon(busy, Undo::Nothing, slow.acquire(Deadline::never().into()).ok());
        assert!(!calls.owes_an_answer(), "one that works may take its time");
        let (id, _) = calls.open().unwrap();
        assert!(!calls.owes_an_answer(), "somebody waits for it");
        calls.abandon(id, Undo::Nothing, None);
        assert!(calls.owes_an_answer());
        assert_eq!(calls.reply(id, (Ok(Answer::Done), Ok(Vec::new()))), Late::Nothing);
        assert!(!calls.owes_an_answer());
    }

    #[test]
    fn a_service_that_owes_too_many_answers_gets_no_more_calls() {
        let calls = PendingCalls::default();
        for _ in 0..ABANDONED_MAX {
            let (id, _) = calls.open().unwrap();
            calls.abandon(id, Undo::Nothing, None);
        }
        assert_eq!(calls.open().unwrap_err(), NoReply::Timeout);
        assert_eq!(calls.reply(0, (Ok(Answer::Done), Ok(Vec::new()))), Late::Nothing);
        assert!(calls.open().is_ok());
    }

    #[test]
    fn who_may_not_go_on_before_is_told_of_a_late_reply_and_of_the_end() {
        let calls = PendingCalls::default();
        for is_answered in [true, false] {
            let (id, call) = calls.open().unwrap();
            assert_eq!(call.wait(soon().into()).unwrap_err(), NoReply::Timeout);
            assert!(calls.abandon(id, Undo::Nothing, None));
            let late = LateReply::to(&call).wait(soon()).expect_err("it has not come");
            if is_answered {
                assert_eq!(calls.reply(id, (Ok(Answer::Done), Ok(Vec::new()))), Late::Nothing);
            } else {
                calls.close();
            }
            late.wait(Deadline::never()).unwrap();
        }
    }

    #[test]
    fn a_call_that_is_called_off_is_not_waited_for_and_its_reply_finds_nobody() {
        let calls = PendingCalls::default();
        let word = CancelWord::default();
        let caller = Caller::new(&word);
        let patience = Patience::of(&caller, Deadline::never());
        let (id, call) = calls.open().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| call.wait(patience));
            word.cancel(); // before it waits, or while it does
            assert_eq!(waiting.join().unwrap().unwrap_err(), NoReply::Cancelled);
        });
        assert!(calls.abandon(id, Undo::ByAnswer, None));
        let late = calls.reply(id, (Ok(Answer::Prepared { model: 7 }), Ok(Vec::new())));
        assert_eq!(late, Late::Undo(vec![control::Call::ReleaseModel { model: 7 }]));
        // What is there by then is the caller's all the same.
        let (id, call) = calls.open().unwrap();
        assert_eq!(calls.reply(id, (Ok(Answer::Done), Ok(Vec::new()))), Late::Nothing);
        assert_eq!(call.wait(patience).unwrap().0, Ok(Answer::Done));
    }

    #[test]
    fn who_waits_for_a_permit_may_call_that_off_and_takes_none() {
        let slow = Permits::new(1);
        let only = slow.acquire(Deadline::never().into()).unwrap();
        let word = CancelWord::default();
        let caller = Caller::new(&word);
        let patience = Patience::of(&caller, Deadline::never());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slow.acquire(patience));
            word.cancel();
            assert!(matches!(waiting.join().unwrap(), Err(ClientError::Cancelled)));
        });
        drop(only);
        slow.acquire(soon().into()).unwrap();
    }

    #[test]
    fn the_end_of_the_connection_ends_every_wait() {
        let calls = PendingCalls::default();
        let (_, call) = calls.open().unwrap();
        calls.close();
        assert_eq!(call.wait(Deadline::never().into()).unwrap_err(), NoReply::Lost);
        assert_eq!(calls.open().unwrap_err(), NoReply::Lost);
    }

    #[test]
    fn slow_calls_wait_for_a_permit_and_keep_it_until_they_are_answered() {
        let slow = Permits::of_slow_calls(Some(3));
        let mut permits: Vec<_> =
            (0..3).map(|_| slow.acquire(Deadline::never().into()).unwrap()).collect();
        let calls = PendingCalls::default();
        let (id, _) = calls.open().unwrap();
        calls.abandon(id, Undo::ByAnswer, permits.pop());
        assert!(matches!(slow.acquire(soon().into()), Err(ClientError::Timeout)));
        assert_eq!(calls.reply(id, (Ok(Answer::Done), Ok(Vec::new()))), Late::Nothing);
        drop(slow.acquire(soon().into()).unwrap());
        drop(permits);
        slow.acquire(soon().into()).unwrap();
    }
}
