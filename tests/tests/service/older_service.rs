//! A service that does not know the later calls: whoever uses them is told by name what it is too old for, and
//! everything else goes on.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use burst_client::{Client, ClientError, Route, ShmMemory, StreamOptions};
use burst_hal::{
    CACHE_TOKEN_BYTES, Caller, CompilationCache, Device, ErrorStatus, ExecutionOptions,
    FencedOptions, Pool, PrepareOptions, PreparedModel,
};
use burst_server::ServiceOptions;
use burst_wire::control::{
    ClientMessage, Refusal, RefusalCause, Reply, ServerMessage, decode, encode,
};
use burst_wire::socket::{self, Inbox};

use crate::burst_support::{LONG, Private, buffer_for, long, model, request_in};

/// The first call that came after executions without a burst, and bursts.
const LATER: u32 = 14;

/// A service of today behind a relay that knows only the first calls.
struct Older {
    service: Private,
    relay: Vec<JoinHandle<()>>,
}

impl Older {
    fn connect() -> (Older, Client) {
        let (service, to_service) = Private::start(ServiceOptions::default());
        let (ours, to_client) = socket::pair().unwrap();
        let (client, service_end) = (Arc::new(to_client), Arc::new(to_service));
        let there = {
            let (client, service) = (Arc::clone(&client), Arc::clone(&service_end));
            std::thread::spawn(move || calls(&client, &service))
        };
        let back = std::thread::spawn(move || answers(&service_end, &client));
        let client = Client::from_socket(ours).unwrap();
        (Older { service, relay: vec![there, back] }, client)
    }

    fn join(self) {
        self.service.join();
        self.relay.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Carries what the client says, and answers what a service of that time would not know.
fn calls(client: &OwnedFd, service: &OwnedFd) {
    let mut inbox = Inbox::default();
    let mut is_greeted = false;
    while socket::receive(client, &mut inbox).is_ok() {
        let descriptors = inbox.take_descriptors();
        if std::mem::replace(&mut is_greeted, true)
            && let Ok(ClientMessage::Call { id, call }) = decode(inbox.message())
            && call.number() >= LATER
        {
            let words = format!("this service knows no call {}", call.number());
            let refusal = Refusal::new(ErrorStatus::InvalidArgument, &words);
            let outcome = Err(refusal.because(RefusalCause::UnknownCall));
            let reply = encode(&ServerMessage::Reply(Reply { id, outcome })).unwrap();
            let _ = socket::send(client, &reply, &[]);
            continue;
        }
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        if socket::send(service, inbox.message(), &borrowed).is_err() {
            break;
        }
    }
    let _ = rustix::net::shutdown(service, rustix::net::Shutdown::Both);
}

fn answers(service: &OwnedFd, client: &OwnedFd) {
    let mut inbox = Inbox::default();
    while socket::receive(service, &mut inbox).is_ok() {
        let descriptors = inbox.take_descriptors();
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        if socket::send(client, inbox.message(), &borrowed).is_err() {
            break;
        }
    }
    let _ = rustix::net::shutdown(client, rustix::net::Shutdown::Both);
}

#[track_caller]
fn expect_too_old<T>(result: Result<T, ClientError>, what: &str, call: u32) {
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.status(), ErrorStatus::GeneralFailure);
    let words = format!("the service is too old for {what}: this service knows no call {call}");
    assert_eq!(error.to_string(), words);
}

#[test]
fn what_a_service_is_too_old_for_is_said_by_name_and_the_rest_goes_on() {
    let (service, client) = Older::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &PrepareOptions::default()).unwrap();
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    let request = request_in(&memory);
    let (options, caller) = (ExecutionOptions::default(), Caller::default());

    // A launch says so, and its callback once.
    let (tell, told) = channel();
    let callback = {
        let tell = tell.clone();
        move |outcome| tell.send(outcome).unwrap()
    };
    let launched = prepared.start_with(request.clone(), &options, &caller, callback);
    expect_too_old(launched, "asynchronous executions", 14);
    expect_too_old(told.recv_timeout(LONG).unwrap(), "asynchronous executions", 14);
    assert!(told.try_recv().is_err(), "it was told twice");
    let failure = prepared.start(request.clone(), &options).unwrap_err();
    assert_eq!(failure.status, ErrorStatus::GeneralFailure);
    assert!(failure.to_string().contains("too old for asynchronous executions"), "{failure}");
    let fenced = prepared.start_fenced(request.clone(), &[], &FencedOptions::default(), &caller);
    expect_too_old(fenced, "fenced executions", 15);

    let as_model = Arc::clone(&prepared) as Arc<dyn PreparedModel>;
    expect_too_old(device.allocate_buffer(&buffer_for(&as_model)), "buffers of drivers", 21);
    let file = || vec![tempfile::tempfile().unwrap()];
    let cache = CompilationCache { token: [1; CACHE_TOKEN_BYTES], model: file(), data: file() };
    expect_too_old(device.prepare_from_cache(&cache, None), "compilations in files", 20);
    // What only makes a later preparation quicker is left out.
    let kept = device.prepare_caching(&model(), &PrepareOptions::default(), &cache).unwrap();
    assert_eq!(kept.execute(&request, &options, long()).unwrap().result.status, ErrorStatus::None);
    // As a device of the HAL: statuses that each call may have.
    let refused = device.allocate(&buffer_for(&as_model), &caller).err().unwrap();
    assert_eq!(refused.status, ErrorStatus::GeneralFailure);

    // A stream over such a route fails at its first frame, by name; over the others it runs.
    for route in Route::ALL {
        let mut options = StreamOptions::default();
        options.route = route;
        let mut stream = device.stream(&model(), &options).unwrap();
        stream.input(0).fill(5);
        let ran = stream.run(long()).map(drop);
        match route {
            Route::Asynchronous => expect_too_old(ran, "asynchronous executions", 14),
            Route::Fenced => expect_too_old(ran, "fenced executions", 15),
            Route::Synchronous | Route::Burst => {
                ran.unwrap();
                assert_eq!(stream.output(0).unwrap(), [6; 16], "{route}");
            }
        }
    }
    drop((prepared, as_model, kept, device, client));
    service.join();
}
