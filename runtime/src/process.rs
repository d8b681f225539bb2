//! Whether this is still the process that began to use the library.
//!
//! A forked child has the objects, but none of the threads, connections and locks behind them. Whatever it
//! calls is answered at once, before anything is locked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use burst_hal::ResultCode;
use burst_shm::ForkMark;

use crate::error::{Error, Result};

/// Refuses a child of the process that used the library first.
///
/// # Errors
/// UNAVAILABLE_DEVICE in a forked child. A child of a process that had not used the library is like any other
/// process.
pub fn check_process() -> Result<()> {
    match is_first_process() {
        true => Ok(()),
        false => Err(Error::new(
            ResultCode::UnavailableDevice,
            "this is a forked child of the process that used the library",
        )),
    }
}

fn is_first_process() -> bool {
    static MARK: OnceLock<ForkMark> = OnceLock::new();
    static FIRST: AtomicI32 = AtomicI32::new(0);
    if let Some(mark) = MARK.get() {
        return mark.is_here();
    }
    // Before anything that could wait: a child may have been forked while another thread took the mark.
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // Relaxed: the number alone matters.
    let first = FIRST.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| first != own) {
        return false;
    }
    // A kernel before 4.14 has no marks: there the numbers are compared each time.
    if let Ok(mark) = ForkMark::take() {
        MARK.get_or_init(|| mark);
    }
    true
}
