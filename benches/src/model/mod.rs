//! `cargo run --release -p benches -- model`: our driver beside LiteRT on the same models, with the
//! same inputs, taking turns in one run; our reference kernels and the burst beside them.
//!
//! | file | what |
//! |---|---|
//! | `litert.py`, `litert.rs` | LiteRT in a Python process, as a lane |
//! | `driver.rs` | a driver process, for the burst |
//! | `class.rs` | what is expected of which model |
//! | `comparison.rs` | what was found: ratios, JSON, tables |

mod class;
mod comparison;
mod driver;
mod litert;

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use burst_client::StreamPath;
use burst_harness::machine::Machine;
use burst_harness::model::{
    InProcess, Label, Lane, ModelReport, Options, Remote, RemoteKind, Subject, measure, paths,
};
use burst_harness::{HarnessError, Progress, WaitKind};

pub use class::Class;
pub use comparison::{Compared, Comparison, REFERENCE, ThreadRatio};
pub use driver::serve_driver_if_asked;
pub use litert::{LiteRt, Package, Python};

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Model files (.tflite); without any, the one that this repository trained.
    #[arg(value_name = "MODEL", conflicts_with = "models")]
    files: Vec<PathBuf>,
    /// Every .tflite file of a folder.
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    /// A Python that has the package ai-edge-litert (or tensorflow, or tflite-runtime).
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Numbers of threads that compute, several with commas.
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [1, 2],
        value_parser = clap::value_parser!(u32).range(1..=64)
    )]
    threads: Vec<u32>,
    /// How both ends of the burst wait.
    #[arg(long, value_enum, default_value_t = WaitKind::Adaptive)]
    wait: WaitKind,
    /// Rounds in which everybody takes a turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Executions per turn; without it as many as fit into 0.3 seconds.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    executions: Option<u32>,
    /// Leave our reference kernels out: they take minutes where others take milliseconds.
    #[arg(long)]
    no_reference: bool,
    /// Write a page with drawings, which needs no other file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Print the table as Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// The model in this repository.
const OWN_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/shapes.tflite");

impl Args {
    /// Measures and prints.
    ///
    /// # Errors
    /// No Python or no package; a model of which nothing can be run; whatever stops a lane.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        let python = Rc::new(RefCell::new(Python::start(&self.python)?));
        let subjects: Vec<Subject> =
            self.files()?.iter().map(|file| Subject::read(file)).collect::<Result<_, _>>()?;
        fmq::warm_up();
        let machine = Machine::look();
        let mut progress = Progress::default();
        let models = subjects.iter().map(|subject| self.one(subject, &python, &mut progress));
        let models: Result<Vec<Compared>, HarnessError> = models.collect();
        progress.end();
        let litert = python.borrow().package.clone();
        let comparison = Comparison { machine, rounds: self.rounds, litert, models: models? };
        if let Some(path) = &self.report {
            std::fs::write(path, comparison.page(self.wait)?)?;
        }
        match (self.json, self.markdown) {
            (true, _) => comparison.write_json(out)?,
            (_, true) => comparison.write_markdown(out)?,
            _ => comparison.write_text(out)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn files(&self) -> Result<Vec<PathBuf>, HarnessError> {
        let Some(folder) = &self.models else {
            let own = || vec![PathBuf::from(OWN_MODEL)];
            return Ok(if self.files.is_empty() { own() } else { self.files.clone() });
        };
        let mut files = models_of(folder).map_err(|error| {
            HarnessError::peer(format!("cannot read the folder {}: {error}", folder.display()))
        })?;
        if files.is_empty() {
            let nothing = format!("{} has no .tflite files", folder.display());
            return Err(HarnessError::peer(nothing));
        }
        files.sort();
        Ok(files)
    }

    fn one(
        &self,
        subject: &Subject,
        python: &Rc<RefCell<Python>>,
        progress: &mut Progress,
    ) -> Result<Compared, HarnessError> {
        let named = |error| HarnessError::peer(format!("{}: {error}", subject.name));
        let not_comparable =
            LiteRt::new(python, subject, 1).and_then(|mut lane| lane.check()).err();
        let mut lanes = self.lanes(subject).map_err(named)?;
        if not_comparable.is_none() {
            for threads in &self.threads {
                lanes.push(Box::new(LiteRt::new(python, subject, *threads).map_err(named)?));
            }
        }
        let options = Options { rounds: self.rounds, executions: self.executions };
        let tracks = measure(&mut lanes, &options, &mut |round, label| {
            progress.show(&format!("{}, round {round}: {label}", subject.name));
        });
        let tracks = tracks.map_err(named)?;
        drop(lanes);
        let report = ModelReport::new(subject, &tracks, None);
        let reason = not_comparable.map(|error| error.to_string());
        Ok(Compared::new(report, Class::of(subject), &tracks, reason))
    }

    /// Our own, of which the first one's outputs are those the others are compared with.
    fn lanes<'s>(&self, subject: &'s Subject) -> Result<Vec<Box<dyn Lane + 's>>, HarnessError> {
        let mut lanes: Vec<Box<dyn Lane + 's>> = Vec::new();
        for (turn, threads) in self.threads.iter().enumerate() {
            let label = Label::new(paths::IN_PROCESS, *threads);
            let lane = InProcess::new(label, Arc::new(driver::device(*threads, true)), subject)?;
            lanes.push(Box::new(if turn == 0 { lane.with_copies()? } else { lane }));
        }
        let (path, wait) = (StreamPath::Burst, self.wait.into());
        let kind = RemoteKind { path, wait, service_outputs: true };
        let label = Label::new(paths::BURST, 1);
        lanes.push(Box::new(Remote::new(label, kind, subject, driver::connect)));
        if !self.no_reference {
            let label = Label::new(REFERENCE, 1);
            let device = Arc::new(driver::device(1, false));
            lanes.push(Box::new(InProcess::new(label, device, subject)?));
        }
        Ok(lanes)
    }
}

fn models_of(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let is_model = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "tflite");
    paths.filter(|path| path.as_ref().map_or(true, is_model)).collect()
}
