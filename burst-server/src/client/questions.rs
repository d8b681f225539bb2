//! Questions of bursts to their client. A burst's thread waits for the answer; a thread that reads the
//! client's socket delivers it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burst_hal::ErrorStatus;
use burst_wire::WireError;

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
    /// Asks with `send_now`, which gets the question's number and says whether there was room for it just now,
    /// and waits for the answer; for room, where there is none, with `wait_for_room`. All of that takes as
    /// long as `patience` at most; for an answer nobody waits once the burst `has_ended`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when no answer comes in time: the slots then count as unknown. GENERAL_FAILURE
    /// when the question cannot be sent at all.
    pub(crate) fn ask(
        &self,
        burst: u32,
        patience: Duration,
        (send_now, wait_for_room): (impl Fn(u64) -> Result<bool, WireError>, impl Fn(Duration)),
        has_ended: impl Fn() -> bool,
    ) -> Result<Memories, ErrorStatus> {
        let until = Instant::now() + patience;
        let id = loop {
            if let Some(id) = self.open(burst, &send_now)? {
                break id;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorStatus::InvalidArgument);
            }
            wait_for_room(left);
        };
        let mut pending = self.lock();
        loop {
            match pending.open.get(&id).map(|question| &question.state) {
                // Under the lock: who ends the burst from now on finds the question, and cancels it.
                Some(State::Open) if !pending.closed && !has_ended() => {}
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

    /// Sends a question and opens it; `None` where there is no room for it just now.
    ///
    /// Both under the lock, and what is sent does not wait: an answer that comes before its question was sent
    /// finds none. Its descriptors, for which nobody pays yet, would otherwise be kept for as long as the
    /// client leaves no room.
    fn open(
        &self,
        burst: u32,
        send_now: impl Fn(u64) -> Result<bool, WireError>,
    ) -> Result<Option<u64>, ErrorStatus> {
        let mut pending = self.lock();
        let id = pending.next;
        if pending.closed {
            return Err(ErrorStatus::GeneralFailure);
        }
        if !send_now(id).map_err(|_| ErrorStatus::GeneralFailure)? {
            return Ok(None);
        }
        pending.next += 1;
        pending.open.insert(id, Question { burst, state: State::Open });
        Ok(Some(id))
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn memories(status: i32) -> Memories {
        Memories { status, lengths: Vec::new(), descriptors: Vec::new() }
    }

    /// Asks where there is room, with something that happens once the question is sent.
    fn ask(
        questions: &Questions,
        patience: Duration,
        then: impl FnOnce(u64) + Send,
    ) -> Result<Memories, ErrorStatus> {
        std::thread::scope(|scope| {
            let (sent, has_sent) = std::sync::mpsc::channel();
            scope.spawn(move || {
                if let Ok(id) = has_sent.recv() {
                    drop(questions.lock()); // the question is open
                    then(id);
                }
            });
            let send_now = |id| {
                sent.send(id).unwrap();
                Ok(true)
            };
            questions.ask(1, patience, (send_now, |_| unreachable!("there is room")), || false)
        })
    }

    #[test]
    fn an_answer_reaches_the_one_who_asked() {
        let questions = Questions::default();
        let answer = ask(&questions, LONG, |id| {
            questions.answer(id + 1, memories(9)); // nobody's
            questions.answer(id, memories(4));
            questions.answer(id, memories(5)); // too late
        });
        assert_eq!(answer.unwrap().status, 4);
        assert!(questions.lock().open.is_empty());
    }

    #[test]
    fn waiting_ends_with_time_cancel_and_close() {
        let questions = Questions::default();
        let none = ask(&questions, Duration::from_millis(1), |_| ());
        assert_eq!(none.unwrap_err(), ErrorStatus::InvalidArgument);
        let cancelled = ask(&questions, LONG, |_| questions.cancel(1));
        assert_eq!(cancelled.unwrap_err(), ErrorStatus::InvalidArgument);
        let closed = ask(&questions, LONG, |_| questions.close());
        assert_eq!(closed.unwrap_err(), ErrorStatus::InvalidArgument);
        let late = ask(&questions, LONG, |_| ());
        assert_eq!(late.unwrap_err(), ErrorStatus::GeneralFailure, "asked after the end");
        assert!(questions.lock().open.is_empty());
    }

    #[test]
    fn room_is_waited_for_no_longer_than_an_answer_and_a_peer_that_is_gone_not_at_all() {
        let questions = Questions::default();
        let full = |_| Ok(false);
        let goes_on = || false;
        let never = questions.ask(1, Duration::from_millis(1), (full, std::thread::sleep), goes_on);
        assert_eq!(never.unwrap_err(), ErrorStatus::InvalidArgument);
        let gone = questions.ask(1, LONG, (|_| Err(WireError::Closed), |_| ()), goes_on);
        assert_eq!(gone.unwrap_err(), ErrorStatus::GeneralFailure);
        // Closed while room was waited for.
        let closed = questions.ask(1, LONG, (full, |_| questions.close()), goes_on);
        assert_eq!(closed.unwrap_err(), ErrorStatus::GeneralFailure);
        assert!(questions.lock().open.is_empty());
    }

    #[test]
    fn an_answer_before_its_question_is_nobodys_and_its_descriptors_are_closed() {
        let questions = Questions::default();
        let (read, write) = rustix::pipe::pipe().unwrap();
        let write = Cell::new(Some(write));
        let looks = Cell::new(0);
        let send_now = |_| {
            looks.set(looks.get() + 1);
            Ok(looks.get() > 1)
        };
        let answer = |_| {
            let descriptors = write.take().into_iter().collect();
            questions.answer(0, Memories { descriptors, ..memories(4) });
            // Nobody has the other end any more.
            assert_eq!(rustix::io::read(&read, &mut [0; 1]), Ok(0));
        };
        let patience = Duration::from_millis(100);
        let answered = questions.ask(1, patience, (send_now, answer), || false);
        assert_eq!(answered.unwrap_err(), ErrorStatus::InvalidArgument);
        assert_eq!(looks.get(), 2, "it was sent");
    }

    #[test]
    fn a_burst_that_was_closed_just_before_it_asks_does_not_wait() {
        let questions = Questions::default();
        questions.cancel(1); // finds nothing to cancel
        let began = Instant::now();
        let asked = questions.ask(1, LONG, (|_| Ok(true), |_| ()), || true);
        assert_eq!(asked.unwrap_err(), ErrorStatus::InvalidArgument);
        assert!(began.elapsed() < LONG / 2, "it waited for its patience to end");
    }
}
