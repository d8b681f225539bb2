//! `burst serve` as a process: locked in, short of descriptors, measured from outside.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use burst_client::{Client, ClientError};
use burst_hal::ErrorStatus;

use crate::support::{self, Process, json, run};

burst_testing::tests![
    a_service_that_is_locked_in_does_the_whole_job_on_every_path(),
    a_private_driver_process_is_locked_in_too(),
    without_a_sandbox_the_service_says_so(),
    the_limit_of_descriptors_is_raised_as_far_as_it_may(),
    a_service_without_descriptors_waits_calmly_and_goes_on_when_it_has_some(),
    a_call_whose_descriptors_find_no_room_is_told_so_and_passes_later(),
    a_service_is_asked_for_its_metrics_while_it_is_locked_in(),
    wrong_flags_end_in_one_sentence(),
    the_sockets_let_in_whom_the_flags_name_whatever_the_umask(),
];

/// Far longer than anything here takes; only turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A service in a folder of its own, with what it says on standard error.
struct Service {
    process: Process,
    socket: PathBuf,
    folder: tempfile::TempDir,
}

impl Service {
    /// `wrap` is put before the command: a shell that changes something first.
    fn start(wrap: &[&str], extra: &[&str]) -> Service {
        Service::start_in(tempfile::tempdir().unwrap(), wrap, extra)
    }

    fn start_in(folder: tempfile::TempDir, wrap: &[&str], extra: &[&str]) -> Service {
        let socket = folder.path().join("burst.sock");
        let burst = env!("CARGO_BIN_EXE_burst");
        let mut command = match wrap {
            [] => Command::new(burst),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(burst);
                command
            }
        };
        command.args(["serve", "--socket", socket.to_str().unwrap()]).args(extra);
        command.env_remove("BURST_LOG").env_remove("NOTIFY_SOCKET").stdin(Stdio::null());
        for name in crate::support::STATE_VARIABLES {
            command.env_remove(name);
        }
        let log = fs::File::create(folder.path().join("log")).unwrap();
        command.stderr(log);
        let mut process = Process::start(command);
        let line = process.line();
        assert!(line.starts_with("listening on "), "{line}");
        Service { process, socket, folder }
    }

    fn pid(&self) -> u32 {
        self.process.child.id()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn stop(&mut self) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut status = None;
        wait_until("the end of the service", || {
            status = self.process.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success(), "{}", self.log());
    }
}

/// `name: value` lines of every thread of a process.
fn statuses(pid: u32) -> Vec<BTreeMap<String, String>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let statuses = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("status")).ok()?;
        let line = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        };
        Some(text.lines().filter_map(line).collect())
    });
    statuses.collect()
}

#[track_caller]
fn assert_locked_in(pid: u32) {
    let statuses = statuses(pid);
    assert!(!statuses.is_empty());
    for status in statuses {
        assert_eq!((&*status["Seccomp"], &*status["NoNewPrivs"]), ("2", "1"), "{}", status["Name"]);
    }
}

fn a_service_that_is_locked_in_does_the_whole_job_on_every_path() {
    let mut service = Service::start(&[], &["--log", "json", "--require-sandbox"]);
    assert_locked_in(service.pid());
    let socket = service.socket.to_str().unwrap();
    for path in [&["burst", "--wait", "adaptive"][..], &["burst", "--wait", "sleep"], &["sync"]] {
        let args = ["stream", "--socket", socket, "--frames", "30", "--json", "--path"];
        let output = run(&[&args[..], path].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(json(&output)["errors"], 0, "{path:?}");
    }
    assert_locked_in(service.pid());
    service.stop();
    assert!(service.socket.exists(), "from inside no name can be taken away");
    let nobody = Client::connect(&service.socket).map(drop).unwrap_err();
    assert!(matches!(nobody, ClientError::NobodyListens { .. }), "{nobody}");
    let log = service.log();
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
        assert_ne!(line["level"], "ERROR", "{line}");
    }
    assert!(log.contains("\"message\":\"sandbox\""), "{log}");
    assert!(log.contains("\"message\":\"listening\""), "{log}");
}

fn a_private_driver_process_is_locked_in_too() {
    let mut command = support::burst(&["stream", "--frames", "1000000000"]);
    command.stderr(Stdio::null());
    let client = Process::start(command);
    let path = format!("/proc/{0}/task/{0}/children", client.child.id());
    let mut driver = None;
    wait_until("a driver process with a burst", || {
        driver = fs::read_to_string(&path).ok().and_then(|pids| pids.trim().parse::<u32>().ok());
        driver.is_some_and(|pid| {
            let threads = fs::read_dir(format!("/proc/{pid}/task"));
            let names = threads
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
            names.into_iter().any(|name| name.starts_with("burst-"))
        })
    });
    assert_locked_in(driver.unwrap());
}

fn without_a_sandbox_the_service_says_so() {
    let mut service = Service::start(&[], &["--no-sandbox"]);
    assert!(statuses(service.pid()).iter().all(|status| status["Seccomp"] == "0"));
    service.stop();
    assert!(service.log().contains("no sandbox, as asked for"));
}

fn the_limit_of_descriptors_is_raised_as_far_as_it_may() {
    let wrap = ["sh", "-c", "ulimit -S -n 64; exec \"$0\" \"$@\""];
    let service = Service::start(&wrap, &[]);
    let limits = fs::read_to_string(format!("/proc/{}/limits", service.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{line}");
    assert_ne!(numbers[0], "64");
}

/// How often a process gave up its processor by itself, all threads together.
fn switches(pid: u32) -> u64 {
    let of_thread = |status: &BTreeMap<String, String>| status["voluntary_ctxt_switches"].parse();
    statuses(pid).iter().map(|status| of_thread(status).unwrap_or(0_u64)).sum()
}

/// Connections that are accepted by nobody, or by a service that has no descriptor for more.
fn crowd(socket: &Path, count: usize) -> Vec<std::os::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let address = SocketAddrUnix::new(socket).unwrap();
    let connect = |_| {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let connection = rustix::net::socket_with(family, kind, flags, None).unwrap();
        rustix::net::connect(&connection, &address).ok()?;
        Some(connection)
    };
    (0..count).map_while(connect).collect()
}

fn a_service_without_descriptors_waits_calmly_and_goes_on_when_it_has_some() {
    let wrap = ["sh", "-c", "ulimit -n 24; exec \"$0\" \"$@\""];
    // More than there are, so that it is the system that has none.
    let flags = ["--no-high-performance", "--max-descriptors=99", "--max-descriptors-per-user=99"];
    let mut service = Service::start(&wrap, &flags);
    let crowd = crowd(&service.socket, 40);
    assert!(crowd.len() > 24);
    wait_until("the shortage in the log", || service.log().contains("cannot take connections"));
    // It looks again ten times a second; a loop that spins would do so a hundred thousand times.
    let before = switches(service.pid());
    std::thread::sleep(Duration::from_millis(500));
    let grown = switches(service.pid()) - before;
    assert!(grown < 2000, "{grown} switches in half a second");
    drop(crowd);
    let devices = || run(&["devices", "--socket", service.socket.to_str().unwrap()]);
    wait_until("the next client", || devices().status.success());
    wait_until("the end in the log", || {
        devices().status.success() && service.log().contains("connections are accepted again")
    });
    service.stop();
    assert_eq!(service.log().matches("cannot take connections").count(), 1, "said once");
}

fn a_call_whose_descriptors_find_no_room_is_told_so_and_passes_later() {
    let wrap = ["sh", "-c", "ulimit -n 40; exec \"$0\" \"$@\""];
    // More than there are, so that it is the system that has none; then as it comes, where it is the
    // user's account.
    let system = ["--no-high-performance", "--max-descriptors=99", "--max-descriptors-per-user=99"];
    for (flags, said) in [(&system[..], "no file descriptor left"), (&system[..1], "for one user")]
    {
        let service = Service::start(&wrap, flags);
        finds_no_room_and_passes_later(&service, said);
    }
}

fn finds_no_room_and_passes_later(service: &Service, said: &str) {
    let client = Client::connect(&service.socket).unwrap();
    let device = client.device("cpu").unwrap();
    let model = one_relu();
    let prepared = device.prepare(&model, &Default::default()).unwrap();
    let mut held = Vec::new();
    let refused = loop {
        match prepared.configure_burst(&Default::default()) {
            Ok(burst) => held.push(burst),
            Err(error) => break error,
        }
        assert!(held.len() < 40);
    };
    let ClientError::Refused { status, detail, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*status, ErrorStatus::ResourceExhaustedTransient, "{detail}");
    assert!(detail.contains(said), "{detail}");
    // The connection lives, and what was let go of makes room.
    held.clear();
    let start = Instant::now();
    while let Err(error) = prepared.configure_burst(&Default::default()) {
        assert!(start.elapsed() < HANG, "{error}");
    }
}

fn one_relu() -> burst_hal::Model {
    let mut builder = burst_hal::ModelBuilder::new();
    let input = builder.input(burst_hal::OperandType::TensorFloat32, &[1, 4]);
    let spec = burst_hal::OutputSpec::f32(&[1, 4]);
    let output = builder.result_of(burst_hal::OperationType::Relu, &[input], spec);
    builder.output(output);
    builder.build().unwrap()
}

fn a_service_is_asked_for_its_metrics_while_it_is_locked_in() {
    let folder = tempfile::tempdir().unwrap();
    let admin = folder.path().join("admin.sock");
    let mut service = Service::start(&[], &["--admin", admin.to_str().unwrap()]);
    let socket = service.socket.to_str().unwrap().to_owned();
    let output = run(&["stream", "--socket", &socket, "--frames", "30", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut connection = UnixStream::connect(&admin).unwrap();
    connection.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let value = |series: &str| -> u64 {
        let line = answer.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in {answer}")).parse().unwrap()
    };
    assert!(value("burst_requests_total{path=\"burst\",status=\"OK\"}") >= 30);
    assert_eq!(
        value("burst_request_duration_seconds_count{path=\"burst\"}"),
        value("burst_executions_total{path=\"burst\"}")
    );
    assert_eq!(value("burst_sandbox_layer{layer=\"seccomp\"}"), 1);
    assert!(answer.ends_with("# EOF\n"));
    service.stop();
    assert!(UnixStream::connect(&admin).is_err(), "nobody listens any more");
    // What it left behind is replaced by the next service, which serves.
    let again = Service::start_in(service.folder, &[], &["--admin", admin.to_str().unwrap()]);
    assert!(UnixStream::connect(&admin).is_ok());
    assert!(run(&["devices", "--socket", again.socket.to_str().unwrap()]).status.success());
}

fn wrong_flags_end_in_one_sentence() {
    for (arguments, said) in [
        (["--idle-release", "-1"], "number of seconds"),
        (["--turn-patience", "-1"], "--turn-patience -1 is no number of seconds"),
        (["--max-slow-calls", "0"], "0 is not from 1 to 64"),
        (["--max-models", "many"], "expected a whole number from 1 on"),
    ] {
        let mut arguments_all = vec!["serve", "--socket", "/nonexistent/x"];
        let joined = format!("{}={}", arguments[0], arguments[1]);
        arguments_all.push(&joined);
        let output = run(&arguments_all);
        assert_eq!(output.status.code(), Some(2));
        let stderr = BufReader::new(&*output.stderr).lines().map_while(Result::ok);
        assert!(stderr.into_iter().any(|line| line.contains(said)), "{arguments:?}");
    }
}

fn the_sockets_let_in_whom_the_flags_name_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    for umask in ["000", "022", "077"] {
        for (flags, want) in [(&[][..], 0o600), (&["--allow-uid", "412001"], 0o666)] {
            let umask = format!("umask {umask}; exec \"$0\" \"$@\"");
            let folder = tempfile::tempdir().unwrap();
            let admin = folder.path().join("admin.sock");
            let flags = [&["--admin", admin.to_str().unwrap()], flags].concat();
            let service = Service::start(&["sh", "-c", &umask], &flags);
            for path in [&service.socket, &admin] {
                let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, want, "{umask}, {flags:?}: {}", path.display());
            }
        }
    }
}
