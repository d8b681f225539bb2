//! A stream that survives the death of its driver: the test plays the supervisor that starts a
//! service again, and feeds the frames, so that nothing depends on time.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{self, Process, burst};

burst_testing::tests![
    a_stream_goes_on_when_its_service_is_killed_and_started_again(),
    a_private_driver_process_is_started_anew_and_the_gap_is_said(),
    a_service_that_is_not_there_yet_is_waited_for_and_that_is_said_once(),
    a_service_that_does_not_come_is_not_waited_for_beyond_the_deadline(),
    what_is_no_such_service_is_not_waited_for(),
    a_path_without_a_driver_process_has_nothing_to_connect_to(),
];

/// Far longer than anything here takes; only turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);
/// Raw frames of 32 by 32 pixels, three bytes each.
const FRAME: [u8; 32 * 32 * 3] = [90; 32 * 32 * 3];

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The stream writes a picture for each frame that was answered: waits for one more of them.
fn wait_for_an_answer(pictures: &Path, answered: &mut usize) {
    let before = *answered;
    wait_until("an answer", || {
        *answered = std::fs::read_dir(pictures).map_or(0, Iterator::count);
        *answered > before
    });
}

/// The only child of a process, once it has one that is not `before`.
fn child_of(pid: u32, before: Option<u32>) -> u32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let mut child = None;
    wait_until("the driver process", || {
        let children = std::fs::read_to_string(&path).unwrap_or_default();
        let mut pids = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        child = pids.find(|pid| Some(*pid) != before);
        child.is_some()
    });
    child.unwrap()
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

/// A stream of the frames that the test writes.
fn stream(pictures: &Path, extra: &[&str]) -> (Process, ChildStdin) {
    let mut args = vec!["stream", "--source", "-", "--size", "32x32", "--reconnect"];
    args.extend(["--save-frames", pictures.to_str().unwrap()]);
    args.extend(extra);
    let mut command = burst(&args);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::start(command);
    let stdin = process.child.stdin.take().unwrap();
    (process, stdin)
}

fn service(socket: &str) -> Process {
    let mut process = Process::start(burst(&["serve", "--socket", socket]));
    let line = process.line();
    assert!(line.starts_with("listening on "), "{line}");
    process
}

/// What the stream printed, its exit status, and its standard error.
fn end(mut process: Process) -> (String, Option<i32>, String) {
    let (mut out, mut err) = (String::new(), String::new());
    process.out.read_to_string(&mut out).unwrap();
    process.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (out, process.child.wait().unwrap().code(), err)
}

/// The summary of a stream of `frames` frames whose driver died `deaths` times.
fn assert_survived(report: &Value, frames: u64, deaths: u64, code: Option<i32>) {
    assert_eq!(report["frames"], frames, "{report}");
    assert_eq!(report["reconnects"], deaths, "{report}");
    // At most what was under way: one request each time.
    assert!(report["lost"].as_u64().unwrap() <= deaths, "{report}");
    assert_eq!(report["errors"], report["lost"], "{report}");
    assert!(report["longest_gap_ms"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(code, Some(i32::from(report["errors"] != 0)), "{report}");
}

fn a_stream_goes_on_when_its_service_is_killed_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let socket = socket.to_str().unwrap();
    let pictures = folder.path().join("pictures");
    let mut answered = 0;
    let mut driver = service(socket);
    let (client, mut frames) = stream(&pictures, &["--socket", socket, "--json"]);
    for _ in 0..2 {
        frames.write_all(&FRAME).unwrap();
        wait_for_an_answer(&pictures, &mut answered);
        driver.child.kill().unwrap();
        driver.child.wait().unwrap();
        // Nobody is there when these come.
        frames.write_all(&[FRAME, FRAME].concat()).unwrap();
        driver = service(socket);
        wait_for_an_answer(&pictures, &mut answered);
    }
    frames.write_all(&[FRAME, FRAME].concat()).unwrap();
    drop(frames);
    let (out, code, err) = end(client);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
    assert_survived(&report, 8, 2, code);
    assert_eq!(report["driver_pid"], driver.child.id());
}

fn a_private_driver_process_is_started_anew_and_the_gap_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = folder.path().join("pictures");
    let mut answered = 0;
    let (client, mut frames) = stream(&pictures, &[]);
    let pid = client.child.id();
    frames.write_all(&FRAME).unwrap();
    wait_for_an_answer(&pictures, &mut answered);
    let first = child_of(pid, None);
    kill(first);
    frames.write_all(&[FRAME, FRAME].concat()).unwrap();
    wait_for_an_answer(&pictures, &mut answered);
    let second = child_of(pid, Some(first));
    frames.write_all(&FRAME).unwrap();
    drop(frames);
    let (out, code, err) = end(client);
    let said: Vec<&str> = err.lines().filter(|line| line.starts_with("gap ")).collect();
    assert_eq!(said.len(), 1, "{err}");
    let [gap] = said[..] else { unreachable!() };
    assert!(gap.contains(" ms, ") && gap.contains(" lost; "), "{gap}");
    assert!(gap.ends_with(&format!("driver process {second}")), "{gap}");
    println!("{gap}");
    assert!(out.contains("1 reconnect, ") && out.contains("longest gap "), "{out}");
    assert!(matches!(code, Some(0 | 1)), "{code:?} {err}");
}

/// Lines of standard error that say that the stream waits.
fn waiting(err: &str) -> Vec<&str> {
    err.lines().filter(|line| line.contains("; waiting up to ")).collect()
}

fn a_service_that_is_not_there_yet_is_waited_for_and_that_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let socket = socket.to_str().unwrap();
    let pictures = folder.path().join("pictures");
    let (mut client, mut frames) = stream(&pictures, &["--socket", socket]);
    let mut err = BufReader::new(client.child.stderr.take().unwrap());
    let mut said = String::new();
    err.read_line(&mut said).unwrap();
    assert_eq!(said, format!("no service listens at {socket}; waiting up to 30 s for one\n"));
    // Now it waits; nobody was there when it began.
    let _driver = service(socket);
    frames.write_all(&[FRAME, FRAME].concat()).unwrap();
    drop(frames);
    err.read_to_string(&mut said).unwrap();
    let mut out = String::new();
    client.out.read_to_string(&mut out).unwrap();
    assert_eq!(client.child.wait().unwrap().code(), Some(0), "{out} {said}");
    assert_eq!(waiting(&said).len(), 1, "{said}");
    assert!(!out.contains("reconnect"), "the first connection is none: {out}");
}

fn a_service_that_does_not_come_is_not_waited_for_beyond_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let socket = socket.to_str().unwrap();
    let args = ["stream", "--socket", socket, "--frames", "1", "--deadline", "0.05"];
    let output = support::run(&[&args[..], &["--reconnect"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(waiting(&err).len(), 1, "{err}");
    assert!(err.contains("waiting up to 0.05 s") && err.lines().count() == 2, "{err}");
    assert!(err.lines().last().unwrap().contains(socket), "{err}");
    // Without the flag, at once and in one line.
    let output = support::run(&args);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

fn what_is_no_such_service_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.sock");
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let socket = path.to_str().unwrap();
    let output = support::run(&["stream", "--socket", socket, "--frames", "1", "--reconnect"]);
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(waiting(&err).is_empty() && err.lines().count() == 1, "{err}");
}

fn a_path_without_a_driver_process_has_nothing_to_connect_to() {
    let output = support::run(&["stream", "--path", "in-process", "--reconnect", "--frames", "1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("in-process") && said.lines().count() == 1, "{said}");
}
