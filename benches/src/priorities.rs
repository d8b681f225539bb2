//! `cargo run --release -p benches -- priorities`: what an urgent model of a user notices of a less urgent
//! one of the same user that keeps all cores busy. Alone, beside it, and beside it with equal
//! priorities, alternating, in one run.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use burst_client::{Client, ClientError, Deadline, Stream, StreamOptions};
use burst_driver::CpuDevice;
use burst_hal::session::{HeapAllocator, LayoutOptions, SessionLayout, SessionTensors};
use burst_hal::{Caller, Device, ExecutionOptions, Model, PrepareOptions, Priority, Turn};
use burst_harness::HarnessError;
use burst_harness::engine::{Spread, Times};
use burst_harness::machine::Machine;
use burst_harness::report::{Column, Table, time};
use burst_tests::attacks::{Confinement, Service, busy, small_model};
use serde::Serialize;

/// How often, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Frames of the urgent model in each round.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    frames: u32,
    /// Rounds of each case.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Layers of the model that keeps the cores busy: a matrix product of some milliseconds each.
const LAYERS: u32 = 24;
/// Between two frames of the urgent model, as a camera has it.
const PACE: Duration = Duration::from_millis(2);
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the urgent model has beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Beside {
    Nobody,
    LessUrgent,
    EquallyUrgent,
}

impl Beside {
    const ALL: [Beside; 3] = [Beside::Nobody, Beside::LessUrgent, Beside::EquallyUrgent];

    fn name(self) -> &'static str {
        match self {
            Beside::Nobody => "alone",
            Beside::LessUrgent => "beside LOW on all cores",
            Beside::EquallyUrgent => "beside HIGH on all cores",
        }
    }

    fn priority(self) -> Option<Priority> {
        match self {
            Beside::Nobody => None,
            Beside::LessUrgent => Some(Priority::Low),
            Beside::EquallyUrgent => Some(Priority::High),
        }
    }
}

#[derive(Debug, Serialize)]
struct Found {
    machine: Machine,
    frames: u32,
    /// The longest time between two moments at which an execution of the busy model gives way.
    longest_gap_us: f64,
    cases: Vec<Case>,
}

/// One case, over all rounds.
#[derive(Debug, Serialize)]
struct Case {
    beside: Beside,
    p50_us: Spread,
    p99_us: Spread,
    /// Executions of the busy model per second.
    neighbours_rate: Spread,
}

impl Args {
    /// Measures and prints.
    ///
    /// # Errors
    /// The service does not start, or refuses; writing.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        let service = Service::start(Confinement::default(), &[]).map_err(HarnessError::peer)?;
        let model = |made: Result<Model, Box<dyn std::error::Error>>| {
            made.map_err(|error| HarnessError::peer(error.to_string()))
        };
        let (urgent, busy) = (model(small_model())?, model(busy(LAYERS))?);
        let longest_gap_us = longest_gap(&busy)?.as_secs_f64() * 1e6;
        let mut rounds: Vec<Vec<Round>> = Beside::ALL.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.rounds {
            for (case, beside) in rounds.iter_mut().zip(Beside::ALL) {
                case.push(self.round(&service, [&urgent, &busy], beside).map_err(|e| failed(&e))?);
            }
        }
        let cases = rounds.into_iter().zip(Beside::ALL);
        let cases = cases.filter_map(|(rounds, beside)| Case::of(beside, &rounds)).collect();
        let machine = Machine::detect();
        let found = Found { machine, frames: self.frames, longest_gap_us, cases };
        if self.json {
            serde_json::to_writer(&mut *out, &found)?;
            writeln!(out)?;
        } else {
            found.write_text(out)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// So many frames of the urgent model, beside whatever it has beside it.
    fn round(
        &self,
        service: &Service,
        [urgent, busy]: [&Model; 2],
        beside: Beside,
    ) -> Result<Round, ClientError> {
        let over = AtomicBool::new(false);
        let done = AtomicU64::new(0);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut urgent = stream(service, urgent, Priority::High)?;
        let mut neighbours = Vec::new();
        if let Some(priority) = beside.priority() {
            for _ in 0..cores {
                neighbours.push(stream(service, busy, priority)?);
            }
        }
        urgent.run(Deadline::after(PATIENCE))?; // the first answer waits for the burst's memories
        std::thread::scope(|scope| {
            let _over = Over(&over);
            for mut neighbour in neighbours {
                let (over, done) = (&over, &done);
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        if let Err(error) = neighbour.run(Deadline::after(PATIENCE)) {
                            eprintln!("benches: a neighbour: {error}");
                            return;
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let began = Instant::now();
            let mut times = Vec::new();
            for _ in 0..self.frames {
                std::thread::sleep(PACE);
                let sent = Instant::now();
                urgent.run(Deadline::after(PATIENCE))?;
                times.push(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
            let seconds = began.elapsed().as_secs_f64();
            #[expect(clippy::cast_precision_loss, reason = "a count of executions")]
            let rate = done.load(Ordering::Relaxed) as f64 / seconds;
            Ok(Round { times: Times::new(times), rate })
        })
    }
}

/// Ends the neighbours when it is dropped, also where the urgent model failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        // Relaxed: the scope joins the threads that look at it.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One round of one case.
struct Round {
    times: Times,
    /// Executions of the neighbours per second.
    rate: f64,
}

impl Case {
    fn of(beside: Beside, rounds: &[Round]) -> Option<Case> {
        let quantile = |q: f64| {
            let us = rounds.iter().filter_map(|round| round.times.quantile(q));
            Spread::of(us.map(|ns| ns / 1e3))
        };
        let neighbours_rate = Spread::of(rounds.iter().map(|round| round.rate))?;
        Some(Case { beside, p50_us: quantile(0.5)?, p99_us: quantile(0.99)?, neighbours_rate })
    }
}

fn failed(error: &ClientError) -> HarnessError {
    HarnessError::peer(error.to_string())
}

fn stream(service: &Service, model: &Model, priority: Priority) -> Result<Stream, ClientError> {
    let mut options = StreamOptions::default();
    options.prepare.priority = priority;
    Client::connect(service.socket())?.device("cpu")?.stream(model, &options)
}

/// Notes how long it was not called.
#[derive(Debug)]
struct Gaps {
    began: Instant,
    /// When it was called last, and the longest time between two calls, in nanoseconds.
    last: AtomicU64,
    longest: AtomicU64,
}

impl Turn for Gaps {
    fn give_way(&self) {
        // Relaxed: one thread computes and calls; the other one looks when it has ended.
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let gap = now - self.last.swap(now, Ordering::Relaxed).min(now);
        self.longest.fetch_max(gap, Ordering::Relaxed);
    }
}

/// The longest time for which an execution of this model does not give way, on an idle machine.
fn longest_gap(model: &Model) -> Result<Duration, HarnessError> {
    let text = |error: &dyn std::fmt::Display| HarnessError::peer(error.to_string());
    let prepared = CpuDevice::default()
        .prepare_model(model, &PrepareOptions::default())
        .map_err(|failure| text(&failure))?;
    let gaps = Arc::new(Gaps {
        began: Instant::now(),
        last: AtomicU64::new(0),
        longest: AtomicU64::new(0),
    });
    let caller = Caller::default().with_turn(Arc::clone(&gaps) as _);
    let layout = SessionLayout::new(model, &LayoutOptions::default()).map_err(|e| text(&e))?;
    let tensors = SessionTensors::allocate(layout, &HeapAllocator).map_err(|e| text(&e))?;
    let request = tensors.request(0);
    for _ in 0..3 {
        // The first execution also makes its working memory.
        gaps.longest.store(0, Ordering::Relaxed);
        gaps.give_way();
        prepared.execute_for(request, &ExecutionOptions::default(), &caller);
    }
    Ok(Duration::from_nanos(gaps.longest.load(Ordering::Relaxed)))
}

impl Found {
    fn write_text(&self, out: &mut impl Write) -> Result<(), HarnessError> {
        let Machine { processor, cpus, kernel, load, .. } = &self.machine;
        writeln!(
            out,
            "{processor}, {cpus} CPUs, Linux {kernel}, load at the end {load:.2}. {} frames of the \
             built-in model with priority HIGH a round, one every 2 ms, from the request to the \
             answer; medians of rounds and their range. The neighbours are one burst per core of the \
             same user, another connection each.",
            self.frames
        )?;
        let names = ["p50 us", "p99 us", "neighbours' executions/s"].map(Column::number);
        let mut table = Table::new([&[Column::text("the urgent model")][..], &names].concat());
        for case in &self.cases {
            let Case { beside, p50_us, p99_us, neighbours_rate } = case;
            let numbers = [p50_us.text(0), p99_us.text(0), neighbours_rate.text(1)];
            table.add([vec![beside.name().to_owned()], numbers.to_vec()].concat());
        }
        writeln!(out, "{}", table.text())?;
        writeln!(
            out,
            "The busy model does not give way for {} at most.",
            time(self.longest_gap_us * 1e3)
        )?;
        Ok(())
    }
}
