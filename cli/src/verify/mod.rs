//! `burst verify`: conformance vectors, real models, or random ones, against a driver in another process.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use burst_hal::{OperationType, Route};
use burst_verify::{Plan, Suite, run_while as run_vectors_while, specs};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::route::RouteArg;
use crate::signals::Asked;
use crate::threads::Threads;
use crate::{failure, json};

pub(crate) mod import;
pub(crate) mod lease;
mod mode;
mod models;
mod ndk;
mod random;
pub(crate) mod route;
mod text;

use lease::{RemoteLease, Service};
use mode::Mode;
use ndk::Ndk;
use ndk::plans::Plans;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of vectors: <version>/<spec>.json.gz and .bin.gz.
    #[arg(required_unless_present_any = ["models", "random"])]
    folder: Option<PathBuf>,
    /// Folder of models and the outputs of reference kernels (models/MANIFEST.json names them):
    /// says of each whether it is strict, fair or failed.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["folder", "op", "suite", "one_in"])]
    models: Option<PathBuf>,
    /// With --models: only these models.
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "models")]
    model: Vec<String>,
    /// With --models: how often each golden is run; all runs have to give the same bytes.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "models", value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// How executions reach the driver; in-process is for models only. Default:
    /// every route to a driver process for vectors, burst for models.
    #[arg(long, value_enum, value_delimiter = ',')]
    mode: Vec<Mode>,
    /// With --mode ndk: the library. Default: the libneuralnetworks.so beside this command, or the
    /// one that the system finds.
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// With --mode ndk: name no device, so that the library divides each model among all that it finds.
    #[arg(long, conflicts_with = "device")]
    divided: bool,
    /// Only tests of these operations.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    op: Vec<String>,
    /// Only these suites.
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    suite: Vec<String>,
    /// Only a fixed part of the tests, one in N, spread over all specs: for a quick look.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    one_in: u16,
    #[command(flatten)]
    random: random::RandomArgs,
    /// Socket of a running service; without it private driver processes are started.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Device: of the service, or of the private driver process; `burst devices` lists them.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Tests, or models, that run at once, each over a connection of its own. Default: one per CPU.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    /// `--threads`, as far as it is of use.
    ///
    /// # Errors
    /// It is a number for a service that runs already.
    pub(crate) fn settle_threads(&mut self) -> Result<()> {
        self.threads.settle(self.socket.as_deref())
    }

    /// How many threads compute, unless a service or a library has its own.
    fn threads_used(&self) -> Option<u32> {
        (self.socket.is_none() && !self.is_ndk()).then_some(self.threads.count)
    }

    /// Whether a route is named, or all are.
    fn wants(&self, route: RouteArg) -> bool {
        self.mode.iter().any(|mode| mode.wants(route))
    }

    /// Whether no route is named: nothing, or the library alone.
    fn is_open(&self) -> bool {
        self.mode.iter().all(|mode| *mode == Mode::Ndk)
    }

    /// Whether the C functions are meant, and no service.
    fn is_ndk(&self) -> bool {
        self.mode.contains(&Mode::Ndk)
    }

    /// How many work at once on this many things.
    fn workers(&self, things: usize) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cpus, usize::from).min(things)
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.library.is_some() && !args.is_ndk() {
        bail!("--library goes with --mode ndk");
    }
    if args.divided && !args.is_ndk() {
        bail!("--divided goes with --mode ndk");
    }
    if args.is_ndk() && args.threads.count > 1 {
        bail!(
            "--mode ndk: the library's devices have threads of their own, --threads does nothing"
        );
    }
    if args.is_ndk() && args.socket.is_some() {
        bail!("--mode ndk finds its services by itself: BURST_SOCKET names one");
    }
    if let Some(models) = args.random.models() {
        return random::run(args, models);
    }
    // Before any thread starts, so that none but one gets them.
    let asked = Asked::watch(args.json.then_some(&json::VERIFY))?;
    match (&args.models, &args.folder) {
        (Some(models), _) => models::run(args, models, &asked),
        (None, Some(vectors)) => run_conformance(args, vectors, &asked),
        (None, None) => bail!("neither a folder of vectors nor --models nor --random is given"),
    }
}

fn run_conformance(args: &Args, folder: &Path, asked: &Asked) -> Result<ExitCode> {
    let plan = plan(args)?;
    let ndk = args.is_ndk().then(|| Ndk::open(args)).transpose()?;
    let specs = specs(folder)?;
    let plans = args.divided.then(|| Plans::of(&specs, &plan)).transpose()?;
    let workers = args.workers(specs.len());
    let bar = progress_bar(specs.len() as u64, "files", args.json);
    let live = text::Live::default();
    let progress = |tests, failed| live.advance(&bar, tests, failed);
    let go_on = || asked.go_on();
    let started = Instant::now();
    let done = if let Some(ndk) = &ndk {
        run_vectors_while(&specs, &plan, workers, || Ok(ndk.lease()), progress, &go_on)
    } else {
        let service = Service {
            socket: args.socket.as_deref(),
            device: &args.device,
            threads: args.threads,
            tracing: None,
        };
        let lease = || RemoteLease::open(&service);
        run_vectors_while(&specs, &plan, workers, lease, progress, &go_on)
    };
    bar.finish_and_clear();
    let (report, error) = done;
    let code = match error {
        Some(error) if report.tests == 0 => return Err(error.into()),
        Some(error) => Err(error.into()),
        None if report.is_sound() && report.passed > 0 => Ok(ExitCode::SUCCESS),
        None => Ok(ExitCode::from(failure::NO)),
    };
    if report.tests == 0 && asked.go_on() {
        bail!("{}: no test belongs to these operations and suites", folder.display());
    }
    let said = Said { report: &report, threads: args.threads_used(), plans };
    let shape = args.json.then_some(&json::VERIFY);
    asked.tell((&said, shape), code, |out| {
        if report.tests > 0 {
            text::write(out, &report, started.elapsed())?;
            if report.passed + report.failed == 0 {
                writeln!(out, "nothing was verified: the device supports none of these tests")?;
            }
            if let Some(plans) = &said.plans {
                writeln!(out, "{}", plans.text())?;
            }
        }
        Ok(())
    })
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Said<R> {
    #[serde(flatten)]
    report: R,
    /// How many compute, unless a service or a library has its own.
    threads: Option<u32>,
    /// With `--divided`.
    #[serde(skip_serializing_if = "Option::is_none")]
    plans: Option<Plans>,
}

fn plan(args: &Args) -> Result<Plan> {
    if args.mode.iter().any(|mode| mode.names(RouteArg::InProcess)) {
        bail!("--mode in-process goes with --models");
    }
    let all = [RouteArg::Sync, RouteArg::Async, RouteArg::Burst, RouteArg::Fenced];
    let wanted = |route: &RouteArg| args.is_open() || args.wants(*route);
    let routes: Vec<Route> = all.into_iter().filter(wanted).map(RouteArg::route).collect();
    let mut plan = Plan::everything(&routes);
    plan.one_in = args.one_in.into();
    if !args.suite.is_empty() {
        plan.suites = args.suite.iter().map(|name| suite(name)).collect::<Result<_>>()?;
    }
    if !args.op.is_empty() {
        let ops = args.op.iter().map(|name| operation(name)).collect::<Result<BTreeSet<_>>>()?;
        plan.ops = Some(ops);
    }
    Ok(plan)
}

fn suite(name: &str) -> Result<Suite> {
    let found = Suite::ALL.into_iter().find(|suite| suite.name().eq_ignore_ascii_case(name));
    let Some(suite) = found else {
        let names = Suite::ALL.map(Suite::name).join(", ");
        bail!("--suite {name}: there is no such suite; there are {names}");
    };
    Ok(suite)
}

fn operation(name: &str) -> Result<String> {
    let name = name.to_ascii_uppercase();
    match OperationType::from_name(&name) {
        Some(_) => Ok(name),
        None => bail!("--op {name}: there is no such operation"),
    }
}

/// A bar on standard error while that is a terminal; nothing otherwise.
fn progress_bar(length: u64, things: &str, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    let template = format!("{{bar:24}} {{pos}}/{{len}} {things}  {{msg}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
