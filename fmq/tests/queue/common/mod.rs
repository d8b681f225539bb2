//! Helpers that several test files share.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests panic")]
#![allow(unreachable_pub, reason = "a module of several test crates")]

pub mod libfmq;
pub mod process;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use burst_shm::{Mapping, Memory, Shared};
use fmq::{Consumer, Deadline, Descriptor, Producer, QueueConfig, UnsyncConsumer, UnsyncProducer};

/// Turns a hang into a failure; never reached otherwise.
pub fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// The queue of libfmq's unit tests: 2048 items of one byte.
pub const CAPACITY: usize = 2048;

/// Bytes that differ from their neighbours, and from those of another seed.
pub fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((i * 7 + seed * 13 + i / 251) % 251).unwrap()).collect()
}

fn ring_memory() -> Memory {
    Memory::create("ring", CAPACITY).unwrap()
}

/// Both ends of a queue of 2048 bytes: all in one memory, and with a ring memory of the caller.
pub fn both_layouts() -> [(Producer, Consumer); 2] {
    let config = QueueConfig::new(1, CAPACITY);
    let one = Producer::create(&config).unwrap();
    let two = Producer::create_in(&config, ring_memory()).unwrap();
    assert_eq!(two.descriptor().unwrap().fds.len(), 2);
    [one, two].map(|producer| {
        let consumer = Consumer::attach(producer.descriptor().unwrap()).unwrap();
        (producer, consumer)
    })
}

/// The same for the unsynchronized flavour.
pub fn both_unsync_layouts() -> [(UnsyncProducer, UnsyncConsumer); 2] {
    let config = QueueConfig::new(1, CAPACITY);
    let one = UnsyncProducer::create(&config).unwrap();
    let two = UnsyncProducer::create_in(&config, ring_memory()).unwrap();
    [one, two].map(|producer| {
        let consumer = UnsyncConsumer::attach(producer.descriptor().unwrap()).unwrap();
        (producer, consumer)
    })
}

/// The event word of a queue in a mapping of its own, as a peer has it.
pub fn event_of(descriptor: &Descriptor) -> Shared<AtomicU32> {
    let (mapping, offset) = place(descriptor, 3);
    Shared::new(mapping, offset).unwrap()
}

/// The counter that this grantor describes, likewise.
pub fn counter_of(descriptor: &Descriptor, grantor: usize) -> Shared<AtomicU64> {
    let (mapping, offset) = place(descriptor, grantor);
    Shared::new(mapping, offset).unwrap()
}

fn place(descriptor: &Descriptor, grantor: usize) -> (Arc<Mapping>, usize) {
    let grantor = descriptor.grantors[grantor];
    let fd = descriptor.fds[grantor.fd_index as usize].try_clone().unwrap();
    let mapping = Mapping::map(&Memory::from_fd(fd).unwrap()).unwrap();
    (Arc::new(mapping), grantor.offset as usize)
}

/// Tells another thread who this one is, so that it can wait for its sleep.
pub fn introduce(to: &Sender<i32>) {
    to.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
}

/// Ends what looks at this flag when the test does, pass or fail.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns when this thread of the process sleeps in the kernel.
pub fn await_sleep_of(thread: i32) {
    let sleeps = || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        // Behind the name, which is in parentheses.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    };
    while !sleeps() {
        std::thread::yield_now();
    }
}
