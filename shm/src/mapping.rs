//! A mapping of a whole memory object, shared with another process.

use std::os::fd::{AsFd, AsRawFd};

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::error::ShmError;
use crate::memory_object::Memory;

/// The whole of a [`Memory`], mapped shared. Unmapped on drop.
///
/// Usually held in an `Arc` by the [`SharedRegion`](crate::SharedRegion)s and
/// [`Shared`](crate::Shared) atomics that point into it.
#[derive(Debug)]
pub struct Mapping {
    raw: MmapRaw,
    writable: bool,
}

impl Mapping {
    /// Maps `memory` for reading and writing.
    ///
    /// # Errors
    /// [`ShmError::Unsealed`] where the peer could still shrink it, [`ShmError::System`] where the
    /// kernel refuses (with `EPERM` for memory sealed against writing).
    pub fn map(memory: &Memory) -> Result<Mapping, ShmError> {
        Mapping::new(memory, true)
    }

    /// Maps `memory` for reading only. Works where writing is sealed off.
    ///
    /// # Errors
    /// As [`map`](Mapping::map).
    pub fn map_read_only(memory: &Memory) -> Result<Mapping, ShmError> {
        Mapping::new(memory, false)
    }

    fn new(memory: &Memory, writable: bool) -> Result<Mapping, ShmError> {
        if !memory.is_shrink_sealed() {
            return Err(ShmError::Unsealed);
        }
        let len = usize::try_from(memory.len())
            .map_err(|_| ShmError::Length { len: memory.len(), max: usize::MAX as u64 })?;
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
