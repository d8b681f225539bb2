//! One end of a queue, with sleeping and waking: section 10 of the page.

use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use burst_shm::{Mapping, Memory, Shared, SharedRegion};
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};
use rustix::time::{ClockId, clock_gettime};

use super::bytes::Writer;
use super::connection::PATIENCE;

pub const DATUM: usize = 24;
pub const NOT_FULL: u32 = 0x01;
pub const NOT_EMPTY: u32 = 0x02;
pub const CLOSED: u32 = 0x8000_0000;

const READ_AT: usize = 0;
const WRITE_AT: usize = 128;
const EVENT_AT: usize = 256;
const RING_AT: usize = 512;

/// A queue that this client made. It uses one end of it.
pub struct Queue {
    memory: Memory,
    pub read: Shared<AtomicU64>,
    pub write: Shared<AtomicU64>,
    pub event: Shared<AtomicU32>,
    ring: SharedRegion,
    capacity: usize,
    /// The counter of the end that is used, in memory of our own.
    own: u64,
}

impl Queue {
    pub fn new(datums: usize) -> Self {
        let capacity = datums * DATUM;
        let memory = Memory::create("queue", RING_AT + capacity).expect("memory");
        let mapping = Arc::new(Mapping::map(&memory).expect("a mapping"));
        let counter = |at| Shared::new(Arc::clone(&mapping), at).expect("inside");
        Queue {
            read: counter(READ_AT),
            write: counter(WRITE_AT),
            event: Shared::new(Arc::clone(&mapping), EVENT_AT).expect("inside"),
            ring: SharedRegion::new(mapping, RING_AT, capacity).expect("inside"),
            memory,
            capacity,
            own: 0,
        }
    }

    /// What ConfigureBurst says of it.
    pub fn describe(&self, to: Writer) -> Writer {
        let parts = [(READ_AT, 8), (WRITE_AT, 8), (RING_AT, self.capacity), (EVENT_AT, 4)];
        to.u32(24).u32(1).u8(1).list(&parts, |to, (offset, length)| {
            to.u32(0).u32(u32::try_from(*offset).expect("small")).u64(*length as u64)
        })
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// Copies a packet in and publishes it, where there is room; does not wake.
    pub fn publish(&mut self, packet: &[u8]) {
        assert!(packet.len() <= self.room(), "no room");
        let (first, length) = self.pieces(packet.len());
        let (head, tail) = packet.split_at(length);
        self.ring.region().copy_in(first, head).expect("inside");
        self.ring.region().copy_in(0, tail).expect("inside");
        self.own += packet.len() as u64;
        self.write.store(self.own, Ordering::Release);
    }

    /// Where the next bytes lie: the first offset, and how many of them before the ring's end; the
    /// others lie at its beginning.
    fn pieces(&self, length: usize) -> (usize, usize) {
        let at = usize::try_from(self.own % self.capacity as u64).expect("below the capacity");
        (at, length.min(self.capacity - at))
    }

    /// Bytes that can be written.
    pub fn room(&self) -> usize {
        let used = self.own - self.read.load(Ordering::Acquire);
        self.capacity - usize::try_from(used).expect("a sound counter")
    }

    /// A copy of the next datum, which stays; datums do not go over the ring's end.
    pub fn first_datum(&self) -> [u8; DATUM] {
        let mut datum = [0; DATUM];
        self.ring.region().copy_out(self.pieces(DATUM).0, &mut datum).expect("inside");
        datum
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> usize {
        let readable = self.write.load(Ordering::Acquire).checked_sub(self.own);
        let readable = usize::try_from(readable.expect("a sound counter")).expect("small");
        assert!(readable <= self.capacity && readable.is_multiple_of(DATUM), "a sound counter");
        readable
    }

    /// Copies so many bytes out and gives their room back.
    pub fn take(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let (first, head) = self.pieces(length);
        let (before, after) = bytes.split_at_mut(head);
        self.ring.region().copy_out(first, before).expect("inside");
        self.ring.region().copy_out(0, after).expect("inside");
        self.own += length as u64;
        self.read.store(self.own, Ordering::Release);
        bytes
    }

    /// Says that there is news; whether the kernel had to be called.
    pub fn wake(&self, bit: u32) -> bool {
        let before = self.event.fetch_or(bit, Ordering::Release);
        let asleep = before & bit == 0;
        if asleep {
            let mask = NonZeroU32::new(bit).expect("a bit");
            futex::wake_bitset(&self.event, Flags::empty(), i32::MAX as u32, mask).expect("woken");
        }
        asleep
    }

    /// Sleeps until something can be read, and gives how much; `None` where the peer closed.
    /// Counts its sleeps in `sleeps`.
    pub fn wait(&self, sleeps: &mut u32) -> Option<usize> {
        let bit = NonZeroU32::new(NOT_EMPTY).expect("a bit");
        let deadline = deadline();
        let answer = loop {
            let before = self.event.fetch_and(!NOT_EMPTY, Ordering::Acquire);
            match self.readable() {
                0 if before & CLOSED != 0 => break None,
                0 => {}
                readable => break Some(readable),
            }
            let expected = before & !NOT_EMPTY;
            match futex::wait_bitset(&self.event, Flags::empty(), expected, Some(&deadline), bit) {
                Ok(()) => *sleeps += 1,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => panic!("no result: {errno}"),
            }
        };
        self.event.fetch_or(NOT_EMPTY, Ordering::Relaxed);
        answer
    }
}

fn deadline() -> Timespec {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = i64::try_from(PATIENCE.as_secs()).expect("small");
    Timespec { tv_sec: now.tv_sec + seconds, tv_nsec: now.tv_nsec }
}
