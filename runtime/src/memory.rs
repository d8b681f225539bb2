//! Memory of the application, and memory that was made for roles.
//!
//! A file is never mapped unless it cannot shrink: [`burst_shm::Pool`] reads it by system call otherwise. So
//! whoever truncates a file of weights gets an error, and nobody a signal.

mod copy;
mod file;
mod roled;
mod window;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use burst_hal::{Pool, ResultCode};

use self::file::FileMemory;
pub(crate) use self::roled::{Role, RoledMemory, Store};
use self::window::Window;
use crate::error::{Error, Result};
use crate::process::check_process;

/// Bytes that models and executions refer to.
#[derive(Debug)]
pub struct Memory {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    File(FileMemory),
    Pool(Pool),
    Roled(RoledMemory),
}

impl Memory {
    /// `size` bytes of a file from `offset` on; `prot` as for `mmap`. The descriptor is duplicated; whether
    /// it can be used shows with the first use.
    ///
    /// # Errors
    /// BAD_DATA for no bytes; UNEXPECTED_NULL where the descriptor cannot be duplicated.
    pub fn from_fd(
        size: usize,
        prot: i32,
        fd: BorrowedFd<'_>,
        offset: usize,
    ) -> Result<Arc<Memory>> {
        check_process()?;
        if size == 0 {
            return Err(Error::bad_data("a memory of no bytes"));
        }
        let fd = fd.try_clone_to_owned();
        let fd = fd.map_err(|error| Error::new(ResultCode::UnexpectedNull, error))?;
        let file = FileMemory::new(fd, prot, offset, size)?;
        Ok(Arc::new(Memory { kind: Kind::File(file) }))
    }

    /// All bytes of a pool.
    #[must_use]
    pub fn from_pool(pool: Pool) -> Arc<Memory> {
        Arc::new(Memory { kind: Kind::Pool(pool) })
    }

    /// Memory for roles.
    pub(crate) fn from_roles(roled: RoledMemory) -> Arc<Memory> {
        Arc::new(Memory { kind: Kind::Roled(roled) })
    }

    /// Copies all of one memory to another.
    ///
    /// # Errors
    /// BAD_DATA where the first has no value, the other one is for reading only, or their sizes or dimensions do not
    /// agree; what a device says.
    /// Memory that was made for roles has no value after a copy that failed.
    pub fn copy(from: &Arc<Memory>, to: &Arc<Memory>) -> Result<()> {
        check_process()?;
        match Arc::ptr_eq(from, to) {
            true => Ok(()),
            false => copy::copy(from, to),
        }
    }

    /// Refuses a memory that was made for reading only as a place to write to.
    ///
    /// # Errors
    /// BAD_DATA.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match &self.kind {
            Kind::File(file) if !file.is_writable() => {
                Err(Error::bad_data("the memory was made for reading only"))
            }
            Kind::File(_) | Kind::Pool(_) | Kind::Roled(_) => Ok(()),
        }
    }

    /// Length in bytes; 0 for a buffer of a device, whose length only the device knows.
    #[must_use]
    pub fn size(&self) -> usize {
        match &self.kind {
            Kind::File(file) => file.size(),
            Kind::Pool(pool) => usize::try_from(pool.len()).unwrap_or(usize::MAX),
            Kind::Roled(roled) => match roled.store() {
                Store::Shared(pool) => usize::try_from(pool.len()).unwrap_or(usize::MAX),
                Store::Buffer(_) => 0,
            },
        }
    }

    /// What it was made for; `None` for memory that serves for anything.
    pub(crate) fn roled(&self) -> Option<&RoledMemory> {
        match &self.kind {
            Kind::Roled(roled) => Some(roled),
            Kind::File(_) | Kind::Pool(_) => None,
        }
    }

    /// Where `length` bytes from `offset` on lie: a pool, and the offset in it. They have been found to lie in
    /// the memory.
    ///
    /// # Errors
    /// UNMAPPABLE for a file that cannot be used; BAD_DATA for a buffer of a device.
    pub(crate) fn place(&self, offset: usize, length: usize) -> Result<(Pool, u32)> {
        let (pool, base) = match &self.kind {
            Kind::File(file) => (file.pool()?, file.offset()),
            Kind::Pool(pool) => (Pool::clone(pool), 0),
            Kind::Roled(roled) => match roled.store() {
                Store::Shared(pool) => (Pool::clone(pool), 0),
                Store::Buffer(_) => {
                    return Err(Error::bad_data("a buffer of a device has no bytes to be named"));
                }
            },
        };
        let (offset, length) = (base.saturating_add(offset as u64), length as u64);
        let is_near = offset.saturating_add(length) <= u64::from(u32::MAX);
        match u32::try_from(offset).ok().filter(|_| is_near) {
            Some(offset) => Ok((pool, offset)),
            // The HAL counts with 32 bits.
            None => Ok((Arc::new(Window::new(pool, offset, length)), 0)),
        }
    }

    /// All of its bytes and no others, as a pool.
    fn whole(&self) -> Result<Pool> {
        let size = self.size();
        let (pool, offset) = self.place(0, size)?;
        match offset == 0 && pool.len() == size as u64 {
            true => Ok(pool),
            false => Ok(Arc::new(Window::new(pool, offset.into(), size as u64))),
        }
    }
}
