//! A client that writes random bytes over everything it shares, beside an honest one.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use burst_client::{Client, ClientError, Deadline, StreamOptions};
use burst_server::{Listener, Service, ServiceOptions, Stop};
use burst_shm::{Mapping, Memory};
use burst_wire::control::{
    self, Call, ClientMessage, List, ModelBody, PoolSource, SynchronousRequest, WaitStyle,
    WireArgument, WirePrepareOptions,
};
use burst_wire::{DATUM_BYTES, Features};
use fmq::{Producer, QueueConfig};

use crate::burst_support::raw::{RawBurst, RawClient, request, wire_descriptor};
use crate::burst_support::{self, FakeDevice, LONG, long, model, wide_model};

/// A small generator, so that a finding can be repeated from its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}

fn dial(path: &std::path::Path) -> std::os::fd::OwnedFd {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    rustix::net::connect(&socket, &rustix::net::SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

fn mapping_of(fd: std::os::fd::OwnedFd) -> Mapping {
    Mapping::map(&Memory::from_fd(fd).unwrap()).unwrap()
}

/// One burst: some honest traffic, then random words over its queues, packets and pools, in the end
/// over every one of them, with wake-ups in between, so that the service looks.
fn attack(path: &std::path::Path, seed: u64) {
    let mut random = Random(seed);
    let features = Features::DIFFERENCES;
    let mut burst = RawBurst::start_with_features(dial(path), &wide_model(2), 64, features);
    burst.push_both();
    let honest = request(2, true);
    assert_eq!(burst.run(&honest, 2).status, burst_hal::ErrorStatus::None, "seed {seed}");
    let memories = [
        mapping_of(burst.requests.descriptor().unwrap().fds.remove(0)),
        mapping_of(burst.results.descriptor().unwrap().fds.remove(0)),
        mapping_of(burst.input.duplicate_fd().unwrap()),
        mapping_of(burst.output.duplicate_fd().unwrap()),
    ];
    let counters = {
        let descriptor = burst.requests.descriptor().unwrap();
        [0, 1, 3].map(|part: usize| usize::try_from(descriptor.grantors[part].offset).unwrap())
    };
    for _ in 0..200 {
        let word = random.next().to_ne_bytes();
        match random.below(4) {
            // Anything anywhere.
            0 => {
                let memory = &memories[random.below(4)];
                let at = random.below(memory.len() - 8);
                memory.region(at, 8).unwrap().copy_in(0, &word).unwrap();
            }
            // Counters and event words, which most bytes would miss.
            1 => {
                let memory = &memories[random.below(2)];
                let at = counters[random.below(3)];
                memory.region(at, 4).unwrap().copy_in(0, &word[..4]).unwrap();
            }
            // A packet with one byte changed, as a whole or by differences.
            _ => {
                let mut datums = honest.clone();
                if random.below(2) == 0 {
                    datums.truncate(1 + random.below(4));
                    datums[0] = [0; DATUM_BYTES];
                    (datums[0][0], datums[0][4]) = (0x43, u8::try_from(datums.len()).unwrap());
                    for (place, datum) in (0..).zip(&mut datums) {
                        datum[2] = place;
                    }
                }
                let changed = random.below(datums.len());
                datums[changed][random.below(DATUM_BYTES)] = word[0];
                // Full or corrupt by now: both are what is wanted.
                let _ = burst.requests.write(datums.as_flattened());
            }
        }
        let _ = burst.requests.wake();
        let _ = burst.results.wake();
    }
    // Every shared word at once: those of the pools, and then those of the queues.
    for memory in memories.iter().rev() {
        let words = (0..memory.len().div_ceil(8)).flat_map(|_| random.next().to_ne_bytes());
        let bytes: Vec<u8> = words.take(memory.len()).collect();
        memory.region(0, bytes.len()).unwrap().copy_in(0, &bytes).unwrap();
        let _ = burst.requests.wake();
        let _ = burst.results.wake();
    }
}

#[test]
fn random_bytes_in_all_shared_words_disturb_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let service = Service::new(vec![Arc::new(FakeDevice::default())], ServiceOptions::default());
    let (stopper, stop) = Stop::new().unwrap();
    let listener = Listener::bind(&path).unwrap();
    let serving = std::thread::spawn(move || service.run(&listener, &stop));
    let (undisturbed, before) = mpsc::channel();
    let attacked = Arc::new(AtomicBool::new(false));
    let honest = {
        let (path, attacked) = (path.clone(), Arc::clone(&attacked));
        std::thread::spawn(move || {
            let mut honest = Honest::connect(&path);
            undisturbed.send(honest.run_while(|frames| frames < 5000)).unwrap();
            honest.run_while(|frames| !attacked.load(Ordering::SeqCst) || frames < 5000)
        })
    };
    let before = before.recv().expect("an honest client alone is served");
    for seed in 1..=40 {
        attack(&path, 0x9E37_79B9_7F4A_7C15 ^ (seed << 17));
    }
    let start = Instant::now();
    let first = 0xB5 + u64::from(std::process::id());
    println!("random seeds from {first}");
    let mut seed = first;
    while start.elapsed() < random_part() {
        seed += 1;
        attack(&path, seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
    }
    attacked.store(true, Ordering::SeqCst);
    let during = honest.join().expect("undisturbed");
    println!("before the attack: {before}");
    println!("during {} attacks: {during}", 40 + seed - first);
    for times in [&before, &during] {
        assert_eq!((times.errors, times.missed), (0, 0), "an honest client is disturbed");
    }
    drop(stopper);
    serving.join().expect("the service does not panic").unwrap();
}

/// How long attacks with seeds of their own go on: a second, or `HOSTILE_SECONDS`.
fn random_part() -> Duration {
    let seconds = std::env::var("HOSTILE_SECONDS").ok().map(|text| text.parse().expect("seconds"));
    Duration::from_secs(seconds.unwrap_or(1))
}

/// How long an honest client may have to wait.
const HONEST_DEADLINE: Duration = Duration::from_secs(5);

/// A client that counts what goes wrong.
struct Honest(burst_client::Stream);

/// What an honest client saw.
#[derive(Default)]
struct Times {
    nanos: Vec<u128>,
    errors: u64,
    missed: u64,
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        let micros = |share: usize| sorted[(sorted.len() - 1) * share / 100] / 1000;
        let (p50, p99, longest) = (micros(50), micros(99), micros(100));
        write!(
            f,
            "{} honest frames, p50 {p50} µs, p99 {p99} µs, longest {longest} µs, ",
            sorted.len()
        )?;
        let Times { errors, missed, .. } = self;
        write!(f, "{errors} errors, {missed} of the deadline of {HONEST_DEADLINE:?} missed")
    }
}

impl Honest {
    fn connect(path: &std::path::Path) -> Honest {
        let client = Client::connect(path).unwrap();
        let device = client.device("fake").unwrap();
        Honest(device.stream(&model(), &StreamOptions::default()).unwrap())
    }

    /// Sends frames until it is stopped, each with its own bytes.
    fn run_while(&mut self, more: impl Fn(usize) -> bool) -> Times {
        let mut times = Times::default();
        while more(times.nanos.len()) {
            let value = times.nanos.len().to_le_bytes()[0];
            self.0.input(0).fill(value);
            let sent = Instant::now();
            match self.0.run(Deadline::after(HONEST_DEADLINE)) {
                Ok(_) => assert_eq!(self.0.output(0).unwrap(), [value.wrapping_add(1); 16]),
                Err(ClientError::Timeout) => times.missed += 1,
                Err(error) => {
                    eprintln!("an honest client got: {error}");
                    times.errors += 1;
                }
            }
            times.nanos.push(sent.elapsed().as_nanos());
        }
        times
    }
}

/// Honest messages, to be damaged.
fn messages() -> Vec<Vec<u8>> {
    let source = PoolSource::Descriptor { length: 64 };
    let argument = WireArgument {
        has_no_value: false,
        pool_index: 0,
        offset: 0,
        length: 16,
        dimensions: List(vec![1, 4]),
    };
    let body =
        ModelBody { structure_bytes: 64, values_bytes: 64, pool_lengths: List(vec![64, 64]) };
    let queue = Producer::create(&QueueConfig::new(DATUM_BYTES, 16)).unwrap();
    let queue = wire_descriptor(&queue.descriptor().unwrap());
    let options = WirePrepareOptions::from(&burst_hal::PrepareOptions::default());
    [
        Call::ListDevices,
        Call::DeviceInfo { device: 0 },
        Call::SupportedOperations { device: 0, model: body.clone() },
        Call::Prepare { device: 0, model: body, options },
        Call::ShareMemory { memory: 1, length: 64 },
        Call::AllocateMemory { memory: 2, length: 64 },
        Call::ConfigureBurst {
            model: 1,
            request_queue: queue.clone(),
            result_queue: queue,
            features: 0,
            wait: WaitStyle::Sleep,
            depth: 1,
        },
        Call::Execute(SynchronousRequest {
            model: 1,
            inputs: List(vec![argument.clone()]),
            outputs: List(vec![argument]),
            pools: List(vec![source, PoolSource::Shared { memory: 1 }]),
            measure_timing: true,
            deadline: Some(1),
            loop_timeout: None,
        }),
        Call::PushMemory { burst: 1, slot: 1, source },
        Call::CloseBurst { burst: 1 },
    ]
    .into_iter()
    .map(|call| ClientMessage::Call { id: 7, call })
    .chain([ClientMessage::Memories { id: 0, status: 0, lengths: List(vec![64]) }])
    .map(|message| control::encode(&message).unwrap())
    .collect()
}

#[test]
fn damaged_control_messages_never_panic_the_service() {
    let mut random = Random(0x5EED_0000_0000_0001);
    let memory = Memory::create("any", 4096).unwrap();
    let messages = messages();
    for _ in 0..60 {
        let (service, socket) = burst_support::Private::start(ServiceOptions::default());
        let mut client = RawClient::greet(socket);
        client.prepare(&model());
        burst_wire::socket::set_send_timeout(&client.socket, Some(LONG)).unwrap();
        for _ in 0..20 {
            let mut bytes = messages[random.below(messages.len())].clone();
            for _ in 0..random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.next().to_le_bytes()[0];
            }
            let fds = vec![memory.as_fd(); random.below(4)];
            // Hung up on for a message before this one.
            if burst_wire::socket::send(&client.socket, &bytes, &fds).is_err() {
                break;
            }
        }
        drop(client);
        service.join(); // panics with the service
    }
}

#[test]
fn many_clients_with_many_bursts_get_every_result_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("burst.sock");
    let device = FakeDevice::default();
    let controls = Arc::clone(&device.0);
    let service = Service::new(vec![Arc::new(device)], ServiceOptions::default());
    let (stopper, stop) = Stop::new().unwrap();
    let listener = Listener::bind(&path).unwrap();
    let serving = std::thread::spawn(move || service.run(&listener, &stop));
    let (clients, bursts, frames) = (8, 4, 50);
    let threads: Vec<_> = (0..clients)
        .map(|number| {
            let client = Client::connect(&path).unwrap();
            std::thread::spawn(move || run_bursts(&client, number, bursts, frames))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let total = u64::from(clients) * bursts as u64 * u64::from(frames);
    assert_eq!(controls.begun.load(Ordering::SeqCst), total, "lost or run twice");
    drop(stopper);
    serving.join().unwrap().unwrap();
}

fn run_bursts(client: &Client, number: u8, bursts: usize, frames: u8) {
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    std::thread::scope(|scope| {
        for burst in 0..bursts {
            let prepared = &prepared;
            scope.spawn(move || {
                let options = StreamOptions::default();
                let mut stream = burst_client::Stream::new(prepared, &model(), &options).unwrap();
                for frame in 0..frames {
                    let value =
                        number.wrapping_mul(31).wrapping_add(frame) ^ burst.to_le_bytes()[0];
                    stream.input(0).fill(value);
                    stream.run(long()).unwrap();
                    assert_eq!(stream.output(0).unwrap(), [value.wrapping_add(1); 16]);
                }
            });
        }
    });
}
