//! One thread that serves several queues.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use fmq::{
    Consumer, Deadline, Producer, QueueConfig, QueueError, Ready, Shared, Wait, WaitSet, pair,
};

use crate::common::{Over, counter_of, event_of, patience};

fn pairs(n: usize) -> (Vec<Producer>, Vec<Consumer>) {
    (0..n).map(|_| pair(&QueueConfig::new(8, 4)).expect("a queue")).unzip()
}

#[test]
fn every_item_of_every_queue_arrives() {
    for wait in [Wait::Spin, Wait::default(), Wait::Sleep] {
        let (producers, mut consumers) = pairs(5);
        let writers: Vec<_> = producers
            .into_iter()
            .map(|mut producer| {
                std::thread::spawn(move || {
                    for n in 0..200_u64 {
                        producer.write_blocking(&n.to_ne_bytes(), patience()).unwrap();
                    }
                })
            })
            .collect();
        let mut set = WaitSet::new(wait);
        let mut next = [0_u64; 5];
        while next.iter().any(|n| *n < 200) {
            let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
            let ready = set.wait(&mut all, patience()).unwrap().index;
            let mut item = [0; 8];
            consumers[ready].read_blocking(&mut item, patience()).unwrap();
            assert_eq!(u64::from_ne_bytes(item), next[ready], "{wait:?}, queue {ready}");
            next[ready] += 1;
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    }
}

#[test]
fn a_busy_queue_does_not_starve_the_others() {
    let (mut producers, mut consumers) = pairs(3);
    for producer in &mut producers {
        producer.write(&[0; 16]).unwrap();
    }
    let mut set = WaitSet::new(Wait::Sleep);
    let mut order = Vec::new();
    for _ in 0..6 {
        let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
        let ready = set.wait(&mut all, patience()).unwrap().index;
        consumers[ready].read(&mut [0; 8]).unwrap();
        order.push(ready);
    }
    assert_eq!(order, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_closed_queue_is_ready_and_says_why() {
    for wait in [Wait::Spin, Wait::Sleep] {
        let (producers, mut consumers) = pairs(2);
        let closer = producers[1].closer(); // the other end: only the CLOSED bit reaches us
        let own = consumers[0].closer();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
                let ready = WaitSet::new(wait).wait(&mut all, patience()).unwrap();
                (ready, all[ready.index].wait(1, patience()))
            });
            if wait == Wait::Sleep {
                closer.close()
            } else {
                own.close()
            }
            let (ready, why) = waiter.join().unwrap();
            assert_eq!(why, Err(QueueError::PeerDied));
            let index = usize::from(wait == Wait::Sleep);
            assert_eq!(ready, Ready { index, items: Err(QueueError::PeerDied) });
        });
    }
}

/// A queue that is closed while all are polled: nobody waits for the deadline to see it.
#[test]
fn a_queue_closed_in_the_middle_of_polling_ends_the_wait() {
    for from_peer in [false, true] {
        let (producers, mut consumers) = pairs(2);
        let closer = if from_peer { producers[1].closer() } else { consumers[1].closer() };
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
                WaitSet::new(Wait::Spin).wait(&mut all, Deadline::never())
            });
            // It polls by now, or sees the close at once; either way it has to return.
            std::thread::sleep(Duration::from_millis(20));
            closer.close();
            let closed = Ready { index: 1, items: Err(QueueError::PeerDied) };
            assert_eq!(waiter.join().unwrap(), Ok(closed), "CLOSED bit: {from_peer}");
        });
    }
}

#[test]
fn deadlines_and_limits() {
    let (_producers, mut consumers) = pairs(2);
    let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
    let soon = Deadline::after(Duration::from_millis(2));
    for wait in [Wait::Spin, Wait::default(), Wait::Sleep] {
        assert_eq!(WaitSet::new(wait).wait(&mut all, soon), Err(QueueError::Timeout), "{wait:?}");
    }
    let none = WaitSet::new(Wait::Sleep).wait(&mut [], soon);
    assert_eq!(none, Err(QueueError::TooManyQueues { queues: 0, max: 128 }));
}

/// The word of a queue, as a peer has it.
fn word_of(consumer: &Consumer) -> Shared<AtomicU32> {
    event_of(&consumer.descriptor().unwrap())
}

const CLOSED: u32 = 1 << 31;

/// A peer that sets and clears CLOSED costs its own queue and no other.
#[test]
fn a_peer_that_sets_and_clears_the_closed_bit_ends_its_queue_and_not_the_set() {
    for wait in [Wait::Spin, Wait::Sleep, Wait::default()] {
        let (mut producers, mut consumers) = pairs(2);
        let word = word_of(&consumers[0]);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    word.fetch_xor(CLOSED, Ordering::AcqRel);
                }
                word.fetch_or(CLOSED, Ordering::AcqRel);
            });
            let end = Over(&over);
            // While it polls and while it sleeps, with the bit seen or not: never an error of the set.
            for _ in 0..300 {
                let soon = Deadline::after(Duration::from_micros(300));
                let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
                let found = WaitSet::new(wait).wait(&mut all, soon);
                let closed = Ready { index: 0, items: Err(QueueError::PeerDied) };
                assert!(found == Ok(closed) || found == Err(QueueError::Timeout), "{found:?}");
            }
            let mut set = WaitSet::new(wait);
            let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
            // It may be seen closed, but once, and then the other queue is served as ever.
            let mut reports = 0;
            for n in 0..50_u64 {
                producers[1].write(&n.to_ne_bytes()).unwrap();
                loop {
                    let ready = set.wait(&mut all, patience()).unwrap();
                    if ready.index == 1 {
                        assert_eq!(ready.items, Ok(1));
                        break;
                    }
                    assert_eq!(ready, Ready { index: 0, items: Err(QueueError::PeerDied) });
                    reports += 1;
                }
                let mut item = [0; 8];
                all[1].read(&mut item).unwrap();
                assert_eq!(u64::from_ne_bytes(item), n);
                let soon = Deadline::after(Duration::from_micros(300));
                match set.wait(&mut all, soon) {
                    Err(QueueError::Timeout) => {}
                    Ok(Ready { index: 0, items: Err(QueueError::PeerDied) }) => reports += 1,
                    other => panic!("{other:?}"),
                }
            }
            drop(end);
            while reports == 0 {
                let ready = set.wait(&mut all, patience()).unwrap();
                assert_eq!(ready, Ready { index: 0, items: Err(QueueError::PeerDied) });
                reports += 1;
            }
            assert_eq!(reports, 1, "{wait:?}");
        });
    }
}

#[test]
fn queues_that_have_failed_are_reported_once_and_the_rest_is_served() {
    for wait in [Wait::Spin, Wait::Sleep] {
        let (mut producers, mut consumers) = pairs(4);
        let bare = QueueConfig::new(8, 4).without_event_flag();
        let (_bare_producer, bare_consumer) = pair(&bare).unwrap();
        consumers[1] = bare_consumer;
        producers[2].write(&[7; 8]).unwrap();
        producers[2].closer().close();
        let counter = counter_of(&consumers[0].descriptor().unwrap(), 1);
        counter.store(3, Ordering::Release);
        let mut set = WaitSet::new(wait);
        let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
        let mut wait =
            |all: &mut [&mut Consumer]| set.wait(all, Deadline::after(Duration::from_millis(1)));
        let corrupt = QueueError::Corrupt { read: 0, write: 3, capacity: 32 };
        assert_eq!(wait(&mut all), Ok(Ready { index: 0, items: Err(corrupt) }));
        assert_eq!(wait(&mut all), Ok(Ready { index: 1, items: Err(QueueError::NoEventFlag) }));
        assert_eq!(wait(&mut all), Ok(Ready { index: 2, items: Ok(1) }), "items come first");
        all[2].read(&mut [0; 8]).unwrap();
        assert_eq!(wait(&mut all), Ok(Ready { index: 2, items: Err(QueueError::PeerDied) }));
        assert_eq!(wait(&mut all), Err(QueueError::Timeout));
        producers[3].write(&[1; 16]).unwrap();
        assert_eq!(wait(&mut all), Ok(Ready { index: 3, items: Ok(2) }));
        let (mut fresh, mut other) = pair(&QueueConfig::new(8, 4)).unwrap();
        fresh.write(&[1; 8]).unwrap();
        let ready = wait(&mut [&mut *all[0], &mut other]);
        assert_eq!(ready, Ok(Ready { index: 1, items: Ok(1) }), "in another order too");
        let none = wait(&mut [&mut *all[0]]);
        assert_eq!(none, Err(QueueError::TooManyQueues { queues: 0, max: 128 }), "nobody is left");
    }
}

/// A closer of this process gets a sleeping set out of bed although a peer wipes the word all the time.
#[test]
fn a_peer_that_wipes_the_event_word_cannot_keep_a_closed_set_waiting() {
    for _ in 0..50 {
        let (_producers, mut consumers) = pairs(2);
        let word = word_of(&consumers[1]);
        let closer = consumers[1].closer();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    word.store(0, Ordering::Release);
                }
            });
            let _end = Over(&over);
            let waiter = scope.spawn(|| {
                let mut all: Vec<&mut Consumer> = consumers.iter_mut().collect();
                WaitSet::new(Wait::Sleep).wait(&mut all, patience())
            });
            closer.close();
            let closed = Ready { index: 1, items: Err(QueueError::PeerDied) };
            assert_eq!(waiter.join().unwrap(), Ok(closed));
        });
    }
}
