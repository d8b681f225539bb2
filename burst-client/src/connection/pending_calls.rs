//! Calls on their way, how many slow ones there may be, and what becomes of late replies.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burst_wire::control::{self, Answer, Refusal, SLOW_CALLS_MAX};
use fmq::Deadline;

use crate::ClientError;

/// Calls that were given up and not answered yet. A service that owes more answers than this gets
/// no more calls.
const ABANDONED_MAX: usize = 1024;

/// A reply with its descriptors.
pub(crate) type Outcome = (Result<Answer, Refusal>, Vec<OwnedFd>);

/// Calls that wait for their reply.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    closed: bool,
    waiting: HashMap<u64, Arc<Call>>,
    abandoned: HashMap<u64, Abandoned>,
}

/// A call whose caller went away before the reply.
#[derive(Debug)]
struct Abandoned {
    undo: Undo,
    /// The service may still be busy with it: its place stays taken.
    _place: Option<Place>,
}

/// How to undo a call that was done after its caller had given up: otherwise the service would
/// keep for ever what nobody here knows of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Undo {
    /// It leaves nothing behind.
    Nothing,
    /// What was made has a number that only the reply tells.
    ByAnswer,
    /// What was made has a number that was chosen here.
    With(control::Call),
}

impl Undo {
    pub(crate) fn of(call: &control::Call) -> Undo {
        use control::Call;
        match *call {
            Call::Prepare { .. } | Call::ConfigureBurst { .. } => Undo::ByAnswer,
            Call::ShareMemory { memory, .. } | Call::AllocateMemory { memory, .. } => {
                Undo::With(Call::ForgetMemory { memory })
            }
            Call::PushMemory { burst, slot, .. } => Undo::With(Call::FreeMemory { burst, slot }),
            _ => Undo::Nothing,
        }
    }

    /// The call that undoes what this reply says was done.
    fn call(self, outcome: &Result<Answer, Refusal>) -> Option<control::Call> {
        let answer = outcome.as_ref().ok()?; // refused: there is nothing to undo
        match self {
            Undo::Nothing => None,
            Undo::With(call) => Some(call),
            Undo::ByAnswer => match *answer {
                Answer::Prepared { model } => Some(control::Call::ReleaseModel { model }),
                Answer::Burst { burst, .. } => Some(control::Call::CloseBurst { burst }),
                _ => None,
            },
        }
    }
}

/// One call.
#[derive(Debug, Default)]
pub(crate) struct Call {
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
pub(crate) enum NoReply {
    /// The connection ended.
    Lost,
    /// It took too long.
    Timeout,
}

impl Calls {
    /// A number for a new call.
    pub(crate) fn open(&self) -> Result<(u64, Arc<Call>), NoReply> {
        let mut table = lock(&self.0);
        if table.closed {
            return Err(NoReply::Lost);
        }
        if table.abandoned.len() >= ABANDONED_MAX {
            return Err(NoReply::Timeout);
        }
        let id = table.number();
        let call = Arc::new(Call::default());
        table.waiting.insert(id, Arc::clone(&call));
        Ok((id, call))
    }

    /// A number for a call whose reply nobody wants.
    pub(crate) fn unheard(&self) -> u64 {
        lock(&self.0).number()
    }

    /// This call was never sent.
    pub(crate) fn forget(&self, id: u64) {
        lock(&self.0).waiting.remove(&id);
    }

    /// Nobody waits for this call any more; what a late reply says was made is undone. `false`
    /// when the reply is there already.
    pub(crate) fn abandon(&self, id: u64, undo: Undo, place: Option<Place>) -> bool {
        let mut table = lock(&self.0);
        if table.waiting.remove(&id).is_none() {
            return false;
        }
        table.abandoned.insert(id, Abandoned { undo, _place: place });
        true
    }

    /// Hands a reply to whoever called, or gives the call to make because nobody waits any more.
    /// Descriptors of a reply that nobody waits for are closed.
    #[must_use]
    pub(crate) fn reply(&self, id: u64, outcome: Outcome) -> Option<control::Call> {
        let (call, abandoned) = {
            let mut table = lock(&self.0);
            (table.waiting.remove(&id), table.abandoned.remove(&id))
        };
        match call {
            Some(call) => {
                call.set(State::Replied(outcome));
                None
            }
            None => abandoned.and_then(|abandoned| abandoned.undo.call(&outcome.0)),
        }
    }

    /// The connection has ended: nobody waits any longer.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut table = lock(&self.0);
            table.closed = true;
            table.abandoned.clear();
            std::mem::take(&mut table.waiting)
        };
        for call in waiting.into_values() {
            call.set(State::Lost);
        }
    }
}

impl Table {
    fn number(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }
}

impl Call {
    fn set(&self, state: State) {
        *lock(&self.state) = state;
        self.changed.notify_all();
    }

    /// Waits for the reply.
    pub(crate) fn wait(&self, deadline: Deadline) -> Result<Outcome, NoReply> {
        let mut state = lock(&self.state);
        loop {
            match std::mem::take(&mut *state) {
                State::Replied(outcome) => return Ok(outcome),
                State::Lost => return Err(NoReply::Lost),
                State::Waiting => {}
            }
            state = match remaining(deadline) {
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

/// Time left until a deadline; `None` for never.
pub(crate) fn remaining(deadline: Deadline) -> Option<Duration> {
    let at = deadline.as_ns()?;
    Some(Duration::from_nanos(at.saturating_sub(fmq::clock::now_ns())))
}

/// Places for slow calls. The service refuses one more than it has places, so callers queue here.
#[derive(Debug)]
pub(crate) struct SlowCalls {
    free: Mutex<usize>,
    changed: Condvar,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<SlowCalls>);

impl Default for SlowCalls {
    fn default() -> Self {
        SlowCalls { free: Mutex::new(SLOW_CALLS_MAX), changed: Condvar::new() }
    }
}

impl SlowCalls {
    /// Waits for a place.
    pub(crate) fn enter(self: &Arc<Self>, deadline: Deadline) -> Result<Place, ClientError> {
        let until = remaining(deadline).and_then(|left| Instant::now().checked_add(left));
        let mut free = lock(&self.free);
        while *free == 0 {
            free = match until {
                None => self.changed.wait(free).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(ClientError::Timeout);
                    }
                    let waited = self.changed.wait_timeout(free, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *free -= 1;
        drop(free);
        Ok(Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.changed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_millis(1))
    }

    #[test]
    fn a_reply_reaches_its_call_and_no_other() {
        let calls = Calls::default();
        let (first, waiting_first) = calls.open().unwrap();
        let (second, waiting_second) = calls.open().unwrap();
        assert_ne!(first, second);
        assert_eq!(calls.reply(second, (Ok(Answer::Done), Vec::new())), None);
        assert_eq!(calls.reply(99, (Ok(Answer::Done), Vec::new())), None);
        assert_eq!(waiting_second.wait(Deadline::never()).unwrap().0, Ok(Answer::Done));
        assert_eq!(waiting_first.wait(soon()).unwrap_err(), NoReply::Timeout);
        assert!(calls.abandon(first, Undo::Nothing, None));
        assert_eq!(calls.reply(first, (Ok(Answer::Done), Vec::new())), None);
    }

    #[test]
    fn what_was_made_too_late_is_undone() {
        use control::Call;
        let refusal = || Err(Refusal::new(burst_hal::ErrorStatus::GeneralFailure, "no"));
        let cases = [
            (
                Undo::ByAnswer,
                Ok(Answer::Prepared { model: 7 }),
                Some(Call::ReleaseModel { model: 7 }),
            ),
            (Undo::ByAnswer, refusal(), None),
            (
                Undo::of(&Call::AllocateMemory { memory: 3, length: 1 }),
                Ok(Answer::Done),
                Some(Call::ForgetMemory { memory: 3 }),
            ),
            (Undo::of(&Call::AllocateMemory { memory: 3, length: 1 }), refusal(), None),
            (Undo::of(&Call::ListDevices), Ok(Answer::Done), None),
        ];
        let calls = Calls::default();
        for (undo, outcome, want) in cases {
            let (id, _) = calls.open().unwrap();
            assert!(calls.abandon(id, undo.clone(), None));
            assert_eq!(calls.reply(id, (outcome, Vec::new())), want, "{undo:?}");
        }
        // The reply came just before the caller gave up: it is the caller's.
        let (id, call) = calls.open().unwrap();
        assert_eq!(calls.reply(id, (Ok(Answer::Prepared { model: 1 }), Vec::new())), None);
        assert!(!calls.abandon(id, Undo::ByAnswer, None));
        assert!(call.wait(Deadline::never()).is_ok());
    }

    #[test]
    fn a_service_that_owes_too_many_answers_gets_no_more_calls() {
        let calls = Calls::default();
        for _ in 0..ABANDONED_MAX {
            let (id, _) = calls.open().unwrap();
            calls.abandon(id, Undo::Nothing, None);
        }
        assert_eq!(calls.open().unwrap_err(), NoReply::Timeout);
        assert_eq!(calls.reply(0, (Ok(Answer::Done), Vec::new())), None);
        assert!(calls.open().is_ok());
    }

    #[test]
    fn the_end_of_the_connection_ends_every_wait() {
        let calls = Calls::default();
        let (_, call) = calls.open().unwrap();
        calls.close();
        assert_eq!(call.wait(Deadline::never()).unwrap_err(), NoReply::Lost);
        assert_eq!(calls.open().unwrap_err(), NoReply::Lost);
    }

    #[test]
    fn slow_calls_wait_for_a_place_and_keep_it_until_they_are_answered() {
        let slow = Arc::new(SlowCalls::default());
        let mut places: Vec<_> =
            (0..SLOW_CALLS_MAX).map(|_| slow.enter(Deadline::never()).unwrap()).collect();
        let calls = Calls::default();
        let (id, _) = calls.open().unwrap();
        calls.abandon(id, Undo::ByAnswer, places.pop());
        assert!(matches!(slow.enter(soon()), Err(ClientError::Timeout)));
        assert_eq!(calls.reply(id, (Ok(Answer::Done), Vec::new())), None);
        drop(slow.enter(soon()).unwrap());
        drop(places);
        slow.enter(soon()).unwrap();
    }
}
