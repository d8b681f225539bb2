//! Failures as exceptions of `package/burst/errors.py`.

use std::fmt::Display;

use burst_client::ClientError;
use burst_tasks::TaskError;
use pyo3::PyErr;
use pyo3::prelude::*;

/// A class of `package/burst/errors.py`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    NoService,
    BadModel,
    Refused,
    DriverDied,
    Timeout,
    Failed,
}

/// An exception of this class. Where the class cannot be had, the exception says why.
pub(crate) fn raise(class: Class, text: &dyn Display) -> PyErr {
    Python::attach(|py| {
        let class = py.import("burst.errors").and_then(|errors| errors.getattr(name(class)));
        class
            .and_then(|class| class.call1((text.to_string(),)))
            .map_or_else(|why| why, PyErr::from_value)
    })
}

fn name(class: Class) -> &'static str {
    match class {
        Class::NoService => "NoService",
        Class::BadModel => "BadModel",
        Class::Refused => "Refused",
        Class::DriverDied => "DriverDied",
        Class::Timeout => "Timeout",
        Class::Failed => "Failed",
    }
}

/// What a client was told. A driver that is gone and a time-out are these wherever they happen; the rest is what the
/// call was about.
pub(crate) fn of_client(error: &ClientError, otherwise: Class) -> PyErr {
    let class = match error {
        error if error.is_loss() => Class::DriverDied,
        ClientError::Timeout => Class::Timeout,
        _ => otherwise,
    };
    raise(class, error)
}

/// What a task was told. What its runner was interrupted by is an exception already.
pub(crate) fn of_task(error: TaskError, otherwise: Class) -> PyErr {
    match error {
        TaskError::Client(error) => of_client(&error, otherwise),
        TaskError::Runner(cause) => match cause.downcast::<PyErr>() {
            Ok(raised) => *raised,
            Err(cause) => raise(otherwise, &cause),
        },
        TaskError::Picture(_) | TaskError::Sound(_) | TaskError::TooShort { .. } => {
            pyo3::exceptions::PyValueError::new_err(error.to_string())
        }
        error => raise(otherwise, &error),
    }
}
