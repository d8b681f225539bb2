//! A service in a process of its own (`burst_peer`), which never outlives its test.
//!
//! Taken in by the test files that want it, not by `burst_support` itself, which is a part of
//! `burst_peer` too.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::burst_support::LONG;

/// `burst_peer` in a role, and what it says.
pub fn spawn(arguments: &[&str], stdin: Stdio) -> (Child, BufReader<ChildStdout>) {
    start(Command::new(env!("CARGO_BIN_EXE_burst_peer")).args(arguments).stdin(stdin))
}

fn start(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("start peer");
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// A service at a path.
pub struct Service(pub Child);

impl Service {
    /// Serves all comers, any number of models.
    pub fn start(path: &Path) -> Service {
        Service::start_as("serve", path)
    }

    /// The same, with stacks of so many bytes for its threads.
    pub fn start_with_stacks(path: &Path, bytes: u64) -> Service {
        let mut command = Command::new(env!("CARGO_BIN_EXE_burst_peer"));
        command.arg("serve").arg(path).stdin(Stdio::null());
        Service::when_ready(start(command.env("RUST_MIN_STACK", bytes.to_string())))
    }

    /// One of `burst_peer`'s roles that take a path.
    pub fn start_as(role: &str, path: &Path) -> Service {
        Service::run(&[role, path.to_str().unwrap()], Stdio::null())
    }

    /// One of its roles that serve a single client, and that client's end of the socket.
    pub fn private(role: &str) -> (Service, OwnedFd) {
        let (ours, theirs) = burst_wire::socket::pair().unwrap();
        (Service::run(&[role], Stdio::from(theirs)), ours)
    }

    fn run(arguments: &[&str], stdin: Stdio) -> Service {
        Service::when_ready(spawn(arguments, stdin))
    }

    fn when_ready((child, mut output): (Child, BufReader<ChildStdout>)) -> Service {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Service(child)
    }

    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Stops it, and returns once the system says that it stands still.
    pub fn stop(&self) {
        self.signal(rustix::process::Signal::STOP);
        let stat = format!("/proc/{}/stat", self.0.id());
        let until = std::time::Instant::now() + LONG;
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            assert!(std::time::Instant::now() < until, "it does not stop");
            std::thread::yield_now();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
