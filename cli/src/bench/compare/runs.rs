//! What `burst bench` printed with `--json`, as far as it can be compared.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use burst_harness::machine::Machine;
use burst_harness::model::ModelReport;
use burst_harness::transport::Row as TransportRow;
use serde::Deserialize;
use serde_json::Value;

/// Longest file that is read: a run over thousands of models in a thousand rounds is shorter.
const FILE_MAX: u64 = 64 << 20;
/// Load may differ by so much before it is told.
const LOAD_APART: f64 = 1.0;

/// The units of figures.
pub(super) const MICROSECONDS: &str = "us";
pub(super) const RATIO: &str = "ratio";

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Model,
    Mlts,
    Transport,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Model => "bench model",
            Kind::Mlts => "bench mlts",
            Kind::Transport => "bench transport",
        }
    }
}

/// One figure for each round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figures {
    pub(super) unit: &'static str,
    pub(super) rounds: Vec<f64>,
}

/// One run.
#[derive(Debug, Clone)]
pub(super) struct RunFile {
    /// The file.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) machine: Machine,
    pub(super) wait: Option<String>,
    pub(super) figures: BTreeMap<String, Figures>,
}

/// The keys of its object that are needed.
#[derive(Deserialize)]
struct Object {
    command: Option<String>,
    error: Option<String>,
    machine: Option<Machine>,
    wait: Option<String>,
    threads: Option<u32>,
    /// Of one form or another, by the command.
    models: Option<Value>,
    rows: Option<Vec<TransportRow>>,
}

impl RunFile {
    /// Reads a run.
    ///
    /// # Errors
    /// The file cannot be read, or is none that can be compared; the message names it.
    pub(super) fn read(path: &Path) -> Result<RunFile> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let mut text = String::new();
        let read = file.take(FILE_MAX + 1).read_to_string(&mut text);
        read.with_context(|| format!("cannot read {name}"))?;
        if text.len() as u64 > FILE_MAX {
            bail!("{name} is longer than {} MiB", FILE_MAX >> 20);
        }
        RunFile::of_text(&name, &text)
    }

    /// That of a text.
    ///
    /// # Errors
    /// As of [`RunFile::read`].
    pub(super) fn of_text(name: &str, text: &str) -> Result<RunFile> {
        let what = || format!("{name} is not what `burst bench --json` prints");
        let object: Object = serde_json::from_str(text).with_context(what)?;
        if let Some(error) = object.error {
            bail!("{name} is of a run that failed: {error}");
        }
        let (kind, figures) = match (object.command.as_deref(), object.models, object.rows) {
            (Some("bench model"), Some(models), _) => {
                let models: Vec<ModelReport> = serde_json::from_value(models).with_context(what)?;
                (Kind::Model, of_models(&models))
            }
            (Some("bench mlts"), Some(models), _) => {
                let models: Vec<MltsModel> = serde_json::from_value(models).with_context(what)?;
                let figures = of_data(&models, object.threads.unwrap_or(1));
                if figures.is_empty() {
                    bail!(
                        "{name}: no path was measured in windows (--windows), which are compared"
                    );
                }
                (Kind::Mlts, figures)
            }
            (Some("bench transport"), _, Some(rows)) => (Kind::Transport, of_rows(&rows)),
            (command, ..) => {
                bail!("{}: it is of {}", what(), command.unwrap_or("no command"));
            }
        };
        let Some(machine) = object.machine else { bail!("{}: it names no machine", what()) };
        if let Some((row, _)) = figures.iter().find(|(_, figures)| !figures.are_sound()) {
            bail!("{name}: {row} has no figures for each round; measure again with this version");
        }
        let wait = object.wait;
        Ok(RunFile { name: name.to_owned(), kind, machine, wait, figures })
    }
}

impl Figures {
    /// Ratios can be taken of them.
    fn are_sound(&self) -> bool {
        !self.rounds.is_empty() && self.rounds.iter().all(|round| round.is_finite() && *round > 0.0)
    }
}

fn of_models(models: &[ModelReport]) -> BTreeMap<String, Figures> {
    let paths = models.iter().flat_map(|model| {
        model.paths.iter().map(move |path| {
            let threads = path.threads;
            let plural = if threads == 1 { "" } else { "s" };
            let name = format!("{} {}, {threads} thread{plural}", model.model, path.path);
            let rounds = path.rounds_p50_us.clone();
            (name, Figures { unit: MICROSECONDS, rounds })
        })
    });
    paths.collect()
}

/// A model of `bench mlts`, as far as it can be compared.
#[derive(Deserialize)]
struct MltsModel {
    model: String,
    paths: Vec<MltsPath>,
}

/// Who computed it.
#[derive(Deserialize)]
struct MltsPath {
    path: String,
    windows_p50_us: Vec<f64>,
}

/// Each window stands for a round; who was not measured in any has none.
fn of_data(models: &[MltsModel], threads: u32) -> BTreeMap<String, Figures> {
    let plural = if threads == 1 { "" } else { "s" };
    let measured = models.iter().flat_map(|model| {
        let paths = model.paths.iter().filter(|path| !path.windows_p50_us.is_empty());
        paths.map(move |path| {
            let name = format!("{} {}, {threads} thread{plural}", model.model, path.path);
            (name, Figures { unit: MICROSECONDS, rounds: path.windows_p50_us.clone() })
        })
    });
    measured.collect()
}

fn of_rows(rows: &[TransportRow]) -> BTreeMap<String, Figures> {
    let named = rows.iter().map(|row| {
        let TransportRow { name, request_bytes, wait, placement, .. } = row;
        let name = format!("{name}, {request_bytes} B, {}, {}", wait.name(), placement.name());
        (name, Figures { unit: RATIO, rounds: row.rounds_ratio_to_floor.clone() })
    });
    named.collect()
}

/// What the machine and the options had different.
pub(super) fn differences(a: &RunFile, b: &RunFile) -> Vec<String> {
    let (was, is) = (&a.machine, &b.machine);
    let mut found = Vec::new();
    let mut differ = |what: &str, a: &str, b: &str| {
        if a != b {
            found.push(format!("not the same {what}: {a} in A, {b} in B"));
        }
    };
    differ("processor", &was.processor, &is.processor);
    differ("number of CPUs", &was.cpus.to_string(), &is.cpus.to_string());
    differ("kernel", &was.kernel, &is.kernel);
    let wait = |run: &RunFile| run.wait.clone().unwrap_or_default();
    differ("way to wait", &wait(a), &wait(b));
    if (was.load - is.load).abs() > LOAD_APART {
        found.push(format!("not the same load: {:.1} in A, {:.1} in B", was.load, is.load));
    }
    found
}
