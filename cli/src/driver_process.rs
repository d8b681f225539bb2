//! A driver process of our own: this program again, serving one socket that it inherits.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::device_names;

/// How long a driver process may take to end after we hung up, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// A child that serves us and ends when we hang up. It never outlives this value.
pub(crate) struct DriverProcess(Child);

impl DriverProcess {
    /// Starts the process with this device and so many threads that compute; returns our end of the socket
    /// between us.
    ///
    /// # Errors
    /// There is no such device; the system lacks what a process needs.
    pub(crate) fn start(wait: &str, device: &str, threads: u32) -> Result<(Self, OwnedFd)> {
        let device = device_names::variant(device)?.name;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .context("cannot make a socket for the driver process")?;
        // The file this process runs, even if another one has taken its name since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("burst").args(["serve", "--private", "--wait", wait, "--device", device]);
        if threads > 1 {
            command.arg("--threads").arg(threads.to_string());
        }
        let child = command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the driver process")?;
        Ok((DriverProcess(child), ours))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for DriverProcess {
    /// The connection has been dropped by now: the child sees the hang-up and ends by itself.
    fn drop(&mut self) {
        let give_up = Instant::now() + GRACE;
        while Instant::now() < give_up {
            match self.0.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        tracing::warn!(pid = self.0.id(), "the driver process does not end; killing it");
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            tracing::warn!(%error, "cannot kill the driver process");
        }
    }
}
