//! `burst bench mlts`: models on pictures and sounds, how long they take and how near their answers are to TFLite's.
//!
//! | file | what |
//! |---|---|
//! | `data.rs`, `crops.rs`, `inputs.rs` | the files, parts of pictures, the inputs of one model made of them |
//! | `contest.rs` | who computes: a driver over each path, LiteRT with its two kinds of kernels |
//! | `accuracy.rs`, `answers.rs`, `alike.rs`, `fair.rs`, `tally.rs`, `verdict.rs` | everybody computes the same; how answers compare |
//! | `latency.rs`, `rate.rs`, `clients.rs` | windows until they agree, minutes without a pause; the highest rate for a p99; many clients |
//! | `one.rs` | one model from its file to its figures |
//! | `report.rs`, `text.rs`, `page.rs` | what was found: the fields of the JSON, tables and sentences, the page |

use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use burst_harness::WaitKind;
use burst_harness::litert::Python;
use burst_harness::machine::Machine;
use burst_harness::report::Format;

use crate::out::{self, counted};
use crate::route::RouteArg;
use crate::signals::Asked;
use crate::threads::Threads;
use crate::{failure, json, output_file};

mod accuracy;
mod alike;
mod answers;
mod clients;
mod contest;
mod crops;
mod data;
mod fair;
mod inputs;
mod latency;
mod one;
mod page;
mod progress;
mod rate;
mod report;
mod tally;
mod text;
mod verdict;

use data::{Crops, DataSet};
use one::Bench;
use report::{Data, Report};

/// A Python with LiteRT, where `--python` names none.
const PYTHON: &str = "BURST_PYTHON";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Model files (.tflite), or folders of them.
    #[arg(value_name = "MODELS", required = true)]
    models: Vec<PathBuf>,
    /// Pictures (.jpg, .png) and sounds (.wav): folders with all below them, or files.
    #[arg(long, value_name = "DIR", required = true)]
    data: Vec<PathBuf>,
    /// What each file shows: lines with its name, then a comma, tab or space, and its class by number or label.
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// In place of whole pictures so many parts of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    crops: Option<u64>,
    /// Which parts these are.
    #[arg(long, default_value_t = 1, requires = "crops")]
    seed: u64,
    /// Stop after so many inputs of each model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// A Python that has the package ai-edge-litert (or tensorflow, or tflite-runtime), to compare with.
    /// Default: that in $BURST_PYTHON, if any.
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Give at most so many inputs, evenly spread, to LiteRT's reference kernels, which are slow; 0: none.
    #[arg(long, value_name = "N")]
    reference_inputs: Option<u64>,
    /// Ways to a driver, several with commas. The first one's outputs are those that all others' must equal.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values_t = [RouteArg::InProcess, RouteArg::Burst, RouteArg::Sync, RouteArg::Async, RouteArg::Fenced]
    )]
    path: Vec<RouteArg>,
    /// How both ends wait for each other.
    #[arg(long, value_enum, default_value_t = WaitKind::Adaptive)]
    wait: WaitKind,
    #[command(flatten)]
    threads: Threads,
    /// Measure times in at most so many windows of 0.3 s, until the last three agree; 0: over the data alone.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    windows: u32,
    /// Let each path compute without a pause for so long, too.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    sustain: Option<u64>,
    /// Look for the highest rate of requests that keeps p99, counted from when each is due, below so many microseconds.
    #[arg(long, value_name = "MICROSECONDS", value_parser = micros)]
    rate_for_p99: Option<Duration>,
    /// Let so many clients of one service compute at once, too; several numbers with commas.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: Vec<u32>,
    /// Write a page with drawings, which needs no other file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Open the page.
    #[arg(long, requires = "report")]
    open: bool,
    /// All figures as tables for a document, or as one for a spreadsheet.
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    format: Format,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    /// `--threads`, as far as it is of use.
    ///
    /// # Errors
    /// None so far: no service that runs already is measured.
    pub(crate) fn settle_threads(&mut self) -> Result<()> {
        self.threads.settle(None)
    }
}

fn micros(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(us) if us > 0.0 && us <= 1e9 => Ok(Duration::from_secs_f64(us / 1e6)),
        _ => Err("expected microseconds, up to a thousand seconds".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let started = Instant::now();
    if let Some(page) = &args.report {
        output_file::check("--report", page)?;
    }
    let named = args.python.clone().or_else(|| std::env::var_os(PYTHON).map(PathBuf::from));
    if args.reference_inputs.is_some() && named.is_none() {
        bail!("--reference-inputs goes with --python: without one there are no reference kernels");
    }
    let crops = args.crops.map(|count| Crops { count, seed: args.seed });
    let mut data = DataSet::read(&args.data, crops)?;
    if let Some(truth) = &args.truth {
        data.take_truth(truth)?;
    }
    let files = model_files(&args.models)?;
    let asked = Asked::watch(args.json.then_some(&json::BENCH_MLTS))?;
    let python = named.map(|program| Python::start(&program)).transpose()?;
    let python = python.map(|python| Rc::new(RefCell::new(python)));
    let machine = Machine::detect();
    let litert = python.as_ref().map(|python| python.borrow().package.clone());
    let bench = Bench { args, data: &data, python, asked: &asked };
    let mut models = Vec::with_capacity(files.len());
    for (file, number) in files.iter().zip(1..) {
        if !asked.go_on() {
            break;
        }
        let mut progress = progress::Progress::start(file, (number, files.len()));
        models.push(bench.model(file, &mut |done, of| progress.show(done, of)));
    }
    let report = Report {
        machine,
        wait: args.wait.name(),
        threads: args.threads.count,
        litert,
        data: Data {
            pictures: data.pictures.len(),
            sounds: data.sounds.len(),
            others: data.others,
            crops: data.crops,
        },
        models,
        seconds: started.elapsed().as_secs_f64(),
    };
    tell(args, &report, &asked)
}

fn tell(args: &Args, report: &Report, asked: &Asked) -> Result<ExitCode> {
    // What was measured is told also where nobody can show the page.
    let mut shown = Ok(());
    if let Some(page) = &args.report
        && !report.models.is_empty()
    {
        std::fs::write(page, report.page()?)
            .with_context(|| format!("cannot write {}", page.display()))?;
        if args.open {
            shown = output_file::show(page);
        }
    }
    let wrong = report.models.iter().any(report::Model::is_wrong);
    let code = ExitCode::from(if wrong { failure::NO } else { 0 });
    let code = shown.map(|()| code);
    asked.tell((report, args.json.then_some(&json::BENCH_MLTS)), code, |to| {
        if !report.models.is_empty() {
            match args.format {
                Format::Text => report.write_text(to)?,
                Format::Markdown => report.write_markdown(to)?,
                Format::Csv => write!(to, "{}", report.figures().csv())?,
            }
        }
        Ok(())
    })
}

/// The files themselves, and the `.tflite` files of folders, by name.
fn model_files(places: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for place in places {
        let what = || format!("cannot read the models {}", place.display());
        if !std::fs::metadata(place).with_context(what)?.is_dir() {
            files.push(place.clone());
            continue;
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(place).with_context(what)? {
            let path = entry.with_context(what)?.path();
            if path.extension().is_some_and(|ending| ending == "tflite") {
                found.push(path);
            }
        }
        if found.is_empty() {
            bail!("{}: no .tflite in this folder", place.display());
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

impl Report {
    fn write_text(&self, to: &mut impl Write) -> Result<()> {
        let Machine { processor, cpus, kernel, load, .. } = &self.machine;
        writeln!(
            to,
            "{processor}, {}, Linux {kernel}; load at the start {load:.2}",
            counted(*cpus as u64, "CPU")
        )?;
        let beside = self.litert.as_ref().map_or_else(
            || "alone".to_owned(),
            |litert| format!("beside {} {}", litert.package, litert.version),
        );
        writeln!(to, "{}; {beside}; {:.0} s", self.data.text(), self.seconds)?;
        for model in &self.models {
            writeln!(to, "\n{}", model.model)?;
            for table in model.tables().iter().filter(|table| !table.is_empty()) {
                writeln!(to, "{}", table.fitted(out::columns()))?;
            }
            for line in model.sentences() {
                writeln!(to, "{line}")?;
            }
        }
        writeln!(to, "\n{}", self.summary().fitted(out::columns()))?;
        for line in self.left_out() {
            writeln!(to, "{line}")?;
        }
        Ok(())
    }
}

impl Report {
    fn write_markdown(&self, to: &mut impl Write) -> Result<()> {
        let Machine { processor, began, version, command, .. } = &self.machine;
        writeln!(
            to,
            "`{command}` (version {version}) on {processor}, {began}: {}\n",
            self.data.text()
        )?;
        writeln!(to, "{}", self.summary().markdown())?;
        for model in &self.models {
            writeln!(to, "\n## {}\n", model.model)?;
            for line in model.sentences() {
                writeln!(to, "- {line}")?;
            }
            for table in model.tables().iter().filter(|table| !table.is_empty()) {
                writeln!(to, "\n{}", table.markdown())?;
            }
        }
        writeln!(to, "\n## Left out\n")?;
        for line in self.left_out() {
            writeln!(to, "- {line}")?;
        }
        Ok(())
    }
}

impl Data {
    /// For people.
    fn text(&self) -> String {
        let (pictures, sounds) = (self.pictures as u64, self.sounds as u64);
        let parts = self.crops.map_or_else(String::new, |crops| {
            format!(", {} cut out by seed {}", counted(crops.count, "part"), crops.seed)
        });
        format!("{}{parts}, {}", counted(pictures, "picture"), counted(sounds, "sound"))
    }
}
