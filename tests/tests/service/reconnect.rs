//! Services that die and come back, stop and go on: what a client sees, and what it keeps.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_client::{
    Backoff, BurstOptions, Client, ClientError, ConnectOptions, Deadline, ReconnectingDevice,
    Route, ShmMemory, StreamOptions,
};
use burst_hal::{Device, ErrorStatus, ExecutionOptions, Pool};
use rustix::process::Pid;

use crate::burst_support::tour::{From, Kill, Relay, Step};
use crate::burst_support::{self, LONG, long, model, request_in};
use crate::peer::Service;

fn shm() -> Pool {
    Arc::new(ShmMemory::create(32).unwrap())
}

#[test]
fn a_stream_goes_on_after_its_service_was_killed_and_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    for route in Route::ALL {
        let mut service = Service::start(&path);
        let device = ReconnectingDevice::connect(&path, "fake").unwrap();
        let mut options = StreamOptions::default();
        options.route = route;
        let mut stream = device.stream(&model(), &options).unwrap();
        for round in 1..=3 {
            stream.stream().input(0).fill(round);
            stream.run(long()).unwrap();
            assert_eq!(stream.stream().output(0).unwrap(), [round + 1; 16], "{route}");
            let pid = stream.stream().driver_pid();
            service.kill();
            // The supervisor is slow: nobody is there while the client looks for the service.
            let restart = std::thread::spawn({
                let path = path.clone();
                move || Service::start(&path)
            });
            let lost = stream.outages().lost;
            match stream.run(long()) {
                // It was known already that the service is gone: the request waited for the next.
                Ok(_) => assert_eq!(stream.outages().lost, lost),
                Err(error) => {
                    assert!(error.is_loss(), "{error}");
                    assert_eq!(stream.outages().lost, lost + 1);
                }
            }
            service = restart.join().unwrap();
            // The frame written before is still there.
            stream.run(long()).unwrap();
            assert_eq!(stream.stream().output(0).unwrap(), [round + 1; 16], "{route}");
            assert_ne!(stream.stream().driver_pid(), pid);
            let outages = stream.outages();
            assert_eq!(outages.reconnects, u64::from(round));
            assert!(outages.lost <= u64::from(round));
            assert!(outages.last_gap > Duration::ZERO && outages.longest_gap >= outages.last_gap);
        }
        assert_eq!(device.reconnects(), 3);
    }
}

/// A connector to services of its own; each is killed at its step of the conversation, those after
/// the last step live. Who said what over the first connection stands in the list.
fn mortal(
    mut deaths: std::vec::IntoIter<Step>,
    steps: Arc<Mutex<Vec<Step>>>,
) -> impl FnMut(Deadline) -> Result<Client, ClientError> + Send + 'static {
    let mut services = Vec::new();
    move |_| {
        let (service, to_service) = Service::private("serve-private");
        let (ours, to_client) = burst_wire::socket::pair().unwrap();
        let pid = Pid::from_child(&service.0);
        let kill = deaths.next().map(|at| Kill { at, victim: From::Service, pid });
        let relay = Relay::start_into(Arc::clone(&steps), to_client, to_service, kill);
        services.push((service, relay));
        Client::from_socket(ours)
    }
}

#[test]
fn a_stream_is_set_up_although_its_service_dies_over_it_twice() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let set_up = |deaths: Vec<Step>| {
        let connector = mortal(deaths.into_iter(), Arc::clone(&heard));
        let device = ReconnectingDevice::with_connector("fake", Backoff::RESTART, connector);
        let device = device.unwrap();
        let stream = device.stream(&model(), &StreamOptions::default());
        (device.reconnects(), stream)
    };
    let (reconnects, stream) = set_up(Vec::new());
    assert_eq!(reconnects, 0);
    drop(stream.unwrap());
    let steps: Vec<Step> = std::mem::take(&mut heard.lock().unwrap());
    let known = steps.iter().position(|step| step.name == "Device").expect("found the device");
    let last = steps.iter().position(|step| step.name == "Burst").expect("a burst");
    assert!(last > known + 4, "{steps:?}");
    for step in &steps[known + 1..=last] {
        println!("{step}");
        let (reconnects, stream) = set_up(vec![step.clone(), step.clone()]);
        let mut stream = stream.unwrap();
        // What was said last is heard before the hang-up.
        assert!(reconnects == 2 || step.name == "Burst", "{step}: {reconnects}");
        stream.stream().input(0).fill(1);
        let mut ran = stream.run(long()).map(|_| ());
        while ran.as_ref().is_err_and(ClientError::is_loss) {
            ran = stream.run(long()).map(|_| ());
        }
        ran.unwrap();
        assert_eq!(stream.stream().output(0).unwrap(), [2; 16]);
    }
    let prepare = &steps[known + 1];
    assert_eq!(prepare.name, "Prepare");
    let (reconnects, stream) = set_up(vec![prepare.clone(); 3]);
    assert_eq!(reconnects, 2, "a model that kills every service is given up");
    let error = stream.map(|_| ()).unwrap_err();
    assert!(error.is_loss(), "{error}");
}

#[test]
fn a_burst_is_made_again_with_its_model_and_memories_in_one_call() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::start(&path);
    let device = ReconnectingDevice::connect(&path, "fake").unwrap();
    let model = device.prepare(&model(), &Default::default()).unwrap();
    let mut bursts: Vec<_> =
        (0..2).map(|_| model.configure_burst(&BurstOptions::default()).unwrap()).collect();
    let pool = shm();
    let request = request_in(&pool);
    let options = ExecutionOptions::default();
    pool.write(0, &[7; 16]).unwrap();
    for burst in &mut bursts {
        let status = burst.execute(&request, &options, long()).unwrap().status;
        assert_eq!(status, ErrorStatus::None);
        burst.reconnect(long()).unwrap(); // nothing is lost, nothing is done
    }
    assert_eq!(device.reconnects(), 0);
    service.kill();
    let _service = Service::start(&path);
    for burst in &mut bursts {
        burst.reconnect(long()).unwrap();
        assert!(burst.current().is_alive());
        // The memory is in a slot of the new burst before any request uses it.
        assert_eq!(burst.current().memories_in_slots(), 1);
        pool.write(16, &[0; 16]).unwrap();
        let status = burst.execute(&request, &options, long()).unwrap().status;
        assert_eq!(status, ErrorStatus::None);
        let mut output = [0; 16];
        pool.read(16, &mut output).unwrap();
        assert_eq!(output, [8; 16]);
    }
    assert_eq!(device.reconnects(), 1, "both use the same new connection");
    // As a device like any other.
    let device: Arc<dyn Device> = Arc::new(device);
    let again = device.prepare_model(&burst_support::model(), &Default::default()).unwrap();
    let result = again.execute_synchronously(&request, &options);
    assert_eq!(result.status, ErrorStatus::None);
}

#[test]
fn looking_for_a_service_that_does_not_come_back_ends_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::start(&path);
    let client = Client::connect(&path).unwrap();
    let device = ReconnectingDevice::connect(&path, "fake").unwrap();
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    service.kill();
    let soon = || Deadline::after(Duration::from_millis(20));
    let short = Backoff { total: Duration::from_millis(20), ..Backoff::RESTART };
    let error = client.reconnect(&short, Deadline::never()).unwrap_err();
    assert!(matches!(error, ClientError::NobodyListens { .. }), "{error}");
    // One of these may be the loss of the request itself.
    let first = stream.run(soon()).unwrap_err();
    let second = stream.run(soon()).unwrap_err();
    assert!(first.is_loss() || matches!(first, ClientError::NobodyListens { .. }), "{first}");
    assert!(matches!(second, ClientError::NobodyListens { .. }), "{second}");
    let _service = Service::start(&path);
    stream.run(long()).unwrap();
    assert!(client.reconnect(&short, long()).unwrap().is_alive());
}

#[test]
fn a_client_made_from_a_socket_has_no_address_to_connect_to_again() {
    let (_service, client) = burst_support::Private::connect();
    let error = client.reconnect(&Backoff::RESTART, long()).unwrap_err();
    assert!(matches!(error, ClientError::NoAddress), "{error}");
}

#[test]
fn a_stopped_service_is_a_missed_deadline_and_goes_on_when_it_is_continued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::start(&path);
    let client = Client::connect(&path).unwrap();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let mut options = StreamOptions::default();
    let mut over_burst = device.stream(&model(), &options).unwrap();
    options.route = Route::Synchronous;
    let mut over_socket = device.stream(&model(), &options).unwrap();
    service.stop();
    let soon = || Deadline::after(Duration::from_millis(5));
    for stream in [&mut over_burst, &mut over_socket] {
        stream.input(0).fill(3);
        for _ in 0..2 {
            let error = stream.run(soon()).unwrap_err();
            assert!(matches!(error, ClientError::Timeout), "{error}");
            assert_eq!(error.status(), ErrorStatus::MissedDeadlineTransient);
        }
    }
    assert!(client.is_alive(), "stopped is not dead");
    // Letting go of things does not wait for the service for long.
    drop(prepared);
    service.signal(rustix::process::Signal::CONT);
    for stream in [&mut over_burst, &mut over_socket] {
        stream.input(0).fill(4);
        stream.run(long()).unwrap();
        assert_eq!(stream.output(0).unwrap(), [5; 16], "the later frame's result");
    }
}

#[test]
fn a_stopped_service_that_is_killed_is_dead_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::start(&path);
    let client = Client::connect(&path).unwrap();
    let device = client.device("fake").unwrap();
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    service.stop();
    let waiting = std::thread::spawn(move || stream.run(long()).map(|_| ()).unwrap_err());
    service.kill();
    let error = waiting.join().unwrap();
    assert!(matches!(error, ClientError::PeerDied { .. }), "{error}");
}

#[test]
fn what_is_prepared_too_late_is_released() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    // One prepared model at a time: a leaked one would be found by the next.
    let service = Service::start_as("serve-one-model", &path);
    let client = Client::connect(&path).unwrap();
    let device = client.device("fake").unwrap();
    service.stop();
    let options = burst_hal::PrepareOptions {
        deadline: Some(burst_hal::TimePoint::after(Duration::from_millis(5))),
        ..Default::default()
    };
    let error = device.prepare(&model(), &options).unwrap_err();
    assert!(matches!(error, ClientError::Timeout), "{error}");
    service.signal(rustix::process::Signal::CONT);
    // The late reply is on its way, then our release of it: a transient shortage at most.
    let policy = burst_client::RetryPolicy {
        transient: Some(Backoff { total: LONG, ..Backoff::BUSY }),
        fall_back: false,
    };
    let prepared = policy.run(long(), || device.prepare(&model(), &Default::default())).unwrap();
    drop(prepared);
}

#[test]
fn a_burst_is_configured_although_its_service_dies_over_it_or_was_gone_before() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let configured = |deaths: Vec<Step>| {
        let connector = mortal(deaths.into_iter(), Arc::clone(&heard));
        let device = ReconnectingDevice::with_connector("fake", Backoff::RESTART, connector);
        let device = device.unwrap();
        let model = device.prepare(&model(), &Default::default()).unwrap();
        (model.configure_burst(&BurstOptions::default()), device.reconnects())
    };
    drop(configured(Vec::new()).0.unwrap());
    let steps: Vec<Step> = std::mem::take(&mut heard.lock().unwrap());
    let configure = steps.iter().find(|step| step.name == "ConfigureBurst").unwrap();
    let (burst, reconnects) = configured(vec![configure.clone(); 2]);
    let pool = shm();
    let options = ExecutionOptions::default();
    let result = burst.unwrap().execute(&request_in(&pool), &options, long()).unwrap().status;
    assert_eq!((result, reconnects), (ErrorStatus::None, 2));
    let (given_up, reconnects) = configured(vec![configure.clone(); 3]);
    let error = given_up.map(drop).unwrap_err();
    assert!(error.is_loss() && reconnects == 2, "{reconnects}: {error}");

    // Gone before, and slow to come back.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::start(&path);
    let device = ReconnectingDevice::connect(&path, "fake").unwrap();
    let model = device.prepare(&burst_support::model(), &Default::default()).unwrap();
    service.kill();
    burst_support::wait_until("the news", || !device.current().is_alive());
    let waiting = std::thread::spawn(move || {
        model.configure_burst(&BurstOptions::default()).map(|burst| burst.current().is_alive())
    });
    let _service = Service::start(&path);
    assert!(waiting.join().unwrap().unwrap());
}

#[test]
fn callers_get_answers_or_a_timely_error_while_another_one_connects_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::start(&path);
    let ((dialing, dialed), (go_on, may_go_on)) =
        (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let connector = {
        let (path, mut first) = (path.clone(), true);
        move |deadline: Deadline| {
            if !std::mem::take(&mut first) {
                dialing.send(deadline.as_ns()).unwrap();
                may_go_on.recv_timeout(LONG).unwrap();
            }
            Client::connect(&path)
        }
    };
    let device = ReconnectingDevice::with_connector("fake", Backoff::RESTART, connector).unwrap();
    let model = device.prepare(&burst_support::model(), &Default::default()).unwrap();
    service.kill();
    burst_support::wait_until("the news", || !device.current().is_alive());
    let until = long();
    let reconnecting = std::thread::spawn({
        let device = device.clone();
        move || device.reconnect(until)
    });
    assert_eq!(dialed.recv_timeout(LONG), Ok(until.as_ns()), "it is told how long it may take");
    // Meanwhile nothing that others ask for waits for longer than they want to.
    let (told, asked) = std::sync::mpsc::channel();
    let others = std::thread::spawn({
        let device = device.clone();
        move || {
            told.send((device.reconnects(), device.current().is_alive())).unwrap();
            let soon = || Deadline::after(Duration::from_millis(5));
            (device.reconnect(soon()), model.reconnect(soon()).map(drop), model)
        }
    });
    assert_eq!(asked.recv_timeout(LONG), Ok((0, false)));
    let (of_device, of_model, model) = others.join().unwrap();
    for error in [of_device.unwrap_err(), of_model.unwrap_err()] {
        assert!(matches!(error, ClientError::Timeout), "{error}");
    }
    let _service = Service::start(&path);
    go_on.send(()).unwrap();
    reconnecting.join().unwrap().unwrap();
    assert_eq!(device.reconnects(), 1);
    model.reconnect(long()).unwrap();
}

#[test]
fn connecting_ends_with_its_deadline_where_nobody_accepts_and_where_nobody_answers() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let deaf = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&deaf, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&deaf, 0).unwrap();
    let soon = || ConnectOptions::default().until(Deadline::after(Duration::from_millis(20)));
    // The queue takes one, which is never greeted; the next one does not even get into it.
    let begun = std::time::Instant::now();
    let unanswered = Client::connect_with(&path, &soon()).unwrap_err();
    assert!(matches!(unanswered, ClientError::Timeout), "{unanswered}");
    let mut held = Vec::new();
    while let Ok(socket) = waiting_connection(&path) {
        held.push(socket);
    }
    let unaccepted = Client::connect_with(&path, &soon()).unwrap_err();
    assert!(matches!(unaccepted, ClientError::Timeout), "{unaccepted}");
    let without_deadline = Duration::from_secs(5); // the greeting's own time-out
    assert!(begun.elapsed() < without_deadline, "the deadlines of 20 ms ended both");
    let late = ConnectOptions::default().until(Deadline::at_ns(1));
    assert!(matches!(Client::connect_with(&path, &late).unwrap_err(), ClientError::Timeout));
}

/// A connection that waits to be accepted, as long as there is room for one more.
fn waiting_connection(path: &std::path::Path) -> Result<std::os::fd::OwnedFd, rustix::io::Errno> {
    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}
