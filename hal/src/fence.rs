//! Fences, and what executions that are not waited for give.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::{ErrorStatus, ExecutionOptions, ExecutionResult, Failure, TimePoint, Timing};

/// A descriptor that becomes readable when something is done. Copies share it.
///
/// | it is | done | failed |
/// |---|---|---|
/// | a pipe | a byte can be read | it is hung up without one |
/// | an eventfd | its counter is above 0 | never |
/// | a sync_file of the kernel | it is readable | it says so |
///
/// Nobody consumes what it signals, so that any number can wait for it.
#[derive(Debug, Clone)]
pub struct Fence(Arc<OwnedFd>);

impl From<OwnedFd> for Fence {
    fn from(descriptor: OwnedFd) -> Self {
        Fence(Arc::new(descriptor))
    }
}

impl AsFd for Fence {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// How far a fence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceState {
    /// What it stands for is under way.
    Pending,
    /// It is done.
    Done,
    /// It has failed, and will never be done.
    Failed,
}

impl Fence {
    /// How it stands now, as far as polling it says: a sync_file that has failed looks done. What a
    /// descriptor of somebody else is, and whether it has failed, `burst_launch::CheckedFence` finds out.
    #[must_use]
    pub fn state(&self) -> FenceState {
        self.wait(Some(TimePoint { nanos: 0 }))
    }

    /// Blocks until it is done or has failed, as far as polling it says; until `until`, where that comes
    /// first. One that cannot be polled stays [`FenceState::Pending`].
    #[must_use]
    pub fn wait(&self, until: Option<TimePoint>) -> FenceState {
        loop {
            let left = until.map(|until| time_left(until.since(TimePoint::now())));
            let mut fds = [PollFd::new(self, PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Err(Errno::INTR) => {}
                Err(_) | Ok(0) => return FenceState::Pending,
                Ok(_) if fds[0].revents().contains(PollFlags::IN) => return FenceState::Done,
                Ok(_) => return FenceState::Failed,
            }
        }
    }
}

fn time_left(left: Duration) -> Timespec {
    Timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    }
}

/// What is called with the result of an execution that was started asynchronously.
pub type ExecutionCallback = Box<dyn FnOnce(ExecutionResult) + Send>;

/// How a fenced execution is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FencedOptions {
    /// As any other. The deadline counts also while it waits for fences.
    pub execution: ExecutionOptions,
    /// Longest time from the moment on at which all fences are done.
    pub duration: Option<Duration>,
}

/// A fenced execution that was started.
#[derive(Clone)]
pub struct FencedExecution {
    /// Done when the execution is; `None` where it has ended well already.
    pub fence: Option<Fence>,
    /// What came of it.
    pub info: Arc<dyn FencedInfo>,
}

impl fmt::Debug for FencedExecution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedExecution").field("fence", &self.fence).finish_non_exhaustive()
    }
}

/// What came of a fenced execution.
pub trait FencedInfo: Send + Sync {
    /// How it ended, and how long it took.
    ///
    /// # Errors
    /// GENERAL_FAILURE before it has ended.
    fn execution_info(&self) -> Result<ExecutionInfo, Failure>;
}

/// How a fenced execution ended. Times are [`Timing::UNAVAILABLE`] unless they were asked for and the
/// status is NONE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionInfo {
    /// How it ended.
    pub status: ErrorStatus,
    /// From the call on.
    pub timing_launched: Timing,
    /// From the moment on at which all fences were done.
    pub timing_fenced: Timing,
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn soon() -> Option<TimePoint> {
        Some(TimePoint::after(Duration::from_millis(1)))
    }

    #[test]
    fn a_pipe_is_done_with_a_byte_and_failed_without_and_stays_so() {
        let (read, mut write) = std::io::pipe().unwrap();
        let fence = Fence::from(OwnedFd::from(read));
        assert_eq!((fence.state(), fence.wait(soon())), (FenceState::Pending, FenceState::Pending));
        write.write_all(&[1]).unwrap();
        assert_eq!(fence.wait(None), FenceState::Done);
        drop(write);
        assert_eq!((fence.state(), fence.clone().state()), (FenceState::Done, FenceState::Done));
        let (read, write) = std::io::pipe().unwrap();
        drop(write);
        assert_eq!(Fence::from(OwnedFd::from(read)).wait(None), FenceState::Failed);
    }
}
