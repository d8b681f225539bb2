//! The client beside an attack: frames through the built-in model, each answer compared bit by bit with
//! what this process computes itself.

use std::io::BufRead;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use burst_client::{Client, Deadline, Stream, StreamOptions};
use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::session::{HeapAllocator, ModelSession, SessionOptions};
use burst_hal::{ExecutionOptions, Model};
use serde::{Deserialize, Serialize};

use super::child::{Child, HANG, User, say};
use super::models::small_model;
use super::users::{NEIGHBOUR, is_root};

/// The roles: one that stays connected, and one that connects anew for each frame.
pub(super) const STREAM: &str = "stream";
pub(super) const CONNECT: &str = "connect";

/// Frames that it sends in turn.
const FRAMES: usize = 16;
/// How long one answer may take: far more than anybody who streams would wait.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two frames, as a camera has it.
const PACE: Duration = Duration::from_millis(2);
/// Failures that are told in words.
const FAILURES_TOLD: usize = 5;

/// What an honest client saw since its last report.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// Answers, right or wrong.
    pub frames: u64,
    /// Answers that were not those of the model.
    pub wrong: u64,
    /// Frames without an answer.
    pub failed: u64,
    /// Why, of the first ones.
    pub failures: Vec<String>,
    /// From the request to the answer, in microseconds: the median.
    pub p50_us: u64,
    /// The same, of the slowest in a hundred.
    pub p99_us: u64,
    /// The same, of the slowest.
    pub longest_us: u64,
}

impl Report {
    /// Why this is not what an honest client may expect: so many frames, all answered, all right, each
    /// soon enough.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, least: u64, longest: Duration) -> Result<(), String> {
        let is_slow = Duration::from_micros(self.longest_us) > longest;
        if self.frames < least || self.wrong + self.failed > 0 || is_slow {
            return Err(format!("an honest client was not served well: {self:?}"));
        }
        Ok(())
    }
}

/// The process of an honest client.
#[derive(Debug)]
pub struct Honest(Child);

impl Honest {
    /// A client that is connected and has had its first answer.
    ///
    /// # Errors
    /// It never comes.
    pub fn stream(socket: &Path) -> Result<Honest, String> {
        Honest::start(User::Same, STREAM, socket)
    }

    /// The same as another user, where this process can be two.
    ///
    /// # Errors
    /// As [`Honest::stream`].
    pub fn stream_of_neighbour(socket: &Path) -> Result<Honest, String> {
        let user = if is_root() { User::Other(NEIGHBOUR) } else { User::Same };
        Honest::start(user, STREAM, socket)
    }

    /// A client that connects, prepares the model, runs one frame and hangs up, again and again.
    ///
    /// # Errors
    /// The first time takes too long.
    pub fn connect_again_and_again(socket: &Path) -> Result<Honest, String> {
        Honest::start(User::Same, CONNECT, socket)
    }

    fn start(user: User, role: &str, socket: &Path) -> Result<Honest, String> {
        let mut child = Child::start(user, role, &[socket], Stdio::inherit());
        child.hear("ready", HANG)?;
        Ok(Honest(child))
    }

    /// What it saw since it was asked last, once so many more frames have been answered or failed, or so
    /// much time has passed.
    ///
    /// # Errors
    /// It does not answer.
    pub fn report(&mut self, frames: u64, within: Duration) -> Result<Report, String> {
        self.0.say(&format!("{frames} {}", within.as_millis()));
        let line = self.0.hear("report", within + HANG)?;
        serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))
    }
}

/// Frames with the answers to them.
struct Frames {
    model: Model,
    frames: Vec<(Vec<u8>, Vec<u8>)>,
    next: usize,
}

impl Frames {
    fn compute() -> Result<Frames, Box<dyn std::error::Error>> {
        let model = small_model()?;
        let device = CpuDevice::new(DeviceOptions::default());
        let options = SessionOptions::default();
        let mut session = ModelSession::open(&device, &model, &options, Arc::new(HeapAllocator))?;
        let length = usize::try_from(session.tensors().layout().input_bytes())?;
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        let mut frames = Vec::new();
        for _ in 0..FRAMES {
            let mut byte = || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random.to_le_bytes()[3]
            };
            let slot = session.tensors().layout().input_slot(0, 0);
            let input: Vec<u8> = (0..length.min(slot.length as usize)).map(|_| byte()).collect();
            session.write_input(0, &input)?;
            session.run(&ExecutionOptions::default())?;
            let mut output = Vec::new();
            session.read_output(0, &mut output)?;
            frames.push((input, output));
        }
        Ok(Frames { model, frames, next: 0 })
    }

    /// Sends the next frame; gives whether the answer is right.
    fn run(&mut self, stream: &mut Stream) -> Result<bool, burst_client::ClientError> {
        let (input, want) = &self.frames[self.next % FRAMES];
        self.next += 1;
        stream.input(0).copy_from_slice(input);
        stream.run(Deadline::after(PATIENCE))?;
        Ok(stream.output(0)? == want.as_slice())
    }

    fn connect(&self, socket: &Path) -> Result<Stream, burst_client::ClientError> {
        let device = Client::connect(socket)?.device("cpu")?;
        device.stream(&self.model, &StreamOptions::default())
    }
}

/// What was asked for: a report after so many frames, at this time at the latest.
struct Wanted {
    frames: u64,
    until: Instant,
}

/// Reports that are asked for on standard input.
fn questions() -> Receiver<Wanted> {
    let (asked, questions) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            let &[frames, millis] = &numbers[..] else { return };
            let until = Instant::now() + Duration::from_millis(millis);
            if asked.send(Wanted { frames, until }).is_err() {
                return;
            }
        }
    });
    questions
}

/// Counts what happens, and tells it when it is asked for.
struct Tally {
    report: Report,
    micros: Vec<u64>,
    questions: Receiver<Wanted>,
    /// The report to give next, with the frames that were counted when it was asked for.
    wanted: Option<(Wanted, u64)>,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            report: Report::default(),
            micros: Vec::new(),
            questions: questions(),
            wanted: None,
        }
    }

    fn add<E: std::fmt::Display>(&mut self, answer: Result<bool, E>, took: Duration) {
        match answer {
            Ok(is_right) => {
                self.report.frames += 1;
                self.report.wrong += u64::from(!is_right);
                self.micros.push(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
            }
            Err(error) => {
                self.report.failed += 1;
                if self.report.failures.len() < FAILURES_TOLD {
                    self.report.failures.push(format!("after {took:?}: {error}"));
                }
            }
        }
        self.answer();
    }

    fn answer(&mut self) {
        let seen = self.report.frames + self.report.failed;
        if self.wanted.is_none() {
            self.wanted = self.questions.try_recv().ok().map(|wanted| (wanted, seen));
        }
        let Some((wanted, before)) = &self.wanted else { return };
        if seen < before + wanted.frames && Instant::now() < wanted.until {
            return;
        }
        self.wanted = None;
        self.micros.sort_unstable();
        let at = |share: usize| {
            let last = self.micros.len().checked_sub(1)?;
            self.micros.get(last * share / 100).copied()
        };
        let [p50, p99, longest] = [50, 99, 100].map(|share| at(share).unwrap_or(0));
        let mut report = std::mem::take(&mut self.report);
        (report.p50_us, report.p99_us, report.longest_us) = (p50, p99, longest);
        self.micros.clear();
        match serde_json::to_string(&report) {
            Ok(text) => say(&format!("report {text}")),
            Err(error) => say(&format!("report {error}")),
        }
    }
}

/// The role that stays connected.
pub(super) fn stream(socket: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut frames = Frames::compute()?;
    let mut stream = frames.connect(socket)?;
    let mut tally = Tally::new();
    frames.run(&mut stream)?; // the first answer waits for the burst's memories
    say("ready");
    loop {
        let sent = Instant::now();
        let answer = frames.run(&mut stream);
        tally.add(answer, sent.elapsed());
        std::thread::sleep(PACE);
    }
}

/// The role that connects for each frame.
pub(super) fn connect(socket: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut frames = Frames::compute()?;
    let mut tally = Tally::new();
    let mut is_ready = false;
    loop {
        let begun = Instant::now();
        let answer = frames.connect(socket).and_then(|mut stream| frames.run(&mut stream));
        tally.add(answer, begun.elapsed());
        if !std::mem::replace(&mut is_ready, true) {
            say("ready");
        }
        std::thread::sleep(PACE);
    }
}
