//! Client and service together: the whole way of a frame, over either path.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use burst_client::{BurstOptions, Client, ClientError, Route, StreamOptions, Wait};
use burst_hal::session::LayoutError;
use burst_hal::{
    Device, DeviceStatus, DeviceType, ErrorStatus, ExecutionOptions, HeapMemory, OperandType, Pool,
    Request, RequestArgument, RequestPool, Timing,
};
use burst_server::{Listener, Service, ServiceOptions, Stop};

use crate::burst_support::{self, Controls, FakeDevice, Private, long, model, wide_model};

fn frame(seed: usize, index: usize) -> Vec<u8> {
    (0..16).map(|at| u8::try_from((seed * 7 + index * 31 + at) % 251).unwrap()).collect()
}

fn plus_one(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte.wrapping_add(1)).collect()
}

fn options(route: Route, wait: Wait) -> StreamOptions {
    let mut options = StreamOptions::default();
    options.route = route;
    options.wait = wait;
    options.frames = 3;
    options
}

#[test]
fn frames_come_back_right_over_every_path_and_with_every_way_to_wait() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    for (route, wait) in [
        (Route::Burst, Wait::Spin),
        (Route::Burst, Wait::Adaptive { budget_ns: None }),
        (Route::Burst, Wait::Sleep),
        (Route::Synchronous, Wait::Sleep),
    ] {
        let mut stream = device.stream(&wide_model(3), &options(route, wait)).unwrap();
        assert_eq!((stream.inputs(), stream.outputs(), stream.frames()), (3, 3, 3));
        for round in 0..50 {
            let slot = round % 3;
            for input in 0..3 {
                stream.input_of(slot, input).copy_from_slice(&frame(round, input));
            }
            let result = stream.run_frame(slot, long()).unwrap();
            assert_eq!(result.status, ErrorStatus::None);
            assert!(stream.driver_time().is_some(), "{route}");
            for output in 0..3 {
                let want = plus_one(&frame(round, output));
                assert_eq!(stream.output(output).unwrap(), want, "{route} {wait:?} {round}");
            }
        }
        assert!(stream.burst().is_none_or(|burst| !burst.fell_back()));
    }
    drop((device, client));
    service.join();
}

#[test]
fn a_device_looks_the_same_from_the_other_process() {
    let (_service, client) = Private::connect();
    assert_eq!(client.device_names().unwrap(), ["fake"]);
    let device = client.devices().unwrap().remove(0);
    assert_eq!((device.name(), device.version_string()), ("fake", "fake-1"));
    assert_eq!(device.device_type(), DeviceType::Other);
    assert_eq!(device.status(), DeviceStatus::Available);
    assert_eq!(device.capabilities().unwrap(), FakeDevice::default().capabilities().unwrap());
    assert_eq!(device.supported_operations(&wide_model(2)).unwrap(), [true, true]);
    assert_eq!(device.supported_operations(&burst_support::foreign_model()).unwrap(), [false]);
    match client.device("gpu") {
        Err(ClientError::NoDevice { available, .. }) => assert_eq!(available, ["fake"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.driver_pid(), std::process::id());
}

#[test]
fn a_refused_model_says_why() {
    let (_service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    match device.prepare(&burst_support::foreign_model(), &Default::default()) {
        Err(ClientError::Refused { status, detail }) => {
            assert_eq!(status, ErrorStatus::InvalidArgument);
            assert_eq!(&*detail, "the fake device runs RELU alone");
        }
        other => panic!("{other:?}"),
    }
    // Not legal in itself: refused before the device sees it.
    let mut broken = model();
    broken.main.operations[0].inputs[0] = 99;
    let error = device.prepare(&broken, &Default::default()).unwrap_err();
    assert_eq!(error.status(), ErrorStatus::InvalidArgument, "{error}");
}

#[test]
fn several_clients_are_served_at_a_path_and_the_path_goes_with_the_service() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::new(vec![Arc::new(FakeDevice::default())], ServiceOptions::default());
    let (stopper, stop) = Stop::new().unwrap();
    let listener = Listener::bind(&path).unwrap();
    assert!(matches!(Listener::bind(&path), Err(burst_server::ServerError::PathInUse { .. })));
    let serving = std::thread::spawn(move || service.run(&listener, &stop));
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let path = path.clone();
            std::thread::spawn(move || {
                let client = Client::connect(path).unwrap();
                let device = client.device("fake").unwrap();
                let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
                for round in 0..100 {
                    stream.input(0).copy_from_slice(&frame(number + round, 0));
                    stream.run(long()).unwrap();
                    assert_eq!(stream.output(0).unwrap(), plus_one(&frame(number + round, 0)));
                }
                stream
            })
        })
        .collect();
    let mut streams: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    // Stopped while clients are connected: they learn of it, and that it is no death.
    drop(stopper);
    serving.join().unwrap().unwrap();
    for stream in &mut streams {
        let error = stream.run(long()).unwrap_err();
        assert!(matches!(error, ClientError::PeerStopped { .. }), "{error}");
    }
    assert!(!path.exists());
    assert!(matches!(Client::connect(&path), Err(ClientError::NobodyListens { .. })));
}

#[test]
fn whoever_is_in_the_middle_of_a_call_learns_that_the_service_was_told_to_stop() {
    let directory = tempfile::tempdir().unwrap();
    // At what point of a call the end comes is up to the scheduler; each is right.
    for round in 0..200 {
        let path = directory.path().join(format!("{round}.sock"));
        let options = ServiceOptions::default();
        let service = Service::new(vec![Arc::new(FakeDevice::default())], options);
        let (stopper, stop) = Stop::new().unwrap();
        let listener = Listener::bind(&path).unwrap();
        let serving = std::thread::spawn(move || service.run(&listener, &stop));
        let client = Client::connect(&path).unwrap();
        client.device("fake").unwrap();
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                std::thread::spawn(move || {
                    loop {
                        if let Err(error) = client.device("fake") {
                            break error;
                        }
                    }
                })
            })
            .collect();
        drop(stopper);
        serving.join().unwrap().unwrap();
        for caller in callers {
            let error = caller.join().unwrap();
            assert!(matches!(error, ClientError::PeerStopped { .. }), "{round}: {error}");
        }
    }
}

#[test]
fn outputs_lie_in_memory_that_only_the_service_can_write() {
    let (_service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let outputs = prepared.allocate_outputs(64).unwrap();
    assert_eq!(outputs.len(), 64);
    assert!(outputs.write(0, &[1]).is_err(), "the client writes the service's memory");
    let descriptor = outputs.fd().unwrap();
    assert!(rustix::io::pwrite(descriptor, &[1], 0).is_err());
}

fn heap_request() -> (Request, Arc<HeapMemory>) {
    let output = Arc::new(HeapMemory::new(vec![0; 16]));
    let argument = |pool_index| RequestArgument {
        location: burst_hal::DataLocation { pool_index, offset: 0, length: 16 },
        ..RequestArgument::default()
    };
    let input: Pool = Arc::new(HeapMemory::new((0..16).collect()));
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(1)],
        pools: vec![RequestPool::Memory(input), RequestPool::Memory(Arc::clone(&output) as Pool)],
    };
    (request, output)
}

#[test]
fn requests_that_a_burst_cannot_carry_go_over_the_socket_with_the_same_result() {
    let (_service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let options = ExecutionOptions::default();

    // Memory without a descriptor.
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let (request, output) = heap_request();
    let result = burst.execute(&request, &options, long()).unwrap();
    assert_eq!(result.status, ErrorStatus::None);
    assert!(burst.fell_back());
    assert_eq!(output.to_vec(), (1..17).collect::<Vec<u8>>());

    // A packet longer than the queue.
    let mut stream_options = StreamOptions::default();
    stream_options.queue_datums = Some(3);
    let mut stream = device.stream(&model(), &stream_options).unwrap();
    stream.input(0).copy_from_slice(&frame(1, 1));
    stream.run(long()).unwrap();
    assert!(stream.burst().unwrap().fell_back());
    assert_eq!(stream.output(0).unwrap(), plus_one(&frame(1, 1)));

    // A deadline that plain HAL 1.2 cannot say.
    let plain = BurstOptions::default().with_features(burst_wire::Features::NONE);
    let mut burst = prepared.configure_burst(&plain).unwrap();
    let deadline = Some(burst_hal::TimePoint::after(burst_support::LONG));
    let with_deadline = ExecutionOptions { deadline, ..options };
    burst.execute(&request, &with_deadline, long()).unwrap();
    assert!(burst.fell_back());
}

#[test]
fn timing_is_told_only_when_asked_for_and_the_driver_is_never_faster_than_its_device() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    service.controls.device_us.store(5_000_000, Ordering::SeqCst);
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    let timing = stream.run(long()).unwrap().timing;
    assert_eq!(timing.time_on_device_us, 5_000_000);
    assert!(timing.time_in_driver_us >= timing.time_on_device_us);
    let mut options = StreamOptions::default();
    options.measure_timing = false;
    let mut stream = device.stream(&model(), &options).unwrap();
    assert_eq!(stream.run(long()).unwrap().timing, Timing::UNAVAILABLE);
    assert_eq!(stream.driver_time(), None);
}

#[test]
fn an_output_that_is_too_small_comes_with_the_shape_it_needs() {
    let (service, client) = Private::connect();
    service.controls.insufficient.store(true, Ordering::SeqCst);
    let device = client.device("fake").unwrap();
    // The shapes of a fenced execution have to be known beforehand.
    for route in Route::ALL.into_iter().filter(|route| *route != Route::Fenced) {
        let mut stream = device.stream(&model(), &options(route, Wait::Sleep)).unwrap();
        let error = stream.run(long()).unwrap_err();
        assert!(
            matches!(error, ClientError::Execution { status: ErrorStatus::OutputInsufficientSize }),
            "{route}: {error}"
        );
        let shapes = &stream.result().output_shapes;
        assert_eq!(shapes[0].dimensions.as_slice(), [1, 2, 3], "{route}");
        assert!(!shapes[0].is_sufficient);
        assert_eq!(stream.result().timing, Timing::UNAVAILABLE);
    }
}

/// A request for a wide model of two inputs and two outputs, which lie in one memory.
fn request_of_two() -> Request {
    let memory: Pool = Arc::new(burst_client::ShmMemory::create(64).unwrap());
    let argument = |offset| RequestArgument {
        location: burst_hal::DataLocation { pool_index: 0, offset, length: 16 },
        ..RequestArgument::default()
    };
    Request {
        inputs: vec![argument(0), argument(16)],
        outputs: vec![argument(32), argument(48)],
        pools: vec![RequestPool::Memory(memory)],
    }
}

#[test]
fn a_result_queue_of_eight_datums_gives_an_error_and_neither_hangs_nor_falls_back() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&wide_model(2), &Default::default()).unwrap();
    let request = request_of_two();
    let options = BurstOptions::default().with_result_datums(8);
    let mut burst = prepared.configure_burst(&options).unwrap();
    for _ in 0..3 {
        // Two shapes of three dimensions: ten datums.
        service.controls.insufficient.store(true, Ordering::SeqCst);
        let result = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
        assert_eq!(*result, burst_hal::ExecutionResult::of(ErrorStatus::GeneralFailure));
        assert!(!burst.fell_back());
        service.controls.insufficient.store(false, Ordering::SeqCst);
        let result = burst.execute(&request, &ExecutionOptions::default(), long()).unwrap();
        assert_eq!(result.status, ErrorStatus::None);
        assert!(!burst.fell_back());
    }
}

/// The client reads such a result without looking whether the service sleeps for want of room: it never does.
#[test]
fn results_that_fill_their_queue_follow_each_other() {
    let (_service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&wide_model(2), &Default::default()).unwrap();
    let request = request_of_two();
    for wait in [Wait::Sleep, Wait::default()] {
        let with_room_for = |datums| {
            let options = BurstOptions::default().waiting(wait).with_result_datums(datums);
            prepared.configure_burst(&options).unwrap()
        };
        let run = |burst: &mut burst_client::Burst| {
            burst.execute(&request, &ExecutionOptions::default(), long()).unwrap().status
        };
        let fits = |datums: &usize| run(&mut with_room_for(*datums)) == ErrorStatus::None;
        let datums = (2..100).find(fits).unwrap();
        let mut burst = with_room_for(datums);
        for execution in 0..1_000 {
            assert_eq!(run(&mut burst), ErrorStatus::None, "{execution} with {datums} datums");
        }
    }
}

#[test]
fn a_missed_deadline_leaves_the_burst_usable() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    service.controls.close_gate();
    stream.input(0).copy_from_slice(&frame(1, 0));
    // A deadline can pass before the request is sent, and then no execution begins: run again with
    // a longer one until an execution has begun. The burst carries one request at a time, so once
    // the first is sent no later run sends another.
    let mut timeout = Duration::from_millis(5);
    while service.controls.begun.load(Ordering::SeqCst) == 0 {
        assert!(timeout < Duration::from_secs(60), "no execution begins");
        let error = stream.run(burst_client::Deadline::after(timeout)).unwrap_err();
        assert!(matches!(error, ClientError::Timeout), "{error}");
        timeout *= 2;
    }
    service.controls.open_gate();
    stream.input(0).copy_from_slice(&frame(2, 0));
    stream.run(long()).unwrap();
    assert_eq!(stream.output(0).unwrap(), plus_one(&frame(2, 0)), "the later frame's result");
    assert_eq!(service.controls.begun.load(Ordering::SeqCst), 2);
}

#[test]
fn a_deadline_that_has_passed_is_missed_without_an_execution() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let memory: Pool = Arc::new(burst_client::ShmMemory::create(32).unwrap());
    let argument = |offset| RequestArgument {
        location: burst_hal::DataLocation { pool_index: 0, offset, length: 16 },
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(16)],
        pools: vec![RequestPool::Memory(memory)],
    };
    let passed = ExecutionOptions {
        deadline: Some(burst_hal::TimePoint { nanos: 1 }),
        ..Default::default()
    };
    let mut burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let over_burst = burst.execute(&request, &passed, long()).unwrap().status;
    assert!(!burst.fell_back());
    let over_socket = prepared.execute(&request, &passed, long()).unwrap().result.status;
    assert_eq!([over_burst, over_socket], [ErrorStatus::MissedDeadlinePersistent; 2]);
    assert_eq!(service.controls.begun.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_of_the_driver_ends_its_burst_and_nothing_else() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    let mut other = device.stream(&model(), &options(Route::Synchronous, Wait::Sleep)).unwrap();
    service.controls.panic.store(true, Ordering::SeqCst);
    let error = stream.run(long()).unwrap_err();
    assert_eq!(error.status(), ErrorStatus::GeneralFailure, "{error}");
    let error = stream.run(long()).unwrap_err();
    assert!(matches!(error, ClientError::BurstEnded { .. }), "{error}");
    assert!(other.run(long()).is_err());
    service.controls.panic.store(false, Ordering::SeqCst);
    other.run(long()).unwrap();
    let mut again = device.stream(&model(), &StreamOptions::default()).unwrap();
    again.run(long()).unwrap();
}

#[test]
fn an_answer_of_the_device_that_no_message_can_hold_fails_its_call_alone() {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    service.controls.more_operations.store(1, Ordering::SeqCst);
    let error = device.query_operations(&model()).unwrap_err();
    assert!(matches!(error, ClientError::UnexpectedAnswer), "one too many: {error}");
    service.controls.more_operations.store(70_000, Ordering::SeqCst);
    let error = device.query_operations(&model()).unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
    service.controls.more_operations.store(0, Ordering::SeqCst);
    assert_eq!(device.query_operations(&model()).unwrap(), [true]);
}

#[test]
fn executions_on_one_connection_run_side_by_side() {
    let (service, client) = Private::connect();
    let controls: &Arc<Controls> = &service.controls;
    let device = client.device("fake").unwrap();
    controls.close_gate();
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let options = options(Route::Synchronous, Wait::Sleep);
            let mut stream = device.stream(&model(), &options).unwrap();
            std::thread::spawn(move || {
                stream.input(0).copy_from_slice(&frame(number, 0));
                stream.run(long()).unwrap();
                assert_eq!(stream.output(0).unwrap(), plus_one(&frame(number, 0)));
            })
        })
        .collect();
    // All are in the device at once, and the socket is still answered.
    controls.wait_begun(3);
    assert_eq!(device.status(), DeviceStatus::Available);
    controls.open_gate();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_model_without_fixed_sizes_is_refused_by_the_short_way() {
    let (_service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let mut builder = burst_hal::ModelBuilder::new();
    let input = builder.input(OperandType::TensorFloat32, &[1, 0]);
    let output = builder.result_of(
        burst_hal::OperationType::Relu,
        &[input],
        burst_hal::OutputSpec::f32(&[1, 0]),
    );
    builder.output(output);
    let unknown = builder.build().unwrap();
    let error = device.stream(&unknown, &StreamOptions::default()).unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::Layout(LayoutError::OpenShape { what: "input", index: 0, .. })
        ),
        "{error}"
    );
}
