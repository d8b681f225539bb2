//! A descriptor that says when an end of a queue has something to do, for `poll` and event loops.

use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use burst_shm::{Errno, ForkMark, Shared};
use rustix::event::{EventfdFlags, eventfd};

use crate::clock::Deadline;
use crate::closer::{Closed, REPEATS_MAX, pause};
use crate::error::QueueError;
use crate::futex;
use crate::sync::{AtomicU64, EventWord, Ordering};
use crate::wait::{SleepOn, Sleeper, WaitCondition};
use crate::wake_up::waitable;

/// A descriptor that becomes readable when the other end did something: wrote, for a reader; read,
/// for a writer. Made by [`Consumer::readiness`](crate::Consumer::readiness) and
/// [`Producer::readiness`](crate::Producer::readiness).
///
/// It is readable from the beginning. Each time it is: call [`clear`](Readiness::clear), then read (or
/// write) until the queue is empty (or full), then poll it again. What the other end does after the
/// `clear` makes it readable again. Once the queue is closed it is readable for good.
///
/// **What it costs.** A thread of this process, which sleeps on the queue's event word as a blocking
/// call does: no peer has to know of it, and libfmq's does too. A message that finds both asleep
/// is two wake-ups and a `write` away instead of one wake-up (some 50 to 100 µs). Between becoming
/// readable and `clear` the thread sleeps elsewhere, so that a busy writer makes no system call
/// for it: the price is per readiness, not per message. Blocking calls and this can be used side by
/// side.
///
/// ```
/// use fmq::{QueueConfig, QueueError, pair};
/// use rustix::event::{PollFd, PollFlags, poll};
///
/// let (mut producer, mut consumer) = pair(&QueueConfig::new(8, 16))?;
/// let ready = consumer.readiness()?;
/// let writer = std::thread::spawn(move || {
///     (0..100_u64).try_for_each(|n| producer.write_blocking(&n.to_ne_bytes(), fmq::Deadline::never()))
/// });
/// let mut expected = 0;
/// while expected < 100 {
///     poll(&mut [PollFd::new(&ready, PollFlags::IN)], None)?;
///     ready.clear();
///     let mut item = [0; 8];
///     while consumer.read(&mut item).is_ok() {
///         assert_eq!(u64::from_ne_bytes(item), expected);
///         expected += 1;
///     }
/// }
/// writer.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Readiness {
    watch: Arc<Watch>,
    thread: Option<JoinHandle<()>>,
    mark: ForkMark,
}

/// What the thread and the caller share.
#[derive(Debug)]
struct Watch {
    /// The other end's.
    counter: Shared<AtomicU64>,
    event: Shared<EventWord>,
    bits: NonZeroU32,
    closed: Arc<Closed>,
    stop: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    /// An eventfd, above zero while the state is not `Armed`.
    descriptor: OwnedFd,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The thread watches for a counter other than this.
    Armed(u64),
    /// The caller has something to look at.
    Ready,
    /// The queue is closed.
    Ended,
}

impl Readiness {
    pub(crate) fn new(
        counter: Shared<AtomicU64>,
        event: Shared<EventWord>,
        bits: u32,
        closed: Arc<Closed>,
    ) -> Result<Readiness, QueueError> {
        let descriptor = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| QueueError::System { call: "eventfd", errno })?;
        let watch = Arc::new(Watch {
            counter,
            event,
            bits: waitable(bits)?,
            closed,
            stop: AtomicBool::new(false),
            state: Mutex::new(State::Ready),
            changed: Condvar::new(),
            descriptor,
        });
        let mark = ForkMark::take()?;
        let theirs = Arc::clone(&watch);
        let thread = std::thread::Builder::new()
            .name("fmq-readiness".to_owned())
            .spawn(move || theirs.run())
            .map_err(|error| QueueError::System {
                call: "clone",
                errno: Errno::from_io_error(&error).unwrap_or(Errno::AGAIN),
            })?;
        Ok(Readiness { watch, thread: Some(thread), mark })
    }

    /// Makes the descriptor unreadable until the other end does something from now on. Look at the
    /// queue after this, not before.
    pub fn clear(&self) {
        let mut state = self.watch.lock();
        if let State::Ended = *state {
            return;
        }
        // It fails where the descriptor was cleared already.
        let _ = rustix::io::read(&self.watch.descriptor, &mut [0_u8; 8]);
        // Relaxed: what the counter stands for is loaded by the queue's own calls, which follow.
        *state = State::Armed(self.watch.counter.load(Ordering::Relaxed));
        drop(state);
        self.watch.changed.notify_one();
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.descriptor.as_fd()
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // A forked child has no such thread.
        if !self.mark.is_here() {
            std::mem::forget(thread);
            return;
        }
        let lock = self.watch.lock();
        // Release: pairs with Acquire in `is_stopped`.
        self.watch.stop.store(true, Ordering::Release);
        drop(lock);
        self.watch.changed.notify_one();
        // Woken until it has ended, as by a closer: no bit is set in the word, and a peer may do there
        // what it likes.
        for repeat in 0..REPEATS_MAX {
            // It fails for no word that is mapped.
            let _ = futex::wake(&self.watch.event, self.watch.bits);
            if thread.is_finished() {
                // Its result is nothing.
                let _ = thread.join();
                return;
            }
            std::thread::sleep(pause(repeat));
        }
    }
}

impl Watch {
    /// The thread.
    fn run(&self) {
        while let Some(seen) = self.next_armed() {
            let sleeper = Sleeper {
                event: &self.event,
                bits: self.bits,
                closed: &self.closed,
                deadline: Deadline::never(),
            };
            let moved = sleeper.sleep(&mut Moved { watch: self, seen }, Deadline::never());
            let mut state = self.lock();
            *state = if moved.is_ok() { State::Ready } else { State::Ended };
            // It fails only for a counter that is about to overflow, and then it is readable.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
            if let State::Ended = *state {
                return;
            }
        }
    }

    /// Waits until the caller looks for the next time; none when there is no caller any more.
    fn next_armed(&self) -> Option<u64> {
        let mut state = self.lock();
        loop {
            match *state {
                _ if self.is_stopped() => return None,
                State::Armed(seen) => return Some(seen),
                State::Ended => return None,
                State::Ready => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        // Acquire: pairs with Release in `drop`.
        self.stop.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The condition of the thread: the counter is not what the caller has seen, or nobody waits any more.
struct Moved<'a> {
    watch: &'a Watch,
    seen: u64,
}

impl WaitCondition for Moved<'_> {
    fn has_moved(&self) -> bool {
        // Relaxed: nothing is read by this thread.
        self.watch.counter.load(Ordering::Relaxed) != self.seen
    }

    fn poll(&mut self) -> Result<Option<usize>, QueueError> {
        Ok((self.has_moved() || self.watch.is_stopped()).then_some(1))
    }
}
