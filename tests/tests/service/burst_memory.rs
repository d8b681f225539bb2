//! Memories of bursts: sent once, freed when asked or dropped, kept by what runs.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use burst_client::{
    Burst, BurstOptions, Client, ClientError, SharedAllocator, ShmMemory, StreamOptions,
};
use burst_hal::session::{HeapAllocator, ModelSession, SessionOptions};
use burst_hal::{
    DataLocation, ErrorStatus, ExecutionOptions, Pool, Request, RequestArgument, RequestPool, Route,
};
use burst_server::ServiceOptions;
use burst_wire::control::{
    self, Answer, Call, ClientMessage, List, PoolSource, ServerGreeting, ServerMessage,
};
use burst_wire::socket::{self, Inbox};
use std::os::fd::AsFd;

use crate::burst_support::raw::{INPUT_SLOT, RawBurst, request as raw_request};
use crate::burst_support::tour::{From, Relay};
use crate::burst_support::{LONG, Private, long, model, wide_model};

fn shm(length: usize) -> Pool {
    Arc::new(ShmMemory::create(length).unwrap())
}

/// Input at 0, output at 16 of the same or of two memories.
fn request(input: &Pool, output: &Pool) -> Request {
    let argument = |pool_index, offset| RequestArgument {
        location: DataLocation { pool_index, offset, length: 16 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0, 0)],
        outputs: vec![argument(1, 16)],
        pools: [input, output].map(|pool| RequestPool::Memory(Pool::clone(pool))).to_vec(),
    }
}

fn run(burst: &mut Burst, request: &Request) -> ErrorStatus {
    let result = burst.execute(request, &ExecutionOptions::default(), long()).unwrap();
    result.status
}

fn burst() -> (Private, Burst) {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    (service, prepared.configure_burst(&BurstOptions::default()).unwrap())
}

/// Mappings of pools in this process with this many bytes.
fn mappings_of(bytes: usize) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let length = |line: &str| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        let parse = |text| usize::from_str_radix(text, 16).ok();
        Some(parse(to)? - parse(from)?)
    };
    maps.lines()
        .filter(|line| line.contains("/memfd:burst-pool") && length(line) == Some(bytes))
        .count()
}

#[test]
fn a_memory_is_mapped_once_by_the_service_and_let_go_when_it_is_freed() {
    const BYTES: usize = 13 * 4096; // no other test's
    let (_service, mut burst) = burst();
    let memory = shm(BYTES);
    assert_eq!(mappings_of(BYTES), 1, "ours");
    memory.write(0, &[5; 16]).unwrap();
    let both = request(&memory, &memory);
    for _ in 0..10 {
        assert_eq!(run(&mut burst, &both), ErrorStatus::None);
    }
    assert_eq!(mappings_of(BYTES), 2, "ours and the service's");
    let mut output = [0; 16];
    memory.read(16, &mut output).unwrap();
    assert_eq!(output, [6; 16]);
    burst.free_memory(&memory).unwrap();
    burst.free_memory(&memory).unwrap();
    burst.free_memory(&shm(4096)).unwrap();
    // The connection still shares it; it goes with the memory itself.
    drop((both, memory));
    let other = shm(4096);
    burst.push_memory(&other).unwrap();
    assert_eq!(mappings_of(BYTES), 0);
}

#[test]
fn memories_that_were_dropped_leave_the_service_with_the_next_new_one() {
    const BYTES: usize = 17 * 4096;
    let (_service, mut burst) = burst();
    for _ in 0..5 {
        let memory = shm(BYTES);
        assert_eq!(run(&mut burst, &request(&memory, &memory)), ErrorStatus::None);
        assert!(mappings_of(BYTES) <= 3, "{}", mappings_of(BYTES));
    }
}

#[test]
fn one_memory_serves_several_bursts_and_ways() {
    const BYTES: usize = 19 * 4096;
    let (_service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let memory = shm(BYTES);
    let both = request(&memory, &memory);
    let models: Vec<_> =
        (0..2).map(|_| device.prepare(&model(), &Default::default()).unwrap()).collect();
    let mut bursts: Vec<_> = models
        .iter()
        .flat_map(|model| [model, model])
        .map(|model| model.configure_burst(&BurstOptions::default()).unwrap())
        .collect();
    for burst in &mut bursts {
        assert_eq!(run(burst, &both), ErrorStatus::None);
    }
    let executed = models[0].execute(&both, &ExecutionOptions::default(), long()).unwrap();
    assert_eq!(executed.result.status, ErrorStatus::None);
    assert_eq!(mappings_of(BYTES), 2, "ours, and one of the service for all");
    bursts[0].free_memory(&memory).unwrap();
    assert_eq!(run(&mut bursts[1], &both), ErrorStatus::None);
    assert_eq!(run(&mut bursts[0], &both), ErrorStatus::None, "sent again");
}

#[test]
fn a_file_is_a_memory_too_and_cutting_it_off_is_an_error() {
    let (_service, mut burst) = burst();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[1; 32]).unwrap();
    let descriptor = OwnedFd::from(file.try_clone().unwrap());
    let memory: Pool = Arc::new(ShmMemory::open(descriptor, 32).unwrap());
    let both = request(&memory, &memory);
    assert_eq!(run(&mut burst, &both), ErrorStatus::None);
    let mut output = [0; 16];
    memory.read(16, &mut output).unwrap();
    assert_eq!(output, [2; 16]);
    file.set_len(8).unwrap();
    assert_eq!(run(&mut burst, &both), ErrorStatus::GeneralFailure);
    file.set_len(32).unwrap();
    assert_eq!(run(&mut burst, &both), ErrorStatus::None, "the burst still works");
}

#[test]
fn outputs_in_memory_that_may_only_be_read_fail() {
    let (_service, mut burst) = burst();
    let output = shm(4096);
    let sealed = burst_shm::SealedBytes::from_bytes("sealed", &[7; 32]).unwrap();
    let descriptor = sealed.memory().duplicate_fd().unwrap();
    let constant: Pool = Arc::new(ShmMemory::open(descriptor, 32).unwrap());
    assert_eq!(run(&mut burst, &request(&constant, &output)), ErrorStatus::None);
    let mut bytes = [0; 16];
    output.read(16, &mut bytes).unwrap();
    assert_eq!(bytes, [8; 16]);
    assert_eq!(run(&mut burst, &request(&output, &constant)), ErrorStatus::GeneralFailure);
}

#[test]
fn freeing_a_slot_neither_waits_for_the_execution_nor_takes_its_memory() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let mut burst = RawBurst::start(socket, &wide_model(2), 1024);
    service.controls.close_gate();
    burst.send(&raw_request(2, false));
    service.controls.wait_begun(1);
    // The reply comes while the execution stands at the gate.
    let free = Call::FreeMemory { burst: burst.number, slot: INPUT_SLOT };
    assert_eq!(burst.client.call(free.clone(), &[]), Ok(Answer::Done));
    assert_eq!(burst.client.call(free, &[]), Ok(Answer::Done), "twice");
    let unknown = Call::FreeMemory { burst: burst.number, slot: -3 };
    assert_eq!(burst.client.call(unknown, &[]), Ok(Answer::Done));
    service.controls.open_gate();
    assert_eq!(burst.receive()[0][12..16], [0; 4], "NONE");
}

#[test]
fn slots_are_refused_when_in_use_or_negative() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut burst = RawBurst::start(socket, &wide_model(2), 1024);
    let source = PoolSource::Descriptor { length: 64 };
    for slot in [INPUT_SLOT, -1, i32::MIN] {
        let call = Call::PushMemory { burst: burst.number, slot, source };
        let input = burst.input.try_clone().unwrap();
        let refusal = burst.client.call(call, &[input.as_fd()]).unwrap_err();
        assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "slot {slot}");
    }
}

/// A service is served by our client, too: it may ask for memories that it lacks. Here a message
/// with one got lost on the way, as if a client of HAL 1.2 had never sent it.
#[test]
fn a_client_answers_a_service_that_asks_for_a_memory_of_a_slot() {
    let (service, to_service) = Private::start(ServiceOptions::default());
    let (ours, to_client) = burst_wire::socket::pair().unwrap();
    let relay = Relay::start_withholding(to_client, to_service, None);
    let client = Client::from_socket(ours).unwrap();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let (input, output) = (shm(64), shm(64));
    input.write(0, &[41; 16]).unwrap();
    assert_eq!(run(&mut burst, &request(&input, &output)), ErrorStatus::None);
    let mut answer = [0; 16];
    output.read(16, &mut answer).unwrap();
    assert_eq!(answer, [42; 16], "the memory that was asked for is the right one");
    assert_eq!(run(&mut burst, &request(&input, &output)), ErrorStatus::None);
    drop((burst, prepared, device, client));
    service.join();
    let steps = relay.join();
    let count =
        |from, name| steps.iter().filter(|step| step.from == from && step.name == name).count();
    assert_eq!(count(From::Service, "GetMemories"), 1, "asked once: {steps:?}");
    assert_eq!(count(From::Client, "Memories"), 1, "{steps:?}");
}

/// What is set up for a model has handed its memories over by then: the first execution says nothing on the socket.
#[test]
fn the_first_execution_of_a_stream_or_session_finds_its_memories_in_their_slots() {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let (service, to_service) = Private::start(ServiceOptions::default());
    let (ours, to_client) = burst_wire::socket::pair().unwrap();
    let relay = Relay::start_into(Arc::clone(&steps), to_client, to_service, None);
    let client = Client::from_socket(ours).unwrap();
    let device = client.device("fake").unwrap();
    let pushed = || {
        let steps = steps.lock().unwrap();
        steps.iter().filter(|step| step.name == "PushMemory").count()
    };
    let said = || steps.lock().unwrap().len();

    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    assert_eq!((pushed(), stream.burst().unwrap().memories_in_slots()), (2, 2));
    stream.input(0).fill(3);
    let before = said();
    stream.run(long()).unwrap();
    assert_eq!(stream.output(0).unwrap(), [4; 16]);
    assert_eq!(said(), before, "{:?}", steps.lock().unwrap());

    let options = SessionOptions { route: Route::Burst, ..SessionOptions::default() };
    let shared = Arc::new(SharedAllocator);
    let mut session = ModelSession::open(&device, &model(), &options, shared).unwrap();
    assert_eq!(pushed(), 4);
    session.write_input(0, &[5; 16]).unwrap();
    let before = said();
    session.run(&ExecutionOptions::default()).unwrap();
    assert_eq!(said(), before, "{:?}", steps.lock().unwrap());

    // Memory of this process alone cannot be handed over: it goes with each request, over the socket.
    let own = Arc::new(HeapAllocator);
    let mut session_of_own = ModelSession::open(&device, &model(), &options, own).unwrap();
    assert_eq!(pushed(), 4);
    session_of_own.write_input(0, &[7; 16]).unwrap();
    session_of_own.run(&ExecutionOptions::default()).unwrap();
    for (session, value) in [(&session, 6), (&session_of_own, 8)] {
        let mut output = Vec::new();
        session.read_output(0, &mut output).unwrap();
        assert_eq!(output, [value; 16]);
    }

    drop((stream, session, session_of_own, device, client));
    service.join();
    assert!(!relay.join().is_empty());
}

/// A memory that the service has no room for yet is no reason not to set up: the execution that needs it asks again.
#[test]
fn a_memory_that_is_refused_ahead_of_the_first_execution_is_asked_for_again_by_it() {
    let mut options = ServiceOptions::default();
    options.limits.memories = 1;
    let (_service, socket) = Private::start(options);
    let client = Client::from_socket(socket).unwrap();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let (other, memory) = (shm(64), shm(64));
    burst.push_memory(&other).unwrap();
    burst_hal::Burst::cache_memory(&mut burst, &memory);
    assert_eq!(burst.memories_in_slots(), 1, "there is room for one");
    let wanted = request(&memory, &memory);
    let refused = burst.execute(&wanted, &ExecutionOptions::default(), long()).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient, "{refused}");
    drop(other);
    assert_eq!(run(&mut burst, &wanted), ErrorStatus::None);
}

/// A service that asks for what the client does not have is told so, and the connection lives on.
#[test]
fn a_client_asked_for_slots_or_bursts_that_it_does_not_have_says_so() {
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    socket::set_receive_timeout(&theirs, Some(LONG)).unwrap();
    let service = std::thread::spawn(move || {
        let mut inbox = Inbox::default();
        socket::receive(&theirs, &mut inbox).unwrap();
        let hello = ServerGreeting::accepting(burst_wire::Features::NONE, "asks");
        socket::send(&theirs, &hello.encode().unwrap(), &[]).unwrap();
        let question = ServerMessage::GetMemories { id: 9, burst: 77, slots: List(vec![1, 2]) };
        socket::send(&theirs, &control::encode(&question).unwrap(), &[]).unwrap();
        socket::receive(&theirs, &mut inbox).unwrap();
        let answer: ClientMessage = control::decode(inbox.message()).unwrap();
        let status = ErrorStatus::InvalidArgument.code();
        let want = ClientMessage::Memories { id: 9, status, lengths: List::default() };
        assert_eq!(answer, want);
        assert!(inbox.take_descriptors().is_empty());
        theirs
    });
    let client = Client::from_socket(ours).unwrap();
    let theirs = service.join().unwrap();
    assert!(client.is_alive());
    drop(theirs);
}

/// A service that reads nothing for a while, and whose socket is full of calls, still gets its
/// replies through: answering its questions keeps nobody waiting.
#[test]
fn a_question_that_cannot_be_answered_yet_holds_up_no_reply() {
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    socket::set_receive_timeout(&theirs, Some(LONG)).unwrap();
    let mut inbox = Inbox::default();
    let greeting = std::thread::spawn(move || {
        socket::receive(&theirs, &mut inbox).unwrap();
        let hello = ServerGreeting::accepting(burst_wire::Features::NONE, "silent");
        socket::send(&theirs, &hello.encode().unwrap(), &[]).unwrap();
        (theirs, inbox)
    });
    let full = ours.try_clone().unwrap();
    let client = Client::from_socket(ours).unwrap();
    let (theirs, mut inbox) = greeting.join().unwrap();
    let asking = std::thread::spawn({
        let client = client.clone();
        move || client.device_names()
    });
    socket::receive(&theirs, &mut inbox).unwrap();
    let ClientMessage::Call { id, call: Call::ListDevices } =
        control::decode(inbox.message()).unwrap()
    else {
        panic!("no call")
    };
    // As if other callers had filled the socket: a kind of message that a service ignores.
    let filler = control::encode(&ClientMessage::Unknown { kind: 99 }).unwrap();
    let mut fillers = 0;
    while socket::send_now(&full, &filler, &[]).is_ok() {
        fillers += 1;
    }
    for id in 0..5 {
        let slots = List(vec![1, 2]);
        let question = ServerMessage::GetMemories { id, burst: 77, slots };
        socket::send(&theirs, &control::encode(&question).unwrap(), &[]).unwrap();
    }
    let outcome = Ok(Answer::Devices(List(Vec::new())));
    let reply = ServerMessage::Reply(control::Reply { id, outcome });
    socket::send(&theirs, &control::encode(&reply).unwrap(), &[]).unwrap();
    // Nothing has been read since.
    assert_eq!(asking.join().unwrap().unwrap(), Vec::<String>::new());
    for _ in 0..fillers {
        socket::receive(&theirs, &mut inbox).unwrap();
        assert_eq!(inbox.message(), filler);
    }
    for id in 0..5 {
        socket::receive(&theirs, &mut inbox).unwrap();
        let status = ErrorStatus::InvalidArgument.code();
        let want = ClientMessage::Memories { id, status, lengths: List::default() };
        assert_eq!(control::decode(inbox.message()), Ok(want), "in their order");
    }
    assert!(client.is_alive());
}

/// What a service of a later version says beside is ignored.
#[test]
fn a_message_of_an_unknown_kind_is_ignored_and_the_connection_lives() {
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    let service = std::thread::spawn(move || {
        let mut inbox = Inbox::default();
        socket::receive(&theirs, &mut inbox).unwrap();
        let hello = ServerGreeting::accepting(burst_wire::Features::NONE, "later");
        socket::send(&theirs, &hello.encode().unwrap(), &[]).unwrap();
        let news = control::encode(&ServerMessage::Unknown { kind: 40 }).unwrap();
        socket::send(&theirs, &news, &[theirs.as_fd()]).unwrap();
        for outcome in [
            Ok(Answer::Unknown { kind: 50 }),
            Err(control::Refusal::new(ErrorStatus::GeneralFailure, "no such call")
                .because(control::RefusalCause::UnknownCall)),
            Ok(Answer::Devices(List(Vec::new()))),
        ] {
            socket::receive(&theirs, &mut inbox).unwrap();
            let ClientMessage::Call { id, .. } = control::decode(inbox.message()).unwrap() else {
                panic!("no call")
            };
            let reply = ServerMessage::Reply(control::Reply { id, outcome });
            socket::send(&theirs, &control::encode(&reply).unwrap(), &[]).unwrap();
        }
        theirs
    });
    let client = Client::from_socket(ours).unwrap();
    let unexpected = client.device_names().unwrap_err();
    assert!(matches!(unexpected, ClientError::UnexpectedAnswer), "{unexpected}");
    let unknown = client.device_names().unwrap_err();
    assert_eq!(unknown.to_string(), "the service is too old for this: no such call");
    assert_eq!(client.device_names().unwrap(), Vec::<String>::new());
    drop(service.join().unwrap());
}
