//! `burst bench model`: what each path to a driver costs, what more threads bring, what copying
//! inputs and outputs takes, and where the time of a model goes.
//!
//! Every path has a trial in each round ([`burst_harness::engine`]), and ratios are taken within a round,
//! so that a change of the machine from one round to the next acts on both sides.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use burst_client::Client;
use burst_driver::{
    CpuDevice, CpuPreparedModel, DeviceOptions, Isa, OperationProfile, Peak, Variant,
};
use burst_hal::{ErrorStatus, ExecutionOptions, PreparedModel, Request};
use burst_harness::engine::median;
use burst_harness::machine::{Machine, Pins, memory_bytes_per_s, peak_memory_kib};
use burst_harness::model::{
    Connection, InProcess, Label, LocalMemory, ModelReport, ModelSubject, ModelsReport,
    OperationTime, Pinned, Profile, Remote, RemoteKind, Report, Roofs, Series, TRIAL, Workload,
    measure_while, paths,
};
use burst_harness::report::Paper;
use burst_harness::{HarnessError, Progress, WaitKind};

use crate::driver_process::DriverProcess;
use crate::route::RouteArg;
use crate::signals::Asked;
use crate::{failure, json, model_file, out, output_file, threads};

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

impl Args {
    /// `--threads`, as far as it is of use.
    pub(crate) fn settle_threads(&mut self) {
        self.common.threads = threads::useful(&self.common.threads);
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(page) = &args.common.report {
        output_file::check("--report", page)?;
    }
    if args.pin && !args.common.threads.contains(&1) {
        bail!("--pin goes with --threads 1: nothing that several threads compute is pinned");
    }
    let workloads = workloads(args)?;
    let asked = Asked::watch(args.json.then_some(&json::BENCH_MODEL))?;
    fmq::warm_up();
    let machine = Machine::detect();
    let mut progress = Progress::default();
    let (mut models, mut ended) = (Vec::with_capacity(workloads.len()), Ok(()));
    for workload in workloads.iter().take_while(|_| asked.go_on()) {
        let (model, how) = one(args, workload, &mut progress, &asked);
        models.extend(model);
        ended = how;
        if ended.is_err() {
            break;
        }
    }
    progress.end();
    // A signal or an error may come before anything of a model was measured.
    models.retain(|model: &ModelReport| !model.paths.is_empty());
    if models.is_empty() && asked.go_on() {
        ended?;
        bail!("there was nothing to measure");
    }
    let client_memory_kib = peak_memory_kib(std::process::id());
    let found =
        ModelsReport { wait: args.common.wait.name().to_owned(), models, client_memory_kib };
    let report = Report { machine, rounds: args.common.rounds, found };
    let has_any = !report.found.models.is_empty();
    if has_any {
        report.write_page(args.common.report.as_deref())?;
    }
    let mut paths = report.found.models.iter().flat_map(|model| &model.paths);
    let same = paths.all(|path| path.outputs.equal);
    let code = if same { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) };
    let code = ended.map(|()| code);
    asked.tell((&report, args.json.then_some(&json::BENCH_MODEL)), code, |to| {
        if has_any {
            let (columns, format) = (out::columns(), args.common.format);
            report.write(&mut Paper { out: to, columns, format })?;
        }
        Ok(())
    })
}

fn workloads(args: &Args) -> Result<Vec<Workload>> {
    let files = args.common.model_files()?;
    if files.is_empty() {
        let (name, bytes) = model_file::read(None)?;
        return Ok(vec![Workload::of_bytes(&name, &bytes)?]);
    }
    let read = |file: &PathBuf| {
        // What is wrong with its bytes is said of its name alone, which others may have too.
        let name = file.display().to_string();
        Workload::read(file).map_err(|error| match error.to_string().contains(&name) {
            true => anyhow::Error::from(error),
            false => anyhow::Error::from(error).context(name),
        })
    };
    files.iter().map(read).collect()
}

/// What was measured of a model, and why that is not all where it is not.
fn one(
    args: &Args,
    workload: &Workload,
    progress: &mut Progress,
    asked: &Asked,
) -> (Option<ModelReport>, Result<()>) {
    let mut show = |round: u32, label: &Label| {
        progress.show(&format!("{}, round {round}: {label}", workload.name));
    };
    let subjects = match subjects(args, workload) {
        Ok(subjects) => subjects,
        Err(error) => return (None, Err(error)),
    };
    let (series, error) =
        measure_while(subjects, &args.common.length(), &mut show, &|| asked.go_on());
    let named = || workload.name.clone();
    let mut ended = error.map_or(Ok(()), |error| Err(error).with_context(named));
    let mut profiled = None;
    if args.profile && asked.go_on() && ended.is_ok() {
        match profile(args, workload, &series).with_context(named) {
            Ok(profile) => profiled = Some(profile),
            Err(error) => ended = Err(error),
        }
    }
    (Some(ModelReport::new(workload, &series, profiled)), ended)
}

/// What is measured. Beside the paths that were asked for, one that shows what it is worth that the
/// service makes the memory of the outputs.
fn subjects<'w>(args: &Args, workload: &'w Workload) -> Result<Vec<Box<dyn ModelSubject + 'w>>> {
    let mut subjects: Vec<Box<dyn ModelSubject + 'w>> = Vec::new();
    let pins = args.pin.then(Pins::take).transpose()?;
    for (at, threads) in args.common.threads.iter().enumerate() {
        let pins = pins.filter(|_| *threads == 1);
        for path in &args.path {
            let remote = |name: &str, route, service_outputs| {
                let kind = RemoteKind { route, wait: args.common.wait.into(), service_outputs };
                let label = Label::new(name, *threads);
                boxed(remote(label, kind, args.common.wait, pins, workload), pins)
            };
            match path {
                RouteArg::InProcess => {
                    let device = Arc::new(device(*threads));
                    let label = Label::new(paths::IN_PROCESS, *threads);
                    let subject = InProcess::new(label, device, workload);
                    subjects
                        .push(boxed(if at == 0 { subject.with_copies()? } else { subject }, pins));
                }
                RouteArg::Sync => subjects.push(remote(paths::SYNC, path.route(), true)),
                RouteArg::Async | RouteArg::Fenced => {
                    subjects.push(remote(path.name(), path.route(), true));
                }
                RouteArg::Burst => {
                    subjects.push(remote(paths::BURST, path.route(), true));
                    if at == 0 {
                        let name = paths::BURST_CLIENT_OUTPUTS;
                        subjects.push(remote(name, path.route(), false));
                    }
                }
            }
        }
    }
    Ok(subjects)
}

fn boxed<'w>(subject: impl ModelSubject + 'w, pins: Option<Pins>) -> Box<dyn ModelSubject + 'w> {
    match pins {
        Some(pins) => Box::new(Pinned::new(subject, pins)),
        None => Box::new(subject),
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
    workload: &Workload,
) -> Remote<'_> {
    let threads = label.threads;
    Remote::new(label, kind, workload, move || {
        let (process, socket) = DriverProcess::start(wait.name(), Variant::CPU.name, threads)
            .map_err(HarnessError::peer)?;
        if let Some(pins) = pins {
            pins.client()?; // the process stays where it was started
        }
        let client = Client::from_socket(socket).map_err(HarnessError::peer)?;
        Ok(Connection { client, guard: Box::new(process) })
    })
}

/// Executions of each round of a profile at the least: the first of them touches new memory.
const PROFILED_FEW: u32 = 5;
/// And at the most.
const PROFILED_MAX: u128 = 1000;
/// Most rounds of a profile; of each operation their median counts, so that what happens in one of them does not move
/// shares.
const PROFILE_ROUNDS: u32 = 25;

/// What so many threads can do at best, all at once.
fn roofs(threads: u32) -> Result<Roofs> {
    let peaks = std::thread::scope(|scope| {
        let measure = || Peak::measure(Isa::detect());
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(measure)).collect();
        let peaks = threads.into_iter().map(|thread| thread.join().ok());
        peaks.collect::<Option<Vec<Peak>>>().context("a thread that measured panicked")
    })?;
    let sum = |of: fn(&Peak) -> f64| peaks.iter().map(of).sum::<f64>() / 1e9;
    Ok(Roofs {
        float_gmacs_per_s: sum(|peak| peak.floats_per_s),
        byte_gmacs_per_s: sum(|peak| peak.bytes_per_s),
        memory_gb_per_s: memory_bytes_per_s() / 1e9,
    })
}

/// Where the time of a model goes, with the first number of threads: in each round some executions with clocks between
/// operations and as many without, so that whatever happens to the machine happens to both.
fn profile(args: &Args, workload: &Workload, series: &[Series]) -> Result<Profile> {
    let quickest = series.iter().filter_map(|one| one.times.p50()).fold(f64::MAX, f64::min);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
    let took = quickest.max(1.0) as u128;
    let fitting = (TRIAL.as_nanos() / took).clamp(PROFILED_FEW.into(), PROFILED_MAX);
    let executions = args.common.executions.unwrap_or(u32::try_from(fitting)?);
    let threads = args.common.threads.first().copied().unwrap_or(1);
    let prepared = device(threads).prepare(&workload.imported.model)?;
    let tensors = LocalMemory::new(workload)?.tensors();
    let rounds = (executions / PROFILED_FEW).clamp(1, PROFILE_ROUNDS);
    let each = (executions / rounds).max(1);
    let mut beside = Vec::new();
    let rounds: Vec<Vec<OperationProfile>> = (0..rounds)
        .map(|_| {
            let profile = prepared.profile(tensors.request(0), each)?;
            beside.push(mean_ns(&prepared, tensors.request(0), each)?);
            Ok(profile)
        })
        .collect::<Result<_>>()?;
    let first = rounds.first().map_or(&[][..], Vec::as_slice);
    let typical = |at: usize| {
        let times = rounds.iter().filter_map(|round| round.get(at));
        median(times.map(|operation| operation.time.as_secs_f64() * 1e9 / f64::from(each)))
    };
    let times: Vec<OperationTime> = (first.iter().enumerate())
        .map(|(at, operation)| OperationTime {
            index: operation.index,
            output: operation.output.as_ref().map(|output| output.to_vec()),
            operation: operation.operation.name().to_owned(),
            kernel: operation.kernel.map(str::to_owned),
            ns: typical(at).unwrap_or(0.0),
            macs: operation.macs,
            bytes: operation.bytes,
            is_float: operation.input.is_some_and(|ty| ty.is_float()),
        })
        .collect();
    let roofs = roofs(threads)?;
    let beside_us = median(beside).unwrap_or(0.0) / 1e3;
    Ok(Profile::new(&times, roofs, beside_us))
}

/// So many executions, one after the other: what one takes, in nanoseconds.
fn mean_ns(prepared: &CpuPreparedModel, request: &Request, executions: u32) -> Result<f64> {
    let options = ExecutionOptions::default();
    let started = Instant::now();
    for _ in 0..executions {
        let status = prepared.execute_synchronously(request, &options).status;
        ensure!(status == ErrorStatus::None, "an execution ended with {status}");
    }
    Ok(started.elapsed().as_secs_f64() * 1e9 / f64::from(executions))
}
