//! Helpers that several test files share.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests panic")]
#![allow(unreachable_pub, reason = "a module of several test crates")]

pub mod libfmq;
pub mod process;

use std::time::Duration;

use burst_shm::Memory;
use fmq::{Consumer, Deadline, Producer, QueueConfig, UnsyncConsumer, UnsyncProducer};

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
