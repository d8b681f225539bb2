//! Models of a few bytes that ask for more than any machine has: each meets a limit with a name, and a status.
//!
//! What is refused when it is prepared says which limit it was to the client; an execution has a status alone, and
//! the limit stands in the log of the service.
//!
//! The service has limits and is looked at from outside, and another user's client streams beside: its answers keep
//! coming. That a query and a preparation say the same of a model is looked at with each.

mod models;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::{Client, ClientError, RemoteDevice, RemotePreparedModel, ShmMemory};
use burst_driver::CpuDevice;
use burst_hal::validate::MAX_NESTING;
use burst_hal::{
    DataLocation, Device as _, ErrorStatus, ExecutionOptions, LOOP_TIMEOUT_MAXIMUM, Memory as _,
    Model, Pool, PrepareOptions, PreparedModel, Request, RequestArgument, RequestPool, Route,
    TimePoint,
};
use burst_shm::{Mapping, Memory};
use burst_tests::attacks::{Confinement, Connection, Honest, Service, small_model};
use burst_tests::routes::execute_over;
use burst_wire::control::{Call, ModelBody, Refusal, WirePrepareOptions, encode_model};

use self::models::Round;
use crate::beside::LONGEST;

burst_testing::tests![
    shapes_of_terabytes_are_not_prepared(),
    a_shape_that_a_request_asks_for_is_paid_for(),
    a_square_of_a_row_and_a_column_is_paid_for(),
    constants_that_double_are_paid_for(),
    more_operands_than_a_model_may_have_are_refused(),
    loops_that_never_end_do_at_their_time_out_on_every_route(),
    loops_whose_state_grows_end_when_nobody_pays_for_it(),
    graphs_that_are_nested_too_deeply_are_refused(),
    graphs_that_call_each_other_are_refused(),
    more_ways_through_nested_graphs_than_time_end_at_the_deadline(),
    constants_of_gigabytes_in_sparse_files_are_paid_for(),
    thousands_of_models_are_as_many_as_a_user_pays_for(),
];

/// What the service holds at its height: some times what one user may have in it.
const MEMORY_MAX: u64 = 5 << 29;
/// Frames that the neighbour is watched for behind each bomb; all before count too.
const FRAMES: u64 = 20;
/// Turns a neighbour who waits into a failure.
const WATCH: Duration = Duration::from_secs(20);
/// What no bomb takes until it has its status.
const SOON: Duration = Duration::from_secs(40);

/// Why executions fail, as devices log it.
const LOGGED: &str = "warn,burst_driver::entry=debug";

/// A service within limits, a client of one user who throws bombs, and one of another who streams.
struct Scene {
    service: Service,
    neighbour: Honest,
    device: RemoteDevice,
    begun: Instant,
    /// Failures in the log that were looked at.
    failures: Cell<usize>,
}

impl Scene {
    fn begin() -> Scene {
        let service = Service::start_logging(Confinement::MEMORY, &["--setup-rate=0"], LOGGED);
        let service = service.expect("a service");
        let neighbour = Honest::stream_of_neighbour(service.socket()).expect("a neighbour");
        let device = device_at(service.socket()).expect("the CPU");
        Scene { service, neighbour, device, begun: Instant::now(), failures: Cell::new(0) }
    }

    /// A model that both calls refuse as illegal, each with the limit in these words.
    #[track_caller]
    fn is_illegal(&self, model: &Model, limit: &str) {
        let invalid = ErrorStatus::InvalidArgument;
        let surveyed = self.device.query_operations(model).expect_err("an illegal model");
        assert_eq!(surveyed.status(), invalid, "the query: {surveyed}");
        names(&surveyed, limit);
        let prepared = self.prepare(model).expect_err("an illegal model");
        assert_eq!(prepared.status(), invalid, "the preparation: {prepared}");
        names(&prepared, limit);
    }

    /// A legal model that cannot be prepared, for this limit: the query says so of some operation.
    #[track_caller]
    fn is_not_supported(&self, model: &Model, status: ErrorStatus, limit: &str) {
        let supported = self.device.query_operations(model).expect("a legal model");
        assert!(supported.contains(&false), "all is supported");
        let refusal = self.prepare(model).expect_err("not prepared");
        assert_eq!(refusal.status(), status, "{refusal}");
        names(&refusal, limit);
    }

    /// A model that is prepared, and all of which is supported.
    #[track_caller]
    fn is_prepared(&self, model: &Model) -> Arc<dyn PreparedModel> {
        let supported = self.device.query_operations(model).expect("a legal model");
        assert!(!supported.contains(&false), "{supported:?}");
        self.prepare(model).expect("what is supported is prepared")
    }

    /// A model all of which is supported, and that is over this limit of whoever pays.
    #[track_caller]
    fn is_too_expensive(&self, model: &Model, limit: &str) {
        match self.device.query_operations(model) {
            Ok(supported) => assert!(!supported.contains(&false), "{supported:?}"),
            Err(refusal) => {
                assert!(is_exhausted(refusal.status()), "{refusal}");
                names(&refusal, limit);
            }
        }
        let refusal = self.prepare(model).expect_err("nobody pays for it");
        assert!(is_exhausted(refusal.status()), "{refusal}");
        names(&refusal, limit);
    }

    /// Executions have failed since this was asked last, each for one of these limits, as the log of the service
    /// says.
    #[track_caller]
    fn has_failed_for(&self, limits: &[&str]) {
        let log = self.service.log();
        let failures = log.lines().filter(|line| line.contains("execution failed"));
        let failures: Vec<&str> = failures.skip(self.failures.get()).collect();
        println!("{}", failures.join("\n"));
        assert!(!failures.is_empty(), "no execution failed");
        for failure in &failures {
            assert!(
                limits.iter().any(|limit| failure.contains(limit)),
                "not {limits:?}: {failure}"
            );
        }
        self.failures.set(self.failures.get() + failures.len());
    }

    fn prepare(&self, model: &Model) -> Result<Arc<RemotePreparedModel>, ClientError> {
        self.device.prepare(model, &PrepareOptions::default())
    }

    /// What is true in the end of every bomb: it took some seconds, the service lives and holds no more than its
    /// limits say, and the neighbour had every answer, rightly and soon.
    #[track_caller]
    fn has_stood_it(mut self) {
        let took = self.begun.elapsed();
        let report = self.neighbour.report(FRAMES, WATCH);
        assert_eq!(self.service.end(), None, "the service lives");
        let report = report.expect("a report");
        report.check(FRAMES, LONGEST).expect("the neighbour is served");
        let most = self.service.size("VmHWM").expect("the service lives");
        println!(
            "{took:?}, at most {} MiB, the neighbour: {} frames, the longest {} us",
            most >> 20,
            report.frames,
            report.longest_us
        );
        assert!(most < MEMORY_MAX, "{most} bytes of memory");
        assert!(took < SOON, "{took:?}");
    }
}

fn device_at(socket: &Path) -> Result<RemoteDevice, ClientError> {
    Client::connect(socket)?.device("cpu")
}

/// The reason says which limit it was.
#[track_caller]
fn names(reason: &dyn std::fmt::Display, limit: &str) {
    println!("{reason}");
    assert!(reason.to_string().contains(limit), "not {limit:?}: {reason}");
}

fn is_exhausted(status: ErrorStatus) -> bool {
    use ErrorStatus::{ResourceExhaustedPersistent, ResourceExhaustedTransient};
    matches!(status, ResourceExhaustedPersistent | ResourceExhaustedTransient)
}

/// A request with these inputs and one number as its output, in a memory of its own.
fn request(inputs: &[&[u8]]) -> Request {
    let length: usize = inputs.iter().map(|input| input.len().next_multiple_of(64)).sum();
    let memory = ShmMemory::create(length + 64).expect("a memory");
    let argument = |offset: usize, length: usize| {
        let [offset, length] = [offset, length].map(|at| u32::try_from(at).expect("small"));
        let location = DataLocation { pool_index: 0, offset, length };
        RequestArgument { location, ..RequestArgument::default() }
    };
    let mut at = 0;
    let mut arguments = Vec::new();
    for input in inputs {
        memory.write(at as u64, input).expect("in bounds");
        arguments.push(argument(at, input.len()));
        at += input.len().next_multiple_of(64);
    }
    let outputs = vec![argument(at, 4)];
    Request {
        inputs: arguments,
        outputs,
        pools: vec![RequestPool::Memory(Arc::new(memory) as Pool)],
    }
}

fn options(loop_timeout: Option<Duration>, deadline: Option<Duration>) -> ExecutionOptions {
    let deadline = deadline.map(TimePoint::after);
    ExecutionOptions { measure_timing: false, deadline, loop_timeout }
}

/// What limits are called where they refuse.
const LENGTH: &str = "it has more than 2^32 - 1 bytes";
const ELEMENTS: &str = "number of elements is out of range";
const TENSOR: &str = "size of a tensor in memory is out of range";
const WORKING_MEMORY: &str = "bytes of working memory, at most 2147483648 are allowed";
const ACCOUNT: &str = "bytes of memory for one user";
const ADDRESS_SPACE: &str = "bytes of address space for one user are over the limit of";
const MAPPED: &str = "mapped bytes are over the limit of";
const MODEL_BYTES: &str = "bytes of a model are over the limit of";
const MODELS: &str = "the limit of 64 on prepared models is reached";
const POOLS: &str = "200 elements where at most 128 may be";
const OPERANDS: &str = "operands, of which at most 262144 are allowed";
const OPERANDS_IN_A_MESSAGE: &str = "2147483648 elements where at most 262144 may be";
const CONSTANTS: &str = "bytes of constants, of which at most 4294967296 are allowed";
const NESTING: &str = "levels of nested control flow, of which at most 16 are allowed";
const RECURSION: &str = "refers to itself";
const LOOP: &str = "a loop ran longer than its time-out";
const DEADLINE: &str = "the deadline passed";

const ONE: [u8; 4] = 1.0_f32.to_le_bytes();

fn shapes_of_terabytes_are_not_prepared() {
    let scene = Scene::begin();
    // A shape that is said is one that memory could have.
    for model in [
        models::repeated(&[1 << 20, 1 << 20], true),
        models::added(&[1 << 20, 1 << 20]),
        models::added(&[u32::MAX, u32::MAX, u32::MAX]),
    ] {
        scene.is_illegal(&model, LENGTH);
    }
    // One that follows from what is said has to be, too, and may be more than a device takes.
    let wide = models::repeated(&[1 << 20, 1 << 20], false);
    scene.is_not_supported(&wide, ErrorStatus::ResourceExhaustedPersistent, WORKING_MEMORY);
    let endless = models::repeated(&[1 << 30, 1 << 30, 1 << 30, 1 << 30], false);
    scene.is_not_supported(&endless, ErrorStatus::GeneralFailure, ELEMENTS);
    scene.has_stood_it();
}

fn a_shape_that_a_request_asks_for_is_paid_for() {
    let scene = Scene::begin();
    let prepared = scene.is_prepared(&models::repeated_as_asked());
    let many = [(1 << 28, ACCOUNT), (i32::MAX, TENSOR), (-1, "must not be -1")];
    for (times, limit) in many {
        let is_possible = limit == ACCOUNT;
        let request = request(&[&ONE, &i32::to_le_bytes(times)]);
        for route in Route::ALL {
            let result = execute_over(route, &prepared, &request, &options(None, None));
            let status = result.status;
            // The request is legal: only its values are out of the question.
            let is_right = if is_possible {
                is_exhausted(status)
            } else {
                status == ErrorStatus::GeneralFailure
            };
            assert!(is_right, "{times} times over {route}: {status}");
        }
        scene.has_failed_for(&[limit]);
    }
    scene.has_stood_it();
}

fn a_square_of_a_row_and_a_column_is_paid_for() {
    let scene = Scene::begin();
    // 16 GiB of half a MiB, and 1 GiB, which is more than a user may have.
    let model = models::broadcast(1 << 16);
    scene.is_not_supported(&model, ErrorStatus::ResourceExhaustedPersistent, WORKING_MEMORY);
    let side = 1 << 14;
    let row = vec![0; 4 << 14];
    let prepared = scene.is_prepared(&models::broadcast(side));
    for route in Route::ALL {
        let result = execute_over(route, &prepared, &request(&[&row, &row]), &options(None, None));
        assert!(is_exhausted(result.status), "{route}: {}", result.status);
    }
    scene.has_failed_for(&[ACCOUNT]);
    scene.has_stood_it();
}

fn constants_that_double_are_paid_for() {
    let scene = Scene::begin();
    // 8 GiB in the end: more than any tensor may have.
    scene.is_illegal(&models::doubled(31), LENGTH);
    // 1 GiB: more than a user may have.
    let prepared = scene.is_prepared(&models::doubled(28));
    for route in Route::ALL {
        let result = execute_over(route, &prepared, &request(&[&ONE]), &options(None, None));
        assert!(is_exhausted(result.status), "{route}: {}", result.status);
    }
    scene.has_failed_for(&[ACCOUNT]);
    scene.has_stood_it();
}

fn more_operands_than_a_model_may_have_are_refused() {
    let scene = Scene::begin();
    scene.is_illegal(&models::too_many_operands(), OPERANDS);
    // More than a message has room for in one graph.
    scene.is_illegal(&models::too_many_operands_of_one_graph(), OPERANDS);
    // In this process both have the same status.
    for model in [models::too_many_operands(), models::too_many_operands_of_one_graph()] {
        let here = CpuDevice::default().prepare_model(&model, &PrepareOptions::default());
        let Err(refusal) = here else { panic!("an illegal model is prepared") };
        assert_eq!(refusal.status, ErrorStatus::InvalidArgument, "{refusal}");
        names(&refusal, OPERANDS);
    }
    // A legal model may have more pools than come with a message.
    let model = models::constants_in_pools_of_their_own(200);
    CpuDevice::default().prepare_model(&model, &PrepareOptions::default()).expect("a legal model");
    let surveyed = scene.device.query_operations(&model).expect_err("too many pools");
    let prepared = scene.prepare(&model).expect_err("too many pools");
    for error in [surveyed, prepared] {
        assert_eq!(error.status(), ErrorStatus::ResourceExhaustedPersistent, "{error}");
        names(&error, POOLS);
    }
    // Two to the 31 of them, which are only said to be there.
    let (mut structure, body) =
        encode_model(&small_model().expect("the built-in model")).expect("it fits");
    structure[..4].copy_from_slice(&(1_u32 << 31).to_le_bytes());
    for refusal in refusals_of(&scene, &structure, &body) {
        assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{}", refusal.detail.as_str());
        names(&refusal.detail.as_str(), OPERANDS_IN_A_MESSAGE);
    }
    // Constants of 2 GiB that are only said to be there.
    let body = ModelBody { values_bytes: 2 << 30, ..body };
    for refusal in refusals_of(&scene, &structure, &body) {
        let status = refusal.status();
        assert_eq!(status, ErrorStatus::ResourceExhaustedPersistent, "{}", refusal.detail.as_str());
        names(&refusal.detail.as_str(), MODEL_BYTES);
    }
    scene.has_stood_it();
}

/// What a query and a preparation say to a model of these bytes.
fn refusals_of(scene: &Scene, structure: &[u8], body: &ModelBody) -> [Refusal; 2] {
    let total = usize::try_from(body.total_bytes().expect("a sum")).expect("64 bits");
    let mut memory = Memory::create("model", total).expect("a memory");
    let mapping = Mapping::map(&memory).expect("room");
    mapping.region(0, total).and_then(|region| region.copy_in(0, structure)).expect("in bounds");
    drop(mapping);
    memory.seal_write().expect("nobody maps it");
    let mut connection = Connection::open(scene.service.socket()).expect("a connection");
    let options = WirePrepareOptions::from(&PrepareOptions::default());
    let calls = [
        Call::SupportedOperations { device: 0, model: body.clone() },
        Call::Prepare { device: 0, model: body.clone(), options },
    ];
    calls.map(|call| match connection.call(call, &[memory.as_fd()]).expect("a reply") {
        Err(refusal) => refusal,
        Ok(answer) => panic!("{answer:?}"),
    })
}

fn loops_that_never_end_do_at_their_time_out_on_every_route() {
    let scene = Scene::begin();
    let timeout = Duration::from_millis(50);
    for round in [Round::Little, Round::Loop] {
        let prepared = scene.is_prepared(&models::endless(round));
        for route in Route::ALL {
            for options in [options(Some(timeout), None), options(None, Some(timeout))] {
                let result = execute_over(route, &prepared, &request(&[&ONE]), &options);
                let status = result.status;
                let is_right = matches!(
                    status,
                    ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent
                );
                assert!(is_right, "{round:?} over {route} with {options:?}: {status}");
            }
        }
        // Where nothing is said there is a time-out all the same.
        let result = prepared.execute_synchronously(&request(&[&ONE]), &options(None, None));
        assert_eq!(result.status, ErrorStatus::MissedDeadlineTransient);
        // Of those with a deadline either may have been the first to be noticed.
        scene.has_failed_for(&[LOOP, DEADLINE]);
    }
    scene.has_stood_it();
}

fn loops_whose_state_grows_end_when_nobody_pays_for_it() {
    let scene = Scene::begin();
    let prepared = scene.is_prepared(&models::endless(Round::Grows));
    for route in [Route::Synchronous, Route::Asynchronous, Route::Burst] {
        // So long that not even a busy machine ends the loop before its state is too large.
        let long = options(Some(LOOP_TIMEOUT_MAXIMUM), None);
        let result = execute_over(route, &prepared, &request(&[&ONE]), &long);
        assert!(is_exhausted(result.status), "{route}: {}", result.status);
    }
    scene.has_failed_for(&[ACCOUNT]);
    // The size of its result is not known in advance.
    let fenced = execute_over(Route::Fenced, &prepared, &request(&[&ONE]), &options(None, None));
    assert_eq!(fenced.status, ErrorStatus::InvalidArgument);
    scene.has_stood_it();
}

fn graphs_that_are_nested_too_deeply_are_refused() {
    let scene = Scene::begin();
    let prepared = scene.is_prepared(&models::nested(MAX_NESTING, 1));
    let result = prepared.execute_synchronously(&request(&[&ONE]), &options(None, None));
    assert_eq!(result.status, ErrorStatus::None);
    scene.is_illegal(&models::nested(MAX_NESTING + 1, 1), NESTING);
    scene.is_illegal(&models::nested(1000, 1), NESTING);
    scene.has_stood_it();
}

fn graphs_that_call_each_other_are_refused() {
    let scene = Scene::begin();
    scene.is_illegal(&models::recursive(), RECURSION);
    scene.has_stood_it();
}

fn more_ways_through_nested_graphs_than_time_end_at_the_deadline() {
    let scene = Scene::begin();
    let prepared = scene.is_prepared(&models::nested(MAX_NESTING, 100));
    for route in Route::ALL {
        let options = options(None, Some(Duration::from_millis(200)));
        let status = execute_over(route, &prepared, &request(&[&ONE]), &options).status;
        let is_right = matches!(
            status,
            ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent
        );
        assert!(is_right, "{route}: {status}");
    }
    scene.has_failed_for(&[DEADLINE]);
    scene.has_stood_it();
}

fn constants_of_gigabytes_in_sparse_files_are_paid_for() {
    const GIB: u32 = 1 << 30;
    const LESS: u32 = GIB - (128 << 20);
    let scene = Scene::begin();
    let terabyte = 1 << 40;
    // More than a client or a user may have mapped.
    scene.is_too_expensive(&models::layer_of(models::sparse(terabyte, false), 0, GIB), MAPPED);
    scene.is_too_expensive(
        &models::layer_of(models::sparse(2 << 30, true), GIB, GIB),
        ADDRESS_SPACE,
    );
    scene.is_too_expensive(&models::layer_of(models::sparse_file(64 << 30), 2 * GIB, GIB), MAPPED);
    // They are mapped, but copies or packed forms of them are more than a user may have.
    scene.is_too_expensive(&models::layer_of(models::sparse(LESS.into(), false), 0, LESS), ACCOUNT);
    scene.is_too_expensive(&models::layer_of(models::sparse(LESS.into(), true), 0, LESS), ACCOUNT);
    // The same bytes five times: more than a model may name.
    let pool = models::sparse(LESS.into(), true);
    let again = models::same_bytes_again_and_again(pool, LESS, 5);
    scene.is_illegal(&again, CONSTANTS);
    scene.has_stood_it();
}

fn thousands_of_models_are_as_many_as_a_user_pays_for() {
    const CONNECTIONS: usize = 40;
    const MODELS_OF_ONE: usize = 64;
    let scene = Scene::begin();
    let model = models::kept(1 << 20);
    let mut kept = Vec::new();
    let mut refused = 0;
    let mut reasons = BTreeSet::new();
    for _ in 0..CONNECTIONS {
        let device = device_at(scene.service.socket()).expect("a connection");
        for number in 0..=MODELS_OF_ONE {
            match device.prepare(&model, &PrepareOptions::default()) {
                Ok(prepared) => {
                    assert!(number < MODELS_OF_ONE, "more than a client may have");
                    kept.push(prepared);
                }
                Err(error) => {
                    let status = error.status();
                    assert_eq!(status, ErrorStatus::ResourceExhaustedTransient, "{error}");
                    reasons.insert(error.to_string());
                    refused += 1;
                }
            }
        }
    }
    println!("{} models of 1 MiB kept, {refused} refused: {reasons:#?}", kept.len());
    let is_named = |limit: &str| reasons.iter().any(|reason| reason.contains(limit));
    assert!(is_named(MODELS) && is_named(ACCOUNT) && reasons.len() == 2, "{reasons:#?}");
    // Half a GiB is what a user has in this service.
    assert!((64..=512).contains(&kept.len()), "{} models", kept.len());
    drop(kept);
    scene
        .service
        .wait_until("the end of all models", SOON, |now| now.in_use("models") == 1)
        .expect("what was dropped is given back");
    scene.has_stood_it();
}
