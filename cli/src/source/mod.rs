//! Where frames come from: the synthetic camera, cameras, pictures, video, raw bytes.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, bail};

mod camera;
mod colours;
mod demo;
mod list;
mod raw;
mod stills;
mod y4m;

pub(crate) use camera::{CameraFacts, CameraFormat, CameraOptions, Live};
pub(crate) use list::list;
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
    /// Moves on to the next frame; false when there are no more. After an error the next call goes on behind what
    /// is damaged, or ends.
    fn advance(&mut self) -> Result<bool>;

    /// The frame that [`Source::advance`] moved to.
    fn frame(&self) -> Frame<'_>;

    /// Whether it would go on for ever.
    fn is_endless(&self) -> bool {
        false
    }

    /// Whether its frames come when they come, and not when they are asked for.
    fn comes_by_itself(&self) -> bool {
        false
    }

    /// Of a camera: when the current frame was taken, and what became of others.
    fn live(&self) -> Option<Live> {
        None
    }

    /// Of a camera: what it said of itself.
    fn camera(&self) -> Option<CameraFacts> {
        None
    }

    /// Names of the classes that [`Frame::truth`] counts.
    fn class_names(&self) -> Option<&'static [&'static str]> {
        None
    }
}

/// The synthetic camera's name.
pub(crate) const DEMO: &str = "demo";
/// Endings of pictures that are read.
const PICTURES: [&str; 3] = ["jpg", "jpeg", "png"];
/// Endings of files of raw frames.
const RAW: [&str; 3] = ["rgb", "gray", "raw"];

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
    match ending(spec).as_deref() {
        Some("wav") => Kind::Sound,
        Some("f32") => Kind::Values,
        _ => Kind::Pictures,
    }
}

/// The ending of the file that `--source` names, in small letters; `None` of a folder.
fn ending(spec: &str) -> Option<String> {
    let path = Path::new(spec);
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.filter(|_| !path.is_dir())
}

/// Whether `--source` names one picture, which can be sent again and again.
pub(crate) fn is_single(spec: &str) -> bool {
    ending(spec).is_some_and(|ending| PICTURES.contains(&ending.as_str()))
}

/// Whether `--source` names pictures that have nothing to do with each other.
pub(crate) fn is_stills(spec: &str) -> bool {
    is_single(spec) || Path::new(spec).is_dir()
}

/// Whether `--source` names a camera: its device file, or one of the links that udev makes to it.
pub(crate) fn is_camera(spec: &str) -> bool {
    spec.starts_with("/dev/video") || spec.starts_with("/dev/v4l/")
}

/// Whether `--source` names raw frames, whose size it does not know.
pub(crate) fn is_raw(spec: &str) -> bool {
    matches!(spec, "-" | "stdin")
        || ending(spec).is_some_and(|ending| RAW.contains(&ending.as_str()))
}

/// How to make something of a file that is not read, where a program for that is known.
fn conversion(spec: &str, ending: &str) -> Option<String> {
    match ending {
        "mp3" | "m4a" | "aac" | "ogg" | "oga" | "opus" | "flac" | "wma" | "aif" | "aiff" => {
            Some(format!("sound is read from .wav files: ffmpeg -i {spec} -ac 1 sound.wav"))
        }
        "mp4" | "m4v" | "mov" | "mkv" | "avi" | "webm" | "mpg" | "mpeg" | "ts" | "wmv" => Some(
            format!("video is read from .y4m files: ffmpeg -i {spec} -pix_fmt yuv420p video.y4m"),
        ),
        "gif" | "webp" | "bmp" | "tif" | "tiff" | "heic" | "heif" | "avif" => Some(format!(
            "pictures are read from .jpg and .png files: ffmpeg -i {spec} picture.png"
        )),
        _ => None,
    }
}

/// What sources are opened with, each with its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Of the synthetic camera.
    pub(crate) seed: u64,
    /// Of raw frames.
    pub(crate) raw: Option<RawFormat>,
    /// Of a camera.
    pub(crate) camera: CameraOptions,
}

/// Refuses what is no regular file: a pipe that nobody writes to would be waited for.
pub(crate) fn check_is_file(path: &Path) -> std::io::Result<()> {
    if std::fs::metadata(path)?.is_file() {
        Ok(())
    } else {
        Err(std::io::Error::other("it is not a file"))
    }
}

/// Opens what `--source` names.
pub(crate) fn open(spec: &str, options: Options) -> Result<Box<dyn Source>> {
    let Options { seed, raw, camera } = options;
    match spec {
        DEMO => return Ok(Box::new(demo::Demo::new(seed)?)),
        "-" | "stdin" => {
            let Some(format) = raw else {
                bail!("raw frames on standard input need --size WIDTHxHEIGHT");
            };
            return Ok(Box::new(raw::Raw::new(std::io::stdin().lock(), format, "stdin")));
        }
        _ if is_camera(spec) => return Ok(Box::new(camera::Camera::open(spec, camera)?)),
        _ => {}
    }
    let path = Path::new(spec);
    let meta = std::fs::metadata(path).with_context(|| format!("cannot open source {spec}"))?;
    if meta.is_dir() {
        return Ok(Box::new(stills::Stills::folder(path)?));
    }
    let ending = ending(spec).unwrap_or_default();
    match ending.as_str() {
        "y4m" => Ok(Box::new(y4m::Video::open(path)?)),
        ending if PICTURES.contains(&ending) => Ok(Box::new(stills::Stills::file(path))),
        ending if RAW.contains(&ending) => match raw {
            Some(format) => {
                let file = File::open(path).with_context(|| format!("cannot open {spec}"))?;
                Ok(Box::new(raw::Raw::new(BufReader::new(file), format, spec)))
            }
            None => bail!("{spec}: raw frames need --size WIDTHxHEIGHT"),
        },
        "wav" | "f32" => bail!("{spec}: a picture is needed here"),
        ending => match conversion(spec, ending) {
            Some(how) => bail!("{spec}: a .{ending} file is not read; {how}"),
            None => bail!(
                "{spec}: not a picture, video or sound this can read (.jpg, .jpeg, .png, .y4m, .wav, \
                 .f32, a folder of pictures, `demo`, /dev/videoN, or `-` for raw frames on standard input)"
            ),
        },
    }
}
