//! Goldens of real models: the shared folder, and the importer that the command uses too.

use std::path::Path;

use burst_verify::models::{Folder, Importer};

#[path = "../../cli/src/verify/import.rs"]
mod import;

/// Turns `.tflite` files into models, as `burst verify --models` and `burst run` do.
#[must_use]
pub fn importer() -> impl Importer {
    import::TfliteImporter
}

/// The models and goldens of the shared folder.
///
/// # Panics
/// They cannot be read.
#[must_use]
pub fn folder(shared: &Path) -> Folder {
    Folder::open(shared).unwrap_or_else(|error| panic!("{error}"))
}
