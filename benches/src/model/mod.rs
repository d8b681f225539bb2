//! `cargo run --release -p benches -- model`: our driver beside LiteRT on the same models, with the
//! same inputs, in the same rounds; our reference kernels and the burst beside them.
//!
//! | file | what |
//! |---|---|
//! | `driver.rs` | a driver process, for the burst |
//! | `seeded/` | models whose weights come from a seed |
//! | `idle.rs` | what a model holds while nothing is executed |
//! | `line.rs` | what two cache lines take between two CPUs |
//! | `around.rs` | the table of what lies around executions |
//! | `correct.rs` | whether outputs are right |
//! | `class.rs` | kinds of models, which are held to the same bounds |
//! | `comparison.rs` | what was found: ratios, JSON, tables |

mod around;
mod class;
mod comparison;
mod correct;
mod driver;
mod idle;
pub mod seeded;

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use burst_client::Route;
use burst_harness::engine::Spread;
use burst_harness::lines;
use burst_harness::litert::{LiteRt, Python};
use burst_harness::machine::Machine;
use burst_harness::model::{
    InProcess, Label, ModelSubject, Remote, RemoteKind, Workload, measure, paths,
};
use burst_harness::report::{Paper, Report};
use burst_harness::{HarnessError, Progress};

pub use class::Class;
pub use comparison::{Compared, Comparison, Ratio, ThreadRatio, bounds};
pub use correct::REFERENCE;
pub use driver::serve_driver_if_asked;
pub use idle::{Idle, hold_model_if_asked};

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: burst_harness::model::Args,
    /// A Python that has the package ai-edge-litert (or tensorflow, or tflite-runtime).
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Measure models with weights from a seed, too: MobileNet v1 1.0 for pictures of 224 pixels and a segmentation of 512,
    /// in floats and in bytes. Without a model of your own they are all that is measured.
    #[arg(long)]
    seeded: bool,
    /// Where the files of these models are kept; without it they are gone afterwards.
    #[arg(long, value_name = "DIR", requires = "seeded")]
    keep_seeded: Option<PathBuf>,
    /// Leave our reference kernels out: they take minutes where others take milliseconds.
    #[arg(long)]
    no_reference: bool,
    /// Hold ratios to the bounds in this file, such as benches/model.json; one that does not keep to its bound ends
    /// with status 1.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
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
    /// No Python or no package; a model of which nothing can be run; whatever stops a subject.
    pub fn run(&self, out: &mut impl Write) -> Result<ExitCode, HarnessError> {
        let bounds = self.check.as_deref().map(bounds).transpose()?;
        let python = Rc::new(RefCell::new(Python::start(&self.python)?));
        let folder = tempfile::tempdir()?;
        let workloads: Vec<Workload> = self
            .files(folder.path())?
            .iter()
            .map(|file| Workload::read(file))
            .collect::<Result<_, _>>()?;
        fmq::warm_up();
        let machine = Machine::detect();
        let mut progress = Progress::default();
        let models = workloads.iter().map(|workload| self.one(workload, &python, &mut progress));
        let models: Result<Vec<Compared>, HarnessError> = models.collect();
        progress.end();
        let litert = python.borrow().package.clone();
        let mut found = Comparison { litert, models: models?, wait: self.common.wait };
        if let Some(bounds) = bounds {
            found.hold_to(&bounds);
        }
        let code = ExitCode::from(u8::from(found.has_missed()));
        let report = Report { machine, rounds: self.common.rounds, found };
        let mut paper = Paper { format: self.common.format, ..Paper::plain(out) };
        report.print(self.common.report.as_deref(), self.json, &mut paper)?;
        Ok(code)
    }

    /// The models to measure; seeded ones are written into this folder where nobody names another.
    fn files(&self, folder: &Path) -> Result<Vec<PathBuf>, HarnessError> {
        let mut files = self.common.model_files()?;
        if self.seeded {
            files.extend(seeded::write_all(self.keep_seeded.as_deref().unwrap_or(folder))?);
        }
        Ok(if files.is_empty() { vec![PathBuf::from(OWN_MODEL)] } else { files })
    }

    fn one(
        &self,
        workload: &Workload,
        python: &Rc<RefCell<Python>>,
        progress: &mut Progress,
    ) -> Result<Compared, HarnessError> {
        let named = |error| HarnessError::peer(format!("{}: {error}", workload.name));
        let not_comparable =
            LiteRt::new(python, workload, 1).and_then(|mut litert| litert.check()).err();
        let mut subjects = self.subjects(workload).map_err(named)?;
        if not_comparable.is_none() {
            for threads in &self.common.threads {
                let litert = LiteRt::new(python, workload, *threads).map_err(named)?;
                subjects.push(Box::new(litert));
            }
        }
        let mut two_lines = Vec::new();
        let series = measure(subjects, &self.common.length(), &mut |round, label| {
            progress.show(&format!("{}, round {round}: {label}", workload.name));
            if label.path == paths::IN_PROCESS && label.threads > 1 {
                two_lines.extend(lines::two_lines_ns(lines::PATIENCE));
            }
        });
        let series = series.map_err(named)?;
        let reason = not_comparable.map(|error| error.to_string());
        let litert = reason.is_none().then_some(self.python.as_path());
        let idle = Idle::measure(workload, litert).map_err(named)?;
        let two_lines_ns = Spread::of(two_lines);
        Ok(Compared { two_lines_ns, ..Compared::new(workload, &series, Some(idle), reason) })
    }

    /// Our own, of which the first one's outputs are those that the others are compared with.
    fn subjects<'w>(
        &self,
        workload: &'w Workload,
    ) -> Result<Vec<Box<dyn ModelSubject + 'w>>, HarnessError> {
        let mut subjects: Vec<Box<dyn ModelSubject + 'w>> = Vec::new();
        for (at, threads) in self.common.threads.iter().enumerate() {
            let label = Label::new(paths::IN_PROCESS, *threads);
            let device = Arc::new(driver::device(*threads, true));
            let subject = InProcess::new(label, device, workload);
            subjects.push(Box::new(if at == 0 { subject.with_copies()? } else { subject }));
        }
        let (route, wait) = (Route::Burst, self.common.wait.into());
        let kind = RemoteKind { route, wait, service_outputs: true };
        let label = Label::new(paths::BURST, 1);
        subjects.push(Box::new(Remote::new(label, kind, workload, driver::connect)));
        if !self.no_reference {
            let label = Label::new(REFERENCE, 1);
            let device = Arc::new(driver::device(1, false));
            subjects.push(Box::new(InProcess::new(label, device, workload)));
        }
        Ok(subjects)
    }
}
