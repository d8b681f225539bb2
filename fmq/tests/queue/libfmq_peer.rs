//! A process that follows libfmq's rules can sit at the other end: it attaches to our layout, and
//! we attach to its own.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::thread;

use fmq::{
    Consumer, Producer, QueueConfig, QueueError, SYNCHRONIZED, UNSYNCHRONIZED, UnsyncConsumer,
    UnsyncProducer, Wait,
};

use crate::common::libfmq::{Libfmq, NOT_EMPTY, describe, duplicate};
use crate::common::patience;

const WAITS: [Wait; 3] = [Wait::Spin, Wait::Adaptive { budget_ns: None }, Wait::Sleep];
const ITEM: usize = 24;

fn item(n: u64) -> [u8; ITEM] {
    let mut item = [0; ITEM];
    for (i, chunk) in item.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&(n * 3 + i as u64).to_ne_bytes());
    }
    item
}

/// More items than fit, blocking at both ends: full and empty queues, wake-ups both ways.
#[test]
fn we_write_and_libfmq_reads_in_both_layouts() {
    for wait in WAITS {
        let ours = Producer::create(&QueueConfig::new(ITEM, 7)).unwrap();
        let foreign = describe(7, 24, SYNCHRONIZED, true);
        for (mut producer, reader) in [
            {
                let reader = Libfmq::attach(ours.descriptor().unwrap(), false);
                (ours, reader)
            },
            {
                let reader = Libfmq::attach(duplicate(&foreign), false);
                (Producer::attach(foreign).unwrap(), reader)
            },
        ] {
            producer.set_wait(wait);
            let reader = thread::spawn(move || {
                for n in 0..500 {
                    let mut got = [0; ITEM];
                    reader.read_blocking(&mut got);
                    assert_eq!(got, item(n));
                }
            });
            for n in 0..500 {
                producer.write_blocking(&item(n), patience()).unwrap();
            }
            reader.join().unwrap();
        }
    }
}

#[test]
fn libfmq_writes_and_we_read_in_both_layouts() {
    for wait in WAITS {
        let ours = Consumer::create(&QueueConfig::new(ITEM, 7)).unwrap();
        let foreign = describe(7, 24, SYNCHRONIZED, true);
        for (mut consumer, writer) in [
            {
                let writer = Libfmq::attach(ours.descriptor().unwrap(), false);
                (ours, writer)
            },
            {
                let writer = Libfmq::attach(duplicate(&foreign), false);
                (Consumer::attach(foreign).unwrap(), writer)
            },
        ] {
            consumer.set_wait(wait);
            let writer = thread::spawn(move || {
                for n in 0..500 {
                    writer.write_blocking(&item(n));
                }
            });
            for n in 0..500 {
                let mut got = [0; ITEM];
                consumer.read_blocking(&mut got, patience()).unwrap();
                assert_eq!(got, item(n));
            }
            writer.join().unwrap();
        }
    }
}

/// While our reader polls its bit stays set, so an unmodified libfmq writer makes no system call.
#[test]
fn a_reader_that_is_awake_spares_a_libfmq_writer_its_wake() {
    let mut consumer = Consumer::create(&QueueConfig::new(ITEM, 7)).unwrap();
    let event = consumer.descriptor().unwrap();
    let writer = Libfmq::attach(event, false);
    for n in 0..3 {
        assert_ne!(writer.event_bits() & NOT_EMPTY, 0, "its `wake` finds nothing to do");
        writer.write_blocking(&item(n));
        consumer.read(&mut [0; ITEM]).unwrap();
    }
    assert_eq!(writer.available_to_read(), 0);
}

#[test]
fn a_libfmq_peer_that_resets_counters_before_anything_was_written_does_no_harm() {
    let mut producer = Producer::create(&QueueConfig::new(ITEM, 7)).unwrap();
    let reader = Libfmq::attach(producer.descriptor().unwrap(), true);
    producer.write(&item(5)).unwrap();
    let mut got = [0; ITEM];
    assert!(reader.read(&mut got));
    assert_eq!(got, item(5));
}

#[test]
fn a_libfmq_peer_that_resets_counters_later_is_noticed() {
    let mut producer = Producer::create(&QueueConfig::new(ITEM, 2)).unwrap();
    for n in 0..4 {
        let reader = Libfmq::attach(producer.descriptor().unwrap(), false);
        producer.write(&item(n)).unwrap();
        assert!(reader.read(&mut [0; ITEM]));
    }
    let _reset = Libfmq::attach(producer.descriptor().unwrap(), true);
    let corrupt = QueueError::Corrupt { read: 0, write: 96, capacity: 48 };
    assert_eq!(producer.available_to_write(), Err(corrupt));
    assert_eq!(producer.write(&item(9)), Err(corrupt), "for ever");
}

#[test]
fn unsynchronized_queues_work_both_ways() {
    let mut producer = UnsyncProducer::create(&QueueConfig::new(ITEM, 4)).unwrap();
    let theirs = Libfmq::attach(producer.descriptor().unwrap(), false);
    let mut ours = UnsyncConsumer::attach(producer.descriptor().unwrap()).unwrap();
    assert!(ours.detects_torn_reads());
    let mut got = [0; ITEM];
    for n in 0..10 {
        producer.write(&item(n)).unwrap();
        assert!(theirs.read(&mut got));
        assert_eq!(got, item(n));
        ours.read(&mut got).unwrap();
        assert_eq!(got, item(n));
    }

    let foreign = describe(4, 24, UNSYNCHRONIZED, false);
    let writer = Libfmq::attach(duplicate(&foreign), true);
    let mut ours = UnsyncConsumer::attach(foreign).unwrap();
    assert!(!ours.detects_torn_reads(), "a plain libfmq writer announces nothing");
    for n in 0..5 {
        assert!(writer.write(&item(n)));
    }
    assert_eq!(ours.read(&mut got), Err(QueueError::Overrun { lost: 5 * 24 }));
    assert!(writer.write(&item(7)));
    ours.read(&mut got).unwrap();
    assert_eq!(got, item(7));
}

/// The queue that we make has room for an intent, which libfmq's writer leaves alone.
#[test]
fn a_libfmq_writer_of_a_queue_of_ours_is_read_like_one_of_its_own() {
    for reset in [false, true] {
        let queue = UnsyncProducer::create(&QueueConfig::new(ITEM, 4)).unwrap();
        let descriptor = || queue.descriptor().unwrap();
        let writer = Libfmq::attach(descriptor(), reset);
        let mut reader = UnsyncConsumer::attach(descriptor()).unwrap();
        let mut got = [0; ITEM];
        for n in 0..20 {
            assert!(writer.write(&item(n)));
            reader.read(&mut got).unwrap();
            assert_eq!(got, item(n));
            assert!(!reader.detects_torn_reads(), "nobody announces");
        }
        for n in 0..5 {
            assert!(writer.write(&item(n)));
        }
        assert_eq!(reader.read(&mut got), Err(QueueError::Overrun { lost: 5 * 24 }));
        // A writer of ours goes on where that one stopped, and announces again.
        let mut ours = UnsyncProducer::attach(descriptor()).unwrap();
        for n in 0..3 {
            ours.write(&item(n)).unwrap();
            reader.read(&mut got).unwrap();
            assert_eq!(got, item(n));
            assert!(reader.detects_torn_reads());
        }
        // Going back is corrupt all the same.
        assert!(writer.write(&item(9)));
        let claim = reader.peek(1).unwrap();
        writer.words().1.store(0, std::sync::atomic::Ordering::Release);
        let corrupt = claim.commit(1);
        assert!(matches!(corrupt, Err(QueueError::Corrupt { .. })), "{corrupt:?}");
    }
}

/// `fmq.md` 2.1: 1024 items of 24 bytes with an event word, as bursts use them.
#[test]
fn the_worked_example_attaches() {
    let descriptor = describe(1024, 24, SYNCHRONIZED, true);
    assert_eq!((descriptor.grantors[2].offset, descriptor.grantors[2].extent), (16, 24576));
    assert_eq!(descriptor.grantors[3].offset, 24592);
    let consumer = Consumer::attach(descriptor).unwrap();
    assert_eq!((consumer.capacity(), consumer.quantum()), (1024, 24));
}
