//! What a service refuses: other protocols, malformed control messages, hostile descriptors,
//! more than its limits. And what a client refuses of a service.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_client::{BurstOptions, Client, ClientError, ConnectOptions, StreamOptions};
use burst_hal::ErrorStatus;
use burst_server::{Limits, ServiceOptions};
use burst_shm::Memory;
use burst_wire::control::{
    Answer, Call, ClientGreeting, ClientMessage, List, ModelBody, PoolSource, Refusal,
    RefusalCause, Reply, ServerGreeting, ServerMessage, StatedLimits, Versions, WaitStyle, Welcome,
    WirePrepareOptions,
};
use burst_wire::socket::{self, Inbox};
use burst_wire::{DATUM_BYTES, Features, WireError};
use fmq::{Consumer, Producer, QueueConfig};

use crate::burst_support::raw::{RawClient, configure_call, wire_descriptor};
use crate::burst_support::{LONG, Private, long, model};

fn raw() -> (Private, RawClient) {
    let (service, socket) = Private::start(ServiceOptions::default());
    (service, RawClient::greet(socket))
}

/// The status of a refusal.
#[track_caller]
fn refused(client: &mut RawClient, call: Call, descriptors: &[BorrowedFd<'_>]) -> ErrorStatus {
    client.call(call, descriptors).expect_err("refused").status()
}

/// The session still answers.
#[track_caller]
fn assert_alive(client: &mut RawClient) {
    assert!(matches!(client.call(Call::ListDevices, &[]), Ok(Answer::Devices(_))));
}

#[test]
fn another_version_is_named_on_both_sides() {
    // A service of a later version that this client cannot speak.
    let (ours, theirs) = socket::pair().unwrap();
    let service = std::thread::spawn(move || {
        let mut inbox = Inbox::default();
        socket::receive(&theirs, &mut inbox).unwrap();
        socket::send(&theirs, b"burst-nn\x07\0\0\0whatever version 7 says", &[]).unwrap();
    });
    let error = Client::from_socket(ours).unwrap_err();
    assert!(matches!(error, ClientError::Version { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the service speaks protocol version 7, this client speaks version 2"
    );
    service.join().unwrap();
}

/// What a service answers to a greeting, and that it hangs up behind a refusal.
#[track_caller]
fn refusing(greeting: &ClientGreeting) -> ServerGreeting {
    let (service, socket) = Private::start(ServiceOptions::default());
    socket::send(&socket, &greeting.encode().unwrap(), &[]).unwrap();
    let mut inbox = Inbox::default();
    socket::receive(&socket, &mut inbox).unwrap();
    let answer = ServerGreeting::decode(inbox.message()).unwrap();
    assert_eq!(socket::receive(&socket, &mut inbox), Err(WireError::Closed));
    service.join();
    answer
}

#[test]
fn a_client_of_versions_out_of_range_or_with_requirements_is_refused_by_name() {
    let greeting = ClientGreeting::new(Features::ALL, "later");
    let later = Versions { oldest: 5, newest: 7 };
    let answer = refusing(&ClientGreeting { versions: later, ..greeting.clone() });
    assert_eq!((answer.welcome, answer.version), (Welcome::NoCommonVersion, 2));
    assert_eq!(answer.versions, Versions::SPOKEN);
    let said = answer.detail.as_str();
    assert_eq!(said, "this service speaks protocol version 2, the client versions 5 to 7");
    let required = 1 << 40 | Features::DEADLINES.bits();
    let answer = refusing(&ClientGreeting { required, ..greeting.clone() });
    assert_eq!((answer.welcome, answer.missing), (Welcome::FeatureMissing, 1 << 40));
    let said = answer.detail.as_str();
    assert_eq!(said, "this service lacks what the client requires: bit 40");
    assert_eq!(answer.limits, StatedLimits::default(), "who is refused learns no more");
    // The same by the client's own sentence.
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut options = ConnectOptions::default();
    options.required = Features::from_bits(1 << 40);
    let error = Client::greet(socket, &options).unwrap_err();
    assert_eq!(error.to_string(), "the service lacks what this program requires: bit 40");
}

#[test]
fn a_client_of_a_wider_range_is_spoken_to_in_the_version_of_the_service() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let versions = Versions { oldest: 1, newest: 9 };
    let features = Features::ALL.bits() | 1 << 40;
    let greeting = ClientGreeting { versions, features, ..ClientGreeting::new(Features::ALL, "") };
    socket::send(&socket, &greeting.encode().unwrap(), &[]).unwrap();
    let mut inbox = Inbox::default();
    socket::receive(&socket, &mut inbox).unwrap();
    let answer = ServerGreeting::decode(inbox.message()).unwrap();
    assert_eq!((answer.welcome, answer.version), (Welcome::Accepted, 2));
    assert_eq!(
        answer.features,
        Features::ALL.bits(),
        "additions that it does not know are ignored"
    );
    drop(socket);
    service.join();
}

#[test]
fn a_malformed_greeting_is_told_so() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let mut bytes = ClientGreeting::new(Features::ALL, "cut").encode().unwrap();
    bytes.pop();
    socket::send(&socket, &bytes, &[]).unwrap();
    let mut inbox = Inbox::default();
    socket::receive(&socket, &mut inbox).unwrap();
    let answer = ServerGreeting::decode(inbox.message()).unwrap();
    assert_eq!(answer.welcome, Welcome::Malformed, "and never accepted first");
    assert!(answer.detail.as_str().contains("ends too early"), "{}", answer.detail.as_str());
    assert_eq!(socket::receive(&socket, &mut inbox), Err(WireError::Closed));
    service.join();
}

#[test]
fn what_is_no_greeting_is_hung_up_on() {
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"burst-nn", b"x"] {
        let (service, socket) = Private::start(ServiceOptions::default());
        socket::send(&socket, bytes, &[]).unwrap();
        let mut inbox = Inbox::default();
        assert_eq!(socket::receive(&socket, &mut inbox), Err(WireError::Closed), "{bytes:?}");
        service.join();
    }
    // The other way round.
    let (ours, theirs) = socket::pair().unwrap();
    socket::send(&theirs, b"220 mail.example ESMTP", &[]).unwrap();
    let error = Client::from_socket(ours).unwrap_err();
    assert!(matches!(error, ClientError::NotThisProtocol), "{error}");
}

#[test]
fn who_says_nothing_instead_of_greeting_is_hung_up_on_in_time() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let mut inbox = Inbox::default();
    socket::set_receive_timeout(&socket, Some(LONG)).unwrap();
    assert_eq!(socket::receive(&socket, &mut inbox), Err(WireError::Closed));
    service.join();
}

#[test]
fn malformed_control_messages_end_the_connection_and_nothing_else() {
    let call = ClientMessage::Call { id: 1, call: Call::ReleaseModel { model: 1 } };
    let good = burst_wire::control::encode(&call).unwrap();
    let cut = good[..good.len() - 1].to_vec();
    let mut short = good.clone();
    (short[4], short[20]) = (short[4] - 1, short[20] - 1);
    let memories = ClientMessage::Memories { id: 1, status: 0, lengths: List(vec![1]) };
    let memories = [burst_wire::control::encode(&memories).unwrap(), vec![0]].concat();
    let rubbish = vec![0xA5; 4000];
    for (what, bytes) in [
        ("a cut message", cut),
        ("a call that is shorter than its fields", short),
        ("bytes behind a message that nobody could be told of", memories),
        ("rubbish", rubbish),
        ("rubbish that is too long", vec![0xA5; 70_000]),
    ] {
        let (service, mut client) = raw();
        send_raw(&client, &bytes);
        assert!(client.is_hung_up(), "{what}");
        service.join();
    }
}

/// Sends bytes that need not be a message, of any length.
fn send_raw(client: &RawClient, bytes: &[u8]) {
    let parts = [std::io::IoSlice::new(bytes)];
    let flags = rustix::net::SendFlags::NOSIGNAL;
    let mut none = rustix::net::SendAncillaryBuffer::default();
    rustix::net::sendmsg(&client.socket, &parts, &mut none, flags).unwrap();
}

/// The reply to call 5, which is a refusal.
#[track_caller]
fn refusal_of_call_5(client: &mut RawClient) -> Refusal {
    let ServerMessage::Reply(Reply { id: 5, outcome: Err(refusal) }) = client.receive().0 else {
        panic!("no refusal of call 5")
    };
    assert_eq!(refusal.status(), ErrorStatus::InvalidArgument);
    refusal
}

#[test]
fn what_a_later_version_calls_is_refused_by_number_and_the_connection_lives() {
    let (_service, mut client) = raw();
    let memory = Memory::create("whatever", 4096).unwrap();
    let call = ClientMessage::Call { id: 5, call: Call::Unknown { number: 77 } };
    // With fields and descriptors that nobody here knows.
    let mut bytes = burst_wire::control::encode(&call).unwrap();
    (bytes[4], bytes[20]) = (bytes[4] + 6, bytes[20] + 6);
    bytes.extend_from_slice(b"fields");
    socket::send(&client.socket, &bytes, &[memory.as_fd(); 3]).unwrap();
    let refusal = refusal_of_call_5(&mut client);
    assert_eq!(refusal.cause, RefusalCause::UnknownCall);
    assert_eq!(
        refusal.detail.as_str(),
        "this service knows no call 77; it speaks protocol version 2"
    );
    // A source of pools that nobody here knows, in a call that is known.
    let model = client.prepare(&model());
    let source = PoolSource::Unknown { kind: 9 };
    let requests = Producer::create(&QueueConfig::new(DATUM_BYTES, 16)).unwrap();
    let results = Consumer::create(&QueueConfig::new(DATUM_BYTES, 16)).unwrap();
    let queues = (requests.descriptor().unwrap(), results.descriptor().unwrap());
    let (call, fds) = configure_call(model, &queues.0, &queues.1);
    let Ok(Answer::Burst { burst }) = client.call(call, &fds) else { panic!("no burst") };
    let push = Call::PushMemory { burst, slot: 0, source };
    let refusal = client.call(push, &[]).unwrap_err();
    assert_eq!(refusal.status(), ErrorStatus::InvalidArgument);
    assert_eq!(refusal.detail.as_str(), "there is no kind of pool source 9");
    // A message that is no call at all is ignored.
    client.send(&ClientMessage::Unknown { kind: 12 }, &[memory.as_fd()]);
    assert_alive(&mut client);
}

#[test]
fn a_call_with_a_tail_is_done() {
    let (_service, mut client) = raw();
    let call = ClientMessage::Call { id: 1, call: Call::DeviceStatus { device: 0 } };
    let mut bytes = burst_wire::control::encode(&call).unwrap();
    (bytes[4], bytes[20]) = (bytes[4] + 9, bytes[20] + 4);
    bytes.extend_from_slice(b"laterlate");
    socket::send(&client.socket, &bytes, &[]).unwrap();
    let want = Reply { id: 1, outcome: Ok(Answer::DeviceStatus(0)) };
    assert_eq!(client.receive().0, ServerMessage::Reply(want));
}

#[test]
fn a_longer_call_than_may_be_is_refused_and_the_connection_lives() {
    let (service, mut client) = raw();
    let call = ClientMessage::Call { id: 5, call: Call::ReleaseModel { model: 1 } };
    let good = burst_wire::control::encode(&call).unwrap();
    for (more, said) in [
        (1, "1 bytes follow after the end of a control message"),
        (70_000, "a control message of 70028 bytes is over the limit of 65536"),
    ] {
        send_raw(&client, &[good.clone(), vec![0; more]].concat());
        let refusal = refusal_of_call_5(&mut client);
        assert_eq!(refusal.cause, RefusalCause::TooLong);
        assert_eq!(refusal.detail.as_str(), format!("the call is refused: {said}"));
        assert_alive(&mut client);
    }
    drop(client);
    service.join();
}

#[test]
fn a_service_that_talks_rubbish_is_left() {
    let (ours, theirs) = socket::pair().unwrap();
    let service = std::thread::spawn(move || {
        let mut inbox = Inbox::default();
        socket::receive(&theirs, &mut inbox).unwrap();
        ClientGreeting::decode(inbox.message()).unwrap();
        let hello = ServerGreeting {
            features: u64::MAX,
            ..ServerGreeting::accepting(Features::NONE, "rubbish")
        };
        socket::send(&theirs, &hello.encode().unwrap(), &[]).unwrap();
        socket::receive(&theirs, &mut inbox).unwrap();
        socket::send(&theirs, &[0xA5; 100], &[]).unwrap();
        assert_eq!(socket::receive(&theirs, &mut inbox), Err(WireError::Closed));
    });
    let client = Client::from_socket(ours).unwrap();
    assert_eq!(client.service().features, burst_wire::Features::ALL, "unknown bits are dropped");
    let error = client.device_names().unwrap_err();
    assert!(matches!(error, ClientError::PeerDied { .. }), "{error}");
    service.join().unwrap();
}

#[test]
fn refusals_by_the_way_in() {
    let options = |welcome: fn(&mut ServiceOptions)| {
        let mut options = ServiceOptions::default();
        welcome(&mut options);
        options
    };
    let full = options(|options| options.limits.clients = 0);
    let (service, socket) = Private::start(full);
    let error = Client::from_socket(socket).unwrap_err();
    assert!(matches!(error, ClientError::TooManyClients { .. }), "{error}");
    service.join();
    let access = burst_server::Access::default();
    let own = rustix::process::geteuid().as_raw();
    assert!(access.permits(own, 12345) && access.permits(0, 0));
    assert!(!access.permits(own + 1, 12345));
    let access = burst_server::Access { uids: vec![7], gids: vec![8], anyone: false };
    assert!(access.permits(7, 1) && access.permits(9, 8) && !access.permits(9, 1));
    let access = burst_server::Access { anyone: true, ..Default::default() };
    assert!(access.permits(own + 1, 12345));
}

#[test]
fn numbers_that_stand_for_nothing_are_invalid() {
    let (_service, mut client) = raw();
    let body = || ModelBody { structure_bytes: 1, values_bytes: 0, pool_lengths: List::default() };
    let options = WirePrepareOptions::from(&burst_hal::PrepareOptions::default());
    let memory = Memory::create("x", 4096).unwrap();
    let fd = memory.as_fd();
    let source = PoolSource::Shared { memory: 3 };
    let invalid = ErrorStatus::InvalidArgument;
    for (call, fds) in [
        (Call::DeviceInfo { device: 9 }, &[][..]),
        (Call::DeviceStatus { device: u32::MAX }, &[]),
        (Call::SupportedOperations { device: 9, model: body() }, &[fd]),
        (Call::Prepare { device: 9, model: body(), options }, &[fd]),
        (Call::ReleaseModel { model: 9 }, &[]),
        (Call::CloseBurst { burst: 9 }, &[]),
        (Call::FreeMemory { burst: 9, slot: 0 }, &[]),
        (Call::PushMemory { burst: 9, slot: 0, source }, &[]),
    ] {
        let what = format!("{call:?}");
        assert_eq!(refused(&mut client, call, fds), invalid, "{what}");
    }
    assert_eq!(client.call(Call::ForgetMemory { memory: 9 }, &[]), Ok(Answer::Done));
    assert_alive(&mut client);
}

#[test]
fn descriptors_that_are_missing_or_too_many_are_refused_and_closed() {
    let (_service, mut client) = raw();
    let (read, write) = rustix::pipe::pipe().unwrap();
    let memory = Memory::create("x", 64).unwrap();
    let share = || Call::ShareMemory { memory: 1, length: 64 };
    let invalid = ErrorStatus::InvalidArgument;
    assert_eq!(refused(&mut client, share(), &[]), invalid);
    assert_eq!(refused(&mut client, share(), &[memory.as_fd(), write.as_fd()]), invalid);
    assert_eq!(refused(&mut client, Call::ReleaseModel { model: 1 }, &[write.as_fd()]), invalid);
    drop(write);
    assert_alive(&mut client); // whatever came with the last message is closed by now
    assert_eq!(rustix::io::read(&read, &mut [0; 1]), Ok(0), "the service keeps a descriptor");
    assert_eq!(client.call(share(), &[memory.as_fd()]), Ok(Answer::Done));
    assert_eq!(refused(&mut client, share(), &[memory.as_fd()]), invalid, "in use");
}

#[test]
fn hostile_memories_are_invalid() {
    let (_service, mut client) = raw();
    let (read, write) = rustix::pipe::pipe().unwrap();
    let directory = OwnedFd::from(std::fs::File::open("/").unwrap());
    let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let zero = OwnedFd::from(std::fs::File::open("/dev/zero").unwrap());
    let small = Memory::create("small", 64).unwrap();
    let cases = [
        ("a pipe to read", read.as_fd(), 1),
        ("a pipe to write", write.as_fd(), 1),
        ("a directory", directory.as_fd(), 1),
        ("/dev/null", null.as_fd(), 1),
        ("/dev/zero", zero.as_fd(), 4096),
        ("shorter than said", small.as_fd(), 65),
        ("2^64-1 bytes", small.as_fd(), u64::MAX),
    ];
    for (number, (what, fd, length)) in (0..).zip(cases) {
        let call = Call::ShareMemory { memory: number, length };
        let status = refused(&mut client, call, &[fd]);
        let want = match length {
            u64::MAX => ErrorStatus::ResourceExhaustedPersistent,
            _ => ErrorStatus::InvalidArgument,
        };
        assert_eq!(status, want, "{what}");
    }
    assert_alive(&mut client);
}

#[test]
fn hostile_models_are_invalid() {
    let (_service, mut client) = raw();
    let options = WirePrepareOptions::from(&burst_hal::PrepareOptions::default());
    let body = |structure_bytes, values_bytes, pools: &[u64]| ModelBody {
        structure_bytes,
        values_bytes,
        pool_lengths: List(pools.to_vec()),
    };
    let unsealed = Memory::create("model", 4096).unwrap();
    let mut sealed = Memory::create("model", 4096).unwrap();
    sealed.seal_write().unwrap();
    for (what, fds, body) in [
        ("not sealed", vec![unsealed.as_fd()], body(64, 0, &[])),
        ("rubbish", vec![sealed.as_fd()], body(64, 64, &[])),
        ("shorter than said", vec![sealed.as_fd()], body(4096, 1, &[])),
        ("no structure", vec![sealed.as_fd()], body(0, 0, &[])),
        ("lengths that overflow", vec![sealed.as_fd()], body(64, u64::MAX, &[])),
        ("a structure over its limit", vec![sealed.as_fd()], body(u64::MAX, 0, &[])),
        ("a pool too short", vec![sealed.as_fd(), sealed.as_fd()], body(64, 0, &[5000])),
    ] {
        let call = Call::Prepare { device: 0, model: body, options };
        assert_eq!(refused(&mut client, call, &fds), ErrorStatus::InvalidArgument, "{what}");
    }
    let call = Call::Prepare { device: 0, model: body(64, 3 << 30, &[]), options };
    let status = refused(&mut client, call, &[sealed.as_fd()]);
    assert_eq!(status, ErrorStatus::ResourceExhaustedPersistent);
    assert!(client.prepare(&model()) > 0);
}

#[test]
fn hostile_queues_are_refused() {
    let (_service, mut client) = raw();
    let model = client.prepare(&model());
    let queue = |datums| Producer::create(&QueueConfig::new(DATUM_BYTES, datums)).unwrap();
    let without_word = QueueConfig::new(DATUM_BYTES, 16).without_event_flag();
    let requests = queue(16).descriptor().unwrap();
    let results = queue(16).descriptor().unwrap();
    let silent = Producer::create(&without_word).unwrap().descriptor().unwrap();
    let other_items = Producer::create(&QueueConfig::new(16, 16)).unwrap().descriptor().unwrap();
    let short = Consumer::create(&QueueConfig::new(DATUM_BYTES, 1)).unwrap().descriptor().unwrap();
    let failure = ErrorStatus::GeneralFailure;
    for (what, requests, results) in [
        ("requests without event word", &silent, &results),
        ("results without event word", &requests, &silent),
        ("items of 16 bytes", &other_items, &results),
        ("results of one datum", &requests, &short),
    ] {
        let (call, fds) = configure_call(model, requests, results);
        assert_eq!(refused(&mut client, call, &fds), failure, "{what}");
    }
    let long_queue = queue(64 * 1024 + 1).descriptor().unwrap();
    let (call, fds) = configure_call(model, &long_queue, &results);
    let status = refused(&mut client, call, &fds);
    assert_eq!(status, ErrorStatus::ResourceExhaustedPersistent, "too long");

    // A pipe, a file that can shrink, and lies about where things are.
    let (read, _write) = rustix::pipe::pipe().unwrap();
    let file = OwnedFd::from(tempfile::tempfile().unwrap());
    rustix::fs::ftruncate(&file, 1 << 20).unwrap();
    let good_fds: Vec<_> = requests.fds.iter().chain(&results.fds).map(AsFd::as_fd).collect();
    for (what, fds) in [
        ("a pipe", vec![read.as_fd(), good_fds[1]]),
        ("a file that can shrink", vec![file.as_fd(), good_fds[1]]),
    ] {
        let (call, _) = configure_call(model, &requests, &results);
        assert_eq!(refused(&mut client, call, &fds), failure, "{what}");
    }
    type Lie = fn(&mut burst_wire::control::QueueDescriptor);
    let lies: [(&str, Lie); 9] = [
        ("no grantors", |queue| queue.grantors.0.clear()),
        ("two grantors", |queue| queue.grantors.0.truncate(2)),
        ("fd index 5", |queue| queue.grantors.0[0].fd_index = 5),
        ("an offset that is not aligned", |queue| queue.grantors.0[1].offset += 4),
        ("a ring past the end", |queue| queue.grantors.0[2].extent = 24 * 4096),
        ("a ring before the start", |queue| queue.grantors.0[2].offset = u32::MAX - 7),
        ("counters in the ring", |queue| queue.grantors.0[0].offset = queue.grantors.0[2].offset),
        ("a ring of no bytes", |queue| queue.grantors.0[2].extent = 0),
        ("another flavour", |queue| queue.flags = 2),
    ];
    for (what, lie) in lies {
        let mut request_queue = wire_descriptor(&requests);
        lie(&mut request_queue);
        let call = Call::ConfigureBurst {
            model,
            request_queue,
            result_queue: wire_descriptor(&results),
            features: 0,
            wait: WaitStyle::Spin,
            depth: 1,
        };
        assert_eq!(refused(&mut client, call, &good_fds), failure, "{what}");
    }
    // Additions that nobody knows.
    let call = Call::ConfigureBurst {
        model,
        request_queue: wire_descriptor(&requests),
        result_queue: wire_descriptor(&results),
        features: 1 << 63,
        wait: WaitStyle::Spin,
        depth: 1,
    };
    assert_eq!(refused(&mut client, call, &good_fds), ErrorStatus::InvalidArgument);
    // After all of that, an honest burst.
    let (call, fds) = configure_call(model, &requests, &results);
    assert!(matches!(client.call(call, &fds), Ok(Answer::Burst { .. })));
}

fn limited(set: fn(&mut Limits)) -> (Private, Client) {
    let mut options = ServiceOptions::default();
    set(&mut options.limits);
    let (service, socket) = Private::start(options);
    (service, Client::from_socket(socket).unwrap())
}

#[track_caller]
fn assert_status<T: std::fmt::Debug>(result: Result<T, ClientError>, want: ErrorStatus) {
    match result {
        Err(ClientError::Refused { status, .. }) => assert_eq!(status, want),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_limit_has_its_code_and_a_transient_one_passes_later() {
    let transient = ErrorStatus::ResourceExhaustedTransient;
    let persistent = ErrorStatus::ResourceExhaustedPersistent;

    let (_service, client) = limited(|limits| limits.models = 1);
    let device = client.device("fake").unwrap();
    let first = device.prepare(&model(), &Default::default()).unwrap();
    assert_status(device.prepare(&model(), &Default::default()), transient);
    drop(first);
    device.prepare(&model(), &Default::default()).unwrap();

    let (_service, client) = limited(|limits| limits.bursts = 1);
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let first = prepared.configure_burst(&BurstOptions::default()).unwrap();
    assert_status(prepared.configure_burst(&BurstOptions::default()), transient);
    drop(first);
    prepared.configure_burst(&BurstOptions::default()).unwrap();
    let long = BurstOptions::default().with_queue_datums(70_000);
    assert_status(prepared.configure_burst(&long), persistent);

    let (_service, client) = limited(|limits| limits.allocated_bytes = 100);
    let prepared = client.device("fake").unwrap().prepare(&model(), &Default::default()).unwrap();
    let first = prepared.allocate_outputs(60).unwrap();
    assert_status(prepared.allocate_outputs(60), transient);
    assert_status(prepared.allocate_outputs(101), persistent);
    drop(first);

    let (_service, client) = limited(|limits| limits.mapped_bytes = 64 << 10);
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let memory = || -> burst_hal::Pool {
        std::sync::Arc::new(burst_client::ShmMemory::create(40 << 10).unwrap())
    };
    let (one, two) = (memory(), memory());
    burst.push_memory(&one).unwrap();
    assert_status(burst.push_memory(&two), transient);
    drop(one);
    burst.push_memory(&two).unwrap();
    let huge: burst_hal::Pool =
        std::sync::Arc::new(burst_client::ShmMemory::create(65 << 10).unwrap());
    assert_status(burst.push_memory(&huge), persistent);

    let (_service, client) = limited(|limits| limits.model_bytes = 8);
    let device = client.device("fake").unwrap();
    assert_status(device.prepare(&model(), &Default::default()), persistent);
}

#[test]
fn a_client_that_breaks_its_bursts_and_keeps_them_reaches_its_limit() {
    let mut options = ServiceOptions::default();
    options.limits.bursts = 3;
    let (_service, socket) = Private::start(options);
    let mut client = RawClient::greet(socket);
    let model = client.prepare(&model());
    for round in 0..4 {
        let queue = || Producer::create(&QueueConfig::new(DATUM_BYTES, 16)).unwrap();
        let (requests, results) = (queue(), queue());
        let descriptors = [requests.descriptor().unwrap(), results.descriptor().unwrap()];
        let (call, fds) = configure_call(model, &descriptors[0], &descriptors[1]);
        match client.call(call, &fds) {
            Ok(Answer::Burst { .. }) if round < 3 => requests.closer().close(),
            Err(_) if round == 3 => {}
            other => panic!("round {round}: {other:?}"),
        }
    }
}

#[test]
fn below_the_statuses_of_hal_1_3_a_limit_is_a_general_failure() {
    let mut options = ServiceOptions::default();
    options.limits.models = 0;
    let (_service, socket) = Private::start(options);
    let client = Client::from_socket_with(socket, burst_wire::Features::NONE).unwrap();
    let device = client.device("fake").unwrap();
    assert_status(device.prepare(&model(), &Default::default()), ErrorStatus::GeneralFailure);
}

#[test]
fn a_service_that_makes_no_memory_for_outputs_gets_the_clients() {
    let (_service, client) = limited(|limits| limits.allocated_bytes = 0);
    let device = client.device("fake").unwrap();
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    stream.input(0).fill(3);
    stream.run(long()).unwrap();
    assert_eq!(stream.output(0).unwrap(), [4; 16]);
}
