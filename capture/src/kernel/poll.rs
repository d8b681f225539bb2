//! Waiting for a frame.

#![allow(unsafe_code, reason = "one of the modules that call the kernel")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Waits until the device has a frame or something to tell; false where it had nothing for so long.
///
/// # Errors
/// What the kernel says.
pub(crate) fn wait(device: BorrowedFd<'_>, patience: Duration) -> io::Result<bool> {
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left_ms = libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX);
        let mut one = libc::pollfd { fd: device.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `one` is valid for reads and writes, and is the one element that the call is told of; the
        // descriptor is open for as long as it is borrowed.
        let found = unsafe { libc::poll(&raw mut one, 1, left_ms) };
        match found {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
