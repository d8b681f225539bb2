//! Waiting while the interpreter goes on, and Ctrl-C is heard.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use burst_client::{ClientError, Deadline};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{self, Class};

/// How long is waited before the interpreter is asked for signals. A person does not notice it, and the few microseconds of
/// asking are nothing beside it.
const LISTENING: Duration = Duration::from_millis(50);
/// How long a thread sleeps that finds a model in use by another one.
const PAUSE: Duration = Duration::from_micros(200);

/// A deadline so many seconds from now; none is never.
pub(crate) fn deadline(timeout: Option<f64>) -> PyResult<Deadline> {
    let Some(seconds) = timeout else { return Ok(Deadline::never()) };
    let time = Duration::try_from_secs_f64(seconds);
    let time = time
        .map_err(|_| PyValueError::new_err(format!("timeout={seconds}: no number of seconds")))?;
    Ok(Deadline::after(time))
}

/// Has `attempt` wait until shorter deadlines, one after the other until `deadline`, and asks for signals between them.
///
/// # Errors
/// What a handler of a signal raised, such as `KeyboardInterrupt`.
pub(crate) fn listening<T>(
    deadline: Deadline,
    mut attempt: impl FnMut(Deadline) -> Result<T, ClientError>,
) -> PyResult<Result<T, ClientError>> {
    loop {
        let slice = Deadline::after(LISTENING);
        let is_last = match (deadline.as_ns(), slice.as_ns()) {
            (Some(end), Some(slice)) => end <= slice,
            _ => false,
        };
        match attempt(if is_last { deadline } else { slice }) {
            Err(ClientError::Timeout) if !is_last => Python::attach(|py| py.check_signals())?,
            done => return Ok(done),
        }
    }
}

/// Has something done that waits for the driver, and cannot be told to stop, on a thread of its own, and asks for signals
/// until it is done. Where a handler raises, that thread is left alone: it ends with the driver's answer, or with the driver, and
/// what it made is dropped there.
///
/// # Errors
/// As [`listening`]; what `work` says.
pub(crate) fn aside<T: Send + 'static>(
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let (tell, told) = sync_channel(1);
    let thread = std::thread::Builder::new().name("burst".to_owned());
    // Nobody listens any more where a signal came.
    thread.spawn(move || drop(tell.send(work())))?;
    loop {
        match told.recv_timeout(LISTENING) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(errors::raise(
                    Class::Failed,
                    &"a panic, which is a defect of this package",
                ));
            }
        }
    }
}

/// The value, once no other thread has it.
///
/// # Errors
/// As [`listening`].
pub(crate) fn lock<T>(value: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    let pauses = LISTENING.as_micros() / PAUSE.as_micros();
    loop {
        for _ in 0..pauses {
            match value.try_lock() {
                Ok(guard) => return Ok(guard),
                // A panic elsewhere became an exception; what it left is as whole as after any other failure.
                Err(TryLockError::Poisoned(guard)) => return Ok(PoisonError::into_inner(guard)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            }
        }
        Python::attach(|py| py.check_signals())?;
    }
}
