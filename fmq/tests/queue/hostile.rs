//! An attacker process has every shared word under its control and writes random values into them,
//! while this process reads and writes with deadlines. Only typed errors may come of it: no panic, no
//! hang, no access outside the mapping (which would be a signal).

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use burst_shm::{Mapping, Memory, Shared};
use fmq::clock::now_ns;
use fmq::{Consumer, Deadline, Producer, QueueConfig, QueueError, UnsyncConsumer, UnsyncProducer};
use fmq::{Wait, WaitSet};

use crate::common;
use crate::common::process::{Peer, Socket};

/// Enough randomness for an attacker, and repeatable.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A counter that might just pass for a legal one, or anything.
fn counter(random: &mut Random, near: u64) -> u64 {
    match random.next() % 8 {
        0 => random.next(),
        1 => u64::MAX - random.next() % 64,
        2 => near.wrapping_sub(random.next() % 8 * 24),
        3 => near.wrapping_add(random.next() % 300),
        _ => near.wrapping_add(random.next() % 10 * 24),
    }
}

#[test]
#[ignore = "the attacker process of the tests beside it, started by them"]
fn attacker() {
    let socket = Socket::of_child();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while let Some((_, Some(queue))) = socket.receive() {
        let memory = Memory::from_fd(queue.fds[0].try_clone().unwrap()).unwrap();
        let mapping = Arc::new(Mapping::map(&memory).unwrap());
        let offset = |i: usize| queue.grantors[i].offset as usize;
        let word = |i| Shared::<AtomicU64>::new(Arc::clone(&mapping), offset(i)).unwrap();
        let (read, write) = (word(0), word(1));
        let event: Shared<AtomicU32> = Shared::new(Arc::clone(&mapping), offset(3)).unwrap();
        let intent = (queue.grantors.len() > 4).then(|| word(4));
        let ring = mapping.region(offset(2), queue.grantors[2].extent as usize).unwrap();
        socket.send("at it", None);
        for _ in 0..20_000 {
            let near = [&read, &write][random.next() as usize % 2].load(Ordering::Relaxed);
            match random.next() % 6 {
                0 => read.store(counter(&mut random, near), Ordering::Release),
                1 => write.store(counter(&mut random, near), Ordering::Release),
                2 => event.store(random.next() as u32, Ordering::Release),
                3 => drop(event.fetch_xor(1 << (random.next() % 32), Ordering::AcqRel)),
                4 => ring
                    .copy_in(random.next() as usize % 150, &random.next().to_ne_bytes())
                    .unwrap(),
                _ => {
                    if let Some(intent) = &intent {
                        intent.store(counter(&mut random, near), Ordering::Release);
                    }
                    // Wakes for no reason.
                    let bits = std::num::NonZeroU32::MAX;
                    fmq::futex::wake(&event, bits).unwrap();
                }
            }
        }
    }
}

const QUANTUM: usize = 24;
const CONFIG: QueueConfig = QueueConfig::new(QUANTUM, 7);
const WAITS: [Wait; 3] = [Wait::Spin, Wait::Adaptive { budget_ns: Some(1000) }, Wait::Sleep];

/// How long a call with a deadline may take: it must not hang, and the machine may be busy.
const HANG: u64 = 30_000_000_000;

fn soon() -> Deadline {
    Deadline::after(Duration::from_micros(200))
}

/// What a hostile peer may cause; true when the end is finished.
fn is_final(result: Result<(), QueueError>) -> bool {
    match result {
        Ok(())
        | Err(
            QueueError::Full { .. }
            | QueueError::Empty { .. }
            | QueueError::Timeout
            | QueueError::Overrun { .. },
        ) => false,
        Err(QueueError::Corrupt { .. } | QueueError::PeerDied) => true,
        Err(other) => panic!("not an answer to a hostile peer: {other}"),
    }
}

/// Runs `step` on the fresh ends that `open` makes until it says that they are finished, against a
/// new attack each time.
fn under_attack<E>(
    mut open: impl FnMut(usize) -> (E, fmq::Descriptor),
    mut step: impl FnMut(&mut E, usize) -> Result<(), QueueError>,
) {
    let peer = Peer::start("hostile::attacker");
    let mut finished = 0;
    let begun = now_ns();
    // On a busy machine the attacker may come to its turn after each of our short rounds is over:
    // then there are more rounds than 400, until it has reached us once.
    for round in 0.. {
        if round >= 400 && (finished > 0 || now_ns() - begun > HANG) {
            break;
        }
        let (mut end, descriptor) = open(round);
        peer.socket.send("attack", Some(&descriptor));
        assert_eq!(peer.answer(), "at it");
        for n in 0..100 {
            let start = now_ns();
            let result = step(&mut end, n);
            assert!(now_ns() - start < HANG, "it hung");
            if is_final(result) {
                finished += 1;
                break;
            }
        }
    }
    assert!(finished > 0, "the attack did not reach us");
}

#[test]
fn a_hostile_reader_cannot_hurt_a_writer() {
    under_attack(
        |round| {
            let mut end = Producer::create(&CONFIG).unwrap();
            end.set_wait(WAITS[round % 3]);
            let descriptor = end.descriptor().unwrap();
            (end, descriptor)
        },
        |end, n| match n % 4 {
            0 => end.write(&[1; 2 * QUANTUM]),
            1 => end.write_blocking(&[1; QUANTUM], soon()),
            2 => {
                assert!(end.available_to_write()? <= 7);
                end.wait(3, soon()).map(|free| assert!((3..=7).contains(&free)))
            }
            _ => {
                let mut claim = end.claim(5)?;
                claim.copy_in(3, &[2; 100])?;
                claim.commit(4)
            }
        },
    );
}

#[test]
fn a_hostile_writer_cannot_hurt_a_reader() {
    under_attack(
        |round| {
            let mut end = Consumer::create(&CONFIG).unwrap();
            end.set_wait(WAITS[round % 3]);
            let descriptor = end.descriptor().unwrap();
            (end, descriptor)
        },
        |end, n| match n % 4 {
            0 => end.read_deferred(&mut [0; 2 * QUANTUM]),
            1 => end.read_blocking(&mut [0; QUANTUM], soon()),
            2 => {
                assert!(end.available_to_read()? <= 7);
                end.wait(3, soon()).map(|there| assert!((3..=7).contains(&there)))
            }
            _ => {
                let claim = end.peek(5)?;
                claim.copy_out(3, &mut [0; 100])?;
                claim.commit(4)
            }
        },
    );
}

#[test]
fn a_hostile_writer_cannot_hurt_an_unsynchronized_reader() {
    under_attack(
        |_| {
            let producer = UnsyncProducer::create(&CONFIG).unwrap();
            let end = UnsyncConsumer::attach(producer.descriptor().unwrap()).unwrap();
            (end, producer.descriptor().unwrap())
        },
        |end, n| match n % 3 {
            0 => end.read(&mut [0; 2 * QUANTUM]),
            1 => end.available_to_read().map(|items| assert!(items <= 7)),
            _ => {
                let claim = end.peek(5)?;
                claim.copy_out(3, &mut [0; 100])?;
                claim.commit(4)
            }
        },
    );
}

#[test]
fn a_hostile_writer_cannot_hurt_a_wait_set() {
    under_attack(
        |_| {
            let end = (Consumer::create(&CONFIG).unwrap(), WaitSet::new(Wait::Sleep));
            let descriptor = end.0.descriptor().unwrap();
            (end, descriptor)
        },
        |(consumer, set), _| {
            set.wait(&mut [consumer], soon())?.items?;
            consumer.read(&mut [0; QUANTUM])
        },
    );
}

/// The peer wipes the word all the time, our own wake-ups included: closing ends the wait all the
/// same, and closing returns when the end is awake.
#[test]
fn a_peer_that_wipes_the_event_word_cannot_keep_a_closed_end_waiting() {
    for _ in 0..200 {
        let mut consumer = Consumer::create(&CONFIG).unwrap();
        consumer.set_wait(Wait::Sleep);
        let descriptor = consumer.descriptor().unwrap();
        let memory = Memory::from_fd(descriptor.fds[0].try_clone().unwrap()).unwrap();
        let mapping = Arc::new(Mapping::map(&memory).unwrap());
        let event: Shared<AtomicU32> =
            Shared::new(mapping, descriptor.grantors[3].offset as usize).unwrap();
        let closer = consumer.closer();
        let over = Arc::new(AtomicBool::new(false));
        let attacker = std::thread::spawn({
            let over = Arc::clone(&over);
            move || {
                while !over.load(Ordering::Relaxed) {
                    event.store(0, Ordering::Release);
                }
            }
        });
        let reader = std::thread::spawn(move || consumer.wait(1, common::patience()));
        closer.close();
        assert_eq!(reader.join().unwrap(), Err(QueueError::PeerDied));
        over.store(true, Ordering::Relaxed);
        attacker.join().unwrap();
    }
}
