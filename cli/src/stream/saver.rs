//! What a run leaves behind in files: frames with the result drawn in, outputs as they are.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::Access;

use crate::draw::Canvas;

/// Most frames that are saved: their number has six digits.
const MAX_FRAMES: u64 = 999_999;

/// Writes pictures into a folder: `frame-000001.png` and so on, by the numbers that results have.
#[derive(Debug)]
pub(crate) struct FrameSaver {
    folder: PathBuf,
    is_full: bool,
}

impl FrameSaver {
    /// Makes the folder where it is not there, and sees whether files can be written in it.
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let what = || format!("cannot save frames in {}", folder.display());
        if folder.exists() && !folder.is_dir() {
            bail!("{}: it is not a folder", what());
        }
        std::fs::create_dir_all(folder).with_context(what)?;
        rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).with_context(what)?;
        Ok(FrameSaver { folder: folder.into(), is_full: false })
    }

    /// Writes the picture of the frame with this number.
    pub(crate) fn save(&mut self, number: u64, picture: &Canvas) -> Result<()> {
        if number > MAX_FRAMES {
            if !self.is_full {
                tracing::warn!("frames up to {MAX_FRAMES} are saved; no more are");
            }
            self.is_full = true;
            return Ok(());
        }
        let file = self.folder.join(format!("frame-{number:06}.png"));
        burst_pictures::write_png(&file, picture.width(), picture.height(), picture.rgb())
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Writes outputs one behind the other, each at once: an interrupted run has all that were computed.
#[derive(Debug)]
pub(crate) struct OutputSaver {
    file: File,
    name: PathBuf,
}

impl OutputSaver {
    pub(crate) fn new(name: &Path) -> Result<Self> {
        let what = || format!("cannot write {}", name.display());
        let file = File::create(name).with_context(what)?;
        Ok(OutputSaver { file, name: name.into() })
    }

    pub(crate) fn save(&mut self, output: &[u8]) -> Result<()> {
        self.file.write_all(output).with_context(|| format!("cannot write {}", self.name.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        let mut saver = FrameSaver::new(&inner).unwrap();
        let rgb: Vec<u8> = (0..2 * 3 * 3).collect();
        for number in [2, 7, MAX_FRAMES + 1] {
            saver.save(number, &Canvas::new(2, 3, rgb.clone())).unwrap();
        }
        assert!(inner.join("frame-000007.png").exists());
        let read = burst_pictures::read(&inner.join("frame-000002.png")).unwrap();
        assert_eq!((read.width, read.height, read.rgb), (2, 3, rgb));
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 2);
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        std::fs::write(&file, "").unwrap();
        let error = FrameSaver::new(&file).unwrap_err().to_string();
        assert!(error.contains("not a folder"), "{error}");
        assert!(FrameSaver::new(&file.join("below")).is_err());
        assert!(FrameSaver::new(Path::new("/proc/nowhere")).is_err());
        assert!(OutputSaver::new(&file.join("x")).is_err());
    }
}
