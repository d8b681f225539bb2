//! `burst stress`: crash tests. Each runs a service and workers in processes of their own, watches them from
//! outside, and ends SUCCESS, FAILURE (a wrong answer, or a refusal that should not be), HANG (nobody got on for
//! too long) or CRASH (which process, which signal), with the seed that repeats it. After each the next one runs.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | the nine tests: who works, who is killed, what has to have happened |
//! | `watch.rs`, `ending.rs` | one test, watched, and its end |
//! | `process.rs` | a process that is watched |
//! | `outcome.rs`, `report.rs` | what became of a test, and how that is told |
//! | `worker.rs` | a worker's process |
//! | `roles.rs`, `hoard.rs`, `mixed.rs` | what workers do |
//! | `using.rs` | what they all do with a service |
//! | `subjects.rs`, `frame.rs` | models, and memory for an execution |
//! | `tally.rs` | how often what happened |

mod ending;
mod frame;
mod hoard;
mod mixed;
mod outcome;
mod plan;
mod process;
mod report;
mod roles;
mod subjects;
mod tally;
mod using;
mod watch;
mod worker;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::signals::{self, Asked};
use crate::{device_names, failure, json, out, output_file};
use plan::Test;
use report::{Report, Row};
use watch::{Seen, Setting};
use worker::Role;

/// Seconds of one minute.
const MINUTE: f64 = 60.0;
/// The fewest minutes that can be asked for, and the most.
const MINUTES_MIN: f64 = 0.001;
const MINUTES_MAX: f64 = 10_080.0;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Minutes in all, shared equally by the tests, whatever the number of devices.
    #[arg(long, default_value_t = 5.0, value_parser = minutes)]
    minutes: f64,
    /// Only these tests, several with commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    test: Vec<Test>,
    /// What a run said, to repeat it; without it another one each time.
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds in which nothing got on: a HANG.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience: u64,
    /// Devices to use, several with commas. Default: all that the service has.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    device: Vec<String>,
    /// Another service, which is started as `PROGRAM serve --socket PATH`.
    #[arg(long, value_name = "PROGRAM")]
    service: Option<PathBuf>,
    /// Write a page with the outcomes.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Open the page.
    #[arg(long, requires = "report")]
    open: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// What this process does in a test.
    #[arg(long, hide = true, value_enum, requires = "socket")]
    role: Option<Role>,
    /// Becomes this program as a service: this process keeps signals from the others that it starts, which know how
    /// to wait for them; of another program that is not known.
    #[arg(long, hide = true, requires = "socket")]
    become_service: Option<PathBuf>,
    /// The service that a worker uses, or the one that this process becomes.
    #[arg(long, hide = true)]
    socket: Option<PathBuf>,
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (MINUTES_MIN..=MINUTES_MAX).contains(&minutes) => Ok(minutes),
        _ => Err("expected minutes from 0.001 to 10080".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let (Some(role), Some(socket)) = (args.role, &args.socket) {
        let play = |worker: &mut worker::Worker| roles::play(role, worker);
        return Ok(worker::run(socket, args.seed.unwrap_or(0), &args.device, play));
    }
    if let (Some(program), Some(socket)) = (&args.become_service, &args.socket) {
        signals::unblock()?;
        let error = Command::new(program).arg("serve").arg("--socket").arg(socket).exec();
        return Err(error).with_context(|| format!("cannot start {}", program.display()));
    }
    if let Some(page) = &args.report {
        output_file::check("--report", page)?;
    }
    if let Some(service) = &args.service {
        std::fs::metadata(service).with_context(|| format!("--service {}", service.display()))?;
    }
    if args.service.is_none() {
        device_names::variants(&args.device)?;
    }
    run_tests(args)
}

fn run_tests(args: &Args) -> Result<ExitCode> {
    let seed = args.seed.unwrap_or_else(seed_of_now);
    let tests: Vec<Test> =
        if args.test.is_empty() { Test::value_variants().to_vec() } else { args.test.clone() };
    let mut left = Duration::from_secs_f64(args.minutes * MINUTE);
    let mut setting = Setting {
        seed,
        time: Duration::ZERO,
        patience: Duration::from_secs(args.patience),
        program: std::env::current_exe().context("cannot find this program")?,
        service: args.service.clone(),
        devices: args.device.clone(),
    };
    let shape = args.json.then_some(&json::STRESS);
    let asked = Asked::watch(shape)?;
    let mut report = Report { seed, minutes: args.minutes, succeeded: 0, tests: Vec::new() };
    let (mut to, mut ended) = (out::stdout(), Ok(()));
    for (at, test) in tests.iter().enumerate() {
        // One that takes longer than its share takes it from those after it.
        setting.time = share(left, tests.len() - at);
        let seen = match watch::watch(*test, &setting, &asked) {
            Ok(Some(seen)) => seen,
            Ok(None) => break,
            Err(error) => {
                ended = Err(error);
                break;
            }
        };
        left = left.saturating_sub(Duration::from_secs_f64(seen.seconds));
        let row = row(*test, seen, &setting, args);
        report.succeeded += usize::from(row.outcome.is_success());
        if !args.json {
            writeln!(to, "{}", row.text())?;
            to.flush()?;
        }
        report.tests.push(row);
    }
    // The outcomes are told also where nobody can show the page.
    let mut shown = Ok(());
    if let Some(page) = &args.report {
        std::fs::write(page, report.page())
            .with_context(|| format!("cannot write {}", page.display()))?;
        if args.open && !report.tests.is_empty() {
            shown = output_file::show(page);
        }
    }
    let all = report.succeeded == report.tests.len();
    let code = ended.and(shown).map(|()| ExitCode::from(if all { 0 } else { failure::NO }));
    asked.tell((&report, shape), code, |to| {
        let tests = out::counted(report.tests.len() as u64, "test");
        writeln!(to, "{} of {tests} succeeded; seed {seed}", report.succeeded)?;
        Ok(())
    })
}

/// What each of so many tests has of the time that is left.
fn share(left: Duration, tests: usize) -> Duration {
    left / u32::try_from(tests).unwrap_or(u32::MAX).max(1)
}

fn row(test: Test, seen: Seen, setting: &Setting, args: &Args) -> Row {
    let Seen { outcome, seconds, steps, killed, counts } = seen;
    // That of this test alone, as short as it can be typed; what is less than the least is the least.
    let minutes = (setting.time.as_secs_f64() / MINUTE).max(MINUTES_MIN);
    let minutes = (minutes * 1000.0).round() / 1000.0;
    let (service, patience) = (args.service.as_deref(), args.patience);
    let repeat =
        report::repeat(test.name(), setting.seed, minutes, patience, &args.device, service);
    Row { test: test.name(), outcome, seed: setting.seed, seconds, steps, killed, counts, repeat }
}

/// Another one each time.
fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Short enough to be typed.
    now.as_secs() % 1_000_000
}
