//! Fences of the kernel: descriptors that drivers of displays, cameras and accelerators signal.
//!
//! A `sync_file` is readable once its fence has signalled, also where what it stands for has failed; only
//! the kernel's own question tells the two apart.
//!
//! Source: the kernel's `Documentation/driver-api/sync_file.rst` and `include/uapi/linux/sync_file.h`.
#![allow(unsafe_code, reason = "asks the kernel by ioctl, which takes addresses")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::ShmError;

/// The only `ioctl` that fences need, for a sandbox that filters system calls:
/// `SYNC_IOC_FILE_INFO`, `_IOWR('>', 4, struct sync_file_info)`.
pub const SYNC_FILE_INFO: u32 = 0xc038_3e04;

/// How far a fence of the kernel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncFileStatus {
    /// It has not signalled yet.
    Active,
    /// It has signalled.
    Signaled,
    /// What it stands for has failed.
    Failed,
}

/// `struct sync_file_info`. With room for no fences the kernel only tells the status.
#[repr(C)]
#[derive(Default)]
struct Info {
    name: [u8; 32],
    status: i32,
    flags: u32,
    num_fences: u32,
    pad: u32,
    fences: u64,
}

const _: () = assert!(size_of::<Info>() == 56);

/// How far the fence of a `sync_file` is. Waits for nothing.
///
/// # Errors
/// [`ShmError::System`] with `ENOTTY` for a descriptor that is no `sync_file`.
pub fn sync_file_status(fd: BorrowedFd<'_>) -> Result<SyncFileStatus, ShmError> {
    let mut info = Info::default();
    // SAFETY: `SYNC_FILE_INFO` reads and writes an `Info` at the address given, and nothing behind it
    // where `num_fences` is 0; `info` outlives the call.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), SYNC_FILE_INFO as _, &raw mut info) };
    if done != 0 {
        let error = std::io::Error::last_os_error();
        return Err(ShmError::from_io("ioctl(SYNC_IOC_FILE_INFO)", &error));
    }
    Ok(SyncFileStatus::of(info.status))
}

impl SyncFileStatus {
    /// The kernel's number for it: 1 signalled, 0 active, an error number below 0.
    fn of(status: i32) -> Self {
        match status {
            ..0 => SyncFileStatus::Failed,
            0 => SyncFileStatus::Active,
            _ => SyncFileStatus::Signaled,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_is_no_sync_file_has_no_status() {
        let (pipe, _write) = rustix::pipe::pipe().unwrap();
        let errno = Errno::NOTTY;
        let want = ShmError::System { call: "ioctl(SYNC_IOC_FILE_INFO)", errno };
        assert_eq!(sync_file_status(pipe.as_fd()), Err(want));
    }

    #[test]
    fn the_kernels_numbers_have_their_meaning() {
        for (status, want) in [
            (-125, SyncFileStatus::Failed),
            (0, SyncFileStatus::Active),
            (1, SyncFileStatus::Signaled),
        ] {
            assert_eq!(SyncFileStatus::of(status), want, "{status}");
        }
    }
}
