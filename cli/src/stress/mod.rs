//! `burst stress`: crash tests. Each runs a service and workers in processes of their own, watches them from
//! outside, and ends SUCCESS, FAILURE (a wrong answer, or a refusal that should not be), HANG (nobody got on for
//! too long) or CRASH (which process, which signal), with the seed that repeats it. After each the next one runs.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | the nine tests: who works, who is killed |
//! | `watch.rs` | one test, watched |
//! | `process.rs` | a process that is watched |
//! | `worker.rs`, `roles.rs` | what a worker does |
//! | `random.rs` | numbers from a seed |

mod plan;
mod process;
mod roles;
mod watch;
mod worker;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use burst_harness::machine::Machine;
use burst_harness::report::{Cell, Column, Page, Table};
use clap::ValueEnum;
use serde::Serialize;

use crate::signals::{self, Asked};
use crate::{failure, json, out, output_file};
use plan::Test;
use watch::{Outcome, Setting};
use worker::Role;

/// Seconds of one minute.
const MINUTE: f64 = 60.0;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Minutes in all, shared equally by the tests.
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
    /// Another service, which is started as `PROGRAM serve --socket PATH`.
    #[arg(long, value_name = "PROGRAM")]
    service: Option<PathBuf>,
    /// Write a page with the outcomes.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
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
        Ok(minutes) if (0.001..=10_080.0).contains(&minutes) => Ok(minutes),
        _ => Err("expected minutes from 0.001 to 10080".to_owned()),
    }
}

/// What became of every test.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    minutes: f64,
    succeeded: usize,
    tests: Vec<Row>,
}

/// What became of one.
#[derive(Debug, Serialize)]
struct Row {
    test: &'static str,
    #[serde(flatten)]
    outcome: Outcome,
    seconds: f64,
    /// How often workers got on.
    steps: u64,
    /// Processes that were killed on purpose.
    killed: u64,
    /// What repeats it.
    repeat: String,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let (Some(role), Some(socket)) = (args.role, &args.socket) {
        let play = |worker: &mut worker::Worker| roles::play(role, worker);
        return Ok(worker::run(socket, args.seed.unwrap_or(0), play));
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
    let seed = args.seed.unwrap_or_else(seed_of_now);
    let tests: Vec<Test> =
        if args.test.is_empty() { Test::value_variants().to_vec() } else { args.test.clone() };
    #[expect(clippy::cast_precision_loss, reason = "nine tests")]
    let seconds = args.minutes * MINUTE / tests.len() as f64;
    let setting = Setting {
        seed,
        time: Duration::from_secs_f64(seconds),
        patience: Duration::from_secs(args.patience),
        program: std::env::current_exe().context("cannot find this program")?,
        service: args.service.clone(),
    };
    let shape = args.json.then_some(&json::STRESS);
    let asked = Asked::watch(shape)?;
    let mut report = Report { seed, minutes: args.minutes, succeeded: 0, tests: Vec::new() };
    let (mut to, mut ended) = (out::stdout(), Ok(()));
    for test in tests {
        let watched = match watch::watch(test, &setting, &asked) {
            Ok(Some(watched)) => watched,
            Ok(None) => break,
            Err(error) => {
                ended = Err(error);
                break;
            }
        };
        report.succeeded += usize::from(watched.outcome.is_success());
        let row = Row {
            test: test.name(),
            repeat: format!("burst stress --test {} --seed {seed}", test.name()),
            seconds: watched.seconds,
            steps: watched.steps,
            killed: watched.killed,
            outcome: watched.outcome,
        };
        if !args.json {
            writeln!(to, "{}", line(&row))?;
            to.flush()?;
        }
        report.tests.push(row);
    }
    if let Some(page) = &args.report {
        std::fs::write(page, report.page())
            .with_context(|| format!("cannot write {}", page.display()))?;
    }
    let all = report.succeeded == report.tests.len();
    let code = ended.map(|()| ExitCode::from(if all { 0 } else { failure::NO }));
    asked.tell((&report, shape), code, |to| {
        let tests = out::counted(report.tests.len() as u64, "test");
        writeln!(to, "{} of {tests} succeeded; seed {seed}", report.succeeded)?;
        Ok(())
    })
}

/// Another one each time.
fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Short enough to be typed.
    now.as_secs() % 1_000_000
}

fn line(row: &Row) -> String {
    let Row { test, outcome, seconds, steps, killed, repeat } = row;
    let killed = if *killed == 0 { String::new() } else { format!(", {killed} killed") };
    let mut line = format!(
        "{:<8} {test}: {} in {seconds:.1} s{killed}",
        outcome.word(),
        out::counted(*steps, "step")
    );
    if let Some(what) = outcome.what() {
        line += &format!("\n         {what}\n         repeat: {repeat}");
    }
    line
}

impl Report {
    fn page(&self) -> String {
        let how = format!("{} minutes in all, seed {}.", self.minutes, self.seed);
        let mut page = Page::new("Crash tests", "Crash tests", &Machine::detect(), &how);
        let columns = ["test", "outcome", "what"].map(Column::text).into_iter();
        let numbers = ["steps", "seconds", "killed"].map(Column::number);
        let mut table = Table::new(columns.chain(numbers).collect());
        for row in &self.tests {
            let is_good = Some(row.outcome.is_success());
            let text = |text: String| Cell::from(text);
            table.add([
                text(row.test.to_owned()),
                Cell::judged(row.outcome.word(), is_good),
                text(row.outcome.what().unwrap_or_default().to_owned()),
                text(row.steps.to_string()),
                text(format!("{:.1}", row.seconds)),
                text(row.killed.to_string()),
            ]);
        }
        page.table(&table);
        let failed = self.tests.iter().filter(|row| !row.outcome.is_success());
        page.list(&failed.map(|row| row.repeat.clone()).collect::<Vec<_>>());
        page.finish()
    }
}
