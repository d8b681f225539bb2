//! The key that compilations of the CPU in this process are sealed with.
//!
//! It lies in the user's folder for state, not beside the compilations: whoever gives an application a folder
//! with files, from another machine say, gives it no key for them. Its first use makes it.
//!
//! | what could go wrong | what is done |
//! |---|---|
//! | two programs make it at once | each writes a file of its own and links it to the name, which works once; both read what is there then |
//! | somebody else can read or write it | it is refused: who knows it can make files that count as ours |
//! | there is no such folder, or it cannot be written | nothing is kept, which the log says |

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use burst_driver::CacheKey;
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::own_file;

/// The file of the key. A service of the same user has one of its own.
const KEY_FILE: &str = "framework.key";
const FOLDER_MODE: u32 = 0o700;

/// `$XDG_STATE_HOME/burst`, else `~/.local/state/burst`; `None` where neither is set to a whole path.
pub(crate) fn state_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let whole = |name| variable(name).filter(|path| path.is_absolute());
    let at_home = || whole("HOME").map(|home| home.join(".local/state"));
    whole("XDG_STATE_HOME").or_else(at_home).map(|folder| folder.join("burst"))
}

/// The key in this folder; a new one where there is none yet.
///
/// # Errors
/// The folder cannot be made or used; a key that is not this user's alone, or not one.
pub(crate) fn key_in(folder: &Path) -> io::Result<CacheKey> {
    let path = folder.join(KEY_FILE);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    make(folder, &path)?;
    read(&path)
}

fn read(path: &Path) -> io::Result<CacheKey> {
    let mut file = own_file::open(path, OFlags::RDONLY)?;
    let length = file.metadata()?.len();
    if length != CacheKey::BYTES as u64 {
        let wrong = format!("a key of {length} bytes; it has to have {}", CacheKey::BYTES);
        return Err(io::Error::other(wrong));
    }
    let mut key = [0; CacheKey::BYTES];
    file.read_exact(&mut key)?;
    Ok(CacheKey::new(key))
}

/// Makes a key under a name of its own and then gives it its name: who finds it there finds all of it.
fn make(folder: &Path, path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    let (mut key, mut number) = ([0; CacheKey::BYTES], [0; 8]);
    fill_randomly(&mut key)?;
    fill_randomly(&mut number)?;
    let unfinished = folder.join(format!(".{KEY_FILE}.{:016x}", u64::from_le_bytes(number)));
    let made = write_new(&unfinished, &key).and_then(|()| match fs::hard_link(&unfinished, path) {
        // Another program was first: its key is the one.
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
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = own_file::open(path, flags)?;
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
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn bytes(folder: &Path) -> Vec<u8> {
        fs::read(folder.join(KEY_FILE)).unwrap()
    }

    #[test]
    fn a_key_is_made_once_by_whoever_needs_it_first_and_is_this_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("not/there/yet");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| key_in(&state).expect("a key"));
            }
        });
        let first = bytes(&state);
        assert_eq!(first.len(), CacheKey::BYTES);
        key_in(&state).unwrap();
        assert_eq!(bytes(&state), first, "it stays");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&state.join(KEY_FILE))), (0o700, 0o600));
        let names: Vec<_> = fs::read_dir(&state).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing unfinished is left");
        let other = folder.path().join("other");
        key_in(&other).unwrap();
        assert_ne!(bytes(&other), first);
    }

    #[test]
    fn a_key_that_others_may_use_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY_FILE);
        key_in(folder.path()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(key_in(folder.path()).is_err(), "others read it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, [1; 31]).unwrap();
        assert!(key_in(folder.path()).is_err(), "too short");
        let kept = folder.path().join("kept");
        fs::rename(&path, &kept).unwrap();
        fs::write(&kept, [1; 32]).unwrap();
        symlink(&kept, &path).unwrap();
        assert!(key_in(folder.path()).is_err(), "a link");
        assert!(key_in(Path::new("/dev/null")).is_err(), "no folder");
    }

    #[test]
    fn the_folder_is_that_of_the_users_state() {
        let with = |name: &'static str, value: &'static str| {
            state_folder(move |asked| (asked == name).then(|| value.into()))
        };
        assert_eq!(with("XDG_STATE_HOME", "/state"), Some("/state/burst".into()));
        assert_eq!(with("HOME", "/home/me"), Some("/home/me/.local/state/burst".into()));
        assert_eq!(with("XDG_STATE_HOME", "state"), None);
        assert_eq!(state_folder(|_| None), None);
    }
}
