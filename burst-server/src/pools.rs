//! Pools as the device sees them: a client's memory, and memory the service made.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use burst_hal::log_tags::MEMORY;
use burst_hal::{Memory, MemoryError, MemoryKind};
use burst_shm::{Pool, ShmError, SoleWriter, mapped_bytes};

use crate::ServerError;
use crate::admission::{Charge, ClientBudgets};
use crate::panics::lock;
use crate::scheduler::without_token;

/// A memory that a client gave, mapped as its kind allows.
#[derive(Debug)]
pub(crate) struct ClientMemory {
    pool: Pool,
    _charge: Charge,
}

impl ClientMemory {
    /// Takes a descriptor of which the client says that it holds `length` bytes.
    pub(crate) fn open(
        fd: OwnedFd,
        length: u64,
        budgets: &ClientBudgets,
    ) -> Result<Self, ServerError> {
        let charge = budgets.shared_memory(mapped_bytes(length))?;
        let pool = Pool::open(fd, length)?;
        tracing::debug!(target: MEMORY, length, mapped = pool.is_mapped(), "memory of a client");
        Ok(ClientMemory { pool, _charge: charge })
    }

    /// Copies without the thread's run token where a system call does it: the file may lie on a file
    /// system that answers when its client likes.
    fn unless_mapped<T>(&self, copy: impl FnOnce() -> T) -> T {
        if self.pool.is_mapped() { copy() } else { without_token(copy) }
    }
}

impl Memory for ClientMemory {
    fn len(&self) -> u64 {
        self.pool.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        let read = || self.pool.read(offset, out);
        self.unless_mapped(read).map_err(memory_error)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.unless_mapped(|| self.pool.write(offset, bytes)).map_err(memory_error)
    }

    fn is_mapped(&self) -> bool {
        self.pool.is_mapped()
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.pool.as_sealed_bytes()
    }

    fn kind(&self) -> MemoryKind {
        match self.pool.is_dma_buf() {
            true => MemoryKind::DeviceBuffer,
            false => MemoryKind::Shared,
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.pool.as_fd())
    }
}

/// A memory that the service made: it alone writes, the client only reads.
#[derive(Debug)]
pub(crate) struct ServiceMemory {
    // Executions on different threads may be given the same memory; each copies under the lock.
    // A lock that no other thread holds costs no system call.
    writer: Mutex<SoleWriter>,
    fd: OwnedFd,
    length: u64,
    _charge: Charge,
}

impl ServiceMemory {
    pub(crate) fn create(length: u64, budgets: &ClientBudgets) -> Result<Self, ServerError> {
        let charge = budgets.allocated_memory(length, mapped_bytes(length))?;
        let bytes = usize::try_from(length)
            .map_err(|_| ShmError::Length { len: length, max: burst_shm::MAX_LEN })?;
        let writer = SoleWriter::create("burst-output", bytes)?;
        let fd = writer.memory().duplicate_fd()?;
        tracing::debug!(target: MEMORY, length, "memory for a client's outputs");
        Ok(ServiceMemory { writer: Mutex::new(writer), fd, length, _charge: charge })
    }

    /// The descriptor for the client.
    pub(crate) fn duplicate_fd(&self) -> Result<OwnedFd, ServerError> {
        self.fd
            .try_clone()
            .map_err(|_| ServerError::System { call: "dup", errno: rustix::io::Errno::MFILE })
    }

    fn with<T>(
        &self,
        offset: u64,
        len: usize,
        copy: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, MemoryError> {
        let outside = MemoryError::OutOfRange { offset, len: len as u64, size: self.length };
        let start = usize::try_from(offset).map_err(|_| outside)?;
        let end = start.checked_add(len).ok_or(outside)?;
        let mut writer = lock(&self.writer);
        writer.bytes_mut().get_mut(start..end).map(copy).ok_or(outside)
    }
}

impl Memory for ServiceMemory {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.with(offset, out.len(), |bytes| out.copy_from_slice(bytes))
    }

    fn write(&self, offset: u64, new: &[u8]) -> Result<(), MemoryError> {
        self.with(offset, new.len(), |bytes| bytes.copy_from_slice(new))
    }

    fn fill(
        &self,
        offset: u64,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, MemoryError> {
        self.with(offset, len, fill).map(|()| true)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
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
