//! How far a fence is, from what `poll` says of it.

use std::os::fd::BorrowedFd;

use burst_hal::FenceState;
use burst_shm::{ShmError, SyncFileStatus};
use rustix::event::PollFlags;

/// What a fence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceKind {
    /// The read end of a pipe: done with a byte in it, failed where it is hung up without one.
    Pipe,
    /// An eventfd: done while its counter is above 0; it never fails.
    EventFd,
    /// A fence of the kernel.
    SyncFile,
}

/// Asks a `sync_file` for its status. Machines without a device that makes some are tested with a
/// stand-in for this one call.
pub(crate) type AskSyncFile = fn(BorrowedFd<'_>) -> Result<SyncFileStatus, ShmError>;

/// How far a fence of this kind is of which `poll` says this.
pub(crate) fn judge(
    kind: FenceKind,
    flags: PollFlags,
    sync_file: impl FnOnce() -> Result<SyncFileStatus, ShmError>,
) -> FenceState {
    let is_readable = flags.contains(PollFlags::IN);
    let has_ended = flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    match kind {
        FenceKind::Pipe if is_readable => FenceState::Done,
        // ERR alone is the counter's overflow: more signals than it can count.
        FenceKind::EventFd if is_readable || has_ended => FenceState::Done,
        FenceKind::SyncFile if is_readable || has_ended => match sync_file() {
            Ok(SyncFileStatus::Failed) | Err(_) => FenceState::Failed,
            // Readable, and so no longer active: only the answer lags behind.
            Ok(SyncFileStatus::Signaled | SyncFileStatus::Active) => FenceState::Done,
        },
        FenceKind::Pipe if has_ended => FenceState::Failed,
        _ => FenceState::Pending,
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn each_kind_is_judged_by_its_own_rule() {
        use FenceKind::{EventFd, Pipe, SyncFile};
        use FenceState::{Done, Failed, Pending};
        let (none, readable) = (PollFlags::empty(), PollFlags::IN);
        let hung_up = PollFlags::HUP;
        let unknown = ShmError::System { call: "ioctl", errno: Errno::NOTTY };
        for (kind, flags, answer, want) in [
            (Pipe, none, Err(unknown), Pending),
            (Pipe, readable, Err(unknown), Done),
            (Pipe, readable | hung_up, Err(unknown), Done),
            (Pipe, hung_up, Err(unknown), Failed),
            (Pipe, PollFlags::NVAL, Err(unknown), Failed),
            (EventFd, none, Err(unknown), Pending),
            (EventFd, readable, Err(unknown), Done),
            (EventFd, PollFlags::ERR, Err(unknown), Done),
            (SyncFile, none, Ok(SyncFileStatus::Active), Pending),
            (SyncFile, readable, Ok(SyncFileStatus::Signaled), Done),
            (SyncFile, readable, Ok(SyncFileStatus::Failed), Failed),
            (SyncFile, readable, Err(unknown), Failed),
        ] {
            assert_eq!(judge(kind, flags, || answer), want, "{kind:?} {flags:?} {answer:?}");
        }
    }
}
