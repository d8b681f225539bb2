//! The ends against a plain model: a `VecDeque` of bytes for the synchronized flavour, a `Vec` of all
//! items ever written for the other. Rings of any size, counters that start anywhere, random steps.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_shm::{Mapping, Memory, Shared};
use fmq::{Consumer, Descriptor, Producer, QueueError, SYNCHRONIZED, UNSYNCHRONIZED};
use fmq::{QueueConfig, UnsyncConsumer, UnsyncProducer};
use proptest::prelude::*;

use crate::common;
use crate::common::libfmq::{describe, duplicate};

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Claim { claimed: usize, committed: usize },
    Read(usize),
    ReadDeferred(usize),
    Release,
    Peek { peeked: usize, committed: usize },
    Reattach,
}

fn step() -> impl Strategy<Value = Step> {
    let items = 0..12_usize;
    prop_oneof![
        3 => items.clone().prop_map(Step::Write),
        2 => (items.clone(), items.clone()).prop_map(|(claimed, committed)| Step::Claim {
            claimed,
            committed
        }),
        3 => items.clone().prop_map(Step::Read),
        2 => items.clone().prop_map(Step::ReadDeferred),
        1 => Just(Step::Release),
        2 => (items.clone(), items).prop_map(|(peeked, committed)| Step::Peek {
            peeked,
            committed
        }),
        1 => Just(Step::Reattach),
    ]
}

/// Both counters of a queue in libfmq's layout.
fn set_counters(descriptor: &Descriptor, value: u64) {
    let memory = Memory::from_fd(descriptor.fds[0].try_clone().unwrap()).unwrap();
    let mapping = Arc::new(Mapping::map(&memory).unwrap());
    for offset in [0, 8] {
        let word: Shared<AtomicU64> = Shared::new(Arc::clone(&mapping), offset).unwrap();
        word.store(value, Ordering::Release);
    }
}

/// What the queue should hold: bytes not read, and bytes read whose room was not given back.
struct Model {
    bytes: VecDeque<u8>,
    kept: usize,
    capacity: usize,
    next: u8,
}

impl Model {
    fn fresh(&mut self, len: usize) -> Vec<u8> {
        (0..len)
            .map(|_| {
                self.next = self.next.wrapping_add(1);
                self.next
            })
            .collect()
    }

    fn fits(&self, len: usize) -> bool {
        self.bytes.len() + self.kept + len <= self.capacity
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        self.bytes.drain(..len).collect()
    }
}

/// The error that a request for `len` bytes deserves, if it deserves one.
fn expect_error(result: &Result<(), QueueError>, fits: bool, len: usize, capacity: usize) {
    match result {
        Ok(()) => assert!(fits, "succeeded though it did not fit"),
        Err(QueueError::TooLarge { .. }) => assert!(len > capacity),
        Err(QueueError::Full { .. } | QueueError::Empty { .. }) => {
            assert!(!fits && len <= capacity)
        }
        Err(other) => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn synchronized_ends_behave_like_a_queue_of_bytes(
        quantum in 1..40_usize,
        capacity in 1..11_usize,
        // Start anywhere, close to 2^64 as well, with room for what the steps can write.
        start in prop_oneof![Just(0_u64), any::<u64>(), (2_000_000..3_000_000_u64).prop_map(|n| u64::MAX - n)],
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let start = start.min(u64::MAX - 2_000_000) / quantum as u64 * quantum as u64;
        let items = capacity as u64;
        let descriptor = describe(items, u32::try_from(quantum).unwrap(), SYNCHRONIZED, true);
        set_counters(&descriptor, start);
        let mut producer = Producer::attach(duplicate(&descriptor)).unwrap();
        let mut consumer = Consumer::attach(duplicate(&descriptor)).unwrap();
        let bytes = capacity * quantum;
        let mut model = Model { bytes: VecDeque::new(), kept: 0, capacity: bytes, next: 0 };
        for step in steps {
            match step {
                Step::Write(n) => {
                    let sent = model.fresh(n * quantum);
                    let result = producer.write(&sent);
                    let fits = model.fits(sent.len());
                    expect_error(&result, fits, sent.len(), bytes);
                    if fits { model.bytes.extend(sent); }
                }
                Step::Claim { claimed, committed } => {
                    let fits = model.fits(claimed * quantum);
                    let sent = model.fresh(claimed * quantum);
                    match producer.claim(claimed) {
                        Err(error) => expect_error(&Err(error), fits, sent.len(), bytes),
                        Ok(mut claim) => {
                            prop_assert!(fits);
                            // In odd pieces, so that some cross the end of the ring.
                            for (i, piece) in sent.chunks(7).enumerate() {
                                claim.copy_in(i * 7, piece).unwrap();
                            }
                            let result = claim.commit(committed);
                            if committed <= claimed {
                                prop_assert_eq!(result, Ok(()));
                                model.bytes.extend(&sent[..committed * quantum]);
                            } else {
                                let too_large = matches!(result, Err(QueueError::TooLarge { .. }));
                                prop_assert!(too_large);
                            }
                        }
                    }
                }
                Step::Read(n) | Step::ReadDeferred(n) => {
                    let len = n * quantum;
                    let mut got = vec![0; len];
                    let deferred = matches!(step, Step::ReadDeferred(_));
                    let result = if deferred {
                        consumer.read_deferred(&mut got)
                    } else {
                        consumer.read(&mut got)
                    };
                    let there = model.bytes.len() >= len;
                    expect_error(&result, there, len, bytes);
                    if there {
                        prop_assert_eq!(got, model.take(len));
                        model.kept = if deferred { model.kept + len } else { 0 };
                    }
                }
                Step::Release => {
                    consumer.release().unwrap();
                    model.kept = 0;
                }
                Step::Peek { peeked, committed } => {
                    let len = peeked * quantum;
                    let there = model.bytes.len() >= len;
                    match consumer.peek(peeked) {
                        Err(error) => expect_error(&Err(error), there, len, bytes),
                        Ok(claim) => {
                            prop_assert!(there);
                            let mut got = vec![0; len];
                            for (i, piece) in got.chunks_mut(5).enumerate() {
                                claim.copy_out(i * 5, piece).unwrap();
                            }
                            let front: Vec<u8> = model.bytes.iter().take(len).copied().collect();
                            prop_assert_eq!(got, front);
                            let result = claim.commit(committed);
                            prop_assert_eq!(result.is_ok(), committed <= peeked);
                            if committed <= peeked {
                                model.take(committed * quantum);
                                model.kept = 0;
                            }
                        }
                    }
                }
                Step::Reattach => {
                    consumer.release().unwrap();
                    model.kept = 0;
                    producer = Producer::attach(duplicate(&descriptor)).unwrap();
                    consumer = Consumer::attach(duplicate(&descriptor)).unwrap();
                }
            }
            let there = model.bytes.len() / quantum;
            prop_assert_eq!(consumer.available_to_read(), Ok(there));
            let free = (bytes - model.bytes.len() - model.kept) / quantum;
            prop_assert_eq!(producer.available_to_write(), Ok(free));
        }
    }

    #[test]
    fn unsynchronized_readers_get_the_latest_items_or_an_overrun(
        quantum in 1..20_usize,
        capacity in 1..9_usize,
        steps in prop::collection::vec((any::<bool>(), 0..10_usize), 0..120),
    ) {
        let mut producer = UnsyncProducer::create(&QueueConfig::new(quantum, capacity)).unwrap();
        let mut consumer = UnsyncConsumer::attach(producer.descriptor().unwrap()).unwrap();
        let mut all: Vec<u8> = Vec::new();
        let mut read = 0;
        for (writes, n) in steps {
            let len = n * quantum;
            if writes {
                let sent: Vec<u8> = (0..len).map(|i| ((all.len() + i) % 251) as u8).collect();
                let result = producer.write(&sent);
                prop_assert_eq!(result.is_ok(), n <= capacity);
                if n <= capacity { all.extend(sent); }
                continue;
            }
            let mut got = vec![0; len];
            let behind = all.len() - read;
            match consumer.read(&mut got) {
                Ok(()) => {
                    prop_assert_eq!(&got[..], &all[read..read + len]);
                    prop_assert!(behind <= capacity * quantum || n == 0);
                    read += len;
                }
                Err(QueueError::Overrun { lost }) => {
                    prop_assert!(behind > capacity * quantum && lost == behind as u64);
                    read = all.len();
                }
                Err(QueueError::Empty { .. }) => prop_assert!(behind < len),
                Err(QueueError::TooLarge { .. }) => prop_assert!(n > capacity),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }

    /// Any counters whatever: a typed answer, never a panic, never more than the capacity.
    #[test]
    fn any_counters_give_a_typed_answer(
        quantum in 1..40_u32,
        capacity in 1..11_u64,
        read: u64,
        write: u64,
        near in any::<bool>(),
        later: u64,
    ) {
        let write = if near { read.wrapping_add(write % (capacity * u64::from(quantum) + 2)) } else { write };
        for flags in [SYNCHRONIZED, UNSYNCHRONIZED] {
            let descriptor = describe(capacity, quantum, flags, true);
            set_counters(&descriptor, read);
            let theirs = common::libfmq::Libfmq::attach(duplicate(&descriptor), false);
            theirs.words().1.store(write, Ordering::Release);
            let mut item = vec![0; quantum as usize];
            if flags == SYNCHRONIZED {
                let legal = write.checked_sub(read).is_some_and(|n| {
                    n <= capacity * u64::from(quantum) && n % u64::from(quantum) == 0
                }) && read % u64::from(quantum) == 0;
                let attached = Consumer::attach(duplicate(&descriptor));
                prop_assert_eq!(attached.is_ok(), legal);
                if let (Ok(mut consumer), Ok(mut producer)) = (attached, Producer::attach(descriptor)) {
                    theirs.words().1.store(later, Ordering::Release);
                    theirs.words().0.store(later, Ordering::Release);
                    let _ = consumer.read(&mut item);
                    let _ = producer.write(&item);
                    prop_assert!(consumer.available_to_read().unwrap_or(0) as u64 <= capacity);
                    prop_assert!(producer.available_to_write().unwrap_or(0) as u64 <= capacity);
                }
            } else {
                let mut consumer = UnsyncConsumer::attach(descriptor).unwrap();
                let _ = consumer.read(&mut item);
                theirs.words().1.store(later, Ordering::Release);
                let _ = consumer.read(&mut item);
                prop_assert!(consumer.available_to_read().unwrap_or(0) as u64 <= capacity);
            }
        }
    }

    /// Descriptors with arbitrary numbers: refused or attached, never a panic or a signal.
    #[test]
    fn any_descriptor_gives_a_typed_answer(
        numbers in prop::collection::vec((0..4_u32, 0..700_u32, 0..700_u64, any::<bool>()), 0..7),
        quantum in 0..40_u32,
        flags in 0..4_u32,
    ) {
        let mut descriptor = describe(8, 24, SYNCHRONIZED, true);
        descriptor.fds.push(Memory::create("second", 512).unwrap().into());
        descriptor.grantors = numbers
            .into_iter()
            .map(|(fd_index, offset, extent, aligned)| fmq::Grantor {
                flags: 0,
                fd_index,
                offset: if aligned { offset / 8 * 8 } else { offset },
                extent,
            })
            .collect();
        (descriptor.quantum, descriptor.flags) = (quantum, flags);
        if let Ok(mut producer) = Producer::attach(duplicate(&descriptor)) {
            let item = vec![7; producer.quantum()];
            prop_assert_eq!(producer.write(&item), Ok(()));
            let mut consumer = Consumer::attach(descriptor).unwrap();
            let mut got = vec![0; item.len()];
            consumer.read(&mut got).unwrap();
            prop_assert_eq!(got, item);
        } else if let Ok(mut consumer) = UnsyncConsumer::attach(descriptor) {
            let mut item = vec![0; consumer.quantum()];
            let empty = matches!(consumer.read(&mut item), Err(QueueError::Empty { .. }));
            prop_assert!(empty);
        }
    }
}
