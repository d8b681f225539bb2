//! One after the other: those who make or remove a socket in the same folder.
//!
//! Whether a socket's file is one that a dead service left behind can be asked (nobody listens there), but between
//! the answer and the removal another service may have put its own there, which then has a socket that
//! nobody finds. So whoever asks, removes, makes and listens does all of it with the folder locked (`flock`).
//!
//! The folder itself is what is locked, and no file beside the socket: none is left behind by a process that is
//! killed, none has to be made where a stranger may have put a link, and a folder by several names is
//! one. The lock is a courtesy among services: nothing keeps others from taking it, such as a cleaner of `/tmp`, or from
//! putting something at the socket's place without it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

/// A service has the lock for some system calls. Who keeps it longer is no service, and is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// The folder of a socket, locked until this is dropped.
#[derive(Debug)]
pub(super) struct FolderLock {
    /// `None` where it could not be locked.
    _folder: Option<OwnedFd>,
}

impl FolderLock {
    /// Locks the folder that this path lies in. Where that cannot be (the process may not read the folder, or is in
    /// its sandbox; the file system has no locks; somebody keeps the lock) it goes without.
    pub(super) fn of(path: &Path) -> Self {
        let locked = Self::lock(path);
        if let Err(errno) = &locked {
            tracing::debug!(path = %path.display(), %errno, "the socket's folder is not locked");
        }
        FolderLock { _folder: locked.ok() }
    }

    fn lock(path: &Path) -> Result<OwnedFd, Errno> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(folder, flags, Mode::empty())?;
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(folder),
                Err(Errno::AGAIN | Errno::INTR) if Instant::now() < until => sleep(PAUSE),
                Err(errno) => return Err(errno),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_lock_whatever_the_folder_is_called_and_nobody_waits_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("../").join("b"));
        let link = other.with_file_name(format!("link-{}", std::process::id()));
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        let held = FolderLock::of(&path);
        assert!(held._folder.is_some());
        let denied = FolderLock::lock(&link.join("b"));
        assert_eq!(denied.map(drop), Err(Errno::AGAIN), "after a while");
        drop(held);
        assert!(FolderLock::lock(&link.join("b")).is_ok());
        std::fs::remove_file(&link).unwrap();
        assert!(FolderLock::of(&folder.path().join("none/a"))._folder.is_none());
        assert!(FolderLock::of(Path::new("relative"))._folder.is_some());
    }
}
