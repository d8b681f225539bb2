//! `burst verify`: conformance vectors, or real models, against a driver in another process.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use burst_hal::{OperationType, Route};
use burst_verify::{Plan, Suite, run as run_vectors, specs};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure;
use crate::route::{RouteArg, RouteFilter};
use crate::threads::Threads;

pub(crate) mod import;
pub(crate) mod lease;
mod models;
pub(crate) mod route;
mod text;

use lease::{RemoteLease, Service};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of vectors: <version>/<spec>.json.gz and .bin.gz.
    #[arg(required_unless_present = "models")]
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
    /// How executions reach the driver; in-process is for models only. Default: every route to a
    /// driver process for vectors, burst for models.
    #[arg(long, value_enum, value_delimiter = ',')]
    mode: Vec<RouteFilter>,
    /// Only tests of these operations.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    op: Vec<String>,
    /// Only these suites.
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    suite: Vec<String>,
    /// Only a fixed part of the tests, one in N, spread over all specs: for a quick look.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    one_in: u16,
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
    /// Whether a route is named, or all are.
    fn wants(&self, route: RouteArg) -> bool {
        self.mode.iter().any(|mode| mode.wants(route))
    }

    /// How many work at once on this many things.
    fn workers(&self, things: usize) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cpus, usize::from).min(things)
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    args.threads.check(args.socket.as_deref())?;
    match (&args.models, &args.folder) {
        (Some(models), _) => models::run(args, models),
        (None, Some(vectors)) => run_conformance(args, vectors),
        (None, None) => bail!("neither a folder of vectors nor --models is given"),
    }
}

fn run_conformance(args: &Args, folder: &Path) -> Result<ExitCode> {
    let plan = plan(args)?;
    let specs = specs(folder)?;
    let service =
        Service { socket: args.socket.as_deref(), device: &args.device, threads: args.threads };
    let workers = args.workers(specs.len());
    let bar = progress_bar(specs.len() as u64, "files", args.json);
    let live = text::Live::default();
    let started = Instant::now();
    let done = run_vectors(
        &specs,
        &plan,
        workers,
        || RemoteLease::open(&service),
        |tests, failed| live.advance(&bar, tests, failed),
    );
    bar.finish_and_clear();
    let report = done?;
    if report.tests == 0 {
        bail!("{}: no test belongs to these operations and suites", folder.display());
    }
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        text::write(&mut out, &report, started.elapsed())?;
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) })
}

fn plan(args: &Args) -> Result<Plan> {
    if args.mode.iter().any(|mode| mode.names(RouteArg::InProcess)) {
        bail!("--mode in-process goes with --models");
    }
    let all = [RouteArg::Sync, RouteArg::Async, RouteArg::Burst, RouteArg::Fenced];
    let wanted = |route: &RouteArg| args.mode.is_empty() || args.wants(*route);
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
