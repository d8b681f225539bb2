//! A driver process of our own: this program again, serving one socket that it inherits.

use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::device_names;
use crate::serve::log;

/// How long a driver process may take to end after we hung up, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// How long is waited for the status of a driver process that has closed its sockets.
const STATUS_PATIENCE: Duration = Duration::from_secs(1);

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
            .args(log::arguments())
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the driver process")?;
        Ok((DriverProcess(child), ours))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// How it ended, in words; `None` where it goes on. It is given some time: its sockets are closed before its
    /// status can be asked for.
    pub(crate) fn how_it_ended(&mut self) -> Option<String> {
        let give_up = Instant::now() + STATUS_PATIENCE;
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Some(in_words(status)),
                Ok(None) if Instant::now() < give_up => {
                    std::thread::sleep(Duration::from_millis(1))
                }
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

/// How a process ended.
fn in_words(status: ExitStatus) -> String {
    match (status.signal().map(Signal::try_from), status.code()) {
        (Some(Ok(signal)), _) => format!("killed by {signal}"),
        (Some(Err(_)), _) => "killed by a signal".to_owned(),
        (None, Some(code)) if code > 128 && Signal::try_from(code - 128).is_ok() => {
            let signal = Signal::try_from(code - 128).map_or("a signal", Signal::as_str);
            format!("it was told to end by {signal}")
        }
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => "it has no exit status".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_told_by_its_signal_or_its_status() {
        let said = |raw| in_words(ExitStatus::from_raw(raw));
        assert_eq!(said(9), "killed by SIGKILL");
        assert_eq!(said(3 << 8), "exit status 3");
        assert_eq!(said(143 << 8), "it was told to end by SIGTERM");
    }
}
