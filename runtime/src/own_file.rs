//! Opening files that are this user's alone, in folders where others may have been.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// Opens a regular file of this user that nobody else may read or write. One that is made has mode 0600. Links
/// are not followed, and pipes keep nobody waiting.
///
/// # Errors
/// Every other kind of file; those of the system.
pub(crate) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(CWD, path, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no regular file"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("it belongs to user {}", stat.st_uid)));
    }
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        return Err(io::Error::other("others may use it"));
    }
    Ok(file.into())
}
