//! What happens to a process that writes beyond the length that its files may have.

use nix::sys::signal::{SigSet, Signal};

use crate::ServerError;

/// From now on a write beyond the limit of file sizes (`RLIMIT_FSIZE`, `LimitFSIZE=`) fails with `EFBIG`, in this
/// thread and in those that it starts later; otherwise the kernel ends the process, by SIGXFSZ. A service
/// writes its log, and files of its clients, who must not be able to end it.
///
/// The signal is blocked, which has the same effect as ignoring it and can be said in safe code: nobody ever takes
/// it. To be called before any thread is started; a program that is started from here has it blocked, too.
///
/// # Errors
/// The system refuses.
pub fn block_file_size_signal() -> Result<(), ServerError> {
    let signals: SigSet = [Signal::SIGXFSZ].into_iter().collect();
    signals.thread_block().map_err(|errno| {
        let errno = rustix::io::Errno::from_raw_os_error(errno as i32);
        ServerError::System { call: "pthread_sigmask", errno }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    /// Says that this process is the one whose files may not grow.
    const ROLE: &str = "BURST_TEST_SHORT_FILES";
    const BYTES: usize = 4096;

    #[test]
    fn a_file_that_may_not_grow_is_an_error_and_not_the_end_of_the_process() {
        if std::env::var_os(ROLE).is_some() {
            return write_beyond();
        }
        let name = std::thread::current().name().unwrap().to_owned();
        let mut same = Command::new(std::env::current_exe().unwrap());
        let ended = same.args(["--exact", &name]).env(ROLE, "1").output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }

    fn write_beyond() {
        let mut file = tempfile::tempfile().unwrap();
        block_file_size_signal().unwrap();
        let maximum = getrlimit(Resource::Fsize).maximum;
        setrlimit(Resource::Fsize, Rlimit { current: Some(BYTES as u64), maximum }).unwrap();
        let written = std::thread::spawn(move || {
            file.write_all(&[7; BYTES]).unwrap();
            file.write_all(&[7])
        });
        let error = written.join().unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::FBIG.raw_os_error()));
    }
}
