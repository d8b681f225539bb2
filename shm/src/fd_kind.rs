//! What a descriptor is that shall be used as memory: a file, a dma-buf, or something to refuse.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fstat, fstatfs, seek};

use crate::error::{Refusal, ShmError};

/// `f_type` of the file system that dma-bufs live in, since Linux 5.3.
const DMA_BUF_MAGIC: i64 = 0x444d_4142;
/// `f_type` of the file system behind huge-page memfds.
const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;

/// What a descriptor that is used as memory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FdKind {
    /// A memfd or a file.
    File,
    /// A buffer of a device: of fixed length, without seals.
    DmaBuf,
}

/// What may be used as memory; everything else is refused.
pub(crate) fn kind_of(fd: &OwnedFd) -> Result<FdKind, ShmError> {
    let stat = fstat(fd).map_err(ShmError::system("fstat"))?;
    let system = fstatfs(fd).map_err(ShmError::system("fstatfs"))?;
    #[allow(clippy::useless_conversion, reason = "the field is narrower on 32-bit targets")]
    let system = i64::from(system.f_type);
    // Not a regular file, and open for whatever mapping it allows.
    if system == DMA_BUF_MAGIC {
        return Ok(FdKind::DmaBuf);
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ShmError::Refused(Refusal::NotAFile));
    }
    let mode = fcntl_getfl(fd).map_err(ShmError::system("fcntl(F_GETFL)"))?;
    // O_PATH descriptors read as neither; O_RDONLY is zero, so ask what it must not be.
    if mode.contains(OFlags::PATH) || mode & OFlags::RWMODE == OFlags::WRONLY {
        return Err(ShmError::Refused(Refusal::NotReadable));
    }
    if system == HUGETLBFS_MAGIC {
        return Err(ShmError::Refused(Refusal::HugePages));
    }
    Ok(FdKind::File)
}

/// The length of a dma-buf: what `fstat` says, or, where that is nothing, where its end is.
pub(crate) fn dma_buf_length(
    stated: i64,
    seek: impl FnOnce() -> Result<u64, ShmError>,
) -> Result<u64, ShmError> {
    match u64::try_from(stated) {
        Ok(stated @ 1..) => Ok(stated),
        _ => seek(),
    }
}

/// Where the end of something is. A dma-buf has no position that this could move.
pub(crate) fn seek_end(fd: BorrowedFd<'_>) -> Result<u64, ShmError> {
    seek(fd, SeekFrom::End(0)).map_err(ShmError::system("lseek"))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn the_length_is_what_fstat_says_and_the_end_where_it_says_nothing() {
        let end = || Ok(4096);
        let never = || panic!("fstat has said it");
        assert_eq!(dma_buf_length(100, never), Ok(100));
        assert_eq!(dma_buf_length(0, end), Ok(4096));
        assert_eq!(dma_buf_length(-1, end), Ok(4096));
        let failed = ShmError::System { call: "lseek", errno: Errno::SPIPE };
        assert_eq!(dma_buf_length(0, || Err(failed)), Err(failed));
        // The real question, to something that has an end.
        let memory = memfd_create("end", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, 12_345).unwrap();
        assert_eq!(seek_end(memory.as_fd()), Ok(12_345));
        let (pipe, _write) = rustix::pipe::pipe().unwrap();
        assert_eq!(seek_end(pipe.as_fd()), Err(failed));
    }
}
