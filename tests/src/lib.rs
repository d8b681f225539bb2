//! What the tests across crates share: where the shared data is, the golden outputs, and the readers
//! of this repository's documents and sources.

use std::path::{Path, PathBuf};

pub mod documents;
pub mod golden;
pub mod modules;

/// The repository's root.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository").into()
}

/// A folder or file of the shared data: `BURST_SHARED`, else `../shared` beside the repository.
///
/// Where it is absent the test that asked is reported as ignored, by name, on standard error.
#[must_use]
pub fn shared(test: &str, path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("BURST_SHARED")
        .map_or_else(|| repository().join("../shared"), PathBuf::from);
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("ignored: {test} needs {}, which is not here", found.display());
    None
}
