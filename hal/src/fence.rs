//! Fences, and what executions that are not waited for give.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::{ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Timing};

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
