//! Spans that a service writes to a memory of its client: what is there, who pays, what a hostile client or an old
//! service makes of it.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use burst_client::{Client, ClientError, Route, Stream, StreamOptions, TraceBuffer, TraceCounts};
use burst_driver::CpuDevice;
use burst_hal::trace::{Span, SpanKind, SpanSink};
use burst_hal::{ErrorStatus, OperationType};
use burst_server::{Service, ServiceOptions};
use burst_shm::{Mapping, Memory};
use burst_wire::Features;
use burst_wire::control::{
    self, Answer, Call, ClientGreeting, ClientMessage, Refusal, RefusalCause, Reply,
    ServerGreeting, ServerMessage,
};
use burst_wire::socket::{self, Inbox};
use burst_wire::trace::{HEADER_BYTES, RECORD_BYTES, TRACE_BYTES_MAX, TRACE_BYTES_MIN};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::burst_support::raw::{self, RawClient};
use crate::burst_support::{FakeDevice, Private, long, model, wait_until};
use crate::peer;
use crate::service_support::Shared;

/// A span, and which process it is of.
type Seen = (SpanKind, u64, u64);

#[derive(Debug, Default)]
struct Sink(Mutex<Vec<Seen>>);

impl SpanSink for Sink {
    fn is_on(&self) -> bool {
        true
    }

    fn record(&self, span: &Span<'_>) {
        self.0.lock().unwrap().push((span.kind, span.begin_ns, span.end_ns));
    }
}

impl Sink {
    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// The CPU device's service for one client.
fn cpu_service() -> Client {
    let (ours, theirs) = socket::pair().unwrap();
    let service = Service::new(vec![Arc::new(CpuDevice::default())], ServiceOptions::default());
    std::thread::spawn(move || service.serve_socket(theirs));
    Client::from_socket(ours).unwrap()
}

fn stream(client: &Client, device: &str, route: Route) -> Stream {
    let mut options = StreamOptions::default();
    options.route = route;
    client.device(device).unwrap().stream(&model(), &options).unwrap()
}

fn run(stream: &mut Stream) {
    assert_eq!(stream.run(long()).unwrap().status, ErrorStatus::None);
}

/// What lies in a memory for spans.
fn read(buffer: &TraceBuffer) -> (Vec<Seen>, TraceCounts) {
    let mut seen = Vec::new();
    let counts = buffer.read(|span, _| seen.push((span.kind, span.begin_ns, span.end_ns))).unwrap();
    (seen, counts)
}

fn of_kind(seen: &[Seen], kind: SpanKind) -> Vec<(u64, u64)> {
    seen.iter().filter(|span| span.0 == kind).map(|span| (span.1, span.2)).collect()
}

#[track_caller]
fn only(seen: &[Seen], kind: SpanKind) -> (u64, u64) {
    let found = of_kind(seen, kind);
    assert_eq!(found.len(), 1, "{kind:?} in {seen:?}");
    found[0]
}

fn within(inner: (u64, u64), outer: (u64, u64)) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

#[test]
fn both_ends_record_every_request_over_every_route_and_the_parts_lie_within_each_other() {
    let client = cpu_service();
    let buffer = TraceBuffer::create(1 << 20).unwrap();
    let own = Arc::new(Sink::default());
    client.begin_trace(&buffer, Arc::clone(&own) as _).unwrap();
    let mut seen = 0;
    for route in [Route::Burst, Route::Synchronous, Route::Asynchronous, Route::Fenced] {
        let mut stream = stream(&client, "cpu", route);
        let prepared = (own.take(), read(&buffer).0.split_off(seen));
        let (ours, theirs) =
            (only(&prepared.0, SpanKind::Prepare), only(&prepared.1, SpanKind::PrepareModel));
        assert!(within(theirs, ours), "{route}: {prepared:?}");
        for part in [SpanKind::ReceiveModel, SpanKind::PlanOperation] {
            assert!(within(only(&prepared.1, part), theirs), "{route}: {part:?}");
        }
        seen += prepared.1.len();
        for _ in 0..3 {
            run(&mut stream);
            let ours = own.take();
            let theirs = read(&buffer).0.split_off(seen);
            seen += theirs.len();
            let request = only(&theirs, SpanKind::Request);
            for part in [SpanKind::Device, SpanKind::Operation, SpanKind::EncodeResult] {
                assert!(within(only(&theirs, part), request), "{route}: {part:?} in {theirs:?}");
            }
            let device = only(&theirs, SpanKind::Device);
            for part in [SpanKind::BringInputs, SpanKind::Operation, SpanKind::TakeOutputs] {
                assert!(within(only(&theirs, part), device), "{route}: {part:?}");
            }
            let encoded = only(&ours, SpanKind::EncodeRequest);
            let waited = only(&ours, SpanKind::WaitForResult);
            let decoded = only(&ours, SpanKind::DecodeResult);
            let sent = of_kind(&ours, SpanKind::Publish).first().map_or(waited.0, |sent| sent.0);
            // The same clock: there, through the driver, and back.
            let way = [encoded.1, sent, request.0, request.1, decoded.0, decoded.1];
            assert!(way.is_sorted(), "{route}: {ours:?} {theirs:?}");
        }
    }
    assert_eq!(read(&buffer).1.dropped, 0);
}

#[test]
fn an_operation_is_named_by_its_code_and_its_thread() {
    let client = cpu_service();
    let buffer = TraceBuffer::create(1 << 16).unwrap();
    client.begin_trace(&buffer, Arc::new(Sink::default())).unwrap();
    run(&mut stream(&client, "cpu", Route::Burst));
    let mut found = Vec::new();
    buffer
        .read(|span, thread| {
            if matches!(span.kind, SpanKind::Operation | SpanKind::Request) {
                found.push((span.operation, span.index, thread));
            }
        })
        .unwrap();
    let [(operation, 0, thread), (None, burst, of_request)] = found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(operation, Some(OperationType::Relu));
    assert_eq!(thread, of_request, "the burst's thread computes");
    assert!(burst > 0 && thread > 0);
}

#[test]
fn a_service_writes_to_the_memory_of_whom_it_works_for_and_only_while_that_is_wanted() {
    let service = Shared::start(Arc::new(FakeDevice::default()), ServiceOptions::default());
    let clients = [(); 2].map(|()| service.connect().unwrap());
    let buffers = [(); 2].map(|()| TraceBuffer::create(1 << 16).unwrap());
    let own = Arc::new(Sink::default());
    let mut streams = clients.each_ref().map(|client| stream(client, "fake", Route::Burst));
    run(&mut streams[0]); // nobody wants spans yet, and the burst is there already
    for (client, buffer) in clients.iter().zip(&buffers) {
        client.begin_trace(buffer, Arc::clone(&own) as _).unwrap();
    }
    for _ in 0..3 {
        run(&mut streams[0]);
    }
    let requests = |buffer| of_kind(&read(buffer).0, SpanKind::Request).len();
    assert_eq!(buffers.each_ref().map(requests), [3, 0]);
    assert_eq!(of_kind(&own.take(), SpanKind::WaitForResult).len(), 3);
    clients[0].end_trace().unwrap();
    run(&mut streams[0]);
    run(&mut streams[1]);
    assert_eq!(buffers.each_ref().map(requests), [3, 1]);
    assert_eq!(of_kind(&own.take(), SpanKind::WaitForResult).len(), 1, "the other's");
    clients[0].end_trace().expect("also where none are written");
}

/// Bytes that the service says this process's user has in use.
fn used(service: &Shared, resource: &str) -> u64 {
    let uid = rustix::process::geteuid().as_raw();
    let series = format!("burst_user_used{{user=\"{uid}\",resource=\"{resource}\"}} ");
    let text = service.metrics.encode();
    let line = text.lines().find_map(|line| line.strip_prefix(&*series));
    line.map_or(0, |used| used.parse().unwrap())
}

#[test]
fn the_memory_is_charged_to_its_user_until_the_trace_or_the_connection_ends() {
    let service = Shared::start(Arc::new(FakeDevice::default()), ServiceOptions::default());
    let client = service.connect().unwrap();
    let held = || ["memory_bytes", "address_space_bytes"].map(|one| used(&service, one));
    let before = held();
    let buffer = TraceBuffer::create(1 << 20).unwrap();
    let begin = || client.begin_trace(&buffer, Arc::new(Sink::default()));
    begin().unwrap();
    assert_eq!(held(), before.map(|bytes| bytes + (1 << 20)));
    let again = begin().unwrap_err().to_string();
    assert!(again.contains("written to a memory already"), "{again}");
    client.end_trace().unwrap();
    assert_eq!(held(), before);
    begin().unwrap();
    // Also where a burst of the client's lives on for a moment.
    let mut stream = stream(&client, "fake", Route::Burst);
    run(&mut stream);
    drop((stream, client));
    wait_until("the end of all debts", || held() == [0, 0]);
}

#[test]
fn bytes_of_a_memory_for_spans() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let mut client = RawClient::greet(socket);
    let memory = Memory::create("spans", usize::try_from(TRACE_BYTES_MAX + 1).unwrap()).unwrap();
    let mut begin = |length| client.call(Call::BeginTrace { length }, &[memory.as_fd()]);
    let refused = begin(TRACE_BYTES_MAX + 1).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedPersistent);
    assert!(refused.detail.as_str().contains("bytes of a memory for spans"), "{refused:?}");
    let refused = begin(TRACE_BYTES_MIN - 1).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    assert_eq!(begin(TRACE_BYTES_MAX), Ok(Answer::Done));
    drop(client);
    service.join();
}

#[test]
fn a_full_memory_keeps_the_first_spans_and_counts_the_others_on_both_ends() {
    let (service, client) = Private::connect();
    let mut stream = stream(&client, "fake", Route::Burst);
    let bytes = (HEADER_BYTES + 9 * RECORD_BYTES) as u64;
    let buffer = TraceBuffer::create(bytes).unwrap();
    client.begin_trace(&buffer, Arc::new(Sink::default())).unwrap();
    for _ in 0..5 {
        run(&mut stream);
    }
    // Four of each request: decode, device, encode, all of it.
    let (seen, counts) = read(&buffer);
    assert_eq!(counts, TraceCounts { read: 9, dropped: 5 * 4 - 9, unknown: 0 });
    assert_eq!(of_kind(&seen, SpanKind::Request).len(), 2);
    assert!(seen.iter().is_sorted_by_key(|span| span.2), "in the order of their ends");
    drop((stream, client));
    service.join();
}

#[test]
fn memories_that_no_service_can_use_are_refused_and_the_connection_lives() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let mut client = RawClient::greet(socket);
    let unsealed = memfd_create("unsealed", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&unsealed, 4096).unwrap();
    let mut constant = Memory::create("constant", 4096).unwrap();
    constant.seal_write().unwrap();
    let short = Memory::create("short", 100).unwrap();
    let (pipe, _write) = std::io::pipe().unwrap();
    let pipe = OwnedFd::from(pipe);
    for (what, descriptor) in [
        ("not sealed", unsealed.as_fd()),
        ("not writable", constant.as_fd()),
        ("shorter than it says", short.as_fd()),
        ("no memory", pipe.as_fd()),
    ] {
        let refused =
            client.call(Call::BeginTrace { length: 4096 }, &[descriptor]).expect_err(what);
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{what}: {refused:?}");
    }
    let without = client.call(Call::BeginTrace { length: 4096 }, &[]).unwrap_err();
    assert!(without.detail.as_str().contains("needs 1 descriptors"), "{without:?}");
    let good = Memory::create("good", 4096).unwrap();
    assert_eq!(client.call(Call::BeginTrace { length: 4096 }, &[good.as_fd()]), Ok(Answer::Done));
    drop(client);
    service.join();
}

/// It writes over everything in the memory while the service writes there, and closes it in the middle: the service
/// reads nothing of it, so nothing happens to anybody, the scribbler's own requests included.
#[test]
fn a_client_that_scribbles_over_its_memory_disturbs_nobody() {
    const BYTES: usize = HEADER_BYTES + 1000 * RECORD_BYTES;
    let service = Shared::start(Arc::new(FakeDevice::default()), ServiceOptions::default());
    let honest = service.connect().unwrap();
    let buffer = TraceBuffer::create(1 << 20).unwrap();
    honest.begin_trace(&buffer, Arc::new(Sink::default())).unwrap();
    let mut of_honest = stream(&honest, "fake", Route::Burst);

    let memory = Memory::create("scribbled", BYTES).unwrap();
    let mut hostile = RawClient::greet(raw::connect(&service.path));
    let begin = Call::BeginTrace { length: BYTES as u64 };
    assert_eq!(hostile.call(begin, &[memory.as_fd()]), Ok(Answer::Done));
    let mapping = Mapping::map(&memory).unwrap();
    drop(memory);
    for round in 0..50_u8 {
        mapping.region(0, BYTES).unwrap().copy_in(0, &[round.wrapping_mul(37); BYTES]).unwrap();
        // Writes spans, and is done for it.
        hostile.prepare(&model());
        run(&mut of_honest);
    }
    drop(mapping); // nobody but the service has it any more
    hostile.prepare(&model());
    run(&mut of_honest);
    let (seen, counts) = read(&buffer);
    assert_eq!((of_kind(&seen, SpanKind::Request).len(), counts.unknown), (51, 0));
    assert!(of_kind(&seen, SpanKind::PrepareModel).len() == 1, "its own alone");
}

#[test]
fn what_a_service_wrote_before_it_was_killed_is_still_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let service = peer::Service::start(&path);
    let client = Client::connect(&path).unwrap();
    let buffer = TraceBuffer::create(1 << 16).unwrap();
    client.begin_trace(&buffer, Arc::new(Sink::default())).unwrap();
    let mut stream = stream(&client, "fake", Route::Burst);
    run(&mut stream);
    service.kill();
    let lost = stream.run(long()).unwrap_err();
    assert!(matches!(lost, ClientError::PeerDied { .. }), "{lost}");
    assert_eq!(of_kind(&read(&buffer).0, SpanKind::Request).len(), 1);
}

/// A service that knows no calls but those of the first services of version 2.
fn old_service(theirs: OwnedFd) {
    let mut inbox = Inbox::default();
    socket::receive(&theirs, &mut inbox).unwrap();
    ClientGreeting::decode(inbox.message()).unwrap();
    let greeting = ServerGreeting::accepting(Features::NONE, "old");
    socket::send(&theirs, &greeting.encode().unwrap(), &[]).unwrap();
    while socket::receive(&theirs, &mut inbox).is_ok() {
        let ClientMessage::Call { id, call } = control::decode(inbox.message()).unwrap() else {
            panic!("no call");
        };
        drop(inbox.take_descriptors());
        let said =
            format!("this service knows no call {}; it speaks protocol version 2", call.number());
        let refusal = Refusal::new(ErrorStatus::InvalidArgument, &said);
        let outcome = Err(refusal.because(RefusalCause::UnknownCall));
        let reply = control::encode(&ServerMessage::Reply(Reply { id, outcome })).unwrap();
        socket::send(&theirs, &reply, &[]).unwrap();
    }
}

#[test]
fn a_service_that_is_too_old_to_write_spans_is_told_from_one_that_refuses() {
    let (ours, theirs) = socket::pair().unwrap();
    let service = std::thread::spawn(move || old_service(theirs));
    let client = Client::from_socket(ours).unwrap();
    let buffer = TraceBuffer::create(4096).unwrap();
    let own = Arc::new(Sink::default());
    let refused = client.begin_trace(&buffer, Arc::clone(&own) as _).unwrap_err();
    assert!(matches!(refused, ClientError::UnknownCall { .. }), "{refused}");
    assert!(refused.to_string().contains("knows no call 25"), "{refused}");
    let _ = client.device_names();
    assert!(own.take().is_empty(), "nothing was begun");
    drop(client);
    service.join().unwrap();
}
