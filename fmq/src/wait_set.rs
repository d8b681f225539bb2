//! One thread that serves several queues.

use std::sync::Arc;

use burst_shm::{Errno, Shared};
use rustix::thread::ClockId;
use rustix::thread::futex::{self, WaitFlags, WaitvFlags};

use crate::clock::Deadline;
use crate::closer::Closed;
use crate::consumer::Consumer;
use crate::error::QueueError;
use crate::event_flag::{CLOSED, NOT_EMPTY, announce_sleep};
use crate::futex::timespec;
use crate::rounds::{self, IDLE_ROUNDS_MAX};
use crate::sync::{EventWord, Ordering};
use crate::wait::{SleepOn, Wait, WaitCondition, Waiter};

/// Most queues that one call can wait for: the kernel's limit for `futex_waitv`.
pub const MAX_QUEUES: usize = 128;

/// Waits for whichever of several queues has something to read.
///
/// From call to call it keeps what it learned about waiting, which queue to look at first (a busy
/// queue does not starve the others), and which queues have failed: each of these is reported
/// once and then left out, so that one bad queue costs the others nothing. Sleeping needs
/// `futex_waitv`, Linux 5.16.
#[derive(Debug)]
pub struct WaitSet {
    waiter: Waiter,
    /// Index of the queue that is looked at first.
    first: usize,
    /// Queues whose end was reported, by a part that is theirs alone.
    failed: Vec<Arc<Closed>>,
}

/// What a [`WaitSet`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Which of the queues.
    pub index: usize,
    /// How many items can be read, at least one; or why this queue is finished:
    /// [`QueueError::PeerDied`] (either end closed it and all items were read), [`QueueError::Corrupt`],
    /// [`QueueError::NoEventFlag`], [`QueueError::System`].
    pub items: Result<usize, QueueError>,
}

impl WaitSet {
    /// A set that waits by this policy.
    pub fn new(wait: Wait) -> WaitSet {
        WaitSet { waiter: Waiter::new(wait), first: 0, failed: Vec::new() }
    }

    /// Waits until one of `consumers` has at least one item or is finished.
    ///
    /// A finished queue is reported once; as long as it is passed again and again this set takes no
    /// notice of it. Room that a consumer kept is given back first, as by each waiting call.
    ///
    /// # Errors
    /// [`QueueError::Timeout`]; [`QueueError::TooManyQueues`] for more than [`MAX_QUEUES`], and for
    /// none that is not finished; [`QueueError::System`] where the kernel has no `futex_waitv`. An
    /// error of a single queue is none of this call: it is in [`Ready::items`].
    pub fn wait(
        &mut self,
        consumers: &mut [&mut Consumer],
        deadline: Deadline,
    ) -> Result<Ready, QueueError> {
        let queues = consumers.len();
        if queues > MAX_QUEUES {
            return Err(QueueError::TooManyQueues { queues, max: MAX_QUEUES });
        }
        let is_here = |closed: &Arc<Closed>| consumers.iter().any(|c| is_of(c, closed));
        self.failed.retain(is_here);
        if self.failed.len() == queues {
            return Err(QueueError::TooManyQueues { queues: 0, max: MAX_QUEUES });
        }
        let first = self.first % queues;
        let mut any = Any { consumers, failed: &self.failed, first, items: Ok(0) };
        let found = match any.release_and_poll() {
            Some(index) => index,
            None => {
                let words = any.words();
                self.waiter.wait(&mut any, &Words { words, deadline })?
            }
        };
        let ready = Ready { index: found, items: any.items };
        let closed = Arc::clone(&any.consumers[found].parts.closed);
        self.first = found + 1;
        if ready.items.is_err() {
            self.failed.push(closed);
        }
        Ok(ready)
    }
}

/// Whether this part is the consumer's.
fn is_of(consumer: &Consumer, closed: &Arc<Closed>) -> bool {
    Arc::ptr_eq(closed, &consumer.parts.closed)
}

/// Whether a peer set the CLOSED bit of this word.
fn is_closed_by_peer(word: &EventWord) -> bool {
    // Acquire: pairs with the release half of the closer's read-modify-write, so that what was
    // written before it is seen first.
    word.load(Ordering::Acquire) & CLOSED != 0
}

/// The queues, looked at round robin.
struct Any<'a, 'c> {
    consumers: &'a mut [&'c mut Consumer],
    /// Those that are left out.
    failed: &'a [Arc<Closed>],
    first: usize,
    /// Of the queue that was found.
    items: Result<usize, QueueError>,
}

impl Any<'_, '_> {
    fn is_left_out(&self, index: usize) -> bool {
        self.failed.iter().any(|closed| is_of(self.consumers[index], closed))
    }

    /// Gives back the room that consumers kept, then looks for the first time.
    fn release_and_poll(&mut self) -> Option<usize> {
        for index in 0..self.consumers.len() {
            if let Err(error) = self.consumers[index].release()
                && !self.is_left_out(index)
            {
                self.items = Err(error);
                return Some(index);
            }
        }
        self.find()
    }

    fn find(&mut self) -> Option<usize> {
        let queues = self.consumers.len();
        for index in (self.first..queues).chain(0..self.first) {
            if !self.is_left_out(index)
                && let Some(items) = look(self.consumers[index])
            {
                self.items = items;
                return Some(index);
            }
        }
        None
    }

    /// Cheap handles to what the queues sleep on, so that they themselves can be looked at meanwhile.
    fn words(&self) -> Vec<Word> {
        let word = |index: usize| {
            let parts = &self.consumers[index].parts;
            let event = parts.event.clone().filter(|_| !self.is_left_out(index))?;
            Some(Word { event, closed: Arc::clone(&parts.closed) })
        };
        (0..self.consumers.len()).filter_map(word).collect()
    }
}

/// What there is to report of one queue.
fn look(consumer: &mut Consumer) -> Option<Result<usize, QueueError>> {
    // Before the counter: what was written before the close is handed out first.
    let event = consumer.parts.event.as_deref();
    let closed = consumer.parts.closed.get() || event.is_some_and(is_closed_by_peer);
    let finished = match event {
        None => Some(QueueError::NoEventFlag),
        Some(_) => closed.then_some(QueueError::PeerDied),
    };
    match consumer.available_to_read() {
        Ok(0) => finished.map(Err),
        result => Some(result),
    }
}

impl WaitCondition for Any<'_, '_> {
    #[inline]
    fn has_moved(&self) -> bool {
        let mut all = self.consumers.iter();
        all.any(|c| {
            let moved = c.side.changed(&c.parts.write) || c.parts.closed.get();
            moved && !self.failed.iter().any(|closed| is_of(c, closed))
        })
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        Ok(self.find())
    }
}

/// What one queue sleeps on.
struct Word {
    event: Shared<EventWord>,
    closed: Arc<Closed>,
}

/// What all queues sleep on.
struct Words {
    words: Vec<Word>,
    deadline: Deadline,
}

impl SleepOn for Words {
    /// A closed queue is ready, not the end of the wait.
    fn is_closed(&self) -> bool {
        false
    }

    /// To poll is to look for closed queues.
    fn look_for_close(
        &self,
        condition: &mut impl WaitCondition,
    ) -> Result<Option<usize>, QueueError> {
        condition.poll()
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Bits that nobody set meanwhile stay clear: the next message of each such queue costs its
    /// writer one call of the kernel. To set them would cost a call for each queue here, as their
    /// sleepers would have to be woken.
    fn sleep(
        &self,
        condition: &mut impl WaitCondition,
        until: Deadline,
    ) -> Result<Option<usize>, QueueError> {
        let mut noise = Noise { rounds: vec![0; self.words.len()], unexplained: 0 };
        loop {
            let before: Vec<u32> =
                self.words.iter().map(|word| announce_sleep(&word.event, NOT_EMPTY)).collect();
            if let Some(index) = condition.poll()? {
                return Ok(Some(index));
            }
            let slept = self.sleep_once(&before, &noise, until);
            if let Some(index) = condition.poll()? {
                return Ok(Some(index));
            }
            match slept {
                Ok(index) => noise.blame(index),
                Err(Errno::AGAIN) => noise.blame_changed(&self.words, &before),
                Err(Errno::INTR | Errno::TIMEDOUT) => {}
                Err(errno) => return Err(QueueError::System { call: "futex_waitv", errno }),
            }
            if rounds::has_passed(until) {
                return Ok(None);
            }
        }
    }
}

impl Words {
    /// One sleep on the words of quiet peers; not for longer than a nap where there are others. Gives the
    /// index of the word that was woken.
    fn sleep_once(&self, before: &[u32], noise: &Noise, until: Deadline) -> Result<usize, Errno> {
        let quiet: Vec<usize> =
            (0..self.words.len()).filter(|index| !noise.is_noisy(*index)).collect();
        let mut may_sleep = true;
        for word in &self.words {
            may_sleep &= word.closed.fall_asleep();
        }
        let result = if !may_sleep {
            Err(Errno::INTR) // the next look finds the queue that was closed
        } else if quiet.is_empty() || noise.is_unexplained() {
            rounds::nap(until);
            Err(Errno::TIMEDOUT)
        } else {
            self.wait_for_any(&quiet, before, noise.nap_or(until, quiet.len()))
        };
        for word in &self.words {
            word.closed.wake_up();
        }
        result
    }

    fn wait_for_any(
        &self,
        quiet: &[usize],
        before: &[u32],
        until: Deadline,
    ) -> Result<usize, Errno> {
        let mut waits = Vec::with_capacity(quiet.len());
        for index in quiet {
            let mut wait = futex::Wait::new();
            wait.val = u64::from(before[*index] & !NOT_EMPTY);
            wait.uaddr = self.words[*index].event.as_ptr().cast::<std::ffi::c_void>().into();
            wait.flags = WaitFlags::SIZE_U32;
            waits.push(wait);
        }
        let timeout = timespec(until);
        let woken =
            futex::waitv(&waits, WaitvFlags::empty(), timeout.as_ref(), ClockId::Monotonic)?;
        Ok(quiet.get(woken).copied().unwrap_or(0))
    }
}

/// Whose words keep this end from sleeping although they bring nothing. Such a word is not slept on
/// any more: its queue is looked at once in a nap's time, and the others are waited for as before.
struct Noise {
    /// Of each word, the rounds that it ended for nothing.
    rounds: Vec<u32>,
    /// Rounds that ended for a word which had its old value again when it was looked at.
    unexplained: u32,
}

impl Noise {
    fn is_noisy(&self, index: usize) -> bool {
        self.rounds[index] > IDLE_ROUNDS_MAX
    }

    fn is_unexplained(&self) -> bool {
        self.unexplained > IDLE_ROUNDS_MAX
    }

    fn blame(&mut self, index: usize) {
        self.rounds[index] = self.rounds[index].saturating_add(1);
    }

    /// Blames each word that is not what it was when the sleep was announced.
    fn blame_changed(&mut self, words: &[Word], before: &[u32]) {
        let mut found = false;
        for (index, (word, before)) in words.iter().zip(before).enumerate() {
            // Relaxed: a hint.
            if word.event.load(Ordering::Relaxed) != before & !NOT_EMPTY {
                self.blame(index);
                found = true;
            }
        }
        self.unexplained = self.unexplained.saturating_add(u32::from(!found));
    }

    /// When to wake up: with a noisy queue beside the `quiet` ones, no later than after a nap.
    fn nap_or(&self, until: Deadline, quiet: usize) -> Deadline {
        if quiet == self.rounds.len() { until } else { until.min(Deadline::after(rounds::NAP)) }
    }
}
