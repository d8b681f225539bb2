//! A worker of a crash test: a process that says on its standard output that it got on, or what is wrong, and
//! ends when its input does.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use burst_client::{Client, Deadline, RemoteDevice};

use super::subjects::{self, Subject};
use super::tally::Tally;
use crate::failure;
use crate::random::Random;

/// What a line begins with that says what is wrong.
pub(super) const FAILURE: &str = "failure: ";
/// What a line begins with that says that it got on, and what happened.
pub(super) const STEP: &str = "step";
/// What a line begins with that says what it waits for: that is no step.
pub(super) const WAITS: &str = "waits: ";
/// What a line says of a worker that has taken all there is, and what when it begins to give back.
pub(super) const FULL: &str = "full";
pub(super) const NO_LONGER_FULL: &str = "no longer full";
/// Steps are told this often at most, and so is what is waited for.
const BETWEEN_STEPS: Duration = Duration::from_millis(20);
/// How long is waited before a busy service is asked again.
const PAUSE: Duration = Duration::from_millis(5);
/// How long one execution may take before it is an error of its own. The watcher's patience is shorter.
const LONG: Duration = Duration::from_secs(3600);
/// The most devices of a service that are used.
const DEVICES_MAX: usize = 64;

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Role {
    /// Computes on all devices, over all of the paths, and compares what comes out.
    Infer,
    /// Prepares a model, uses it once or not at all, drops it.
    Prepare,
    /// Takes of one thing after the other all that it may have, and gives it back.
    Hoard,
    /// Takes descriptors until there are none left, stays like that for a while, and gives them back.
    Exhaust,
    /// Has many models, and uses one after the other.
    Many,
    /// Computes with a service that dies and comes back.
    Reconnect,
    /// Deadlines, priorities, executions that are cancelled and connections that end in the middle.
    Mixed,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Infer => "infer",
            Role::Prepare => "prepare",
            Role::Hoard => "hoard",
            Role::Exhaust => "exhaust",
            Role::Many => "many",
            Role::Reconnect => "reconnect",
            Role::Mixed => "mixed",
        }
    }
}

/// A device with a model that it runs.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) device: String,
    /// Its number among the subjects.
    pub(super) subject: usize,
}

/// Everything that a worker has.
pub(super) struct Worker {
    pub(super) socket: PathBuf,
    pub(super) random: Random,
    pub(super) subjects: Vec<Subject>,
    /// What the service is asked to use; everything where nothing is said.
    wanted: Vec<String>,
    /// Every device with every model that it runs whole, once they are known: one list for each device.
    pairs: Vec<Vec<Pair>>,
    /// What happened since the last step that was told.
    tally: Tally,
    stop: Arc<AtomicBool>,
    told: Option<Instant>,
    told_waiting: Option<Instant>,
}

/// Does what `play` does until it is told to stop.
pub(super) fn run(
    socket: &Path,
    seed: u64,
    devices: &[String],
    play: impl FnOnce(&mut Worker) -> Result<()>,
) -> ExitCode {
    let played = worker(socket, seed, devices).and_then(|mut worker| {
        worker.step()?;
        play(&mut worker)?;
        worker.tell()
    });
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nobody listens there is nobody to tell.
            let _ = say(format_args!("{FAILURE}{}", failure::error_text(&error)));
            ExitCode::from(failure::NO)
        }
    }
}

/// A line for who watches.
fn say(line: impl std::fmt::Display) -> Result<()> {
    let mut to = std::io::stdout();
    writeln!(to, "{line}").and_then(|()| to.flush()).context("nobody watches")
}

fn worker(socket: &Path, seed: u64, devices: &[String]) -> Result<Worker> {
    // Whoever takes all that a service has needs as much; who may not have more finds out.
    let _ = burst_server::raise_descriptor_limit();
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stop);
    let listen = move || {
        // Whatever comes is the end, or before it.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        heard.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().name("stop".into()).spawn(listen).context("no thread")?;
    let mut random = Random::new(seed, 0);
    let subjects = subjects::all(&mut random)?;
    Ok(Worker {
        socket: socket.into(),
        random,
        subjects,
        wanted: devices.to_vec(),
        pairs: Vec::new(),
        tally: Tally::default(),
        stop,
        told: None,
        told_waiting: None,
    })
}

impl Worker {
    /// Whether it is to go on.
    pub(super) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Something happened that is counted; it is told with the next step.
    pub(super) fn happened(&mut self, what: &str) {
        self.tally.add(what, 1);
    }

    /// An answer came that was right.
    pub(super) fn answered(&mut self, pair: &Pair) -> Result<()> {
        self.happened("answers");
        self.tally.add(&format!("on:{}", pair.device), 1);
        self.step()
    }

    /// Says that it got on.
    pub(super) fn step(&mut self) -> Result<()> {
        if self.told.is_some_and(|told| told.elapsed() < BETWEEN_STEPS) {
            return Ok(());
        }
        self.tell()
    }

    fn tell(&mut self) -> Result<()> {
        self.told = Some(Instant::now());
        say(format_args!("{STEP}{}", self.tally.take_line()))
    }

    /// Says whether it has taken all there is.
    pub(super) fn is_full(&mut self, is_full: bool) -> Result<()> {
        self.tell()?;
        say(if is_full { FULL } else { NO_LONGER_FULL })
    }

    /// Waits a moment, for the reason that this error gives.
    pub(super) fn pause(&mut self, error: &dyn std::fmt::Display) -> Result<()> {
        if self.told_waiting.is_none_or(|told| told.elapsed() >= BETWEEN_STEPS) {
            self.told_waiting = Some(Instant::now());
            say(format_args!("{WAITS}{error}"))?;
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }

    /// Every device of the service that is wanted, with the models that it runs: a list for each.
    pub(super) fn devices(&mut self, client: &Client) -> Result<Vec<Vec<Pair>>> {
        if self.pairs.is_empty() {
            let mut found = Vec::new();
            let devices = client.devices()?.into_iter().take(DEVICES_MAX);
            let name = |device: &RemoteDevice| burst_hal::Device::name(device).to_owned();
            let is_wanted = |device: &RemoteDevice| {
                self.wanted.is_empty() || self.wanted.contains(&name(device))
            };
            for device in devices.filter(is_wanted) {
                let pairs = self.pairs_of(&device, &name(&device))?;
                if pairs.is_empty() {
                    bail!("device {} runs none of the models of these tests", name(&device));
                }
                found.push(pairs);
            }
            let has = |name: &&String| found.iter().any(|pairs| &&pairs[0].device == name);
            if let Some(missing) = self.wanted.iter().find(|name| !has(name)) {
                bail!("the service has no device {missing}");
            }
            if found.is_empty() {
                bail!("the service has no device");
            }
            self.pairs = found;
            for pairs in &self.pairs {
                // So that who watches knows of each before it has answered.
                self.tally.add(&format!("on:{}", pairs[0].device), 0);
            }
        }
        Ok(self.pairs.clone())
    }

    fn pairs_of(&self, device: &RemoteDevice, name: &str) -> Result<Vec<Pair>> {
        let mut pairs = Vec::new();
        for (subject, one) in self.subjects.iter().enumerate() {
            if device.query_operations(&one.model)?.into_iter().all(|runs| runs) {
                pairs.push(Pair { device: name.to_owned(), subject });
            }
        }
        Ok(pairs)
    }

    /// A device, by chance, with a model that it runs.
    pub(super) fn pair(&mut self, client: &Client) -> Result<Pair> {
        let devices = self.devices(client)?;
        let device = self.random.below(devices.len());
        Ok(self.one_of(&devices[device]))
    }

    /// One of these, by chance.
    pub(super) fn one_of(&mut self, pairs: &[Pair]) -> Pair {
        pairs[self.random.below(pairs.len())].clone()
    }

    /// An input of the pair's model, and the output that is right for it.
    pub(super) fn case(&mut self, pair: &Pair) -> (Vec<u8>, Vec<u8>) {
        self.subjects[pair.subject].case(&mut self.random)
    }

    /// A deadline that only a hang misses.
    pub(super) fn long() -> Deadline {
        Deadline::after(LONG)
    }
}

/// What is wrong with an output.
pub(super) fn check(found: &[u8], right: &[u8]) -> Result<()> {
    if found == right {
        return Ok(());
    }
    let at = found.iter().zip(right).position(|(found, right)| found != right);
    bail!("a wrong answer, of {} bytes the one at {at:?} is the first", right.len())
}
