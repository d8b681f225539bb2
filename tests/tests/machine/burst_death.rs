//! Either side killed: the other learns of it at once and keeps nothing.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::{Client, ClientError, Route, StreamOptions, Wait};
use burst_server::{Listener, Service, ServiceOptions, Stop};

use crate::burst_support::{
    self, FakeDevice, long, model, threads_named, wait_for_no_thread_named,
};
use crate::peer;

burst_testing::tests![
    a_client_learns_at_once_that_the_service_was_killed_in_the_middle_of_a_request(),
    a_private_service_ends_with_its_client(),
    a_killed_client_leaves_nothing_behind_and_the_next_one_is_served(),
    everything_is_freed_in_both_ends_when_a_client_closes_in_order(),
    a_service_that_hangs_up_at_any_step_is_a_typed_error(),
];

/// A second process that never outlives its test.
struct Peer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(arguments: &[&str], stdin: Stdio) -> Peer {
        let (child, output) = peer::spawn(arguments, stdin);
        Peer { child, output }
    }

    /// A service at the other end of the client's socket.
    fn serve(role: &str) -> (Peer, OwnedFd) {
        let (ours, theirs) = burst_wire::socket::pair().unwrap();
        let mut peer = Peer::start(&[role], Stdio::from(theirs));
        peer.expect("ready");
        (peer, ours)
    }

    fn stream(path: &Path) -> Peer {
        let mut peer = Peer::start(&["stream", path.to_str().unwrap()], Stdio::null());
        peer.expect("running");
        peer
    }

    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Mappings of queues and pools in this process.
fn shared_mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("/memfd:")).count()
}

fn a_client_learns_at_once_that_the_service_was_killed_in_the_middle_of_a_request() {
    for (route, wait) in
        [(Route::Burst, Wait::Spin), (Route::Burst, Wait::Sleep), (Route::Synchronous, Wait::Sleep)]
    {
        let (mut service, socket) = Peer::serve("serve-stuck");
        let pid = service.child.id();
        let client = Client::from_socket(socket).unwrap();
        assert_eq!(client.driver_pid(), pid);
        let device = client.device("fake").unwrap();
        let mut options = StreamOptions::default();
        options.route = route;
        options.wait = wait;
        let mut stream = device.stream(&model(), &options).unwrap();
        let waiting = std::thread::spawn(move || {
            let error = stream.run(long()).expect_err("nobody answers");
            (error, Instant::now())
        });
        service.expect("begun");
        let killed = Instant::now();
        service.child.kill().unwrap();
        let (error, at) = waiting.join().unwrap();
        let delay = at - killed;
        println!("{route} {wait:?}: told after {delay:?}");
        assert!(matches!(error, ClientError::PeerDied { pid: dead } if dead == pid), "{error}");
        assert!(delay < Duration::from_secs(5), "{delay:?}");
        assert!(!client.is_alive());
        assert!(matches!(client.device_names(), Err(ClientError::PeerDied { .. })));
    }
}

fn a_private_service_ends_with_its_client() {
    let (mut service, socket) = Peer::serve("serve-private");
    let client = Client::from_socket(socket).unwrap();
    let device = client.device("fake").unwrap();
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    stream.run(long()).unwrap();
    drop((stream, device, client));
    assert!(service.child.wait().unwrap().success());
}

fn a_killed_client_leaves_nothing_behind_and_the_next_one_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::new(vec![Arc::new(FakeDevice::default())], ServiceOptions::default());
    let listener = Listener::bind(&path).unwrap();
    let (stopper, stop) = Stop::new().unwrap();
    let serving = std::thread::spawn(move || service.run(&listener, &stop));
    let before = (descriptors(), shared_mappings());
    for round in 0..3 {
        let mut client = Peer::stream(&path);
        assert!(threads_named("burst-") >= 1 && threads_named("client-") >= 1);
        assert!(shared_mappings() > before.1);
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        drop(client);
        wait_for_no_thread_named("burst-");
        wait_for_no_thread_named("client-");
        assert_eq!((descriptors(), shared_mappings()), before, "round {round}");
    }
    drop(stopper);
    serving.join().unwrap().unwrap();
}

fn everything_is_freed_in_both_ends_when_a_client_closes_in_order() {
    let before = (descriptors(), shared_mappings());
    for _ in 0..3 {
        let (service, client) = burst_support::Private::connect();
        let device = client.device("fake").unwrap();
        let prepared = device.prepare(&model(), &Default::default()).unwrap();
        let mut streams: Vec<_> = (0..4)
            .map(|_| {
                burst_client::Stream::new(&prepared, &model(), &StreamOptions::default()).unwrap()
            })
            .collect();
        for stream in &mut streams {
            stream.run(long()).unwrap();
        }
        drop(streams);
        wait_for_no_thread_named("burst-1"); // that of a closed burst
        drop((prepared, device, client));
        service.join();
        assert_eq!((descriptors(), shared_mappings()), before);
        wait_for_no_thread_named("burst-watcher");
    }
}

fn a_service_that_hangs_up_at_any_step_is_a_typed_error() {
    // Before the greeting.
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    drop(theirs);
    let error = Client::from_socket(ours).unwrap_err();
    assert!(matches!(error, ClientError::NotThisProtocol), "{error}");
    // After it.
    let (ours, theirs) = burst_wire::socket::pair().unwrap();
    let greeting = std::thread::spawn(move || {
        let mut inbox = burst_wire::socket::Inbox::default();
        burst_wire::socket::receive(&theirs, &mut inbox).unwrap();
        let none = burst_wire::Features::NONE;
        let hello = burst_wire::control::ServerGreeting::accepting(none, "dies");
        burst_wire::socket::send(&theirs, &hello.encode().unwrap(), &[]).unwrap();
    });
    let client = Client::from_socket(ours).unwrap();
    greeting.join().unwrap();
    let error = client.device_names().unwrap_err();
    assert!(matches!(error, ClientError::PeerDied { .. }), "{error}");
}
