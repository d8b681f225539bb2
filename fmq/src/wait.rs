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
/// So many polls in vain, one after the other, and the peer cannot answer while we poll: it shares
/// our CPU, or its CPU is busy with others.
const VAIN_POLLS: u32 = 8;
/// Waits that sleep at once after that, before polling is tried again. At a full budget for each
/// try this bounds the waste to a few percent.
const POLL_PAUSE: u32 = 64;
/// A single long wait (an idle hour) counts as so many budgets, or it would take a hundred short
/// ones to forget it.
const LONGEST_SAMPLE: u64 = 8;

/// How polling ended.
enum Spun {
    Answer(usize),
    /// In vain: time to sleep. When the wait began, if the clock was read.
    Sleep {
        since: Option<u64>,
    },
}

/// The policy of one end and what it learned.
#[derive(Debug)]
pub struct Waiter {
    policy: Wait,
    /// Moving average of the wait, in nanoseconds; the last one counts an eighth.
    average_ns: u64,
    /// Polls in vain since the last one that saw an answer.
    vain: u32,
    /// Waits that are left to sleep at once.
    pause: u32,
}

impl Waiter {
    /// Nothing learned yet.
    pub fn new(policy: Wait) -> Waiter {
        Waiter { policy, average_ns: 0, vain: 0, pause: 0 }
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
        let since = match self.spin(awaited, sleeper)? {
            Spun::Answer(answer) => return Ok(answer),
            Spun::Sleep { since } => since.unwrap_or_else(clock::now_ns),
        };
        let answer = sleeper.sleep(awaited)?;
        self.learn(clock::now_ns().saturating_sub(since));
        Ok(answer)
    }

    /// Polls for as long as it is worth.
    fn spin(
        &mut self,
        awaited: &mut impl Awaited,
        sleeper: &impl SleepOn,
    ) -> Result<Spun, QueueError> {
        let Some(limit_ns) = self.spin_limit_ns() else {
            return Ok(Spun::Sleep { since: None });
        };
        let mut slot = None;
        let mut start = None;
        let mut waited = 0;
        for batch in 0_u32.. {
            if moved_in_batch(awaited)
                && let Some(answer) = awaited.look()?
            {
                self.learn(waited);
                self.vain = 0;
                return Ok(Spun::Answer(answer));
            }
            let ask = batch % CLOSED_EVERY == CLOSED_EVERY - 1;
            if sleeper.is_closed() || (ask && sleeper.was_told()) {
                return last_look(awaited).map(Spun::Answer);
            }
            let now = clock::now_ns();
            waited = now.saturating_sub(*start.get_or_insert(now));
            if sleeper.deadline().has_passed(now) {
                return awaited.look()?.map(Spun::Answer).ok_or(QueueError::Timeout);
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
        self.polled_in_vain();
        Ok(Spun::Sleep { since: start })
    }

    /// Gives up polling for a while when it keeps failing.
    fn polled_in_vain(&mut self) {
        self.vain += 1;
        if self.vain >= VAIN_POLLS {
            // One more failure after the pause is enough for the next.
            (self.vain, self.pause) = (VAIN_POLLS - 1, POLL_PAUSE);
        }
    }

    /// How long to poll; `None` for not at all.
    fn spin_limit_ns(&mut self) -> Option<u64> {
        if matches!(self.policy, Wait::Sleep) || machine::max_spinners() == 0 {
            return None;
        }
        let Some(budget) = self.budget_ns() else { return Some(u64::MAX) };
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BUDGET: u64 = 1000;

    fn adaptive() -> Waiter {
        Waiter::new(Wait::Adaptive { budget_ns: Some(BUDGET) })
    }

    /// What the policy says where polling is possible at all.
    fn limits(waiters: &mut [(Waiter, Option<u64>)]) {
        for (i, (waiter, expected)) in waiters.iter_mut().enumerate() {
            let expected = expected.filter(|_| machine::max_spinners() > 0);
            assert_eq!(waiter.spin_limit_ns(), expected, "case {i}");
        }
    }

    #[test]
    fn the_longer_the_waits_the_shorter_the_polling() {
        let learned = |average_ns| Waiter { average_ns, ..adaptive() };
        limits(&mut [
            (Waiter::new(Wait::Sleep), None),
            (Waiter::new(Wait::Spin), Some(u64::MAX)),
            (learned(0), Some(2 * BUDGET)),
            (learned(BUDGET), Some(2 * BUDGET)),
            (learned(BUDGET + 1), Some(BUDGET)),
            (learned(HOPELESS * BUDGET), Some(BUDGET)),
            (learned(HOPELESS * BUDGET + 1), None),
        ]);
    }

    #[test]
    fn an_idle_hour_is_forgotten_within_ten_short_waits() {
        let mut waiter = adaptive();
        for _ in 0..100 {
            waiter.learn(3_600_000_000_000);
        }
        assert_eq!(waiter.spin_limit_ns(), None);
        for _ in 0..10 {
            waiter.learn(BUDGET / 2);
        }
        limits(&mut [(waiter, Some(BUDGET))]);
    }

    #[test]
    fn polls_in_vain_are_given_up_and_tried_again_later() {
        let mut waiter = adaptive();
        for _ in 0..VAIN_POLLS {
            waiter.polled_in_vain();
        }
        if machine::max_spinners() == 0 {
            return; // nobody polls on one CPU
        }
        for wait in 0..POLL_PAUSE {
            assert_eq!(waiter.spin_limit_ns(), None, "wait {wait}");
        }
        assert!(waiter.spin_limit_ns().is_some());
        waiter.polled_in_vain();
        assert_eq!(waiter.spin_limit_ns(), None, "one failure is enough the second time");
    }
}
