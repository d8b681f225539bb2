//! Memory that a device in another process can map, too.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use burst_hal::{Memory, MemoryError};
use rustix::fs::{MemfdFlags, memfd_create};

/// A file without a name: an execution whose end is told by a fence cannot have its outputs copied
/// back, so they have to lie where its device writes them.
#[derive(Debug)]
pub(super) struct SharedMemory {
    file: File,
    len: u64,
}

impl SharedMemory {
    /// Memory with these bytes.
    ///
    /// # Panics
    /// The system has none.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let made = memfd_create("verify", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
        let file = File::from(made.expect("the system has memory"));
        file.write_all_at(bytes, 0).expect("the system has memory");
        SharedMemory { file, len: bytes.len() as u64 }
    }

    fn check(&self, offset: u64, len: usize) -> Result<(), MemoryError> {
        let outside = MemoryError::OutOfRange { offset, len: len as u64, size: self.len };
        let end = offset.checked_add(len as u64).ok_or(outside)?;
        if end > self.len { Err(outside) } else { Ok(()) }
    }
}

fn backing(error: io::Error) -> MemoryError {
    MemoryError::Backing { errno: error.raw_os_error().unwrap_or(0) }
}

impl Memory for SharedMemory {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.check(offset, out.len())?;
        self.file.read_exact_at(out, offset).map_err(backing)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.check(offset, bytes.len())?;
        self.file.write_all_at(bytes, offset).map_err(backing)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}
