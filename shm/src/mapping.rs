//! A mapping of a memory object, or of its beginning, shared with another process.

use std::os::fd::{AsFd, AsRawFd};

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::error::ShmError;
use crate::memory_object::Memory;

/// A [`Memory`], or the beginning of one, mapped shared. Unmapped on drop.
///
/// Usually held in an `Arc` by the [`SharedRegion`](crate::SharedRegion)s and
/// [`Shared`](crate::Shared) atomics that point into it.
#[derive(Debug)]
pub struct Mapping {
    raw: MmapRaw,
    writable: bool,
}

/// Bytes of address space that a mapping of `len` bytes takes: whole pages, one at least.
#[must_use]
pub fn mapped_bytes(len: u64) -> u64 {
    len.max(1).checked_next_multiple_of(page_bytes()).unwrap_or(u64::MAX)
}

#[allow(unsafe_code, reason = "asks the system for its page size")]
fn page_bytes() -> u64 {
    // SAFETY: `sysconf` takes a number and gives one; it touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(1).max(1) // no system fails here
}

impl Mapping {
    /// Maps `memory` for reading and writing.
    ///
    /// # Errors
    /// [`ShmError::Unsealed`] where the peer could still shrink it, [`ShmError::System`] where the
    /// kernel refuses (with `EPERM` for memory sealed against writing).
    pub fn map(memory: &Memory) -> Result<Mapping, ShmError> {
        Mapping::new(memory, memory.len(), true)
    }

    /// Maps `memory` for reading only. Works where writing is sealed off.
    ///
    /// # Errors
    /// As [`map`](Mapping::map).
    pub fn map_read_only(memory: &Memory) -> Result<Mapping, ShmError> {
        Mapping::new(memory, memory.len(), false)
    }

    /// Maps the first `len` bytes of `memory` for reading and writing, however long it is: a peer's
    /// memory takes no more address space here than the peer has a use for.
    ///
    /// # Errors
    /// As [`map`](Mapping::map); [`ShmError::OutOfBounds`] where the memory is shorter,
    /// [`ShmError::Length`] for no bytes.
    pub fn map_first(memory: &Memory, len: u64) -> Result<Mapping, ShmError> {
        Mapping::new(memory, len, true)
    }

    /// The same for reading only.
    ///
    /// # Errors
    /// As [`map_first`](Mapping::map_first).
    pub fn map_first_read_only(memory: &Memory, len: u64) -> Result<Mapping, ShmError> {
        Mapping::new(memory, len, false)
    }

    fn new(memory: &Memory, len: u64, writable: bool) -> Result<Mapping, ShmError> {
        if !memory.is_shrink_sealed() {
            return Err(ShmError::Unsealed);
        }
        if len > memory.len() {
            return Err(ShmError::OutOfBounds { offset: 0, len, size: memory.len() });
        }
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len > 0)
            .ok_or(ShmError::Length { len, max: usize::MAX as u64 })?;
        let mut options = MmapOptions::new();
        options.len(len);
        let fd = memory.as_fd().as_raw_fd();
        let raw = if writable { options.map_raw(fd) } else { options.map_raw_read_only(fd) }
            .map_err(|error| ShmError::from_io("mmap", &error))?;
        Ok(Mapping { raw, writable })
    }

    /// Length in bytes. Never zero.
    #[allow(clippy::len_without_is_empty, reason = "an empty mapping cannot be made")]
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether the mapping was made for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.raw.as_mut_ptr()
    }

    /// Keeps the mapping out of children made by `fork`, so that they cannot write to it.
    pub(crate) fn keep_from_children(&self) -> Result<(), ShmError> {
        self.raw.advise(Advice::DontFork).map_err(|error| ShmError::from_io("madvise", &error))
    }
}
