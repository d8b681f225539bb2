//! Many clients with many bursts each on one service in a second process: every result is right and
//! comes once; idle bursts cost next to nothing.
//!
//! Runs five seconds; `SOAK_SECONDS=60 cargo test --release -p burst-tests --test machine many_clients`
//! runs a minute.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use burst_client::{Burst, BurstOptions, Client, Stream, StreamOptions, Wait};

use crate::burst_support::{long, model};
use crate::peer;

burst_testing::tests![
    sixty_four_clients_with_four_bursts_each_get_every_result_once(),
    five_hundred_idle_bursts_cost_next_to_nothing(),
    five_hundred_idle_bursts_that_asked_to_be_polled_for_cost_next_to_nothing(),
];

const CLIENTS: u64 = 64;
const BURSTS_EACH: u64 = 4;
const IDLE_BURSTS: usize = 500;
const IDLE_BURSTS_EACH: usize = 50;
/// How long idle bursts are watched.
const WATCH: Duration = Duration::from_secs(3);
/// Share of one processor that all idle bursts together may use.
const IDLE_SHARE_MAX: f64 = 0.01;
/// How long bursts are watched whose clients asked the service to poll.
const WATCH_POLLED: Duration = Duration::from_secs(10);

/// A service in a process of its own.
struct Service {
    process: peer::Service,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Service {
    fn start() -> Service {
        Service::start_as("serve")
    }

    fn start_as(role: &str) -> Service {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("burst.sock");
        let process = peer::Service::start_as(role, &path);
        Service { process, path, _directory: directory }
    }

    /// User and system time so far, in ticks of 10 ms.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.0.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Private memory of the process, in KiB.
    fn private_kib(&self) -> usize {
        let path = format!("/proc/{}/smaps_rollup", self.process.0.id());
        let rollup = std::fs::read_to_string(path).unwrap();
        let field = |name: &str| {
            let line = rollup.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
        };
        field("Private_Dirty:") + field("Private_Clean:")
    }
}

fn soak() -> Duration {
    let seconds = std::env::var("SOAK_SECONDS").ok().map(|text| text.parse().expect("seconds"));
    Duration::from_secs(seconds.unwrap_or(5))
}

/// Requests until `end`, each with contents of its own; gives how many were answered.
fn converse(stream: &mut Stream, burst: u64, end: Instant) -> u64 {
    let mut sent = 0_u64;
    while Instant::now() < end {
        let content = (burst << 32 | sent).to_le_bytes();
        let wanted: Vec<u8> = content.iter().map(|byte| byte.wrapping_add(1)).collect();
        stream.input(0)[..8].copy_from_slice(&content);
        stream.run(long()).unwrap();
        assert_eq!(stream.output(0).unwrap()[..8], wanted, "burst {burst}, request {sent}");
        sent += 1;
    }
    sent
}

fn client(path: &Path, number: u64, start: &Barrier, total: &AtomicU64) {
    let client = Client::connect(path).unwrap();
    let device = client.device("fake").unwrap();
    let mut options = StreamOptions::default();
    options.wait = Wait::Sleep;
    let prepared = device.prepare(&model(), &options.prepare).unwrap();
    let streams = (0..BURSTS_EACH)
        .map(|burst| (number * BURSTS_EACH + burst, Stream::new(&prepared, &model(), &options)));
    std::thread::scope(|scope| {
        for (burst, stream) in streams {
            let mut stream = stream.unwrap();
            scope.spawn(move || {
                start.wait();
                let answered = converse(&mut stream, burst, Instant::now() + soak());
                assert!(answered > 0, "burst {burst} was never served");
                total.fetch_add(answered, Ordering::Relaxed);
            });
        }
    });
}

fn sixty_four_clients_with_four_bursts_each_get_every_result_once() {
    let service = Service::start();
    let total = AtomicU64::new(0);
    let start = Barrier::new(usize::try_from(CLIENTS * BURSTS_EACH).unwrap());
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (path, start, total) = (&service.path, &start, &total);
            scope.spawn(move || client(path, number, start, total));
        }
    });
    let total = total.load(Ordering::Relaxed);
    println!("{total} requests over {} bursts in {:?}", CLIENTS * BURSTS_EACH, soak());
}

fn five_hundred_idle_bursts_cost_next_to_nothing() {
    let service = Service::start();
    let idle = |bursts: &mut Vec<Burst>| {
        let client = Client::connect(&service.path).unwrap();
        let device = client.device("fake").unwrap();
        let prepared = device.prepare(&model(), &Default::default()).unwrap();
        for _ in 0..IDLE_BURSTS_EACH {
            bursts.push(prepared.configure_burst(&BurstOptions::default()).unwrap());
        }
    };
    let mut bursts = Vec::new();
    idle(&mut bursts); // what the first ones cost is not the price of a burst
    let before = service.private_kib();
    for _ in 0..IDLE_BURSTS / IDLE_BURSTS_EACH {
        idle(&mut bursts);
    }
    let grown = service.private_kib() - before;
    assert!(bursts.len() >= IDLE_BURSTS);
    let cpu = service.cpu();
    // Not a handshake: idleness can only be watched for a while.
    std::thread::sleep(WATCH);
    let share = (service.cpu() - cpu).as_secs_f64() / WATCH.as_secs_f64();
    println!(
        "{} idle bursts: {:.2} % of a processor; {:.1} KiB of private memory each (the pages of a \
         thread's stack and its kernel-side tables that were touched, its packet storage, and the \
         session's share)",
        bursts.len(),
        share * 100.0,
        f64::from(u32::try_from(grown).unwrap()) / f64::from(u32::try_from(IDLE_BURSTS).unwrap()),
    );
    assert!(share <= IDLE_SHARE_MAX, "{share}");
    assert!(bursts.iter().all(Burst::is_alive));
}

fn five_hundred_idle_bursts_that_asked_to_be_polled_for_cost_next_to_nothing() {
    let service = Service::start_as("serve-brief-idle");
    let options = BurstOptions::default().waiting(Wait::Spin);
    let mut bursts = Vec::new();
    for _ in 0..IDLE_BURSTS / IDLE_BURSTS_EACH {
        let client = Client::connect(&service.path).unwrap();
        let device = client.device("fake").unwrap();
        let prepared = device.prepare(&model(), &Default::default()).unwrap();
        for _ in 0..IDLE_BURSTS_EACH {
            bursts.push(prepared.configure_burst(&options).unwrap());
        }
    }
    // Not a handshake: far longer than it takes until they are idle and have released everything.
    std::thread::sleep(Duration::from_secs(1));
    let cpu = service.cpu();
    std::thread::sleep(WATCH_POLLED);
    let share = (service.cpu() - cpu).as_secs_f64() / WATCH_POLLED.as_secs_f64();
    println!("{} idle bursts, asked to poll: {:.2} % of a processor", bursts.len(), share * 100.0);
    assert!(share <= IDLE_SHARE_MAX, "{share}");
    assert!(bursts.iter().all(Burst::is_alive));
}
