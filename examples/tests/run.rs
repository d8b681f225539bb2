//! The examples as processes: each driver serves a client of ours and the event loop.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::{BurstOptions, Client, ClientError, Deadline, RemotePreparedModel, ShmMemory};
use burst_hal::{ErrorStatus, ExecutionOptions, Pool, PrepareOptions, PreparedModel};
use examples::{BYTES, model, request};

/// Turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

fn long() -> Deadline {
    Deadline::after(HANG)
}

/// A driver that ends with its test.
struct Driver {
    child: Child,
    out: BufReader<ChildStdout>,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Driver {
    fn start(program: &str) -> Driver {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driver.sock");
        let mut child = Command::new(program)
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Driver { child, out, path, _folder: folder }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects once the driver listens.
fn connect(path: &Path) -> Client {
    let until = Instant::now() + HANG;
    loop {
        match Client::connect(path) {
            Err(ClientError::NobodyListens { .. }) if Instant::now() < until => {
                std::thread::yield_now();
            }
            other => return other.unwrap(),
        }
    }
}

fn prepare(path: &Path) -> Arc<RemotePreparedModel> {
    let device = connect(path).devices().unwrap().remove(0);
    device.prepare(&model(), &PrepareOptions::default()).unwrap()
}

fn memory(byte: u8) -> Pool {
    let memory: Pool = Arc::new(ShmMemory::create(2 * BYTES as usize).unwrap());
    memory.write(0, &[byte; BYTES as usize]).unwrap();
    memory
}

fn output(memory: &Pool) -> [u8; BYTES as usize] {
    let mut bytes = [0; BYTES as usize];
    memory.read(BYTES.into(), &mut bytes).unwrap();
    bytes
}

/// The same work over a burst, a deep one, and the control socket.
fn assert_adds_one(path: &Path) {
    let prepared = prepare(path);
    let options = ExecutionOptions::default();
    for depth in [1, 4] {
        let wanted = BurstOptions::default().with_depth(depth);
        let mut burst = prepared.configure_burst(&wanted).unwrap();
        let frames: Vec<Pool> = (0..depth).map(|at| memory(u8::try_from(at).unwrap())).collect();
        let tickets: Vec<_> = frames
            .iter()
            .map(|frame| burst.submit(&request(frame), &options, long()).unwrap())
            .collect();
        for (at, (frame, ticket)) in (1..).zip(frames.iter().zip(&tickets)) {
            assert_eq!(burst.wait(ticket, long()).unwrap().status, ErrorStatus::None);
            assert_eq!(output(frame), [at; BYTES as usize]);
        }
        let mut illegal = request(&frames[0]);
        illegal.inputs[0].location.offset = 1 << 20;
        let status = burst.execute(&illegal, &options, long()).unwrap().status;
        assert_eq!(status, ErrorStatus::InvalidArgument);
    }
    let frame = memory(7);
    let result = prepared.execute_synchronously(&request(&frame), &options);
    assert_eq!((result.status, output(&frame)), (ErrorStatus::None, [8; BYTES as usize]));
}

fn assert_serves_the_event_loop(path: &Path) {
    let done = Command::new(env!("CARGO_BIN_EXE_event_loop")).arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said} {}", String::from_utf8_lossy(&done.stderr));
    assert!(said.starts_with("200 requests over 2 bursts, all right"), "{said}");
}

#[test]
fn the_smallest_driver_is_under_forty_lines_and_serves() {
    let source = include_str!("../src/bin/smallest_driver.rs");
    assert!(source.lines().count() < 40, "{} lines", source.lines().count());
    let driver = Driver::start(env!("CARGO_BIN_EXE_smallest_driver"));
    assert_adds_one(&driver.path);
    assert_serves_the_event_loop(&driver.path);
}

#[test]
fn an_executor_imports_each_memory_once_and_lets_go_of_it_when_it_is_freed() {
    let mut driver = Driver::start(env!("CARGO_BIN_EXE_own_executor"));
    let prepared = prepare(&driver.path);
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let frame = memory(1);
    for _ in 0..3 {
        let options = ExecutionOptions::default();
        let result = burst.execute(&request(&frame), &options, long()).unwrap();
        assert_eq!(result.status, ErrorStatus::None);
    }
    assert_eq!(output(&frame), [2; BYTES as usize]);
    assert_eq!(driver.line(), "imported slot 0");
    burst.free_memory(&frame).unwrap();
    assert_eq!(driver.line(), "let go of slot 0 after 3 uses");
    drop((burst, prepared));
    assert_adds_one(&driver.path);
    assert_serves_the_event_loop(&driver.path);
}

#[test]
fn a_context_of_the_drivers_own_serves_bursts_and_is_told_of_their_end() {
    let mut driver = Driver::start(env!("CARGO_BIN_EXE_own_context"));
    assert_adds_one(&driver.path);
    assert_eq!(driver.line(), "a burst for 1 requests at once");
    assert_eq!(driver.line(), "a burst has ended");
    assert_eq!(driver.line(), "a burst for 4 requests at once");
    assert_eq!(driver.line(), "a burst has ended");
    // A client that is killed takes its bursts with it.
    let prepared = prepare(&driver.path);
    let burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    assert_eq!(driver.line(), "a burst for 1 requests at once");
    drop((burst, prepared));
    assert_eq!(driver.line(), "a burst has ended");
    assert_serves_the_event_loop(&driver.path);
}
