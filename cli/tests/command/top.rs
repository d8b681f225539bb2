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
    Failure, FenceState, FencedOptions, MemoryCharge, Model, ModelBuilder, OperandType,
    OperationType, OutputSpec, Pool, PrepareOptions, PrepareResult, PreparedModel, Request,
    RequestArgument, RequestPool, TimePoint,
};
use burst_server::{Access, Listener, Service, ServiceOptions, Stop, Stopper, serve_admin};
use burst_testing::{TwoCpus, two_cpus};
use fmq::Wait;
use serde_json::Value;

use crate::support::terminal::{Running, Session};
use crate::support::{HANG, burst, json, run, signal, wait_until};

burst_testing::tests![
    each_trouble_is_told_of_the_burst_that_has_it(two_cpus()?),
    what_is_executed_over_the_socket_is_counted_one_by_one(),
    an_admin_socket_where_nobody_is_ends_in_one_sentence(),
    a_key_or_a_signal_ends_it_and_the_terminal_is_as_it_was(),
    a_service_that_goes_away_ends_it_and_the_terminal_is_as_it_was(),
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
#[derive(Debug, Clone, Default)]
struct Gated {
    gates: [Arc<Gate>; 2],
    operations: usize,
    /// What its caller pays for a model.
    _held: Arc<MemoryCharge>,
}

/// So much, in bytes.
const HELD: u64 = 3 << 20;

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

    fn prepare_model_for(
        &self,
        model: &Model,
        _: &PrepareOptions,
        caller: &Caller,
    ) -> PrepareResult {
        let (operations, _held) = (model.main.operations.len(), Arc::new(caller.charge(HELD)?));
        Ok(Arc::new(Gated { operations, _held, ..self.clone() }))
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

/// A request whose input and output lie in one memory.
fn request() -> Request {
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 16 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(16)],
        pools: vec![RequestPool::Memory(memory)],
    }
}

/// Sends three requests, of which only two have room before the first one is answered, and waits for their answers.
fn crowd(burst: &mut Burst) {
    let request = request();
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
    let device = Gated { gates: gates.clone(), ..Gated::default() };
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
        assert!(said.contains("3 clients, 8 models, 8 bursts"), "{said}");
        // Between two looks too: nothing is answered, and it stays full.
        assert!(said.contains("; FULL-QUEUE"), "{said}");
        gates[0].open();
        held.join().unwrap();
    });
}

/// The models of one client, in the order in which they were made.
fn models(admin: &Path, client: u64) -> Vec<Value> {
    let report = top(admin, &["--sort", "client", "--client", &client.to_string()]);
    report["models"].as_array().unwrap().clone()
}

/// Each is counted before its client has the answer: so whoever has it finds exactly that.
fn what_is_executed_over_the_socket_is_counted_one_by_one() {
    let service = Served::start(Gated::default());
    let client = service.client();
    let [used, unused] = [(); 2].map(|()| prepared(&client, &model(1)));
    let options = ExecutionOptions::default();
    let counted = || {
        let models = models(&service.admin, 1);
        assert_eq!(models.len(), 2, "{models:#?}");
        assert_eq!(models[1]["requests"], 0, "only that model's: {models:#?}");
        (models[0]["requests"].as_u64().unwrap(), models[0]["failed"].as_u64().unwrap())
    };
    assert_eq!(counted(), (0, 0));
    for _ in 0..5 {
        let executed = used.execute(&request(), &options, long()).unwrap();
        assert_eq!(executed.result.status, ErrorStatus::None);
    }
    assert_eq!(counted(), (5, 0), "synchronous ones");
    let launched = [(); 3].map(|()| used.start(request(), &options).unwrap());
    for execution in launched {
        assert_eq!(execution.wait().status, ErrorStatus::None);
    }
    assert_eq!(counted(), (8, 0), "asynchronous ones");
    for _ in 0..2 {
        let (options, caller) = (FencedOptions::default(), Caller::default());
        let fenced = used.start_fenced(request(), &[], &options, &caller).unwrap();
        assert_eq!(fenced.fence.unwrap().wait(Some(TimePoint::after(HANG))), FenceState::Done);
    }
    assert_eq!(counted(), (10, 0), "fenced ones");
    // What is refused is asked for, too, whichever way it comes.
    let wrong = || Request { inputs: Vec::new(), ..request() };
    let refused = used.execute(&wrong(), &options, long()).map(|executed| executed.result.status);
    assert!(!matches!(refused, Ok(ErrorStatus::None)), "{refused:?}");
    assert_eq!(counted(), (11, 1), "one that is refused");
    assert!(used.start(wrong(), &options).is_err());
    assert_eq!(counted(), (12, 2), "one that is not even started");
    // On a burst it is another figure of the same model.
    let mut burst = used.configure_burst(&BurstOptions::default()).unwrap();
    let ticket = burst.submit(&request(), &options, long()).unwrap();
    assert_eq!(burst.wait(&ticket, long()).unwrap().status, ErrorStatus::None);
    wait_until("a burst counts behind its answer", || {
        models(&service.admin, 1)[0]["burst_requests"] == 1
    });
    assert_eq!(counted(), (12, 2));
    let said = models(&service.admin, 1);
    assert_eq!(said[0]["bursts"], 1, "{said:#?}");
    for model in &said {
        // The service itself keeps the rules for requests, which are small.
        let more = model["memory_bytes"].as_u64().unwrap().checked_sub(HELD).unwrap();
        assert!((1..HELD / 100).contains(&more), "{said:#?}");
    }
    let text = run(&["top", "--admin", service.admin.to_str().unwrap(), "--once", "--since-start"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("1 client, 2 models, 1 burst"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" 3.0 MiB ")).count(), 2, "{text}");
    assert!(text.contains("\n  gated, 1 burst, 12 over the socket, 2 failed\n"), "{text}");
    drop((burst, used));
    wait_until("a model that is let go of is not shown", || models(&service.admin, 1).len() == 1);
    drop(unused);
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

/// `burst top` where a user sits, with its first figures on the screen.
fn watched(admin: &Path) -> Running {
    // As seldom as can be: what ends it does not wait for the next look.
    let args = ["top", "--admin", admin.to_str().unwrap(), "--interval", "3600"];
    let watched = Running::start_at_keyboard(&burst(&args), 60);
    watched.wait_for("0 clients, 0 models, 0 bursts");
    assert!(!watched.is_as_it_was(), "keys come one by one");
    watched
}

/// Whatever ends it, the terminal has the settings that it had.
#[track_caller]
fn ended(mut watched: Running, code: i32) -> Session {
    watched.wait_for_end();
    assert!(watched.is_as_it_was(), "the terminal is left changed");
    let session = watched.end();
    assert_eq!(session.status.code(), Some(code), "{session:?}");
    session
}

fn a_key_or_a_signal_ends_it_and_the_terminal_is_as_it_was() {
    let service = Served::start(Gated::default());
    let mut by_key = watched(&service.admin);
    by_key.press("xq");
    let session = ended(by_key, 0);
    assert!(!session.transcript.contains("burst: "), "{session:?}");
    // Ctrl-C is what the terminal makes a signal of.
    let mut by_terminal = watched(&service.admin);
    by_terminal.press("\u{3}");
    let said = ended(by_terminal, 130).lines();
    assert_eq!(said.last().unwrap(), "burst: interrupted by SIGINT", "{said:?}");
    for (flag, name, code) in [("-TERM", "SIGTERM", 143), ("-HUP", "SIGHUP", 129)] {
        let by_signal = watched(&service.admin);
        signal(by_signal.pid(), flag);
        let said = ended(by_signal, code).lines();
        assert_eq!(*said.last().unwrap(), format!("burst: interrupted by {name}"), "{said:?}");
    }
}

fn a_service_that_goes_away_ends_it_and_the_terminal_is_as_it_was() {
    let service = Served::start(Gated::default());
    let args = ["top", "--admin", service.admin.to_str().unwrap(), "--interval", "0.1"];
    let watched = Running::start_at_keyboard(&burst(&args), 60);
    watched.wait_for("0 clients, 0 models, 0 bursts");
    drop(service);
    let said = ended(watched, 2).lines();
    assert!(said.last().unwrap().starts_with("burst: "), "{said:?}");
}
