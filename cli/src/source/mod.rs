//! Where frames come from: the synthetic camera, pictures, video, raw bytes.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, bail};

mod demo;
mod raw;
mod stills;
mod y4m;

pub(crate) use raw::{PixelFormat, RawFormat, Size};

pub(crate) use burst_pictures::MAX_SIDE;

/// One picture, as RGB bytes.
pub(crate) struct Frame<'a> {
    /// Pixels in a row.
    pub(crate) width: u32,
    /// Rows.
    pub(crate) height: u32,
    /// Rows from top to bottom, red, green, blue.
    pub(crate) rgb: &'a [u8],
    /// What the frame is called in results, such as its file.
    pub(crate) name: &'a str,
    /// The class that it is known to show.
    pub(crate) truth: Option<usize>,
}

/// A sequence of frames.
pub(crate) trait Source {
    /// Moves on to the next frame; false when there are no more.
    fn advance(&mut self) -> Result<bool>;

    /// The frame that [`Source::advance`] moved to.
    fn frame(&self) -> Frame<'_>;

    /// Whether it would go on for ever.
    fn is_endless(&self) -> bool {
        false
    }

    /// Names of the classes that [`Frame::truth`] counts.
    fn class_names(&self) -> Option<&'static [&'static str]> {
        None
    }
}

/// What `--source` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Pictures, of whatever origin.
    Pictures,
    /// Sound: a .wav file.
    Sound,
    /// Values of the model's input as they are: a .f32 file.
    Values,
}

/// What `--source` gives, by its name alone.
pub(crate) fn kind(spec: &str) -> Kind {
    let path = Path::new(spec);
    let ending = path.extension().and_then(|ext| ext.to_str()).map(str::to_ascii_lowercase);
    match ending.as_deref() {
        Some("wav") if !path.is_dir() => Kind::Sound,
        Some("f32") if !path.is_dir() => Kind::Values,
        _ => Kind::Pictures,
    }
}

/// Whether `--source` names one picture, which can be sent again and again.
pub(crate) fn is_single(spec: &str) -> bool {
    let ending = Path::new(spec).extension().and_then(|ext| ext.to_str());
    matches!(ending.map(str::to_ascii_lowercase).as_deref(), Some("jpg" | "jpeg" | "png"))
        && !Path::new(spec).is_dir()
}

/// Opens what `--source` names.
pub(crate) fn open(spec: &str, seed: u64, raw: Option<RawFormat>) -> Result<Box<dyn Source>> {
    match spec {
        "demo" => return Ok(Box::new(demo::Demo::new(seed)?)),
        "-" | "stdin" => {
            let Some(format) = raw else {
                bail!("raw frames on standard input need --size WIDTHxHEIGHT");
            };
            return Ok(Box::new(raw::Raw::new(std::io::stdin().lock(), format, "stdin")));
        }
        _ => {}
    }
    let path = Path::new(spec);
    let meta = std::fs::metadata(path).with_context(|| format!("cannot open source {spec}"))?;
    if meta.is_dir() {
        return Ok(Box::new(stills::Stills::folder(path)?));
    }
    match path.extension().and_then(|ext| ext.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("y4m") => Ok(Box::new(y4m::Video::open(path)?)),
        Some("jpg" | "jpeg" | "png") => Ok(Box::new(stills::Stills::file(path))),
        Some("rgb" | "gray" | "raw") => match raw {
            Some(format) => {
                let file = File::open(path).with_context(|| format!("cannot open {spec}"))?;
                Ok(Box::new(raw::Raw::new(BufReader::new(file), format, spec)))
            }
            None => bail!("{spec}: raw frames need --size WIDTHxHEIGHT"),
        },
        Some("wav" | "f32") => bail!("{spec}: a picture is needed here"),
        _ => bail!(
            "{spec}: not a picture, video or sound this can read (.jpg, .jpeg, .png, .y4m, .wav, \
             .f32, a folder of pictures, `demo`, or `-` for raw frames on standard input)"
        ),
    }
}
