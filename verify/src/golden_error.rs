//! What can be wrong with a folder of models and goldens.

use std::path::PathBuf;

/// Why goldens cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoldenError {
    /// The folder is not laid out as it should be.
    #[error("{path}: no models/MANIFEST.json in this folder", path = path.display())]
    NoManifest {
        /// The folder.
        path: PathBuf,
    },
    /// The manifest names no model, or none of those that were asked for.
    #[error("{path}: {name} is not among the models of the manifest", path = path.display())]
    NoSuchModel {
        /// The manifest.
        path: PathBuf,
        /// What was asked for.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}", path = path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {cause}", path = path.display())]
    Json {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: serde_json::Error,
    },
    /// A file is larger than any of its kind.
    #[error("{path} has {found} bytes, at most {limit} are read", path = path.display())]
    TooLarge {
        /// Which one.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// A file ends before what it should hold.
    #[error("{path} has {}, {what} needs {needed}: cut short?", bytes(*found), path = path.display())]
    Short {
        /// Which one.
        path: PathBuf,
        /// Its size.
        found: usize,
        /// What lies in it.
        what: String,
        /// The size that it should have.
        needed: usize,
    },
    /// A golden says something in a way that is not known here.
    #[error("{path}: unknown {what} {found:?}", path = path.display())]
    Unknown {
        /// Which golden.
        path: PathBuf,
        /// What it is about: `transform`, `selection`.
        what: &'static str,
        /// How it is said.
        found: String,
    },
    /// Numbers of a golden do not go together.
    #[error("{path}: {what}: {found}, expected {wanted}", path = path.display())]
    Mismatch {
        /// Which golden.
        path: PathBuf,
        /// What they are about.
        what: &'static str,
        /// What it says.
        found: usize,
        /// What the rest of it asks for.
        wanted: usize,
    },
    /// A sound file is none, or of another kind.
    #[error("{path}: {problem}", path = path.display())]
    Sound {
        /// Which one.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
}

fn bytes(count: usize) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}
