//! One thread that serves several queues.

use rustix::thread::ClockId;
use rustix::thread::futex::{self, WaitFlags, WaitvFlags};

use burst_shm::Errno;

use crate::clock::{self, Deadline};
use crate::consumer::Consumer;
use crate::error::QueueError;
use crate::event_flag::{CLOSED, NOT_EMPTY, announce_awake, announce_sleep};
use crate::futex::timespec;
use crate::sync::{EventWord, Ordering};
use crate::wait::{SleepOn, SpuriousWakes, Wait, WaitCondition, Waiter};

/// Most queues that one call can wait for: the kernel's limit for `futex_waitv`.
pub const MAX_QUEUES: usize = 128;

/// Waits for whichever of several queues has something to read.
///
/// From call to call it keeps what it learned about waiting and which queue to poll first: a busy
/// queue does not starve the others. Sleeping needs `futex_waitv`, Linux 5.16.
#[derive(Debug)]
pub struct WaitSet {
    waiter: Waiter,
    /// Index of the queue that is polled first.
    first: usize,
}

impl WaitSet {
    /// A set that waits by this policy.
    pub fn new(wait: Wait) -> WaitSet {
        WaitSet { waiter: Waiter::new(wait), first: 0 }
    }

    /// Waits until one of `consumers` has at least one item, or an error to report: a corrupt or
    /// closed queue counts as ready, and the next call on it says what is wrong with it. Gives its
    /// index.
    ///
    /// # Errors
    /// [`QueueError::Timeout`]; [`QueueError::TooManyQueues`] for none or more than
    /// [`MAX_QUEUES`]; [`QueueError::NoEventFlag`] where one has no event word.
    pub fn wait(
        &mut self,
        consumers: &mut [&mut Consumer],
        deadline: Deadline,
    ) -> Result<usize, QueueError> {
        let queues = consumers.len();
        if queues == 0 || queues > MAX_QUEUES {
            return Err(QueueError::TooManyQueues { queues, max: MAX_QUEUES });
        }
        for consumer in consumers.iter_mut() {
            consumer.release_before_wait()?;
        }
        let first = self.first % queues;
        let ready = match (Any { consumers, first }).poll()? {
            Some(ready) => ready,
            None => self.wait_for_news(consumers, first, deadline)?,
        };
        self.first = ready + 1;
        Ok(ready)
    }

    fn wait_for_news(
        &mut self,
        consumers: &mut [&mut Consumer],
        first: usize,
        deadline: Deadline,
    ) -> Result<usize, QueueError> {
        // Cheap handles to the words, so that the consumers themselves can be polled meanwhile.
        let words: Option<Vec<_>> = consumers.iter().map(|c| c.parts.event.clone()).collect();
        let words = words.ok_or(QueueError::NoEventFlag)?;
        let words: Vec<&EventWord> = words.iter().map(|word| &**word).collect();
        self.waiter.wait(&mut Any { consumers, first }, &Words { words: &words, deadline })
    }
}

/// Whether a peer set the CLOSED bit of this word.
fn is_closed_by_peer(word: &EventWord) -> bool {
    // Acquire: pairs with the release half of the closer's read-modify-write, so that what was
    // written before it is seen first.
    word.load(Ordering::Acquire) & CLOSED != 0
}

/// The queues, polled round robin.
struct Any<'a, 'c> {
    consumers: &'a mut [&'c mut Consumer],
    first: usize,
}

impl WaitCondition for Any<'_, '_> {
    #[inline]
    fn has_moved(&self) -> bool {
        self.consumers.iter().any(|c| c.side.changed(&c.parts.write) || c.parts.closed.get())
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        let queues = self.consumers.len();
        for index in (self.first..queues).chain(0..self.first) {
            let consumer = &mut *self.consumers[index];
            let idle = consumer.side.available(&consumer.parts.write) == Ok(0)
                && !consumer.parts.closed.get()
                && !consumer.parts.event.as_deref().is_some_and(is_closed_by_peer);
            if !idle {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

/// Longest single sleep, in nanoseconds. A closer of this process sets bits to wake the sleeper, and a
/// hostile peer can clear them again; so the sleeper wakes up by itself this often and polls. With
/// honest peers no call ever lasts for it. A single queue needs no such limit, as its closer repeats
/// the wake-up: see `Closer::close`.
const LONGEST_SLEEP_NS: u64 = 5_000_000_000;

/// When to wake up and poll at the latest: the deadline, or sooner.
fn nap_until(deadline: Deadline) -> Deadline {
    let soon = clock::coarse_now_ns().saturating_add(LONGEST_SLEEP_NS);
    deadline.min(Deadline::at_ns(soon))
}

/// The words of all queues.
struct Words<'a> {
    words: &'a [&'a EventWord],
    deadline: Deadline,
}

impl SleepOn for Words<'_> {
    /// A closed queue is ready, not the end of the wait.
    fn is_closed(&self) -> bool {
        false
    }

    fn peer_closed(&self) -> bool {
        self.words.iter().any(|word| is_closed_by_peer(word))
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }

    fn sleep(
        &self,
        condition: &mut impl WaitCondition,
        until: Deadline,
    ) -> Result<Option<usize>, QueueError> {
        let result = self.sleep_until_ready(condition, until);
        for word in self.words {
            announce_awake(word, NOT_EMPTY);
        }
        result
    }
}

impl Words<'_> {
    fn sleep_until_ready(
        &self,
        condition: &mut impl WaitCondition,
        until: Deadline,
    ) -> Result<Option<usize>, QueueError> {
        let mut spurious = SpuriousWakes::default();
        loop {
            let before: Vec<u32> =
                self.words.iter().map(|word| announce_sleep(word, NOT_EMPTY)).collect();
            if let Some(index) = condition.poll()? {
                return Ok(Some(index));
            }
            if let Some(index) = before.iter().position(|word| word & CLOSED != 0) {
                return Ok(Some(index));
            }
            let notified = before.iter().any(|word| word & NOT_EMPTY != 0);
            let nap = nap_until(until);
            match self.wait_for_any(&before, nap) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::TIMEDOUT) if nap != until => {}
                Err(Errno::AGAIN) if !spurious.is_too_many(notified, until) => {}
                Err(Errno::TIMEDOUT | Errno::AGAIN) => return condition.poll(),
                Err(errno) => return Err(QueueError::System { call: "futex_waitv", errno }),
            }
        }
    }

    fn wait_for_any(&self, before: &[u32], deadline: Deadline) -> Result<usize, Errno> {
        let mut waits = Vec::with_capacity(before.len());
        for (word, before) in self.words.iter().zip(before) {
            let mut wait = futex::Wait::new();
            wait.val = u64::from(before & !NOT_EMPTY);
            wait.uaddr = word.as_ptr().cast::<std::ffi::c_void>().into();
            wait.flags = WaitFlags::SIZE_U32;
            waits.push(wait);
        }
        let timeout = timespec(deadline);
        futex::waitv(&waits, WaitvFlags::empty(), timeout.as_ref(), ClockId::Monotonic)
    }
}
