//! Memory that no process can write any more: model weights, large messages.

#![allow(unsafe_code, reason = "hands out references into the mapping")]

use std::os::fd::{AsFd, BorrowedFd};
use std::slice;

use crate::error::ShmError;
use crate::mapping::Mapping;
use crate::memory_object::Memory;

/// A read-only mapping of memory sealed `F_SEAL_WRITE` and `F_SEAL_SHRINK`: its bytes never change
/// again, whichever process made it, so they can be borrowed like any slice.
#[derive(Debug)]
pub struct SealedBytes {
    mapping: Mapping,
    memory: Memory,
}

impl SealedBytes {
    /// Makes a sealed memory that holds a copy of `bytes`.
    ///
    /// # Errors
    /// As [`Memory::create`].
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<SealedBytes, ShmError> {
        let mut memory = Memory::create(name, bytes.len())?;
        memory.write(0, bytes)?;
        memory.seal_write()?;
        SealedBytes::map(memory)
    }

    /// Maps a memory that carries both seals already.
    ///
    /// # Errors
    /// [`ShmError::NotWriteSealed`], [`ShmError::Unsealed`].
    pub fn map(memory: Memory) -> Result<SealedBytes, ShmError> {
        let len = memory.len();
        SealedBytes::map_first(memory, len)
    }

    /// Maps the first `len` bytes of such a memory, and no more.
    ///
    /// # Errors
    /// As [`map`](SealedBytes::map); [`ShmError::OutOfBounds`] where the memory is shorter.
    pub fn map_first(memory: Memory, len: u64) -> Result<SealedBytes, ShmError> {
        if !memory.seals().write {
            return Err(ShmError::NotWriteSealed);
        }
        let mapping = Mapping::map_first_read_only(&memory, len)?;
        Ok(SealedBytes { mapping, memory })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `base..base + len` is one live, readable mapping, at most `isize::MAX` long
        // (`MAX_LEN`). Every constructor requires F_SEAL_WRITE, which the kernel grants only while
        // no writable mapping exists and which forbids making one, writing and punching holes from
        // then on, in every process; F_SEAL_SHRINK (checked by `Mapping`) keeps the pages there.
        unsafe { slice::from_raw_parts(self.mapping.base(), self.mapping.len()) }
    }

    /// Length in bytes. Never zero.
    #[allow(clippy::len_without_is_empty, reason = "an empty memory cannot be made")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// The object, for its descriptor.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl AsFd for SealedBytes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn bytes_go_in_and_cannot_be_changed() {
        let sealed = SealedBytes::from_bytes("weights", b"weights").unwrap();
        assert_eq!(sealed.bytes(), b"weights");
        let theirs = Memory::from_fd(sealed.memory().duplicate_fd().unwrap()).unwrap();
        assert!(Mapping::map(&theirs).is_err());
        assert_eq!(rustix::io::pwrite(theirs.as_fd(), b"x", 0), Err(Errno::PERM));
        assert_eq!(SealedBytes::map(theirs).unwrap().bytes(), b"weights");
    }

    #[test]
    fn future_write_is_not_enough_to_borrow() {
        // Its maker may still hold a writable mapping.
        let mut memory = Memory::create("half", 64).unwrap();
        memory.seal_future_write().unwrap();
        assert!(matches!(SealedBytes::map(memory), Err(ShmError::NotWriteSealed)));
    }

    #[test]
    fn a_writable_mapping_elsewhere_keeps_the_write_seal_off() {
        let mut memory = Memory::create("busy", 64).unwrap();
        let writable = Mapping::map(&memory).unwrap();
        assert_eq!(
            memory.seal_write(),
            Err(ShmError::SealRefused { seal: "F_SEAL_WRITE", errno: Errno::BUSY })
        );
        drop(writable);
        memory.seal_write().unwrap();
    }
}
