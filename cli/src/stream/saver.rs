//! What a run leaves behind in files: frames with the result drawn in, outputs as they are.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::Access;

use crate::draw::Canvas;

/// Most frames that are saved: their number has six digits.
const MAX_FRAMES: u64 = 999_999;

/// Writes pictures into a folder: `frame-000001.png` and so on.
#[derive(Debug)]
pub(crate) struct FrameSaver {
    folder: PathBuf,
    saved: u64,
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
        Ok(FrameSaver { folder: folder.into(), saved: 0 })
    }

    /// Writes one more picture.
    pub(crate) fn save(&mut self, picture: &Canvas) -> Result<()> {
        if self.saved == MAX_FRAMES {
            return Ok(());
        }
        self.saved += 1;
        if self.saved == MAX_FRAMES {
            tracing::warn!("{MAX_FRAMES} frames are saved; no more are");
        }
        let file = self.folder.join(format!("frame-{:06}.png", self.saved));
        burst_pictures::write_png(&file, picture.width(), picture.height(), picture.rgb())
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Writes outputs one behind the other.
pub(crate) struct OutputSaver {
    file: BufWriter<File>,
    name: PathBuf,
}

impl OutputSaver {
    pub(crate) fn new(name: &Path) -> Result<Self> {
        let what = || format!("cannot write {}", name.display());
        let file = BufWriter::new(File::create(name).with_context(what)?);
        Ok(OutputSaver { file, name: name.into() })
    }

    pub(crate) fn save(&mut self, output: &[u8]) -> Result<()> {
        self.file.write_all(output).with_context(|| format!("cannot write {}", self.name.display()))
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        self.file.flush().with_context(|| format!("cannot write {}", self.name.display()))
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
        for _ in 0..2 {
            saver.save(&Canvas::new(2, 3, rgb.clone())).unwrap();
        }
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
