//! A queue's memory with an attacker in it: every shared word, byte by byte, is the script's to
//! change, and bytes that belong to nobody are watched.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use burst_shm::{Mapping, Memory, Shared};
use fmq::{Deadline, Descriptor, Grantor, QueueError, UNSYNCHRONIZED, Wait};

use crate::Input;

/// The byte between the parts. Payload from either side stays below 0x80, so an end that reads this
/// byte has read outside of the ring.
const GAP: u8 = 0xA5;
/// Bytes around and between parts.
const GAP_BYTES: usize = 64;
/// Largest item, in bytes.
const QUANTUM_MAX: usize = 40;
/// Most items in a ring.
const CAPACITY_MAX: usize = 12;
/// Steps of one script: enough to go around the ring several times.
pub(crate) const STEPS_MAX: usize = 64;

/// A queue in a memory that is watched.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: Memory,
    mapping: Arc<Mapping>,
    grantors: Vec<Grantor>,
    read: Shared<AtomicU64>,
    write: Shared<AtomicU64>,
    event: Option<Shared<AtomicU32>>,
    intent: Option<Shared<AtomicU64>>,
    pub(crate) quantum: usize,
    pub(crate) capacity: usize,
    flags: u32,
}

impl Arena {
    /// A queue whose shape the script chooses: item size, items, which parts there are, and whether
    /// they lie side by side or apart.
    pub(crate) fn new(input: &mut Input<'_>, flags: u32) -> Arena {
        let quantum = 1 + input.below(QUANTUM_MAX);
        let capacity = 1 + input.below(CAPACITY_MAX);
        let shape = input.u8();
        let unsync = flags == UNSYNCHRONIZED;
        let parts = if shape & 1 == 1 { 3 } else { 4 + usize::from(unsync && shape & 2 == 0) };
        let (grantors, len) = lay_out(quantum * capacity, parts, shape & 4 == 4);
        let memory = Memory::create("fuzz", len).unwrap();
        let mapping = Arc::new(Mapping::map(&memory).unwrap());
        let offset = |index: usize| grantors[index].offset as usize;
        let word = |index| Shared::new(Arc::clone(&mapping), offset(index)).unwrap();
        let arena = Arena {
            read: word(0),
            write: word(1),
            event: (parts > 3).then(|| Shared::new(Arc::clone(&mapping), offset(3)).unwrap()),
            intent: (parts > 4).then(|| word(4)),
            memory,
            mapping: Arc::clone(&mapping),
            grantors,
            quantum,
            capacity,
            flags,
        };
        for (at, len) in arena.gaps() {
            mapping.region(at, len).unwrap().copy_in(0, &vec![GAP; len]).unwrap();
        }
        arena
    }

    /// The description that an end attaches to.
    pub(crate) fn descriptor(&self) -> Descriptor {
        Descriptor {
            grantors: self.grantors.clone(),
            fds: vec![OwnedFd::from(self.memory.try_clone().unwrap())],
            quantum: self.quantum as u32,
            flags: self.flags,
        }
    }

    /// Whether there is an event word.
    pub(crate) fn has_event(&self) -> bool {
        self.event.is_some()
    }

    /// One thing that a hostile peer may do: change a counter, the event word, a byte of the ring.
    pub(crate) fn attack(&self, input: &mut Input<'_>) {
        match input.below(7) {
            0 => self.read.store(self.counter(input, &self.read), Ordering::Release),
            1 => self.write.store(self.counter(input, &self.write), Ordering::Release),
            2 => {
                if let Some(intent) = &self.intent {
                    intent.store(self.counter(input, intent), Ordering::Release);
                }
            }
            3 => {
                if let Some(event) = &self.event {
                    event.store(input.u32(), Ordering::Release);
                }
            }
            4 => {
                if let Some(event) = &self.event {
                    event.fetch_xor(1 << input.below(32), Ordering::AcqRel);
                }
            }
            5 => self.spoil_ring(input),
            // What an honest writer does, so that scripts get further.
            _ => {
                let next = self.write.load(Ordering::Acquire).wrapping_add(self.quantum as u64);
                if let Some(intent) = &self.intent {
                    intent.store(next, Ordering::Release);
                }
                self.write.store(next, Ordering::Release);
            }
        }
    }

    fn spoil_ring(&self, input: &mut Input<'_>) {
        let len = self.quantum * self.capacity;
        let at = usize::from(input.u16()) % len;
        let bytes: Vec<u8> = input.bytes(8.min(len - at)).iter().map(|byte| byte & 0x7F).collect();
        let ring = self.mapping.region(self.grantors[2].offset as usize, len).unwrap();
        ring.copy_in(at, &bytes).unwrap();
    }

    /// A counter that might just pass for a legal one, or anything.
    fn counter(&self, input: &mut Input<'_>, word: &AtomicU64) -> u64 {
        let near = word.load(Ordering::Relaxed);
        let quantum = self.quantum as u64;
        match input.below(8) {
            0 => input.u64(),
            1 => u64::MAX - u64::from(input.u8()),
            2 => near.wrapping_sub(u64::from(input.u8()) * quantum),
            3 => near.wrapping_add(u64::from(input.u8())),
            4 => near ^ (1 << input.below(64)),
            // The highest whole items below 2^64.
            5 => (u64::MAX / quantum - u64::from(input.u8())) * quantum,
            6 => self.read.load(Ordering::Relaxed),
            _ => near.wrapping_add(u64::from(input.u8()) * quantum),
        }
    }

    /// Bytes that belong to no part.
    fn gaps(&self) -> Vec<(usize, usize)> {
        let mut parts: Vec<(usize, usize)> = self
            .grantors
            .iter()
            .map(|grantor| (grantor.offset as usize, grantor.extent as usize))
            .collect();
        parts.sort_unstable();
        parts.push((self.mapping.len(), 0));
        let mut end = 0;
        let mut gaps = Vec::new();
        for (at, len) in parts {
            gaps.push((end, at - end));
            end = at + len;
        }
        gaps
    }

    /// Nobody wrote between the parts.
    pub(crate) fn check_gaps(&self) {
        for (at, len) in self.gaps() {
            let mut bytes = vec![0; len];
            self.mapping.region(at, len).unwrap().copy_out(0, &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == GAP), "written outside of every part at {at}");
        }
    }
}

/// Whether what was read can have come from a ring.
pub(crate) fn check_payload(bytes: &[u8]) {
    assert!(bytes.iter().all(|byte| *byte < 0x80), "read from outside of the ring");
}

/// Payload for the ring.
pub(crate) fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 0x7F) as u8).collect()
}

/// The first `parts` parts, and the length of their memory.
fn lay_out(ring: usize, parts: usize, side_by_side: bool) -> (Vec<Grantor>, usize) {
    let gap = if side_by_side { 0 } else { GAP_BYTES };
    let mut at = GAP_BYTES;
    let mut grantors = Vec::new();
    for extent in [8, 8, ring, 4, 8].into_iter().take(parts) {
        let offset = at as u32;
        grantors.push(Grantor { flags: 0, fd_index: 0, offset, extent: extent as u64 });
        at = (at + extent + gap).next_multiple_of(8);
    }
    (grantors, at + GAP_BYTES)
}

/// A deadline that passed long ago: no script can make anybody wait.
pub(crate) const PAST: Deadline = Deadline::at_ns(0);

/// How to wait, by a script's byte.
pub(crate) fn wait(input: &mut Input<'_>) -> Wait {
    match input.below(4) {
        0 => Wait::Spin,
        1 => Wait::Adaptive { budget_ns: Some(0) },
        2 => Wait::Adaptive { budget_ns: Some(1000) },
        _ => Wait::Sleep,
    }
}

/// Remembers whether an end was told that its queue is corrupt: it then must never hear anything
/// else of it.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    corrupt: Option<QueueError>,
}

impl Verdict {
    /// Whether the end never heard of corruption.
    pub(crate) fn is_clean(&self) -> bool {
        self.corrupt.is_none()
    }

    /// Judges the answer to a call about at least one item that the ring could hold.
    pub(crate) fn judge(&mut self, result: Result<(), QueueError>) {
        if let Some(error) = self.corrupt {
            assert_eq!(result, Err(error), "a corrupt queue came back to life");
        }
        match result {
            Err(error @ QueueError::Corrupt { .. }) => self.corrupt = Some(error),
            other => expected(other),
        }
    }
}

/// Refuses answers that no peer may be able to cause.
pub(crate) fn expected(result: Result<(), QueueError>) {
    match result {
        Ok(())
        | Err(
            QueueError::Full { .. }
            | QueueError::Empty { .. }
            | QueueError::Timeout
            | QueueError::PeerDied
            | QueueError::Overrun { .. }
            | QueueError::TooLarge { .. }
            | QueueError::NotWhole { .. }
            | QueueError::BadBits { .. }
            | QueueError::Corrupt { .. },
        ) => {}
        Err(other) => panic!("not an answer to a hostile peer: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "written outside of every part")]
    fn a_byte_between_the_parts_is_noticed() {
        let arena = Arena::new(&mut Input::new(&[7, 3, 0]), UNSYNCHRONIZED);
        arena.check_gaps();
        let behind_ring = (arena.grantors[2].offset as u64 + arena.grantors[2].extent) as usize;
        arena.mapping.region(behind_ring, 1).unwrap().copy_in(0, &[0]).unwrap();
        arena.check_gaps();
    }

    #[test]
    #[should_panic(expected = "read from outside of the ring")]
    fn a_byte_from_between_the_parts_is_noticed() {
        check_payload(&payload(500));
        check_payload(&[1, GAP]);
    }

    #[test]
    #[should_panic(expected = "came back to life")]
    fn a_corrupt_queue_that_goes_on_is_noticed() {
        let mut verdict = Verdict::default();
        verdict.judge(Err(QueueError::Corrupt { read: 1, write: 0, capacity: 8 }));
        verdict.judge(Ok(()));
    }

    #[test]
    fn parts_do_not_touch_the_gaps_around_them() {
        for shape in 0..8 {
            for flags in [fmq::SYNCHRONIZED, UNSYNCHRONIZED] {
                let arena = Arena::new(&mut Input::new(&[13, 5, shape]), flags);
                let gaps: usize = arena.gaps().iter().map(|(_, len)| len).sum();
                let parts: u64 = arena.grantors.iter().map(|grantor| grantor.extent).sum();
                assert_eq!(gaps + parts as usize, arena.mapping.len(), "shape {shape}");
            }
        }
    }
}
