//! A forked child of the test's own process, to see what it may do there.

#![allow(
    unsafe_code,
    reason = "`fork` of the C library, which makes its allocator usable in the child"
)]

use std::io;

/// Runs `child` in a forked child and gives its exit status; 101 where it panicked.
///
/// The child has one thread; it must not need a lock that another thread of this process may
/// have held at the moment of the fork.
///
/// # Errors
/// The system forks no more, or the child did not exit by itself.
pub fn run_in_forked_child(child: impl FnOnce() -> u8) -> io::Result<u8> {
    // SAFETY: the child runs `child` and exits below without returning here, so that nothing of
    // this process's is dropped or run twice. glibc makes its own allocator usable in the child.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(101);
        // SAFETY: ends this process; runs no destructor and no handler of the parent's.
        unsafe { libc::_exit(i32::from(status)) };
    }
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let pid = rustix::process::Pid::from_raw(pid);
    let waited = rustix::io::retry_on_intr(|| {
        rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())
    });
    let status = waited?.and_then(|(_, status)| status.exit_status());
    let status = status.and_then(|status| u8::try_from(status).ok());
    status.ok_or_else(|| io::Error::other("the child did not exit by itself"))
}
