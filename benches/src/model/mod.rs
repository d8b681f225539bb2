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
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use burst_client::Route;
use burst_harness::machine::Machine;
use burst_harness::model::{
    InProcess, Label, Lane, ModelReport, Remote, RemoteKind, Subject, measure, paths,
};
use burst_harness::{HarnessError, Progress};

pub use class::Class;
pub use comparison::{Compared, Comparison, REFERENCE, ThreadRatio};
pub use driver::serve_driver_if_asked;
pub use litert::{LiteRt, Package, Python};

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: burst_harness::model::Args,
    /// A Python that has the package ai-edge-litert (or tensorflow, or tflite-runtime).
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Leave our reference kernels out: they take minutes where others take milliseconds.
    #[arg(long)]
    no_reference: bool,
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
        let comparison =
            Comparison { machine, rounds: self.common.rounds, litert, models: models? };
        if let Some(path) = &self.common.report {
            std::fs::write(path, comparison.page(self.common.wait)?)?;
        }
        match (self.json, self.markdown) {
            (true, _) => comparison.write_json(out)?,
            (_, true) => comparison.write_markdown(out)?,
            _ => comparison.write_text(out)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn files(&self) -> Result<Vec<PathBuf>, HarnessError> {
        let files = self.common.model_files()?;
        Ok(if files.is_empty() { vec![PathBuf::from(OWN_MODEL)] } else { files })
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
            for threads in &self.common.threads {
                lanes.push(Box::new(LiteRt::new(python, subject, *threads).map_err(named)?));
            }
        }
        let tracks = measure(&mut lanes, &self.common.length(), &mut |round, label| {
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
        for (turn, threads) in self.common.threads.iter().enumerate() {
            let label = Label::new(paths::IN_PROCESS, *threads);
            let lane = InProcess::new(label, Arc::new(driver::device(*threads, true)), subject)?;
            lanes.push(Box::new(if turn == 0 { lane.with_copies()? } else { lane }));
        }
        let (route, wait) = (Route::Burst, self.common.wait.into());
        let kind = RemoteKind { route, wait, service_outputs: true };
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
