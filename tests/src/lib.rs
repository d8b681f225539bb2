//! What the tests across crates share: the golden outputs, attacks on a service, and the readers of
//! this repository's documents and sources.

use std::path::{Path, PathBuf};

pub mod attacks;
pub mod documents;
pub mod golden;
pub mod modules;
pub mod routes;

/// The repository's root.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository").into()
}
