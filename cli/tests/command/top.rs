//! `burst top` on a service with three clients and eight bursts, three of them in trouble: each is told apart.
//! Whatever is waited for happens because the test made it happen.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burst_client::{
    Burst, BurstOptions, Client, Deadline, RemotePreparedModel, ShmMemory, Stream, StreamOptions,
};
use burst_hal::{
    Caller, DataLocation, Device, DeviceType, ErrorStatus, ExecutionOptions, ExecutionResult,
    Failure, Model, ModelBuilder, OperandType, OperationType, OutputSpec, Pool, PrepareOptions,
    PrepareResult, PreparedModel, Request, RequestArgument, RequestPool,
};
use burst_server::{Access, Listener, Service, ServiceOptions, Stop, Stopper, serve_admin};
use burst_testing::{TwoCpus, two_cpus};
use fmq::Wait;
use serde_json::Value;

use crate::support::{HANG, json, run, wait_until};

burst_testing::tests![
    each_trouble_is_told_of_the_burst_that_has_it(two_cpus()?),
    an_admin_socket_where_nobody_is_ends_in_one_sentence(),
];

/// Whoever passes waits until it is open.
#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let open = self.is_open.lock().unwrap();
        let (_open, waited) = self.changed.wait_timeout_while(open, HANG, |open| !*open).unwrap();
        assert!(!waited.timed_out(), "the gate stays shut");
    }
}

/// A device that answers at once, but for models of two and three operations, which wait at a gate.
#[derive(Debug, Clone)]
struct Gated {
    gates: [Arc<Gate>; 2],
    operations: usize,
}

impl Device for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, model: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Gated { operations: model.main.operations.len(), ..self.clone() }))
    }
}

impl PreparedModel for Gated {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        if let Some(gate) = self.operations.checked_sub(2).and_then(|at| self.gates.get(at)) {
            gate.pass();
        }
        ExecutionResult::of(ErrorStatus::None)
    }

    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        _: &Caller,
    ) -> ExecutionResult {
        self.execute_synchronously(request, options)
    }
}

fn model(operations: usize) -> Model {
    let mut builder = ModelBuilder::new();
    let mut value = builder.input(OperandType::TensorFloat32, &[1, 4]);
    for _ in 0..operations {
        value = builder.result_of(OperationType::Relu, &[value], OutputSpec::f32(&[1, 4]));
    }
    builder.output(value);
    builder.build().unwrap()
}

/// A service of this process with its admin socket.
struct Served {
    socket: PathBuf,
    admin: PathBuf,
    stoppers: Vec<Stopper>,
    threads: Vec<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Served {
    fn start(device: Gated) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let (socket, admin) = (folder.path().join("burst.sock"), folder.path().join("admin.sock"));
        let mut options = ServiceOptions::default();
        options.time_requests = true;
        options.run_tokens = std::num::NonZeroUsize::new(2);
        options.turn_patience = None;
        let service = Service::new(vec![Arc::new(device)], options);
        let (listener, desk) =
            (Listener::bind(&socket).unwrap(), Listener::bind_admin(&admin, 0o600).unwrap());
        let (stopper, stop) = Stop::new().unwrap();
        let (admin_stopper, admin_stop) = Stop::new().unwrap();
        let metrics = service.metrics();
        let threads = vec![
            std::thread::spawn(move || service.run(&listener, &stop).unwrap()),
            std::thread::spawn(move || {
                serve_admin(&desk, &metrics, &Access::default(), &admin_stop).unwrap();
            }),
        ];
        Served { socket, admin, stoppers: vec![stopper, admin_stopper], threads, _folder: folder }
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stoppers.clear();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn prepared(client: &Client, model: &Model) -> Arc<RemotePreparedModel> {
    client.device("gated").unwrap().prepare(model, &PrepareOptions::default()).unwrap()
}

/// Datums of a request of a burst with several under way: what every packet has, its number, two arguments and the
/// memory that both lie in.
const REQUEST_DATUMS: usize = 6;
/// Room for two requests, the one that is being computed among them, and not for a third.
const NARROW: usize = 2 * REQUEST_DATUMS + 2;

/// A burst on a model of two operations whose queue is soon full. Its results have room: of each request under way the
/// client keeps some there, and would send no second one where that is short.
fn narrow(client: &Client) -> Burst {
    let options = BurstOptions::default().with_depth(3);
    let options = options.with_queue_datums(NARROW).with_result_datums(1024);
    prepared(client, &model(2)).configure_burst(&options).unwrap()
}

/// Sends three requests, of which only two have room before the first one is answered, and waits for their answers.
fn crowd(burst: &mut Burst) {
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 16 },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(16)],
        pools: vec![RequestPool::Memory(memory)],
    };
    let options = ExecutionOptions::default();
    let tickets = [(); 3].map(|()| burst.submit(&request, &options, long()).unwrap());
    for ticket in &tickets {
        assert_eq!(burst.wait(ticket, long()).unwrap().status, ErrorStatus::None);
    }
}

/// A burst on a model of so many operations.
fn stream(client: &Client, operations: usize, change: impl FnOnce(&mut StreamOptions)) -> Stream {
    let model = model(operations);
    let prepared = prepared(client, &model);
    let mut options = StreamOptions::default();
    change(&mut options);
    Stream::new(&prepared, &model, &options).unwrap()
}

/// Ends what the threads of a test wait for, also where the test fails.
struct Ends<'a>(&'a AtomicBool, &'a [Arc<Gate>]);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        for gate in self.1 {
            // A thread that waited in vain has spoilt the lock by its panic.
            *gate.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
            gate.changed.notify_all();
        }
    }
}

fn long() -> Deadline {
    Deadline::after(HANG)
}

fn top(admin: &Path, more: &[&str]) -> Value {
    let all = ["top", "--admin", admin.to_str().unwrap(), "--once", "--since-start", "--json"];
    let output = run(&[&all[..], more].concat());
    assert!(output.status.success(), "{output:?}");
    json(&output)
}

/// The bursts of a report, as client and trouble.
fn troubles(report: &Value) -> Vec<(u64, String)> {
    let bursts = report["bursts"].as_array().unwrap();
    let each = bursts.iter().flat_map(|burst| {
        let client = burst["client"].as_u64().unwrap();
        burst["trouble"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |one| (client, one.as_str().unwrap().to_owned()))
    });
    each.collect()
}

/// So long, in nanoseconds, somebody has to have waited before it is over: far more than all the others compute.
const WAITED_NS: u64 = 700_000_000;

fn each_trouble_is_told_of_the_burst_that_has_it(_: TwoCpus) {
    let gates = [Arc::new(Gate::default()), Arc::new(Gate::default())];
    let device = Gated { gates: gates.clone(), operations: 0 };
    let service = Served::start(device);
    let clients: Vec<Client> = (0..3).map(|_| service.client()).collect();
    let spin = |options: &mut StreamOptions| options.wait = Wait::Spin;
    let mut held = narrow(&clients[0]);
    let mut spinning = stream(&clients[0], 1, spin);
    let _idle: Vec<Stream> = (0..3).map(|_| stream(&clients[0], 1, |_| {})).collect();
    let mut greedy = stream(&clients[1], 3, |_| {});
    let _other = stream(&clients[1], 1, |_| {});
    let mut patient = stream(&clients[2], 1, |_| {});
    let state = |client: u64, state: &str| {
        let report = top(&service.admin, &["--client", &client.to_string()]);
        let bursts = report["bursts"].as_array().unwrap().clone();
        bursts.into_iter().find(|burst| burst["state"] == state)
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&stop, &gates);
        let held = scope.spawn(|| crowd(&mut held));
        wait_until("the first token is taken, and the queue is full", || {
            state(1, "computes").is_some_and(|burst| {
                let number = |key: &str| burst[key].as_u64().unwrap();
                number("requests_queued") + REQUEST_DATUMS as u64 > number("requests_room")
            })
        });
        let greedy = scope.spawn(|| greedy.run(long()).map(drop));
        wait_until("the second token is taken", || state(2, "computes").is_some());
        let patient = scope.spawn(|| patient.run(long()).map(drop));
        wait_until("a third one waits, and long enough", || {
            state(3, "waits-for-turn").is_some() && waited_ns(&service.admin) > WAITED_NS
        });
        gates[1].open();
        greedy.join().unwrap().unwrap();
        patient.join().unwrap().unwrap();
        // It is told to stop; until then it asks again and again, as idle bursts do not poll for long.
        let polled = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                spinning.run(long()).map(drop).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut report = top(&service.admin, &["--sort", "client"]);
        let until = Instant::now() + HANG;
        while troubles(&report).len() < 3 {
            assert!(Instant::now() < until, "fewer than three are told: {report:#}");
            report = top(&service.admin, &["--sort", "client"]);
        }
        stop.store(true, Ordering::Relaxed);
        polled.join().unwrap();
        assert_eq!(report["sessions"].as_array().unwrap().len(), 3, "{report:#}");
        assert_eq!(report["bursts"].as_array().unwrap().len(), 8, "{report:#}");
        let want = [(1, "full-queue"), (1, "spins"), (2, "over-share")];
        let want = want.map(|(client, trouble)| (client, trouble.to_owned()));
        assert_eq!(troubles(&report), want, "{report:#}");
        let over =
            report["sessions"].as_array().unwrap().iter().map(|one| one["is_over_share"] == true);
        assert_eq!(over.collect::<Vec<_>>(), [false, true, false], "{report:#}");
        let own = u64::from(std::process::id());
        assert!(report["sessions"].as_array().unwrap().iter().all(|one| one["pid"] == own));
        let said = run(&[
            "top",
            "--admin",
            service.admin.to_str().unwrap(),
            "--once",
            "--interval",
            "0.1",
        ]);
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.contains("3 clients, 8 bursts"), "{said}");
        // Between two looks too: nothing is answered, and it stays full.
        assert!(said.contains("; FULL-QUEUE"), "{said}");
        gates[0].open();
        held.join().unwrap();
    });
}

/// How long the third client has waited for its turn, as the socket itself says it.
fn waited_ns(admin: &Path) -> u64 {
    use std::io::{Read, Write};
    let mut socket = std::os::unix::net::UnixStream::connect(admin).unwrap();
    socket.write_all(b"GET /sessions HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let look: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let bursts = look["bursts"].as_array().unwrap();
    let third = bursts.iter().find(|burst| burst["client"] == 3).unwrap();
    third["waited_for_turn_ns"].as_u64().unwrap()
}

fn an_admin_socket_where_nobody_is_ends_in_one_sentence() {
    let output = run(&["top", "--once", "--admin", "/nonexistent/admin.sock"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot reach the admin socket at /nonexistent/admin.sock"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
