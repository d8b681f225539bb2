//! One account per user, whichever of its connections something comes over: what devices hold, what
//! is mapped, threads, descriptors, calls. Each is charged before it is there, given back however it
//! ends, and named in the refusal.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use burst_client::{BurstOptions, Client, ClientError};
use burst_hal::{
    Burst, Caller, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, MemoryCharge,
    Model, PlainBurst, PrepareOptions, PrepareResult, PreparedModel, Request,
};
use burst_server::{Limits, ServiceOptions};
use burst_shm::Memory;
use burst_wire::control::{
    Answer, Call, List, PoolSource, Refusal, ServerGreeting, SynchronousRequest, Welcome,
    WireArgument,
};
use burst_wire::socket::{self, Inbox};
use burst_wire::{DATUM_BYTES, DATUM_QUANTUM};
use fmq::{Descriptor, Grantor, SYNCHRONIZED};

use crate::burst_support::raw::{self, RawClient, configure_call};
use crate::burst_support::{FakeDevice, model, wait_until};
use crate::peer;
use crate::service_support::{Shared, passes_after_waiting};

const TRANSIENT: ErrorStatus = ErrorStatus::ResourceExhaustedTransient;
const PERSISTENT: ErrorStatus = ErrorStatus::ResourceExhaustedPersistent;

const KIB: u64 = 1 << 10;

fn options(set: impl FnOnce(&mut Limits)) -> ServiceOptions {
    let mut options = ServiceOptions::default();
    set(&mut options.limits);
    options
}

fn service(set: impl FnOnce(&mut Limits)) -> Shared {
    Shared::start(Arc::new(FakeDevice::default()), options(set))
}

/// A client of the service that can say anything.
fn raw_client(service: &Shared) -> RawClient {
    RawClient::greet(raw::connect(&service.path))
}

/// What the service says that the user of this process has in use.
fn used(service: &Shared, resource: &str) -> u64 {
    let uid = rustix::process::geteuid().as_raw();
    let series = format!("burst_user_used{{user=\"{uid}\",resource=\"{resource}\"}} ");
    let text = service.metrics.encode();
    let line = text.lines().find_map(|line| line.strip_prefix(&*series));
    line.map_or(0, |used| used.parse().unwrap())
}

/// Waits until the service has forgotten every user: none has anything in use.
#[track_caller]
fn all_is_given_back(service: &Shared) {
    wait_until("the end of all debts", || !service.metrics.encode().contains("burst_user_used{"));
    let text = service.metrics.encode();
    for line in text.lines().filter(|line| line.starts_with("burst_service_used{")) {
        assert!(line.ends_with(" 0"), "{line}");
    }
}

#[track_caller]
fn assert_refused<T>(result: Result<T, ClientError>, status: ErrorStatus, limit: &str) {
    match result.map(drop) {
        Err(ClientError::Refused { status: got, detail, .. }) => {
            assert_eq!(got, status, "{detail}");
            assert!(detail.contains(limit), "{detail}");
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_refusal(refused: Result<Answer, Refusal>, status: ErrorStatus, limit: &str) {
    let refusal = refused.expect_err("refused");
    assert_eq!(refusal.status(), status, "{refusal:?}");
    assert!(refusal.detail.as_str().contains(limit), "{refusal:?}");
}

/// What the paying device does.
#[derive(Debug, Default)]
struct Price {
    /// Bytes that each prepared model holds, and each burst in addition.
    model: AtomicU64,
    burst: AtomicU64,
    /// It panics when it has charged for a model, or refuses the model then.
    panics: AtomicBool,
    refuses: AtomicBool,
}

/// A device that charges its callers.
#[derive(Debug, Default)]
struct PayingDevice(Arc<Price>);

struct PaidModel {
    price: Arc<Price>,
    caller: Caller,
    _charge: MemoryCharge,
}

struct PaidBurst {
    burst: PlainBurst,
    _charge: MemoryCharge,
}

impl Device for PayingDevice {
    fn name(&self) -> &str {
        "paying"
    }

    fn version_string(&self) -> &str {
        "paying-1"
    }

    fn supported_operations(&self, _: &Model) -> Result<Vec<bool>, Failure> {
        panic!("a service that lends no account");
    }

    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        let _charge = caller.charge(self.0.model.load(Ordering::SeqCst))?;
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        panic!("a service that lends no account");
    }

    fn prepare_model_for(&self, _: &Model, _: &PrepareOptions, caller: &Caller) -> PrepareResult {
        let charge = caller.charge(self.0.model.load(Ordering::SeqCst))?;
        assert!(!self.0.panics.load(Ordering::SeqCst), "asked to panic");
        if self.0.refuses.load(Ordering::SeqCst) {
            return Err(Failure::general("asked to refuse"));
        }
        let (price, caller) = (Arc::clone(&self.0), caller.clone());
        Ok(Arc::new(PaidModel { price, caller, _charge: charge }))
    }
}

impl PreparedModel for PaidModel {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::None)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        let charge = self.caller.charge(self.price.burst.load(Ordering::SeqCst))?;
        Ok(Box::new(PaidBurst { burst: PlainBurst::new(self), _charge: charge }))
    }
}

impl Burst for PaidBurst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        self.burst.execute(request, options, result);
    }
}

fn paying(model: u64, burst: u64, set: impl FnOnce(&mut Limits)) -> (Shared, Arc<Price>) {
    let price = Arc::new(Price { model: model.into(), burst: burst.into(), ..Price::default() });
    (Shared::start(Arc::new(PayingDevice(Arc::clone(&price))), options(set)), price)
}

#[test]
fn what_a_device_holds_is_charged_to_one_account_whichever_connection_it_is_for() {
    let (service, price) = paying(400 * KIB, 0, |limits| {
        limits.memory_bytes_per_user = 1024 * KIB;
    });
    let clients = [service.connect().unwrap(), service.connect().unwrap()];
    let [one, other] = [&clients[0], &clients[1]].map(|client| client.device("paying").unwrap());
    let first = one.prepare(&model(), &Default::default()).unwrap();
    let second = other.prepare(&model(), &Default::default()).unwrap();
    assert!(used(&service, "memory_bytes") >= 800 * KIB);
    let limit = "bytes of memory for one user";
    for device in [&one, &other] {
        assert_refused(device.prepare(&model(), &Default::default()), TRANSIENT, limit);
        assert_refused(device.query_operations(&model()), TRANSIENT, limit);
    }
    assert!(service.metric("burst_refusals_total{limit=\"memory_bytes_per_user\"}") >= 4);
    drop(second);
    let second = passes_after_waiting(|| one.prepare(&model(), &Default::default()));
    price.model.store(1025 * KIB, Ordering::SeqCst);
    assert_refused(one.prepare(&model(), &Default::default()), PERSISTENT, limit);
    drop((first, second, one, other, clients));
    all_is_given_back(&service);
}

#[test]
fn all_users_together_have_an_account_too_and_it_is_named() {
    let (service, _price) = paying(400 * KIB, 0, |limits| {
        limits.memory_bytes = 500 * KIB;
        limits.memory_bytes_per_user = 1024 * KIB;
    });
    let client = service.connect().unwrap();
    let device = client.device("paying").unwrap();
    let _first = device.prepare(&model(), &Default::default()).unwrap();
    let refused = device.prepare(&model(), &Default::default());
    assert_refused(refused, TRANSIENT, "bytes of memory for all users");
}

#[test]
fn however_it_ends_everything_is_given_back() {
    let (service, price) = paying(100 * KIB, 50 * KIB, |_| {});
    let client = service.connect().unwrap();
    let device = client.device("paying").unwrap();
    let at_rest = used(&service, "memory_bytes");
    for flag in [&price.panics, &price.refuses] {
        flag.store(true, Ordering::SeqCst);
        device.prepare(&model(), &Default::default()).unwrap_err();
        flag.store(false, Ordering::SeqCst);
        assert_eq!(used(&service, "memory_bytes"), at_rest);
    }
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let held = used(&service, "memory_bytes");
    assert!((100 * KIB..101 * KIB).contains(&held), "{held}");
    let burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    assert!(used(&service, "memory_bytes") >= held + 50 * KIB);
    let with_burst = used(&service, "memory_bytes");
    // A burst that cannot be made gives back what it took by then.
    price.burst.store(u64::MAX, Ordering::SeqCst);
    let refused = prepared.configure_burst(&BurstOptions::default());
    assert_refused(refused, PERSISTENT, "bytes of memory for one user");
    assert_eq!(used(&service, "memory_bytes"), with_burst);
    assert_eq!(used(&service, "threads"), 3, "the readers' and the burst's");
    // The burst outlives its model; the hang-up ends both.
    drop(prepared);
    drop((burst, device, client));
    all_is_given_back(&service);
}

#[test]
fn what_the_service_decodes_is_charged_before_it_is_decoded() {
    let service = service(|limits| limits.memory_bytes_per_user = 64);
    let client = service.connect().unwrap();
    let device = client.device("fake").unwrap();
    let limit = "bytes of memory for one user are over the limit of 64";
    assert_refused(device.prepare(&model(), &Default::default()), PERSISTENT, limit);
    assert_refused(device.query_operations(&model()), PERSISTENT, limit);
}

#[test]
fn memories_that_the_service_makes_are_charged_to_one_account() {
    let service = service(|limits| limits.memory_bytes_per_user = 100 * KIB);
    let (mut one, mut other) = (raw_client(&service), raw_client(&service));
    let allocate = |memory, length| Call::AllocateMemory { memory, length };
    assert_eq!(one.call(allocate(1, 60 * KIB), &[]), Ok(Answer::Done));
    let limit = "bytes of memory for one user";
    assert_refusal(other.call(allocate(1, 60 * KIB), &[]), TRANSIENT, limit);
    assert_refusal(other.call(allocate(1, 101 * KIB), &[]), PERSISTENT, limit);
    assert_eq!(one.call(Call::ForgetMemory { memory: 1 }, &[]), Ok(Answer::Done));
    assert_eq!(other.call(allocate(1, 60 * KIB), &[]), Ok(Answer::Done));
    drop((one, other));
    all_is_given_back(&service);
}

#[test]
fn threads_calls_places_and_descriptors_are_those_of_the_user() {
    let service = service(|limits| limits.threads_per_user = 6);
    let clients = [service.connect().unwrap(), service.connect().unwrap()];
    let prepare = |client: &Client| {
        client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap()
    };
    let [one, other] = [&clients[0], &clients[1]].map(prepare);
    // Two threads read each connection, as both have prepared a model.
    let first = one.configure_burst(&BurstOptions::default()).unwrap();
    let second = other.configure_burst(&BurstOptions::default()).unwrap();
    let limit = "threads for one user";
    for prepared in [&one, &other] {
        assert_refused(prepared.configure_burst(&BurstOptions::default()), TRANSIENT, limit);
    }
    let refused = service.connect().unwrap_err();
    assert!(matches!(refused, ClientError::TooManyClients { .. }), "{refused}");
    assert_eq!((used(&service, "threads"), used(&service, "clients")), (6, 2));
    drop(first);
    let third = passes_after_waiting(|| other.configure_burst(&BurstOptions::default()));
    drop((second, third, one, other, clients));
    all_is_given_back(&service);

    let service = self::service(|limits| limits.descriptors_per_user = 5);
    let (mut one, mut other) = (raw_client(&service), raw_client(&service));
    let memory = Memory::create("x", 64).unwrap();
    let share = |memory| Call::ShareMemory { memory, length: 64 };
    for number in 0..2 {
        assert_eq!(one.call(share(number), &[memory.as_fd()]), Ok(Answer::Done));
    }
    assert_eq!(other.call(share(0), &[memory.as_fd()]), Ok(Answer::Done));
    let limit = "file descriptors for one user";
    assert_refusal(other.call(share(1), &[memory.as_fd()]), TRANSIENT, limit);
    assert_eq!(used(&service, "descriptors"), 5);
}

/// A memory of a TiB without a page.
fn sparse() -> Memory {
    Memory::create("sparse", 1 << 40).unwrap()
}

/// A queue in a memory, whose ring begins here.
fn queue_at(memory: &Memory, ring_offset: u32) -> Descriptor {
    let part = |offset, extent| Grantor { flags: 0, fd_index: 0, offset, extent };
    let ring = part(ring_offset, 16 * DATUM_BYTES as u64);
    Descriptor {
        grantors: vec![part(0, 8), part(128, 8), ring, part(256, 4)],
        fds: vec![memory.duplicate_fd().unwrap()],
        quantum: DATUM_QUANTUM,
        flags: SYNCHRONIZED,
    }
}

#[test]
fn queues_and_memories_are_charged_what_is_mapped_of_them() {
    let service = service(|limits| limits.address_space_bytes_per_user = 1024 * KIB);
    let (mut one, mut other) = (raw_client(&service), raw_client(&service));
    let (first, second) = (one.prepare(&model()), other.prepare(&model()));
    let pages = |bytes| burst_shm::mapped_bytes(bytes);
    let before = used(&service, "address_space_bytes");
    assert_eq!(before, 0, "the models' own memories are gone by now");
    let (requests, results) = (sparse(), sparse());
    let near = [&requests, &results].map(|memory| queue_at(memory, 4096));
    let (call, fds) = configure_call(first, &near[0], &near[1]);
    let Ok(Answer::Burst { burst }) = one.call(call, &fds) else { panic!("no burst") };
    let queues = 2 * pages(4096 + 16 * DATUM_BYTES as u64);
    assert_eq!(used(&service, "address_space_bytes"), queues);
    // Its ring lies a MiB behind its counters.
    let far = queue_at(&requests, 1024 << 10);
    let (call, fds) = configure_call(second, &far, &near[1]);
    let limit = "bytes of address space for one user";
    assert_refusal(other.call(call, &fds), PERSISTENT, limit);
    let share = |memory, length| Call::ShareMemory { memory, length };
    let fds = [requests.as_fd()];
    assert_eq!(other.call(share(1, 1), &fds), Ok(Answer::Done));
    assert_eq!(used(&service, "address_space_bytes"), queues + pages(1));
    assert_refusal(one.call(share(1, 1020 * KIB), &fds), TRANSIENT, limit);
    assert_refusal(one.call(share(1, 1025 * KIB), &fds), PERSISTENT, limit);
    assert_eq!(one.call(Call::CloseBurst { burst }, &[]), Ok(Answer::Done));
    assert_eq!(used(&service, "address_space_bytes"), pages(1));
    drop((one, other));
    all_is_given_back(&service);
}

#[test]
fn sparse_files_leave_a_service_its_address_space() {
    /// As many as used to exhaust what a process has, and some more.
    const FILES: u32 = 200;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let service = peer::Service::start(&path);
    let mut greedy = RawClient::greet(raw::connect(&path));
    let model_number = greedy.prepare(&model());
    let size_kib = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", service.0.id())).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
        size.split_whitespace().next().unwrap().parse().unwrap()
    };
    let before = size_kib();
    for memory in 0..FILES {
        let file = sparse();
        let share = Call::ShareMemory { memory, length: 4096 };
        assert_eq!(greedy.call(share, &[file.as_fd()]), Ok(Answer::Done), "file {memory}");
    }
    let (requests, results) = (queue_at(&sparse(), 4096), queue_at(&sparse(), 4096));
    let (call, fds) = configure_call(model_number, &requests, &results);
    assert!(matches!(greedy.call(call, &fds), Ok(Answer::Burst { .. })));
    // A page each; what a thread's stack and its heap take is far below this.
    let grown = size_kib() - before;
    assert!(grown < 1 << 20, "{grown} KiB of address space for {FILES} pages");
    let honest = Client::connect(&path).unwrap();
    let prepared = honest.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    prepared.configure_burst(&BurstOptions::default()).unwrap();
}

/// Executes on a memory that comes with the call, or on one that is shared as number 1.
fn execution(model: u32, source: PoolSource) -> Call {
    let argument = |offset| WireArgument {
        has_no_value: false,
        pool_index: 0,
        offset,
        length: 16,
        dimensions: List::default(),
    };
    Call::Execute(SynchronousRequest {
        model,
        inputs: List(vec![argument(0)]),
        outputs: List(vec![argument(16)]),
        pools: List(vec![source]),
        measure_timing: false,
        deadline: None,
        loop_timeout: None,
    })
}

#[test]
fn an_execution_that_brings_memories_is_a_set_up_call_and_one_that_brings_none_is_not() {
    let service = service(|limits| {
        limits.setup_rate = 1;
        limits.setup_burst = 5;
    });
    let mut client = raw_client(&service);
    let model = client.prepare(&model());
    let memory = Memory::create("x", 64).unwrap();
    let share = Call::ShareMemory { memory: 1, length: 64 };
    assert_eq!(client.call(share, &[memory.as_fd()]), Ok(Answer::Done));
    let brings = || execution(model, PoolSource::Descriptor { length: 64 });
    // However slow this machine is, it asks more often than once a second.
    let refused = (0..1000)
        .map(|_| client.call(brings(), &[memory.as_fd()]))
        .find(Result::is_err)
        .expect("one is refused");
    assert_refusal(refused, TRANSIENT, "faster than 1 per second");
    for _ in 0..100 {
        let brings_none = execution(model, PoolSource::Shared { memory: 1 });
        assert!(matches!(client.call(brings_none, &[]), Ok(Answer::Executed(_))));
    }
}

/// What the service says to a connection that says nothing.
#[test]
fn a_client_that_was_welcomed_is_not_among_the_silent_ones() {
    let service = service(|limits| limits.ungreeted_per_user = 1);
    for _ in 0..50 {
        let greeted = service.connect().unwrap();
        // Refused if the first connection still held the one place of those that have not greeted.
        let silent = raw::connect(&service.path);
        wait_until("the silent one let in", || used(&service, "clients") == 2);
        drop((greeted, silent));
        wait_until("both gone", || used(&service, "clients") == 0);
    }
}

fn told(socket: &OwnedFd) -> Welcome {
    let mut inbox = Inbox::default();
    socket::receive(socket, &mut inbox).unwrap();
    ServerGreeting::decode(inbox.message()).unwrap().welcome
}

#[test]
fn silent_connections_have_a_quota_and_whoever_is_over_it_is_told_at_once() {
    let service = service(|limits| limits.ungreeted_per_user = 2);
    let greeted = service.connect().unwrap();
    let silent = [raw::connect(&service.path), raw::connect(&service.path)];
    wait_until("both accepted", || used(&service, "clients") == 3);
    // It waits neither for a greeting nor for a thread: the answer is there without one.
    assert_eq!(told(&raw::connect(&service.path)), Welcome::TooManyClients);
    assert!(service.metric("burst_refusals_total{limit=\"ungreeted_per_user\"}") >= 1);
    assert_eq!(used(&service, "clients"), 3, "who is refused holds nothing");
    assert_eq!(greeted.device_names().unwrap(), ["fake"], "who has greeted is not affected");
    drop(silent);
    drop(passes_after_waiting(|| service.connect()));
    drop(greeted);
    all_is_given_back(&service);
}
