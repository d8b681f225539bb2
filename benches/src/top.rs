//! `cargo run --release -p benches -- top`: what a service computes for whoever looks at it, as `burst top` does:
//! three clients with eight bursts, with looks and without, alternating, in one run.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use burst_client::{Client, ClientError, Deadline, Stream, StreamOptions};
use burst_hal::Model;
use burst_harness::HarnessError;
use burst_harness::bounds::{Bounds, Check};
use burst_harness::engine::Spread;
use burst_harness::machine::Machine;
use burst_harness::report::{Column, Table};
use burst_tests::attacks::{Confinement, Service, small_model};
use serde::Serialize;

use crate::checks;

/// How often it is looked, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Rounds of each case: a turn with looks and one without.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Looks in a turn, ten a second.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    looks: u32,
    /// Hold shares of a core to the bounds in this file, such as benches/top.json; one that does not keep to its bound
    /// ends with status 1.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// How many bursts each client has.
const BURSTS: [usize; 3] = [3, 3, 2];
/// Looks in a second.
const RATE: u32 = 10;
/// Between two requests of a burst that runs, as a camera has it.
const PACE: Duration = Duration::from_millis(33);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest answer to a look.
const ANSWER_MAX: u64 = 1 << 20;

/// What the bursts do meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Bursts {
    Idle,
    Running,
}

impl Bursts {
    const ALL: [Bursts; 2] = [Bursts::Idle, Bursts::Running];

    fn name(self) -> &'static str {
        match self {
            Bursts::Idle => "idle",
            Bursts::Running => "running, 30 requests a second each",
        }
    }

    /// The name by which a file of bounds knows it.
    fn check(self) -> String {
        let bursts = if self == Bursts::Idle { "idle" } else { "running" };
        format!("share of a core at {RATE} looks a second, bursts {bursts}")
    }
}

#[derive(Debug, Serialize)]
struct Found {
    machine: Machine,
    clients: usize,
    bursts: usize,
    rounds: u32,
    looks: u32,
    cases: Vec<Case>,
}

/// One case, over all rounds.
#[derive(Debug, Serialize)]
struct Case {
    bursts: Bursts,
    /// What one look cost in microseconds of a core: what all threads of the service computed in a turn with looks,
    /// less that in the one without. Below 0 where turns differ by more than looks cost.
    look_us: Spread,
    /// What the thread that answers computed of that.
    answer_us: Spread,
    /// Parts of a core that the service takes, with looks and without.
    with: Spread,
    without: Spread,
    check: Check,
}

impl Args {
    /// Measures and prints.
    ///
    /// # Errors
    /// The service does not start, refuses, or shows others than the bursts that there are; writing.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        let names = Bursts::ALL.map(Bursts::check);
        let bounds = self.check.as_deref().map(|file| Bounds::read(file, &names)).transpose()?;
        let machine = Machine::detect();
        let service = Service::start(Confinement::default(), &[]).map_err(HarnessError::peer)?;
        let model = small_model().map_err(|error| HarnessError::peer(error.to_string()))?;
        let mut streams =
            streams(&service, &model).map_err(|e| HarnessError::peer(e.to_string()))?;
        let mut cases = Vec::new();
        for bursts in Bursts::ALL {
            let mut case = self.case(&service, &mut streams, bursts)?;
            if let Some(bounds) = &bounds {
                bounds.hold(std::slice::from_mut(&mut case.check));
            }
            cases.push(case);
        }
        let (clients, bursts) = (BURSTS.len(), streams.len());
        let Args { rounds, looks, .. } = *self;
        let found = Found { machine, clients, bursts, rounds, looks, cases };
        if self.json {
            serde_json::to_writer(&mut *out, &found)?;
            writeln!(out)?;
        } else {
            found.write_text(out)?;
        }
        Ok(checks::exit_code(found.cases.iter().map(|case| &case.check)))
    }

    fn case(
        &self,
        service: &Service,
        streams: &mut [Stream],
        bursts: Bursts,
    ) -> Result<Case, HarnessError> {
        let over = AtomicBool::new(false);
        let turns = std::thread::scope(|scope| {
            let _over = Over(&over);
            let running = if bursts == Bursts::Running { streams } else { &mut [] };
            for stream in running {
                let over = &over;
                scope.spawn(move || run_until(stream, over));
            }
            (0..self.rounds).map(|round| self.round(service, round)).collect::<Result<Vec<_>, _>>()
        })?;
        let spread = |of: &dyn Fn(&Turns) -> f64| {
            Spread::of(turns.iter().map(of)).ok_or_else(|| HarnessError::peer("no rounds"))
        };
        let look_us = spread(&|turns| turns.look_seconds(self.looks) * 1e6)?;
        let looks = f64::from(self.looks);
        let answer_us = spread(&|turns| turns.with.answering / looks * 1e6)?;
        // Where bursts run they compute so much more that the difference is mostly theirs.
        let held = if bursts == Bursts::Idle { look_us } else { answer_us };
        let share = held.median * 1e-6 * f64::from(RATE);
        Ok(Case {
            bursts,
            look_us,
            answer_us,
            with: spread(&|turns| turns.with.share())?,
            without: spread(&|turns| turns.without.share())?,
            check: Check::new(bursts.check(), Some(share)),
        })
    }

    /// Both turns; who goes first in one round goes second in the next.
    fn round(&self, service: &Service, round: u32) -> Result<Turns, HarnessError> {
        let turn = |has_looks| self.turn(service, has_looks);
        if round.is_multiple_of(2) {
            let with = turn(true)?;
            Ok(Turns { with, without: turn(false)? })
        } else {
            let without = turn(false)?;
            Ok(Turns { with: turn(true)?, without })
        }
    }

    fn turn(&self, service: &Service, has_looks: bool) -> Result<Turn, HarnessError> {
        let before = (computed(service)?, answering(service));
        let began = Instant::now();
        for at in 1..=self.looks {
            if has_looks {
                look(service.admin())?;
            }
            let due = began + Duration::from_secs(1) / RATE * at;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let seconds = began.elapsed().as_secs_f64();
        let computed = computed(service)?.saturating_sub(before.0).as_secs_f64();
        let answering = answering(service).saturating_sub(before.1).as_secs_f64();
        Ok(Turn { computed, answering, seconds })
    }
}

/// One turn: for so long, of which the service computed so long, over all of its threads, and that part of it on the
/// thread that answers looks.
struct Turn {
    computed: f64,
    answering: f64,
    seconds: f64,
}

impl Turn {
    fn share(&self) -> f64 {
        self.computed / self.seconds
    }
}

struct Turns {
    with: Turn,
    without: Turn,
}

impl Turns {
    /// What one of so many looks cost, where the service would have computed as much in both turns.
    fn look_seconds(&self, looks: u32) -> f64 {
        let expected = self.without.share() * self.with.seconds;
        (self.with.computed - expected) / f64::from(looks)
    }
}

/// Ends what runs when it is dropped, also where a look failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        // Relaxed: the scope joins the threads that look at it.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks again and again until it is over.
fn run_until(stream: &mut Stream, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if let Err(error) = stream.run(Deadline::after(PATIENCE)) {
            eprintln!("benches: a burst: {error}");
            return;
        }
        std::thread::sleep(PACE);
    }
}

/// Every burst of every client, each with its first request done.
fn streams(service: &Service, model: &Model) -> Result<Vec<Stream>, ClientError> {
    let mut streams = Vec::new();
    for bursts in BURSTS {
        let device = Client::connect(service.socket())?.device("cpu")?;
        for _ in 0..bursts {
            let mut stream = device.stream(model, &StreamOptions::default())?;
            stream.run(Deadline::after(PATIENCE))?;
            streams.push(stream);
        }
    }
    Ok(streams)
}

/// User and system time of the service's threads so far: to the nanosecond where the kernel counts so, else in ticks.
fn computed(service: &Service) -> Result<Duration, HarnessError> {
    match service.thread_time(|_| true) {
        Some(time) => Ok(time),
        None => service.cpu_time().map_err(HarnessError::peer),
    }
}

/// The same of the thread that answers.
fn answering(service: &Service) -> Duration {
    service.thread_time(|name| name == "admin").unwrap_or_default()
}

/// Looks once, as `burst top` does: a connection, a question, the whole answer.
fn look(admin: &Path) -> Result<(), HarnessError> {
    let mut socket = UnixStream::connect(admin)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(b"GET /sessions HTTP/1.1\r\nHost: burst\r\n\r\n")?;
    let mut answer = String::new();
    socket.take(ANSWER_MAX).read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let seen: serde_json::Value = serde_json::from_str(body)?;
    let count = |key: &str| seen[key].as_array().map_or(0, Vec::len);
    match (count("sessions"), count("bursts")) {
        (clients, bursts) if clients == BURSTS.len() && bursts == BURSTS.iter().sum::<usize>() => {
            Ok(())
        }
        (clients, bursts) => {
            Err(HarnessError::peer(format!("{clients} clients with {bursts} bursts are shown")))
        }
    }
}

impl Found {
    fn write_text(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        let Machine { processor, cpus, kernel, load, .. } = &self.machine;
        writeln!(
            out,
            "{processor}, {cpus} CPUs, Linux {kernel}, load at the start {load:.2}. {} clients with {} \
             bursts; turns of {} looks, {RATE} a second, and turns as long without. User and system time \
             of the service's threads; medians of {} rounds and their range.",
            self.clients, self.bursts, self.looks, self.rounds
        )?;
        let numbers = ["one look, us", "its answer, us", "of a core with looks, %", "without, %"];
        let numbers = numbers.map(Column::number);
        let mut table = Table::new([&[Column::text("bursts")][..], &numbers].concat());
        for case in &self.cases {
            let Case { bursts, look_us, answer_us, with, without, .. } = case;
            let percent = |share: &Spread| {
                let Spread { median, min, max } = share;
                let of = |part: &f64| part * 100.0;
                Spread { median: of(median), min: of(min), max: of(max) }.text(3)
            };
            let cells = [look_us.text(1), answer_us.text(1), percent(with), percent(without)];
            table.add([vec![bursts.name().to_owned()], cells.to_vec()].concat());
        }
        writeln!(out, "{}", table.text())?;
        let held = checks::table(self.cases.iter().map(|case| (case.bursts.name(), &case.check)));
        if !held.is_empty() {
            writeln!(out, "{}", held.text())?;
        }
        Ok(())
    }
}
