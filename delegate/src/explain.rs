//! What became of each node, for a person.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A file to which one line after the other is appended.
#[derive(Debug, Default)]
pub(crate) struct Explain(Option<Mutex<File>>);

impl Explain {
    /// Lines go to this file; without one nowhere.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn to(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().append(true).create(true).open(path);
        Ok(Explain(path.map(open).transpose()?.map(Mutex::new)))
    }

    /// Appends a line.
    pub(crate) fn line(&self, line: &dyn std::fmt::Display) {
        let Some(file) = &self.0 else { return };
        let text = format!("{line}\n");
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not end an inference that works.
        let _ = file.write_all(text.as_bytes());
    }
}
