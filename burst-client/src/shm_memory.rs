//! Pools of a client: shared memory as the contract sees it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use burst_hal::session::PoolAllocator;
use burst_hal::{Failure, Memory, MemoryError, MemoryKind};
use burst_shm::{Pool, ShmError};

use crate::ClientError;

/// Memory that a service can map, for sessions on its devices.
#[derive(Debug, Clone, Copy, Default)]
pub struct SharedAllocator;

impl PoolAllocator for SharedAllocator {
    fn allocate(&self, bytes: usize) -> Result<burst_hal::Pool, Failure> {
        Ok(Arc::new(ShmMemory::create(bytes)?))
    }
}

/// Shared memory as a pool of requests and models.
#[derive(Debug)]
pub struct ShmMemory(Pool);

impl ShmMemory {
    /// New memory of `length` bytes that both sides can write.
    ///
    /// # Errors
    /// The system has no memory or descriptor left.
    pub fn create(length: usize) -> Result<Self, ClientError> {
        let memory = burst_shm::Memory::create("burst-pool", length)?;
        ShmMemory::open(memory.into(), length as u64)
    }

    /// Memory that somebody else made, of which the first `length` bytes are used: a memfd, or a
    /// file.
    ///
    /// # Errors
    /// The descriptor is no memory, or shorter.
    pub fn open(descriptor: OwnedFd, length: u64) -> Result<Self, ClientError> {
        Ok(ShmMemory(Pool::open(descriptor, length)?))
    }

    /// A copy of memory that only this process can reach.
    pub(crate) fn copy_of(memory: &burst_hal::Pool) -> Result<Self, ClientError> {
        let bytes = memory.len();
        let length = usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })?;
        let mut content = vec![0; length];
        memory.read(0, &mut content)?;
        let copy = burst_shm::Memory::create("burst-pool", length)?;
        copy.write(0, &content)?;
        ShmMemory::open(copy.into(), bytes)
    }
}

impl Memory for ShmMemory {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.0.read(offset, out).map_err(memory_error)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.0.write(offset, bytes).map_err(memory_error)
    }

    fn is_mapped(&self) -> bool {
        self.0.is_mapped()
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.0.as_sealed_bytes()
    }

    fn kind(&self) -> MemoryKind {
        match self.0.is_dma_buf() {
            true => MemoryKind::DeviceBuffer,
            false => MemoryKind::Shared,
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

fn memory_error(error: ShmError) -> MemoryError {
    match error {
        ShmError::OutOfBounds { offset, len, size } => {
            MemoryError::OutOfRange { offset, len, size }
        }
        ShmError::ReadOnly => MemoryError::ReadOnly,
        ShmError::System { errno, .. } => MemoryError::Backing { errno: errno.raw_os_error() },
        _ => MemoryError::Backing { errno: 0 },
    }
}
