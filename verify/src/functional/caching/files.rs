//! Files of a compilation, as an application has them.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use burst_hal::CacheFiles;

/// How files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reading and writing.
    Both,
    /// For reading.
    Read,
    /// For writing.
    Write,
}

/// The names of a compilation's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Model files.
    pub model: Vec<PathBuf>,
    /// Data files.
    pub data: Vec<PathBuf>,
}

impl Place {
    /// Files of this name in a folder, so many of each kind.
    #[must_use]
    pub fn new(folder: &Path, name: &str, files: CacheFiles) -> Self {
        let names = |kind, count| {
            (0..count).map(|number| folder.join(format!("{name}.{kind}{number}"))).collect()
        };
        Place { model: names("model", files.model), data: names("data", files.data) }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.model.iter().chain(&self.data)
    }

    /// Makes the files, empty.
    pub(super) fn create(&self) -> io::Result<()> {
        self.all().try_for_each(|path| File::create(path).map(drop))
    }

    /// Opens model and data files.
    pub(super) fn open(&self, model: Access, data: Access) -> io::Result<(Vec<File>, Vec<File>)> {
        let all = |paths: &[PathBuf], access| {
            paths.iter().map(|path| open(path, access)).collect::<io::Result<Vec<_>>>()
        };
        Ok((all(&self.model, model)?, all(&self.data, data)?))
    }

    /// Puts what is in the model files of another compilation into these.
    pub(super) fn copy_model_files(&self, from: &Place) -> io::Result<()> {
        for (from, to) in from.model.iter().zip(&self.model) {
            std::fs::copy(from, to)?;
        }
        Ok(())
    }
}

/// Opens a file that is there.
pub(super) fn open(path: &Path, access: Access) -> io::Result<File> {
    let (read, write) = (access != Access::Write, access != Access::Read);
    OpenOptions::new().read(read).write(write).open(path)
}
