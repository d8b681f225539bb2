//! The key that a service keeps.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Barrier;

use super::*;

fn folder() -> (tempfile::TempDir, StateFolder) {
    let parent = tempfile::tempdir().unwrap();
    let folder = StateFolder::new(parent.path().join("state/burst"));
    (parent, folder)
}

#[test]
fn a_key_is_made_once_for_its_owner_alone_and_stays() {
    let (_parent, folder) = folder();
    let key = folder.key().unwrap();
    assert_ne!(key, [0; STATE_KEY_BYTES]);
    assert_eq!(folder.key().unwrap(), key);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder.path()), mode(&folder.path().join(KEY_FILE))), (0o700, 0o600));
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "nothing unfinished is left");
    let (_other_parent, other) = self::folder();
    assert_ne!(other.key().unwrap(), key);
}

#[test]
fn services_that_begin_at_once_have_one_key() {
    let (_parent, folder) = folder();
    let start = Barrier::new(8);
    let keys: Vec<_> = std::thread::scope(|scope| {
        let begin = || {
            start.wait();
            folder.key().unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_key_that_others_can_use_or_that_is_none_is_refused_and_stays_as_it_is() {
    let (_parent, folder) = folder();
    let key = folder.key().unwrap();
    let path = folder.path().join(KEY_FILE);
    for mode in [0o640, 0o604, 0o660, 0o601] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let error = folder.key().unwrap_err();
        assert!(
            matches!(error, StateError::Exposed { mode: found, .. } if found == mode),
            "{error}"
        );
        assert!(error.is_refusal());
    }
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(folder.key().unwrap(), key);

    for bytes in [0, 31, 33] {
        fs::write(&path, vec![1; bytes]).unwrap();
        let error = folder.key().unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("should have 32"), "{error}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(folder.key().unwrap_err(), StateError::NotAFile { .. }));
    fs::remove_dir(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    assert!(matches!(folder.key().unwrap_err(), StateError::Unusable { .. }));
}

#[test]
fn where_no_folder_can_be_made_there_is_no_key_and_no_refusal() {
    let (parent, _) = folder();
    fs::write(parent.path().join("file"), b"").unwrap();
    let error = StateFolder::new(parent.path().join("file/state")).key().unwrap_err();
    assert!(!error.is_refusal(), "{error}");
}

#[test]
fn the_folder_is_the_supervisors_or_the_users() {
    let folder = |variables: &[(&str, &str)]| {
        let find = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| PathBuf::from(value))
        };
        StateFolder::of(find).map(|folder| folder.0)
    };
    let (home, xdg) = (("HOME", "/home/me"), ("XDG_STATE_HOME", "/state"));
    let path = |path: &str| Some(PathBuf::from(path));
    let made = ("STATE_DIRECTORY", "/var/lib/burst:/var/lib/other");
    assert_eq!(folder(&[home, xdg, made]), path("/var/lib/burst"));
    assert_eq!(folder(&[home, xdg]), path("/state/burst"));
    assert_eq!(folder(&[home, ("XDG_STATE_HOME", "state")]), path("/home/me/.local/state/burst"));
    assert_eq!(folder(&[("HOME", "")]), None);
    assert_eq!(folder(&[]), None);
}
