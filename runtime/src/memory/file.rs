//! A part of a file, opened when it is first used.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use burst_client::ShmMemory;
use burst_hal::{Pool, ResultCode};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::error::{Error, Result};

/// `PROT_WRITE` of `mmap`, which has the same value on every architecture of Linux.
const PROT_WRITE: i32 = 2;

#[derive(Debug)]
pub(super) struct FileMemory {
    fd: OwnedFd,
    prot: i32,
    offset: u64,
    size: usize,
    pool: OnceLock<Result<Pool>>,
}

impl FileMemory {
    pub(super) fn new(fd: OwnedFd, prot: i32, offset: usize, size: usize) -> Result<Self> {
        if offset.checked_add(size).is_none() {
            return Err(Error::bad_data(format!(
                "{size} bytes from {offset} on: no file has them"
            )));
        }
        Ok(FileMemory { fd, prot, offset: offset as u64, size, pool: OnceLock::new() })
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether whoever made it wants it written.
    pub(super) fn is_writable(&self) -> bool {
        self.prot & PROT_WRITE != 0
    }

    /// Where it begins in its pool, which begins with the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn pool(&self) -> Result<Pool> {
        self.pool.get_or_init(|| self.open()).clone()
    }

    fn open(&self) -> Result<Pool> {
        let unmappable = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(ResultCode::Unmappable, error)
        };
        let flags = fcntl_getfl(&self.fd).map_err(|error| unmappable(error.into()))?;
        if self.is_writable() && flags & OFlags::RWMODE == OFlags::RDONLY {
            return Err(unmappable("the descriptor is open for reading only".into()));
        }
        let fd = self.fd.as_fd().try_clone_to_owned().map_err(|error| unmappable(error.into()))?;
        let end = self.offset + self.size as u64;
        let memory = ShmMemory::open(fd, end).map_err(|error| unmappable(error.into()))?;
        Ok(Arc::new(memory))
    }
}
