//! What goes wrong: a status for the program, and words for its user.

use std::cell::RefCell;
use std::ffi::{CStr, CString};

use burst_client::ClientError;
use burst_tasks::TaskError;

/// `burst_status` of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Ok = 0,
    BadArgument = 1,
    NoService = 2,
    BadModel = 3,
    Refused = 4,
    DriverDied = 5,
    Timeout = 6,
    Failed = 7,
    Defect = 8,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) status: Status,
    text: String,
}

impl Error {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Error { status, text: text.into() }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Error::new(Status::BadArgument, text)
    }

    /// What a client was told. A dead driver and a time-out are these wherever they happen; the rest is what the
    /// call was about.
    pub(crate) fn of(error: &ClientError, otherwise: Status) -> Self {
        let status = match error {
            error if error.is_loss() => Status::DriverDied,
            ClientError::Timeout => Status::Timeout,
            _ => otherwise,
        };
        Error::new(status, error.to_string())
    }

    /// What a task was told; of a driver as [`Error::of`].
    pub(crate) fn of_task(error: &TaskError, otherwise: Status) -> Self {
        match error {
            TaskError::Client(error) => Error::of(error, otherwise),
            error => Error::new(otherwise, error.to_string()),
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the words for who asks in this thread.
pub(crate) fn remember(error: &Error) {
    // Names of files and devices may hold anything but this: C's texts end there.
    let text = CString::new(error.text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| last.replace(text));
}

/// Lets a function look at the words.
pub(crate) fn with_last<T>(look: impl FnOnce(&CStr) -> T) -> T {
    LAST.with(|last| look(&last.borrow()))
}
