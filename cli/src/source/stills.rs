//! JPEG and PNG pictures: one file, or all of a folder by name.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use burst_pictures::Picture;

use super::{Frame, Source};

pub(super) struct Stills {
    files: std::vec::IntoIter<PathBuf>,
    name: String,
    picture: Picture,
}

impl Stills {
    pub(super) fn file(path: &Path) -> Self {
        Self::new(vec![path.to_path_buf()])
    }

    pub(super) fn folder(path: &Path) -> Result<Self> {
        let entries = std::fs::read_dir(path)
            .with_context(|| format!("cannot read the folder {}", path.display()))?;
        let mut files = Vec::new();
        for entry in entries {
            let file = entry.with_context(|| format!("cannot read {}", path.display()))?.path();
            let ending = file.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
            if matches!(ending.as_deref(), Some("jpg" | "jpeg" | "png")) {
                files.push(file);
            }
        }
        if files.is_empty() {
            bail!("{}: no .jpg, .jpeg or .png in this folder", path.display());
        }
        files.sort();
        Ok(Self::new(files))
    }

    fn new(files: Vec<PathBuf>) -> Self {
        let picture = Picture { width: 0, height: 0, rgb: Vec::new() };
        Stills { files: files.into_iter(), name: String::new(), picture }
    }
}

impl Source for Stills {
    fn advance(&mut self) -> Result<bool> {
        let Some(path) = self.files.next() else { return Ok(false) };
        let what = || format!("cannot read the picture {}", path.display());
        super::check_is_file(&path).with_context(what)?;
        self.picture = burst_pictures::read(&path).with_context(what)?;
        self.name = path.display().to_string();
        Ok(true)
    }

    fn frame(&self) -> Frame<'_> {
        let Picture { width, height, ref rgb } = self.picture;
        Frame { width, height, rgb, name: &self.name, truth: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_writes_to_is_refused_and_the_next_picture_comes() {
        let folder = tempfile::tempdir().unwrap();
        let (here, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
        let pipe = folder.path().join("a.png");
        rustix::fs::mknodat(here, &pipe, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        burst_pictures::write_png(&folder.path().join("b.png"), 1, 1, &[1, 2, 3]).unwrap();
        let mut stills = Stills::folder(folder.path()).unwrap();
        let said = format!("{:#}", stills.advance().unwrap_err());
        assert!(said.contains("a.png") && said.ends_with("it is not a file"), "{said}");
        assert!(stills.advance().unwrap());
        assert_eq!(stills.frame().rgb, [1, 2, 3]);
    }
}
