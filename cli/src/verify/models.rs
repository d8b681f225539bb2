//! `burst verify --models`: real models against the outputs of reference kernels.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use burst_harness::report::{Column, Table};
use burst_verify::models::{Class, Folder, GoldenReport, GoldenResult, run_goldens_while};
use indicatif::ProgressBar;

use super::import::TfliteImporter;
use super::lease::Service;
use super::ndk::Ndk;
use super::{Args, Said, progress_bar, route};
use crate::out::{columns, counted};
use crate::route::RouteArg;
use crate::signals::Asked;
use crate::{failure, json};

/// Runs the goldens of a folder and says what came of them.
pub(super) fn run(args: &Args, root: &Path, asked: &Asked) -> Result<ExitCode> {
    let routes = routes(args)?;
    let ndk = args.is_ndk().then(|| Ndk::open(args)).transpose()?;
    let mut folder = Folder::open(root)?;
    if !args.model.is_empty() {
        folder.keep(&args.model, root)?;
    }
    let goldens = folder.golden_count();
    if goldens == 0 {
        bail!("{}: the manifest names no goldens", root.display());
    }
    let service = Service {
        socket: args.socket.as_deref(),
        device: &args.device,
        threads: args.threads,
        tracing: None,
    };
    let workers = args.workers(folder.models.len());
    let bar = progress_bar(goldens as u64, "goldens", args.json);
    let live = Live::default();
    let started = Instant::now();
    let ended = run_goldens_while(
        &folder,
        &TfliteImporter,
        (args.repeat.into(), workers),
        || match &ndk {
            Some(ndk) => Ok(routes.iter().map(|route| ndk.route(*route)).collect()),
            None => routes.iter().map(|route| route::open(*route, &service)).collect(),
        },
        |result| live.advance(&bar, result),
        &|| asked.go_on(),
    );
    bar.finish_and_clear();
    let (report, error) = ended;
    let code = match error {
        Some(error) if report.goldens == 0 => return Err(error.into()),
        Some(error) => Err(error.into()),
        None if report.is_sound() => Ok(ExitCode::SUCCESS),
        None => Ok(ExitCode::from(failure::NO)),
    };
    let said = Said { report: &report, threads: args.threads_used(), plans: None };
    asked.tell((&said, args.json.then_some(&json::VERIFY)), code, |out| {
        if report.goldens > 0 {
            write_text(out, &report, &routes, started.elapsed())?;
        }
        Ok(())
    })
}

/// The routes that the command line asks for, each once; the burst where it asks for none.
fn routes(args: &Args) -> Result<Vec<RouteArg>> {
    let in_process = RouteArg::InProcess;
    if args.socket.is_some() && args.mode.iter().any(|mode| mode.names(in_process)) {
        bail!("--mode in-process uses no socket");
    }
    if args.is_ndk() && args.mode.iter().any(|mode| mode.names(in_process)) {
        bail!("--mode in-process uses no library");
    }
    let all = [RouteArg::Burst, RouteArg::Sync, RouteArg::Async, RouteArg::Fenced, in_process];
    let wanted = |route: &RouteArg| match route {
        RouteArg::Burst => args.is_open() || args.wants(*route),
        RouteArg::Sync | RouteArg::Async => args.wants(*route),
        // Not every model has outputs of known sizes: those that have none are for who names it.
        RouteArg::Fenced => args.mode.iter().any(|mode| mode.names(*route)),
        // Who names a service wants to know about that one.
        RouteArg::InProcess => args.wants(*route) && args.socket.is_none() && !args.is_ndk(),
    };
    Ok(all.into_iter().filter(wanted).collect())
}

/// Counts of the live line.
#[derive(Default)]
struct Live {
    done: AtomicUsize,
    failed: AtomicUsize,
}

impl Live {
    fn advance(&self, bar: &ProgressBar, result: &GoldenResult) {
        if result.class == Class::Failed {
            let why = result.why.as_deref().unwrap_or_default();
            tracing::warn!(model = result.model, input = result.input, "failed: {why}");
        }
        let add =
            |counter: &AtomicUsize, count| counter.fetch_add(count, Ordering::Relaxed) + count;
        let done = add(&self.done, 1);
        let failed = add(&self.failed, usize::from(result.class == Class::Failed));
        bar.set_message(format!("{}, {failed} failed", counted(done as u64, "golden")));
        bar.inc(1);
    }
}

fn write_text(
    out: &mut impl Write,
    report: &GoldenReport,
    routes: &[RouteArg],
    took: Duration,
) -> std::io::Result<()> {
    let words = ["model", "input", "class"].map(Column::text);
    let mut table = Table::new([&words[..], &[Column::number("largest difference")]].concat());
    for result in &report.results {
        let difference = result.max_diff.map_or_else(String::new, readable);
        let class = result.class.name().to_owned();
        table.add([result.model.clone(), result.input.clone(), class, difference]);
    }
    writeln!(out, "{}", table.fitted(columns()))?;
    for result in &report.results {
        if let Some(why) = &result.why {
            writeln!(out, "{} {} is {}: {why}", result.model, result.input, result.class.name())?;
        }
    }
    let names: Vec<&str> = routes.iter().map(|route| route.name()).collect();
    let GoldenReport { goldens, strict, fair, failed, .. } = report;
    writeln!(
        out,
        "{} over {}: {strict} strict, {fair} fair, {failed} failed, in {:.1} s",
        counted(*goldens as u64, "golden"),
        names.join(", "),
        took.as_secs_f64()
    )
}

/// Whole numbers as they are, small ones with three digits.
fn readable(difference: f64) -> String {
    if difference.fract() == 0.0 { format!("{difference}") } else { format!("{difference:.2e}") }
}
