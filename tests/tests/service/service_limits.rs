//! Every limit of a service is reached here and answers its own code: transient where the call
//! would pass later, and then it does; persistent where it never will. The table of limits in
//! `docs/SPEC.md` names these tests.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::AsFd;
use std::sync::Arc;

use burst_client::{BurstOptions, Client, ClientError, RemoteBuffer, ShmMemory};
use burst_hal::{
    ErrorStatus, ExecutionOptions, ModelBuilder, OperandType, OperationType, OutputSpec, Pool,
    PreparedModel,
};
use burst_server::{Limits, ServiceOptions};
use burst_shm::Memory;
use burst_wire::Features;
use burst_wire::control::{
    Answer, Call, ClientMessage, List, PoolSource, ServerMessage, SynchronousRequest, WireArgument,
};
use rustix::process::{Resource, Rlimit};

use crate::burst_support::raw::RawClient;
use crate::burst_support::{
    FakeDevice, Private, buffer_for, long, model, request_between, wait_until,
};
use crate::peer;
use crate::service_support::{Shared, passes_after_waiting};

const TRANSIENT: ErrorStatus = ErrorStatus::ResourceExhaustedTransient;
const PERSISTENT: ErrorStatus = ErrorStatus::ResourceExhaustedPersistent;

fn options(set: impl FnOnce(&mut Limits)) -> ServiceOptions {
    let mut options = ServiceOptions::default();
    set(&mut options.limits);
    options
}

fn limited(set: impl FnOnce(&mut Limits)) -> (Private, Client) {
    let (service, socket) = Private::start(options(set));
    (service, Client::from_socket(socket).unwrap())
}

fn raw(set: impl FnOnce(&mut Limits)) -> (Private, RawClient) {
    let (service, socket) = Private::start(options(set));
    (service, RawClient::greet(socket))
}

fn shared(set: impl FnOnce(&mut Limits)) -> Shared {
    Shared::start(Arc::new(FakeDevice::default()), options(set))
}

#[track_caller]
fn assert_refused<T>(result: Result<T, ClientError>, want: ErrorStatus) {
    match result {
        Err(ClientError::Refused { status, .. }) => assert_eq!(status, want),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was done"),
    }
}

#[track_caller]
fn refused(client: &mut RawClient, call: Call, memory: &Memory) -> ErrorStatus {
    let descriptors = [memory.as_fd()];
    let needed = call.descriptors();
    client.call(call, &descriptors[..needed]).expect_err("refused").status()
}

#[test]
fn clients_of_all_users() {
    let service = shared(|limits| limits.clients = 2);
    let (first, second) = (service.connect().unwrap(), service.connect().unwrap());
    let refused = service.connect().unwrap_err();
    assert!(matches!(refused, ClientError::TooManyClients { .. }), "{refused}");
    assert_eq!(service.metric("burst_in_use{limit=\"clients\"}"), 2);
    drop(first);
    let third = passes_after_waiting(|| service.connect());
    assert!(service.metric("burst_refusals_total{limit=\"clients\"}") >= 1);
    drop((second, third));
}

#[test]
fn clients_of_one_user() {
    let service = shared(|limits| limits.clients_per_user = 1);
    let first = service.connect().unwrap();
    let refused = service.connect().unwrap_err();
    assert!(matches!(refused, ClientError::TooManyClients { .. }), "{refused}");
    drop(first);
    passes_after_waiting(|| service.connect());
    assert!(service.metric("burst_refusals_total{limit=\"clients_per_user\"}") >= 1);
    assert_eq!(service.metric("burst_refusals_total{limit=\"clients\"}"), 0);
}

#[test]
fn prepared_models() {
    let (_service, client) = limited(|limits| limits.models = 1);
    let device = client.device("fake").unwrap();
    let first = device.prepare(&model(), &Default::default()).unwrap();
    assert_refused(device.prepare(&model(), &Default::default()), TRANSIENT);
    drop(first);
    passes_after_waiting(|| device.prepare(&model(), &Default::default()));

    let (_service, client) = limited(|limits| limits.models = 0);
    let device = client.device("fake").unwrap();
    assert_refused(device.prepare(&model(), &Default::default()), PERSISTENT);
}

#[test]
fn bursts() {
    let (_service, client) = limited(|limits| limits.bursts = 1);
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let first = prepared.configure_burst(&BurstOptions::default()).unwrap();
    assert_refused(prepared.configure_burst(&BurstOptions::default()), TRANSIENT);
    drop(first);
    passes_after_waiting(|| prepared.configure_burst(&BurstOptions::default()));
}

/// What a service says to a client about its buffers: how many it made before it was refused, and how.
#[track_caller]
fn buffers_until_refused(client: &Client, most: usize) -> (Vec<RemoteBuffer>, ClientError) {
    let device = client.device("fake").unwrap();
    let model = device.prepare(&model(), &Default::default()).unwrap() as Arc<dyn PreparedModel>;
    let mut made = Vec::new();
    while made.len() <= most {
        match device.allocate_buffer(&buffer_for(&model)) {
            Ok(buffer) => made.push(buffer),
            Err(refused) => return (made, refused),
        }
    }
    panic!("{most} buffers were due, and {} were made", made.len());
}

#[test]
fn buffers_of_one_client() {
    let service = shared(|limits| limits.buffers = 3);
    let (client, other) = (service.connect().unwrap(), service.connect().unwrap());
    let (mut made, refused) = buffers_until_refused(&client, 3);
    assert_eq!(made.len(), 3);
    assert!(refused.to_string().contains("the limit of 3 on buffers of a driver"), "{refused}");
    assert_refused::<()>(Err(refused), TRANSIENT);
    assert_eq!(service.metric("burst_in_use{limit=\"buffers\"}"), 3);
    let (of_other, _) = buffers_until_refused(&other, 3);
    assert_eq!(of_other.len(), 3, "another client has its own");
    made.pop();
    let (again, refused) = buffers_until_refused(&client, 3);
    assert_eq!((again.len(), refused.status()), (1, TRANSIENT));
    drop((made, again, of_other, client, other));
    wait_until("nothing in use", || service.metric("burst_in_use{limit=\"buffers\"}") == 0);

    let none = shared(|limits| limits.buffers = 0);
    let (made, refused) = buffers_until_refused(&none.connect().unwrap(), 0);
    assert_eq!((made.len(), refused.status()), (0, PERSISTENT));
}

#[test]
fn buffers_of_one_user() {
    let service = shared(|limits| limits.buffers_per_user = 4);
    let (one, two) = (service.connect().unwrap(), service.connect().unwrap());
    let (made, refused) = buffers_until_refused(&one, 4);
    assert_eq!(made.len(), 4);
    assert!(
        refused.to_string().contains("the limit of 4 on buffers of a driver for one user"),
        "{refused}"
    );
    let (of_two, refused) = buffers_until_refused(&two, 4);
    assert_eq!((of_two.len(), refused.status()), (0, TRANSIENT));
    assert_eq!(service.metric("burst_in_use{limit=\"buffers\"}"), 4);
    assert!(service.metric("burst_refusals_total{limit=\"buffers_per_user\"}") >= 2);
    drop(one);
    drop(made);
    passes_after_waiting(|| {
        let (made, refused) = buffers_until_refused(&two, 4);
        if made.len() == 4 { Ok(()) } else { Err(refused) }
    });
}

#[test]
fn bytes_of_buffers_are_the_users_memory() {
    let service = shared(|limits| limits.memory_bytes_per_user = 64 << 10);
    let client = service.connect().unwrap();
    let device = client.device("fake").unwrap();
    let mut builder = ModelBuilder::new();
    let input = builder.input(OperandType::TensorFloat32, &[2048]);
    let output = builder.result_of(OperationType::Relu, &[input], OutputSpec::f32(&[2048]));
    builder.output(output);
    let model = device.prepare(&builder.build().unwrap(), &Default::default()).unwrap();
    let model = model as Arc<dyn PreparedModel>;
    let mut made = Vec::new();
    let refused = loop {
        match device.allocate_buffer(&buffer_for(&model)) {
            Ok(buffer) => made.push(buffer),
            Err(refused) => break refused,
        }
        assert!(made.len() <= 8, "8 KiB each, and 64 KiB in all");
    };
    assert!(refused.to_string().contains("bytes of memory for one user"), "{refused}");
    assert_refused::<()>(Err(refused), TRANSIENT);
    assert!(service.metric("burst_service_used{resource=\"memory_bytes\"}") >= 6 * 8192);
    made.pop();
    passes_after_waiting(|| device.allocate_buffer(&buffer_for(&model)));
    drop((made, model, device, client));
    let used = "burst_service_used{resource=\"memory_bytes\"}";
    wait_until("nothing in use", || service.metric(used) == 0);
}

#[test]
fn memories() {
    let (_service, mut client) = raw(|limits| limits.memories = 2);
    let memory = Memory::create("x", 64).unwrap();
    let share = |memory| Call::ShareMemory { memory, length: 64 };
    for number in 0..2 {
        assert_eq!(client.call(share(number), &[memory.as_fd()]), Ok(Answer::Done));
    }
    assert_eq!(refused(&mut client, share(2), &memory), TRANSIENT);
    let allocate = Call::AllocateMemory { memory: 2, length: 64 };
    assert_eq!(
        refused(&mut client, allocate, &memory),
        TRANSIENT,
        "shared memories count, whichever end made them"
    );
    assert_eq!(client.call(Call::ForgetMemory { memory: 0 }, &[]), Ok(Answer::Done));
    assert_eq!(client.call(share(2), &[memory.as_fd()]), Ok(Answer::Done));

    let (_service, mut client) = raw(|limits| limits.memories = 0);
    assert_eq!(refused(&mut client, share(0), &memory), PERSISTENT);
}

#[test]
fn mapped_bytes() {
    let (_service, client) = limited(|limits| limits.mapped_bytes = 64 << 10);
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let memory = |bytes| -> Pool { Arc::new(ShmMemory::create(bytes).unwrap()) };
    let (one, two) = (memory(40 << 10), memory(40 << 10));
    burst.push_memory(&one).unwrap();
    assert_refused(burst.push_memory(&two), TRANSIENT);
    drop(one);
    passes_after_waiting(|| burst.push_memory(&two));
    assert_refused(burst.push_memory(&memory(65 << 10)), PERSISTENT);
}

#[test]
fn allocated_bytes() {
    let (_service, mut client) = raw(|limits| limits.allocated_bytes = 100);
    let none = Memory::create("x", 64).unwrap();
    let allocate = |memory, length| Call::AllocateMemory { memory, length };
    assert_eq!(client.call(allocate(1, 60), &[]), Ok(Answer::Done));
    assert_eq!(refused(&mut client, allocate(2, 60), &none), TRANSIENT);
    assert_eq!(refused(&mut client, allocate(2, 101), &none), PERSISTENT);
    assert_eq!(client.call(Call::ForgetMemory { memory: 1 }, &[]), Ok(Answer::Done));
    assert_eq!(client.call(allocate(2, 60), &[]), Ok(Answer::Done));
}

/// Nothing here waits or tries twice: what was dropped is free when the next call counts.
#[test]
fn what_was_dropped_is_given_back_before_the_next_one_counts() {
    let (_service, client) = limited(|limits| {
        limits.allocated_bytes = 100;
        limits.mapped_bytes = 100 << 10;
        limits.memories = 4;
    });
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let burst = || prepared.configure_burst(&BurstOptions::default()).unwrap();
    let (mut one, mut other) = (burst(), burst());
    let input = || -> Pool { Arc::new(ShmMemory::create(60 << 10).unwrap()) };
    for round in 0..20 {
        let outputs = prepared.allocate_outputs(60).expect("what the round before had is free");
        let inputs = input();
        one.push_memory(&outputs).unwrap();
        one.push_memory(&inputs).expect("that, too");
        for burst in [&mut one, &mut other] {
            let request = request_between(&inputs, &outputs);
            let result = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
            assert_eq!(result.status, ErrorStatus::None);
        }
        if round == 0 {
            assert_refused(prepared.allocate_outputs(60), TRANSIENT); // it is the limit
            assert_refused(one.push_memory(&input()), TRANSIENT);
        }
    }
    // Models come in memory too: at this limit one is taken only where the last inputs are gone.
    let held = [input()];
    one.push_memory(&held[0]).unwrap();
    let small: Vec<Pool> =
        (0..3).map(|_| -> Pool { Arc::new(ShmMemory::create(64).unwrap()) }).collect();
    for memory in &small {
        one.push_memory(memory).unwrap();
    }
    assert_refused(device.prepare(&model(), &Default::default()), TRANSIENT);
    assert_refused(device.query_operations(&model()), TRANSIENT);
    drop(small);
    device.query_operations(&model()).unwrap();
    device.prepare(&model(), &Default::default()).unwrap();
    drop(held);
}

#[test]
fn bytes_of_a_model() {
    let (_service, client) = limited(|limits| limits.model_bytes = 8);
    let device = client.device("fake").unwrap();
    assert_refused(device.prepare(&model(), &Default::default()), PERSISTENT);
    assert_refused(device.query_operations(&model()), PERSISTENT);
}

#[test]
fn datums_of_a_queue_and_so_of_a_packet() {
    let (_service, client) = limited(|limits| limits.queue_datums = 100);
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let long = BurstOptions::default().with_queue_datums(101);
    assert_refused(prepared.configure_burst(&long), PERSISTENT);
    let right = BurstOptions::default().with_queue_datums(100);
    prepared.configure_burst(&right).unwrap();
}

/// Stack of each of the service's threads: more than the C library keeps of threads that have ended.
const STACK_BYTES: u64 = 64 << 20;
/// Address space that is left when no thread is to start: plenty for all but a stack.
const NO_ROOM_FOR_A_STACK: u64 = STACK_BYTES / 4;

#[test]
fn threads_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let service = peer::Service::start_with_stacks(&path, STACK_BYTES);
    let client = Client::connect(&path).unwrap();
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let burst = || prepared.configure_burst(&BurstOptions::default());
    let _first = burst().unwrap();
    let pid = rustix::process::Pid::from_child(&service.0);
    let limit = |current| {
        let limits = Rlimit { current, maximum: None };
        rustix::process::prlimit(Some(pid), Resource::As, limits).unwrap();
    };
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.0.id())).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let size_kib: u64 = size.split_whitespace().next().unwrap().parse().unwrap();
    limit(Some((size_kib << 10) + NO_ROOM_FOR_A_STACK));
    let refused = burst().map(drop).unwrap_err();
    limit(None);
    assert!(refused.to_string().contains("no thread left"), "{refused}");
    assert_refused::<()>(Err(refused), TRANSIENT);
    passes_after_waiting(burst);
}

/// One execution of the fake model on a memory that is shared as number 1.
fn execution(model: u32) -> Call {
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
        pools: List(vec![PoolSource::Shared { memory: 1 }]),
        measure_timing: false,
        deadline: None,
        loop_timeout: None,
    })
}

#[test]
fn an_honest_client_keeps_to_the_slow_calls_that_the_service_states() {
    for stated in [1, 3] {
        let (_service, client) = limited(|limits| limits.slow_calls = stated);
        let device = client.device("fake").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        assert_eq!(device.query_operations(&model()).unwrap(), [true]);
                    }
                });
            }
        });
    }
    // A service that takes none says so itself.
    let (_service, client) = limited(|limits| limits.slow_calls = 0);
    let device = client.device("fake").unwrap();
    assert_refused(device.query_operations(&model()), PERSISTENT);
}

#[test]
fn an_honest_client_keeps_to_the_queues_that_the_service_states() {
    let (service, client) = limited(|limits| limits.queue_datums = 20);
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let memory: Pool = Arc::new(ShmMemory::create(64).unwrap());
    let request = crate::burst_support::request_in(&memory);
    let result = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
    assert_eq!(result.status, ErrorStatus::None);
    assert!(!burst.fell_back());
    drop((burst, prepared, client));
    service.join();
}

#[test]
fn slow_calls_at_once() {
    let (service, mut client) = raw(|limits| limits.slow_calls = 2);
    let model = client.prepare(&model());
    let memory = Memory::create("x", 64).unwrap();
    let share = Call::ShareMemory { memory: 1, length: 64 };
    assert_eq!(client.call(share, &[memory.as_fd()]), Ok(Answer::Done));
    service.controls.close_gate();
    for id in [101, 102] {
        client.send(&ClientMessage::Call { id, call: execution(model) }, &[]);
    }
    service.controls.wait_begun(2);
    // Both run; a third is refused at once, and calls that are not slow go on.
    assert_eq!(client.call(execution(model), &[]).unwrap_err().status(), TRANSIENT);
    assert!(matches!(client.call(Call::ListDevices, &[]), Ok(Answer::Devices(_))));
    service.controls.open_gate();
    for _ in 0..2 {
        let (message, _) = client.receive();
        let ServerMessage::Reply(reply) = message else { panic!("{message:?}") };
        assert!(reply.id > 100 && reply.outcome.is_ok(), "{reply:?}");
    }
    passes_after_waiting(|| match client.call(execution(model), &[]) {
        Ok(Answer::Executed(executed)) => Ok(executed),
        Ok(other) => panic!("{other:?}"),
        Err(refusal) => {
            assert_eq!(refusal.status(), TRANSIENT);
            Err(format!("{refusal:?}"))
        }
    });
}

#[test]
fn set_up_calls_per_second() {
    let (_service, mut client) = raw(|limits| {
        limits.setup_rate = 1;
        limits.setup_burst = 2;
    });
    let memory = Memory::create("x", 64).unwrap();
    let share = |memory| Call::ShareMemory { memory, length: 64 };
    // However slow this machine is, it asks more often than once a second.
    let refusal = (0..)
        .find_map(|number| client.call(share(number), &[memory.as_fd()]).err())
        .expect("one is refused");
    assert_eq!(refusal.status(), TRANSIENT);
    assert!(refusal.detail.as_str().contains("faster than 1 per second"), "{refusal:?}");
    // What is no set-up goes on at any rate.
    for _ in 0..100 {
        assert!(matches!(client.call(Call::ListDevices, &[]), Ok(Answer::Devices(_))));
    }
    let number = 1_000_000;
    passes_after_waiting(|| {
        client.call(share(number), &[memory.as_fd()]).map_err(|refusal| format!("{refusal:?}"))
    });
}

#[test]
fn connecting_again_does_not_help_who_sets_up_too_fast() {
    let service = shared(|limits| {
        limits.setup_rate = 1;
        limits.setup_burst = 3;
    });
    let mut clients = Vec::new();
    let refused = loop {
        match service.connect() {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, ClientError::TooManyClients { .. }), "{refused}");
    passes_after_waiting(|| service.connect());
    assert!(service.metric("burst_refusals_total{limit=\"setup_rate\"}") >= 1);
}

#[test]
fn a_client_in_a_hurry_can_be_let_go_on() {
    let (_service, mut client) = raw(|limits| limits.setup_rate = 0);
    let memory = Memory::create("x", 64).unwrap();
    for _ in 0..5000 {
        let share = Call::ShareMemory { memory: 1, length: 64 };
        assert_eq!(client.call(share, &[memory.as_fd()]), Ok(Answer::Done));
        assert_eq!(client.call(Call::ForgetMemory { memory: 1 }, &[]), Ok(Answer::Done));
    }
}

#[test]
fn below_the_statuses_of_hal_1_3_every_limit_is_a_general_failure() {
    let plain = |set: fn(&mut Limits)| {
        let (service, socket) = Private::start(options(set));
        (service, Client::from_socket_with(socket, Features::NONE).unwrap())
    };
    let general = ErrorStatus::GeneralFailure;
    for set in [
        (|limits| limits.models = 0) as fn(&mut Limits),
        |limits| limits.model_bytes = 8,
        |limits| limits.memories = 0,
        |limits| limits.mapped_bytes = 1,
    ] {
        let (_service, client) = plain(set);
        let device = client.device("fake").unwrap();
        assert_refused(device.prepare(&model(), &Default::default()), general);
    }
    for set in [(|limits| limits.bursts = 0) as fn(&mut Limits), |limits| limits.queue_datums = 1] {
        let (_service, client) = plain(set);
        let device = client.device("fake").unwrap();
        let prepared = device.prepare(&model(), &Default::default()).unwrap();
        assert_refused(prepared.configure_burst(&BurstOptions::default()), general);
    }
}

#[test]
fn what_clients_had_is_counted_and_given_back() {
    let service = shared(|_| {});
    let used = |limit: &str| service.metric(&format!("burst_in_use{{limit=\"{limit}\"}}"));
    let client = service.connect().unwrap();
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let memory: Pool = Arc::new(ShmMemory::create(4096).unwrap());
    burst.push_memory(&memory).unwrap();
    assert_eq!((used("clients"), used("models"), used("bursts")), (1, 1, 1));
    assert!(used("mapped_bytes") >= 4096 && used("memories") >= 1);
    drop((burst, prepared, client, memory));
    let kinds = ["clients", "models", "bursts", "memories", "mapped_bytes", "slow_calls"];
    wait_until("nothing in use", || kinds.iter().all(|kind| used(kind) == 0));
}
