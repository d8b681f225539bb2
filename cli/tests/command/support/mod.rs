//! What the tests of the command share: running it, and a process that never outlives its test.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) mod terminal;

/// Where a service would keep a key: a test's services keep none unless it says so.
pub(crate) const STATE_VARIABLES: [&str; 3] = ["STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"];

/// A command that runs `burst` with these arguments and nothing inherited that could matter.
pub(crate) fn burst(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burst"));
    command.args(args).stdin(Stdio::null()).env_remove("BURST_SOCKET").env_remove("BURST_LOG");
    command.env_remove("BURST_VLOG").env_remove("BURST_PYTHON");
    // What a terminal is told to show must not depend on whether the one that runs the tests is one.
    command.env("TERM", "xterm");
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    STATE_VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command
}

/// Runs `burst` to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    burst(args).output().expect("burst runs")
}

/// The `libneuralnetworks.so` that Cargo built together with these tests.
pub(crate) fn library() -> String {
    let own = std::env::current_exe().expect("a path");
    let library = own.with_file_name("libneuralnetworks.so");
    library.to_str().expect("UTF-8").to_owned()
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

/// Sends a signal by its name, such as `-INT`.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(status.expect("kill runs").success(), "{name} to {pid}");
}

/// A program of this name, which notes what it is to open where that is there, and ends with this status.
pub(crate) fn opener(folder: &Path, status: u8) -> PathBuf {
    let noted = folder.join("opened");
    let script = format!(
        "#!/bin/sh\ntest -s \"$1\" && printf %s \"$1\" > '{}'\nexit {status}\n",
        noted.display()
    );
    let program = folder.join("xdg-open");
    std::fs::write(&program, script).expect("a program");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
    noted
}

/// Far longer than anything here takes; only turns a hang into a failure.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// Waits for something that will be.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The only child of a process, once it has one.
pub(crate) fn child_of(pid: u32) -> u32 {
    let mut child = None;
    wait_until("the driver process", || {
        // Of whichever thread has started it. A thread that ends meanwhile has no children.
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        let lists = threads.flatten().map(|thread| thread.path().join("children"));
        child = lists.flat_map(std::fs::read_to_string).find_map(|children| {
            children.split_whitespace().next().and_then(|pid| pid.parse().ok())
        });
        child.is_some()
    });
    child.expect("waited for")
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
        Service::start_logging(extra, Stdio::inherit())
    }

    /// With further arguments, and its log lines here.
    pub(crate) fn start_logging(extra: &[&str], log: impl Into<Stdio>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("burst.sock");
        let mut command = burst(&["serve", "--socket", socket.to_str().expect("UTF-8")]);
        command.args(extra).stderr(log);
        let mut process = Process::start(command);
        let line = process.line();
        assert!(line.starts_with("listening on "), "{line}");
        Service { process, socket, _folder: folder }
    }

    pub(crate) fn path(&self) -> &str {
        self.socket.to_str().expect("UTF-8")
    }
}
