//! What a process can still do after it locked itself in. Each test starts this program again
//! in a role: a process of its own, without a thread, that enters the sandbox and looks what it can do.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use burst_hal::{CancelWord, Fence};
use burst_launch::{CheckedFence, FenceKind, FenceSignal, FenceWatcher, LaunchError, WaitEnd};
use burst_server::{LayerState, Listener, Sandbox, can_open_files};
use burst_testing::Missing;
use rustix::process::Resource;

burst_testing::tests![
    a_closed_sandbox_leaves_what_a_service_needs_and_nothing_else(closed_sandbox()?),
    no_name_can_be_removed_not_even_that_of_the_services_own_socket(closed_sandbox()?),
    other_processes_are_out_of_reach_and_this_one_is_not(closed_sandbox()?),
    a_process_that_is_locked_in_can_still_abort(closed_sandbox()?),
    threads_started_inside_are_inside(closed_sandbox()?),
    fences_are_told_apart_and_waited_for_inside(closed_sandbox()?),
    a_process_with_threads_gets_an_error_and_stays_outside(),
    a_panic_inside_is_an_ordinary_panic(),
];

/// What a process of its own does, in a folder that is its own too.
type Role = fn(&Path);

const ROLES: &[(&str, Role)] = &[
    ("look", look),
    ("closed", closed),
    ("removing", removing),
    ("reaching", reaching),
    ("aborts", aborts),
    ("threads", threads),
    ("fences", fences),
    ("too-late", too_late),
    ("panics", panics),
];

/// How the role `look` ends where the kernel has no full sandbox.
const NOT_CLOSED: u8 = 77;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [inside, name, folder] = arguments.as_slice()
        && inside == "--inside"
    {
        let (_, role) = ROLES.iter().find(|(role, _)| role == name).expect("a role");
        role(Path::new(folder));
        return ExitCode::SUCCESS;
    }
    burst_testing::run(&[TESTS])
}

/// This program once more, in a role.
fn in_a_process(role: &str) -> ExitStatus {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--inside", role]).arg(folder.path()).status().expect("the role starts")
}

/// This kernel has both layers of the sandbox.
struct ClosedSandbox;

fn closed_sandbox() -> Result<ClosedSandbox, Missing> {
    let status = in_a_process("look");
    if status.code() == Some(i32::from(NOT_CLOSED)) {
        return Err(Missing::new("landlock and seccomp, which this kernel does not have in full"));
    }
    assert!(status.success(), "{status}");
    Ok(ClosedSandbox)
}

fn look(_: &Path) {
    let report = Sandbox::new().enter().expect("no threads yet");
    if !report.is_closed() {
        std::process::exit(NOT_CLOSED.into());
    }
}

fn a_closed_sandbox_leaves_what_a_service_needs_and_nothing_else(_: ClosedSandbox) {
    assert!(in_a_process("closed").success());
}

fn no_name_can_be_removed_not_even_that_of_the_services_own_socket(_: ClosedSandbox) {
    assert!(in_a_process("removing").success());
}

fn other_processes_are_out_of_reach_and_this_one_is_not(_: ClosedSandbox) {
    assert!(in_a_process("reaching").success());
}

fn a_process_that_is_locked_in_can_still_abort(_: ClosedSandbox) {
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(in_a_process("aborts").signal(), Some(libc::SIGABRT));
}

fn threads_started_inside_are_inside(_: ClosedSandbox) {
    assert!(in_a_process("threads").success());
}

fn fences_are_told_apart_and_waited_for_inside(_: ClosedSandbox) {
    assert!(in_a_process("fences").success());
}

fn a_process_with_threads_gets_an_error_and_stays_outside() {
    assert!(in_a_process("too-late").success());
}

fn a_panic_inside_is_an_ordinary_panic() {
    assert!(in_a_process("panics").success());
}

/// Locks in.
fn enter(sandbox: &Sandbox) {
    let report = sandbox.enter().expect("no threads yet");
    assert!(report.is_closed(), "{report:?}");
}

fn status_line(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.trim_start_matches(':').trim().to_owned()
}

/// A page of memory, to read and write.
fn anonymous() -> memmap2::MmapMut {
    memmap2::MmapMut::map_anon(4096).expect("a page")
}

fn closed(folder: &Path) {
    let mut status = File::open("/proc/self/status").expect("before");
    let mut kept = File::create(folder.join("kept")).expect("before");
    let listener = std::os::unix::net::UnixListener::bind(folder.join("socket")).expect("before");
    assert!(can_open_files());
    assert!(anonymous().make_exec().is_ok(), "memory can be made executable outside");
    let made_before = anonymous();
    enter(&Sandbox::new());
    for memory in [made_before, anonymous()] {
        let refused = memory.make_exec().expect_err("no memory becomes executable inside");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
    }
    let mut text = String::new();
    status.read_to_string(&mut text).expect("an open file stays open");
    assert_eq!(status_line(&text, "Seccomp"), "2");
    assert_eq!(status_line(&text, "NoNewPrivs"), "1");
    kept.write_all(b"x").expect("an open file stays open");

    assert!(!can_open_files());
    assert!(File::create(folder.join("new")).is_err());
    assert!(fs::read_dir(folder).is_err());
    assert!(fs::remove_file(folder.join("kept")).is_err());
    assert!(fs::rename(folder.join("kept"), folder.join("moved")).is_err());
    assert!(fs::create_dir(folder.join("directory")).is_err());
    assert!(Command::new("/bin/true").status().is_err());
    assert!(UnixStream::connect(folder.join("socket")).is_err());
    assert!(UnixDatagram::unbound().is_err());
    assert!(std::net::TcpListener::bind("127.0.0.1:0").is_err());
    let own = rustix::process::getpid();
    let signalled = rustix::process::kill_process(own, rustix::process::Signal::CONT);
    assert_eq!(signalled, Err(rustix::io::Errno::PERM), "EPERM, not a kill");

    // What a service does all day.
    let memory = burst_shm::Memory::create("inside", 4096).expect("a memfd");
    let mapping = burst_shm::Mapping::map(&memory).expect("a mapping");
    mapping.region(0, 4).and_then(|region| region.copy_in(0, b"four")).expect("a copy");
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (ours, theirs) = rustix::pipe::pipe_with(flags).expect("a pipe");
    rustix::io::write(&theirs, b"x").expect("room");
    rustix::io::read(&ours, &mut [0; 1]).expect("a byte");
    assert!(listener.set_nonblocking(true).is_err(), "not needed, and so not allowed");
    let numbers: Vec<u64> = (0..1_000_000).collect();
    assert_eq!(numbers.iter().max(), Some(&999_999), "the heap grows");
    std::thread::sleep(std::time::Duration::from_millis(1));
}

fn removing(folder: &Path) {
    let path = folder.join("socket");
    let listener = Listener::bind(&path).expect("before");
    fs::write(folder.join("other"), "").expect("before");
    enter(&Sandbox::new());
    for name in ["socket", "other"] {
        let refused = fs::remove_file(folder.join(name)).expect_err("no name");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{name}");
    }
    drop(listener);
    assert!(path.symlink_metadata().is_ok(), "the file stays when the service ends");
}

fn reaching(folder: &Path) {
    let path = folder.join("others");
    let others = UnixDatagram::bind(&path).expect("before");
    let socket = UnixDatagram::unbound().expect("before");
    let (one, other) = UnixDatagram::pair().expect("before");
    enter(&Sandbox::new());
    let is_refused = |error: std::io::Error| error.raw_os_error() == Some(libc::EPERM);
    assert!(is_refused(socket.send_to(b"x", &path).expect_err("an address")));
    others.set_read_timeout(Some(std::time::Duration::from_millis(1))).expect("an option");
    assert!(others.recv(&mut [0; 1]).is_err(), "nothing came");
    assert_eq!(one.send(b"x").expect("the peer of a socket"), 1);
    assert_eq!(other.recv(&mut [0; 1]).expect("a byte"), 1);

    let parent = rustix::process::getppid().expect("the test that started this");
    let limits = rustix::process::getrlimit(Resource::Nofile);
    let refused = Err(rustix::io::Errno::PERM);
    let set = rustix::process::prlimit(Some(parent), Resource::Nofile, limits);
    assert_eq!(set.map(drop), refused);
    rustix::process::prlimit(None, Resource::Nofile, limits).expect("its own");
    let processors = rustix::thread::sched_getaffinity(None).expect("its own");
    assert_eq!(rustix::thread::sched_setaffinity(Some(parent), &processors), refused);
    rustix::thread::sched_setaffinity(None, &processors).expect("its own");
}

fn aborts(_: &Path) {
    enter(&Sandbox::new());
    std::process::abort();
}

fn threads(_: &Path) {
    enter(&Sandbox::new());
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let builder = std::thread::Builder::new().name(format!("inside-{number}"));
            builder.spawn(can_open_files).expect("a thread")
        })
        .collect();
    for thread in threads {
        assert!(!thread.join().expect("no panic"));
    }
}

fn fences(folder: &Path) {
    let file = File::create(folder.join("file")).expect("before");
    enter(&Sandbox::new());
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("inside");
    let (signal, fence) = FenceSignal::new().expect("inside");
    let fences = vec![Fence::from(event.try_clone().expect("inside")), fence];
    let checked = CheckedFence::check_all(fences).expect("two fences");
    assert_eq!(checked[0].kind(), FenceKind::EventFd);
    assert_eq!(checked[1].kind(), FenceKind::Pipe);
    let refused = CheckedFence::check_all(vec![Fence::from(std::os::fd::OwnedFd::from(file))]);
    let found = "a file";
    assert_eq!(refused.unwrap_err(), LaunchError::NotAFence { index: 0, found });
    // The question for a sync_file gets through, and its answer is that this is none.
    let none = burst_shm::sync_file_status(std::os::fd::AsFd::as_fd(&event)).unwrap_err();
    assert!(none.to_string().contains(&rustix::io::Errno::NOTTY.to_string()), "{none}");
    let (say, said) = std::sync::mpsc::channel();
    let watcher = FenceWatcher::default();
    let tell = move |end| say.send(end).expect("a listener");
    watcher.wait(&checked, None, &CancelWord::default(), tell).expect("a thread");
    signal.done();
    rustix::io::write(&event, &1_u64.to_ne_bytes()).expect("room");
    assert_eq!(said.recv(), Ok(WaitEnd::Done));
}

fn too_late(_: &Path) {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || stopped.recv());
    let error = Sandbox::new().enter().expect_err("a thread runs");
    assert!(error.to_string().starts_with("1 threads run already"), "{error}");
    assert!(can_open_files(), "nothing was locked");
    drop(stop);
    assert!(thread.join().expect("no panic").is_err());
    // The kernel takes the thread from its list a little after it was joined; that is waited for.
    let report = Sandbox::new().enter().expect("no thread is left");
    assert!(report.landlock != LayerState::Full || !can_open_files());
}

fn panics(_: &Path) {
    Sandbox::new().enter().expect("no threads yet");
    let caught = std::panic::catch_unwind(|| panic!("a panic that is wanted here"));
    assert!(caught.is_err());
}
