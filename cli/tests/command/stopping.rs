//! How a service ends while something is executed that does not end by itself.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burst_client::{Client, Deadline, ShmMemory};
use burst_hal::{
    DataLocation, ExecutionOptions, Model, ModelBuilder, OperandType, OperationType, OutputSpec,
    Pool, Request, RequestArgument, RequestPool,
};

use crate::support::{self, Process};

burst_testing::tests![
    what_runs_when_the_grace_is_over_is_cancelled_and_the_service_ends_in_order(),
    a_second_signal_ends_a_service_at_once(),
    a_grace_that_is_no_number_of_seconds_is_refused(),
];

/// Far longer than anything here takes; only turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);
/// The longest that a client may let a loop run, in which an endless one ends by itself.
const LOOP: Duration = Duration::from_secs(15);

/// A loop that never ends: `x + 0` as long as it is below a limit.
fn endless() -> Model {
    let number = |b: &mut ModelBuilder| b.input(OperandType::TensorInt32, &[1]);
    let int = || OutputSpec::new(OperandType::TensorInt32, &[1]);
    let mut b = ModelBuilder::new();
    let condition = b.referenced(|b| {
        let (x, limit) = (number(b), number(b));
        let truth = OutputSpec::new(OperandType::TensorBool8, &[1]);
        let less = b.result_of(OperationType::Less, &[x, limit], truth);
        b.output(less);
    });
    let body = b.referenced(|b| {
        let (x, _) = (number(b), number(b));
        let (zero, none) = (b.constant_i32(&[1], &[0]), b.scalar_i32(0));
        let next = b.result_of(OperationType::Add, &[x, zero, none], int());
        b.output(next);
    });
    let (x, limit) = (number(&mut b), number(&mut b));
    let graphs = [condition, body].map(|graph| b.subgraph(graph));
    let out = b.result_of(OperationType::While, &[graphs[0], graphs[1], x, limit], int());
    b.output(out);
    b.build().unwrap()
}

fn request() -> Request {
    let memory: Pool = Arc::new(ShmMemory::create(12).unwrap());
    memory.write(0, &[0_i32.to_ne_bytes(), 1_i32.to_ne_bytes()].concat()).unwrap();
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 4 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0), argument(4)],
        outputs: vec![argument(8)],
        pools: vec![RequestPool::Memory(memory)],
    }
}

/// A service that executes something without end for a client.
struct Busy {
    process: Process,
    socket: PathBuf,
    client: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Busy {
    fn start(grace: &str) -> Busy {
        let folder = tempfile::tempdir().unwrap();
        let [socket, admin] = ["burst.sock", "admin.sock"].map(|name| folder.path().join(name));
        let mut command = support::burst(&["serve", "--grace", grace]);
        command.arg("--socket").arg(&socket).arg("--admin").arg(&admin);
        let mut process = Process::start(command);
        let line = process.line();
        assert!(line.starts_with("listening on "), "{line}");
        let connected = Client::connect(&socket).unwrap();
        let client = std::thread::spawn(move || {
            let device = connected.device("cpu").unwrap();
            let prepared = device.prepare(&endless(), &Default::default()).unwrap();
            let options =
                ExecutionOptions { loop_timeout: Some(LOOP), ..ExecutionOptions::default() };
            // It ends with the connection.
            let _ = prepared.execute(&request(), &options, Deadline::after(HANG));
        });
        let begun = "burst_executions_total{path=\"socket\"} 1\n";
        wait_until("the execution", || metrics(&admin).contains(begun));
        Busy { process, socket, client, _folder: folder }
    }

    fn terminate(&self) -> Instant {
        let pid = self.process.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        Instant::now()
    }

    fn status(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the end of the service", || {
            status = self.process.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANG, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn nobody_listens(socket: &Path) -> bool {
    let connected = burst_client::Client::connect(socket).map(drop);
    matches!(connected, Err(burst_client::ClientError::NobodyListens { .. }))
}

fn metrics(admin: &Path) -> String {
    let mut connection = UnixStream::connect(admin).unwrap();
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: burst\r\n\r\n").unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    text
}

fn what_runs_when_the_grace_is_over_is_cancelled_and_the_service_ends_in_order() {
    let mut service = Busy::start("0.2");
    let told = service.terminate();
    let status = service.status();
    let took = told.elapsed();
    println!("the service ended {took:?} after SIGTERM, with a grace of 0.2 s");
    assert!(status.success(), "{status}");
    assert!(took < LOOP / 2, "not cancelled: {took:?}");
    assert!(nobody_listens(&service.socket));
    service.client.join().unwrap();
}

fn a_second_signal_ends_a_service_at_once() {
    let mut service = Busy::start("600");
    service.terminate();
    wait_until("the end of listening", || nobody_listens(&service.socket));
    assert!(service.process.child.try_wait().unwrap().is_none(), "it has a grace");
    let told = service.terminate();
    let status = service.status();
    let took = told.elapsed();
    println!("the service ended {took:?} after the second SIGTERM");
    assert_eq!(status.code(), Some(128 + 15));
    assert!(took < LOOP / 2, "it waited: {took:?}");
    service.client.join().unwrap();
}

fn a_grace_that_is_no_number_of_seconds_is_refused() {
    let output = support::run(&["serve", "--socket", "/nonexistent/burst.sock", "--grace=-1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--grace -1 is no number of seconds"), "{said}");
}
