//! What an execution that nobody waits for leaves behind.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use burst_hal::{Fence, FencedExecution, FencedInfo, ResultCode, TimePoint, Timing};
use burst_launch::{CheckedFence, FenceState, LaunchError};

use crate::error::{Error, Result};
use crate::process::check_process;
use crate::remote::Remote;

/// The end of an execution, or a fence of somebody else.
pub struct Event {
    kind: Kind,
}

enum Kind {
    /// Of an execution without a fence.
    Signal(Arc<Signal>),
    /// Of an execution with one, which is gone where it has ended well already.
    Fenced {
        fence: Option<EventFence>,
        info: Arc<dyn FencedInfo>,
        /// The code that the framework knows, where it ran the execution itself.
        code: Arc<OnceLock<ResultCode>>,
        /// Services without which the fence would never be done.
        services: Vec<Remote>,
        /// One of them was waited for as long as may be, and does not answer any more.
        is_given_up: AtomicBool,
    },
    /// Somebody else's.
    Foreign(EventFence),
}

/// A fence of a kind that may be waited for.
pub(crate) struct EventFence {
    fence: Fence,
    /// `None` where it had failed already when it came.
    checked: Option<CheckedFence>,
}

/// How an execution ended, once it has.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    code: Mutex<Option<ResultCode>>,
    ended: Condvar,
}

impl Signal {
    /// The execution has ended. The first word counts.
    pub(crate) fn end(&self, code: ResultCode) {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(code);
        self.ended.notify_all();
    }

    fn wait(&self) -> ResultCode {
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *code {
                Some(code) => return code,
                None => code = self.ended.wait(code).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Event {
    /// Of an execution without a fence.
    pub(crate) fn of_signal(signal: &Arc<Signal>) -> Arc<Self> {
        Arc::new(Event { kind: Kind::Signal(Arc::clone(signal)) })
    }

    /// Of a fenced execution. `code` gets the code of one that the framework itself runs; it depends on these
    /// services.
    ///
    /// # Errors
    /// OP_FAILED where the fence is none.
    pub(crate) fn of_fenced(
        execution: FencedExecution,
        code: Arc<OnceLock<ResultCode>>,
        services: Vec<Remote>,
    ) -> Result<Arc<Self>> {
        let FencedExecution { fence, info } = execution;
        let fence =
            fence.map(|fence| EventFence::of(fence).map_err(Error::op_failed)).transpose()?;
        let is_given_up = AtomicBool::new(false);
        Ok(Arc::new(Event { kind: Kind::Fenced { fence, info, code, services, is_given_up } }))
    }

    /// Whether it is the end of an execution, and not somebody else's fence.
    #[must_use]
    pub fn is_of_an_execution(&self) -> bool {
        !matches!(self.kind, Kind::Foreign(_))
    }

    /// Waits for the end: how the execution ended. Any number may wait. In a forked child UNAVAILABLE_DEVICE.
    pub fn wait(&self) -> ResultCode {
        if let Err(error) = check_process() {
            return error.code;
        }
        match &self.kind {
            Kind::Signal(signal) => signal.wait(),
            Kind::Foreign(fence) => match fence.wait() {
                FenceState::Done => ResultCode::NoError,
                _ => ResultCode::OpFailed,
            },
            Kind::Fenced { fence, info, code, services, is_given_up } => {
                // Relaxed: the fence says everything else.
                if is_given_up.load(Ordering::Relaxed) {
                    return ResultCode::DeadObject; // whoever waited before has waited long enough
                }
                if let Some(fence) = fence
                    && fence.wait_for(services) == FenceState::Pending
                {
                    is_given_up.store(true, Ordering::Relaxed);
                    return ResultCode::DeadObject;
                }
                let told = match info.execution_info() {
                    Ok(info) => info.status.into(),
                    Err(failure) => Error::from(failure).code,
                };
                code.get().copied().unwrap_or(told)
            }
        }
    }

    /// An event of a fence, whose descriptor is duplicated: an eventfd, the read end of a pipe, or a sync_file.
    ///
    /// # Errors
    /// BAD_DATA for a descriptor that is no fence.
    pub fn from_sync_fence_fd(fd: BorrowedFd<'_>) -> Result<Arc<Self>> {
        check_process()?;
        let fd = fd.try_clone_to_owned().map_err(Error::bad_data)?;
        let fence = EventFence::of(Fence::from(fd)).map_err(Error::bad_data)?;
        Ok(Arc::new(Event { kind: Kind::Foreign(fence) }))
    }

    /// A duplicate of its fence.
    ///
    /// # Errors
    /// BAD_DATA for an event without one.
    pub fn sync_fence_fd(&self) -> Result<OwnedFd> {
        check_process()?;
        let fence = self.fence().ok_or_else(|| Error::bad_data("the event has no fence"))?;
        fence.fence.as_fd().try_clone_to_owned().map_err(Error::op_failed)
    }

    /// Services without which its fence would never be done.
    pub(crate) fn services(&self) -> &[Remote] {
        match &self.kind {
            Kind::Fenced { services, .. } => services,
            Kind::Signal(_) | Kind::Foreign(_) => &[],
        }
    }

    /// How a fenced execution ended; `None` while it has not.
    pub(crate) fn ended(&self) -> Option<ResultCode> {
        if let Kind::Fenced { is_given_up, .. } = &self.kind
            && is_given_up.load(Ordering::Relaxed)
        {
            return Some(ResultCode::DeadObject);
        }
        let state = self.fence().map_or(FenceState::Done, EventFence::state);
        (state != FenceState::Pending).then(|| self.wait())
    }

    /// Times of a fenced execution that has ended: from its launch on, and from its fences on.
    pub(crate) fn timings(&self) -> Option<(Timing, Timing)> {
        let Kind::Fenced { info, .. } = &self.kind else { return None };
        let info = info.execution_info().ok()?;
        Some((info.timing_launched, info.timing_fenced))
    }

    /// Its fence, for whom it is waited for without a thread.
    pub(crate) fn fence(&self) -> Option<&EventFence> {
        match &self.kind {
            Kind::Signal(_) => None,
            Kind::Foreign(fence) => Some(fence),
            Kind::Fenced { fence, .. } => fence.as_ref(),
        }
    }
}

impl EventFence {
    /// # Errors
    /// A descriptor that nobody may wait for as a fence.
    fn of(fence: Fence) -> std::result::Result<Self, LaunchError> {
        match CheckedFence::check_all(vec![fence.clone()]) {
            Ok(mut checked) => Ok(EventFence { fence, checked: checked.pop() }),
            Err(LaunchError::FailedFence { .. }) => Ok(EventFence { fence, checked: None }),
            Err(error) => Err(error),
        }
    }

    /// The descriptor, for whoever waits for it in another place.
    pub(crate) fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// How far it is.
    pub(crate) fn state(&self) -> FenceState {
        self.checked.as_ref().map_or(FenceState::Failed, CheckedFence::state)
    }

    /// Waits until it is done or has failed.
    fn wait(&self) -> FenceState {
        self.wait_until(None)
    }

    /// The same, as long as these services are there: pending, where one of them no longer is.
    fn wait_for(&self, services: &[Remote]) -> FenceState {
        loop {
            let ends = services.iter().filter_map(|service| service.patience().end());
            let until = ends.min();
            let state = self.wait_until(until);
            if state != FenceState::Pending || !services.iter().all(Remote::is_there) {
                return state;
            }
        }
    }

    /// Waits until it is done or has failed, or for so long.
    fn wait_until(&self, until: Option<TimePoint>) -> FenceState {
        loop {
            match self.state() {
                FenceState::Pending => match self.fence.wait(until) {
                    burst_hal::FenceState::Pending if until.is_some() => {
                        return FenceState::Pending;
                    }
                    // One that cannot be polled stays pending.
                    burst_hal::FenceState::Pending => return FenceState::Failed,
                    burst_hal::FenceState::Done | burst_hal::FenceState::Failed => {}
                },
                state => return state,
            }
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Signal(_) => "signal",
            Kind::Fenced { .. } => "fenced",
            Kind::Foreign(_) => "foreign",
        };
        write!(f, "Event({kind})")
    }
}
