//! A mapping whose bytes only the kernel touches.
//!
//! Some memory can be mapped but neither read nor sealed, and touching it may fail: then the
//! processor raises `SIGBUS`. The kernel does not; asked to copy from such a page it answers
//! `EFAULT`. So bytes go through a bounce buffer: memory of this process that the kernel can read and
//! write like a file. They are copied twice, and a page that cannot be had is an ordinary error.
//!
//! 1. The address range is given to `pread` and `pwrite` and to nothing else here.
//! 2. No reference to a byte of the mapping ever exists.
#![allow(unsafe_code, reason = "hands addresses in the mapping to the kernel")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::{MmapOptions, MmapRaw};
use rustix::io::{Errno, pread, pwrite};

use crate::error::ShmError;
use crate::memory_object::Memory;

/// Bytes that are copied at once: few enough to stay in a cache between the two copies.
const PIECE: usize = 64 << 10;

/// The first `len` bytes of something, mapped shared; read and written by the kernel alone.
#[derive(Debug)]
pub(crate) struct CopiedMapping {
    raw: MmapRaw,
    writable: bool,
    /// The bounce buffer: what the first copy fills and the second one empties.
    bounce: Mutex<Memory>,
}

impl CopiedMapping {
    /// Maps for reading and writing, or for reading where the descriptor allows no more.
    pub(crate) fn map(fd: BorrowedFd<'_>, len: u64) -> Result<Self, ShmError> {
        let len =
            usize::try_from(len).map_err(|_| ShmError::Length { len, max: usize::MAX as u64 })?;
        let mut options = MmapOptions::new();
        options.len(len);
        let (raw, writable) = match options.map_raw(fd.as_raw_fd()) {
            Ok(raw) => (Ok(raw), true),
            Err(_) => (options.map_raw_read_only(fd.as_raw_fd()), false),
        };
        let raw = raw.map_err(|error| ShmError::from_io("mmap", &error))?;
        let bounce = Mutex::new(Memory::create("burst-bounce", PIECE.min(len))?);
        Ok(CopiedMapping { raw, writable, bounce })
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Copies bytes out.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), ShmError> {
        self.check(offset, bytes.len())?;
        let bounce = self.lock();
        let mut at = offset;
        for piece in bytes.chunks_mut(PIECE) {
            let mut got = 0;
            while got < piece.len() {
                let count = self.take(&bounce, at, piece.len() - got)?;
                whole(pread(&*bounce, &mut piece[got..got + count], 0), "pread", count)?;
                got += count;
                at += count;
            }
        }
        Ok(())
    }

    /// Copies bytes in.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), ShmError> {
        if !self.writable {
            return Err(ShmError::ReadOnly);
        }
        self.check(offset, bytes.len())?;
        let bounce = self.lock();
        let mut at = offset;
        for piece in bytes.chunks(PIECE) {
            let mut put = 0;
            while put < piece.len() {
                let rest = &piece[put..];
                whole(pwrite(&*bounce, rest, 0), "pwrite", rest.len())?;
                let count = self.give(&bounce, at, rest.len())?;
                put += count;
                at += count;
            }
        }
        Ok(())
    }

    /// From the mapping to `bounce`, as many bytes as can be read.
    fn take(&self, bounce: &Memory, at: usize, len: usize) -> Result<usize, ShmError> {
        let from = self.raw.as_mut_ptr().wrapping_add(at);
        // SAFETY: `read` checked that `at..at + len` lies inside the mapping, which lives as long
        // as `self`. The kernel reads the bytes there and reports what it cannot read; that
        // others write them at the same time is between it and them.
        let done = unsafe { libc::pwrite(bounce.as_fd().as_raw_fd(), from.cast(), len, 0) };
        some(done, "pwrite")
    }

    /// From `bounce` to the mapping, as many bytes as can be written.
    fn give(&self, bounce: &Memory, at: usize, len: usize) -> Result<usize, ShmError> {
        let to = self.raw.as_mut_ptr().wrapping_add(at);
        // SAFETY: `write` checked that `at..at + len` lies inside the mapping, which lives as long
        // as `self` and was made writable. Nothing here refers to a byte of it; the kernel writes
        // there and reports what it cannot write.
        let done = unsafe { libc::pread(bounce.as_fd().as_raw_fd(), to.cast(), len, 0) };
        some(done, "pread")
    }

    fn check(&self, offset: usize, len: usize) -> Result<(), ShmError> {
        let size = self.raw.len();
        if offset > size || len > size - offset {
            let (offset, len, size) = (offset as u64, len as u64, size as u64);
            return Err(ShmError::OutOfBounds { offset, len, size });
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.bounce.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a raw call moved: something, or it has failed.
fn some(done: isize, call: &'static str) -> Result<usize, ShmError> {
    match usize::try_from(done) {
        Ok(0) => Err(ShmError::System { call, errno: Errno::FAULT }),
        Ok(count) => Ok(count),
        Err(_) => Err(ShmError::from_io(call, &std::io::Error::last_os_error())),
    }
}

/// Our own memory takes and gives everything at once.
fn whole(done: Result<usize, Errno>, call: &'static str, wanted: usize) -> Result<(), ShmError> {
    let got = done.map_err(ShmError::system(call))?;
    if got != wanted {
        return Err(ShmError::Short { offset: 0, wanted: wanted as u64, got: got as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn object(len: u64) -> OwnedFd {
        let fd = memfd_create("object", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, len).unwrap();
        fd
    }

    #[test]
    fn bytes_come_and_go_whole_whatever_their_number_and_offset() {
        let len = 3 * PIECE + 100;
        let fd = object(len as u64);
        let mapping = CopiedMapping::map(fd.as_fd(), len as u64).unwrap();
        let pattern: Vec<u8> = (0..len).map(|at| (at % 251).to_le_bytes()[0]).collect();
        for (offset, count) in [(0, len), (7, 1), (PIECE - 1, PIECE + 2), (len, 0), (len - 1, 1)] {
            let range = offset..offset + count;
            mapping.write(offset, &pattern[range.clone()]).unwrap();
            let mut through_file = vec![0; count];
            assert_eq!(pread(&fd, &mut through_file, offset as u64).unwrap(), count);
            assert_eq!(through_file, pattern[range.clone()], "written at {offset}");
            let mut out = vec![0; count];
            mapping.read(offset, &mut out).unwrap();
            assert_eq!(out, pattern[range], "read at {offset}");
        }
        for (offset, count) in [(len, 1), (len + 1, 0), (usize::MAX, 2)] {
            let outside = Err(ShmError::OutOfBounds {
                offset: offset as u64,
                len: count as u64,
                size: len as u64,
            });
            assert_eq!(mapping.read(offset, &mut vec![0; count]), outside);
            assert_eq!(mapping.write(offset, &vec![0; count]), outside);
        }
    }

    #[test]
    fn a_page_that_has_gone_is_an_error_and_no_signal() {
        const PAGE: usize = 64 << 10; // the largest that there is
        let fd = object(2 * PAGE as u64);
        let mapping = CopiedMapping::map(fd.as_fd(), 2 * PAGE as u64).unwrap();
        ftruncate(&fd, PAGE as u64).unwrap();
        let mut bytes = vec![0; 2 * PAGE];
        let gone = |call| Err(ShmError::System { call, errno: Errno::FAULT });
        assert_eq!(mapping.read(0, &mut bytes), gone("pwrite"));
        assert_eq!(mapping.write(0, &bytes), gone("pread"));
        assert_eq!(mapping.read(0, &mut bytes[..PAGE]), Ok(()), "what is there is reached");
    }

    #[test]
    fn what_is_open_for_reading_is_mapped_for_reading() {
        let fd = object(10);
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let read_only = OwnedFd::from(std::fs::File::open(path).unwrap());
        let mapping = CopiedMapping::map(read_only.as_fd(), 10).unwrap();
        assert!(!mapping.is_writable());
        assert_eq!(mapping.write(0, b"x"), Err(ShmError::ReadOnly));
        assert_eq!(mapping.read(0, &mut [1]), Ok(()));
    }
}
