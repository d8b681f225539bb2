//! The description of a queue that travels to the other process, and the checks on one that came.

use std::os::fd::OwnedFd;

use burst_shm::mapped_bytes;

use crate::error::{DescriptorError, Part};
use crate::geometry::MAX_RING_BYTES;

/// `flags` of the flavour with one reader and one writer.
pub const SYNCHRONIZED: u32 = 1;
/// `flags` of the flavour with many readers and a writer that never waits.
pub const UNSYNCHRONIZED: u32 = 2;

/// Most grantors and most descriptors accepted. Five and two are in use; libfmq ignores what comes
/// after the fourth grantor, so some room is left for what others may add.
pub const MAX_PARTS: usize = 16;

/// One region of a queue: which descriptor, where in it, how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grantor {
    /// Unused, zero.
    pub flags: u32,
    /// Index into the descriptors.
    pub fd_index: u32,
    /// Bytes from the start of that memory.
    pub offset: u32,
    /// Length in bytes.
    pub extent: u64,
}

/// What the other process needs to attach: plain data and descriptors.
///
/// The index of a grantor gives its meaning: read counter, write counter, ring, event word
/// (optional), write intent (unsynchronized queues of our kind).
#[derive(Debug, Default)]
pub struct Descriptor {
    /// The regions.
    pub grantors: Vec<Grantor>,
    /// The memories they lie in.
    pub fds: Vec<OwnedFd>,
    /// Bytes per item.
    pub quantum: u32,
    /// The flavour: [`SYNCHRONIZED`] or [`UNSYNCHRONIZED`].
    pub flags: u32,
}

impl Descriptor {
    /// Refuses items of another size than the caller reads and writes.
    ///
    /// # Errors
    /// [`DescriptorError::Quantum`].
    pub fn expect_quantum(&self, expected: u32) -> Result<(), DescriptorError> {
        match self.quantum {
            quantum if quantum == expected => Ok(()),
            quantum => Err(DescriptorError::Quantum { quantum, expected }),
        }
    }

    /// Bytes of address space that attaching to the queue takes, in whole pages: each memory is mapped
    /// up to the end of the last part in it, however long it is. Whoever pays for address space can
    /// ask this before anything is mapped, of any descriptor that came.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        let used: Vec<Grantor> = parts(self).map(|(_, grantor)| *grantor).collect();
        let mut memories: Vec<u32> = used.iter().map(|grantor| grantor.fd_index).collect();
        memories.sort_unstable();
        memories.dedup();
        let mapped = memories.iter().map(|index| mapped_bytes(end_of_parts(&used, *index)));
        mapped.fold(0, u64::saturating_add)
    }
}

/// The parts in the order of their grantors.
pub(crate) const PARTS: [Part; 5] =
    [Part::ReadCounter, Part::WriteCounter, Part::Ring, Part::EventWord, Part::WriteIntent];

impl Part {
    /// Bytes that a part must have at least.
    fn min_extent(self) -> u64 {
        match self {
            Part::ReadCounter | Part::WriteCounter | Part::WriteIntent => 8,
            Part::EventWord => 4,
            Part::Ring => 1,
        }
    }
}

/// Everything about a descriptor that can be checked without looking at its memories.
pub(crate) fn check_numbers(descriptor: &Descriptor, flavour: u32) -> Result<(), DescriptorError> {
    let Descriptor { grantors, fds, quantum, flags } = descriptor;
    if *flags != flavour {
        return Err(DescriptorError::Flavour { flags: *flags, expected: flavour });
    }
    if *quantum == 0 {
        return Err(DescriptorError::Quantum { quantum: 0, expected: 0 });
    }
    if grantors.len() < 3 {
        return Err(DescriptorError::TooFewGrantors { grantors: grantors.len() });
    }
    let count = grantors.len().max(fds.len());
    if count > MAX_PARTS {
        return Err(DescriptorError::TooMany { count, max: MAX_PARTS });
    }
    for (part, grantor) in parts(descriptor) {
        check_grantor(part, grantor, fds.len())?;
    }
    let extent = grantors[2].extent;
    if extent % u64::from(*quantum) != 0 {
        return Err(DescriptorError::RingNotWhole { extent, quantum: *quantum });
    }
    Ok(())
}

/// The grantors that mean something in this flavour, with their meaning.
pub(crate) fn parts(descriptor: &Descriptor) -> impl Iterator<Item = (Part, &Grantor)> {
    let known = if descriptor.flags == UNSYNCHRONIZED { 5 } else { 4 };
    PARTS.into_iter().zip(&descriptor.grantors).take(known)
}

fn check_grantor(part: Part, grantor: &Grantor, fds: usize) -> Result<(), DescriptorError> {
    let Grantor { fd_index, offset, extent, .. } = *grantor;
    if usize::try_from(fd_index).map_or(true, |index| index >= fds) {
        return Err(DescriptorError::FdIndex { part, fd_index, fds });
    }
    if offset % 8 != 0 {
        return Err(DescriptorError::Misaligned { part, offset });
    }
    let (min, max) = (part.min_extent(), MAX_RING_BYTES);
    if extent < min || extent > max {
        return Err(DescriptorError::Extent { part, extent, min, max });
    }
    Ok(())
}

/// Refuses parts that lie outside their memory. `len_of` gives the length of a memory by index.
pub(crate) fn check_inside(
    grantors: &[Grantor],
    len_of: impl Fn(u32) -> u64,
) -> Result<(), DescriptorError> {
    for (part, grantor) in PARTS.into_iter().zip(grantors) {
        // No overflow: extents are below 2^31 by now, offsets below 2^32.
        let end = u64::from(grantor.offset) + grantor.extent;
        let size = len_of(grantor.fd_index);
        if end > size {
            return Err(DescriptorError::OutsideMemory { part, end, size });
        }
    }
    Ok(())
}

/// Refuses parts that share bytes. `same` says whether two indices stand for one memory, which may
/// well be so for two different descriptors.
pub(crate) fn check_disjoint(
    grantors: &[Grantor],
    same: impl Fn(u32, u32) -> bool,
) -> Result<(), DescriptorError> {
    let all: Vec<(Part, &Grantor)> = PARTS.into_iter().zip(grantors).collect();
    for (i, (first, a)) in all.iter().enumerate() {
        for (second, b) in &all[i + 1..] {
            let apart = end(a) <= u64::from(b.offset) || end(b) <= u64::from(a.offset);
            if !apart && same(a.fd_index, b.fd_index) {
                return Err(DescriptorError::Overlap { first: *first, second: *second });
            }
        }
    }
    Ok(())
}

/// Where the last of these parts ends in the memory with this index.
pub(crate) fn end_of_parts(grantors: &[Grantor], fd_index: u32) -> u64 {
    let in_memory = grantors.iter().filter(|grantor| grantor.fd_index == fd_index);
    in_memory.map(end).max().unwrap_or(0)
}

fn end(grantor: &Grantor) -> u64 {
    // Before the checks an extent may be anything.
    u64::from(grantor.offset).saturating_add(grantor.extent)
}
