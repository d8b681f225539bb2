//! A client that sends the golden bytes of a version of the protocol (`wire/golden/`) is served: by this
//! service, and by every later one.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use burst_hal::validate::RequestRules;
use burst_hal::{
    Caller, CompilationCache, DataLocation, Device, ErrorStatus, ExecutionOptions, ExecutionResult,
    Failure, Model, PrepareOptions, PrepareResult, PreparedModel, Request, RequestArgument,
    TimePoint,
};
use burst_server::{Service, ServiceOptions};
use burst_shm::{Mapping, Memory};
use burst_tests::repository;
use burst_wire::control::{self, Call, ClientMessage};
use burst_wire::socket::{self, Inbox};
use burst_wire::{DATUM_BYTES, RequestExtras, RequestPacket, WireError};
use fmq::{Consumer, Producer, QueueConfig};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::burst_support::{LONG, Private, long};

fn golden(version: u32, name: &str) -> Vec<u8> {
    let path = repository().join(format!("wire/golden/version_{version}/{name}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().map(|line| line.split('#').next().unwrap());
    let bytes = lines.flat_map(str::split_whitespace);
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The fields of a record whose length stands here.
fn record(bytes: &[u8], at: usize) -> &[u8] {
    &bytes[at + 4..][..u32_at(bytes, at) as usize]
}

/// Asserts that a reply says what the golden one says: the same numbers, and the same fields, behind
/// which a later version may have put more.
#[track_caller]
fn assert_answers(reply: &[u8], golden: &[u8], name: &str) {
    for at in [0, 16, 24] {
        assert_eq!(u32_at(reply, at), u32_at(golden, at), "{name}: the number at {at}");
    }
    let (said, owed) = (record(reply, 28), record(golden, 28));
    // Of an execution its status; its times are another each time.
    let owed = if ["executed", "execution_info"].contains(&name) { &owed[..4] } else { owed };
    assert!(said.starts_with(owed), "{name}: {said:x?} is not {owed:x?}");
}

struct OldClient {
    socket: OwnedFd,
    inbox: Inbox,
}

impl OldClient {
    fn receive(&mut self) -> Vec<u8> {
        socket::receive(&self.socket, &mut self.inbox).expect("a message");
        self.inbox.message().to_vec()
    }

    /// Sends golden bytes, and gets what the golden bytes of that version say.
    #[track_caller]
    fn call(&mut self, call: &str, descriptors: &[BorrowedFd<'_>], answer: &str) {
        let bytes = golden(2, &format!("client/{call}"));
        socket::send(&self.socket, &bytes, descriptors).unwrap();
        let reply = self.receive();
        assert_eq!(reply[8..16], bytes[8..16], "{call}: the call's number");
        assert_answers(&reply, &golden(2, &format!("service/{answer}")), answer);
    }
}

fn connected() -> (Private, OwnedFd) {
    let (service, socket) = Private::start(ServiceOptions::default());
    socket::set_receive_timeout(&socket, Some(LONG)).unwrap();
    (service, socket)
}

#[test]
fn a_client_of_version_2_is_served() {
    let (service, socket) = connected();
    let mut client = OldClient { socket, inbox: Inbox::default() };
    socket::send(&client.socket, &golden(2, "client/00_greeting"), &[]).unwrap();
    let greeting = client.receive();
    let owed = golden(2, "service/greeting");
    assert_eq!(greeting[..12], owed[..12], "magic and version");
    let (said, owed) = (record(&greeting, 12), record(&owed, 12));
    assert_eq!(u32_at(said, 0), 2, "the oldest");
    assert_eq!(said[8..12], owed[8..12], "accepted");
    assert_eq!(u32_at(said, 12) & u32_at(owed, 12), u32_at(owed, 12), "the four features");
    assert_eq!(said[20..28], owed[20..28], "none missing");

    let structure = golden(2, "model");
    let length = structure.len().next_multiple_of(64);
    let mut model = Memory::create("model", length).unwrap();
    Mapping::map(&model).unwrap().region(0, length).unwrap().copy_in(0, &structure).unwrap();
    model.seal_write().unwrap();
    let memory = |name| Memory::create(name, 64).unwrap();
    let (pool, inputs, outputs) = (memory("pool"), memory("inputs"), memory("outputs"));
    let requests_config = QueueConfig::new(DATUM_BYTES, 64);
    let mut requests = Producer::create(&requests_config).unwrap();
    let mut results = Consumer::create(&QueueConfig::new(DATUM_BYTES, 64)).unwrap();
    let queues = (requests.descriptor().unwrap(), results.descriptor().unwrap());
    let queues = [queues.0.fds[0].as_fd(), queues.1.fds[0].as_fd()];

    client.call("01_list_devices", &[], "devices");
    client.call("02_device_info", &[], "device");
    client.call("03_device_status", &[], "device_status");
    client.call("04_supported_operations", &[model.as_fd(), pool.as_fd()], "supported");
    client.call("05_prepare", &[model.as_fd(), pool.as_fd()], "prepared");
    client.call("06_share_memory", &[inputs.as_fd()], "done");
    client.call("07_allocate_memory", &[], "done");
    assert_eq!(client.inbox.take_descriptors().len(), 1, "the memory");
    client.call("08_execute", &[outputs.as_fd()], "executed");
    client.call("09_configure_burst", &queues, "burst");
    client.call("10_push_memory", &[], "done");

    // A request that names a slot which the service has to ask for.
    let argument = |pool_index, dimensions: &[u32]| RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset: 0, length: 16 },
        dimensions: dimensions.into(),
    };
    let (inputs, outputs_of) = ([argument(0, &[1, 4])], [argument(1, &[])]);
    let extras = RequestExtras { id: Some(77), ..RequestExtras::default() };
    let slots = [3, 5];
    let packet = RequestPacket {
        inputs: &inputs,
        outputs: &outputs_of,
        slots: &slots,
        measure_timing: false,
        extras,
    };
    let mut bytes = Vec::new();
    packet.encode_into(&mut bytes).unwrap();
    requests.write_blocking(&bytes, long()).unwrap();
    let asked = client.receive();
    let owed = golden(2, "service/get_memories");
    assert_eq!(u32_at(&asked, 0), u32_at(&owed, 0), "GetMemories");
    assert!(record(&asked, 4).starts_with(record(&owed, 4)), "{asked:x?}");
    let memories = golden(2, "client/memories");
    socket::send(&client.socket, &memories, &[outputs.as_fd()]).unwrap();
    let datums = results.wait(1, long()).unwrap();
    let mut result = vec![0; datums * DATUM_BYTES];
    results.read(&mut result).unwrap();
    assert_eq!(u32_at(&result, 12), 0, "the status of the execution");

    for (call, status, cause) in [("11_push_memory_token", 4, 0), ("16_unknown_call", 4, 1)] {
        let bytes = golden(2, &format!("client/{call}"));
        socket::send(&client.socket, &bytes, &[]).unwrap();
        let reply = client.receive();
        assert_eq!((u32_at(&reply, 0), u32_at(&reply, 16)), (0, 1), "{call}: refused");
        let refusal = record(&reply, 20);
        let cause_at = 8 + u32_at(refusal, 4) as usize;
        assert_eq!((u32_at(refusal, 0), u32_at(refusal, cause_at)), (status, cause), "{call}");
    }
    launches(&mut client, &outputs);
    let spans = Memory::create("spans", 4096).unwrap();
    client.call("28_begin_trace", &[spans.as_fd()], "done");
    client.call("29_end_trace", &[], "done");
    client.call("12_free_memory", &[], "done");
    client.call("13_close_burst", &[], "done");
    client.call("14_forget_memory", &[], "done");
    client.call("15_release_model", &[], "done");
    drop(client);
    service.join();
}

/// Executions that are not waited for, with a prepared model and a memory of the client's.
fn launches(client: &mut OldClient, outputs: &Memory) {
    client.call("17_execute_asynchronously", &[outputs.as_fd()], "done");
    let told = client.receive();
    let owed = golden(2, "service/executed_asynchronously");
    assert_eq!(u32_at(&told, 0), u32_at(&owed, 0), "Executed");
    let (said, owed) = (record(&told, 4), record(&owed, 4));
    assert_eq!(u32_at(said, 0), u32_at(owed, 0), "which execution");
    assert_eq!(u32_at(record(said, 4), 0), 0, "its status");
    let fence = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
    client.call("18_execute_fenced", &[outputs.as_fd(), fence.as_fd()], "fenced");
    let fences = client.inbox.take_descriptors();
    let mut done = [PollFd::new(&fences[0], PollFlags::IN)];
    assert_eq!(poll(&mut done, Some(&LONG.try_into().unwrap())), Ok(1));
    assert!(done[0].revents().contains(PollFlags::IN), "its fence is done");
    client.call("19_cancel_execution", &[], "done");
    client.call("20_execution_info", &[], "execution_info");
    client.call("21_release_execution", &[], "done");
}

/// A device that keeps any model, and restores a RELU of four floats.
struct Keeper;

struct Restored(RequestRules);

impl PreparedModel for Restored {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::None)
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.0)
    }
}

impl Device for Keeper {
    fn name(&self) -> &str {
        "keeper"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, model: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Restored(RequestRules::new(model).unwrap())))
    }

    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        _: &Caller,
    ) -> PrepareResult {
        assert_eq!((cache.token, cache.model.len(), cache.data.len()), ([7; 32], 1, 1));
        self.prepare_model(model, options)
    }

    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        _: &Caller,
    ) -> PrepareResult {
        assert_eq!((cache.token, cache.model.len(), cache.data.len()), ([7; 32], 1, 1));
        // Long over; this device does not mind.
        assert_eq!(deadline, Some(TimePoint { nanos: 1 }));
        self.prepare_model(&crate::burst_support::model(), &PrepareOptions::default())
    }
}

#[test]
fn a_client_of_version_2_keeps_compilations_in_files() {
    let (socket, theirs) = socket::pair().unwrap();
    let service = Service::new(vec![Arc::new(Keeper)], ServiceOptions::default());
    let service = std::thread::spawn(move || service.serve_socket(theirs));
    socket::set_receive_timeout(&socket, Some(LONG)).unwrap();
    let mut client = OldClient { socket, inbox: Inbox::default() };
    socket::send(&client.socket, &golden(2, "client/00_greeting"), &[]).unwrap();
    client.receive();
    let structure = golden(2, "model");
    let length = structure.len().next_multiple_of(64);
    let mut model = Memory::create("model", length).unwrap();
    Mapping::map(&model).unwrap().region(0, length).unwrap().copy_in(0, &structure).unwrap();
    model.seal_write().unwrap();
    let memory = |name| Memory::create(name, 64).unwrap();
    let (pool, first, second) = (memory("pool"), memory("first"), memory("second"));
    let files = [first.as_fd(), second.as_fd()];
    let all = [model.as_fd(), pool.as_fd(), files[0], files[1]];
    client.call("22_prepare_caching", &all, "prepared");
    let bytes = golden(2, "client/23_prepare_from_cache");
    socket::send(&client.socket, &bytes, &files).unwrap();
    let reply = client.receive();
    assert_eq!(reply[8..16], bytes[8..16], "the call's number");
    let owed = golden(2, "service/restored");
    for at in [0, 16, 24] {
        assert_eq!(u32_at(&reply, at), u32_at(&owed, at), "the number at {at}");
    }
    let (said, owed) = (record(&reply, 28), record(&owed, 28));
    assert_eq!(said.len(), owed.len());
    // Its number is another one; one input, one output, and the packet of this model.
    assert_eq!(said[4..12], owed[4..12]);
    assert_eq!((u32_at(said, 0), u32_at(said, 12)), (2, 5 + (2 + 2) + (2 + 2)));
    drop(client);
    service.join().unwrap().unwrap();
}

/// The calls about buffers, behind those that a client makes first; their numbers are those of the files.
#[test]
fn buffers_of_a_client_of_version_2_are_served() {
    let (service, socket) = connected();
    let mut client = OldClient { socket, inbox: Inbox::default() };
    socket::send(&client.socket, &golden(2, "client/00_greeting"), &[]).unwrap();
    client.receive();
    let structure = golden(2, "model");
    let length = structure.len().next_multiple_of(64);
    let mut model = Memory::create("model", length).unwrap();
    Mapping::map(&model).unwrap().region(0, length).unwrap().copy_in(0, &structure).unwrap();
    model.seal_write().unwrap();
    let (pool, value) = (Memory::create("pool", 64).unwrap(), Memory::create("value", 16).unwrap());
    Mapping::map(&value).unwrap().region(0, 16).unwrap().copy_in(0, &[7; 16]).unwrap();
    client.call("05_prepare", &[model.as_fd(), pool.as_fd()], "prepared");
    // Of the length of a value, where the golden one has room for more.
    let share = Call::ShareMemory { memory: 40, length: 16 };
    let share = control::encode(&ClientMessage::Call { id: 77, call: share }).unwrap();
    socket::send(&client.socket, &share, &[value.as_fd()]).unwrap();
    client.receive();
    // The golden answer has the fifth token of a client.
    let allocate = golden(2, "client/24_allocate_buffer");
    for _ in 1..5 {
        socket::send(&client.socket, &allocate, &[]).unwrap();
        client.receive();
    }
    client.call("24_allocate_buffer", &[], "buffer");
    client.call("25_copy_to_buffer", &[], "done");
    Mapping::map(&value).unwrap().region(0, 16).unwrap().copy_in(0, &[0; 16]).unwrap();
    client.call("26_copy_from_buffer", &[], "done");
    let mut copied = [0; 16];
    Mapping::map(&value).unwrap().region(0, 16).unwrap().copy_out(0, &mut copied).unwrap();
    assert_eq!(copied, [7; 16]);
    client.call("27_release_buffer", &[], "done");
    drop(client);
    service.join();
}

#[test]
fn a_client_of_version_1_is_told_the_version_in_the_form_that_it_understands() {
    let (service, socket) = connected();
    socket::send(&socket, &golden(1, "client_greeting"), &[]).unwrap();
    let mut inbox = Inbox::default();
    socket::receive(&socket, &mut inbox).unwrap();
    // It looks at the magic and at the version, and says that the service speaks another one.
    assert_eq!(inbox.message()[..12], *b"burst-nn\x02\0\0\0");
    assert_eq!(socket::receive(&socket, &mut inbox), Err(WireError::Closed));
    service.join();
}

#[test]
fn a_service_of_version_1_is_named_by_the_client() {
    let (ours, theirs) = socket::pair().unwrap();
    let service = std::thread::spawn(move || {
        let mut inbox = Inbox::default();
        socket::receive(&theirs, &mut inbox).unwrap();
        assert_eq!(inbox.message()[..12], *b"burst-nn\x02\0\0\0", "what it looks at");
        socket::send(&theirs, &golden(1, "service_greeting"), &[]).unwrap();
    });
    let error = burst_client::Client::from_socket(ours).unwrap_err();
    let said = "the service speaks protocol version 1, this client speaks version 2";
    assert_eq!(error.to_string(), said);
    service.join().unwrap();
}
