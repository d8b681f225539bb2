//! A callback that is called exactly once, whatever a driver does with it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{ErrorStatus, ExecutionCallback, ExecutionResult, Failure};

/// Launches an execution: `launch` gets a callback for the driver. The caller's callback is called once: with
/// what the driver says, with the status that the launch fails with, or with GENERAL_FAILURE where a
/// driver lets go of its callback without a word.
pub(super) fn launch_once(
    callback: ExecutionCallback,
    launch: impl FnOnce(ExecutionCallback) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let shared = Arc::new(Mutex::new(State::Launching(callback)));
    let guard = Guard(Arc::clone(&shared));
    let launched = launch(Box::new(move |result| guard.settle(result)));
    match &launched {
        Ok(()) => begun(&shared),
        Err(failure) => settle(&shared, ExecutionResult::of(failure.status)),
    }
    launched
}

enum State {
    /// The launch has not returned.
    Launching(ExecutionCallback),
    /// Nor has it, and the driver has let go of its callback: what the launch says decides.
    LetGo(ExecutionCallback),
    Running(ExecutionCallback),
    Done,
}

/// What the driver's callback holds.
struct Guard(Arc<Mutex<State>>);

impl Guard {
    fn settle(&self, result: ExecutionResult) {
        settle(&self.0, result);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        match std::mem::replace(&mut *state, State::Done) {
            State::Launching(callback) => *state = State::LetGo(callback),
            State::Running(callback) => {
                drop(state);
                callback(ExecutionResult::of(ErrorStatus::GeneralFailure));
            }
            other => *state = other,
        }
    }
}

/// The launch has gone well.
fn begun(shared: &Mutex<State>) {
    let mut state = lock(shared);
    match std::mem::replace(&mut *state, State::Done) {
        State::Launching(callback) => *state = State::Running(callback),
        State::LetGo(callback) => {
            drop(state);
            callback(ExecutionResult::of(ErrorStatus::GeneralFailure));
        }
        other => *state = other,
    }
}

/// Calls back, unless that was done. No lock is held meanwhile.
fn settle(shared: &Mutex<State>, result: ExecutionResult) {
    let taken = std::mem::replace(&mut *lock(shared), State::Done);
    match taken {
        State::Launching(callback) | State::LetGo(callback) | State::Running(callback) => {
            callback(result);
        }
        State::Done => {}
    }
}

fn lock(shared: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
