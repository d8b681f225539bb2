#![allow(clippy::unwrap_used, reason = "a test panics")]

use super::*;
use crate::Consumer;

#[test]
fn what_is_written_arrives_whole_whoever_reads_it() {
    let mut producer = Producer::create(&QueueConfig::new(8, 1024)).unwrap();
    let mut consumer = Consumer::attach(producer.descriptor().unwrap()).unwrap();
    for round in 0_u8..200 {
        producer.way = if round < 50 { Way::Early } else { Way::GiveAway };
        producer.waiter = match round {
            0..150 => Waiter::in_busy_conversation_from_afar(),
            _ => Waiter::in_busy_conversation_beside(),
        };
        let Producer { side, parts, .. } = &mut producer;
        side.hears_of_reader(&parts.read, 8);
        assert!(side.is_conversation());
        // Over the end of the ring every now and then, and longer than what is fetched or given away.
        for len in [8, 64, 456, 1_024, 2_056, 4_096] {
            let message: Vec<u8> = (round..=u8::MAX).cycle().take(len).collect();
            producer.write(&message).unwrap();
            let mut claim = producer.claim(len / 8).unwrap();
            claim.copy_in(0, &message).unwrap();
            claim.commit(len / 8).unwrap();
            for _ in 0..2 {
                let mut got = vec![0; len];
                consumer.read(&mut got).unwrap();
                assert_eq!(got, message);
            }
        }
    }
}

#[test]
fn a_writer_tells_a_conversation_from_a_stream() {
    let mut producer = Producer::create(&QueueConfig::new(8, 8)).unwrap();
    let mut consumer = Consumer::attach(producer.descriptor().unwrap()).unwrap();
    assert!(!producer.side.is_conversation(), "nothing is known");
    producer.waiter = Waiter::in_busy_conversation_from_afar(); // which asks of its own accord much later
    let mut is_conversation = |unread: usize| {
        (0..unread).for_each(|_| producer.write(&[1; 8]).unwrap());
        let Producer { side, parts, .. } = &mut producer;
        side.hears_of_reader(&parts.read, 8);
        (0..unread).for_each(|_| consumer.read(&mut [0; 8]).unwrap());
        side.is_conversation()
    };
    let unread = [1, 2, 1, 2, 3, 1, 8, 2, 1];
    let heard = [true, true, true, true, false, true, true, false, true];
    assert_eq!(unread.map(&mut is_conversation), heard, "it takes two in a row");
}

#[test]
fn a_writer_hears_once_of_each_step_of_the_reader() {
    let mut producer = Producer::create(&QueueConfig::new(8, 4)).unwrap();
    let mut consumer = Consumer::attach(producer.descriptor().unwrap()).unwrap();
    producer.write(&[1; 16]).unwrap();
    let Producer { side, parts, .. } = &mut producer;
    assert!(!side.hears_of_reader(&parts.read, 8));
    consumer.read(&mut [0; 8]).unwrap();
    assert!(side.hears_of_reader(&parts.read, 8));
    assert!(!side.hears_of_reader(&parts.read, 8), "known already");
    parts.read.store(64, Ordering::Release); // pairs with Acquire in `WriteSide::free`
    assert!(!side.hears_of_reader(&parts.read, 8), "impossible");
    let error = QueueError::Corrupt { read: 64, write: 16, capacity: 32 };
    assert_eq!(producer.write(&[2; 8]), Err(error));
}

#[test]
fn lines_are_given_away_in_a_conversation_with_a_far_cpu_only() {
    let mut producer = Producer::create(&QueueConfig::new(8, 8)).unwrap();
    let (far, near) = (Waiter::in_busy_conversation_from_afar(), Waiter::in_busy_conversation());
    let beside = Waiter::in_busy_conversation_beside();
    let Producer { side, parts, .. } = &mut producer;
    assert_eq!(
        audience(side, Way::GiveAway, &far),
        Audience::Any,
        "nobody knows yet that it is a conversation"
    );
    side.hears_of_reader(&parts.read, 8);
    assert_eq!(audience(side, Way::GiveAway, &far), Audience::FarInConversation);
    assert_eq!(audience(side, Way::GiveAway, &near), Audience::Any);
    assert_eq!(audience(side, Way::GiveAway, &beside), Audience::Beside);
    for way in [Way::Early, Way::LookAhead(None)] {
        for waiter in [&far, &near, &beside] {
            assert_eq!(audience(side, way, waiter), Audience::Any);
        }
    }
}
