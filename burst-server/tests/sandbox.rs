//! What a process can still do after it locked itself in. Each case is this program again, as a
//! process of its own that enters the sandbox and says what it could do.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, ExitCode};

use burst_server::{LayerState, Sandbox, can_open_files};

type Case = (&'static str, fn(&Path));

const CASES: &[Case] = &[
    ("a_closed_sandbox_leaves_what_a_service_needs_and_nothing_else", closed),
    ("a_name_can_be_removed_in_the_folder_of_the_socket_alone", removing),
    ("threads_started_inside_are_inside", threads),
    ("who_has_threads_already_is_told_and_stays_outside", too_late),
    ("a_panic_inside_is_an_ordinary_panic", panics),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, name, folder] = arguments.as_slice()
        && role == "--inside"
    {
        let (_, case) = CASES.iter().find(|(case, _)| case == name).expect("a case");
        case(Path::new(folder));
        return ExitCode::SUCCESS;
    }
    let wanted = |name: &str| {
        let mut filters = arguments.iter().filter(|argument| !argument.starts_with("--"));
        let exact = arguments.iter().any(|argument| argument == "--exact");
        let fits =
            |filter: &String| if exact { name == filter } else { name.contains(filter.as_str()) };
        filters.clone().next().is_none() || filters.any(fits)
    };
    let listed = arguments.iter().any(|argument| argument == "--list");
    let mut failed = false;
    for (name, _) in CASES.iter().filter(|(name, _)| wanted(name)) {
        if listed {
            println!("{name}: test");
            continue;
        }
        let passed = run(name);
        failed |= !passed;
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs a case in a process of its own.
fn run(name: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let status = Command::new(program)
        .args(["--inside", name])
        .arg(folder.path())
        .status()
        .expect("the case starts");
    status.success()
}

/// Locks in; where the kernel lacks a layer the case says so and proves less.
fn enter(sandbox: &Sandbox) -> bool {
    let report = sandbox.enter().expect("no threads yet");
    if !report.is_closed() {
        eprintln!("this kernel has no full sandbox: {report:?}");
    }
    report.is_closed()
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
    if !enter(&Sandbox::new()) {
        return;
    }
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
    let inside = folder.join("inside");
    fs::create_dir(&inside).expect("before");
    fs::write(inside.join("socket"), "").expect("before");
    fs::write(folder.join("other"), "").expect("before");
    if !enter(&Sandbox::new().with_removable_in(&inside)) {
        return;
    }
    fs::remove_file(inside.join("socket")).expect("its own");
    let refused = fs::remove_file(folder.join("other")).expect_err("somebody else's");
    // Seccomp lets the call through; it is landlock that refuses it.
    assert_eq!(refused.raw_os_error(), Some(libc::EACCES));
    assert!(fs::write(inside.join("new"), "").is_err());
}

fn threads(_: &Path) {
    if !enter(&Sandbox::new()) {
        return;
    }
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
    enter(&Sandbox::new());
    let caught = std::panic::catch_unwind(|| panic!("a panic that is wanted here"));
    assert!(caught.is_err());
}
