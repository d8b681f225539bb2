//! JPEG and PNG pictures: one file, or all of a folder by name.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use image::{ImageReader, Limits};

use super::{Frame, MAX_SIDE, Source};

/// Most bytes a picture may take while it is decoded: a small file can claim a huge picture.
const MAX_DECODED_BYTES: u64 = 1 << 30;

pub(super) struct Stills {
    files: std::vec::IntoIter<PathBuf>,
    name: String,
    rgb: Vec<u8>,
    size: (u32, u32),
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
        Stills { files: files.into_iter(), name: String::new(), rgb: Vec::new(), size: (0, 0) }
    }
}

impl Source for Stills {
    fn advance(&mut self) -> Result<bool> {
        let Some(path) = self.files.next() else { return Ok(false) };
        let (width, height, rgb) = decode(&path)?;
        self.rgb = rgb;
        self.size = (width, height);
        self.name = path.display().to_string();
        Ok(true)
    }

    fn frame(&self) -> Frame<'_> {
        let (width, height) = self.size;
        Frame { width, height, rgb: &self.rgb, name: &self.name, truth: None }
    }
}

fn decode(path: &Path) -> Result<(u32, u32, Vec<u8>)> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let what = || format!("cannot read the picture {}", path.display());
    let mut reader = ImageReader::open(path).with_context(what)?;
    reader.limits(limits);
    let picture =
        reader.with_guessed_format().with_context(what)?.decode().with_context(what)?.into_rgb8();
    Ok((picture.width(), picture.height(), picture.into_raw()))
}
