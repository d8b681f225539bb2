//! A started execution as an object.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use burst_hal::{
    Caller, CancelWord, ExecutionCallback, ExecutionOptions, ExecutionResult, Failure,
    PreparedModel, Request, TimePoint,
};

use crate::locks::lock;

/// An asynchronous execution that was started, of any prepared model, here or in another process.
///
/// Its result is waited for by a thread ([`wait`](Execution::wait), [`wait_until`](Execution::wait_until)),
/// given to a callback ([`when_done`](Execution::when_done)), or awaited: it is a `Future`, which
/// needs no particular runtime and no thread of its own.
///
/// Dropped before its end, it is cancelled. The request belongs to the driver: its memories stay as they
/// are until the driver has stopped, whenever that is.
#[derive(Debug)]
#[must_use = "an execution that is dropped is cancelled"]
pub struct Execution {
    shared: Arc<Shared>,
    /// `None` where nobody is to cancel it any more.
    cancel: Option<CancelWord>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    result: Option<ExecutionResult>,
    then: Then,
}

/// Who is told of the end.
#[derive(Default)]
enum Then {
    #[default]
    Nobody,
    Wake(Waker),
    Call(ExecutionCallback),
}

impl Execution {
    /// Starts an execution.
    ///
    /// # Errors
    /// As [`PreparedModel::execute_asynchronously`]: INVALID_ARGUMENT for a request that is not legal.
    pub fn start(
        model: Arc<dyn PreparedModel>,
        request: Request,
        options: ExecutionOptions,
    ) -> Result<Self, Failure> {
        Self::start_for(model, request, options, Caller::default())
    }

    /// Starts an execution for a caller, whose cancel word is set when the execution is dropped: it should
    /// be this execution's alone.
    ///
    /// # Errors
    /// As [`Execution::start`].
    pub fn start_for(
        model: Arc<dyn PreparedModel>,
        request: Request,
        options: ExecutionOptions,
        caller: Caller,
    ) -> Result<Self, Failure> {
        let shared = Arc::new(Shared::default());
        let cancel = caller.cancel_word().clone();
        let told = Arc::clone(&shared);
        let callback = Box::new(move |result| told.end(result));
        model.execute_asynchronously(request, options, caller, callback)?;
        Ok(Execution { shared, cancel: Some(cancel) })
    }

    /// Whether the result is there.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        lock(&self.shared.state).result.is_some()
    }

    /// Asks the driver to give up. The result comes like any other.
    pub fn cancel(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }

    /// Waits for the result.
    #[must_use]
    pub fn wait(mut self) -> ExecutionResult {
        let mut state = lock(&self.shared.state);
        let result = loop {
            if let Some(result) = state.result.take() {
                break result;
            }
            state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        self.cancel = None;
        result
    }

    /// Waits for the result, until a point in time at most.
    ///
    /// # Errors
    /// The execution, which goes on.
    pub fn wait_until(mut self, at: TimePoint) -> Result<ExecutionResult, Self> {
        let mut state = lock(&self.shared.state);
        while state.result.is_none() {
            let left = at.since(TimePoint::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let result = state.result.take();
        drop(state);
        let Some(result) = result else { return Err(self) };
        self.cancel = None;
        Ok(result)
    }

    /// Gives the result to a callback, on whichever thread it comes from; at once where it is there. The
    /// execution goes on although this object is gone.
    pub fn when_done(mut self, callback: impl FnOnce(ExecutionResult) + Send + 'static) {
        self.cancel = None;
        let mut state = lock(&self.shared.state);
        match state.result.take() {
            None => state.then = Then::Call(Box::new(callback)),
            Some(result) => {
                drop(state);
                callback(result);
            }
        }
    }
}

impl Future for Execution {
    type Output = ExecutionResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExecutionResult> {
        let mut state = lock(&self.shared.state);
        let Some(result) = state.result.take() else {
            // The latest waker counts: the future may have moved to another task.
            state.then = Then::Wake(context.waker().clone());
            return Poll::Pending;
        };
        drop(state);
        self.cancel = None;
        Poll::Ready(result)
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.cancel();
        }
    }
}

impl Shared {
    /// The driver has stopped, and let go of the request.
    fn end(&self, result: ExecutionResult) {
        let mut state = lock(&self.state);
        let then = std::mem::take(&mut state.then);
        match then {
            Then::Call(callback) => {
                drop(state);
                callback(result);
            }
            then => {
                state.result = Some(result);
                drop(state);
                self.ended.notify_all();
                if let Then::Wake(waker) = then {
                    waker.wake();
                }
            }
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("result", &self.result).finish_non_exhaustive()
    }
}
