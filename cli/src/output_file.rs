//! Files that a command will write at its end: whether they can be written is seen at its beginning; and pages among
//! them are shown.

use std::fs::{Metadata, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
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
        // A pipe that nobody reads would be waited for at the end of the work, and a device is not for this.
        if !found.is_file() {
            bail!("{}: it is not a file", what());
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

/// The same of a file that [`replace`] writes: its folder has to take another one, or to be made.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_replaceable(option: &str, path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        let what = || format!("{option} {}", path.display());
        let file = path.canonicalize().with_context(what)?;
        check(option, path)?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        return rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).with_context(what);
    }
    let folders = path.ancestors().skip(1);
    match folders.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).last() {
        // The topmost folder that is to be made stands for what lies below.
        Some(missing) => check(option, missing),
        None => check(option, path),
    }
}

/// Writes a whole file in place of the one that is there, if any, and its folders where they are missing. Whoever
/// reads meanwhile sees the old file or the new one; on an error the old one stays, and nothing beside it. A link
/// stays one: the file that it leads to is replaced.
///
/// # Errors
/// It cannot be written; what is there is no regular file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let (file, mode) = match path.symlink_metadata() {
        Ok(_) => {
            let file = path.canonicalize()?;
            let there = file.metadata()?;
            if !there.is_file() {
                return Err(std::io::Error::other("it is not a file"));
            }
            (file, Some(there.permissions()))
        }
        Err(_) => (path.to_owned(), None),
    };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // Removed where it does not get its name. The mode is cut by the umask, as that of any new file.
    let mut new = tempfile::Builder::new()
        .prefix(".burst-")
        .suffix(".new")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    new.write_all(bytes)?;
    if let Some(mode) = mode {
        new.as_file().set_permissions(mode)?;
    }
    new.persist(file)?;
    Ok(())
}

/// Files that a command reads or writes, each with the option that names it.
pub(crate) type Named<'a> = (&'a str, &'a Path);

/// Refuses two outputs in one file, and an output in the place of what is read.
///
/// # Errors
/// Two of them are one; the message names both options.
pub(crate) fn check_distinct(outputs: &[Named<'_>], inputs: &[Named<'_>]) -> Result<()> {
    for (place, (option, path)) in outputs.iter().enumerate() {
        let others = outputs[..place].iter().chain(inputs);
        if let Some((other, _)) = others.into_iter().find(|(_, other)| is_same(path, other)) {
            bail!("{option} {}: {other} names the same file", path.display());
        }
    }
    Ok(())
}

/// Whether two paths name one place, whatever is there.
pub(crate) fn is_one_place(a: &Path, b: &Path) -> bool {
    a == b || whole(a).is_some_and(|whole_a| Some(whole_a) == whole(b))
}

/// Whether two paths lead to one regular file, or would.
fn is_same(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => {
            let place = |found: &Metadata| (found.dev(), found.ino());
            a.is_file() && place(&a) == place(&b)
        }
        (Err(_), Err(_)) => whole(a).is_some_and(|whole_a| Some(whole_a) == whole(b)),
        _ => false,
    }
}

/// The path of a file that is not there yet, in a folder that is.
fn whole(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
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
            |name: &str| check_replaceable("--output", &folder.path().join(name)).map_err(drop);
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

    #[test]
    fn a_file_is_replaced_where_a_link_leads_and_nothing_but_a_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        let (file, link, lost) = (inside("file"), inside("link"), inside("lost"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        std::os::unix::fs::symlink("nowhere", &lost).unwrap();
        check_replaceable("--output", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        let (here, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
        let pipe = inside("pipe");
        rustix::fs::mknodat(here, &pipe, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        for wrong in [&pipe, &lost] {
            check_replaceable("--output", wrong).unwrap_err();
            replace(wrong, b"new").unwrap_err();
        }
        // A folder has the name of the file that was to be: the rename fails, and leaves nothing.
        let taken = inside("taken");
        std::fs::create_dir(&taken).unwrap();
        replace(&taken, b"new").unwrap_err();
        assert!(!pipe.metadata().unwrap().is_file() && lost.is_symlink());
        replace(&inside("a/b"), b"new").unwrap();
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "file", "link", "lost", "pipe", "taken"]);
    }

    #[test]
    fn one_file_is_not_written_twice_nor_over_what_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let new = folder.path().join("new");
        let same_new = folder.path().join(".").join("new");
        let said = |a: &Path, b: &Path, c: &Path| {
            let checked = check_distinct(&[("--a", a), ("--b", b)], &[("--c", c)]);
            checked.err().map(|error| error.to_string())
        };
        assert_eq!(said(&file, &new, Path::new("/dev/null")), None);
        let text = said(&new, &same_new, &file).unwrap();
        assert!(text.starts_with("--b ") && text.ends_with(": --a names the same file"), "{text}");
        assert!(said(&new, &link, &file).unwrap().ends_with("--c names the same file"));
        assert_eq!(said(Path::new("/dev/null"), Path::new("/dev/null"), &file), None);
    }
}
