#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::thread;
use std::time::Duration;

use super::*;
use crate::Producer;

/// Turns a hang into a failure; never reached otherwise.
fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// Both ends of a queue of four items of eight bytes, the reading one as in the middle of a busy conversation.
fn busy_pair() -> (Producer, Consumer) {
    let mut consumer = Consumer::create(&QueueConfig::new(8, 4)).unwrap();
    let producer = Producer::attach(consumer.descriptor().unwrap()).unwrap();
    consumer.waiter = Waiter::in_busy_conversation();
    (producer, consumer)
}

#[test]
fn looks_of_a_busy_conversation_give_as_many_items_as_there_are() {
    let (mut producer, mut consumer) = busy_pair();
    producer.write(&[1; 24]).unwrap();
    assert_eq!(consumer.first_looks(2), Some(3));
    assert_eq!(consumer.first_looks(2), None, "known already: nothing to look for");
    assert_eq!(consumer.wait(2, patience()), Ok(3));
    consumer.read_deferred(&mut [0; 24]).unwrap();
    assert_eq!(consumer.first_looks(1), None, "there is room to give back");
    consumer.release_quiet();
    producer.write(&[2; 16]).unwrap();
    assert_eq!(consumer.first_looks(1), Some(2), "over the end of the ring");
    let mut got = [0; 16];
    consumer.read(&mut got).unwrap();
    assert_eq!(got, [2; 16]);
}

#[test]
fn a_busy_conversation_with_a_far_cpu_is_the_same_where_lines_are_given_away() {
    for (way, found_by_looks_alone) in [(Way::GiveAway, Some(3)), (Way::Early, None)] {
        let (mut producer, mut consumer) = busy_pair();
        (consumer.waiter, consumer.way) = (Waiter::in_busy_conversation_from_afar(), way);
        producer.write(&[1; 24]).unwrap();
        assert_eq!(consumer.first_looks(2), found_by_looks_alone);
        assert_eq!(consumer.wait(2, patience()), Ok(3));
        let mut got = [0; 24];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, [1; 24]);
    }
}

#[test]
fn a_busy_conversation_on_one_core_is_the_same() {
    for way in [Way::GiveAway, Way::Early] {
        let (mut producer, mut consumer) = busy_pair();
        (consumer.waiter, consumer.way) = (Waiter::in_busy_conversation_beside(), way);
        producer.write(&[1; 24]).unwrap();
        assert_eq!(consumer.first_looks(2), Some(3));
        let mut got = [0; 24];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, [1; 24]);
        assert_eq!(consumer.first_looks(2), None, "nothing comes");
    }
}

#[test]
fn in_a_busy_conversation_too_a_wait_is_for_all_items_that_were_asked_for() {
    let (mut producer, mut consumer) = busy_pair();
    assert_eq!(consumer.wait(5, patience()), Err(QueueError::TooLarge { wanted: 40, limit: 32 }));
    consumer.waiter = Waiter::in_busy_conversation();
    producer.write(&[1; 8]).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| consumer.wait(2, patience()));
        producer.write(&[2; 8]).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(2));
    });
}

#[test]
fn an_impossible_counter_in_a_busy_conversation_is_an_error() {
    for impossible in [7, 40, u64::MAX] {
        let (_producer, mut consumer) = busy_pair();
        consumer.parts.write.store(impossible, Ordering::Release); // pairs with Acquire in `ReadSide::available`
        let error = QueueError::Corrupt { read: 0, write: impossible, capacity: 32 };
        assert_eq!(consumer.wait(1, patience()), Err(error));
        assert_eq!(consumer.read(&mut [0; 8]), Err(error), "for ever");
    }
}

#[test]
fn a_closed_end_wakes_from_a_busy_conversation() {
    let (_producer, mut consumer) = busy_pair();
    consumer.closer().close();
    assert_eq!(consumer.wait(1, patience()), Err(QueueError::PeerDied));
}
