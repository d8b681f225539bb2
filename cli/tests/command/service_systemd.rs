//! The service under systemd, whose part a test plays: a socket handed over as descriptor 3, news
//! on a datagram socket; and the unit files, asked of systemd itself where it is installed.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use burst_testing::program;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::support::{self, Process, json, run};

burst_testing::tests![
    a_socket_is_taken_over_and_the_supervisor_is_told(),
    a_socket_that_is_meant_for_another_process_is_left_alone(),
    a_socket_of_another_kind_is_refused_in_one_sentence(),
    a_supervisor_that_cannot_be_reached_is_an_error(),
    systemd_finds_no_fault_in_the_unit_files(&program("systemd-analyze")?),
    the_unit_starts_the_service_with_flags_that_it_has(),
    the_unit_gives_the_service_longer_to_stop_than_it_takes(),
];

/// Far longer than anything here takes; only turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

/// A socket of sequenced packets on which connections wait, as a socket unit makes it.
fn listening(path: &Path) -> OwnedFd {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&socket, 16).unwrap();
    socket
}

/// `burst serve` with `socket` as descriptor 3. `pid` is what the shell that becomes the
/// service sets `LISTEN_PID` to; `$$` is its own number.
fn handed(socket: OwnedFd, pid: &str, extra: &[&str]) -> Command {
    let script = format!("exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID={pid} exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_burst"), "serve"]).args(extra);
    command.env_remove("BURST_SOCKET").env_remove("NOTIFY_SOCKET").env("BURST_LOG", "warn");
    for name in support::STATE_VARIABLES {
        command.env_remove(name);
    }
    command.stdin(Stdio::from(socket));
    command
}

fn news(supervisor: &UnixDatagram) -> String {
    supervisor.set_read_timeout(Some(HANG)).unwrap();
    let mut bytes = [0; 256];
    let length = supervisor.recv(&mut bytes).expect("news");
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

fn a_socket_is_taken_over_and_the_supervisor_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (path, notify) = (folder.path().join("burst.sock"), folder.path().join("notify"));
    let supervisor = UnixDatagram::bind(&notify).unwrap();
    let socket = listening(&path);
    let kept = socket.try_clone().unwrap();
    let mut command = handed(socket, "$$", &[]);
    command.env("NOTIFY_SOCKET", &notify);
    let mut service = Process::start(command);
    assert_eq!(service.line(), "listening on the socket that was handed over\n");
    assert_eq!(news(&supervisor), "READY=1");
    let output = run(&["stream", "--socket", path.to_str().unwrap(), "--frames", "20", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(json(&output)["errors"], 0);
    let pid = service.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(news(&supervisor), "STOPPING=1");
    assert!(service.child.wait().unwrap().success());
    assert!(path.exists(), "the socket is systemd's, who keeps it for the next start");
    // As systemd does it: the same socket for the next process, whose client waited meanwhile.
    let waiting = std::thread::spawn({
        let path = path.clone();
        move || run(&["devices", "--socket", path.to_str().unwrap()])
    });
    let mut again = Process::start(handed(kept, "$$", &[]));
    assert!(again.line().starts_with("listening on "));
    assert!(waiting.join().unwrap().status.success());
}

fn a_socket_that_is_meant_for_another_process_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (handed_over, own) = (folder.path().join("a.sock"), folder.path().join("b.sock"));
    let socket = listening(&handed_over);
    let mut command = handed(socket, "1", &["--socket", own.to_str().unwrap()]);
    command.stderr(Stdio::null());
    let mut service = Process::start(command);
    assert_eq!(service.line(), format!("listening on {}\n", own.display()));
}

fn a_socket_of_another_kind_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let stream = UnixListener::bind(folder.path().join("stream")).unwrap();
    let unbound = UnixDatagram::unbound().unwrap();
    let (one_end, _other) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let cases = [
        ("a stream socket", OwnedFd::from(stream), "not a valid listening Unix socket"),
        ("a datagram socket", OwnedFd::from(unbound), "not a valid listening Unix socket"),
        ("nobody listens", one_end, "nobody listens"),
    ];
    for (what, socket, said) in cases {
        let output = handed(socket, "$$", &["--no-cache"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{what}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(said) && stderr.lines().count() == 1, "{what}: {stderr}");
    }
    let socket = listening(&folder.path().join("c.sock"));
    let output = handed(socket, "$$", &["--socket", "/nonexistent/x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("handed over"));
}

fn a_supervisor_that_cannot_be_reached_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let mut command = support::burst(&["serve", "--socket", socket.to_str().unwrap()]);
    command.env("NOTIFY_SOCKET", folder.path().join("nobody"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("NOTIFY_SOCKET"));
    assert!(!socket.exists());
}

fn systemd_finds_no_fault_in_the_unit_files(systemd_analyze: &Path) {
    // The units name the installed program; here it is the one under test.
    let folder = tempfile::tempdir().unwrap();
    let mut units = Vec::new();
    for name in ["burst.service", "burst.socket"] {
        let unit = std::fs::read_to_string(support::repository().join("dist").join(name)).unwrap();
        let unit = unit.replace("/usr/bin/burst", env!("CARGO_BIN_EXE_burst"));
        units.push(folder.path().join(name));
        std::fs::write(units.last().unwrap(), unit).unwrap();
    }
    let output = Command::new(systemd_analyze).arg("verify").args(&units).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let about_ours: Vec<&str> = said.lines().filter(|line| line.contains("burst.")).collect();
    assert!(about_ours.is_empty(), "{about_ours:#?}");
    if !output.status.success() {
        eprintln!("systemd-analyze could not look at everything here: {said}");
    }
}

fn the_unit_starts_the_service_with_flags_that_it_has() {
    let unit = std::fs::read_to_string(support::repository().join("dist/burst.service")).unwrap();
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let help = String::from_utf8(run(&["serve", "--help"]).stdout).unwrap();
    for flag in start.split_whitespace().filter(|word| word.starts_with("--")) {
        assert!(help.contains(flag), "{flag} is no flag of burst serve");
    }
    assert!(start.starts_with("/usr/bin/burst serve "));
}

fn the_unit_gives_the_service_longer_to_stop_than_it_takes() {
    let unit = std::fs::read_to_string(support::repository().join("dist/burst.service")).unwrap();
    let value = |key| unit.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    assert!(!value("ExecStart=").contains("--grace"), "the default is what holds");
    let seconds = value("TimeoutStopSec=").strip_suffix('s').unwrap().parse().unwrap();
    // One until those that were cancelled have noticed, two for an answer on the admin socket.
    let takes = burst_server::ServiceOptions::default().grace + Duration::from_secs(1 + 2);
    assert!(Duration::from_secs(seconds) > takes, "{seconds} s, of which it takes {takes:?}");
}
