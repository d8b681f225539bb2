//! Memory pools as the contract sees them: bytes behind a trait, wherever they lie.
//!
//! The contract knows no mapping and no descriptor passing. The owner of a pool implements [`Memory`]
//! for it: the service for its clients' pools, an application for its own.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::HalVersion;

/// Why bytes could not be moved in or out of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The range does not lie in the pool.
    #[error("bytes {offset}..{offset}+{len} lie outside of the pool of {size} bytes")]
    OutOfRange {
        /// First byte asked for.
        offset: u64,
        /// How many.
        len: u64,
        /// Length of the pool.
        size: u64,
    },
    /// The pool cannot be written through this handle.
    #[error("the pool may only be read")]
    ReadOnly,
    /// The backing file gave an error or ended early.
    #[error("the pool's backing file failed (errno {errno})")]
    Backing {
        /// The system's error number; 0 for a file that ended early.
        errno: i32,
    },
}

/// What a pool is made of, which decides the versions of the HAL that can carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Memory that processes share, or a file: `ashmem` and `mmap_fd` of the HAL.
    #[default]
    Shared,
    /// A buffer of a device, such as a dma-buf: `hardware_buffer_blob` and `hardware_buffer`.
    DeviceBuffer,
}

impl MemoryKind {
    /// The first version that can carry it.
    #[must_use]
    pub const fn since(self) -> HalVersion {
        match self {
            MemoryKind::Shared => HalVersion::V1_0,
            MemoryKind::DeviceBuffer => HalVersion::V1_2,
        }
    }
}

/// A pool of bytes that executions read from and write to.
///
/// Another process may write the same bytes at any instant, so callers get copies only, except
/// where the memory is sealed against every write ([`Memory::as_bytes`]).
pub trait Memory: Send + Sync + std::fmt::Debug {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Whether the pool has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `out.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`], or the backing file's error.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError>;

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`], [`MemoryError::ReadOnly`], or the backing file's error.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError>;

    /// Lends `len` bytes from `offset` on to `fill`, which writes all of them, where nobody else can write them
    /// meanwhile. `false` where that is not so: `fill` was not called then, and [`Memory::write`] is the way.
    ///
    /// # Errors
    /// As [`Memory::write`].
    fn fill(
        &self,
        offset: u64,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, MemoryError> {
        let _ = (offset, len, fill);
        Ok(false)
    }

    /// Whether copies are loads and stores of this process alone: none waits for somebody else, and several
    /// threads may copy parts of it at once.
    fn is_mapped(&self) -> bool {
        false
    }

    /// The bytes themselves, where no process can write them any more (sealed memory).
    fn as_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// What it is made of. A driver of an earlier version is not given what it does not know.
    fn kind(&self) -> MemoryKind {
        MemoryKind::default()
    }

    /// The descriptor to send to another process, where there is one.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A shared handle to a pool.
pub type Pool = Arc<dyn Memory>;

/// Bytes in this process's own memory as a pool: for tests and for callers in the same process.
#[derive(Debug, Default)]
pub struct HeapMemory(std::sync::RwLock<Vec<u8>>);

impl HeapMemory {
    /// A pool that holds these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        HeapMemory(std::sync::RwLock::new(bytes))
    }

    /// A copy of all bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// `offset..offset + len` as indexes, when it lies in `size` bytes.
fn range(offset: u64, len: usize, size: usize) -> Result<std::ops::Range<usize>, MemoryError> {
    let outside = MemoryError::OutOfRange { offset, len: len as u64, size: size as u64 };
    let start = usize::try_from(offset).map_err(|_| outside)?;
    let end = start.checked_add(len).filter(|end| *end <= size).ok_or(outside)?;
    Ok(start..end)
}

impl Memory for HeapMemory {
    fn len(&self) -> u64 {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).len() as u64
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        let bytes = self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        out.copy_from_slice(&bytes[range(offset, out.len(), bytes.len())?]);
        Ok(())
    }

    fn write(&self, offset: u64, new: &[u8]) -> Result<(), MemoryError> {
        let mut bytes = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let range = range(offset, new.len(), bytes.len())?;
        bytes[range].copy_from_slice(new);
        Ok(())
    }

    fn fill(
        &self,
        offset: u64,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, MemoryError> {
        let mut bytes = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let range = range(offset, len, bytes.len())?;
        fill(&mut bytes[range]);
        Ok(true)
    }

    fn is_mapped(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_memory_refuses_ranges_outside() {
        let pool = HeapMemory::new(vec![1, 2, 3]);
        let mut two = [0; 2];
        pool.read(1, &mut two).unwrap();
        assert_eq!(two, [2, 3]);
        assert_eq!(
            pool.read(2, &mut two),
            Err(MemoryError::OutOfRange { offset: 2, len: 2, size: 3 })
        );
        assert!(pool.write(u64::MAX, &[1]).is_err());
        pool.write(0, &[9]).unwrap();
        assert_eq!(pool.to_vec(), [9, 2, 3]);
        assert_eq!(pool.fill(1, 2, &mut |bytes| bytes.fill(7)), Ok(true));
        assert!(pool.fill(2, 2, &mut |_| panic!("there are no two bytes")).is_err());
        assert_eq!(pool.to_vec(), [9, 7, 7]);
    }
}
