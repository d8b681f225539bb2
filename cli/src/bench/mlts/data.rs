//! A data set: pictures and sounds of folders, and which class each file shows where somebody says it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// Endings of pictures.
const PICTURES: [&str; 3] = ["jpg", "jpeg", "png"];
/// The ending of sounds.
const SOUND: &str = "wav";
/// Folders within folders that are looked into: links may lead in a circle.
const DEPTH_MAX: usize = 12;
/// Largest file of classes that is read, in bytes.
const TRUTH_BYTES_MAX: u64 = 64 << 20;

/// The files of a data set.
#[derive(Debug, Default)]
pub(super) struct DataSet {
    /// By name.
    pub(super) pictures: Vec<File>,
    /// By name.
    pub(super) sounds: Vec<File>,
    /// How many other files there are, which are neither.
    pub(super) others: usize,
    /// In place of whole pictures so many parts of them.
    pub(super) crops: Option<Crops>,
}

/// Parts of pictures, chosen by a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Crops {
    pub(super) count: u64,
    pub(super) seed: u64,
}

/// A picture or a sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// What it is called in results: its path below the folder that was named.
    pub(super) name: String,
    /// What it shows: a number of a class, or its label.
    pub(super) truth: Option<String>,
}

impl DataSet {
    /// All pictures and sounds of these folders and those below, and these files.
    ///
    /// # Errors
    /// A folder cannot be read; there is no picture and no sound.
    pub(super) fn read(places: &[PathBuf], crops: Option<Crops>) -> Result<DataSet> {
        let mut data = DataSet { crops, ..DataSet::default() };
        for place in places {
            let meta = std::fs::metadata(place)
                .with_context(|| format!("cannot read the data {}", place.display()))?;
            if meta.is_dir() {
                data.folder(place, place, DEPTH_MAX)?;
            } else if !meta.is_file() {
                // A pipe that nobody writes to would be waited for.
                bail!(
                    "cannot read the data {}: it is neither a file nor a folder",
                    place.display()
                );
            } else {
                data.file(place, place.parent().unwrap_or(place));
            }
        }
        if data.pictures.is_empty() && data.sounds.is_empty() {
            let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
            bail!("{}: no .jpg, .jpeg, .png or .wav in it", places.join(", "));
        }
        if crops.is_some() && data.pictures.is_empty() {
            bail!("--crops: the data has no pictures");
        }
        Ok(data)
    }

    fn folder(&mut self, root: &Path, folder: &Path, depth: usize) -> Result<()> {
        let what = || format!("cannot read the folder {}", folder.display());
        let entries = std::fs::read_dir(folder).with_context(what)?;
        let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
        let mut paths = paths.with_context(what)?;
        paths.sort();
        for path in paths {
            if !path.is_dir() {
                self.file(&path, root);
            } else if depth == 0 {
                bail!("{}: more than {DEPTH_MAX} folders within each other", path.display());
            } else {
                self.folder(root, &path, depth - 1)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, root: &Path) {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let ending = ending.to_ascii_lowercase();
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let file = File { path: path.to_owned(), name, truth: None };
        // A pipe that nobody writes to would be waited for; a link to nothing is told where it is read.
        let is_other = path.metadata().is_ok_and(|found| !found.is_file());
        match ending.as_str() {
            _ if is_other => self.others += 1,
            ending if PICTURES.contains(&ending) => self.pictures.push(file),
            SOUND => self.sounds.push(file),
            _ => self.others += 1,
        }
    }

    /// Takes in what each file shows: lines with its name, then a comma, a tab or a space, and its class.
    ///
    /// # Errors
    /// The file cannot be read, a line has no class, or names a file that is not in the data.
    pub(super) fn take_truth(&mut self, file: &Path) -> Result<()> {
        let what = || format!("--truth {}", file.display());
        if std::fs::metadata(file).with_context(what)?.len() > TRUTH_BYTES_MAX {
            bail!("{}: more than {TRUTH_BYTES_MAX} bytes", what());
        }
        let text = std::fs::read_to_string(file).with_context(what)?;
        let mut classes = classes(&text).with_context(what)?;
        for file in self.pictures.iter_mut().chain(&mut self.sounds) {
            let short = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let key = if classes.contains_key(&file.name) { file.name.as_str() } else { short };
            if let Some((class, is_used)) = classes.get_mut(key) {
                (file.truth, *is_used) = (Some(class.clone()), true);
            }
        }
        match classes.iter().find(|(_, (_, is_used))| !is_used) {
            Some((name, _)) => bail!("{}: no file {name} in the data", what()),
            None => Ok(()),
        }
    }

    /// How many inputs a model of pictures gets.
    pub(super) fn picture_inputs(&self) -> u64 {
        self.crops.map_or(self.pictures.len() as u64, |crops| crops.count)
    }
}

/// The class of each file, and whether somebody has asked for it.
fn classes(text: &str) -> Result<BTreeMap<String, (String, bool)>> {
    let mut classes = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let split = [',', '\t', ' '].iter().find_map(|by| line.rsplit_once(*by));
        let Some((name, class)) = split else { bail!("line {number} has no class: {line}") };
        let (name, class) = (name.trim().to_owned(), class.trim().to_owned());
        if classes.insert(name, (class, false)).is_some() {
            bail!("line {number}: its file was there before: {line}");
        }
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> (tempfile::TempDir, DataSet) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("more")).unwrap();
        for name in ["b.JPG", "a.png", "more/c.jpeg", "more/s.wav", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let data = DataSet::read(&[folder.path().to_owned()], None).unwrap();
        (folder, data)
    }

    #[test]
    fn folders_are_looked_through_and_what_is_neither_is_counted() {
        let (folder, data) = data();
        let names = |files: &[File]| files.iter().map(|f| f.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&data.pictures), ["a.png", "b.JPG", "more/c.jpeg"]);
        let pipe = folder.path().join("p.jpg");
        let (here, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(here, &pipe, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        let with_pipe = DataSet::read(&[folder.path().to_owned()], None).unwrap();
        assert_eq!((with_pipe.pictures.len(), with_pipe.others), (3, 2), "nobody waits for it");
        let said = DataSet::read(&[pipe], None).unwrap_err().to_string();
        assert!(said.contains("p.jpg: it is neither a file nor a folder"), "{said}");
        assert_eq!((names(&data.sounds), data.others), (vec!["more/s.wav".to_owned()], 1));
        let empty = tempfile::tempdir().unwrap();
        let said = DataSet::read(&[empty.path().to_owned()], None).unwrap_err().to_string();
        assert!(said.contains("no .jpg"), "{said}");
    }

    #[test]
    fn what_files_show_is_read_by_name_and_a_stranger_is_refused() {
        let (folder, mut data) = data();
        let file = folder.path().join("truth.csv");
        std::fs::write(&file, "# class\na.png,7\nc.jpeg\tcat\n").unwrap();
        data.take_truth(&file).unwrap();
        let truths: Vec<Option<&str>> = data.pictures.iter().map(|f| f.truth.as_deref()).collect();
        assert_eq!(truths, [Some("7"), None, Some("cat")]);
        for (text, part) in [
            ("nobody.jpg 3", "no file nobody.jpg"),
            ("a.png", "line 1 has no class"),
            ("a.png 1\na.png 2", "line 2"),
        ] {
            std::fs::write(&file, text).unwrap();
            let said = format!("{:#}", data.take_truth(&file).unwrap_err());
            assert!(said.contains(part), "{said}");
        }
    }
}
