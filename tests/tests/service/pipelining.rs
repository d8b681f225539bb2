//! Several requests under way on one burst: in order, told apart by their numbers, and a framing
//! error ends that burst alone. A peer without pipelining sees plain HAL 1.2.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use burst_client::{
    Burst, BurstOptions, Client, ClientError, Deadline, RemotePreparedModel, ShmMemory, Wait,
};
use burst_hal::{ErrorStatus, ExecutionOptions, HeapMemory, Pool, Request};
use burst_server::ServiceOptions;
use burst_wire::control::{Answer, Call, PoolSource, ServerMessage};
use burst_wire::{DATUM_BYTES, DatumBytes, Features, PIPELINE_DEPTH_MAX, RequestDatum};
use fmq::{Consumer, Producer, QueueConfig};

use crate::burst_support::raw::{RawClient, configure_call, request as raw_request};
use crate::burst_support::{self, Private, long, model, request_in, wide_model};
use crate::peer::Service;

fn prepared() -> (Private, Arc<RemotePreparedModel>) {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    (service, prepared)
}

fn burst(prepared: &Arc<RemotePreparedModel>, depth: u16) -> Burst {
    prepared.configure_burst(&BurstOptions::default().with_depth(depth)).unwrap()
}

/// Frame `number` in memory of its own: 16 bytes in, 16 bytes out behind them.
struct Frame {
    memory: Pool,
    request: Request,
}

impl Frame {
    fn new(memory: Pool) -> Self {
        let request = request_in(&memory);
        Frame { memory, request }
    }

    fn shared() -> Self {
        Frame::new(Arc::new(ShmMemory::create(32).unwrap()))
    }

    fn fill(&self, byte: u8) {
        self.memory.write(0, &[byte; 16]).unwrap();
        self.memory.write(16, &[0; 16]).unwrap();
    }

    fn output(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.memory.read(16, &mut bytes).unwrap();
        bytes
    }
}

const PLAIN: ExecutionOptions =
    ExecutionOptions { measure_timing: false, deadline: None, loop_timeout: None };

#[test]
fn as_many_requests_as_agreed_are_under_way_and_their_results_come_in_order() {
    let (service, prepared) = prepared();
    for wait in [Wait::Sleep, Wait::default(), Wait::Spin] {
        let options = BurstOptions::default().with_depth(4).waiting(wait);
        let mut burst = prepared.configure_burst(&options).unwrap();
        assert_eq!(burst.depth(), 4);
        let frames = [(); 4].map(|()| Frame::shared());
        for round in 0..50_u8 {
            service.controls.close_gate();
            let tickets = frames.each_ref().map(|frame| {
                frame.fill(round);
                burst.submit(&frame.request, &PLAIN, long()).unwrap()
            });
            assert_eq!(burst.outstanding(), 4);
            let fifth = burst.submit(&frames[0].request, &PLAIN, long());
            assert!(matches!(fifth, Err(ClientError::PipelineFull { depth: 4 })));
            assert!(burst.try_wait(&tickets[0]).unwrap().is_none(), "the gate is closed");
            service.controls.open_gate();
            // The last first: it is there only after all the others.
            for at in [3, 0, 2, 1] {
                let result = burst.wait(&tickets[at], long()).unwrap();
                assert_eq!(result.status, ErrorStatus::None);
                assert_eq!(burst.outstanding(), 0);
                assert_eq!(frames[at].output(), [round + 1; 16], "{wait:?} {round} {at}");
                let again = burst.wait(&tickets[at], long());
                assert!(matches!(again, Err(ClientError::UnknownTicket)));
            }
        }
    }
}

#[test]
fn dropped_tickets_are_executed_and_make_room() {
    let (service, prepared) = prepared();
    let mut burst = burst(&prepared, 2);
    let frames = [(); 2].map(|()| Frame::shared());
    for round in 0..20 {
        for frame in &frames {
            drop(burst.submit(&frame.request, &PLAIN, long()).unwrap());
        }
        // An ordinary execution in between takes its own result, not one of theirs.
        frames[0].fill(round);
        let options = ExecutionOptions { measure_timing: true, ..PLAIN };
        burst.execute(&frames[0].request, &options, long()).unwrap();
        assert_eq!(frames[0].output(), [round + 1; 16]);
        assert!(burst.driver_time().is_some());
    }
    assert_eq!(service.controls.begun.load(Ordering::SeqCst), 60);
}

#[test]
fn a_wait_that_missed_its_deadline_can_be_made_again() {
    let (service, prepared) = prepared();
    let mut burst = burst(&prepared, 3);
    let frame = Frame::shared();
    service.controls.close_gate();
    let ticket = burst.submit(&frame.request, &PLAIN, long()).unwrap();
    let missed = burst.wait(&ticket, Deadline::after(Duration::from_millis(2)));
    assert!(matches!(missed, Err(ClientError::Timeout)));
    service.controls.open_gate();
    assert_eq!(burst.wait(&ticket, long()).unwrap().status, ErrorStatus::None);
}

#[test]
fn memory_of_a_request_under_way_keeps_its_slot() {
    let (service, prepared) = prepared();
    let mut burst = burst(&prepared, 4);
    service.controls.close_gate();
    let first = Frame::shared();
    let running = burst.submit(&first.request, &PLAIN, long()).unwrap();
    let second = Frame::shared();
    let queued = burst.submit(&second.request, &PLAIN, long()).unwrap();
    let in_use = burst.free_memory(&second.memory);
    assert!(matches!(in_use, Err(ClientError::MemoryInUse)));
    // Nobody but the burst has it any more, and a new memory takes dropped ones away: not this.
    drop(second);
    let third = Frame::shared();
    let last = burst.submit(&third.request, &PLAIN, long()).unwrap();
    service.controls.open_gate();
    for ticket in [running, queued, last] {
        assert_eq!(burst.wait(&ticket, long()).unwrap().status, ErrorStatus::None);
    }
    burst.free_memory(&third.memory).unwrap();
}

#[test]
fn short_queues_hold_requests_up_and_lose_none() {
    let (_service, prepared) = prepared();
    // Room for two requests and for one result that is as long as results get.
    let options =
        BurstOptions::default().with_depth(8).with_queue_datums(16).with_result_datums(14);
    let mut burst = prepared.configure_burst(&options).unwrap();
    let frames = [(); 8].map(|()| Frame::shared());
    for round in 0..100 {
        let tickets = frames.each_ref().map(|frame| {
            frame.fill(round);
            burst.submit(&frame.request, &PLAIN, long()).unwrap()
        });
        for (frame, ticket) in frames.iter().zip(&tickets) {
            assert_eq!(burst.wait(ticket, long()).unwrap().status, ErrorStatus::None);
            assert_eq!(frame.output(), [round + 1; 16]);
        }
    }
}

#[test]
fn a_request_that_does_not_fit_goes_over_the_socket_after_those_before_it() {
    let (_service, prepared) = prepared();
    let mut burst = burst(&prepared, 3);
    let (shared, private) = (Frame::shared(), Frame::new(Arc::new(HeapMemory::new(vec![0; 32]))));
    shared.fill(1);
    private.fill(7);
    let before = burst.submit(&shared.request, &PLAIN, long()).unwrap();
    let over_socket = burst.submit(&private.request, &PLAIN, long()).unwrap();
    assert_eq!(burst.outstanding(), 0, "all before it are done");
    assert_eq!(burst.wait(&over_socket, long()).unwrap().status, ErrorStatus::None);
    assert!(burst.fell_back());
    assert_eq!(private.output(), [8; 16]);
    assert_eq!(burst.wait(&before, long()).unwrap().status, ErrorStatus::None);
    assert!(!burst.fell_back());
}

#[test]
fn failures_keep_their_positions_among_the_results() {
    let (service, prepared) = prepared();
    let mut burst = burst(&prepared, 4);
    let frame = Frame::shared();
    frame.fill(1);
    let mut broken = frame.request.clone();
    broken.inputs[0].location.offset = 1 << 20;
    let passed = ExecutionOptions { deadline: Some(burst_hal::TimePoint { nanos: 1 }), ..PLAIN };
    let tickets = [
        burst.submit(&frame.request, &PLAIN, long()).unwrap(),
        burst.submit(&broken, &PLAIN, long()).unwrap(),
        burst.submit(&frame.request, &passed, long()).unwrap(),
        burst.submit(&frame.request, &PLAIN, long()).unwrap(),
    ];
    let want = [
        ErrorStatus::None,
        ErrorStatus::InvalidArgument,
        ErrorStatus::MissedDeadlinePersistent,
        ErrorStatus::None,
    ];
    for (ticket, want) in tickets.iter().zip(want) {
        assert_eq!(burst.wait(ticket, long()).unwrap().status, want);
    }
    assert_eq!(service.controls.begun.load(Ordering::SeqCst), 2);
}

#[test]
fn a_depth_is_agreed_on_and_limited() {
    let (_service, prepared) = prepared();
    let most = PIPELINE_DEPTH_MAX;
    assert_eq!(burst(&prepared, most).depth(), usize::from(most));
    let refused = prepared.configure_burst(&BurstOptions::default().with_depth(most + 1));
    let status = refused.unwrap_err().status();
    assert_eq!(status, ErrorStatus::ResourceExhaustedPersistent);
    // Neither end speaks of it: one at a time, as in HAL 1.2.
    let quiet = BurstOptions::default().with_depth(4).with_features(Features::TIMING_NANOS);
    let burst = prepared.configure_burst(&quiet).unwrap();
    assert_eq!((burst.depth(), burst.features()), (1, Features::TIMING_NANOS));
    let one = prepared.configure_burst(&BurstOptions::default()).unwrap();
    assert!(!one.features().contains(Features::PIPELINING), "one at a time needs no numbers");
}

#[test]
fn a_service_without_pipelining_is_served_one_at_a_time() {
    let mut options = ServiceOptions::default();
    options.features = Features::NONE;
    let (_service, socket) = Private::start(options);
    let client = Client::from_socket(socket).unwrap();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let mut burst = burst(&prepared, 8);
    assert_eq!((burst.depth(), burst.features()), (1, Features::NONE));
    let frame = Frame::shared();
    for round in 0..10 {
        frame.fill(round);
        let ticket = burst.submit(&frame.request, &PLAIN, long()).unwrap();
        let second = burst.submit(&frame.request, &PLAIN, long());
        assert!(matches!(second, Err(ClientError::PipelineFull { depth: 1 })));
        assert_eq!(burst.wait(&ticket, long()).unwrap().status, ErrorStatus::None);
        assert_eq!(frame.output(), [round + 1; 16]);
    }
}

/// A service in a process of its own, with a burst of this depth.
fn peer_with_burst(role: &str, depth: u16) -> (Service, Burst) {
    let (service, socket) = Service::private(role);
    let device = Client::from_socket(socket).unwrap().device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    (service, burst(&prepared, depth))
}

#[test]
fn requests_under_way_are_lost_together_when_the_service_dies() {
    let (peer, mut burst) = peer_with_burst("serve-stuck", 3);
    let frame = Frame::shared();
    let tickets = [(); 3].map(|()| burst.submit(&frame.request, &PLAIN, long()).unwrap());
    peer.kill();
    for ticket in &tickets {
        let error = burst.wait(ticket, long()).map(|_| ()).unwrap_err();
        assert!(error.is_loss(), "{error}");
        assert!(burst.try_wait(ticket).unwrap_err().is_loss());
    }
    drop(tickets);
    let after = burst.execute(&frame.request, &PLAIN, long()).map(|_| ()).unwrap_err();
    assert!(after.is_loss(), "{after}");
}

#[test]
fn two_processes_exchange_thousands_of_pipelined_requests() {
    let (mut peer, mut burst) = peer_with_burst("serve-private", 8);
    let frames = [(); 8].map(|()| Frame::shared());
    for round in 0..500_u16 {
        let byte = u8::try_from(round % 251).unwrap();
        let tickets = frames.each_ref().map(|frame| {
            frame.fill(byte);
            burst.submit(&frame.request, &PLAIN, long()).unwrap()
        });
        for (frame, ticket) in frames.iter().zip(&tickets) {
            burst.wait(ticket, long()).unwrap();
            assert_eq!(frame.output(), [byte + 1; 16]);
        }
    }
    drop(burst); // with it its model and its client: the peer hears of the hang-up
    assert!(peer.0.wait().unwrap().success());
}

/// A pipelined burst whose packets are made by hand.
struct Raw {
    client: RawClient,
    requests: Producer,
    results: Consumer,
}

fn raw(depth: u16) -> (Private, Raw) {
    let (service, socket) = Private::start(ServiceOptions::default());
    let mut client = RawClient::greet(socket);
    let model = client.prepare(&wide_model(1));
    let requests = Producer::create(&QueueConfig::new(DATUM_BYTES, 256)).unwrap();
    let results = Consumer::create(&QueueConfig::new(DATUM_BYTES, 256)).unwrap();
    let descriptors = (requests.descriptor().unwrap(), results.descriptor().unwrap());
    let (mut call, fds) = configure_call(model, &descriptors.0, &descriptors.1);
    let Call::ConfigureBurst { features, depth: asked, .. } = &mut call else { unreachable!() };
    (*features, *asked) = (Features::PIPELINING.bits(), depth);
    let Ok(Answer::Burst { burst }) = client.call(call, &fds) else { panic!("no burst") };
    for slot in [burst_support::raw::INPUT_SLOT, burst_support::raw::OUTPUT_SLOT] {
        let memory = burst_shm::Memory::create("pool", 64).unwrap();
        let source = PoolSource::Descriptor { length: 64 };
        let push = Call::PushMemory { burst, slot, source };
        assert_eq!(client.call(push, &[memory.as_fd()]), Ok(Answer::Done));
    }
    (service, Raw { client, requests, results })
}

/// A legal request with its number.
fn numbered(id: u64) -> Vec<DatumBytes> {
    let mut datums = raw_request(1, false);
    datums.push(RequestDatum::RequestId(id).encode());
    let size = u32::try_from(datums.len()).unwrap();
    datums[0][4..8].copy_from_slice(&size.to_ne_bytes());
    datums
}

impl Raw {
    fn send(&mut self, datums: &[DatumBytes]) {
        self.requests.write_blocking(datums.as_flattened(), long()).unwrap();
    }

    /// Status and number of the next result, which must be framed by the length it says.
    fn result(&mut self) -> (i32, Option<u64>) {
        self.results.wait(2, long()).unwrap();
        let mut first = [0; DATUM_BYTES];
        self.results.peek(1).unwrap().copy_out(0, &mut first).unwrap();
        let datums = u32::from_ne_bytes(first[8..12].try_into().unwrap()) as usize;
        let mut packet = vec![0; datums * DATUM_BYTES];
        self.results.read(&mut packet).unwrap();
        let status = i32::from_ne_bytes(first[12..16].try_into().unwrap());
        let last: DatumBytes = packet[packet.len() - DATUM_BYTES..].try_into().unwrap();
        let id = (last[0] == 0x41).then(|| u64::from_ne_bytes(last[8..16].try_into().unwrap()));
        (status, id)
    }
}

#[test]
fn packets_that_lie_one_behind_the_other_are_told_apart() {
    let (_service, mut raw) = raw(4);
    // Published at once; the second is malformed inside, which concerns it alone.
    let mut malformed = numbered(8);
    malformed[1][0] = 0xFF;
    let mut illegal = numbered(9);
    illegal[5] = RequestDatum::PoolIdentifier(-1).encode();
    let all = [numbered(7), malformed, illegal, numbered(10)].concat();
    raw.send(&all);
    assert_eq!(raw.result(), (0, Some(7)));
    assert_eq!(raw.result(), (2, None), "its number could not be read");
    let (status, _) = raw.result();
    assert_ne!(status, 0);
    assert_eq!(raw.result(), (0, Some(10)));
}

#[test]
fn a_framing_error_ends_that_burst_and_no_other() {
    let legal = numbered(1);
    let says = |size: u32| {
        let mut datums = legal.clone();
        datums[0][4..8].copy_from_slice(&size.to_ne_bytes());
        datums
    };
    let cases = [
        ("no packet information", legal[1..].to_vec()),
        ("a packet of nothing", says(0)),
        ("a packet of one datum", says(1)),
        ("more than is there", says(u32::try_from(legal.len()).unwrap() + 1)),
        ("2^32-1 datums", says(u32::MAX)),
    ];
    for (what, datums) in cases {
        let (service, mut raw) = raw(4);
        raw.send(&datums);
        let (message, _) = raw.client.receive();
        assert!(matches!(message, ServerMessage::BurstEnded { .. }), "{what}: {message:?}");
        assert_eq!(service.controls.begun.load(Ordering::SeqCst), 0, "{what}");
        // The client's connection lives on.
        assert!(raw.client.prepare(&model()) > 0, "{what}");
    }
}

#[test]
fn more_requests_than_agreed_end_the_burst_and_are_not_executed() {
    const DEPTH: u16 = 4;
    for queued in [usize::from(DEPTH), usize::from(DEPTH) + 1, 20] {
        let (service, mut raw) = raw(DEPTH);
        service.controls.close_gate();
        raw.send(&numbered(0));
        service.controls.wait_begun(1);
        // Behind the one that is executed, each a packet of its own.
        (0..queued).for_each(|at| raw.send(&numbered(at as u64 + 1)));
        service.controls.open_gate();
        assert_eq!(raw.result(), (0, Some(0)), "the one that was under way");
        if queued <= usize::from(DEPTH) {
            (1..=queued as u64).for_each(|id| assert_eq!(raw.result(), (0, Some(id))));
            continue;
        }
        let (message, _) = raw.client.receive();
        let ServerMessage::BurstEnded { detail, .. } = message else { panic!("{message:?}") };
        let reason = "there are more requests in the queue than the agreed depth of 4";
        assert_eq!(detail.as_str(), reason);
        assert_eq!(service.controls.begun.load(Ordering::SeqCst), 1, "{queued}");
        assert!(raw.client.prepare(&model()) > 0, "the connection lives on");
    }
}

#[test]
fn requests_before_a_framing_error_are_answered() {
    let (service, mut raw) = raw(4);
    let broken = numbered(3)[1..].to_vec();
    raw.send(&[numbered(1), numbered(2), broken].concat());
    assert_eq!(raw.result(), (0, Some(1)));
    assert_eq!(raw.result(), (0, Some(2)));
    let (message, _) = raw.client.receive();
    assert!(matches!(message, ServerMessage::BurstEnded { .. }), "{message:?}");
    assert_eq!(service.controls.begun.load(Ordering::SeqCst), 2);
}

#[test]
fn a_depth_needs_the_agreement_and_is_never_nothing() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut client = RawClient::greet(socket);
    let model = client.prepare(&wide_model(1));
    let queue = || Producer::create(&QueueConfig::new(DATUM_BYTES, 64)).unwrap();
    let (requests, results) = (queue().descriptor().unwrap(), queue().descriptor().unwrap());
    for (bits, depth) in [(0, 0), (0, 2), (Features::PIPELINING.bits(), 0)] {
        let (mut call, fds) = configure_call(model, &requests, &results);
        let Call::ConfigureBurst { features, depth: asked, .. } = &mut call else { unreachable!() };
        (*features, *asked) = (bits, depth);
        let refusal = client.call(call, &fds).unwrap_err();
        assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{bits} {depth}");
    }
}
