//! Clients that do not read what the service says: what they sent with it is not kept meanwhile, and they wait no
//! longer than is promised. Each test has a second hand on the service's end of the socket, fills it, and says
//! how long the service waits for room.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::{
    Burst, BurstExecutor, Caller, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure,
    Model, Pool, PrepareOptions, PreparedModel, Request,
};
use burst_server::{Service, ServiceOptions};
use burst_wire::control::{
    Answer, CachePlace, Call, ClientMessage, FencedRequest, List, ServerMessage,
    SynchronousRequest, encode,
};
use burst_wire::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::burst_support::raw::{INPUT_SLOT, RawBurst, RawClient, request};
use crate::burst_support::{Controls, FakeDevice, LONG, Private, model};

/// A client that has greeted, and a second hand on the service's end.
fn connect() -> (RawClient, OwnedFd) {
    let (ours, theirs) = socket::pair().unwrap();
    let far = theirs.try_clone().unwrap();
    let device = FakeDevice(Arc::new(Controls::default()));
    let service = Service::new(vec![Arc::new(device)], ServiceOptions::default());
    std::thread::spawn(move || drop(service.serve_socket(theirs)));
    let mut client = RawClient::greet(ours);
    // Once a call is answered nobody but the test says any more how long is waited.
    client.call(Call::ListDevices, &[]).unwrap();
    (client, far)
}

/// Leaves no room for what the service says, for which it waits so long.
fn fill(far: &OwnedFd, patience: Duration) {
    let filler = encode(&ServerMessage::Unknown { kind: 99 }).unwrap();
    while socket::send_now(far, &filler, &[]).is_ok() {}
    socket::set_send_timeout(far, Some(patience)).unwrap();
}

/// Waits until nobody has the other end of a pipe any more.
#[track_caller]
fn wait_until_closed(read: &OwnedFd) {
    let mut closed = [PollFd::new(read, PollFlags::IN)];
    let looked = poll(&mut closed, Some(&Timespec::try_from(LONG).unwrap())).unwrap();
    assert_eq!(looked, 1, "the service keeps a descriptor for which nobody pays");
}

/// A message that goes on behind its end.
fn longer(message: &ClientMessage) -> Vec<u8> {
    let mut bytes = encode(message).unwrap();
    bytes.push(0);
    bytes
}

#[test]
fn descriptors_with_a_call_that_is_refused_are_gone_before_the_refusal_is_sent() {
    let list = |id| ClientMessage::Call { id, call: Call::ListDevices };
    for message in [longer(&list(7)), encode(&list(8)).unwrap()] {
        let (client, far) = connect();
        fill(&far, 2 * LONG);
        let (read, write) = rustix::pipe::pipe().unwrap();
        socket::send(&client.socket, &message, &[write.as_fd()]).unwrap();
        drop(write);
        wait_until_closed(&read);
        rustix::net::shutdown(&far, rustix::net::Shutdown::Both).unwrap();
    }
}

#[test]
fn descriptors_with_a_message_that_is_ignored_are_closed_before_the_next_one_comes() {
    let (client, _far) = connect();
    let (read, write) = rustix::pipe::pipe().unwrap();
    client.send(&ClientMessage::Unknown { kind: 99 }, &[write.as_fd()]);
    drop(write);
    wait_until_closed(&read);
}

#[test]
fn a_launch_whose_reply_is_not_read_ends_the_connection_after_one_patience() {
    const PATIENCE: Duration = Duration::from_secs(6);
    let (mut client, far) = connect();
    let model = client.prepare(&model());
    let memory = burst_shm::Memory::create("request", 32).unwrap();
    let share = Call::ShareMemory { memory: 1, length: 32 };
    client.call(share, &[memory.as_fd()]).unwrap();
    fill(&far, PATIENCE);
    let started = Instant::now();
    let call = Call::ExecuteAsynchronously { execution: 1, request: whole(model) };
    client.send(&ClientMessage::Call { id: 7, call }, &[]);
    let mut over = [PollFd::new(&client.socket, PollFlags::RDHUP)];
    poll(&mut over, Some(&Timespec::try_from(LONG).unwrap())).unwrap();
    let took = started.elapsed();
    assert!(over[0].revents().contains(PollFlags::RDHUP), "it is cut off");
    assert!(took < PATIENCE * 2, "another reply was tried: {took:?}");
}

/// A request of the fake device's model, in memory 1.
fn whole(model: u32) -> SynchronousRequest {
    let argument = |offset| burst_hal::RequestArgument {
        location: burst_hal::DataLocation { pool_index: 0, offset, length: 16 },
        ..burst_hal::RequestArgument::default()
    };
    SynchronousRequest {
        model,
        inputs: List(vec![(&argument(0)).into()]),
        outputs: List(vec![(&argument(16)).into()]),
        pools: List(vec![burst_wire::control::PoolSource::Shared { memory: 1 }]),
        measure_timing: false,
        deadline: None,
        loop_timeout: None,
    }
}

#[test]
fn a_count_of_descriptors_that_nobody_can_send_is_refused_by_its_limit() {
    let (mut client, _far) = connect();
    let model = client.prepare(&model());
    let files = burst_hal::CacheFiles { model: 33, data: u32::MAX };
    let cache = CachePlace::new([0; burst_hal::CACHE_TOKEN_BYTES], files);
    let restore = Call::PrepareFromCache { device: 0, cache, deadline: None };
    let refused = client.call(restore, &[]).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    let said = refused.detail.as_str();
    assert_eq!(said, "4294967295 files of a kind are over the limit of 32");
    let (request, duration) = (whole(model), None);
    let fenced = Call::ExecuteFenced(FencedRequest { request, fences: u32::MAX, duration });
    let refused = client.call(fenced, &[]).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedPersistent);
    let said = refused.detail.as_str();
    assert_eq!(said, "4294967295 fences of one execution are over the limit of 64");
    assert!(matches!(client.call(Call::ListDevices, &[]), Ok(Answer::Devices(_))));
}

/// A fake device whose bursts have an executor that panics when it is told that a slot was freed.
struct Fragile(FakeDevice);
struct FragileModel(Arc<dyn PreparedModel>);
struct FragileExecutor(Box<dyn Burst>);

impl Device for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn version_string(&self) -> &str {
        "fragile-1"
    }

    fn device_type(&self) -> burst_hal::DeviceType {
        self.0.device_type()
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.0.supported_operations(model)
    }

    fn prepare_model(
        &self,
        model: &Model,
        options: &PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let model = self.0.prepare_model(model, options)?;
        Ok(Arc::new(FragileModel(model)))
    }
}

impl PreparedModel for FragileModel {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        unreachable!("it has an executor")
    }

    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        let burst = burst_hal::PlainBurst::new(Arc::clone(&self.0));
        Ok(Some(Box::new(FragileExecutor(Box::new(burst)))))
    }
}

impl BurstExecutor for FragileExecutor {
    fn is_cached(&self, _: i32) -> bool {
        false
    }

    fn add(&mut self, _: i32, _: &Pool) -> Result<(), Failure> {
        Ok(())
    }

    fn remove(&mut self, _: i32) {
        panic!("a panic that is wanted here");
    }

    fn execute(
        &mut self,
        request: &Request,
        _: &[i32],
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        self.0.execute(request, options, result);
    }

    fn work_for(&mut self, caller: &Caller) {
        self.0.work_for(caller);
    }
}

#[test]
fn a_panic_between_the_execution_and_the_next_request_ends_its_burst_and_tells_the_client() {
    let (ours, theirs) = socket::pair().unwrap();
    let controls = Arc::new(Controls::default());
    let device = Fragile(FakeDevice(Arc::clone(&controls)));
    let service = Service::new(vec![Arc::new(device)], ServiceOptions::default());
    std::thread::spawn(move || drop(service.serve_socket(theirs)));
    let mut burst = RawBurst::start(ours, &model(), 64);
    // The slot is freed while the execution runs, and the executor told of that behind it.
    controls.close_gate();
    burst.send(&request(1, false));
    controls.wait_begun(1);
    let free = Call::FreeMemory { burst: burst.number, slot: INPUT_SLOT };
    assert_eq!(burst.client.call(free, &[]), Ok(Answer::Done));
    controls.open_gate();
    let (message, _) = burst.client.receive();
    let ServerMessage::BurstEnded { burst: number, detail } = message else {
        panic!("not the end of the burst: {message:?}");
    };
    assert_eq!(number, burst.number);
    assert_eq!(detail.as_str(), "the driver failed inside (it panicked)");
    // Others go on.
    let beside = burst.client.prepare(&model());
    assert_ne!(beside, 0);
    let _other = Private::connect();
}
