//! dma-bufs: buffers that cameras, decoders and accelerators share with each other by descriptor.
//!
//! * A dma-buf is no file: it cannot be read, written, cut off or sealed. Its length is fixed when
//!   it is made, so no process can shrink it while it is mapped.
//! * What is behind it is up to the driver that made it, and some give `SIGBUS` for a page that
//!   they cannot provide. So its bytes are touched by the kernel alone ([`CopiedMapping`]).
//! * The processor's caches need not agree with the device: each access stands between a word to
//!   the driver that it begins and one that it has ended (`DMA_BUF_IOCTL_SYNC`).
//!
//! Source: the kernel's `Documentation/driver-api/dma-buf.rst` and `include/uapi/linux/dma-buf.h`,
//! `dma-heap.h`.
#![allow(unsafe_code, reason = "asks the kernel by ioctl, which takes addresses")]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;

use crate::copied::CopiedMapping;
use crate::error::ShmError;
use crate::memory_object::Memory;

/// The only `ioctl` that memory of others needs, for a sandbox that filters system calls:
/// `DMA_BUF_IOCTL_SYNC`, `_IOW('b', 0, u64)`.
pub const DMA_BUF_SYNC: u32 = 0x4008_6200;
/// `DMA_HEAP_IOCTL_ALLOC`: `_IOWR('H', 0, struct dma_heap_allocation_data)`.
const ALLOC: u32 = 0xc018_4800;

/// What an access does, as [`DMA_BUF_SYNC`] is told.
const READ: u64 = 1;
const WRITE: u64 = 2;
/// The access is over; otherwise it begins.
const END: u64 = 4;

/// A dma-buf, mapped.
#[derive(Debug)]
pub(crate) struct DmaBuf {
    memory: Memory,
    mapping: CopiedMapping,
}

impl DmaBuf {
    /// Maps the first `len` bytes.
    pub(crate) fn map_first(memory: Memory, len: u64) -> Result<Self, ShmError> {
        let mapping = CopiedMapping::map(memory.as_fd(), len)?;
        Ok(DmaBuf { memory, mapping })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.mapping.is_writable()
    }

    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), ShmError> {
        accessing(self.memory.as_fd(), READ, || self.mapping.read(offset, bytes))
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), ShmError> {
        // Also reading: around what is written the rest of a cache line has to be right.
        accessing(self.memory.as_fd(), READ | WRITE, || self.mapping.write(offset, bytes))
    }
}

/// Does something between the two words to the driver; the second is said however it went.
fn accessing<T>(
    fd: BorrowedFd<'_>,
    access: u64,
    run: impl FnOnce() -> Result<T, ShmError>,
) -> Result<T, ShmError> {
    sync(fd, access)?;
    let done = run();
    sync(fd, access | END)?;
    done
}

/// How often the call is repeated while the kernel reports that a signal or a fence interrupted it: the
/// buffer's exporter decides how long that goes on.
const SYNC_TRIES: u32 = 1000;

fn sync(fd: BorrowedFd<'_>, flags: u64) -> Result<(), ShmError> {
    let mut tries = 0;
    loop {
        // SAFETY: `DMA_BUF_SYNC` reads a u64 at the address given, which `flags` is and outlives the call.
        let done = unsafe { libc::ioctl(fd.as_raw_fd(), DMA_BUF_SYNC as _, &raw const flags) };
        if done == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        // Both are to be asked again.
        tries += 1;
        let is_passing = matches!(Errno::from_io_error(&error), Some(Errno::INTR | Errno::AGAIN));
        if !is_passing || tries == SYNC_TRIES {
            return Err(ShmError::from_io("ioctl(DMA_BUF_IOCTL_SYNC)", &error));
        }
    }
}

/// Somewhere that dma-bufs come from: `/dev/dma_heap/system`, say.
#[derive(Debug)]
pub struct DmaHeap(File);

/// `struct dma_heap_allocation_data`.
#[repr(C)]
struct Allocation {
    len: u64,
    fd: u32,
    fd_flags: u32,
    heap_flags: u64,
}

const _: () = assert!(size_of::<Allocation>() == 24);

impl DmaHeap {
    /// Opens a heap.
    ///
    /// # Errors
    /// [`ShmError::System`]: there is none, or this user may not use it.
    pub fn open(path: &Path) -> Result<Self, ShmError> {
        let file = File::options().read(true).write(true).open(path);
        file.map(DmaHeap).map_err(|error| ShmError::from_io("open", &error))
    }

    /// A new buffer of `len` bytes or, where the heap gives whole pages, somewhat more.
    ///
    /// # Errors
    /// [`ShmError::System`] when the heap refuses.
    pub fn allocate(&self, len: u64) -> Result<OwnedFd, ShmError> {
        let fd_flags = (libc::O_RDWR | libc::O_CLOEXEC).unsigned_abs();
        let mut allocation = Allocation { len, fd: 0, fd_flags, heap_flags: 0 };
        // SAFETY: `ALLOC` reads and writes an `Allocation` at the address given; it outlives the
        // call.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), ALLOC as _, &raw mut allocation) };
        let failed =
            ShmError::from_io("ioctl(DMA_HEAP_IOCTL_ALLOC)", &std::io::Error::last_os_error());
        match i32::try_from(allocation.fd) {
            // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
            Ok(fd) if done == 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            _ => Err(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_dma_buf_does_not_take_the_word_to_its_driver() {
        let memory = Memory::create("memfd", 4096).unwrap();
        let len = memory.len();
        let buffer = DmaBuf::map_first(memory, len).unwrap();
        let errno = Errno::NOTTY;
        let refused = Err(ShmError::System { call: "ioctl(DMA_BUF_IOCTL_SYNC)", errno });
        assert_eq!(buffer.read(0, &mut [0]), refused);
        assert_eq!(buffer.write(0, &[0]), refused);
        let heap = DmaHeap::open(Path::new("/dev/null")).unwrap();
        assert!(matches!(heap.allocate(1), Err(ShmError::System { .. })));
        assert!(DmaHeap::open(Path::new("/dev/dma_heap/no such heap")).is_err());
    }
}
