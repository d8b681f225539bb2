//! Calls on their way, and how many slow ones there may be.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burst_wire::control::{Answer, Refusal, SLOW_CALLS_MAX};
use fmq::Deadline;

use crate::ClientError;

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
    /// A number for a new call; `None` when the connection has ended.
    pub(crate) fn open(&self) -> Option<(u64, Arc<Call>)> {
        let mut table = lock(&self.0);
        if table.closed {
            return None;
        }
        let id = table.next;
        table.next += 1;
        let call = Arc::new(Call::default());
        table.waiting.insert(id, Arc::clone(&call));
        Some((id, call))
    }

    /// Nobody waits for this call any more; a late reply is dropped.
    pub(crate) fn forget(&self, id: u64) {
        lock(&self.0).waiting.remove(&id);
    }

    /// Hands a reply to whoever called. Descriptors of a reply that nobody waits for are closed.
    pub(crate) fn reply(&self, id: u64, outcome: Outcome) {
        let call = lock(&self.0).waiting.remove(&id);
        if let Some(call) = call {
            call.set(State::Replied(outcome));
        }
    }

    /// The connection has ended: nobody waits any longer.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut table = lock(&self.0);
            table.closed = true;
            std::mem::take(&mut table.waiting)
        };
        for call in waiting.into_values() {
            call.set(State::Lost);
        }
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
pub(crate) struct Place<'a>(&'a SlowCalls);

impl Default for SlowCalls {
    fn default() -> Self {
        SlowCalls { free: Mutex::new(SLOW_CALLS_MAX), changed: Condvar::new() }
    }
}

impl SlowCalls {
    /// Waits for a place.
    pub(crate) fn enter(&self, deadline: Deadline) -> Result<Place<'_>, ClientError> {
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
        Ok(Place(self))
    }
}

impl Drop for Place<'_> {
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
        calls.reply(second, (Ok(Answer::Done), Vec::new()));
        calls.reply(99, (Ok(Answer::Done), Vec::new()));
        assert_eq!(waiting_second.wait(Deadline::never()).unwrap().0, Ok(Answer::Done));
        assert_eq!(waiting_first.wait(soon()).unwrap_err(), NoReply::Timeout);
        calls.forget(first);
        calls.reply(first, (Ok(Answer::Done), Vec::new()));
    }

    #[test]
    fn the_end_of_the_connection_ends_every_wait() {
        let calls = Calls::default();
        let (_, call) = calls.open().unwrap();
        calls.close();
        assert_eq!(call.wait(Deadline::never()).unwrap_err(), NoReply::Lost);
        assert!(calls.open().is_none());
    }

    #[test]
    fn slow_calls_wait_for_a_place() {
        let slow = SlowCalls::default();
        let places: Vec<_> =
            (0..SLOW_CALLS_MAX).map(|_| slow.enter(Deadline::never()).unwrap()).collect();
        assert!(matches!(slow.enter(soon()), Err(ClientError::Timeout)));
        drop(places);
        slow.enter(soon()).unwrap();
    }
}
