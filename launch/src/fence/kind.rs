//! What a descriptor is as a fence, found without a question to whoever stands behind it.
//!
//! A descriptor of a client may lie on a file system that answers when the client likes (FUSE): reading
//! it, polling it, even `fstat` may wait for ever. So the first question is `statx` with no field asked for
//! and `AT_STATX_DONT_SYNC`, which the kernel answers from what it has. It tells the file system by its
//! device number: anonymous pipes have one of their own, and so have the kernel's anonymous
//! objects. No `/proc` is needed, which a service in its sandbox cannot open.
//!
//! Anonymous objects are told apart by two calls that do nothing: a `sync_file` answers the question for
//! its status; an eventfd can be written to, so that `writev` without any part succeeds, and of the other
//! objects with a `poll` of their own none that a process without special rights gets can. The one that must not
//! pass is an epoll: polling it polls whatever is in it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use burst_hal::{Fence, FenceState};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{AtFlags, FileType, OFlags, StatxFlags, fcntl_getfl, statx};
use rustix::io::{Errno, retry_on_intr, writev};
use rustix::pipe::{PipeFlags, pipe_with};

use super::state::{AskSyncFile, FenceKind, judge};
use crate::LaunchError;

/// A fence that may be waited for: of a kind that never makes anybody wait who only looks at it.
#[derive(Debug, Clone)]
pub struct CheckedFence {
    fence: Fence,
    kind: FenceKind,
    ask: AskSyncFile,
}

impl CheckedFence {
    /// Looks at all fences of a list. Those that are done stay in it; none is consumed.
    ///
    /// # Errors
    /// [`LaunchError::NotAFence`], [`LaunchError::FailedFence`]: both are INVALID_ARGUMENT.
    /// [`LaunchError::System`] where the process has no descriptor left.
    pub fn check_all(fences: Vec<Fence>) -> Result<Vec<Self>, LaunchError> {
        Self::check_with(fences, burst_shm::sync_file_status)
    }

    pub(crate) fn check_with(
        fences: Vec<Fence>,
        ask: AskSyncFile,
    ) -> Result<Vec<Self>, LaunchError> {
        let check = |(index, fence): (usize, Fence)| {
            let kind = kind_of(fence.as_fd(), ask)?
                .map_err(|found| LaunchError::NotAFence { index, found })?;
            let checked = CheckedFence { fence, kind, ask };
            match checked.state() {
                FenceState::Failed => Err(LaunchError::FailedFence { index }),
                _ => Ok(checked),
            }
        };
        fences.into_iter().enumerate().map(check).collect()
    }

    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> FenceKind {
        self.kind
    }

    /// How far it is. Waits for nothing and consumes nothing.
    #[must_use]
    pub fn state(&self) -> FenceState {
        let mut asked = [PollFd::new(&self.fence, PollFlags::IN)];
        match retry_on_intr(|| poll(&mut asked, Some(&Timespec::default()))) {
            Ok(_) => self.judge(asked[0].revents()),
            Err(_) => FenceState::Failed,
        }
    }

    /// How far it is where `poll` or `epoll` says this.
    pub(crate) fn judge(&self, flags: PollFlags) -> FenceState {
        judge(self.kind, flags, || (self.ask)(self.fence.as_fd()))
    }
}

impl AsFd for CheckedFence {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fence.as_fd()
    }
}

/// Device numbers of the kernel's own file systems.
#[derive(Debug, Clone, Copy)]
struct Devices {
    pipes: (u32, u32),
    /// Of eventfds, sync_files and other objects without a name.
    anonymous: (u32, u32),
}

/// What the kernel knows of a descriptor without asking anybody.
struct Known {
    device: (u32, u32),
    file_type: FileType,
}

fn known(fd: BorrowedFd<'_>) -> Result<Known, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let statx = statx(fd, c"", flags, StatxFlags::empty())?;
    let file_type = FileType::from_raw_mode(statx.stx_mode.into());
    Ok(Known { device: (statx.stx_dev_major, statx.stx_dev_minor), file_type })
}

fn devices() -> Result<Devices, LaunchError> {
    static DEVICES: OnceLock<Devices> = OnceLock::new();
    if let Some(devices) = DEVICES.get() {
        return Ok(*devices);
    }
    // One of each kind of our own shows where they live.
    let event = eventfd(0, EventfdFlags::CLOEXEC).map_err(LaunchError::system("eventfd2"))?;
    let (pipe, _write) = pipe_with(PipeFlags::CLOEXEC).map_err(LaunchError::system("pipe2"))?;
    let of = |fd| known(fd).map(|known| known.device).map_err(LaunchError::system("statx"));
    let devices = Devices { pipes: of(pipe.as_fd())?, anonymous: of(event.as_fd())? };
    Ok(*DEVICES.get_or_init(|| devices))
}

/// The kind of a fence, or in words what else it is.
fn kind_of(
    fd: BorrowedFd<'_>,
    ask: AskSyncFile,
) -> Result<Result<FenceKind, &'static str>, LaunchError> {
    let devices = devices()?;
    let Known { device, file_type } = known(fd).map_err(LaunchError::system("statx"))?;
    let mode = fcntl_getfl(fd).map_err(LaunchError::system("fcntl(F_GETFL)"))?;
    Ok(if mode.contains(OFlags::PATH) {
        Err("a path")
    } else if device == devices.pipes {
        match mode & OFlags::RWMODE == OFlags::RDONLY {
            true => Ok(FenceKind::Pipe),
            false => Err("a pipe that is open for writing"),
        }
    } else if device == devices.anonymous {
        anonymous(fd, mode, ask).ok_or("an object of the kernel that is none")
    } else {
        Err(in_words(file_type))
    })
}

/// Which of the kernel's anonymous objects it is, if one that is a fence.
fn anonymous(fd: BorrowedFd<'_>, mode: OFlags, ask: AskSyncFile) -> Option<FenceKind> {
    if ask(fd).is_ok() {
        return Some(FenceKind::SyncFile);
    }
    let takes_bytes = mode & OFlags::RWMODE == OFlags::RDWR && writev(fd, &[]) == Ok(0);
    takes_bytes.then_some(FenceKind::EventFd)
}

fn in_words(file_type: FileType) -> &'static str {
    match file_type {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a link",
        FileType::Fifo => "a pipe with a name",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "an object of the kernel that is none",
    }
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
