//! Waiting for the other end: poll, then sleep.
//!
//! While it polls, a thread makes no system call and no allocation: it reads one counter in
//! fixed batches, with a clock read between them. Before it sleeps it clears its bit in the event
//! word and polls once more; `event_flag` explains why that loses no wake-up.

use std::num::NonZeroU32;

use crate::clock::{self, Deadline};
use crate::error::QueueError;
use crate::line::Line;
use crate::machine::{self, SpinSlot};
use crate::yield_policy::{self, YieldBackoff};

mod first_looks;
mod sleeper;

pub use sleeper::Sleeper;

/// How an end waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Polls until the deadline. Lowest latency; one CPU per waiting end. Sleeps all the same where
    /// there is one CPU only, or where as many threads of this process spin as it has CPUs, less
    /// one.
    Spin,
    /// Polls for about what a sleep would cost and then sleeps. While the waits of late were longer
    /// than that but alike, it sleeps until shortly before the answer is due and polls from then on;
    /// while they were far longer and not alike it sleeps at once.
    Adaptive {
        /// How long to poll, in nanoseconds; `None` for the measured cost of a sleep.
        budget_ns: Option<u64>,
    },
    /// Sleeps, but first yields the CPU once (`sched_yield`) where that helped before: a peer that
    /// shares the CPU then answers without either end being woken. Least CPU time, one or two system
    /// calls per message.
    Sleep,
}

impl Default for Wait {
    fn default() -> Wait {
        Wait::Adaptive { budget_ns: None }
    }
}

/// The condition that an end waits for.
pub trait WaitCondition {
    /// Whether the other end's counter has moved since the last [`poll`](Self::poll): one relaxed load.
    fn has_moved(&self) -> bool;
    /// How often to look between two reads of the clock in a busy conversation.
    #[inline]
    fn looks_between_clocks(&self) -> NonZeroU32 {
        POLLS
    }
    /// Whether a busy conversation looks by single loads between far CPUs, and between halves of one core.
    #[inline]
    fn looks_singly(&self) -> bool {
        false
    }
    /// Looks so often, or until the counter has moved, which is the answer; a [`prefetch`](Self::prefetch)
    /// follows each look in vain.
    #[inline]
    fn moves_within(&mut self, looks: NonZeroU32) -> bool {
        looks_in_turn(self, looks)
    }
    /// Prefetches the cache lines that the answer will most likely lie in, so that the processor
    /// fetches them together with the counter and not after it.
    #[inline]
    fn prefetch(&self) {}
    /// How far the other end's counter was at the last poll, for a wait that may take several steps of it:
    /// a sleeper counts the rounds in which it got no further.
    fn progress(&self) -> u64 {
        0
    }
    /// Checks in full, with Acquire: the answer if it can be given now.
    ///
    /// # Errors
    /// What ends the wait, `Corrupt` above all.
    fn poll(&mut self) -> Result<Option<usize>, QueueError>;
}

/// How to sleep, and what else ends a wait.
pub trait SleepOn {
    /// Whether a thread of this process closed this end.
    fn is_closed(&self) -> bool;
    /// Looks whether a peer closed its queue: set the CLOSED bit. An answer or error ends the wait. Reads
    /// cache lines that peers write.
    ///
    /// # Errors
    /// [`QueueError::PeerDied`] and what a poll gives.
    fn look_for_close(
        &self,
        condition: &mut impl WaitCondition,
    ) -> Result<Option<usize>, QueueError>;
    /// When to give up.
    fn deadline(&self) -> Deadline;
    /// Sleeps until `condition` gives an answer, polling it again after each wake-up; `None` when there is
    /// none at `until`, which may be sooner than the deadline.
    ///
    /// # Errors
    /// [`QueueError::PeerDied`] and what a poll gives.
    fn sleep(
        &self,
        condition: &mut impl WaitCondition,
        until: Deadline,
    ) -> Result<Option<usize>, QueueError>;
}

/// Polls in one batch, between two clock reads. The clock read is the pause between batches: a
/// tighter loop takes the cache line from the writer more often than it helps (measured: 2 is a tenth
/// faster than 16 once [`WaitCondition::prefetch`] follows each poll, and polling without a clock read
/// is slower by a fifth).
pub(crate) const POLLS: NonZeroU32 = NonZeroU32::new(2).unwrap();
/// Polls in one batch where the other CPU is far: what reads of the clock take shows there, and lateness by some of
/// these polls does not.
const FAR_POLLS: u32 = 8;
/// Batches of [`first_looks`](Waiter::first_looks), and batches of a spin before a spin slot is taken. On the fast path the answer
/// comes sooner, so that a busy conversation never touches the counter of spinning threads, which all of them share.
const FREE_BATCHES: u64 = 8;
/// Batches between two reads of the CLOSED bit: it lies in the cache line that the peer writes with each
/// message, and every read takes that line from it (contention).
const CLOSED_EVERY: u64 = 64;
/// Waited so long, a poll may come one pause of the processor later: about a hundredth of the wait.
const WAITED_PER_PAUSE_NS: u64 = 2_000;
/// Most pauses between two batches, about a microsecond.
const PAUSES_MAX: u64 = 32;
/// When the average wait is longer than so many budgets, and the waits are not alike, polling is given up: the
/// answer hardly ever comes while the waiter polls.
const GIVE_UP_FACTOR: u64 = 3;
/// Longest wait that is worth a prediction: above it, the cost of a sleep is under two percent.
const LONGEST_PREDICTED_NS: u64 = 5_000_000;
/// Waits are alike when they differ from their average by so small a part of it.
const ALIKE: u64 = 4;
/// By how much the kernel may be late with a timer (`PR_SET_TIMERSLACK` has this default).
const TIMER_SLACK_NS: u64 = 50_000;
/// After so many consecutive failed polls the peer evidently cannot answer while this end polls: it
/// shares this CPU, or its own CPU is busy with other work.
const MAX_FAILED_POLLS: u32 = 8;
/// Waits that sleep at once after that, before polling is tried again. At a full budget for each
/// try this bounds the waste to a few percent.
const POLL_PAUSE: u32 = 64;
/// A nap that ends so much later than it should was not ended by its timer: the CPU was somebody else's. On
/// a machine with more threads to run than CPUs that lasts until the kernel's next tick.
const LATE_NS: u64 = 500_000;
/// Waits without a nap after a late one. They double with each further late one, up to
/// [`LATE_DOUBLINGS_MAX`] times, so that on a busy machine hardly one wait in a thousand pays for trying.
const LATE_PAUSE: u32 = 64;
/// See [`LATE_PAUSE`].
const LATE_DOUBLINGS_MAX: u32 = 7;
/// So many naps in a row that end in time take one doubling back.
const NAPS_IN_TIME: u32 = 256;
/// A wait too long to predict (an idle hour) counts as so many budgets, or it would take a hundred
/// short ones to forget it.
const LONGEST_SAMPLE: u64 = 8;

/// What to do before an answer is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// Sleep at once.
    Sleep,
    /// Poll for so long, then sleep.
    Poll { limit_ns: u64 },
    /// Sleep for so long, the answer being due a while after that; then poll for so long, then
    /// sleep.
    Nap { nap_ns: u64, limit_ns: u64 },
}

/// Counts the batches of one wait. With 64 bits it comes to no end: a batch takes some nanoseconds, and
/// 32 bits of them half a minute.
#[derive(Debug, Default)]
struct Batches(u64);

impl Batches {
    /// The number of the next batch.
    fn next(&mut self) -> u64 {
        let batch = self.0;
        self.0 += 1;
        batch
    }

    /// Whether to look for the CLOSED bit after this batch.
    fn asks_for_close(batch: u64) -> bool {
        batch % CLOSED_EVERY == CLOSED_EVERY - 1
    }
}

/// How polling ended.
enum Spun {
    Answer(usize),
    /// The poll failed: time to sleep.
    Sleep,
}

/// The policy of one end and what it learned.
#[derive(Debug)]
pub struct Waiter {
    policy: Wait,
    /// Moving average of the wait, in nanoseconds; the last one counts an eighth.
    average_ns: u64,
    /// Moving average of how far a wait was from the average, in nanoseconds; the last one counts a
    /// quarter.
    deviation_ns: u64,
    /// Whether the answer of the last wait that was not over at once came within [`FREE_BATCHES`].
    is_busy: bool,
    /// Failed polls since the last one that saw an answer.
    failed_polls: u32,
    /// Waits that are left to sleep at once.
    pause: u32,
    /// How often the next pause after a late nap is doubled.
    late_doublings: u32,
    /// Naps that ended in time since the last one that did not, or since one took a doubling back.
    naps_in_time: u32,
    /// What was learned about yielding the CPU to the peer.
    backoff: YieldBackoff,
    /// What a look at the other end's counter takes.
    line: Line,
}

impl Waiter {
    /// Nothing learned yet.
    pub fn new(policy: Wait) -> Waiter {
        let backoff = YieldBackoff::new();
        Waiter {
            policy,
            average_ns: 0,
            deviation_ns: 0,
            is_busy: false,
            failed_polls: 0,
            pause: 0,
            late_doublings: 0,
            naps_in_time: 0,
            backoff,
            line: Line::default(),
        }
    }

    /// Has had answers quickly, and knows that the other CPU is near.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn in_busy_conversation() -> Waiter {
        let mut waiter = Waiter::new(Wait::Spin);
        (waiter.is_busy, waiter.line) = (true, Line::of_near_cpu());
        waiter
    }

    /// As [`in_busy_conversation`](Self::in_busy_conversation), with the other half of the own core.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn in_busy_conversation_beside() -> Waiter {
        Waiter { line: Line::of_cpu_beside(), ..Waiter::in_busy_conversation() }
    }

    /// As [`in_busy_conversation`](Self::in_busy_conversation), with a far CPU.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn in_busy_conversation_from_afar() -> Waiter {
        Waiter { line: Line::of_far_cpu(), ..Waiter::in_busy_conversation() }
    }

    /// Changes the policy and forgets what was learned under the old one.
    pub fn set_policy(&mut self, policy: Wait) {
        *self = Waiter::new(policy);
    }

    /// Waits until `condition` gives an answer.
    ///
    /// # Errors
    /// [`QueueError::PeerDied`], [`QueueError::Timeout`], and what a poll gives.
    #[inline]
    pub fn wait(
        &mut self,
        condition: &mut impl WaitCondition,
        sleeper: &impl SleepOn,
    ) -> Result<usize, QueueError> {
        if let Some(answer) = condition.poll()? {
            return Ok(answer);
        }
        if let Some(answer) = self.first_looks(condition) {
            return Ok(answer);
        }
        let timed = self.line.is_timed();
        self.wait_on(condition, sleeper, timed)
    }

    /// Whether the CPU of the other end is far from this one, as far as looks have told.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.line.is_far()
    }

    /// Whether the CPU of the other end is the other half of this one's core, as far as looks have told.
    #[inline]
    pub(crate) fn is_beside(&self) -> bool {
        self.line.is_beside()
    }

    /// A look of somebody who does not wait, once in a while: what it takes says how far the other end's CPU is. `look`
    /// gives whether it found news.
    #[inline]
    pub(crate) fn look_in_passing(&mut self, look: impl FnOnce() -> bool) {
        if self.line.is_timed() {
            self.line.timed_look(look);
        }
    }

    /// Waits for an answer that is not there yet.
    fn wait_on(
        &mut self,
        condition: &mut impl WaitCondition,
        sleeper: &impl SleepOn,
        timed: bool,
    ) -> Result<usize, QueueError> {
        if sleeper.is_closed() {
            return last_poll(condition);
        }
        let plan = self.plan();
        let mut start = None;
        if let Plan::Nap { nap_ns, .. } = plan {
            let now = clock::now_ns();
            start = Some(now);
            let due = Deadline::at_ns(now.saturating_add(nap_ns));
            let answer = sleeper.sleep(condition, due.min(sleeper.deadline()))?;
            let napped_ns = clock::now_ns().saturating_sub(now);
            self.napped(napped_ns.saturating_sub(nap_ns));
            if let Some(answer) = answer {
                self.learn(napped_ns);
                return Ok(answer);
            }
        }
        if let Plan::Poll { limit_ns } | Plan::Nap { limit_ns, .. } = plan
            && let Spun::Answer(answer) =
                self.spin(condition, sleeper, limit_ns, &mut start, timed)?
        {
            return Ok(answer);
        }
        // A policy that learns nothing from waits saves reading the clock.
        let since = start.or_else(|| self.budget_ns().map(|_| clock::now_ns()));
        let answer = match self.yield_once(condition)? {
            Some(answer) => answer,
            None => sleeper.sleep(condition, sleeper.deadline())?.ok_or(QueueError::Timeout)?,
        };
        if let Some(since) = since {
            self.learn(clock::now_ns().saturating_sub(since));
        }
        Ok(answer)
    }

    /// Polls for `limit_ns`. `start` is when the wait began; it is set here where nobody has read
    /// the clock yet.
    fn spin(
        &mut self,
        condition: &mut impl WaitCondition,
        sleeper: &impl SleepOn,
        limit_ns: u64,
        start: &mut Option<u64>,
        timed: bool,
    ) -> Result<Spun, QueueError> {
        let mut slot = None;
        let mut polling_since = None;
        let mut now = None;
        let mut batches = Batches::default();
        loop {
            let batch = batches.next();
            let moved = if timed {
                self.line.timed_look(|| condition.has_moved())
            } else if self.line.is_far() {
                moved_in_far_batch(condition, &self.line)
            } else {
                condition.moves_within(POLLS)
            };
            if moved && let Some(answer) = condition.poll()? {
                self.learn(now.zip(*start).map_or(0, |(now, start): (u64, u64)| now - start));
                self.failed_polls = 0;
                self.is_busy = batch < FREE_BATCHES;
                return Ok(Spun::Answer(answer));
            }
            if sleeper.is_closed() {
                return last_poll(condition).map(Spun::Answer);
            }
            if Batches::asks_for_close(batch)
                && let Some(answer) = sleeper.look_for_close(condition)?
            {
                return Ok(Spun::Answer(answer));
            }
            let at = clock::now_ns();
            now = Some(at);
            start.get_or_insert(at);
            if sleeper.deadline().has_passed(at) {
                return condition.poll()?.map(Spun::Answer).ok_or(QueueError::Timeout);
            }
            if at - *polling_since.get_or_insert(at) >= limit_ns {
                break;
            }
            relax(at - start.unwrap_or(at));
            if batch == FREE_BATCHES {
                slot = SpinSlot::take();
                if slot.is_none() {
                    break;
                }
            }
        }
        drop(slot);
        self.polling_failed();
        Ok(Spun::Sleep)
    }

    /// Yields the CPU once if the peer may share it; the answer if the peer gave it meanwhile.
    fn yield_once(
        &mut self,
        condition: &mut impl WaitCondition,
    ) -> Result<Option<usize>, QueueError> {
        if !self.backoff.is_due() {
            return Ok(None);
        }
        let since = clock::now_ns();
        yield_policy::yield_now();
        let answer = condition.poll()?;
        self.backoff.learn(clock::now_ns().saturating_sub(since), answer.is_some());
        Ok(answer)
    }

    /// Gives up polling for a while when it keeps failing: [`POLL_PAUSE`] waits sleep at once.
    fn polling_failed(&mut self) {
        self.failed_polls += 1;
        if self.failed_polls >= MAX_FAILED_POLLS {
            // One more failure after the pause is enough for the next.
            (self.failed_polls, self.pause) = (MAX_FAILED_POLLS - 1, POLL_PAUSE);
        }
    }

    /// A nap ended so much later than it should. Naps are given up for a while when the CPU is not free at
    /// their end: a thread whose timer wakes it waits for its turn there, and the peer, who would have woken it
    /// on a CPU that becomes free, does not know.
    fn napped(&mut self, late_ns: u64) {
        if late_ns > LATE_NS {
            self.pause = LATE_PAUSE << self.late_doublings;
            self.late_doublings = (self.late_doublings + 1).min(LATE_DOUBLINGS_MAX);
            self.naps_in_time = 0;
            return;
        }
        self.naps_in_time += 1;
        if self.naps_in_time >= NAPS_IN_TIME {
            self.naps_in_time = 0;
            self.late_doublings = self.late_doublings.saturating_sub(1);
        }
    }

    fn plan(&mut self) -> Plan {
        if matches!(self.policy, Wait::Sleep) || machine::max_spinners() == 0 {
            return Plan::Sleep;
        }
        let Some(budget) = self.budget_ns() else { return Plan::Poll { limit_ns: u64::MAX } };
        if self.backoff.peer_shares_cpu() {
            return Plan::Sleep;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return Plan::Sleep;
        }
        let Waiter { average_ns: average, deviation_ns: deviation, .. } = *self;
        if average <= budget {
            // Likely to come any moment: a little patience saves both sides a sleep.
            return Plan::Poll { limit_ns: budget.saturating_mul(2) };
        }
        if deviation <= average / ALIKE {
            return Waiter::plan_until(average, deviation, budget);
        }
        if average <= budget.saturating_mul(GIVE_UP_FACTOR) {
            return Plan::Poll { limit_ns: budget };
        }
        Plan::Sleep
    }

    /// The answer is due `average` from now, give or take twice the `deviation`. A nap ends late,
    /// by the timer's slack and the cost of a wake-up, and must not last longer than the wait: then the peer
    /// would have to wake it, and it had better not have predicted anything.
    fn plan_until(average: u64, deviation: u64, budget: u64) -> Plan {
        let tolerance = deviation.saturating_mul(2).saturating_add(budget);
        let margin = tolerance.saturating_add(TIMER_SLACK_NS);
        match average.saturating_sub(margin) {
            nap_ns if nap_ns >= budget => {
                Plan::Nap { nap_ns, limit_ns: margin.saturating_add(tolerance) }
            }
            _ => Plan::Poll { limit_ns: average.saturating_add(tolerance) },
        }
    }

    fn budget_ns(&self) -> Option<u64> {
        match self.policy {
            Wait::Adaptive { budget_ns } => Some(budget_ns.unwrap_or_else(machine::sleep_cost_ns)),
            Wait::Spin | Wait::Sleep => None,
        }
    }

    fn learn(&mut self, waited_ns: u64) {
        let Some(budget) = self.budget_ns() else { return };
        let sample = if waited_ns > LONGEST_PREDICTED_NS {
            budget.saturating_mul(LONGEST_SAMPLE)
        } else {
            waited_ns
        };
        let off = sample.abs_diff(self.average_ns);
        self.deviation_ns = self.deviation_ns - self.deviation_ns / 4 + off / 4;
        self.average_ns = self.average_ns - self.average_ns / 8 + sample / 8;
    }
}

/// The end was closed: what was written before that is still handed out.
fn last_poll(condition: &mut impl WaitCondition) -> Result<usize, QueueError> {
    condition.poll()?.ok_or(QueueError::PeerDied)
}

/// Rests between two batches of a wait that has lasted for `waited_ns`. What the processor spends on
/// polling it takes from the other thread of the same core, which may be the very one that computes
/// the answer.
#[inline]
fn relax(waited_ns: u64) {
    for _ in 0..(waited_ns / WAITED_PER_PAUSE_NS).min(PAUSES_MAX) {
        std::hint::spin_loop();
    }
}

/// What [`WaitCondition::moves_within`] does where a condition has no better way.
#[inline(never)]
pub(crate) fn looks_in_turn(condition: &(impl WaitCondition + ?Sized), looks: NonZeroU32) -> bool {
    for _ in 0..looks.get() {
        if condition.has_moved() {
            return true;
        }
        condition.prefetch();
    }
    false
}

/// The same where the other CPU is far: the line is left alone after each look, and the clock is read seldom, as that is no
/// pause to speak of there.
#[inline]
fn moved_in_far_batch(condition: &mut impl WaitCondition, line: &Line) -> bool {
    for _ in 0..FAR_POLLS {
        if condition.moves_within(NonZeroU32::MIN) {
            return true;
        }
        line.leave_alone();
    }
    false
}

#[cfg(all(test, not(loom)))]
mod tests;
