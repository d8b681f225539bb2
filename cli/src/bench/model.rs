//! `burst bench model`: what each path to a driver costs, what more threads bring, what copying
//! inputs and outputs takes, and where the time of a model goes.
//!
//! All paths take turns within each round ([`burst_harness::model`]), and ratios are taken between
//! turns of one round, so that a change of the machine's mood hits both sides.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use burst_client::Client;
use burst_driver::{CpuDevice, DeviceOptions};
use burst_harness::machine::{Machine, Pins};
use burst_harness::model::{
    Connection, InProcess, Label, Lane, Memories, ModelReport, OperationRow, OperationTime, Pinned,
    Remote, RemoteKind, Report, Subject, TURN, Track, measure, operation_rows, page, paths,
    write_text,
};
use burst_harness::{HarnessError, Progress, WaitKind};

use crate::driver_process::DriverProcess;
use crate::route::RouteArg;
use crate::{failure, model_file};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: burst_harness::model::Args,
    /// Ways to a driver, several with commas. The first one's outputs are those that all others'
    /// must equal.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values_t = [RouteArg::InProcess, RouteArg::Burst, RouteArg::Sync]
    )]
    path: Vec<RouteArg>,
    /// Let one thread compute on one CPU on every path, and the client of another process wait on
    /// another; without it the system chooses.
    #[arg(long)]
    pin: bool,
    /// Say where the time goes, operation by operation.
    #[arg(long)]
    profile: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let subjects = subjects(args)?;
    fmq::warm_up();
    let machine = Machine::look();
    let mut progress = Progress::default();
    let models =
        subjects.iter().map(|subject| one(args, subject, &mut progress)).collect::<Result<_>>();
    progress.end();
    let report = Report {
        machine,
        rounds: args.common.rounds,
        wait: args.common.wait.name().to_owned(),
        models: models?,
    };
    if let Some(path) = &args.common.report {
        std::fs::write(path, page(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = std::io::stdout();
    if args.json {
        report.write_json(&mut out)?;
    } else {
        write_text(&report, &mut out)?;
    }
    out.flush()?;
    let same = report.models.iter().flat_map(|model| &model.paths).all(|path| path.outputs.equal);
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) })
}

fn subjects(args: &Args) -> Result<Vec<Subject>> {
    let files = args.common.model_files()?;
    if files.is_empty() {
        let (name, bytes) = model_file::read(None)?;
        return Ok(vec![Subject::of_bytes(&name, &bytes)?]);
    }
    files.iter().map(|file| Ok(Subject::read(file)?)).collect()
}

fn one(args: &Args, subject: &Subject, progress: &mut Progress) -> Result<ModelReport> {
    let mut lanes = lanes(args, subject)?;
    let tracks = measure(&mut lanes, &args.common.length(), &mut |round, label| {
        progress.show(&format!("{}, round {round}: {label}", subject.name));
    });
    let tracks = tracks.with_context(|| subject.name.clone())?;
    drop(lanes);
    let profile = args.profile.then(|| profile(args, subject, &tracks)).transpose()?;
    Ok(ModelReport::new(subject, &tracks, profile))
}

/// Who takes turns. Beside the paths that were asked for, one that shows what it is worth that the
/// service makes the memory of the outputs.
fn lanes<'s>(args: &Args, subject: &'s Subject) -> Result<Vec<Box<dyn Lane + 's>>> {
    let mut lanes: Vec<Box<dyn Lane + 's>> = Vec::new();
    let pins = args.pin.then(Pins::take).transpose()?;
    for (turn, threads) in args.common.threads.iter().enumerate() {
        let pins = pins.filter(|_| *threads == 1);
        for path in &args.path {
            let remote = |name: &str, route, service_outputs| {
                let kind = RemoteKind { route, wait: args.common.wait.into(), service_outputs };
                let label = Label::new(name, *threads);
                boxed(remote(label, kind, args.common.wait, pins, subject), pins)
            };
            match path {
                RouteArg::InProcess => {
                    let device = Arc::new(device(*threads));
                    let label = Label::new(paths::IN_PROCESS, *threads);
                    let lane = InProcess::new(label, device, subject)?;
                    lanes.push(boxed(if turn == 0 { lane.with_copies()? } else { lane }, pins));
                }
                RouteArg::Sync => lanes.push(remote(paths::SYNC, path.route(), true)),
                RouteArg::Burst => {
                    lanes.push(remote(paths::BURST, path.route(), true));
                    if turn == 0 {
                        let name = paths::BURST_CLIENT_OUTPUTS;
                        lanes.push(remote(name, path.route(), false));
                    }
                }
            }
        }
    }
    Ok(lanes)
}

fn boxed<'s>(lane: impl Lane + 's, pins: Option<Pins>) -> Box<dyn Lane + 's> {
    match pins {
        Some(pins) => Box::new(Pinned::new(lane, pins)),
        None => Box::new(lane),
    }
}

fn device(threads: u32) -> CpuDevice {
    let threads = usize::try_from(threads).unwrap_or(usize::MAX);
    CpuDevice::new(DeviceOptions { threads, ..DeviceOptions::default() })
}

fn remote(
    label: Label,
    kind: RemoteKind,
    wait: WaitKind,
    pins: Option<Pins>,
    subject: &Subject,
) -> Remote<'_> {
    let threads = label.threads;
    Remote::new(label, kind, subject, move || {
        let (process, socket) =
            DriverProcess::start(wait.name(), threads).map_err(HarnessError::peer)?;
        if let Some(pins) = pins {
            pins.client()?; // the process stays where it was started
        }
        let client = Client::from_socket(socket).map_err(HarnessError::peer)?;
        Ok(Connection { client, guard: Box::new(process) })
    })
}

/// Executions of a profile at the least: the first of them touches new memory.
const PROFILED_MIN: u128 = 5;
/// And at the most.
const PROFILED_MAX: u128 = 1000;

/// Where the time of a model goes, with the first number of threads.
fn profile(args: &Args, subject: &Subject, tracks: &[Track]) -> Result<Vec<OperationRow>> {
    let quickest = tracks.iter().filter_map(|track| track.times.p50()).fold(f64::MAX, f64::min);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
    let took = quickest.max(1.0) as u128;
    let fitting = (TURN.as_nanos() / took).clamp(PROFILED_MIN, PROFILED_MAX);
    let executions = args.common.executions.unwrap_or(u32::try_from(fitting)?);
    let threads = args.common.threads.first().copied().unwrap_or(1);
    let prepared = device(threads).prepare(&subject.imported.model)?;
    let operations = prepared.profile(&Memories::new(subject)?.request, executions)?;
    let times: Vec<OperationTime> = operations
        .into_iter()
        .map(|operation| OperationTime {
            operation: operation.operation.name().to_owned(),
            kernel: operation.kernel.map(str::to_owned),
            ns: operation.time.as_secs_f64() * 1e9 / f64::from(executions),
            macs: operation.macs,
        })
        .collect();
    Ok(operation_rows(&times))
}
