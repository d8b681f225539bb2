//! Questions of a burst to its client, and the answers that come in on the session's threads.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burst_hal::ErrorStatus;

/// What a client answered: one length and descriptor per slot asked for.
#[derive(Debug)]
pub(crate) struct Memories {
    pub(crate) status: i32,
    pub(crate) lengths: Vec<u64>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Questions that wait for their answer.
#[derive(Debug, Default)]
pub(crate) struct Callbacks {
    pending: Mutex<Pending>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    next: u64,
    closed: bool,
    questions: HashMap<u64, Question>,
}

#[derive(Debug)]
struct Question {
    burst: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Open,
    Answered(Memories),
    Cancelled,
}

impl Callbacks {
    /// Asks with `send`, which gets the question's number, and waits for the answer.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when none comes in time: the slots then are as good as unknown.
    pub(crate) fn ask(
        &self,
        burst: u32,
        patience: Duration,
        send: impl FnOnce(u64) -> Result<(), burst_wire::WireError>,
    ) -> Result<Memories, ErrorStatus> {
        let id = self.open(burst).ok_or(ErrorStatus::GeneralFailure)?;
        if send(id).is_err() {
            self.lock().questions.remove(&id);
            return Err(ErrorStatus::GeneralFailure);
        }
        let until = Instant::now() + patience;
        let mut pending = self.lock();
        loop {
            match pending.questions.get(&id).map(|question| &question.state) {
                Some(State::Open) if !pending.closed => {}
                _ => break,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.answered.wait_timeout(pending, left);
            pending = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match pending.questions.remove(&id).map(|question| question.state) {
            Some(State::Answered(memories)) => Ok(memories),
            _ => Err(ErrorStatus::InvalidArgument),
        }
    }

    /// Hands an answer to the thread that waits; an answer nobody waits for is dropped, and its
    /// descriptors are closed.
    pub(crate) fn answer(&self, id: u64, memories: Memories) {
        if let Some(question) = self.lock().questions.get_mut(&id)
            && matches!(question.state, State::Open)
        {
            question.state = State::Answered(memories);
            self.answered.notify_all();
        }
    }

    /// Nobody of this burst waits any longer.
    pub(crate) fn cancel(&self, burst: u32) {
        for question in self.lock().questions.values_mut() {
            if question.burst == burst {
                question.state = State::Cancelled;
            }
        }
        self.answered.notify_all();
    }

    /// Nobody waits any longer, now or later: the client is gone.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.answered.notify_all();
    }

    fn open(&self, burst: u32) -> Option<u64> {
        let mut pending = self.lock();
        if pending.closed {
            return None;
        }
        let id = pending.next;
        pending.next += 1;
        pending.questions.insert(id, Question { burst, state: State::Open });
        Some(id)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn memories(status: i32) -> Memories {
        Memories { status, lengths: Vec::new(), descriptors: Vec::new() }
    }

    #[test]
    fn an_answer_reaches_the_one_who_asked() {
        let callbacks = Callbacks::default();
        let answer = callbacks.ask(1, LONG, |id| {
            callbacks.answer(id + 1, memories(9)); // nobody's
            callbacks.answer(id, memories(4));
            callbacks.answer(id, memories(5)); // too late
            Ok(())
        });
        assert_eq!(answer.unwrap().status, 4);
        assert!(callbacks.lock().questions.is_empty());
    }

    #[test]
    fn waiting_ends_with_time_cancel_and_close() {
        let callbacks = Callbacks::default();
        let none = callbacks.ask(1, Duration::from_millis(1), |_| Ok(()));
        assert_eq!(none.unwrap_err(), ErrorStatus::InvalidArgument);
        let cancelled = callbacks.ask(1, LONG, |_| {
            callbacks.cancel(1);
            Ok(())
        });
        assert_eq!(cancelled.unwrap_err(), ErrorStatus::InvalidArgument);
        let closed = callbacks.ask(1, LONG, |_| {
            callbacks.close();
            Ok(())
        });
        assert_eq!(closed.unwrap_err(), ErrorStatus::InvalidArgument);
        assert_eq!(
            callbacks.ask(1, LONG, |_| Ok(())).unwrap_err(),
            ErrorStatus::GeneralFailure,
            "asked after the end"
        );
        assert!(callbacks.lock().questions.is_empty());
    }
}
