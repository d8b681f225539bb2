//! One test per hole of `fmq.md` 7, named after it: those that libfmq closed, and those that were
//! still open in the version studied.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_shm::{Errno, Mapping, Memory, Shared, ShmError};
use fmq::{
    Consumer, Descriptor, DescriptorError, Grantor, Part, Producer, QueueConfig, QueueError,
    SYNCHRONIZED, UNSYNCHRONIZED, UnsyncConsumer, UnsyncProducer,
};

use crate::common::libfmq::{Libfmq, describe, duplicate, grantor};
use crate::common::patience;

const ITEMS: u64 = 8;
const QUANTUM: u32 = 24;
const RING: u64 = ITEMS * 24;

fn good() -> Descriptor {
    describe(ITEMS, QUANTUM, SYNCHRONIZED, true)
}

/// Both ends refuse it, for the same reason.
fn refused(descriptor: &Descriptor) -> DescriptorError {
    let reasons = [
        Consumer::attach(duplicate(descriptor)).map(drop),
        Producer::attach(duplicate(descriptor)).map(drop),
    ];
    assert_eq!(reasons[0], reasons[1]);
    match reasons[0] {
        Err(QueueError::Descriptor(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// 2017. Unsynchronized ends have no blocking calls at all; this is the other half.
#[test]
fn blocking_needs_an_event_word() {
    let mut consumer = Consumer::attach(describe(8, 24, SYNCHRONIZED, false)).unwrap();
    assert_eq!(consumer.wait(1, patience()), Err(QueueError::NoEventFlag));
}

/// 2021, bug 184963385.
#[test]
fn misaligned_counters_cannot_place_an_item_across_the_end_of_the_ring() {
    let descriptor = good();
    let theirs = Libfmq::attach(duplicate(&descriptor), false);
    let (read, write) = theirs.words();
    let mut consumer = Consumer::attach(duplicate(&descriptor)).unwrap();
    write.store(RING - 1, Ordering::Release);
    let corrupt = QueueError::Corrupt { read: 0, write: RING - 1, capacity: RING };
    assert_eq!(consumer.read(&mut [0; 24]), Err(corrupt));
    assert_eq!(consumer.peek(1).unwrap_err(), corrupt);
    write.store(0, Ordering::Release);
    assert_eq!(consumer.available_to_read(), Err(corrupt), "final");

    let mut producer = Producer::attach(duplicate(&descriptor)).unwrap();
    producer.write(&[0; 24 * 8]).unwrap();
    read.store(1, Ordering::Release);
    let corrupt = QueueError::Corrupt { read: 1, write: RING, capacity: RING };
    assert_eq!(producer.write(&[0; 24]), Err(corrupt));
    assert_eq!(Consumer::attach(descriptor).unwrap_err(), corrupt, "on attach as well");
}

/// 2022-06.
#[test]
fn grantors_are_counted_before_they_are_used() {
    for count in 0..3 {
        let mut descriptor = good();
        descriptor.grantors.truncate(count);
        assert_eq!(refused(&descriptor), DescriptorError::TooFewGrantors { grantors: count });
    }
    let mut descriptor = good();
    descriptor.grantors.resize(17, grantor(0, 8));
    assert_eq!(refused(&descriptor), DescriptorError::TooMany { count: 17, max: 16 });
    descriptor.grantors.truncate(16);
    assert!(Consumer::attach(descriptor).is_ok(), "what comes after the known ones is ignored");
}

/// 2022-09.
#[test]
fn malformed_grantors_are_refused() {
    for index in 0..4 {
        let mut descriptor = good();
        descriptor.grantors[index].offset += 4;
        let reason = refused(&descriptor);
        assert!(matches!(reason, DescriptorError::Misaligned { .. }), "{reason}");
        let mut descriptor = good();
        descriptor.grantors[index].extent = u64::MAX - 8;
        let reason = refused(&descriptor);
        assert!(matches!(reason, DescriptorError::Extent { .. }), "{reason}");
    }
}

/// 2022-10.
#[test]
fn zero_sized_queues_are_refused() {
    let mut descriptor = good();
    descriptor.grantors[2].extent = 0;
    let reason = refused(&descriptor);
    assert!(matches!(reason, DescriptorError::Extent { part: Part::Ring, extent: 0, .. }));
    assert!(Producer::create(&QueueConfig::new(24, 0)).is_err());
    assert!(Producer::create(&QueueConfig::new(0, 24)).is_err());
}

/// 2022. A queue of the wrong flavour is never half made, so there is nothing to destroy wrongly.
#[test]
fn a_queue_of_another_flavour_is_refused() {
    let flavour = DescriptorError::Flavour { flags: UNSYNCHRONIZED, expected: SYNCHRONIZED };
    assert_eq!(refused(&describe(ITEMS, QUANTUM, UNSYNCHRONIZED, true)), flavour);
    let flavour = DescriptorError::Flavour { flags: 0, expected: SYNCHRONIZED };
    assert_eq!(refused(&describe(ITEMS, QUANTUM, 0, true)), flavour);
    let expected = DescriptorError::Flavour { flags: SYNCHRONIZED, expected: UNSYNCHRONIZED };
    let result = UnsyncConsumer::attach(good());
    assert_eq!(result.unwrap_err(), QueueError::Descriptor(expected));
}

/// 2023-03.
#[test]
fn counters_and_event_word_have_least_extents() {
    for (index, least) in [(0, 8), (1, 8), (3, 4)] {
        let mut descriptor = good();
        descriptor.grantors[index].extent = least - 1;
        let reason = refused(&descriptor);
        assert!(matches!(reason, DescriptorError::Extent { min, .. } if min == least), "{reason}");
    }
}

/// 2023-08.
#[test]
fn a_reader_of_a_write_sealed_queue_attaches_read_only() {
    let config = QueueConfig::new(24, 8);
    let mut producer = UnsyncProducer::create_for_readers_only(&config).unwrap();
    let descriptor = producer.descriptor().unwrap();
    let theirs = Memory::from_fd(descriptor.fds[0].try_clone().unwrap()).unwrap();
    assert!(Mapping::map(&theirs).is_err(), "nobody else can write a byte");

    let mut reader = UnsyncConsumer::attach(duplicate(&descriptor)).unwrap();
    producer.write(&[7; 24]).unwrap();
    let mut got = [0; 24];
    reader.read(&mut got).unwrap();
    assert_eq!(got, [7; 24]);
    assert!(UnsyncProducer::attach(descriptor).is_err(), "a second writer cannot even map it");
}

/// 2023-08. Nothing here depends on the size of a page.
#[test]
fn no_layout_depends_on_the_page_size() {
    let descriptor = Producer::create(&QueueConfig::new(24, 8)).unwrap().descriptor().unwrap();
    let memory = Memory::from_fd(descriptor.fds[0].try_clone().unwrap()).unwrap();
    let end = descriptor.grantors.iter().map(|g| u64::from(g.offset) + g.extent).max();
    assert_eq!(Some(memory.len()), end, "the memory is as long as its parts");
}

/// 2024-01-22: counters were read once for the check and again for the use.
#[test]
fn a_counter_is_read_once_per_operation() {
    let descriptor = good();
    let theirs = Libfmq::attach(duplicate(&descriptor), false);
    let mut producer = Producer::attach(duplicate(&descriptor)).unwrap();
    let mut consumer = Consumer::attach(descriptor).unwrap();
    let (read, write) = theirs.words();

    producer.write(&[1; 48]).unwrap();
    let claim = consumer.peek(2).unwrap();
    write.store(u64::MAX, Ordering::Release); // between check and use
    read.store(u64::MAX, Ordering::Release);
    let mut got = [0; 48];
    claim.copy_out(0, &mut got).unwrap();
    claim.commit(2).unwrap();
    assert_eq!(got, [1; 48]);
    assert_eq!(read.load(Ordering::Acquire), 48, "our own counter is not read back");

    let mut claim = producer.claim(6).unwrap();
    read.store(12345, Ordering::Release);
    claim.copy_in(0, &[2; 144]).unwrap();
    claim.commit(6).unwrap();
    assert_eq!(write.load(Ordering::Acquire), 48 + 144);
}

/// "Tests: fd leak when construction fails", after the memories were opened.
#[test]
fn a_refused_descriptor_closes_its_fds() {
    let mut descriptor = good();
    descriptor.grantors[0].offset = 1 << 20;
    let (read, write) = std::io::pipe().unwrap();
    descriptor.fds.push(write.into());
    assert!(Consumer::attach(descriptor).is_err());
    // The write end is closed if reading ends.
    let mut read = read;
    assert_eq!(std::io::Read::read(&mut read, &mut [0]).unwrap(), 0);
}

// ---- still open in the version studied ------------------------------------------------------

#[test]
fn sigbus_on_short_files() {
    let mut descriptor = good();
    descriptor.grantors[2].extent = 24 * 1000;
    let reason = refused(&descriptor);
    assert!(matches!(reason, DescriptorError::OutsideMemory { part: Part::Ring, .. }), "{reason}");
}

#[test]
fn sigbus_on_files_that_shrink_later() {
    // A memfd that can be sealed is sealed by us; one that cannot is refused.
    let descriptor = good();
    let keep = descriptor.fds[0].try_clone().unwrap();
    let _consumer = Consumer::attach(descriptor).unwrap();
    assert_eq!(rustix::fs::ftruncate(&keep, 0), Err(Errno::PERM));

    let fd = rustix::fs::memfd_create("unsealable", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&fd, 4096).unwrap();
    let descriptor = Descriptor { fds: vec![fd], ..good() };
    assert_eq!(Consumer::attach(descriptor).unwrap_err(), QueueError::Memory(ShmError::Unsealed));
}

#[test]
fn overlapping_regions() {
    let (counter, ring, word) = (Part::ReadCounter, Part::Ring, Part::EventWord);
    let cases = [(0, 16, counter, ring), (3, 16, ring, word), (3, 0, counter, word)];
    for (index, offset, first, second) in cases {
        let mut descriptor = good();
        descriptor.grantors[index].offset = offset;
        assert_eq!(refused(&descriptor), DescriptorError::Overlap { first, second });
    }
}

#[test]
fn overlapping_regions_through_two_descriptors_of_one_memory() {
    let mut descriptor = good();
    descriptor.fds.push(descriptor.fds[0].try_clone().unwrap());
    descriptor.grantors[2].fd_index = 1;
    assert!(Consumer::attach(duplicate(&descriptor)).is_ok(), "one memory twice is no crime");
    descriptor.grantors[2].offset = 0;
    let (first, second) = (Part::ReadCounter, Part::Ring);
    assert_eq!(refused(&descriptor), DescriptorError::Overlap { first, second });
}

#[test]
fn a_map_length_that_does_not_fit_an_int() {
    for extent in [1 << 31, (1 << 31) - 24, 1 << 32, u64::MAX] {
        let mut descriptor = good();
        descriptor.grantors[2].extent = extent;
        let reason = refused(&descriptor);
        assert!(matches!(reason, DescriptorError::Extent { part: Part::Ring, .. }), "{reason}");
    }
}

#[test]
fn a_ring_that_is_no_multiple_of_the_quantum() {
    let mut descriptor = good();
    descriptor.grantors[2].extent = RING - 1;
    let expected = DescriptorError::RingNotWhole { extent: RING - 1, quantum: QUANTUM };
    assert_eq!(refused(&descriptor), expected);
}

#[test]
fn a_slot_one_behind_the_last() {
    let (mut producer, mut consumer) = fmq::pair(&QueueConfig::new(1, 4)).unwrap();
    let mut claim = producer.claim(2).unwrap();
    assert_eq!(claim.copy_in(2, &[0]), Err(QueueError::TooLarge { wanted: 3, limit: 2 }));
    claim.commit(2).unwrap();
    let claim = consumer.peek(2).unwrap();
    assert_eq!(claim.copy_out(2, &mut [0]), Err(QueueError::TooLarge { wanted: 3, limit: 2 }));
}

#[test]
fn copy_bounds_that_overflow() {
    let (mut producer, mut consumer) = fmq::pair(&QueueConfig::new(1, 4)).unwrap();
    let mut claim = producer.claim(4).unwrap();
    for offset in [usize::MAX, usize::MAX - 1, 5] {
        assert!(claim.copy_in(offset, &[0; 2]).is_err());
    }
    claim.commit(4).unwrap();
    assert!(consumer.peek(4).unwrap().copy_out(usize::MAX, &mut [0; 2]).is_err());
}

#[test]
fn item_counts_times_quantum_that_overflow() {
    let (mut producer, mut consumer) = fmq::pair(&QueueConfig::new(24, 4)).unwrap();
    // 24 * (2^64 / 8) is 0 modulo 2^64.
    for items in [usize::MAX, usize::MAX / 8 + 1, 5] {
        assert!(matches!(producer.claim(items), Err(QueueError::TooLarge { .. })));
        assert!(matches!(consumer.peek(items), Err(QueueError::TooLarge { .. })));
        let waited = consumer.wait(items, patience());
        assert!(matches!(waited, Err(QueueError::TooLarge { .. })));
        let committed = producer.claim(1).unwrap().commit(items);
        assert!(matches!(committed, Err(QueueError::TooLarge { .. })));
    }
}

#[test]
fn counters_of_a_refused_descriptor_are_left_alone() {
    let descriptor = good();
    let theirs = Libfmq::attach(duplicate(&descriptor), false);
    theirs.words().0.store(24, Ordering::Release);
    theirs.words().1.store(48, Ordering::Release);
    let mut bad = duplicate(&descriptor);
    bad.grantors[3].offset += 4;
    refused(&bad);
    let mut consumer = Consumer::attach(descriptor).unwrap();
    assert_eq!(consumer.available_to_read(), Ok(1), "and attaching does not reset either");
}

#[test]
fn availability_beyond_the_capacity() {
    let descriptor = good();
    let theirs = Libfmq::attach(duplicate(&descriptor), false);
    let mut consumer = Consumer::attach(descriptor).unwrap();
    theirs.words().1.store(RING + 24, Ordering::Release);
    let corrupt = QueueError::Corrupt { read: 0, write: RING + 24, capacity: RING };
    assert_eq!(consumer.available_to_read(), Err(corrupt));

    let descriptor = describe(ITEMS, QUANTUM, UNSYNCHRONIZED, false);
    let theirs = Libfmq::attach(duplicate(&descriptor), false);
    let mut reader = UnsyncConsumer::attach(descriptor).unwrap();
    theirs.words().1.store(RING + 24, Ordering::Release);
    assert_eq!(reader.available_to_read(), Err(QueueError::Overrun { lost: RING + 24 }));
    assert_eq!(reader.available_to_read(), Ok(0));
}

/// The ring stays writable for the peer; what was copied out does not change any more.
#[test]
fn the_payload_is_fetched_once() {
    let (mut producer, mut consumer) = fmq::pair(&QueueConfig::new(1, 4)).unwrap();
    producer.write(&[1; 4]).unwrap();
    let descriptor = producer.descriptor().unwrap();
    let memory = Memory::from_fd(descriptor.fds[0].try_clone().unwrap()).unwrap();
    let hostile = Mapping::map(&memory).unwrap();
    let claim = consumer.peek(4).unwrap();
    let mut got = [0; 4];
    claim.copy_out(0, &mut got).unwrap();
    let ring = descriptor.grantors[2].offset as usize;
    hostile.region(ring, 4).unwrap().copy_in(0, &[9; 4]).unwrap();
    claim.commit(4).unwrap();
    assert_eq!(got, [1; 4]);
}

/// Counters close to 2^64: crossing it is refused before a byte is written.
#[test]
fn counters_that_would_cross_2_64_are_corrupt() {
    let start = u64::MAX / 24 * 24 - 24; // one item below the last whole one
    let descriptor = good();
    let memory = Memory::from_fd(descriptor.fds[0].try_clone().unwrap()).unwrap();
    let mapping = Arc::new(Mapping::map(&memory).unwrap());
    for offset in [0, 8] {
        let word: Shared<AtomicU64> = Shared::new(Arc::clone(&mapping), offset).unwrap();
        word.store(start, Ordering::Release);
    }
    let mut producer = Producer::attach(duplicate(&descriptor)).unwrap();
    let mut consumer = Consumer::attach(descriptor).unwrap();
    producer.write(&[5; 24]).unwrap();
    let mut got = [0; 24];
    consumer.read(&mut got).unwrap();
    assert_eq!(got, [5; 24]);
    let corrupt = producer.write(&[6; 24]).unwrap_err();
    assert!(matches!(corrupt, QueueError::Corrupt { .. }), "{corrupt}");
    assert_eq!(producer.claim(1).unwrap_err(), corrupt, "final");
    assert_eq!(consumer.available_to_read(), Ok(0), "the reader saw nothing of it");

    // A hostile writer that crosses it looks like one that went backwards.
    let word: Shared<AtomicU64> = Shared::new(mapping, 8).unwrap();
    word.store(8, Ordering::Release);
    assert!(matches!(consumer.read(&mut got), Err(QueueError::Corrupt { .. })));
}

/// Bytes of address space behind the mappings of this memory in this process.
fn mapped_in_this_process(memory: &Memory) -> u64 {
    let inode = rustix::fs::fstat(memory).unwrap().st_ino.to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_memory = maps.lines().filter(|line| line.split_whitespace().nth(4) == Some(&inode));
    let length = |line: &str| {
        let (from, to) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
        let address = |text| u64::from_str_radix(text, 16).unwrap();
        address(to) - address(from)
    };
    of_memory.map(length).sum()
}

/// A file may be a TiB long and hold no page. What attaching takes is known before, and no more than
/// the parts need.
#[test]
fn a_sparse_memory_takes_address_space_up_to_its_last_part() {
    let memory = Memory::create("sparse", 1 << 40).unwrap();
    let last = 5 << 20;
    let descriptor = |grantors| Descriptor {
        grantors,
        fds: vec![memory.duplicate_fd().unwrap()],
        quantum: QUANTUM,
        flags: SYNCHRONIZED,
    };
    let parts = vec![grantor(0, 8), grantor(8, 8), grantor(last, RING), grantor(64, 4)];
    let queue = descriptor(parts.clone());
    let mapped = queue.mapped_bytes();
    assert_eq!(mapped, burst_shm::mapped_bytes(u64::from(last) + RING));
    let consumer = Consumer::attach(queue).unwrap();
    assert_eq!(mapped_in_this_process(&memory), mapped);
    drop(consumer);
    assert_eq!(mapped_in_this_process(&memory), 0);

    // A part that this flavour has no use for is not mapped; numbers that no memory has are counted
    // and not added up until they overflow.
    let unused = descriptor([parts.clone(), vec![grantor(u32::MAX - 7, RING)]].concat());
    assert_eq!(unused.mapped_bytes(), mapped);
    let absurd = descriptor([parts, vec![]].concat());
    let absurd = Descriptor {
        grantors: absurd.grantors.iter().map(|one| Grantor { extent: u64::MAX, ..*one }).collect(),
        ..absurd
    };
    assert_eq!(absurd.mapped_bytes(), u64::MAX);
    assert_eq!(mapped_in_this_process(&memory), 0);
}
