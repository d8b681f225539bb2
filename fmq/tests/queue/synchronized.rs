//! The synchronized flavour between two ends of one process: surface and blocking calls.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::thread;
use std::time::Duration;

use fmq::{Consumer, Deadline, Producer, QueueConfig, QueueError, Wait, pair};

/// Turns a hang into a failure; never reached otherwise.
fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

const WAITS: [Wait; 4] = [
    Wait::Spin,
    Wait::Adaptive { budget_ns: None },
    Wait::Adaptive { budget_ns: Some(1) },
    Wait::Sleep,
];

#[test]
fn items_come_out_as_they_went_in() {
    let (mut producer, mut consumer) = pair(&QueueConfig::new(24, 5)).unwrap();
    assert_eq!((producer.capacity(), producer.quantum()), (5, 24));
    assert_eq!((consumer.capacity(), consumer.quantum()), (5, 24));
    for round in 0..20_u8 {
        let sent: Vec<u8> = (0..72).map(|i| i ^ round).collect();
        producer.write(&sent).unwrap();
        assert_eq!(consumer.available_to_read(), Ok(3));
        assert_eq!(producer.available_to_write(), Ok(2));
        let mut got = [0; 72];
        consumer.read(&mut got).unwrap();
        assert_eq!(&got[..], &sent[..], "round {round}");
    }
}

#[test]
fn back_pressure_is_typed_and_changes_nothing() {
    let (mut producer, mut consumer) = pair(&QueueConfig::new(8, 2)).unwrap();
    assert_eq!(consumer.read(&mut [0; 8]), Err(QueueError::Empty { wanted: 8, available: 0 }));
    producer.write(&[1; 16]).unwrap();
    assert_eq!(producer.write(&[2; 8]), Err(QueueError::Full { wanted: 8, free: 0 }));
    assert_eq!(producer.write(&[2; 24]), Err(QueueError::TooLarge { wanted: 24, limit: 16 }));
    assert_eq!(producer.write(&[2; 7]), Err(QueueError::NotWhole { len: 7, quantum: 8 }));
    assert_eq!(consumer.read(&mut [0; 9]), Err(QueueError::NotWhole { len: 9, quantum: 8 }));
    let mut got = [0; 16];
    consumer.read(&mut got).unwrap();
    assert_eq!(got, [1; 16]);
}

#[test]
fn a_dropped_claim_leaves_nothing_behind_and_a_part_may_be_committed() {
    let (mut producer, mut consumer) = pair(&QueueConfig::new(4, 4)).unwrap();
    producer.claim(3).unwrap().copy_in(0, &[9; 12]).unwrap();
    assert_eq!(consumer.available_to_read(), Ok(0));

    let mut claim = producer.claim(4).unwrap();
    assert_eq!((claim.items(), claim.len()), (4, 16));
    claim.copy_in(0, &[1; 8]).unwrap();
    assert_eq!(claim.copy_in(9, &[0; 8]), Err(QueueError::TooLarge { wanted: 17, limit: 16 }));
    claim.commit(2).unwrap();
    assert_eq!(consumer.available_to_read(), Ok(2));

    let mut one = [0; 4];
    consumer.peek(2).unwrap().copy_out(4, &mut one).unwrap();
    assert_eq!(one, [1; 4]);
    assert_eq!(consumer.available_to_read(), Ok(2));
    let peek = consumer.peek(2).unwrap();
    peek.commit(1).unwrap();
    assert_eq!(consumer.available_to_read(), Ok(1));
    assert_eq!(
        consumer.peek(1).unwrap().commit(2),
        Err(QueueError::TooLarge { wanted: 8, limit: 4 })
    );
}

#[test]
fn room_is_kept_until_released() {
    let (mut producer, mut consumer) = pair(&QueueConfig::new(1, 4)).unwrap();
    producer.write(b"abcd").unwrap();
    let mut got = [0; 4];
    consumer.read_deferred(&mut got).unwrap();
    assert_eq!(producer.available_to_write(), Ok(0));
    assert_eq!(consumer.available_to_read(), Ok(0));
    consumer.release().unwrap();
    assert_eq!(producer.available_to_write(), Ok(4));
}

#[test]
fn a_late_end_finds_the_counters_as_they_are() {
    let mut producer = Producer::create(&QueueConfig::new(2, 8)).unwrap();
    producer.write(b"abcdef").unwrap();
    let mut consumer = Consumer::attach(producer.descriptor().unwrap()).unwrap();
    let mut got = [0; 4];
    consumer.read(&mut got).unwrap();
    assert_eq!(&got, b"abcd");
    let descriptor = consumer.descriptor().unwrap();
    drop((producer, consumer));
    let mut second = Consumer::attach(descriptor).unwrap();
    assert_eq!(second.available_to_read(), Ok(1));
    second.read(&mut got[..2]).unwrap();
    assert_eq!(&got[..2], b"ef");
}

#[test]
fn ping_pong_under_every_wait() {
    for wait in WAITS {
        let (mut there, mut their_in) = pair(&QueueConfig::new(8, 4)).unwrap();
        let (mut their_out, mut back) = pair(&QueueConfig::new(8, 4)).unwrap();
        their_in.set_wait(wait);
        back.set_wait(wait);
        let echo = thread::spawn(move || {
            let mut item = [0; 8];
            for _ in 0..2000 {
                their_in.read_blocking(&mut item, patience()).unwrap();
                their_out.write_blocking(&item, patience()).unwrap();
            }
        });
        for n in 0..2000_u64 {
            there.write_blocking(&n.to_ne_bytes(), patience()).unwrap();
            let mut item = [0; 8];
            back.read_blocking(&mut item, patience()).unwrap();
            assert_eq!(u64::from_ne_bytes(item), n, "{wait:?}");
        }
        echo.join().unwrap();
    }
}

#[test]
fn a_full_queue_blocks_the_writer_until_the_reader_is_done() {
    for wait in WAITS {
        let (mut producer, mut consumer) = pair(&QueueConfig::new(8, 3)).unwrap();
        producer.set_wait(wait);
        consumer.set_wait(wait);
        let writer = thread::spawn(move || {
            for n in 0..3000_u64 {
                producer.write_blocking(&n.to_ne_bytes(), patience()).unwrap();
            }
        });
        for n in 0..3000_u64 {
            let mut item = [0; 8];
            consumer.wait(1, patience()).unwrap();
            consumer.read_deferred(&mut item).unwrap(); // `wait` gives the room back
            assert_eq!(u64::from_ne_bytes(item), n, "{wait:?}");
        }
        consumer.release().unwrap();
        writer.join().unwrap();
    }
}

#[test]
fn wait_asks_for_several_items_at_once() {
    let (mut producer, mut consumer) = pair(&QueueConfig::new(1, 64)).unwrap();
    let writer = thread::spawn(move || {
        for n in 0..10_u8 {
            producer.write_blocking(&[n], patience()).unwrap();
        }
    });
    assert_eq!(consumer.wait(10, patience()), Ok(10));
    writer.join().unwrap();
    assert_eq!(consumer.wait(65, patience()), Err(QueueError::TooLarge { wanted: 65, limit: 64 }));
    assert_eq!(consumer.wait(0, Deadline::at_ns(0)), Ok(10));
}

#[test]
fn deadlines_end_every_blocking_call() {
    for wait in WAITS {
        let (mut producer, mut consumer) = pair(&QueueConfig::new(1, 1)).unwrap();
        producer.set_wait(wait);
        consumer.set_wait(wait);
        let soon = || Deadline::after(Duration::from_millis(2));
        assert_eq!(consumer.read_blocking(&mut [0], soon()), Err(QueueError::Timeout), "{wait:?}");
        assert_eq!(consumer.wait(1, soon()), Err(QueueError::Timeout), "{wait:?}");
        producer.write(&[1]).unwrap();
        assert_eq!(producer.write_blocking(&[2], soon()), Err(QueueError::Timeout), "{wait:?}");
        assert_eq!(consumer.read_blocking(&mut [0], Deadline::at_ns(0)), Ok(()), "{wait:?}");
    }
}

#[test]
fn closing_ends_a_wait_on_either_end() {
    for wait in WAITS {
        let (mut producer, mut consumer) = pair(&QueueConfig::new(1, 1)).unwrap();
        producer.set_wait(wait);
        consumer.set_wait(wait);
        let closer = consumer.closer();
        let reader = thread::spawn(move || {
            let result = consumer.read_blocking(&mut [0], patience());
            (consumer, result)
        });
        closer.close();
        let (mut consumer, result) = reader.join().unwrap();
        assert_eq!(result, Err(QueueError::PeerDied), "{wait:?}");
        assert_eq!(consumer.wait(1, patience()), Err(QueueError::PeerDied), "{wait:?}");
        assert!(closer.is_closed());

        producer.write(&[7]).unwrap();
        let closer = producer.closer();
        let writer = thread::spawn(move || producer.write_blocking(&[8], patience()));
        closer.close();
        assert_eq!(writer.join().unwrap(), Err(QueueError::PeerDied), "{wait:?}");
        // What was readable before is still handed out.
        let mut item = [0];
        consumer.read_blocking(&mut item, patience()).unwrap();
        assert_eq!(item, [7]);
    }
}

#[test]
fn the_closed_bit_tells_a_peer_of_our_kind() {
    for wait in [Wait::Spin, Wait::Sleep, Wait::default()] {
        let (producer, mut consumer) = pair(&QueueConfig::new(1, 1)).unwrap();
        consumer.set_wait(wait);
        let reader = thread::spawn(move || consumer.wait(1, patience()));
        producer.closer().close(); // the other end's own flag: only the word reaches us
        assert_eq!(reader.join().unwrap(), Err(QueueError::PeerDied), "{wait:?}");
    }
}

#[test]
fn without_an_event_word_nothing_blocks() {
    let config = QueueConfig::new(1, 1).without_event_flag();
    let (mut producer, mut consumer) = pair(&config).unwrap();
    producer.write(&[1]).unwrap();
    consumer.read(&mut [0]).unwrap();
    assert_eq!(producer.write_blocking(&[1], patience()), Err(QueueError::NoEventFlag));
    assert_eq!(consumer.wait(1, patience()), Err(QueueError::NoEventFlag));
    assert_eq!(consumer.wake(), Err(QueueError::NoEventFlag));
}
