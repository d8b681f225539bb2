//! One thread that waits for the fences of everybody, so that nobody's thread is blocked by one.
//!
//! It sleeps in `epoll_wait` and consumes nothing. Fences are kept by their descriptor: several waits for
//! the same one are one entry.

mod state;

use std::sync::{Arc, Mutex};
use std::thread::Builder;

use burst_hal::{CancelWord, TimePoint};

use crate::fence::CheckedFence;
use crate::locks::{guarded, lock};
use crate::{FenceState, LaunchError};
use state::{Shared, Wait};

/// How a wait for fences ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// All fences are done.
    Done,
    /// One has failed.
    Failed,
    /// The deadline has passed.
    MissedDeadline,
    /// Nobody waits any more: cancelled, or the watcher is gone.
    Cancelled,
}

/// What is called when a wait has ended. It must not wait for anything itself: others' fences wait
/// meanwhile.
pub(crate) type Ended = Box<dyn FnOnce(WaitEnd) + Send>;

/// Waits for fences, on a thread of its own that it starts with the first wait. The thread ends when this
/// is dropped; what still waits then is cancelled.
#[derive(Debug)]
pub struct FenceWatcher {
    name: String,
    shared: Mutex<Option<Arc<Shared>>>,
}

/// A wait under way. It goes on when this is dropped.
#[derive(Debug)]
pub struct Waiting {
    shared: Arc<Shared>,
    number: u64,
}

/// One that is cancelled when this is dropped.
#[derive(Debug)]
pub(crate) struct Alarm(pub(crate) Waiting);

impl Default for FenceWatcher {
    fn default() -> Self {
        FenceWatcher::new("fences")
    }
}

impl FenceWatcher {
    /// A watcher whose thread will have this name.
    #[must_use]
    pub fn new(thread: &str) -> Self {
        FenceWatcher { name: thread.to_owned(), shared: Mutex::new(None) }
    }

    /// Waits until all of these fences are done, one has failed, the deadline passed or the word was
    /// set, and then calls `ended`, exactly once: on the watcher's thread, perhaps before this returns.
    /// Nothing is consumed. Deadlines are noticed within about a millisecond.
    ///
    /// # Errors
    /// [`LaunchError::System`] or [`LaunchError::NoThread`]; `ended` is not called then.
    pub fn wait(
        &self,
        fences: &[CheckedFence],
        deadline: Option<TimePoint>,
        cancel: &CancelWord,
        ended: impl FnOnce(WaitEnd) + Send + 'static,
    ) -> Result<Waiting, LaunchError> {
        self.add(fences, deadline, Some(cancel), Box::new(ended))
    }

    /// Calls `ended` at this time, or earlier with [`WaitEnd::Cancelled`]; otherwise as
    /// [`wait`](FenceWatcher::wait).
    ///
    /// # Errors
    /// As `wait`.
    pub fn alarm(
        &self,
        at: TimePoint,
        ended: impl FnOnce(WaitEnd) + Send + 'static,
    ) -> Result<Waiting, LaunchError> {
        let shared = self.shared()?;
        let number = shared.add(Wait::alarm(at, Box::new(ended)), &[])?;
        Ok(Waiting { shared, number })
    }

    /// Calls this on the watcher's thread as soon as it gets to it.
    ///
    /// # Errors
    /// As `wait`.
    pub fn soon(&self, run: impl FnOnce() + Send + 'static) -> Result<(), LaunchError> {
        self.alarm(TimePoint { nanos: 0 }, |_| run()).map(drop)
    }

    fn add(
        &self,
        fences: &[CheckedFence],
        deadline: Option<TimePoint>,
        cancel: Option<&CancelWord>,
        ended: Ended,
    ) -> Result<Waiting, LaunchError> {
        let shared = self.shared()?;
        let number = shared.add(Wait::new(deadline, ended), fences)?;
        if let Some(cancel) = cancel {
            let weak = Arc::downgrade(&shared);
            // It may be called at once, on this thread, which holds no lock here.
            let hook = cancel.when_cancelled(move || {
                if let Some(shared) = weak.upgrade() {
                    shared.cancel(number);
                }
            });
            shared.keep_hook(number, hook);
        }
        Ok(Waiting { shared, number })
    }

    /// What the thread shares with everybody; starts the thread where there is none yet.
    fn shared(&self) -> Result<Arc<Shared>, LaunchError> {
        let mut kept = lock(&self.shared);
        if let Some(shared) = &*kept {
            return Ok(Arc::clone(shared));
        }
        let shared = Arc::new(Shared::new()?);
        let in_thread = Arc::clone(&shared);
        let started = Builder::new().name(self.name.clone()).spawn(move || run(&in_thread));
        started.map_err(|error| {
            tracing::warn!(%error, "no thread to watch fences on");
            LaunchError::NoThread
        })?;
        *kept = Some(Arc::clone(&shared));
        Ok(shared)
    }
}

impl Drop for FenceWatcher {
    fn drop(&mut self) {
        if let Some(shared) = lock(&self.shared).take() {
            shared.stop();
        }
    }
}

impl Waiting {
    /// Nobody waits any more: `ended` is called with [`WaitEnd::Cancelled`], unless it was, or is about
    /// to be, called.
    pub fn cancel(&self) {
        self.shared.cancel(self.number);
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The watcher's thread.
fn run(shared: &Shared) {
    loop {
        let is_stopped = shared.sleep();
        let ended = shared.take_ended(is_stopped);
        for (wait, end) in ended {
            if guarded(|| wait.end(end)).is_none() {
                tracing::error!(?end, "what was to be told of the end of a wait panicked");
            }
        }
        if is_stopped {
            return;
        }
    }
}

/// How far a list of fences is: failed where one is, done where all are.
pub(crate) fn state_of_all(fences: &[CheckedFence]) -> FenceState {
    let mut all = FenceState::Done;
    for fence in fences {
        match fence.state() {
            FenceState::Failed => return FenceState::Failed,
            FenceState::Pending => all = FenceState::Pending,
            FenceState::Done => {}
        }
    }
    all
}

#[cfg(test)]
#[path = "watcher/tests.rs"]
mod tests;
