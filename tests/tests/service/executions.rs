//! The client's side of executions that nobody waits for: objects, callbacks and fences over a socket.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use burst_client::{
    Client, ClientError, Deadline, Executed, RemotePreparedModel, Route, ShmMemory, StreamOptions,
};
use burst_hal::{
    Caller, CancelWord, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Fence,
    FenceState, FencedOptions, HeapMemory, Model, Pool, PrepareOptions, PrepareResult,
    PreparedModel, Request, TimePoint,
};
use burst_server::{Service, ServiceOptions};

use crate::burst_support::{
    LONG, Private, long, model, request_between, request_in, threads_named,
    wait_for_no_thread_named, wait_until,
};

type Outcome = Result<Executed, ClientError>;

fn shared() -> Pool {
    Arc::new(ShmMemory::create(64).unwrap())
}

fn prepared(client: &Client, device: &str) -> Arc<RemotePreparedModel> {
    client.device(device).unwrap().prepare(&model(), &PrepareOptions::default()).unwrap()
}

fn start(model: &RemotePreparedModel, request: Request, caller: &Caller) -> Receiver<Outcome> {
    let (tell, told) = channel();
    let options = ExecutionOptions::default();
    let _ = model.start_with(request, &options, caller, move |outcome| tell.send(outcome).unwrap());
    told
}

#[track_caller]
fn status(told: &Receiver<Outcome>) -> ErrorStatus {
    told.recv_timeout(LONG).unwrap().map_or_else(|error| error.status(), |done| done.result.status)
}

fn first(memory: &Pool, offset: u64) -> u8 {
    let mut byte = [0];
    memory.read(offset, &mut byte).unwrap();
    byte[0]
}

#[test]
fn many_are_under_way_at_once_and_their_memories_are_held_until_each_has_ended() {
    let (service, client) = Private::connect();
    let model = prepared(&client, "fake");
    service.controls.close_gate();
    let memories: Vec<Pool> = (0..8).map(|_| shared()).collect();
    let weak: Vec<_> = memories.iter().map(Pool::downgrade).collect();
    for (number, memory) in (0u8..).zip(&memories) {
        memory.write(0, &[number; 16]).unwrap();
    }
    let (tell, told) = channel();
    for (number, memory) in memories.into_iter().enumerate() {
        let (tell, kept) = (tell.clone(), Mutex::new(None));
        let request = request_in(&memory);
        *kept.lock().unwrap() = (number == 0).then_some(memory);
        let callback = move |outcome: Outcome| tell.send((number, outcome, kept)).unwrap();
        let (options, caller) = (ExecutionOptions::default(), Caller::default());
        model.start_with(request, &options, &caller, callback).unwrap();
    }
    assert!(weak.iter().all(|memory| memory.upgrade().is_some()), "the executions hold them");
    service.controls.open_gate();
    let mut ended: Vec<usize> = Vec::new();
    for _ in 0..8 {
        let (number, outcome, kept) = told.recv_timeout(LONG).unwrap();
        assert_eq!(outcome.unwrap().result.status, ErrorStatus::None);
        if let Some(memory) = &*kept.lock().unwrap() {
            assert_eq!(first(memory, 16), 1, "written before it is told");
        }
        assert_eq!(weak[number].strong_count(), usize::from(number == 0), "let go of before");
        ended.push(number);
    }
    ended.sort_unstable();
    assert_eq!(ended, [0, 1, 2, 3, 4, 5, 6, 7]);
    drop((model, client));
    wait_for_no_thread_named("burst-callbacks");
    service.join();
}

#[test]
fn memory_without_a_descriptor_is_copied_there_and_back_before_the_callback() {
    let (service, client) = Private::connect();
    let model = prepared(&client, "fake");
    let memory: Pool = Arc::new(HeapMemory::new(vec![6; 32]));
    assert_eq!(status(&start(&model, request_in(&memory), &Caller::default())), ErrorStatus::None);
    assert_eq!((first(&memory, 0), first(&memory, 16)), (6, 7));
    // A callback may itself start the next one, and drop the last reference to everything.
    let (tell, told) = channel();
    let (again, request) = (Arc::clone(&model), request_in(&memory));
    let next = move |_: Outcome| {
        let options = ExecutionOptions::default();
        let callback = move |outcome: Outcome| tell.send(outcome.is_ok()).unwrap();
        again.start_with(request, &options, &Caller::default(), callback).unwrap();
    };
    let (options, caller) = (ExecutionOptions::default(), Caller::default());
    model.start_with(request_in(&memory), &options, &caller, next).unwrap();
    drop((model, client));
    assert_eq!(told.recv_timeout(LONG), Ok(true));
    service.join();
}

#[test]
fn a_launch_that_is_refused_says_so_twice_and_a_deadline_only_once() {
    let (service, client) = Private::connect();
    let model = prepared(&client, "fake");
    let launch = |request: Request, deadline| {
        let (tell, told) = channel();
        let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
        let callback = Box::new(move |result: ExecutionResult| tell.send(result.status).unwrap());
        let model = Arc::clone(&model) as Arc<dyn PreparedModel>;
        let launched = model.execute_asynchronously(request, options, Caller::default(), callback);
        (launched.map_err(|failure| failure.status), told.recv_timeout(LONG).unwrap())
    };
    let mut wrong = request_in(&shared());
    wrong.inputs.clear();
    let invalid = ErrorStatus::InvalidArgument;
    assert_eq!(launch(wrong, None), (Err(invalid), invalid));
    let (launched, told) = launch(request_in(&shared()), Some(TimePoint::now()));
    assert_eq!(launched, Ok(()));
    let missed = [ErrorStatus::MissedDeadlinePersistent, ErrorStatus::MissedDeadlineTransient];
    assert!(missed.contains(&told), "{told}");
    drop((model, client));
    service.join();
}

/// Wakes a thread.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_future_that_is_dropped_while_it_is_awaited_cancels_and_keeps_its_memory_for_the_service() {
    let (client, serving) = endless();
    let model = prepared(&client, "endless");
    let memory = shared();
    let held = Pool::downgrade(&memory);
    {
        let options = ExecutionOptions::default();
        let mut execution = pin!(model.start(request_in(&memory), &options).unwrap());
        drop(memory);
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        assert!(execution.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(held.upgrade().is_some(), "the execution holds it");
    }
    // Executed until it is cancelled: that it ends at all is the cancellation's doing.
    wait_until("the end of the execution", || held.upgrade().is_none());
    drop((model, client));
    serving.join().unwrap();
}

#[test]
fn an_execution_is_an_object_and_a_future() {
    let (service, client) = Private::connect();
    let model = prepared(&client, "fake");
    let options = ExecutionOptions::default();
    let execution = model.start(request_in(&shared()), &options).unwrap();
    assert_eq!(execution.wait().status, ErrorStatus::None);
    // Awaited by nothing but a waker: it is pending while the driver stands at the gate, and its thread
    // is woken by the result alone.
    service.controls.close_gate();
    let memory = shared();
    memory.write(0, &[8; 16]).unwrap();
    let mut execution = pin!(model.start(request_in(&memory), &options).unwrap());
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    assert!(execution.as_mut().poll(&mut context).is_pending());
    service.controls.open_gate();
    let result = loop {
        match execution.as_mut().poll(&mut context) {
            Poll::Ready(result) => break result,
            Poll::Pending => std::thread::park_timeout(LONG),
        }
    };
    assert_eq!((result.status, first(&memory, 16)), (ErrorStatus::None, 9));
    let mut wrong = request_in(&shared());
    wrong.outputs.clear();
    let refused = model.start(wrong, &options).unwrap_err();
    assert_eq!(refused.status, ErrorStatus::InvalidArgument);
    drop((model, client));
    service.join();
}

#[test]
fn the_end_of_the_connection_ends_every_execution_as_unavailable() {
    let (service, socket) = Private::start(ServiceOptions::default());
    let ours = socket.try_clone().unwrap();
    let client = Client::from_socket(socket).unwrap();
    let model = prepared(&client, "fake");
    service.controls.close_gate();
    let memory = shared();
    let told = [(); 2].map(|()| start(&model, request_in(&memory), &Caller::default()));
    let fenced = model
        .start_fenced(request_in(&shared()), &[], &FencedOptions::default(), &Caller::default())
        .unwrap();
    // A thread has its name a moment after it was started.
    wait_until("one thread for all callbacks", || threads_named("burst-callbacks") == 1);
    rustix::net::shutdown(&ours, rustix::net::Shutdown::Both).unwrap();
    for told in &told {
        assert_eq!(status(told), ErrorStatus::DeviceUnavailable);
    }
    assert_eq!(
        status(&start(&model, request_in(&memory), &Caller::default())),
        ErrorStatus::DeviceUnavailable
    );
    let gone = fenced.info.execution_info().unwrap_err();
    assert_eq!(gone.status, ErrorStatus::DeviceUnavailable);
    service.controls.open_gate();
    assert_ne!(fenced.fence.unwrap().wait(Some(TimePoint::after(LONG))), FenceState::Pending);
    drop((model, client, ours));
    service.join();
}

/// Executes until it is cancelled.
struct Endless;

impl Device for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Endless))
    }
}

impl PreparedModel for Endless {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        panic!("a service that cannot cancel");
    }

    fn execute_for(&self, _: &Request, _: &ExecutionOptions, caller: &Caller) -> ExecutionResult {
        while !caller.is_cancelled() {
            std::thread::yield_now();
        }
        ExecutionResult::of(ErrorStatus::GeneralFailure)
    }
}

fn endless() -> (Client, std::thread::JoinHandle<()>) {
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    let service = Service::new(vec![Arc::new(Endless)], ServiceOptions::default());
    let serving = std::thread::spawn(move || service.serve_socket(theirs).unwrap());
    (Client::from_socket(ours).unwrap(), serving)
}

#[test]
fn whoever_cancels_or_drops_an_execution_ends_it_and_the_result_still_comes() {
    let (client, serving) = endless();
    let model = prepared(&client, "endless");
    let memory = shared();
    let word = CancelWord::default();
    let told = start(&model, request_in(&memory), &Caller::new(&word));
    word.cancel();
    assert_eq!(status(&told), ErrorStatus::GeneralFailure);
    let told = start(&model, request_in(&memory), &Caller::new(&word));
    assert_eq!(status(&told), ErrorStatus::GeneralFailure, "cancelled before it was started");

    let held = Pool::downgrade(&memory);
    let execution = model.start(request_in(&memory), &ExecutionOptions::default()).unwrap();
    drop(memory);
    assert!(held.upgrade().is_some());
    drop(execution);
    let until = std::time::Instant::now() + LONG;
    while held.upgrade().is_some() {
        assert!(std::time::Instant::now() < until, "it was not cancelled");
        std::thread::yield_now();
    }
    drop((model, client));
    serving.join().unwrap();
}

#[test]
fn a_stream_that_gave_up_waits_for_its_last_execution_before_the_next() {
    let (client, serving) = endless();
    for route in [Route::Asynchronous, Route::Fenced] {
        let mut options = StreamOptions::default();
        options.route = route;
        let mut stream = client.device("endless").unwrap().stream(&model(), &options).unwrap();
        for _ in 0..2 {
            let soon = burst_client::Deadline::after(std::time::Duration::from_millis(20));
            assert!(stream.run(soon).is_err(), "{route}");
        }
    }
    drop(client);
    serving.join().unwrap();
}

/// An execution that nobody wants any more goes on in a driver that does not give up, with the memory of the
/// stream: nothing else begins before it has ended, and what it leaves is never taken for the next result.
#[test]
fn a_late_execution_of_a_stream_is_neither_joined_by_the_next_one_nor_taken_for_it() {
    for route in Route::ALL {
        let (service, client) = Private::connect();
        let mut options = StreamOptions::default();
        options.route = route;
        let mut stream = client.device("fake").unwrap().stream(&model(), &options).unwrap();
        let begun = || service.controls.begun.load(Ordering::SeqCst);
        service.controls.close_gate();
        stream.input(0).fill(1);
        let mut given = Duration::from_millis(20);
        while begun() == 0 {
            let missed = stream.run(Deadline::after(given)).unwrap_err();
            assert!(matches!(missed, ClientError::Timeout), "{route}: {missed}");
            given *= 2; // it may have passed before the execution began
        }
        for value in [2, 3] {
            stream.input(0).fill(value);
            let missed = stream.run(Deadline::after(Duration::from_millis(20))).unwrap_err();
            assert!(matches!(missed, ClientError::Timeout), "{route}: {missed}");
            assert_eq!(begun(), 1, "{route}: a second execution beside the late one");
        }
        service.controls.open_gate();
        stream.input(0).fill(7);
        stream.run(long()).unwrap();
        assert_eq!(stream.output(0).unwrap(), [8; 16], "{route}");
        let after_the_last = begun();
        stream.input(0).fill(9);
        stream.run(long()).unwrap();
        assert_eq!(stream.output(0).unwrap(), [10; 16], "{route}");
        assert_eq!(begun(), after_the_last + 1, "{route}: the late ones have ended");
        drop((stream, client));
        service.join();
    }
}

#[test]
fn fenced_executions_run_in_a_chain_and_tell_what_came_of_them_after_their_end() {
    let (service, client) = Private::connect();
    let model = prepared(&client, "fake");
    let (gate, mut opener) = std::io::pipe().unwrap();
    let memories = [(); 3].map(|()| shared());
    memories[0].write(0, &[3; 16]).unwrap();
    let (options, caller) = (FencedOptions::default(), Caller::default());
    let launch = |from: usize, fence: Fence| {
        let request = request_between(&memories[from], &memories[from + 1]);
        model.start_fenced(request, &[fence], &options, &caller).unwrap()
    };
    let one = launch(0, OwnedFd::from(gate).into());
    let two = launch(1, one.fence.clone().unwrap());
    let early = one.info.execution_info().unwrap_err();
    assert_eq!(early.status, ErrorStatus::GeneralFailure);
    assert_eq!(two.fence.as_ref().unwrap().state(), FenceState::Pending);
    opener.write_all(&[1]).unwrap();
    let done = two.fence.as_ref().unwrap().wait(Some(TimePoint::after(LONG)));
    assert_eq!(done, FenceState::Done);
    assert_eq!(first(&memories[2], 0), 5);
    assert_eq!(one.info.execution_info().unwrap().status, ErrorStatus::None);
    assert_eq!(two.info.execution_info().unwrap(), two.info.execution_info().unwrap());

    let heap: Pool = Arc::new(HeapMemory::new(vec![0; 32]));
    let unshared = model.start_fenced(request_between(&memories[0], &heap), &[], &options, &caller);
    assert!(matches!(unshared, Err(ClientError::OutputNotShared { output: 0 })), "{unshared:?}");
    let from_heap = request_between(&heap, &memories[1]);
    let copied = model.start_fenced(from_heap, &[], &options, &caller).unwrap();
    if let Some(fence) = &copied.fence {
        assert_eq!(fence.wait(Some(TimePoint::after(LONG))), FenceState::Done);
    }
    assert_eq!(first(&memories[1], 0), 1, "inputs are copied there");
    let fences = vec![one.fence.clone().unwrap(); 65];
    let request = request_between(&memories[0], &memories[1]);
    let too_many = model.start_fenced(request.clone(), &fences, &options, &caller);
    assert!(matches!(too_many, Err(ClientError::TooManyFences { count: 65, limit: 64 })));
    let null = std::fs::File::open("/dev/null").unwrap();
    let none = Fence::from(null.as_fd().try_clone_to_owned().unwrap());
    let refused = model.start_fenced(request, &[none], &options, &caller).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    drop((one, two, copied, model, client));
    service.join();
}

#[test]
fn a_stream_gives_the_same_over_every_route() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    for route in Route::ALL {
        let mut options = StreamOptions::default();
        options.route = route;
        let mut stream = device.stream(&model(), &options).unwrap();
        for value in [4, 9] {
            stream.input(0).fill(value);
            stream.run(long()).unwrap();
            assert_eq!(stream.output(0).unwrap(), [value + 1; 16], "{route}");
        }
        assert!(stream.driver_time().is_some(), "{route}");
    }
    drop((device, client));
    service.join();
}
