//! The unit-test checklist of `fmq.md` 8.1, line by line. A test named `nNN_...` is line NN; the table
//! in the README tells which lines are refused on purpose. Each runs with one memory and with a ring
//! memory of the caller.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::thread;
use std::time::Duration;

use burst_shm::Memory;
use fmq::{
    Consumer, Deadline, Descriptor, DescriptorError, EventError, EventFlag, MAX_RING_BYTES, Part,
    Producer, QueueConfig, QueueError, SYNCHRONIZED, UnsyncConsumer, UnsyncProducer,
};

use crate::common::libfmq::{duplicate, grantor};
use crate::common::{self, CAPACITY, both_layouts, both_unsync_layouts, patience, pattern};

/// The tests' own bits: libfmq's suite swaps the meaning of 1 and 2.
const TEST_NOT_EMPTY: u32 = 1;
const TEST_NOT_FULL: u32 = 2;

fn empty(wanted: u64) -> QueueError {
    QueueError::Empty { wanted, available: 0 }
}

fn refused(result: Result<impl Sized, QueueError>) -> DescriptorError {
    match result {
        Err(QueueError::Descriptor(reason)) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn n01_an_item_count_that_overflows_bytes_is_refused() {
    let (quantum, capacity) = (8, usize::MAX / 4);
    let expected =
        QueueError::BadConfig { capacity: capacity as u64, quantum: 8, max: MAX_RING_BYTES };
    assert_eq!(Producer::create(&QueueConfig::new(quantum, capacity)).unwrap_err(), expected);
    assert_eq!(UnsyncProducer::create(&QueueConfig::new(quantum, capacity)).unwrap_err(), expected);
}

/// Inverted on purpose: parts that overlap let a peer move counters by writing payload.
#[test]
fn n02_three_grantors_at_one_offset_are_refused() {
    let memory = Memory::create("sanity", 4096).unwrap();
    let grantors = vec![grantor(0, 4096); 3];
    let fds = vec![memory.into()];
    let descriptor = Descriptor { grantors, fds, quantum: 2, flags: SYNCHRONIZED };
    let expected =
        DescriptorError::Overlap { first: Part::ReadCounter, second: Part::WriteCounter };
    assert_eq!(refused(Consumer::attach(descriptor)), expected);
}

fn good_descriptor() -> Descriptor {
    common::libfmq::describe(64, 2, SYNCHRONIZED, true)
}

#[test]
fn n03_a_bad_fd_index_is_refused() {
    let mut descriptor = good_descriptor();
    descriptor.grantors[1].fd_index = 5;
    let expected = DescriptorError::FdIndex { part: Part::WriteCounter, fd_index: 5, fds: 1 };
    assert_eq!(refused(Consumer::attach(descriptor)), expected);
}

#[test]
fn n04_a_too_large_extent_is_refused() {
    let mut descriptor = good_descriptor();
    descriptor.grantors[2].extent = 0xffff_f041;
    let DescriptorError::Extent { part, extent, .. } = refused(Consumer::attach(descriptor)) else {
        panic!("another reason");
    };
    assert_eq!((part, extent), (Part::Ring, 0xffff_f041));
}

#[test]
fn n05_failed_constructions_leak_no_descriptor() {
    let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = count();
    for _ in 0..200 {
        assert!(Producer::create(&QueueConfig::new(1, usize::MAX - 4096)).is_err());
        let mut descriptor = good_descriptor();
        descriptor.grantors[2].offset = 4; // refused before the memories are opened
        assert!(Consumer::attach(descriptor).is_err());
        let mut descriptor = good_descriptor();
        descriptor.grantors[2].extent = 1 << 20; // refused after
        assert!(Consumer::attach(descriptor).is_err());
    }
    // Tests beside this one open and close descriptors of their own: far fewer than 400.
    assert!(count() < before + 200, "{before} descriptors became {}", count());
}

#[test]
fn n06_a_ring_beyond_a_signed_32_bit_length_is_refused() {
    let config = QueueConfig::new(2, isize::MAX.unsigned_abs() / 2 + 1);
    assert!(matches!(Producer::create(&config), Err(QueueError::BadConfig { .. })));
}

/// The signed wire form turns -10 into a huge unsigned number here.
#[test]
fn n07_a_negative_quantum_is_refused() {
    let mut descriptor = good_descriptor();
    descriptor.quantum = (-10_i32).cast_unsigned();
    let expected = DescriptorError::RingNotWhole { extent: 128, quantum: descriptor.quantum };
    assert_eq!(refused(Consumer::attach(descriptor)), expected);
}

#[test]
fn n08_a_negative_extent_offset_or_index_is_refused() {
    for index in 0..4 {
        let mut descriptor = good_descriptor();
        descriptor.grantors[index].extent = (-10_i64).cast_unsigned();
        let reason = refused(Consumer::attach(descriptor));
        assert!(matches!(reason, DescriptorError::Extent { .. }), "{reason}");
        let mut descriptor = good_descriptor();
        descriptor.grantors[index].offset = (-8_i32).cast_unsigned();
        let reason = refused(Consumer::attach(descriptor));
        assert!(matches!(reason, DescriptorError::OutsideMemory { .. }), "{reason}");
        let mut descriptor = good_descriptor();
        descriptor.grantors[index].fd_index = (-1_i32).cast_unsigned();
        let reason = refused(Consumer::attach(descriptor));
        assert!(matches!(reason, DescriptorError::FdIndex { .. }), "{reason}");
    }
}

#[test]
fn n09_items_of_another_size_are_refused() {
    let descriptor = good_descriptor();
    assert_eq!(descriptor.expect_quantum(2), Ok(()));
    let expected = DescriptorError::Quantum { quantum: 2, expected: 8 };
    assert_eq!(descriptor.expect_quantum(8), Err(expected));
    assert!(Consumer::attach(duplicate(&descriptor)).is_ok());
    let zero = Descriptor { quantum: 0, ..descriptor };
    assert_eq!(
        refused(Consumer::attach(zero)),
        DescriptorError::Quantum { quantum: 0, expected: 0 }
    );
}

/// There is one descriptor form here; a conversion is taking it apart and putting it together.
#[test]
fn n10_a_descriptor_put_together_again_leads_to_the_same_data() {
    for (mut producer, _) in both_layouts() {
        let Descriptor { grantors, fds, quantum, flags } = producer.descriptor().unwrap();
        let mut consumer = Consumer::attach(Descriptor { grantors, fds, quantum, flags }).unwrap();
        let sent = pattern(100, 10);
        producer.write(&sent).unwrap();
        let mut got = vec![0; 100];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);
    }
}

#[test]
fn n11_two_readers_of_an_unsynchronized_queue_see_the_same_data() {
    for (mut producer, mut first) in both_unsync_layouts() {
        let mut second = UnsyncConsumer::attach(first.descriptor().unwrap()).unwrap();
        let sent = pattern(100, 11);
        producer.write(&sent).unwrap();
        for reader in [&mut first, &mut second] {
            let mut got = vec![0; 100];
            reader.read(&mut got).unwrap();
            assert_eq!(got, sent);
        }
    }
}

#[test]
fn n12_a_descriptor_whose_first_fd_nobody_uses_attaches() {
    let mut descriptor = good_descriptor();
    for grantor in &mut descriptor.grantors {
        grantor.fd_index = 1;
    }
    descriptor.fds.insert(0, Memory::create("unused", 8).unwrap().into());
    let mut producer = Producer::attach(descriptor).unwrap();
    let again = producer.descriptor().unwrap();
    assert_eq!(again.fds.len(), 1, "what nobody uses is not passed on");
    let mut consumer = Consumer::attach(again).unwrap();
    producer.write(&[1, 2]).unwrap();
    let mut got = [0; 2];
    consumer.read(&mut got).unwrap();
    assert_eq!(got, [1, 2]);
}

#[test]
fn n13_a_descriptor_over_several_fds_keeps_them() {
    let [_, (producer, _)] = both_layouts();
    let descriptor = producer.descriptor().unwrap();
    assert_eq!(descriptor.fds.len(), 2);
    let indices: Vec<u32> = descriptor.grantors.iter().map(|g| g.fd_index).collect();
    assert_eq!(indices, [0, 0, 1, 0]);
    let consumer = Consumer::attach(descriptor).unwrap();
    assert_eq!(consumer.descriptor().unwrap().fds.len(), 2);
}

/// An owned descriptor is never a wrong number; what can be wrong is its kind.
#[test]
fn n14_a_ring_descriptor_that_is_no_memory_is_refused() {
    let mut descriptor = Producer::create_in(
        &QueueConfig::new(1, CAPACITY),
        Memory::create("ring", CAPACITY).unwrap(),
    )
    .unwrap()
    .descriptor()
    .unwrap();
    descriptor.fds[1] = std::fs::File::open("/dev/null").unwrap().into();
    assert!(matches!(Consumer::attach(descriptor), Err(QueueError::Memory(_))));
}

#[test]
fn n15_a_ring_memory_that_is_too_small_is_refused() {
    let ring = Memory::create("small", CAPACITY - 1).unwrap();
    let result = Producer::create_in(&QueueConfig::new(1, CAPACITY), ring);
    let expected =
        DescriptorError::OutsideMemory { part: Part::Ring, end: 2048, size: CAPACITY as u64 - 1 };
    assert_eq!(refused(result), expected);
}

#[test]
fn n16_a_larger_ring_memory_is_fine() {
    let ring = Memory::create("large", CAPACITY * 2).unwrap();
    let producer = Producer::create_in(&QueueConfig::new(1, CAPACITY), ring).unwrap();
    assert_eq!(producer.capacity(), CAPACITY);
}

#[test]
fn n17_a_separate_event_word_wakes_a_reader_that_waits_once() {
    for (mut producer, mut consumer) in both_layouts() {
        let (event, _memory) = EventFlag::create().unwrap();
        event.wake(TEST_NOT_FULL).unwrap();
        let theirs = event.clone();
        let reader = thread::spawn(move || {
            let taken = loop {
                match theirs.wait_once(TEST_NOT_EMPTY, patience()) {
                    Err(EventError::Again | EventError::Interrupted) => {}
                    other => break other,
                }
            };
            assert_eq!(taken, Ok(TEST_NOT_EMPTY));
            let mut got = vec![0; 64];
            consumer.read(&mut got).unwrap();
            theirs.wake(TEST_NOT_FULL).unwrap();
            got
        });
        producer.write(&pattern(64, 17)).unwrap();
        event.wake(TEST_NOT_EMPTY).unwrap();
        assert_eq!(reader.join().unwrap(), pattern(64, 17));
        assert_eq!(event.wait(TEST_NOT_FULL, patience()), Ok(TEST_NOT_FULL));
    }
}

#[test]
fn n18_a_wait_without_a_wake_times_out() {
    let (event, _memory) = EventFlag::create().unwrap();
    event.wake(TEST_NOT_FULL).unwrap();
    let soon = Deadline::after(Duration::from_millis(5));
    assert_eq!(event.wait(TEST_NOT_EMPTY, soon), Err(EventError::Timeout));
    assert_eq!(event.wait_once(TEST_NOT_EMPTY, soon), Err(EventError::Timeout));
    assert_eq!(event.wait(TEST_NOT_FULL, soon), Ok(TEST_NOT_FULL), "bits are sticky");
    assert_eq!(event.wait(0, soon), Err(EventError::BadBits { bits: 0 }));
    assert_eq!(event.wake(0), Ok(()));
}

/// Bits of the caller's choice are passed to the blocking calls, on the queue's own word.
#[test]
fn n19_blocking_calls_take_bits_of_the_callers_choice() {
    for (mut producer, mut consumer) in both_layouts() {
        let reader = thread::spawn(move || {
            let mut got = vec![0; 64];
            consumer
                .read_blocking_bits(&mut got, TEST_NOT_EMPTY, TEST_NOT_FULL, patience())
                .unwrap();
            got
        });
        let sent = pattern(64, 19);
        producer.write_blocking_bits(&sent, TEST_NOT_FULL, TEST_NOT_EMPTY, patience()).unwrap();
        assert_eq!(reader.join().unwrap(), sent);
    }
    let [(mut producer, _), _] = both_layouts();
    for bits in [0, 1 << 31] {
        let result = producer.write_blocking_bits(&[1], bits, 1, patience());
        assert_eq!(result, Err(QueueError::BadBits { bits }));
    }
}

#[test]
fn n20_the_event_word_of_an_odd_queue_is_aligned() {
    let (mut producer, mut consumer) = fmq::pair(&QueueConfig::new(1, 2049)).unwrap();
    producer.write_blocking(&pattern(64, 20), patience()).unwrap();
    let mut got = [0; 64];
    consumer.read_blocking(&mut got, patience()).unwrap();
    assert_eq!(&got[..], pattern(64, 20));
    let foreign = common::libfmq::describe(2049, 1, SYNCHRONIZED, true);
    Producer::attach(foreign).unwrap().write_blocking(&pattern(64, 20), patience()).unwrap();
}

#[test]
fn n21_to_n23_small_inputs_by_copy_by_claim_and_by_slot() {
    for (mut producer, mut consumer) in both_layouts() {
        let sent = pattern(16, 21);
        let mut got = [0; 16];
        producer.write(&sent).unwrap();
        consumer.read(&mut got).unwrap();
        assert_eq!(&got[..], sent);

        let mut claim = producer.claim(16).unwrap();
        claim.copy_in(0, &sent).unwrap();
        claim.commit(16).unwrap();
        let claim = consumer.peek(16).unwrap();
        got = [0; 16];
        claim.copy_out(0, &mut got).unwrap();
        claim.commit(16).unwrap();
        assert_eq!(&got[..], sent);

        let mut claim = producer.claim(16).unwrap();
        assert_eq!(claim.piece_lens().iter().sum::<usize>(), 16);
        for (i, byte) in sent.iter().enumerate() {
            claim.copy_in(i, &[*byte]).unwrap();
        }
        claim.commit(16).unwrap();
        let claim = consumer.peek(16).unwrap();
        for (i, byte) in sent.iter().enumerate() {
            let mut one = [0];
            claim.copy_out(i, &mut one).unwrap();
            assert_eq!(one, [*byte]);
        }
        claim.commit(16).unwrap();
        assert_eq!(consumer.available_to_read(), Ok(0));
    }
}

#[test]
fn n24_and_n25_reading_an_empty_queue_fails() {
    for (_producer, mut consumer) in both_layouts() {
        assert_eq!(consumer.available_to_read(), Ok(0));
        assert_eq!(consumer.read(&mut [0; 2]), Err(empty(2)));
        assert_eq!(consumer.peek(2).unwrap_err(), empty(2));
    }
}

#[test]
fn n26_and_n27_writing_a_full_queue_fails() {
    for (mut producer, mut consumer) in both_layouts() {
        let sent = pattern(CAPACITY, 26);
        producer.write(&sent).unwrap();
        assert_eq!(producer.available_to_write(), Ok(0));
        let full = QueueError::Full { wanted: 1, free: 0 };
        assert_eq!(producer.write(&[1]), Err(full));
        assert_eq!(producer.claim(1).unwrap_err(), full);
        let mut got = vec![0; CAPACITY];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);
    }
}

#[test]
fn n28_to_n31_large_inputs() {
    for (mut producer, mut consumer) in both_layouts() {
        let too_large = QueueError::TooLarge { wanted: 4096, limit: CAPACITY as u64 };
        assert_eq!(producer.write(&[0; 4096]), Err(too_large));
        assert_eq!(producer.claim(4096).unwrap_err(), too_large);
        assert_eq!(consumer.available_to_read(), Ok(0));
        assert_eq!(consumer.read(&mut [0; 4096]), Err(too_large));

        let sent = pattern(CAPACITY, 28);
        producer.write(&sent).unwrap();
        assert_eq!(producer.write(&[0]), Err(QueueError::Full { wanted: 1, free: 0 }));
        let mut got = vec![0; CAPACITY];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);
    }
}

#[test]
fn n32_one_write_and_many_reads() {
    for (mut producer, mut consumer) in both_layouts() {
        let sent = pattern(CAPACITY, 32);
        producer.write(&sent).unwrap();
        for chunk in sent.chunks(64) {
            let mut got = vec![0; chunk.len()];
            consumer.read(&mut got).unwrap();
            assert_eq!(got, chunk);
        }
        assert_eq!(consumer.available_to_read(), Ok(0));
    }
}

#[test]
fn n33_many_writes_and_one_read() {
    for (mut producer, mut consumer) in both_layouts() {
        let sent = pattern(CAPACITY, 33);
        for chunk in sent.chunks(64) {
            producer.write(chunk).unwrap();
        }
        let mut got = vec![0; CAPACITY];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);
    }
}

#[test]
fn n34_and_n35_a_transfer_crosses_the_end_of_the_ring() {
    for (mut producer, mut consumer) in both_layouts() {
        let mut got = vec![0; CAPACITY];
        producer.write(&pattern(CAPACITY - 1, 0)).unwrap();
        consumer.read(&mut got[1..]).unwrap();
        let sent = pattern(CAPACITY, 34);
        producer.write(&sent).unwrap();
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);

        let sent = pattern(CAPACITY, 35);
        let mut claim = producer.claim(CAPACITY).unwrap();
        assert_eq!(claim.piece_lens(), [1, CAPACITY - 1]);
        claim.copy_in(0, &sent).unwrap();
        claim.commit(CAPACITY).unwrap();
        let claim = consumer.peek(CAPACITY).unwrap();
        assert_eq!(claim.piece_lens(), [1, CAPACITY - 1]);
        claim.copy_out(0, &mut got).unwrap();
        claim.commit(CAPACITY).unwrap();
        assert_eq!(got, sent);
    }
}

#[test]
fn n36_small_input_unsynchronized() {
    for (mut producer, mut consumer) in both_unsync_layouts() {
        producer.write(&pattern(16, 36)).unwrap();
        let mut got = [0; 16];
        consumer.read(&mut got).unwrap();
        assert_eq!(&got[..], pattern(16, 36));
    }
}

#[test]
fn n37_reading_an_empty_unsynchronized_queue_fails() {
    for (_producer, mut consumer) in both_unsync_layouts() {
        assert_eq!(consumer.available_to_read(), Ok(0));
        assert_eq!(consumer.read(&mut [0; 2]), Err(empty(2)));
    }
}

/// The writer has no `available_to_write`: it never waits, so the number would mean nothing.
#[test]
fn n38_and_n39_writing_over_a_full_queue_succeeds_and_the_reader_notices_once() {
    for (mut producer, mut consumer) in both_unsync_layouts() {
        producer.write(&pattern(CAPACITY, 38)).unwrap();
        producer.write(&[1]).unwrap();
        let overrun = QueueError::Overrun { lost: CAPACITY as u64 + 1 };
        assert_eq!(consumer.read(&mut [0]), Err(overrun));
        assert_eq!(consumer.read(&mut [0]), Err(empty(1)));

        let mut claim = producer.claim(CAPACITY).unwrap();
        claim.copy_in(0, &pattern(CAPACITY, 39)).unwrap();
        claim.commit(CAPACITY).unwrap();
        let mut claim = producer.claim(1).unwrap();
        claim.copy_in(0, &[1]).unwrap();
        claim.commit(1).unwrap();
        assert_eq!(consumer.read(&mut [0]), Err(overrun));
        assert_eq!(consumer.read(&mut [0]), Err(empty(1)));
    }
}

#[test]
fn n40_to_n42_large_inputs_unsynchronized() {
    for (mut producer, mut consumer) in both_unsync_layouts() {
        let too_large = QueueError::TooLarge { wanted: 4096, limit: CAPACITY as u64 };
        assert_eq!(producer.write(&[0; 4096]), Err(too_large));
        assert_eq!(consumer.read(&mut [0; 4096]), Err(too_large));
        assert_eq!(consumer.available_to_read(), Ok(0));

        let sent = pattern(CAPACITY, 40);
        producer.write(&sent).unwrap();
        let mut got = vec![0; CAPACITY];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);

        producer.write(&sent).unwrap();
        producer.write(&[1]).unwrap();
        assert!(matches!(consumer.read(&mut got), Err(QueueError::Overrun { .. })));
    }
}

#[test]
fn n43_and_n44_many_reads_and_many_writes_unsynchronized() {
    for (mut producer, mut consumer) in both_unsync_layouts() {
        let sent = pattern(CAPACITY, 43);
        producer.write(&sent).unwrap();
        for chunk in sent.chunks(64) {
            let mut got = vec![0; 64];
            consumer.read(&mut got).unwrap();
            assert_eq!(got, chunk);
        }
        for chunk in sent.chunks(64) {
            producer.write(chunk).unwrap();
        }
        let mut got = vec![0; CAPACITY];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);
    }
}

#[test]
fn n45_a_transfer_crosses_the_end_of_an_unsynchronized_ring() {
    for (mut producer, mut consumer) in both_unsync_layouts() {
        let mut got = vec![0; CAPACITY];
        producer.write(&pattern(CAPACITY - 1, 0)).unwrap();
        consumer.read(&mut got[1..]).unwrap();
        let sent = pattern(CAPACITY, 45);
        producer.write(&sent).unwrap();
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);
    }
}
