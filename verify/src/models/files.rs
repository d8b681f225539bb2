//! Reading files of a folder, with a limit on each.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::golden_error::GoldenError;

/// Largest file that is read, in bytes: a model's offsets are 32-bit, goldens are far smaller.
const MAX_FILE_BYTES: u64 = 1 << 31;

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, GoldenError> {
    let io = |cause| GoldenError::Io { path: path.to_owned(), cause };
    let found = fs::metadata(path).map_err(io)?.len();
    if found > MAX_FILE_BYTES {
        return Err(GoldenError::TooLarge { path: path.to_owned(), found, limit: MAX_FILE_BYTES });
    }
    fs::read(path).map_err(io)
}

/// A file of JSON.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, GoldenError> {
    serde_json::from_slice(&read(path)?)
        .map_err(|cause| GoldenError::Json { path: path.to_owned(), cause })
}
