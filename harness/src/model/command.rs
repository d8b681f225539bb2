//! Options that every command has which measures models.

use std::path::{Path, PathBuf};

use super::Options;
use crate::error::HarnessError;
use crate::report::Format;
use crate::wait::WaitKind;

/// Which models, on how many threads, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Model files (.tflite); without any, the one that this repository trained.
    #[arg(value_name = "MODEL", conflicts_with = "models")]
    pub files: Vec<PathBuf>,
    /// Every .tflite file of a folder.
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// How both ends of a burst wait for each other.
    #[arg(long, value_enum, default_value_t = WaitKind::Adaptive)]
    pub wait: WaitKind,
    /// Numbers of threads that compute, several with commas.
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [1, 2],
        value_parser = clap::value_parser!(u32).range(1..=64)
    )]
    pub threads: Vec<u32>,
    /// Rounds in which every path has a trial.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Executions per trial; without it as many as fit into 0.3 seconds.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub executions: Option<u32>,
    /// Write a page with drawings, which needs no other file.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// How the figures are written.
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub format: Format,
}

impl Args {
    /// How long measuring goes on.
    #[must_use]
    pub fn length(&self) -> Options {
        Options { rounds: self.rounds, executions: self.executions }
    }

    /// The model files to measure; none where none was named.
    ///
    /// # Errors
    /// A folder that cannot be read, or without a model.
    pub fn model_files(&self) -> Result<Vec<PathBuf>, HarnessError> {
        match &self.models {
            Some(folder) => models_of(folder),
            None => Ok(self.files.clone()),
        }
    }
}

/// The model files of a folder, by name.
fn models_of(folder: &Path) -> Result<Vec<PathBuf>, HarnessError> {
    let unreadable =
        |error| HarnessError::peer(format!("cannot read the folder {}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "tflite") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(HarnessError::peer(format!("{} has no .tflite files", folder.display())));
    }
    files.sort();
    Ok(files)
}
