//! Everything that can go wrong with shared memory.

use rustix::io::Errno;

/// Why a piece of memory could not be made, mapped, read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShmError {
    /// A system call failed.
    #[error("{call}: {errno}")]
    System {
        /// The call.
        call: &'static str,
        /// Its error number.
        errno: Errno,
    },
    /// The length is zero or above [`MAX_LEN`](crate::MAX_LEN).
    #[error("length of {len} bytes is not in 1..={max}")]
    Length {
        /// The length asked for, or the length of the object.
        len: u64,
        /// The largest legal one.
        max: u64,
    },
    /// The descriptor is of a kind that is never used as memory.
    #[error("the descriptor is refused: {0}")]
    Refused(Refusal),
    /// The object can still be shrunk, so touching a mapping of it could raise `SIGBUS`.
    #[error("the memory is not sealed against shrinking")]
    Unsealed,
    /// The object is not sealed against writing.
    #[error("the memory is not sealed against writing")]
    NotWriteSealed,
    /// The kernel did not add a seal.
    #[error("the kernel refused the seal {seal}: {errno}")]
    SealRefused {
        /// Name of the seal.
        seal: &'static str,
        /// The kernel's reason.
        errno: Errno,
    },
    /// A range does not lie inside the memory.
    #[error("{len} bytes at offset {offset} do not lie inside {size} bytes")]
    OutOfBounds {
        /// Start of the range.
        offset: u64,
        /// Length of the range.
        len: u64,
        /// Size of what it should lie in.
        size: u64,
    },
    /// An atomic must lie at a multiple of its size.
    #[error("offset {offset} is not a multiple of {align}")]
    Misaligned {
        /// Offset of the atomic.
        offset: u64,
        /// What it must be a multiple of.
        align: u64,
    },
    /// The peer did not permit writing.
    #[error("the memory is read-only")]
    ReadOnly,
    /// The file ended before the range did: another process truncated it.
    #[error("the file ended after {got} of {wanted} bytes at offset {offset}")]
    Short {
        /// Start of the range.
        offset: u64,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that were there.
        got: u64,
    },
}

/// Kinds of descriptors which are refused as memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A pipe, socket, directory, device or the like.
    #[error("not a regular file or memfd")]
    NotAFile,
    /// Memory of huge pages: a store into a hole fails with `SIGBUS` when the pages run out.
    #[error("memory of huge pages")]
    HugePages,
    /// The descriptor was not opened for reading.
    #[error("not open for reading")]
    NotReadable,
}

impl ShmError {
    pub(crate) fn system(call: &'static str) -> impl Fn(Errno) -> ShmError {
        move |errno| ShmError::System { call, errno }
    }

    /// `memmap2` speaks `io::Error`; its number is all we keep of it.
    pub(crate) fn from_io(call: &'static str, error: &std::io::Error) -> ShmError {
        ShmError::System { call, errno: Errno::from_io_error(error).unwrap_or(Errno::INVAL) }
    }
}
