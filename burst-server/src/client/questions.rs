//! Questions of bursts to their client. A burst's thread waits for the answer; a thread that reads the
//! client's socket delivers it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burst_hal::ErrorStatus;

use crate::panics::lock;

/// What a client answered: one length and descriptor per slot asked for.
#[derive(Debug)]
pub(crate) struct Memories {
    pub(crate) status: i32,
    pub(crate) lengths: Vec<u64>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Questions that wait for their answer.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    pending: Mutex<Pending>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    next: u64,
    closed: bool,
    open: HashMap<u64, Question>,
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

impl Questions {
    /// Asks with `send`, which gets the question's number, and waits for the answer.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when none comes in time: the slots then count as unknown. GENERAL_FAILURE
    /// when the question cannot be sent.
    pub(crate) fn ask(
        &self,
        burst: u32,
        patience: Duration,
        send: impl FnOnce(u64) -> Result<(), burst_wire::WireError>,
    ) -> Result<Memories, ErrorStatus> {
        let id = self.open(burst).ok_or(ErrorStatus::GeneralFailure)?;
        if send(id).is_err() {
            self.lock().open.remove(&id);
            return Err(ErrorStatus::GeneralFailure);
        }
        let until = Instant::now() + patience;
        let mut pending = self.lock();
        loop {
            match pending.open.get(&id).map(|question| &question.state) {
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
        match pending.open.remove(&id).map(|question| question.state) {
            Some(State::Answered(memories)) => Ok(memories),
            _ => Err(ErrorStatus::InvalidArgument),
        }
    }

    /// Delivers an answer to the thread that waits for it. An answer that no thread waits for is dropped,
    /// which closes its descriptors.
    pub(crate) fn answer(&self, id: u64, memories: Memories) {
        if let Some(question) = self.lock().open.get_mut(&id)
            && matches!(question.state, State::Open)
        {
            question.state = State::Answered(memories);
            self.answered.notify_all();
        }
    }

    /// Ends the waiting of this burst.
    pub(crate) fn cancel(&self, burst: u32) {
        for question in self.lock().open.values_mut() {
            if question.burst == burst {
                question.state = State::Cancelled;
            }
        }
        self.answered.notify_all();
    }

    /// Ends all waiting, now and later: the client is gone.
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
        pending.open.insert(id, Question { burst, state: State::Open });
        Some(id)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
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
        let questions = Questions::default();
        let answer = questions.ask(1, LONG, |id| {
            questions.answer(id + 1, memories(9)); // nobody's
            questions.answer(id, memories(4));
            questions.answer(id, memories(5)); // too late
            Ok(())
        });
        assert_eq!(answer.unwrap().status, 4);
        assert!(questions.lock().open.is_empty());
    }

    #[test]
    fn waiting_ends_with_time_cancel_and_close() {
        let questions = Questions::default();
        let none = questions.ask(1, Duration::from_millis(1), |_| Ok(()));
        assert_eq!(none.unwrap_err(), ErrorStatus::InvalidArgument);
        let cancelled = questions.ask(1, LONG, |_| {
            questions.cancel(1);
            Ok(())
        });
        assert_eq!(cancelled.unwrap_err(), ErrorStatus::InvalidArgument);
        let closed = questions.ask(1, LONG, |_| {
            questions.close();
            Ok(())
        });
        assert_eq!(closed.unwrap_err(), ErrorStatus::InvalidArgument);
        assert_eq!(
            questions.ask(1, LONG, |_| Ok(())).unwrap_err(),
            ErrorStatus::GeneralFailure,
            "asked after the end"
        );
        assert!(questions.lock().open.is_empty());
    }
}
