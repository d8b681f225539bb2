//! Waiting for the other end: poll, then sleep.
//!
//! While it polls, a thread makes no system call and no allocation: it looks at one counter in
//! fixed batches, with a clock read between them. Before it sleeps it clears its bit in the event
//! word and looks once more; `event_flag` explains why that loses no wake-up.

use std::num::NonZeroU32;
#[cfg(not(loom))]
use std::time::Duration;

use crate::clock::{self, Deadline};
use crate::closer::Closed;
use crate::error::QueueError;
use crate::event_flag::{CLOSED, announce_awake, announce_sleep};
use crate::futex::{self, Woken};
use crate::machine::{self, SpinSlot};
use crate::sync::{EventWord, Ordering};

/// How an end waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Polls until the deadline. Lowest latency; one CPU per waiting end. Sleeps all the same where
    /// there is one CPU only, or where as many threads of this process spin as it has CPUs, less
    /// one.
    Spin,
    /// Polls for about what a sleep would cost and then sleeps; sleeps at once while the waits of
    /// late were far longer than that.
    Adaptive {
        /// How long to poll, in nanoseconds; `None` for the measured cost of a sleep.
        budget_ns: Option<u64>,
    },
    /// Sleeps at once. Least CPU, two system calls per message.
    Sleep,
}

impl Default for Wait {
    fn default() -> Wait {
        Wait::Adaptive { budget_ns: None }
    }
}

/// What an end waits for.
pub trait Awaited {
    /// Whether the other end moved since it was last looked at: one relaxed load.
    fn has_moved(&self) -> bool;
    /// A proper look: the answer if it can be given now.
    ///
    /// # Errors
    /// What ends the wait, `Corrupt` above all.
    fn look(&mut self) -> Result<Option<usize>, QueueError>;
}

/// Where to sleep, for which bits, and what else ends the wait.
#[derive(Debug, Clone, Copy)]
pub struct Sleeper<'a> {
    /// The word both processes share.
    pub event: &'a EventWord,
    /// The bits that the other end sets when it has news.
    pub bits: NonZeroU32,
    /// Closed from outside.
    pub closed: &'a Closed,
    /// When to give up.
    pub deadline: Deadline,
}

/// Polls in one batch, between two clock reads. Fixed, so that the compiler unrolls it: measured
/// against other lengths, 4 to 16 are alike and 64 is worse.
const POLLS: u32 = 16;
/// Batches before a spin slot is taken: a busy conversation never gets there, and need not touch
/// the counter that all threads share.
const FREE_BATCHES: u32 = 8;
/// Batches between looks at the courtesy bit; the line it lies in is the writer's while it writes.
const CLOSED_EVERY: u32 = 64;
/// Sleeps that a peer may spoil by flipping bits before we nap instead. An honest peer changes the
/// word twice per message at most.
const SPOILED_SLEEPS: u32 = 64;
/// Length of such a nap: bounds what the peer can make us burn to a thousand looks a second.
#[cfg(not(loom))]
const NAP: Duration = Duration::from_millis(1);
/// Waits above so many budgets: polling is hopeless, sleep at once.
const HOPELESS: u64 = 3;
/// A single long wait (an idle hour) counts as so many budgets, or it would take a hundred short
/// ones to forget it.
const LONGEST_SAMPLE: u64 = 8;

/// The policy of one end and what it learned.
#[derive(Debug)]
pub struct Waiter {
    policy: Wait,
    /// Moving average of the wait, in nanoseconds; the last one counts an eighth.
    average_ns: u64,
}

impl Waiter {
    /// Nothing learned yet.
    pub fn new(policy: Wait) -> Waiter {
        Waiter { policy, average_ns: 0 }
    }

    /// Changes the policy and forgets what was learned under the old one.
    pub fn set_policy(&mut self, policy: Wait) {
        *self = Waiter::new(policy);
    }

    /// Waits until `awaited` gives an answer.
    ///
    /// # Errors
    /// [`QueueError::PeerDied`], [`QueueError::Timeout`], and what a look gives.
    pub fn wait(
        &mut self,
        awaited: &mut impl Awaited,
        sleeper: &Sleeper<'_>,
    ) -> Result<usize, QueueError> {
        if let Some(answer) = awaited.look()? {
            return Ok(answer);
        }
        if sleeper.closed.get() {
            return Err(QueueError::PeerDied);
        }
        if let Some(answer) = self.spin(awaited, sleeper)? {
            return Ok(answer);
        }
        let start = clock::now_ns();
        let answer = sleep(awaited, sleeper)?;
        self.learn(clock::now_ns().saturating_sub(start));
        Ok(answer)
    }

    /// Polls for as long as it is worth; `None` says that it is time to sleep.
    fn spin(
        &mut self,
        awaited: &mut impl Awaited,
        sleeper: &Sleeper<'_>,
    ) -> Result<Option<usize>, QueueError> {
        let Some(limit_ns) = self.spin_limit_ns() else { return Ok(None) };
        let mut slot = None;
        let mut start = None;
        let mut waited = 0;
        for batch in 0_u32.. {
            if moved_in_batch(awaited)
                && let Some(answer) = awaited.look()?
            {
                self.learn(waited);
                return Ok(Some(answer));
            }
            if sleeper.closed.get() || (batch % CLOSED_EVERY == CLOSED_EVERY - 1 && told(sleeper)) {
                return Err(QueueError::PeerDied);
            }
            let now = clock::now_ns();
            waited = now.saturating_sub(*start.get_or_insert(now));
            if sleeper.deadline.has_passed(now) {
                return awaited.look()?.map(Some).ok_or(QueueError::Timeout);
            }
            if waited >= limit_ns {
                break;
            }
            if batch == FREE_BATCHES {
                slot = SpinSlot::take();
                if slot.is_none() {
                    break;
                }
            }
        }
        drop(slot);
        self.learn(waited);
        Ok(None)
    }

    /// How long to poll; `None` for not at all.
    fn spin_limit_ns(&self) -> Option<u64> {
        if matches!(self.policy, Wait::Sleep) || machine::max_spinners() == 0 {
            return None;
        }
        let Some(budget) = self.budget_ns() else { return Some(u64::MAX) };
        match self.average_ns {
            // Likely to come any moment: a little patience saves both sides a sleep.
            average if average <= budget => Some(budget.saturating_mul(2)),
            average if average <= budget.saturating_mul(HOPELESS) => Some(budget),
            _ => None,
        }
    }

    fn budget_ns(&self) -> Option<u64> {
        match self.policy {
            Wait::Adaptive { budget_ns } => Some(budget_ns.unwrap_or_else(machine::sleep_cost_ns)),
            Wait::Spin | Wait::Sleep => None,
        }
    }

    fn learn(&mut self, waited_ns: u64) {
        if let Some(budget) = self.budget_ns() {
            let sample = waited_ns.min(budget.saturating_mul(LONGEST_SAMPLE));
            self.average_ns = self.average_ns - self.average_ns / 8 + sample / 8;
        }
    }
}

#[inline]
fn moved_in_batch(awaited: &impl Awaited) -> bool {
    for _ in 0..POLLS {
        if awaited.has_moved() {
            return true;
        }
    }
    false
}

/// Whether the peer said that it is going.
fn told(sleeper: &Sleeper<'_>) -> bool {
    sleeper.event.load(Ordering::Acquire) & CLOSED != 0
}

/// Sleeps until `awaited` gives an answer, looking again after each wake.
fn sleep(awaited: &mut impl Awaited, sleeper: &Sleeper<'_>) -> Result<usize, QueueError> {
    let bits = sleeper.bits.get();
    let mut spoiled = 0;
    loop {
        let before = announce_sleep(sleeper.event, bits);
        let answer = look_before_sleep(awaited, sleeper, before);
        if !matches!(answer, Ok(None)) {
            announce_awake(sleeper.event, bits);
            return answer?.ok_or(QueueError::PeerDied); // not `None`, see above
        }
        match futex::wait(sleeper.event, before & !bits, sleeper.bits, sleeper.deadline) {
            Ok(Woken::Woken | Woken::Interrupted) => {}
            Ok(Woken::Changed) => spoiled += u32::from(before & bits == 0),
            Ok(Woken::TimedOut) => {
                announce_awake(sleeper.event, bits);
                return awaited.look()?.ok_or(QueueError::Timeout);
            }
            Err(errno) => return Err(QueueError::System { call: "futex", errno }),
        }
        if spoiled > SPOILED_SLEEPS {
            nap(sleeper)?;
        }
    }
}

/// The look between the announcement and the sleep.
fn look_before_sleep(
    awaited: &mut impl Awaited,
    sleeper: &Sleeper<'_>,
    before: u32,
) -> Result<Option<usize>, QueueError> {
    if let Some(answer) = awaited.look()? {
        return Ok(Some(answer));
    }
    if sleeper.closed.get() || before & CLOSED != 0 {
        return Err(QueueError::PeerDied);
    }
    Ok(None)
}

/// The peer does not let us sleep on the word: sleep without it for a moment.
#[cfg(not(loom))]
fn nap(sleeper: &Sleeper<'_>) -> Result<(), QueueError> {
    if sleeper.deadline.has_passed(clock::now_ns()) {
        announce_awake(sleeper.event, sleeper.bits.get());
        return Err(QueueError::Timeout);
    }
    std::thread::sleep(NAP);
    Ok(())
}

#[cfg(loom)]
fn nap(_: &Sleeper<'_>) -> Result<(), QueueError> {
    loom::thread::yield_now();
    Ok(())
}
