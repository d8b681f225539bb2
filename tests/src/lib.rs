//! What the tests across crates share: the documents, and the golden outputs.

use std::path::{Path, PathBuf};

pub mod documents;
pub mod golden;

/// The repository's root.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository").into()
}
