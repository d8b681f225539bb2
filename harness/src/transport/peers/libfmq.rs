//! libfmq's algorithm, as its public behaviour is described: the queue we took the memory layout
//! and the contract from, and whose speed we compare with.
//!
//! What makes it different from ours, on purpose here: both counters are read at every step and the
//! own one is read back from shared memory; they lie side by side in one cache line; the position in
//! the ring is found by division; each part is mapped on its own; every message is followed by a
//! read-modify-write of the event word, and a waiting reader clears its bit each time, so that the
//! next message costs a system call.

use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use burst_shm::{Errno, Mapping, Memory, Shared, SharedRegion};
use rustix::thread::futex::{self, Flags};

use super::Peer;
use super::ours::{ITEM, RING_BYTES, fits_rings};
use crate::error::HarnessError;
use crate::transport::case::Case;
use crate::transport::names;
use crate::transport::session::{ClientEnd, ClientSession, Measured, Served, ServerSession};
use crate::transport::work::AnswerBytes;
use crate::wait::WaitKind;

/// The layout of one queue: counters at 0 and 8, the ring, the event word.
const READ_AT: usize = 0;
const WRITE_AT: usize = 8;
const RING_AT: usize = 16;
const EVENT_AT: usize = RING_AT + RING_BYTES;
const MEMORY_BYTES: usize = 8192;

const NOT_FULL: u32 = 1;
const NOT_EMPTY: u32 = 2;

/// Two queues by libfmq's rules.
#[derive(Debug)]
pub struct Libfmq;

impl Peer for Libfmq {
    fn name(&self) -> &'static str {
        names::LIBFMQ
    }

    fn supports(&self, case: &Case) -> bool {
        // It has no policy in between, and polling on one CPU never ends.
        case.wait != WaitKind::Adaptive && !case.spins_in_vain() && fits_rings(case)
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let make = || Memory::create("libfmq", MEMORY_BYTES);
        let (requests, answers) = (make()?, make()?);
        session.link.send(&(), &[requests.as_fd(), answers.as_fd()])?;
        let (wait, item) = (session.case().wait, ITEM as u64);
        session.run(&mut End {
            requests: Queue::map(&requests, item, wait)?,
            answers: Queue::map(&answers, item, wait)?,
        })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let [requests, answers] = session.link.receive_fds()?;
        let case = *session.case();
        let map = |fd| Queue::map(&Memory::from_fd(fd)?, ITEM as u64, case.wait);
        let (requests, answers) = (map(requests)?, map(answers)?);
        let mut request = vec![0; case.request_bytes];
        session.run(|work| {
            requests.read_waiting(&mut request)?;
            answers.write_and_wake(&work.answer(&request))
        })
    }
}

struct End {
    requests: Queue,
    answers: Queue,
}

impl ClientEnd for End {
    #[inline]
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        self.requests.write_and_wake(request)
    }

    #[inline]
    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        self.answers.read_waiting(answer)
    }
}

/// One end of one queue.
struct Queue {
    read: Shared<AtomicU64>,
    write: Shared<AtomicU64>,
    ring: SharedRegion,
    event: Shared<AtomicU32>,
    /// Both known to the original only when it runs, as they come with the descriptor: `item` is
    /// given from outside so that the compiler cannot turn divisions into shifts.
    item: u64,
    size: u64,
    wait: WaitKind,
}

impl Queue {
    fn map(memory: &Memory, item: u64, wait: WaitKind) -> Result<Queue, HarnessError> {
        let map = || Ok::<_, HarnessError>(Arc::new(Mapping::map(memory)?));
        Ok(Queue {
            read: Shared::new(map()?, READ_AT)?,
            write: Shared::new(map()?, WRITE_AT)?,
            ring: SharedRegion::new(map()?, RING_AT, RING_BYTES)?,
            event: Shared::new(map()?, EVENT_AT)?,
            item: std::hint::black_box(item),
            size: std::hint::black_box(RING_BYTES as u64),
            wait,
        })
    }

    /// All of `bytes`, or `false` where they do not fit.
    fn write(&self, bytes: &[u8]) -> Result<bool, HarnessError> {
        let wanted = bytes.len() as u64 / self.item;
        let used =
            self.write.load(Ordering::Acquire).wrapping_sub(self.read.load(Ordering::Acquire));
        if self.size.saturating_sub(used) / self.item < wanted {
            return Ok(false);
        }
        let write = self.write.load(Ordering::Relaxed);
        if !write.is_multiple_of(self.item) {
            return Ok(false);
        }
        let (first, second) = bytes.split_at(self.contiguous(write, bytes.len()));
        let ring = self.ring.region();
        ring.copy_in(self.position(write), first)?;
        if !second.is_empty() {
            ring.copy_in(0, second)?;
        }
        let write = self.write.load(Ordering::Relaxed);
        self.write.store(write + wanted * self.item, Ordering::Release);
        Ok(true)
    }

    /// All of `bytes`, or `false` where there are not so many.
    fn read(&self, bytes: &mut [u8]) -> Result<bool, HarnessError> {
        let write = self.write.load(Ordering::Acquire);
        let read = self.read.load(Ordering::Relaxed);
        if !write.is_multiple_of(self.item) || !read.is_multiple_of(self.item) {
            return Ok(false);
        }
        if write.wrapping_sub(read) > self.size {
            self.read.store(write, Ordering::Release);
            return Ok(false);
        }
        let len = bytes.len();
        if write - read < len as u64 {
            return Ok(false);
        }
        let (first, second) = bytes.split_at_mut(self.contiguous(read, len));
        let ring = self.ring.region();
        ring.copy_out(self.position(read), first)?;
        if !second.is_empty() {
            ring.copy_out(0, second)?;
        }
        self.commit_read(len as u64)
    }

    /// Looks again whether the writer went over what was copied, then gives the room back.
    fn commit_read(&self, len: u64) -> Result<bool, HarnessError> {
        let write = self.write.load(Ordering::Acquire);
        let read = self.read.load(Ordering::Relaxed);
        if write.wrapping_sub(read) > self.size {
            self.read.store(write, Ordering::Release);
            return Ok(false);
        }
        let taken = len / self.item * self.item;
        self.read.store(read + taken, Ordering::Release);
        Ok(true)
    }

    fn position(&self, counter: u64) -> usize {
        usize::try_from(counter % self.size).unwrap_or(0)
    }

    /// How much of `len` lies before the end of the ring.
    fn contiguous(&self, counter: u64, len: usize) -> usize {
        let items = (self.size - counter % self.size) / self.item;
        usize::try_from(items * self.item).unwrap_or(0).min(len)
    }

    /// Writes, then wakes: the ring never fills here, so the wait for room is not needed.
    fn write_and_wake(&self, bytes: &[u8]) -> Result<(), HarnessError> {
        if !self.write(bytes)? {
            return Err(HarnessError::Handshake { expected: "room in the ring" });
        }
        self.wake(NOT_EMPTY)
    }

    /// Polls with plain reads, as the service of a burst does, or sleeps and then wakes the writer.
    fn read_waiting(&self, bytes: &mut [u8]) -> Result<(), HarnessError> {
        if self.wait == WaitKind::Spin {
            while !self.read(bytes)? {}
            return Ok(());
        }
        while !self.read(bytes)? {
            self.wait_for(NOT_EMPTY)?;
        }
        self.wake(NOT_FULL)
    }

    fn wake(&self, bits: u32) -> Result<(), HarnessError> {
        let before = self.event.fetch_or(bits, Ordering::SeqCst);
        let Some(mask) = NonZeroU32::new(bits) else { return Ok(()) };
        if before & bits != bits {
            futex::wake_bitset(&self.event, Flags::empty(), i32::MAX.unsigned_abs(), mask)
                .map_err(HarnessError::system("futex wake"))?;
        }
        Ok(())
    }

    /// Until one of the bits is set; takes it.
    fn wait_for(&self, bits: u32) -> Result<(), HarnessError> {
        let Some(mask) = NonZeroU32::new(bits) else { return Ok(()) };
        loop {
            let before = self.event.fetch_and(!bits, Ordering::SeqCst);
            if before & bits != 0 {
                return Ok(());
            }
            match futex::wait_bitset(&self.event, Flags::empty(), before & !bits, None, mask) {
                Ok(()) if self.event.fetch_and(!bits, Ordering::SeqCst) & bits != 0 => {
                    return Ok(());
                }
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(HarnessError::System { call: "futex wait", errno }),
            }
        }
    }
}
