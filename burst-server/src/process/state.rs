//! What a service keeps over its restarts: a key, in a folder of its own.
//!
//! The sandbox takes away every file, so the key is read before that. Whoever can read it can make files
//! that the service takes for its own; so a key that others can read is refused rather than used.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes of a key.
pub const STATE_KEY_BYTES: usize = 32;
/// The file of the key.
const KEY_FILE: &str = "cache.key";
/// What its owner may do with it, and nobody else.
const KEY_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// Permissions of group and others.
const OF_OTHERS: u32 = 0o077;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The folder, or the key in it, cannot be made, opened or read.
    #[error("{}: {error}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The key is not a file.
    #[error("the key {} is no regular file", path.display())]
    NotAFile {
        /// Where it is.
        path: PathBuf,
    },
    /// Somebody else owns the key.
    #[error("the key {} belongs to user {owner}, and the service is user {us}", path.display())]
    NotOurs {
        /// Where it is.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who the service is.
        us: u32,
    },
    /// Others than its owner may read or write the key.
    #[error(
        "the key {} has mode {mode:03o}: others may use it, who could then make files that the service takes for its own; it has to be 600, and should be a new one",
        path.display()
    )]
    Exposed {
        /// Where it is.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The key is too short or too long.
    #[error("the key {} has {bytes} bytes, and should have {STATE_KEY_BYTES}", path.display())]
    Length {
        /// Where it is.
        path: PathBuf,
        /// What it has.
        bytes: u64,
    },
}

impl StateError {
    /// Whether the key is there, and must not be used. Otherwise there is only no place for one.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        !matches!(self, StateError::Unusable { .. })
    }
}

/// The folder for what a service keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// This folder; it need not be there yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        StateFolder(path.into())
    }

    /// The one that systemd made (`$STATE_DIRECTORY`), else `$XDG_STATE_HOME/burst`, else
    /// `~/.local/state/burst`; `None` where none of them is set to a whole path.
    #[must_use]
    pub fn of_environment() -> Option<Self> {
        Self::of(|name| env::var_os(name).map(PathBuf::from))
    }

    fn of(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let whole = |name| variable(name).filter(|path| path.is_absolute());
        // A service with several has them in a list.
        let made = variable("STATE_DIRECTORY")
            .and_then(|list| env::split_paths(&list).next().filter(|path| path.is_absolute()));
        let of_user = || whole("XDG_STATE_HOME").map(|path| path.join("burst"));
        let at_home = || whole("HOME").map(|path| path.join(".local/state/burst"));
        made.or_else(of_user).or_else(at_home).map(StateFolder)
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The key that is kept here; a new one where there is none yet. Of several services that begin here at
    /// once all get the same.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn key(&self) -> Result<[u8; STATE_KEY_BYTES], StateError> {
        let path = self.0.join(KEY_FILE);
        match read(&path) {
            Err(StateError::Unusable { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        make(&self.0, &path).map_err(unusable(&path))?;
        read(&path)
    }
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> StateError {
    move |error| StateError::Unusable { path: path.to_owned(), error }
}

fn read(path: &Path) -> Result<[u8; STATE_KEY_BYTES], StateError> {
    let path_of = || path.to_owned();
    // Neither a link to somewhere else, nor a pipe that keeps the start waiting.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let mut file = opened.map_err(unusable(path))?;
    let about = file.metadata().map_err(unusable(path))?;
    if !about.is_file() {
        return Err(StateError::NotAFile { path: path_of() });
    }
    let (owner, us) = (about.uid(), geteuid().as_raw());
    if owner != us {
        return Err(StateError::NotOurs { path: path_of(), owner, us });
    }
    let mode = about.mode() & 0o777;
    if mode & OF_OTHERS != 0 {
        return Err(StateError::Exposed { path: path_of(), mode });
    }
    if about.len() != STATE_KEY_BYTES as u64 {
        return Err(StateError::Length { path: path_of(), bytes: about.len() });
    }
    let mut key = [0; STATE_KEY_BYTES];
    file.read_exact(&mut key).map_err(unusable(path))?;
    Ok(key)
}

/// Makes a key under a name of its own and then gives it its name: who finds it there finds all of it.
fn make(folder: &Path, path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    let mut key = [0; STATE_KEY_BYTES];
    fill_randomly(&mut key)?;
    let mut number = [0; 8];
    fill_randomly(&mut number)?;
    let unfinished = folder.join(format!(".{KEY_FILE}.{:016x}", u64::from_le_bytes(number)));
    let made = write_new(&unfinished, &key).and_then(|()| match fs::hard_link(&unfinished, path) {
        // Another service was first: its key is the one.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    // Where it was not made there may be nothing to remove.
    let _ = fs::remove_file(&unfinished);
    made?;
    // The name outlives a crash of the machine, as the key in it does.
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, key: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(KEY_MODE).open(path)?;
    file.write_all(key)?;
    file.sync_all()
}

fn fill_randomly(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
