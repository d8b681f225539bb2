//! Files that compilations are kept in, in a folder of the application.
//!
//! | what could go wrong | what is done |
//! |---|---|
//! | somebody else put a link or another kind of file there | opened without following links; only regular files of this user that nobody else can read or write are used |
//! | two programs write at once | the first file is locked (`flock`) for as long as it is read or written; who does not get the lock goes without |
//! | the files are of another model, device or version | the name says what they belong to, and the device checks what is in them |
//! | a program ends while it writes | the device finds out that they are not whole, and prepares anew |

use std::fs::File;
use std::path::{Path, PathBuf};

use burst_hal::{CACHE_TOKEN_BYTES, CompilationCache, PrepareOptions};
use rustix::fs::{FlockOperation, OFlags, flock, ftruncate};

use super::CachePlace;
use crate::devices::RuntimeDevice;
use crate::error::{Error, Result};
use crate::own_file;

/// What the names of steps are derived for; changes with whatever goes into them.
const CONTEXT: &str = "burst neuralnetworks 2026-11 compilation of a step";

/// The token of one step: another device, another version of it, other operations or other options have
/// another one. `graph` is the referenced graph that the operations are of, or `None` for the main one: both
/// branches of an IF have an operation 0.
pub(super) fn step_token(
    place: &CachePlace,
    device: &RuntimeDevice,
    options: &PrepareOptions,
    graph: Option<u32>,
    operations: &[u32],
) -> [u8; CACHE_TOKEN_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(&place.token);
    for text in [device.name(), device.version()] {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(&options.preference.code().to_le_bytes());
    hasher.update(&options.priority.code().to_le_bytes());
    hasher.update(&graph.map_or(0, |graph| u64::from(graph) + 1).to_le_bytes());
    for operation in operations {
        hasher.update(&operation.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// The files of one step.
pub(super) struct CacheFiles<'a> {
    directory: &'a Path,
    token: [u8; CACHE_TOKEN_BYTES],
    counts: burst_hal::CacheFiles,
}

impl<'a> CacheFiles<'a> {
    pub(super) fn new(
        directory: &'a Path,
        token: [u8; CACHE_TOKEN_BYTES],
        counts: burst_hal::CacheFiles,
    ) -> Self {
        CacheFiles { directory, token, counts }
    }

    /// The files as they are, locked so that nobody writes them.
    ///
    /// # Errors
    /// One is missing, or must not be used; somebody writes them.
    pub(super) fn to_read(&self) -> Result<CompilationCache> {
        self.open(OFlags::empty(), FlockOperation::NonBlockingLockShared)
    }

    /// Empty files, locked for this process alone.
    ///
    /// # Errors
    /// One cannot be made, or must not be used; somebody reads or writes them.
    pub(super) fn to_write(&self) -> Result<CompilationCache> {
        let cache = self.open(OFlags::CREATE, FlockOperation::NonBlockingLockExclusive)?;
        for file in cache.model.iter().chain(&cache.data) {
            ftruncate(file, 0).map_err(Error::op_failed)?;
        }
        Ok(cache)
    }

    fn open(&self, flags: OFlags, lock: FlockOperation) -> Result<CompilationCache> {
        let list = |kind: &str, count: u32| -> Result<Vec<File>> {
            (0..count).map(|index| open(&self.path(kind, index), flags)).collect()
        };
        let (model, data) = (list("model", self.counts.model)?, list("data", self.counts.data)?);
        if let Some(first) = model.first().or(data.first()) {
            flock(first, lock).map_err(|errno| Error::op_failed(format!("flock: {errno}")))?;
        }
        Ok(CompilationCache { token: self.token, model, data })
    }

    fn path(&self, kind: &str, index: u32) -> PathBuf {
        let token = blake3::Hash::from_bytes(self.token).to_hex();
        self.directory.join(format!("{token}.{kind}{index}"))
    }
}

fn open(path: &Path, flags: OFlags) -> Result<File> {
    let opened = own_file::open(path, flags | OFlags::RDWR);
    opened.map_err(|error| Error::op_failed(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn files_of_this_user_alone_are_read_and_written_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let counts = burst_hal::CacheFiles { model: 1, data: 2 };
        let files = CacheFiles::new(folder.path(), [7; 32], counts);
        assert!(files.to_read().is_err(), "there are none");
        let mut written = files.to_write().unwrap();
        assert_eq!(written.files(), counts);
        assert!(files.to_read().is_err(), "they are being written");
        written.model[0].write_all(b"kept").unwrap();
        let mode = written.model[0].metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(written);
        let mut read = files.to_read().unwrap();
        let again = files.to_read().unwrap();
        assert!(files.to_write().is_err(), "they are being read");
        let mut bytes = Vec::new();
        read.model[0].read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"kept");
        drop((read, again));
        assert_eq!(files.to_write().unwrap().model[0].metadata().unwrap().len(), 0);
    }

    #[test]
    fn links_and_files_that_others_may_use_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let counts = burst_hal::CacheFiles { model: 1, data: 0 };
        let files = CacheFiles::new(folder.path(), [1; 32], counts);
        let path = files.path("model", 0);
        let other = folder.path().join("precious");
        std::fs::write(&other, "precious").unwrap();
        symlink(&other, &path).unwrap();
        assert!(files.to_write().is_err(), "a link");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(files.to_write().is_err(), "others may read it");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(files.to_write().is_err(), "a folder");
        assert_eq!(std::fs::read(&other).unwrap(), b"precious");
    }
}
