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

/// How to sleep, and what else ends a wait.
pub trait SleepOn {
    /// Closed from outside.
    fn is_closed(&self) -> bool;
    /// Whether the peer said that it is going. Reads a line that the peer writes.
    fn was_told(&self) -> bool;
    /// When to give up.
    fn deadline(&self) -> Deadline;
    /// Sleeps until `awaited` gives an answer, looking again after each wake.
    ///
    /// # Errors
    /// [`QueueError::PeerDied`], [`QueueError::Timeout`], and what a look gives.
    fn sleep(&self, awaited: &mut impl Awaited) -> Result<usize, QueueError>;
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
/// Longest single sleep. A hostile peer can clear bits that we set to wake ourselves (on closing);
/// then we look for ourselves, this often. Nobody else ever waits for it.
const LONGEST_SLEEP_NS: u64 = 1_000_000_000;
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
        sleeper: &impl SleepOn,
    ) -> Result<usize, QueueError> {
        if let Some(answer) = awaited.look()? {
            return Ok(answer);
        }
        if sleeper.is_closed() {
            return last_look(awaited);
        }
        if let Some(answer) = self.spin(awaited, sleeper)? {
            return Ok(answer);
        }
        let start = clock::now_ns();
        let answer = sleeper.sleep(awaited)?;
        self.learn(clock::now_ns().saturating_sub(start));
        Ok(answer)
    }

    /// Polls for as long as it is worth; `None` says that it is time to sleep.
    fn spin(
        &mut self,
        awaited: &mut impl Awaited,
        sleeper: &impl SleepOn,
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
            let ask = batch % CLOSED_EVERY == CLOSED_EVERY - 1;
            if sleeper.is_closed() || (ask && sleeper.was_told()) {
                return last_look(awaited).map(Some);
            }
            let now = clock::now_ns();
            waited = now.saturating_sub(*start.get_or_insert(now));
            if sleeper.deadline().has_passed(now) {
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

/// The end was closed: what was written before that is still handed out.
fn last_look(awaited: &mut impl Awaited) -> Result<usize, QueueError> {
    awaited.look()?.ok_or(QueueError::PeerDied)
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

impl SleepOn for Sleeper<'_> {
    fn is_closed(&self) -> bool {
        self.closed.get()
    }

    fn was_told(&self) -> bool {
        self.event.load(Ordering::Acquire) & CLOSED != 0
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }

    fn sleep(&self, awaited: &mut impl Awaited) -> Result<usize, QueueError> {
        let result = self.sleep_until_answered(awaited);
        announce_awake(self.event, self.bits.get());
        result
    }
}

impl Sleeper<'_> {
    fn sleep_until_answered(&self, awaited: &mut impl Awaited) -> Result<usize, QueueError> {
        let bits = self.bits.get();
        let mut spoiled = Spoiled::default();
        loop {
            let before = announce_sleep(self.event, bits);
            if let Some(answer) = awaited.look()? {
                return Ok(answer);
            }
            if self.closed.get() || before & CLOSED != 0 {
                return last_look(awaited);
            }
            let nap = nap_until(self.deadline);
            match futex::wait(self.event, before & !bits, self.bits, nap) {
                Ok(Woken::Woken | Woken::Interrupted) => {}
                Ok(Woken::TimedOut) if nap != self.deadline => {}
                Ok(Woken::Changed) => spoiled.count(before & bits != 0, self.deadline)?,
                Ok(Woken::TimedOut) => return awaited.look()?.ok_or(QueueError::Timeout),
                Err(errno) => return Err(QueueError::System { call: "futex", errno }),
            }
        }
    }
}

/// When to wake up and look at the latest: the deadline, or sooner.
pub(crate) fn nap_until(deadline: Deadline) -> Deadline {
    let soon = clock::now_ns().saturating_add(LONGEST_SLEEP_NS);
    Deadline::at_ns(deadline.as_ns().map_or(soon, |at| at.min(soon)))
}

/// Counts sleeps that came to nothing because the word changed, and naps when there were too many.
#[derive(Debug, Default)]
pub struct Spoiled(u32);

impl Spoiled {
    /// One more; `notified` says that there was a reason.
    ///
    /// # Errors
    /// [`QueueError::Timeout`].
    pub fn count(&mut self, notified: bool, deadline: Deadline) -> Result<(), QueueError> {
        self.0 += u32::from(!notified);
        if self.0 > SPOILED_SLEEPS {
            if deadline.has_passed(clock::now_ns()) {
                return Err(QueueError::Timeout);
            }
            nap();
        }
        Ok(())
    }
}

/// The peer does not let us sleep on the word: sleep without it for a moment.
#[cfg(not(loom))]
fn nap() {
    std::thread::sleep(NAP);
}

#[cfg(loom)]
fn nap() {
    loom::thread::yield_now();
}
