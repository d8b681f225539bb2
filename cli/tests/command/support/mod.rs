//! What the tests of the command share: running it, and a process that never outlives its test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

/// Where a service would keep a key: a test's services keep none unless it says so.
pub(crate) const STATE_VARIABLES: [&str; 3] = ["STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"];

/// A command that runs `burst` with these arguments and nothing inherited that could matter.
pub(crate) fn burst(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burst"));
    command.args(args).stdin(Stdio::null()).env_remove("BURST_SOCKET").env_remove("BURST_LOG");
    STATE_VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command
}

/// Runs `burst` to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    burst(args).output().expect("burst runs")
}

/// The JSON object that a run with `--json` printed.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "not one JSON object ({error}): {} / {}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// The repository's root.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository").into()
}

/// A child process that is killed with its test, pass or fail.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) out: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the process starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        Process { child, out }
    }

    /// The next line it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A service on a socket in a folder of its own.
pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Service {
    pub(crate) fn start() -> Self {
        Service::start_with(&[])
    }

    /// With further arguments.
    pub(crate) fn start_with(extra: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("burst.sock");
        let mut command = burst(&["serve", "--socket", socket.to_str().expect("UTF-8")]);
        command.args(extra);
        let mut process = Process::start(command);
        let line = process.line();
        assert!(line.starts_with("listening on "), "{line}");
        Service { process, socket, _folder: folder }
    }

    pub(crate) fn path(&self) -> &str {
        self.socket.to_str().expect("UTF-8")
    }
}
