//! One thread that serves several queues.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::time::Duration;

use fmq::{Consumer, Deadline, Producer, QueueConfig, QueueError, Wait, WaitSet, pair};

use crate::common::patience;

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
            let ready = set.wait(&mut all, patience()).unwrap();
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
        let ready = set.wait(&mut all, patience()).unwrap();
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
                (ready, all[ready].wait(1, patience()))
            });
            if wait == Wait::Sleep {
                closer.close()
            } else {
                own.close()
            }
            let (ready, why) = waiter.join().unwrap();
            assert_eq!(why, Err(QueueError::PeerDied));
            assert_eq!(ready, usize::from(wait == Wait::Sleep));
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
            assert_eq!(waiter.join().unwrap(), Ok(1), "CLOSED bit: {from_peer}");
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
