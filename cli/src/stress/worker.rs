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
use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::{Caller, ErrorStatus, PrepareOptions};
use burst_tasks::Outputs as _;
use burst_tflite::Imported;

use crate::random::Random;
use crate::stream::{InProcess, ModelPath as _};
use crate::{failure, model_file};

/// What a line begins with that says what is wrong.
pub(super) const FAILURE: &str = "failure: ";
/// What a line says that says that it got on.
const STEP: &str = "step";
/// Steps are told this often at most.
const BETWEEN_STEPS: Duration = Duration::from_millis(20);
/// How long one execution may take before it is an error of its own. The watcher's patience is shorter.
const LONG: Duration = Duration::from_secs(3600);
/// Different inputs.
const INPUTS: usize = 8;

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Role {
    /// Computes, over one of the paths, and compares what comes out.
    Infer,
    /// Prepares a model, uses it once, drops it.
    Prepare,
    /// Takes all that it may have, gives it back.
    Hoard,
    /// Has many models, and uses one after the other.
    Many,
    /// Computes with a service that dies and comes back.
    Reconnect,
    /// Deadlines, priorities, connections that end in the middle.
    Mixed,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Infer => "infer",
            Role::Prepare => "prepare",
            Role::Hoard => "hoard",
            Role::Many => "many",
            Role::Reconnect => "reconnect",
            Role::Mixed => "mixed",
        }
    }
}

/// Everything that a worker has.
pub(super) struct Worker {
    pub(super) socket: PathBuf,
    pub(super) random: Random,
    pub(super) imported: Imported,
    /// Devices that run the whole model, once they are known.
    able: Vec<String>,
    /// Inputs, and what the driver in this process makes of them.
    cases: Vec<(Vec<u8>, Vec<u8>)>,
    stop: Arc<AtomicBool>,
    told: Option<Instant>,
}

/// Does what `play` does until it is told to stop.
pub(super) fn run(
    socket: &Path,
    seed: u64,
    play: impl FnOnce(&mut Worker) -> Result<()>,
) -> ExitCode {
    let played = worker(socket, seed).and_then(|mut worker| {
        worker.step()?;
        play(&mut worker)
    });
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nobody listens there is nobody to tell.
            let _ = writeln!(std::io::stdout(), "{FAILURE}{}", failure::error_text(&error));
            ExitCode::from(failure::NO)
        }
    }
}

fn worker(socket: &Path, seed: u64) -> Result<Worker> {
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stop);
    let listen = move || {
        // Whatever comes is the end, or before it.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        heard.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().name("stop".into()).spawn(listen).context("no thread")?;
    let imported = model_file::load(None)?.imported;
    let mut random = Random::new(seed, 0);
    let cases = cases(&imported, &mut random)?;
    Ok(Worker {
        socket: socket.into(),
        random,
        imported,
        able: Vec::new(),
        cases,
        stop,
        told: None,
    })
}

/// Inputs by the seed, each with the output that is right.
fn cases(imported: &Imported, random: &mut Random) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let device = CpuDevice::new(DeviceOptions { threads: 1, ..DeviceOptions::default() });
    let mut here = InProcess::on(&device, imported, PrepareOptions::default(), Caller::default())?;
    let mut cases = Vec::new();
    for _ in 0..INPUTS {
        let input: Vec<u8> = here.input().iter().map(|_| byte(random)).collect();
        here.input().copy_from_slice(&input);
        let (status, _) = here.execute(LONG)?;
        if status != ErrorStatus::None {
            bail!("the driver in this process says {}", status.name());
        }
        cases.push((input, here.output(0)?.to_vec()));
    }
    Ok(cases)
}

fn byte(random: &mut Random) -> u8 {
    u8::try_from(random.below(256)).unwrap_or(0)
}

impl Worker {
    /// Whether it is to go on.
    pub(super) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Says that it got on.
    pub(super) fn step(&mut self) -> Result<()> {
        if self.told.is_some_and(|told| told.elapsed() < BETWEEN_STEPS) {
            return Ok(());
        }
        self.told = Some(Instant::now());
        let mut to = std::io::stdout();
        writeln!(to, "{STEP}").and_then(|()| to.flush()).context("nobody watches")
    }

    /// An input, and the output that is right for it.
    pub(super) fn case(&mut self) -> (Vec<u8>, Vec<u8>) {
        let at = self.random.below(self.cases.len());
        self.cases[at].clone()
    }

    /// One of the devices that run the whole model.
    pub(super) fn device(&mut self, client: &Client) -> Result<RemoteDevice> {
        if self.able.is_empty() {
            for device in client.devices()? {
                if device.query_operations(&self.imported.model)?.into_iter().all(|runs| runs) {
                    self.able.push(burst_hal::Device::name(&device).to_owned());
                }
            }
        }
        if self.able.is_empty() {
            bail!("no device of the service runs the model");
        }
        let at = self.random.below(self.able.len());
        Ok(client.device(&self.able[at])?)
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
