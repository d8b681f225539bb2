//! Two users at one service: who is not let in costs nothing, and who is let in takes nothing from the
//! others. The other user's processes are `burst_peer` in a role.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use burst_client::{Client, StreamOptions};
use burst_hal::ErrorStatus;
use burst_server::{Access, Limits, Listener, ServiceOptions, Stop, Stopper, serve_admin};
use burst_testing::{Root, program, root};
use burst_wire::control::{Answer, Call};

use crate::burst_support::raw::{self, RawClient};
use crate::burst_support::{FakeDevice, LONG, long, model, threads_named, wait_until};
use crate::service_support::Shared;

burst_testing::tests![
    strangers_are_told_so_and_hold_nothing(root()?),
    silent_connections_of_one_user_leave_another_its_place(root()?),
    a_user_who_took_its_share_over_many_connections_leaves_another_its_own(root()?),
    strangers_at_the_admin_socket_keep_nobody_waiting(root()?),
    each_user_reads_its_own_figures_and_root_reads_all(root()?),
    a_client_from_outside_of_the_services_namespace_is_served(root()?, &program("unshare")?),
];

/// Users that no system has by default.
const ONE: u32 = 412_001;
const OTHER: u32 = 412_002;

/// A process of another user.
struct Another {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Another {
    /// Starts `burst_peer` in a role as this user, from a copy that every user may run.
    fn start(service: &Shared, uid: u32, arguments: &[&str]) -> Another {
        let copy = service.folder.path().join("burst_peer");
        if !copy.exists() {
            fs::copy(env!("CARGO_BIN_EXE_burst_peer"), &copy).unwrap();
        }
        let mut command = Command::new(copy);
        command.args(arguments).uid(uid).gid(uid).current_dir("/");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Another { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Everything that it still says; it ends then.
    fn rest(&mut self) -> String {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        rest.trim_end().to_owned()
    }
}

impl Drop for Another {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A service that these users may use, whose socket every user may open.
fn service(uids: &[u32], set: impl FnOnce(&mut Limits)) -> Shared {
    let mut options = ServiceOptions::default();
    options.access = Access { uids: uids.to_vec(), ..Access::default() };
    set(&mut options.limits);
    let service = Shared::start(Arc::new(FakeDevice::default()), options);
    open_to_all(service.folder.path(), 0o755);
    open_to_all(&service.path, 0o666);
    service
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A client of this process's user that does the whole job.
fn is_served(path: &Path) {
    let device = Client::connect(path).unwrap().device("fake").unwrap();
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    stream.input(0).fill(6);
    stream.run(long()).unwrap();
    assert_eq!(stream.output(0).unwrap(), [7; 16]);
}

fn path_of(service: &Shared) -> &str {
    service.path.to_str().unwrap()
}

fn used(service: &Shared, uid: u32, resource: &str) -> u64 {
    service.metric(&format!("burst_user_used{{user=\"{uid}\",resource=\"{resource}\"}}"))
}

fn strangers_are_told_so_and_hold_nothing(_: Root) {
    /// More than the service has places.
    const CONNECTIONS: u64 = 300;
    let service = service(&[], |_| {});
    let count = CONNECTIONS.to_string();
    let mut stranger = Another::start(&service, ONE, &["knock", path_of(&service), &count]);
    assert_eq!(stranger.line(), "connected");
    // Whoever comes now is behind all of them.
    let client = service.connect().unwrap();
    assert_eq!(service.metric("burst_strangers_total"), CONNECTIONS);
    assert_eq!(service.metric("burst_in_use{limit=\"clients\"}"), 1);
    assert_eq!(threads_named("client-"), 1, "no thread for a stranger");
    assert!(!service.metrics.encode().contains(&format!("user=\"{ONE}\"")), "and no account");
    is_served(&service.path);
    assert_eq!(stranger.rest(), format!("not permitted {CONNECTIONS}, too many 0"));
    drop(client);
}

fn silent_connections_of_one_user_leave_another_its_place(_: Root) {
    let service = service(&[ONE, OTHER], |limits| {
        limits.clients = 20;
        limits.clients_per_user = 15;
        limits.ungreeted_per_user = 4;
    });
    let mut silent = Another::start(&service, ONE, &["knock", path_of(&service), "100"]);
    assert_eq!(silent.line(), "connected");
    is_served(&service.path);
    let mut honest = Another::start(&service, OTHER, &["stream", path_of(&service)]);
    assert_eq!(honest.line(), "running");
    assert!(used(&service, ONE, "clients") <= 4);
    assert!(service.metric("burst_refusals_total{limit=\"ungreeted_per_user\"}") >= 1);
    assert_eq!(service.metric("burst_refusals_total{limit=\"clients\"}"), 0);
    assert_eq!(used(&service, OTHER, "clients"), 1);
}

fn a_user_who_took_its_share_over_many_connections_leaves_another_its_own(_: Root) {
    const MIB: u64 = 1 << 20;
    let service = service(&[ONE], |limits| {
        limits.memory_bytes = 100 * MIB;
        limits.memory_bytes_per_user = 60 * MIB;
    });
    let mut greedy = Another::start(&service, ONE, &["fill", path_of(&service), "10"]);
    let said = greedy.line();
    let want = format!(
        "{} the limit of {} on bytes of memory for one user is reached",
        60 * MIB,
        60 * MIB
    );
    assert_eq!(said, want, "ten connections get as much as one");
    is_served(&service.path);
    let mut client = RawClient::greet(raw::connect(&service.path));
    let allocate = |memory, length| Call::AllocateMemory { memory, length };
    assert_eq!(client.call(allocate(1, 39 * MIB), &[]), Ok(Answer::Done));
    let refused = client.call(allocate(2, 2 * MIB), &[]).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
    let detail = refused.detail.as_str();
    assert!(detail.contains("bytes of memory for all users"), "{detail}");
    assert_eq!(greedy.rest(), "done");
    let gone = format!("user=\"{ONE}\"");
    wait_until("it is forgotten", || !service.metrics.encode().contains(&gone));
    assert_eq!(client.call(allocate(2, 2 * MIB), &[]), Ok(Answer::Done));
}

/// The admin socket of a service, which every user may open.
struct Admin {
    path: PathBuf,
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    fn of(service: &Shared, uids: &[u32]) -> Admin {
        let path = service.folder.path().join("admin.sock");
        let listener = Listener::bind_admin(&path, 0o666).unwrap();
        let (stopper, stop) = Stop::new().unwrap();
        let metrics = Arc::clone(&service.metrics);
        let access = Access { uids: uids.to_vec(), ..Access::default() };
        let thread = std::thread::spawn(move || {
            serve_admin(&listener, &metrics, &access, &stop).unwrap();
        });
        Admin { path, stopper: Some(stopper), thread: Some(thread) }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn scrape(&self) -> String {
        let mut socket = UnixStream::connect(&self.path).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.stopper.take());
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.expect("the desk does not panic");
        }
    }
}

fn strangers_at_the_admin_socket_keep_nobody_waiting(_: Root) {
    let service = service(&[], |_| {});
    let admin = Admin::of(&service, &[OTHER]);
    // Two seconds for each would be ten times as long as anything here waits.
    let mut stranger = Another::start(&service, ONE, &["stand", admin.path(), "300"]);
    assert_eq!(stranger.line(), "HTTP/1.1 403 Forbidden", "without a byte of its own");
    assert!(admin.scrape().ends_with("# EOF\n"));
    let mut silent = Another::start(&service, OTHER, &["stand", admin.path(), "9"]);
    assert_eq!(silent.line(), "HTTP/1.1 503 Service Unavailable", "it has a quota, too");
    assert!(admin.scrape().ends_with("# EOF\n"));
    drop((stranger, silent));
}

fn each_user_reads_its_own_figures_and_root_reads_all(_: Root) {
    let service = service(&[ONE, OTHER], |_| {});
    let admin = Admin::of(&service, &[ONE, OTHER]);
    let mut busy = Another::start(&service, ONE, &["stream", path_of(&service)]);
    assert_eq!(busy.line(), "running");
    let figures = |text: &str| {
        assert!(text.contains("burst_service_used{resource=\"threads\"}"), "{text}");
        assert!(text.contains("burst_clients_total 1\n"), "{text}");
        [format!("burst_user_used{{user=\"{ONE}\""), "model_request_duration_seconds_c".into()]
            .map(|series: String| text.contains(&series))
    };
    assert_eq!(figures(&admin.scrape()), [true, true]);
    for (uid, want) in [(ONE, [true, true]), (OTHER, [false, false])] {
        let mut reader = Another::start(&service, uid, &["scrape", admin.path()]);
        assert_eq!(figures(&format!("{}\n", reader.rest())), want, "{uid}");
    }
}

/// The kernel has no number for a process that the service cannot see.
fn a_client_from_outside_of_the_services_namespace_is_served(_: Root, unshare: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let mut command = Command::new(unshare);
    command.args(["--fork", "--pid", "--kill-child", env!("CARGO_BIN_EXE_burst_peer"), "serve"]);
    let mut child = command.arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut service = Another { child, output };
    assert_eq!(service.line(), "ready");
    is_served(&path);
}
