//! The other process in tests of two processes: a service or a client that can be killed.
//!
//! `serve-stuck` serves the socket on its standard input with a device that never finishes, and
//! says `begun` when it has an execution. `serve-private` serves it as it should be. `serve PATH`
//! serves all comers at a path, `serve-brief-idle PATH` with an idle time of 0.1 s; `serve-one-model PATH` allows each one prepared model; `serve-cpu PATH`
//! offers the CPU driver. `serve-part PATH NAME OPERATIONS LAST LEVEL` offers a part of it under another name, whose
//! execution of number `LAST` says `begun` and never ends (`part.rs`). `listen-and-hand-over PATH` is a supervisor: it listens at a path, starts
//! `serve-handed` with the socket, which says its process id and `ready`, and ends with its standard
//! input. `tour` asks
//! the service on its standard input for everything once. `stream PATH` connects to a service and
//! runs frames for ever, and says `running` after the first. `launch PATH` launches executions that wait for a fence
//! that never signals, says `launched`, and waits to be killed. `fork-and-connect PATH` is a client of
//! that service and forks a child that becomes another. `drive COUNT spin|adaptive|sleep|sync`
//! is a client with a service of its own, for counting system calls and for a first look at
//! latencies: `strace -f -c burst_peer drive 10000 spin`.
//!
//! Four roles are for a process of another user: `knock PATH COUNT` makes connections that say nothing,
//! `fill PATH COUNT` takes memory over several, `stand PATH COUNT` makes connections to an admin socket
//! that say nothing, `scrape PATH` reads the metrics there.
//!
//! Three roles stop between two steps of a request's way through the queues, say so and wait to be
//! killed: `publish-unwoken` is a client that says `published` when its request is in the queue and
//! the service, which sleeps, is not woken; `leave-unread` one that says `answered` when the answer
//! is there and not read; `answer-unwoken` a service that says `answered` when its answer is in the
//! queue and the client, which sleeps, is not woken.

#[path = "../../tests/burst_support/mod.rs"]
mod burst_support;
#[path = "burst_peer/halfway.rs"]
mod halfway;
#[path = "burst_peer/launching.rs"]
mod launching;
#[path = "burst_peer/part.rs"]
mod part;
#[path = "burst_peer/users.rs"]
mod users;

use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::{Client, Route, StreamOptions, Wait};
use burst_driver::{CpuDevice, DeviceOptions};
use burst_server::{Listener, Service, ServiceOptions, Stop};
use burst_support::tour::tour;
use burst_support::{Controls, FakeDevice, long, model};

fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("serve-stuck"), None) => {
            let controls = Arc::new(Controls::default());
            controls.close_gate();
            let begun = Arc::clone(&controls);
            std::thread::spawn(move || {
                begun.wait_begun(1);
                say("begun");
            });
            serve_stdin(controls);
        }
        (Some("serve-private"), None) => serve_stdin(Arc::new(Controls::default())),
        (Some("serve"), Some(path)) => serve(&path, ServiceOptions::default()),
        (Some("serve-one-model"), Some(path)) => {
            let mut options = ServiceOptions::default();
            options.limits.models = 1;
            serve(&path, options);
        }
        (Some("serve-brief-idle"), Some(path)) => {
            let mut options = ServiceOptions::default();
            options.idle_time = Some(Duration::from_millis(100));
            serve(&path, options);
        }
        (Some("serve-cpu"), Some(path)) => serve_cpu(&path),
        (Some("serve-part"), Some(path)) => {
            let mut next = || arguments.next().expect("name, operations, last and level");
            let (name, operations, last, level) = (next(), next(), next(), next());
            part::serve(&path, &name, &operations, &last, &level);
        }
        (Some("listen-and-hand-over"), Some(path)) => listen_and_hand_over(&path),
        (Some("serve-handed"), None) => serve_handed(),
        (Some("tour"), None) => {
            let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("a socket");
            tour(socket).expect("a service to the end");
        }
        (Some("stream"), Some(path)) => stream(&path),
        (Some("launch"), Some(path)) => launching::launch(&path),
        (Some("fork-and-connect"), Some(path)) => fork_and_connect(&path),
        (Some("publish-unwoken"), None) => halfway::publish_unwoken(),
        (Some("leave-unread"), None) => halfway::leave_unread(),
        (Some("answer-unwoken"), None) => halfway::answer_unwoken(),
        (Some(role @ ("knock" | "fill" | "stand")), Some(path)) => {
            let count = arguments.next().expect("a count").parse().expect("a count");
            match role {
                "knock" => users::knock(&path, count),
                "fill" => users::fill(&path, count),
                _ => users::stand_at_the_desk(&path, count),
            }
        }
        (Some("scrape"), Some(path)) => users::scrape(&path),
        (Some("drive"), Some(count)) => {
            drive(count.parse().expect("a count"), arguments.next().as_deref());
        }
        other => panic!("unknown role {other:?}"),
    }
}

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().expect("the test reads this");
}

fn serve_stdin(controls: Arc<Controls>) {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("a socket");
    let service = Service::new(vec![Arc::new(FakeDevice(controls))], ServiceOptions::default());
    say("ready");
    service.serve_socket(socket).expect("the client speaks the protocol");
}

/// Serves at a path until it is killed.
fn serve(path: &str, options: ServiceOptions) {
    fmq::warm_up(); // as every service does
    let (_stopper, stop) = Stop::new().expect("a pipe");
    let listener = Listener::bind(path).expect("the path is free");
    say("ready");
    let service = Service::new(vec![Arc::new(FakeDevice::default())], options);
    service.run(&listener, &stop).expect("the socket works");
}

/// As systemd does it: the socket is made here, and whoever serves gets it as descriptor 3.
fn listen_and_hand_over(path: &str) {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None);
    let socket = socket.expect("a socket");
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).expect("a short path")).expect("free");
    rustix::net::listen(&socket, 16).expect("a socket");
    let script = "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve-handed";
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program).stdin(Stdio::from(socket));
    let service = command.spawn().expect("a service");
    // The service goes on without its parent, whose part is done.
    std::io::stdin().lines().for_each(drop);
    drop(service);
}

/// Serves at the socket that was handed over until it is killed.
fn serve_handed() {
    let listener = burst_server::systemd::inherited_listener().expect("sound variables");
    let (_stopper, stop) = Stop::new().expect("a pipe");
    println!("{}", std::process::id());
    say("ready");
    let service = Service::new(vec![Arc::new(FakeDevice::default())], ServiceOptions::default());
    service.run(&listener.expect("a socket"), &stop).expect("the socket works");
}

/// Offers the CPU driver at a path until it is killed.
fn serve_cpu(path: &str) {
    let listener = Listener::bind(path).expect("the path is free");
    say("ready");
    let device = CpuDevice::new(DeviceOptions::default());
    burst_server::serve(Arc::new(device), &listener).expect("the socket works");
}

fn stream(path: &str) {
    let client = Client::connect(path).expect("a service");
    let device = client.device("fake").expect("the fake device");
    let mut stream = device.stream(&model(), &StreamOptions::default()).expect("a stream");
    stream.run(long()).expect("a result");
    say("running");
    loop {
        stream.run(long()).expect("a result");
    }
}

fn fork_and_connect(path: &str) {
    let connected = || Client::connect(path).expect("a service").device("fake").expect("a device");
    let works = |device: &burst_client::RemoteDevice, value: u8| {
        let mut stream = device.stream(&model(), &StreamOptions::default()).expect("a stream");
        stream.input(0).fill(value);
        stream.run(long()).expect("a result");
        assert_eq!(stream.output(0).expect("an output"), [value + 1; 16]);
    };
    let parents = connected();
    works(&parents, 1);
    say("parent works");
    let child = burst_testing::run_in_forked_child(|| {
        works(&connected(), 5);
        say("child works");
        0
    });
    assert_eq!(child.expect("a child that ends by itself"), 0);
    works(&parents, 9);
    say("parent still works");
}

fn drive(count: usize, way: Option<&str>) {
    let (ours, theirs) = burst_wire::socket::pair().expect("a pair");
    let mut service = Command::new(std::env::current_exe().expect("this program"))
        .arg("serve-private")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .spawn()
        .expect("a service");
    let client = Client::from_socket(ours).expect("a service");
    let mut options = StreamOptions::default();
    options.wait = match way {
        Some("spin") => Wait::Spin,
        Some("sleep") => Wait::Sleep,
        _ => Wait::default(),
    };
    if way == Some("sync") {
        options.route = Route::Synchronous;
    }
    let device = client.device("fake").expect("the fake device");
    let mut stream = device.stream(&model(), &options).expect("a stream");
    let mut latencies = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        stream.run(long()).expect("a result");
        latencies.push((start.elapsed(), stream.driver_time().expect("measured")));
    }
    drop((stream, device, client));
    service.wait().expect("the service ends with its client");
    let mut sorted: Vec<_> = latencies.iter().map(|(total, _)| *total).collect();
    sorted.sort_unstable();
    let at = |part: usize| sorted[(count - 1) * part / 1000];
    let mut driver: Vec<_> = latencies.iter().map(|(_, driver)| *driver).collect();
    driver.sort_unstable();
    let medians = (at(500), driver[count / 2]);
    say(&format!(
        "{way:?}: p50 {:?} (driver {:?}) p90 {:?} p99 {:?} p99.9 {:?}",
        medians.0,
        medians.1,
        at(900),
        at(990),
        at(999)
    ));
}
