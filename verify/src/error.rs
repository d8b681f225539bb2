//! What can be wrong with a directory of vectors.

use std::path::PathBuf;

use crate::golden_error::GoldenError;

/// Why vectors cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {cause}", path = path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: not a vector file: {cause}", path = path.display())]
    Json {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: serde_json::Error,
    },
    /// A file holds more than a vector file ever does.
    #[error("{path}: unpacks to more than {limit} bytes", path = path.display())]
    TooLarge {
        /// Which one.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// A test refers to something its file does not have.
    #[error("test {test}: {what}")]
    Test {
        /// Which test.
        test: String,
        /// What is wrong.
        what: String,
    },
    /// There are no vectors.
    #[error("{path}: no vector files (<version>/<spec>.json.gz) in this folder", path = path.display())]
    Empty {
        /// Where.
        path: PathBuf,
    },
}

/// Why a run could not be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The vectors cannot be read.
    #[error(transparent)]
    Vectors(#[from] VectorError),
    /// The goldens cannot be read.
    #[error(transparent)]
    Goldens(#[from] GoldenError),
    /// A model that failed cannot be written.
    #[error("cannot write to {path}: {cause}", path = path.display())]
    File {
        /// Where.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// There is no device to run them on.
    #[error("no device: {0}")]
    Device(#[source] Box<dyn std::error::Error + Send + Sync>),
}
