//! A memory pool that a peer handed over by descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use crate::dma_buf::DmaBuf;
use crate::error::ShmError;
use crate::mapping::Mapping;
use crate::memory_object::Memory;
use crate::sealed::SealedBytes;

/// A pool of bytes, reached in the safest way its descriptor allows: borrowed where no process can
/// write it any more, mapped where it cannot shrink, read and written by system call otherwise. A
/// buffer of a device (dma-buf), which can be neither sealed nor read, is mapped and copied by
/// system call.
#[derive(Debug)]
pub struct Pool {
    len: u64,
    access: Access,
}

#[derive(Debug)]
enum Access {
    /// Write-sealed: the bytes are constant.
    Sealed(SealedBytes),
    /// Shrink-sealed: mapped, writable where the peer allows it.
    Mapped { mapping: Mapping, memory: Memory },
    /// Anything else: never mapped, for touching a truncated file through a mapping is `SIGBUS`.
    File { memory: Memory, writable: bool },
    /// A buffer of a device: mapped, and copied by the kernel.
    Device(DmaBuf),
}

impl Pool {
    /// Takes a descriptor of which the peer says that it holds `expected_len` bytes. Only these are
    /// reachable, and only the pages with these are mapped ([`mapped_bytes`](crate::mapped_bytes)), however long the
    /// object is.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`] where the object is shorter; as [`Memory::from_fd`] otherwise.
    pub fn open(fd: OwnedFd, expected_len: u64) -> Result<Pool, ShmError> {
        let memory = Memory::from_fd(fd)?;
        if expected_len > memory.len() {
            let size = memory.len();
            return Err(ShmError::OutOfBounds { offset: 0, len: expected_len, size });
        }
        let mapped_len = expected_len.max(1); // nothing cannot be mapped; every memory has a byte
        let access = if memory.is_dma_buf() {
            Access::Device(DmaBuf::map_first(memory, mapped_len)?)
        } else if !memory.is_shrink_sealed() {
            let writable = is_open_for_writing(&memory)?;
            Access::File { memory, writable }
        } else if memory.seals().write {
            Access::Sealed(SealedBytes::map_first(memory, mapped_len)?)
        } else {
            // Refused where the peer sealed FUTURE_WRITE or opened the descriptor for reading only.
            let mapping = match Mapping::map_first(&memory, mapped_len) {
                Err(ShmError::System { errno: Errno::PERM | Errno::ACCESS, .. }) => {
                    Mapping::map_first_read_only(&memory, mapped_len)?
                }
                other => other?,
            };
            Access::Mapped { mapping, memory }
        };
        Ok(Pool { len: expected_len, access })
    }

    /// Length in bytes, as stated by the peer and checked.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the pool has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether [`write`](Pool::write) is refused.
    pub fn is_read_only(&self) -> bool {
        match &self.access {
            Access::Sealed(_) => true,
            Access::Mapped { mapping, .. } => !mapping.is_writable(),
            Access::File { writable, .. } => !writable,
            Access::Device(buffer) => !buffer.is_writable(),
        }
    }

    /// Whether the pool is mapped so that reading it needs no system call.
    pub fn is_mapped(&self) -> bool {
        matches!(self.access, Access::Sealed(_) | Access::Mapped { .. })
    }

    /// Whether the pool is a buffer of a device (dma-buf) rather than memory that processes share, or a file.
    pub fn is_dma_buf(&self) -> bool {
        matches!(self.access, Access::Device(_))
    }

    /// The bytes themselves, where no process can change them any more.
    pub fn as_sealed_bytes(&self) -> Option<&[u8]> {
        let len = usize::try_from(self.len).ok()?;
        match &self.access {
            Access::Sealed(sealed) => sealed.bytes().get(..len),
            Access::Mapped { .. } | Access::File { .. } | Access::Device(_) => None,
        }
    }

    /// Copies bytes out of the pool.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`]; [`ShmError::Short`] where an unsealed file was truncated.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ShmError> {
        count_copy();
        let at = self.check(offset, bytes.len())?;
        match &self.access {
            Access::Sealed(sealed) => {
                bytes.copy_from_slice(&sealed.bytes()[at..at + bytes.len()]);
                Ok(())
            }
            Access::Mapped { mapping, .. } => mapping.region(at, bytes.len())?.copy_out(0, bytes),
            Access::File { memory, .. } => memory.read(offset, bytes),
            Access::Device(buffer) => buffer.read(at, bytes),
        }
    }

    /// Copies bytes into the pool.
    ///
    /// # Errors
    /// [`ShmError::ReadOnly`], [`ShmError::OutOfBounds`]; [`ShmError::Short`] where an unsealed
    /// file took only a part (a full disk, a quota).
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), ShmError> {
        count_copy();
        if self.is_read_only() {
            return Err(ShmError::ReadOnly);
        }
        let at = self.check(offset, bytes.len())?;
        match &self.access {
            Access::Sealed(_) => Err(ShmError::ReadOnly),
            Access::Mapped { mapping, .. } => mapping.region(at, bytes.len())?.copy_in(0, bytes),
            Access::File { memory, .. } => memory.write(offset, bytes),
            Access::Device(buffer) => buffer.write(at, bytes),
        }
    }

    /// The object, for its descriptor.
    pub fn memory(&self) -> &Memory {
        match &self.access {
            Access::Sealed(sealed) => sealed.memory(),
            Access::Mapped { memory, .. } | Access::File { memory, .. } => memory,
            Access::Device(buffer) => buffer.memory(),
        }
    }

    fn check(&self, offset: u64, len: usize) -> Result<usize, ShmError> {
        let (size, len) = (self.len, len as u64);
        if offset > size || len > size - offset {
            return Err(ShmError::OutOfBounds { offset, len, size });
        }
        usize::try_from(offset).map_err(|_| ShmError::OutOfBounds { offset, len, size })
    }
}

#[cfg(debug_assertions)]
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Counts a copy out of a pool or into one; only where debug assertions are on, as only tests ask.
fn count_copy() {
    // Relaxed: a count, which orders nothing.
    #[cfg(debug_assertions)]
    COPIES.fetch_add(1, Ordering::Relaxed);
}

/// How often this process has copied bytes out of a [`Pool`] or into one. `None` where debug assertions
/// are off: then nobody counts.
#[must_use]
pub fn pool_copies() -> Option<u64> {
    #[cfg(debug_assertions)]
    let copies = Some(COPIES.load(Ordering::Relaxed));
    #[cfg(not(debug_assertions))]
    let copies = None;
    copies
}

impl AsFd for Pool {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory().as_fd()
    }
}

fn is_open_for_writing(memory: &Memory) -> Result<bool, ShmError> {
    let mode = rustix::fs::fcntl_getfl(memory).map_err(ShmError::system("fcntl(F_GETFL)"))?;
    Ok(mode & rustix::fs::OFlags::RWMODE != rustix::fs::OFlags::RDONLY)
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
