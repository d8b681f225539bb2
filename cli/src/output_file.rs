//! Files that a command will write at its end: whether they can be written is seen at its beginning; and pages among
//! them are shown.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::fs::Access;

/// Sees whether a file can be written, without touching it.
///
/// # Errors
/// It cannot; the message names the option.
pub(crate) fn check(option: &str, path: &Path) -> Result<()> {
    let what = || format!("{option} {}", path.display());
    if let Ok(found) = std::fs::metadata(path) {
        if found.is_dir() {
            bail!("{}: it is a folder", what());
        }
        return rustix::fs::access(path, Access::WRITE_OK).with_context(what);
    }
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => bail!("{}: it is no file", what()),
    };
    if folder.exists() && !folder.is_dir() {
        bail!("{}: {} is not a folder", what(), folder.display());
    }
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).with_context(what)
}

/// The same of a file whose folders are made when it is written.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_with_folders(option: &str, path: &Path) -> Result<()> {
    let folders = path.ancestors().skip(1);
    match folders.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).last() {
        // The topmost folder that is to be made stands for what lies below.
        Some(missing) => check(option, missing),
        None => check(option, path),
    }
}

/// Shows a page in whatever this desktop opens pages with.
///
/// # Errors
/// Nothing does; the message names the option.
pub(crate) fn show(page: &Path) -> Result<()> {
    let opened = Command::new("xdg-open")
        .arg(page)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("--open: cannot start xdg-open")?;
    if !opened.success() {
        bail!("--open: xdg-open {} ended with {opened}", page.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_to_be_made_are_seen_from_those_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there"), "kept").unwrap();
        let inside =
            |name: &str| check_with_folders("--output", &folder.path().join(name)).map_err(drop);
        assert_eq!([inside("new"), inside("a/b/new"), inside("there")], [Ok(()); 3]);
        assert_eq!([inside("there/new"), inside("there/a/new"), inside("")], [Err(()); 3]);
        assert!(!folder.path().join("a").exists());
    }

    #[test]
    fn only_what_can_be_written_passes_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| check("--report", &folder.path().join(name));
        std::fs::write(folder.path().join("there"), "kept").unwrap();
        inside("there").unwrap();
        inside("new.html").unwrap();
        assert_eq!(std::fs::read(folder.path().join("there")).unwrap(), b"kept");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        check("--report", Path::new("new.html")).unwrap();
        for (name, part) in
            [("no/such.html", "No such"), ("there/x.html", "not a folder"), ("", "folder")]
        {
            let said = format!("{:#}", inside(name).unwrap_err());
            assert!(said.starts_with("--report ") && said.contains(part), "{name}: {said}");
        }
    }
}
