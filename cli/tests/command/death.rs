//! Processes that are killed in the middle of a stream.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{self, Process, Service, json, run};

burst_testing::tests![
    a_killed_driver_process_is_named_and_nothing_is_waited_for(),
    a_private_driver_process_ends_with_a_killed_client(),
    a_service_forgets_a_killed_client_and_serves_the_next(),
    nothing_is_left_in_the_file_system(),
    a_service_told_to_stop_ends_in_order_and_nobody_listens_behind_it(),
    a_service_told_to_stop_has_not_died(),
];

/// Far longer than anything here takes; only turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
    start.elapsed()
}

/// The only child of a process, once it has one.
fn child_of(pid: u32) -> u32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let mut child = None;
    wait_until("the driver process", || {
        child = fs::read_to_string(&path)
            .ok()
            .and_then(|pids| pids.split_whitespace().next()?.parse().ok());
        child.is_some()
    });
    child.unwrap()
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended, even if nobody has asked for its status yet.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn shared_mappings(pid: u32) -> usize {
    fs::read_to_string(format!("/proc/{pid}/maps"))
        .map_or(0, |maps| maps.lines().filter(|line| line.contains("memfd:")).count())
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

/// A stream that goes on until somebody dies: far more frames than there is time for.
fn endless(extra: &[&str]) -> Process {
    let mut args = vec!["stream", "--frames", "1000000000", "--deadline", "60"];
    args.extend(extra);
    let mut command = support::burst(&args);
    command.stderr(Stdio::piped());
    Process::start(command)
}

/// Waits until the stream of `client` is under way: both ends have the frames' memory mapped.
fn wait_for_frames(client: u32, driver: u32) {
    let mapped = || shared_mappings(client) >= 3 && shared_mappings(driver) >= 3;
    wait_until("shared memory in both processes", mapped);
}

fn a_killed_driver_process_is_named_and_nothing_is_waited_for() {
    for wait in ["adaptive", "sleep", "spin"] {
        let mut client = endless(&["--wait", wait]);
        let pid = client.child.id();
        let driver = child_of(pid);
        wait_for_frames(pid, driver);
        let killed = Instant::now();
        kill(driver);
        wait_until("the end of the client", || client.child.try_wait().unwrap().is_some());
        let took = killed.elapsed();
        assert!(took < Duration::from_secs(5), "{wait}: {took:?}");
        println!("{wait}: the client ended {took:?} after its driver was killed");
        assert_eq!(client.child.wait().unwrap().code(), Some(2), "{wait}");
        let mut said = String::new();
        std::io::Read::read_to_string(&mut client.child.stderr.take().unwrap(), &mut said).unwrap();
        assert!(said.contains(&format!("process {driver}")) && said.contains("died"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

fn a_private_driver_process_ends_with_a_killed_client() {
    let mut client = endless(&[]);
    let pid = client.child.id();
    let driver = child_of(pid);
    wait_for_frames(pid, driver);
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    let took = wait_until("the end of the driver process", || !is_alive(driver));
    println!("the driver process ended {took:?} after its client was killed");
}

fn a_service_forgets_a_killed_client_and_serves_the_next() {
    let service = Service::start();
    let driver = service.process.child.id();
    let level = || (threads(driver), descriptors(driver), shared_mappings(driver));
    let fresh = level();
    assert_eq!(fresh.2, 0);
    // With the first model the driver may start one thread that stays, depending on the processor.
    let first = run(&["stream", "--socket", service.path(), "--frames", "1", "--json"]);
    assert_eq!(json(&first)["errors"], 0);
    wait_until("the level of an idle service", || {
        let (threads, descriptors, mappings) = level();
        threads <= fresh.0 + 1 && (descriptors, mappings) == (fresh.1, fresh.2)
    });
    let before = level();
    for _ in 0..3 {
        let mut client = endless(&["--socket", service.path()]);
        wait_for_frames(client.child.id(), driver);
        assert!(level() > before);
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        let took =
            wait_until("the old level of threads, descriptors and mappings", || level() == before);
        println!("all resources were back {took:?} after the client was killed");
        let next = run(&["stream", "--socket", service.path(), "--frames", "10", "--json"]);
        assert_eq!(json(&next)["errors"], 0);
        wait_until("the old level after an orderly end", || level() == before);
    }
}

fn nothing_is_left_in_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = support::burst(&["stream", "--frames", "1000000000"]);
    command.env("TMPDIR", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
    command.current_dir(folder.path()).stderr(Stdio::null());
    let shm_before = fs::read_dir("/dev/shm").map_or(0, Iterator::count);
    let mut client = Process::start(command);
    let driver = child_of(client.child.id());
    wait_for_frames(client.child.id(), driver);
    kill(driver);
    assert_eq!(client.child.wait().unwrap().code(), Some(2));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(fs::read_dir("/dev/shm").map_or(0, Iterator::count), shm_before);
}

fn a_service_told_to_stop_ends_in_order_and_nobody_listens_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    // Inside the sandbox no name can be taken away, and the next service replaces the file; outside
    // the file goes with the service.
    for (flag, is_left, signal) in [
        ("--require-sandbox", true, "-TERM"),
        ("--no-sandbox", false, "-TERM"),
        ("--no-sandbox", false, "-HUP"),
    ] {
        let arguments = ["serve", "--socket", socket.to_str().unwrap(), flag];
        let mut service = Process::start(support::burst(&arguments));
        assert!(service.line().starts_with("listening on "), "{flag}");
        let pid = service.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let mut status = None;
        wait_until("the end of the service", || {
            status = service.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success());
        assert_eq!(socket.exists(), is_left, "{flag}");
        let nobody = burst_client::Client::connect(&socket).map(drop).unwrap_err();
        assert!(matches!(nobody, burst_client::ClientError::NobodyListens { .. }), "{nobody}");
    }
}

fn a_service_told_to_stop_has_not_died() {
    let cases = ["-TERM", "-HUP"].map(|signal| [(signal, false), (signal, true)]);
    for (signal, is_json) in cases.into_iter().flatten() {
        let extra = if is_json { &["--json"][..] } else { &[] };
        let service = Service::start();
        let mut client = endless(&[&["--socket", service.path()], extra].concat());
        let driver = service.process.child.id();
        wait_for_frames(client.child.id(), driver);
        support::signal(driver, signal);
        wait_until("the end of the client", || client.child.try_wait().unwrap().is_some());
        assert_eq!(client.child.wait().unwrap().code(), Some(2));
        let mut said = String::new();
        let (out, err) = (&mut client.out, client.child.stderr.as_mut().unwrap());
        std::io::Read::read_to_string(out, &mut said).unwrap();
        std::io::Read::read_to_string(err, &mut said).unwrap();
        let told = format!("the driver service (process {driver}) was told to stop");
        assert!(said.contains(&told) && !said.contains("died"), "{signal}: {said}");
        assert_eq!(said.starts_with('{'), is_json, "{said}");
    }
}
