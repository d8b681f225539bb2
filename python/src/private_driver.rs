//! A driver process of our own: the program `burst`, serving one socket that it inherits.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// What is started.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: OsString,
    pub(crate) devices: String,
    pub(crate) threads: u32,
}

/// A child that serves this process alone. It never outlives this value.
#[derive(Debug)]
pub(crate) struct DriverProcess(Child);

impl Program {
    /// Starts the process; gives our end of the socket between us.
    pub(crate) fn start(&self) -> std::io::Result<(DriverProcess, OwnedFd)> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(&self.path);
        command.args(["serve", "--private", "--threads", &self.threads.to_string()]);
        command.args(["--device", &self.devices]);
        // Ctrl-C in a terminal is for Python, which may catch it and go on.
        command.process_group(0);
        let child = command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).spawn()?;
        Ok((DriverProcess(child), ours))
    }
}

impl Drop for DriverProcess {
    /// Nobody else uses it and it keeps nothing: it need not be waited for.
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
