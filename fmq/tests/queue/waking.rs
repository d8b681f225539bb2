//! Who wakes whom: ends that attach, calls that give the other end something to do, and their quiet
//! variants; the descriptor for event loops.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use fmq::clock::now_ns;
use fmq::{Consumer, Deadline, Producer, QueueConfig, QueueError, SYNCHRONIZED, Wait, pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::common::libfmq::{NOT_EMPTY, NOT_FULL, describe, duplicate};
use crate::common::{await_sleep_of, event_of, introduce, patience};

const CONFIG: QueueConfig = QueueConfig::new(8, 4);

/// What a waiting call gave, if it was woken: one that sleeps up to its deadline finds what is there too.
fn woken<T>(call: impl FnOnce(Deadline) -> T) -> T {
    let deadline = patience();
    let result = call(deadline);
    assert!(!deadline.has_passed(now_ns()), "nobody woke it");
    result
}

fn sleeper(producer: &Producer) -> Consumer {
    let mut consumer = Consumer::attach(producer.descriptor().unwrap()).unwrap();
    consumer.set_wait(Wait::Sleep);
    consumer
}

/// A peer that numbers its bits the other way round, as libfmq's own tests do: its reader sleeps on what
/// is "not full" here, which a writer that attaches sets.
#[test]
fn a_writer_that_attaches_wakes_a_reader_with_another_numbering_of_bits() {
    let descriptor = describe(4, 8, SYNCHRONIZED, true);
    let mut consumer = Consumer::attach(duplicate(&descriptor)).unwrap();
    consumer.set_wait(Wait::Sleep);
    let (tell, told) = channel();
    let reader = thread::spawn(move || {
        introduce(&tell);
        let mut item = [0; 8];
        woken(|deadline| consumer.read_blocking_bits(&mut item, NOT_FULL, NOT_EMPTY, deadline))
            .map(|()| item)
    });
    let reader_thread = told.recv().unwrap();
    let word = event_of(&descriptor);
    while word.load(Ordering::SeqCst) & NOT_FULL != 0 {
        thread::yield_now();
    }
    await_sleep_of(reader_thread);
    let mut producer = Producer::attach(descriptor).unwrap();
    producer.write_blocking_bits(&[5; 8], NOT_EMPTY, NOT_FULL, patience()).unwrap();
    assert_eq!(reader.join().unwrap(), Ok([5; 8]));
}

/// A second reader is against the rules, and yet no reason to leave the first one asleep.
#[test]
fn a_reader_that_attaches_leaves_no_other_one_asleep() {
    let mut producer = Producer::create(&CONFIG).unwrap();
    let mut first = sleeper(&producer);
    let (tell, told) = channel();
    let reader = thread::spawn(move || {
        introduce(&tell);
        woken(|deadline| first.wait(1, deadline))
    });
    await_sleep_of(told.recv().unwrap());
    let _second = Consumer::attach(producer.descriptor().unwrap()).unwrap();
    producer.write(&[1; 8]).unwrap();
    assert_eq!(reader.join().unwrap(), Ok(1));
}

/// Both ends may agree on one bit for both directions: one that gives up waiting leaves the other awake.
#[test]
fn a_wait_that_ends_wakes_who_sleeps_on_the_same_bit() {
    const BOTH: u32 = 4;
    let (mut producer, mut consumer) = pair(&CONFIG).unwrap();
    producer.set_wait(Wait::Sleep);
    consumer.set_wait(Wait::Sleep);
    producer.write(&[1; 8]).unwrap();
    let (tell, told) = channel();
    let reader = thread::spawn(move || {
        introduce(&tell);
        woken(|deadline| consumer.wait_bits(2, BOTH, deadline))
    });
    await_sleep_of(told.recv().unwrap());
    let soon = Deadline::after(Duration::from_millis(2));
    assert_eq!(producer.wait_bits(4, BOTH, soon), Err(QueueError::Timeout));
    producer.write_blocking_bits(&[2; 8], BOTH, BOTH, patience()).unwrap();
    assert_eq!(reader.join().unwrap(), Ok(2));
}

/// Something that an end does.
type Does<E> = fn(&mut E) -> Result<(), QueueError>;

/// Each call that hands something over wakes by itself.
#[test]
fn what_is_written_wakes_a_sleeping_reader() {
    let writes: [Does<Producer>; 2] = [
        |producer| producer.write(&[1; 8]),
        |producer| {
            let mut claim = producer.claim(1)?;
            claim.copy_in(0, &[1; 8])?;
            claim.commit(1)
        },
    ];
    for write in writes {
        let mut producer = Producer::create(&CONFIG).unwrap();
        let mut consumer = sleeper(&producer);
        let (tell, told) = channel();
        let reader = thread::spawn(move || {
            introduce(&tell);
            woken(|deadline| consumer.wait(1, deadline))
        });
        await_sleep_of(told.recv().unwrap());
        write(&mut producer).unwrap();
        assert_eq!(reader.join().unwrap(), Ok(1));
    }
}

#[test]
fn what_is_read_wakes_a_sleeping_writer() {
    let reads: [Does<Consumer>; 3] = [
        |consumer| consumer.read(&mut [0; 8]),
        |consumer| consumer.peek(1)?.commit(1),
        |consumer| {
            consumer.read_deferred(&mut [0; 8])?;
            consumer.release()
        },
    ];
    for read in reads {
        let (mut producer, mut consumer) = pair(&CONFIG).unwrap();
        producer.set_wait(Wait::Sleep);
        producer.write(&[1; 32]).unwrap();
        let (tell, told) = channel();
        let writer = thread::spawn(move || {
            introduce(&tell);
            woken(|deadline| producer.wait(1, deadline))
        });
        await_sleep_of(told.recv().unwrap());
        read(&mut consumer).unwrap();
        assert_eq!(writer.join().unwrap(), Ok(1));
    }
}

/// The quiet variants leave the event word alone; one wake tells of them all.
#[test]
fn quiet_calls_touch_no_event_word() {
    let (mut producer, mut consumer) = pair(&CONFIG).unwrap();
    let word = event_of(&producer.descriptor().unwrap());
    word.store(0, Ordering::SeqCst);
    producer.write_quiet(&[1; 16]).unwrap();
    producer.claim(1).unwrap().commit_quiet(1).unwrap();
    consumer.read_quiet(&mut [0; 8]).unwrap();
    consumer.peek(1).unwrap().commit_quiet(1).unwrap();
    consumer.read_deferred(&mut [0; 8]).unwrap();
    consumer.release_quiet();
    assert_eq!(producer.available_to_write(), Ok(4));
    assert_eq!(word.load(Ordering::SeqCst), 0);
    producer.wake().unwrap();
    consumer.wake().unwrap();
    assert_eq!(word.load(Ordering::SeqCst), NOT_FULL | NOT_EMPTY);
}

#[test]
fn queues_without_an_event_word_are_written_and_read_by_the_same_calls() {
    let (mut producer, mut consumer) = pair(&CONFIG.without_event_flag()).unwrap();
    producer.write(&[1; 8]).unwrap();
    producer.claim(1).unwrap().commit(1).unwrap();
    consumer.read(&mut [0; 8]).unwrap();
    consumer.peek(1).unwrap().commit(1).unwrap();
    assert_eq!(consumer.readiness().unwrap_err(), QueueError::NoEventFlag);
}

/// Whether the descriptor is readable now.
fn is_ready(ready: &fmq::Readiness) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(ready, PollFlags::IN)], Some(&now)).unwrap() > 0
}

fn await_ready(ready: &fmq::Readiness) {
    let long = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(ready, PollFlags::IN)], Some(&long)), Ok(1));
}

#[test]
fn a_reader_in_an_event_loop_misses_nothing() {
    let (mut producer, mut consumer) = pair(&CONFIG).unwrap();
    let ready = consumer.readiness().unwrap();
    assert!(is_ready(&ready), "what was there before has to be looked at once");
    let writer = thread::spawn(move || {
        for n in 0..2000_u64 {
            producer.write_blocking(&n.to_ne_bytes(), patience()).unwrap();
        }
        producer
    });
    let mut next = 0;
    while next < 2000 {
        await_ready(&ready);
        ready.clear();
        let mut item = [0; 8];
        while consumer.read(&mut item).is_ok() {
            assert_eq!(u64::from_ne_bytes(item), next);
            next += 1;
        }
    }
    let producer = writer.join().unwrap();
    ready.clear();
    assert!(!is_ready(&ready), "nothing happened since");
    producer.closer().close();
    await_ready(&ready);
    ready.clear();
    assert!(is_ready(&ready), "the end is for good");
    assert_eq!(consumer.wait(1, patience()), Err(QueueError::PeerDied));
}

#[test]
fn a_writer_in_an_event_loop_is_told_of_room() {
    let (mut producer, mut consumer) = pair(&CONFIG).unwrap();
    let ready = producer.readiness().unwrap();
    let reader = thread::spawn(move || {
        for n in 0..500_u64 {
            let mut item = [0; 8];
            consumer.read_blocking(&mut item, patience()).unwrap();
            assert_eq!(u64::from_ne_bytes(item), n);
        }
    });
    let mut next = 0_u64;
    while next < 500 {
        await_ready(&ready);
        ready.clear();
        while next < 500 && producer.write(&next.to_ne_bytes()).is_ok() {
            next += 1;
        }
    }
    reader.join().unwrap();
}

/// The thread behind the descriptor ends with it, whatever it waits for, and closes nothing.
#[test]
fn a_descriptor_that_is_dropped_takes_its_thread_with_it() {
    let (mut producer, mut consumer) = pair(&CONFIG).unwrap();
    for armed in [false, true] {
        let ready = consumer.readiness().unwrap();
        if armed {
            ready.clear();
        }
        drop(ready);
    }
    producer.write(&[1; 8]).unwrap();
    assert_eq!(consumer.wait(1, patience()), Ok(1));
    assert!(!consumer.closer().is_closed());
}

/// A blocking call and the descriptor wait side by side, on the same bit.
#[test]
fn a_blocking_call_and_a_descriptor_are_both_woken() {
    let mut producer = Producer::create(&CONFIG).unwrap();
    let mut consumer = sleeper(&producer);
    let ready = consumer.readiness().unwrap();
    for n in 0..50_usize {
        ready.clear();
        let (tell, told) = channel();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                introduce(&tell);
                woken(|deadline| consumer.wait(1, deadline))
            });
            await_sleep_of(told.recv().unwrap());
            producer.write(&[1; 8]).unwrap();
            assert_eq!(reader.join().unwrap(), Ok(1), "round {n}");
        });
        await_ready(&ready);
        consumer.read(&mut [0; 8]).unwrap();
    }
}
