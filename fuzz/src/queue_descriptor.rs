//! A queue's description with the memories behind it, as a peer might send it.
//!
//! Looked at: an end attaches only where an independent look at the same numbers finds every part
//! inside of its memory, aligned, and apart from the others; what attaches carries items; nothing
//! that is refused keeps a descriptor.

use std::os::fd::OwnedFd;

use burst_shm::Memory;
use fmq::{
    Consumer, Descriptor, Grantor, MAX_PARTS, Producer, QueueError, SYNCHRONIZED, UNSYNCHRONIZED,
    UnsyncConsumer, UnsyncProducer,
};
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};

use crate::leaks::Leaks;
use crate::{Input, Script, Seed, seed};

/// Descriptors that one script makes at most: a few more than an end takes.
const FDS_MAX: usize = MAX_PARTS + 2;
/// Grantors, for the same reason.
const GRANTORS_MAX: usize = MAX_PARTS + 2;

/// Makes a descriptor and lets both ends of the flavour attach to it.
pub fn run(data: &[u8]) -> bool {
    let leaks = Leaks::watch();
    let mut input = Input::new(data);
    let passed = attach(&mut input);
    leaks.check();
    passed
}

fn attach(input: &mut Input<'_>) -> bool {
    let Some(descriptor) = describe(input) else { return false };
    let sound = is_sound(&descriptor);
    let copy = duplicate(&descriptor);
    let passed = match input.below(2) {
        0 => synchronized(&descriptor, copy),
        _ => unsynchronized(&descriptor, copy),
    };
    assert!(!passed || sound, "attached to {descriptor:?}");
    passed
}

fn describe(input: &mut Input<'_>) -> Option<Descriptor> {
    let mut fds: Vec<OwnedFd> = Vec::new();
    for _ in 0..input.below(FDS_MAX) {
        let kind = input.u8();
        let fd = match fds.last() {
            Some(last) if kind % 8 == 7 => last.try_clone().unwrap(),
            _ => object(kind, input)?,
        };
        fds.push(fd);
    }
    let quantum = number(input) as u32;
    let flags = u32::from(input.u8());
    let grantors = (0..input.below(GRANTORS_MAX)).map(|_| grantor(input)).collect();
    Some(Descriptor { grantors, fds, quantum, flags })
}

fn object(kind: u8, input: &mut Input<'_>) -> Option<OwnedFd> {
    let len = usize::from(input.u8()) * 64;
    match kind % 8 {
        0..=3 => Some(Memory::create("fuzz", len.max(1)).unwrap().into()),
        4 => foreign(MemfdFlags::ALLOW_SEALING, len),
        5 => foreign(MemfdFlags::empty(), len),
        6 => Some(rustix::pipe::pipe().ok()?.0),
        _ => Some(std::fs::File::open("/").ok()?.into()),
    }
}

fn foreign(flags: MemfdFlags, len: usize) -> Option<OwnedFd> {
    let fd = memfd_create("theirs", flags | MemfdFlags::CLOEXEC).ok()?;
    ftruncate(&fd, len as u64).ok()?;
    Some(fd)
}

/// A number of any size, in few bytes where it is small.
fn number(input: &mut Input<'_>) -> u64 {
    match input.u8() {
        0xFF => input.u64(),
        0xFE => u64::from(input.u32()),
        0xFD => u64::from(input.u16()),
        0xFC => u64::from(i32::MAX.unsigned_abs()) - 65_536 + u64::from(input.u8()),
        small => u64::from(small),
    }
}

fn grantor(input: &mut Input<'_>) -> Grantor {
    let flags = u32::from(input.u8());
    let fd_index = number(input) as u32;
    let eights = number(input);
    // Aligned unless it is said otherwise by the highest bit of the flags.
    let offset = if flags & 0x80 == 0 { eights.wrapping_mul(8) } else { eights } as u32;
    Grantor { flags, fd_index, offset, extent: number(input) }
}

fn duplicate(descriptor: &Descriptor) -> Descriptor {
    let Descriptor { grantors, fds, quantum, flags } = descriptor;
    let fds = fds.iter().map(|fd| fd.try_clone().unwrap()).collect();
    Descriptor { grantors: grantors.clone(), fds, quantum: *quantum, flags: *flags }
}

/// The rules, put down once more without looking at the code that keeps them.
fn is_sound(descriptor: &Descriptor) -> bool {
    let Descriptor { grantors, fds, quantum, flags } = descriptor;
    let used = if *flags == UNSYNCHRONIZED { 5 } else { 4 };
    if grantors.len() < 3 || grantors.len() > MAX_PARTS || fds.len() > MAX_PARTS || *quantum == 0 {
        return false;
    }
    let mut ranges = Vec::new();
    for (grantor, needed) in grantors.iter().take(used).zip([8, 8, 1, 4, 8]) {
        let Some(fd) = fds.get(grantor.fd_index as usize) else { return false };
        let Ok(stat) = fstat(fd) else { return false };
        let size = u128::try_from(stat.st_size).unwrap_or(0);
        let start = u128::from(grantor.offset);
        let end = start + u128::from(grantor.extent);
        if grantor.extent < needed || end > size || !start.is_multiple_of(8) {
            return false;
        }
        ranges.push((stat.st_ino, start, end));
    }
    let apart =
        |a: &(u64, u128, u128), b: &(u64, u128, u128)| a.0 != b.0 || a.2 <= b.1 || b.2 <= a.1;
    let disjoint =
        (0..ranges.len()).all(|i| ranges[i + 1..].iter().all(|other| apart(&ranges[i], other)));
    disjoint && grantors[2].extent.is_multiple_of(u64::from(*quantum))
}

/// What may be wrong with a descriptor; a corrupt counter cannot be: all memory is new.
fn refused<E>(result: Result<E, QueueError>) -> Option<E> {
    match result {
        Ok(end) => Some(end),
        Err(QueueError::Descriptor(_) | QueueError::Memory(_)) => None,
        Err(other) => panic!("no answer to a descriptor: {other}"),
    }
}

fn synchronized(descriptor: &Descriptor, copy: Descriptor) -> bool {
    let Some(mut producer) = refused(Producer::attach(copy)) else { return false };
    assert_eq!(descriptor.flags, SYNCHRONIZED);
    let again = producer.descriptor().unwrap();
    let mut consumer = Consumer::attach(again).unwrap();
    assert_eq!(producer.capacity() * producer.quantum(), descriptor.grantors[2].extent as usize);
    let sent = items(producer.capacity(), producer.quantum());
    arrives(&sent, |received| {
        producer.write(&sent)?;
        consumer.read(received)
    });
    true
}

fn unsynchronized(descriptor: &Descriptor, copy: Descriptor) -> bool {
    let Some(mut producer) = refused(UnsyncProducer::attach(copy)) else { return false };
    assert_eq!(descriptor.flags, UNSYNCHRONIZED);
    let again = producer.descriptor().unwrap();
    let mut consumer = UnsyncConsumer::attach(again).unwrap();
    let sent = items(producer.capacity(), producer.quantum());
    arrives(&sent, |received| {
        producer.write(&sent)?;
        consumer.read(received)
    });
    true
}

/// Items come out as they went in, twice.
fn arrives(sent: &[u8], mut pass: impl FnMut(&mut [u8]) -> Result<(), QueueError>) {
    let mut received = vec![0; sent.len()];
    for _ in 0..2 {
        pass(&mut received).unwrap();
        assert!(sent == received, "an item was changed on its way");
    }
}

/// As many items as fit, two at most.
fn items(capacity: usize, quantum: usize) -> Vec<u8> {
    (0..capacity.min(2) * quantum).map(|index| (index % 251) as u8).collect()
}

/// The layouts in use, and one seed per way to be refused.
pub fn seeds() -> Vec<Seed> {
    type Part = (u8, u8, u8, u8); // flags, fd index, offset in eights, extent
    let script = |fds: &[u8], quantum: u8, flags: u8, parts: &[Part]| {
        let head = Script::new().bytes(&[(fds.len() / 2) as u8]).bytes(fds);
        let head = head.bytes(&[quantum, flags, parts.len() as u8]);
        let script =
            parts.iter().fold(head, |script, part| script.bytes(&[part.0, part.1, part.2, part.3]));
        script.bytes(&[flags - 1])
    };
    let ours: &[Part] = &[(0, 0, 0, 8), (0, 0, 16, 8), (0, 0, 64, 240), (0, 0, 32, 4)];
    let packed: &[Part] = &[(0, 0, 0, 8), (0, 0, 1, 8), (0, 0, 2, 240), (0, 0, 32, 4)];
    let with_intent: &[Part] =
        &[(0, 0, 0, 8), (0, 0, 16, 8), (0, 0, 64, 240), (0, 0, 32, 4), (0, 0, 48, 8)];
    let own_ring: &[Part] = &[(0, 0, 0, 8), (0, 0, 16, 8), (0, 1, 0, 240), (0, 0, 32, 4)];
    let overlap: &[Part] = &[(0, 0, 0, 8), (0, 0, 0, 8), (0, 0, 64, 240), (0, 0, 32, 4)];
    let outside: &[Part] = &[(0, 0, 0, 8), (0, 0, 16, 8), (0, 0, 120, 240), (0, 0, 32, 4)];
    let misaligned: &[Part] = &[(0x80, 0, 1, 8), (0, 0, 16, 8), (0, 0, 64, 240), (0, 0, 32, 4)];
    let no_such_fd: &[Part] = &[(0, 3, 0, 8), (0, 0, 16, 8), (0, 0, 64, 240), (0, 0, 32, 4)];
    let one: &[u8] = &[0, 16];
    vec![
        seed("ours", script(one, 24, 1, ours)),
        seed("packed", script(one, 24, 1, packed)),
        seed("without_event_word", script(one, 24, 1, &ours[..3])),
        seed("odd_items", script(one, 5, 1, ours)),
        seed("unsynchronized", script(one, 24, 2, with_intent)),
        seed("unsynchronized_libfmq", script(one, 24, 2, packed)),
        seed("ring_of_its_own", script(&[0, 16, 0, 4], 24, 1, own_ring)),
        seed("ring_in_a_duplicate", script(&[0, 16, 7, 0], 24, 1, own_ring)),
        seed("foreign_memory", script(&[4, 16], 24, 1, ours)),
        seed("memory_that_can_shrink", script(&[5, 16], 24, 1, ours)),
        seed("pipe", script(&[6, 16], 24, 1, ours)),
        seed("overlap", script(one, 24, 1, overlap)),
        seed("outside", script(one, 24, 1, outside)),
        seed("misaligned", script(one, 24, 1, misaligned)),
        seed("no_such_fd", script(one, 24, 1, no_such_fd)),
        seed("two_grantors", script(one, 24, 1, &ours[..2])),
        seed("ragged_ring", script(one, 23, 1, ours)),
    ]
}
