//! Sleeping on the event word that both ends share.

use std::num::NonZeroU32;

use super::{SleepOn, WaitCondition, last_poll};
use crate::clock::Deadline;
use crate::closer::Closed;
use crate::error::QueueError;
use crate::event_flag::{CLOSED, announce_awake, announce_sleep};
use crate::futex::{self, Woken};
use crate::rounds::IdleRounds;
use crate::sync::{EventWord, Ordering};

/// Where to sleep, for which bits, and what else ends the wait.
#[derive(Debug, Clone, Copy)]
pub struct Sleeper<'a> {
    /// The word both processes share.
    pub event: &'a EventWord,
    /// The bits that the other end sets when it has news.
    pub bits: NonZeroU32,
    /// Whether a thread of this process closed this end.
    pub closed: &'a Closed,
    /// When to give up.
    pub deadline: Deadline,
}

impl SleepOn for Sleeper<'_> {
    fn is_closed(&self) -> bool {
        self.closed.get()
    }

    fn look_for_close(
        &self,
        condition: &mut impl WaitCondition,
    ) -> Result<Option<usize>, QueueError> {
        // Acquire: pairs with Release in `closer::close`; what was written before is polled then.
        match self.event.load(Ordering::Acquire) & CLOSED {
            0 => Ok(None),
            _ => last_poll(condition).map(Some),
        }
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }

    fn sleep(
        &self,
        condition: &mut impl WaitCondition,
        until: Deadline,
    ) -> Result<Option<usize>, QueueError> {
        let result = self.sleep_until_answered(condition, until);
        let announced = announce_awake(self.event, self.bits.get());
        let answer = result?;
        announced.map_err(|errno| QueueError::System { call: "futex", errno })?;
        Ok(answer)
    }
}

impl Sleeper<'_> {
    fn sleep_until_answered(
        &self,
        condition: &mut impl WaitCondition,
        until: Deadline,
    ) -> Result<Option<usize>, QueueError> {
        let bits = self.bits.get();
        let mut rounds = IdleRounds::default();
        loop {
            let before = announce_sleep(self.event, bits);
            if let Some(answer) = condition.poll()? {
                return Ok(Some(answer));
            }
            let may_sleep = self.closed.fall_asleep() && before & CLOSED == 0;
            if !may_sleep {
                self.closed.wake_up();
                return last_poll(condition).map(Some);
            }
            let woken = futex::wait(self.event, before & !bits, self.bits, until);
            self.closed.wake_up();
            if let Err(errno) = woken {
                return Err(QueueError::System { call: "futex", errno });
            }
            // The waker has set our bit: with the answer there is no reason to clear it.
            let answer = condition.poll()?;
            if answer.is_some() || woken == Ok(Woken::TimedOut) {
                return Ok(answer);
            }
            if !rounds.go_on(condition.progress(), until) {
                return condition.poll();
            }
        }
    }
}
