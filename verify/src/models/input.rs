//! The input of a golden: from the bytes of a file to the tensor of each execution.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::files::{read, read_json};
use super::wave;
use crate::golden_error::GoldenError;

/// Most executions that one golden can ask for.
const MAX_EXECUTIONS: usize = 100_000;
/// Longest side of a window that the camera cuts out.
const MAX_SIDE: usize = 1 << 14;
/// Bytes of a pixel of the camera's picture.
const PIXEL_BYTES: usize = 3;

/// Where a golden's input comes from.
#[derive(Deserialize)]
pub(crate) struct InputSpec {
    file: PathBuf,
    transform: String,
    /// Side of the camera's window.
    size: Option<usize>,
    frames: Option<usize>,
    #[serde(default)]
    frame_offset: usize,
    #[serde(default)]
    sample_offset: usize,
    samples: Option<usize>,
}

/// What is done to the bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transform {
    /// Nothing.
    None,
    /// u8 to f32: `(x - 127.5) / 127.5`.
    Centred,
    /// u8 to f32.
    Widened,
    /// u8 to i8: `x - 128`.
    Signed,
    /// i16 to f32: `x / 32768`.
    Waveform,
}

impl Transform {
    fn apply(self, bytes: &[u8], into: &mut Vec<u8>) {
        let mut float = |value: f32| into.extend(value.to_ne_bytes());
        match self {
            Transform::Centred => {
                bytes.iter().for_each(|b| float((f32::from(*b) - 127.5) / 127.5));
            }
            Transform::Widened => bytes.iter().for_each(|b| float((*b).into())),
            Transform::Waveform => {
                for sample in bytes.as_chunks::<2>().0 {
                    float(f32::from(i16::from_le_bytes(*sample)) / 32_768.0);
                }
            }
            Transform::Signed => into.extend(bytes.iter().map(|b| b ^ 0x80)),
            Transform::None => into.extend(bytes),
        }
    }

    /// Bytes that it makes of `length`.
    fn grown(self, length: usize) -> usize {
        match self {
            Transform::Centred | Transform::Widened => length.saturating_mul(4),
            Transform::Waveform => length / 2 * 4,
            Transform::Signed | Transform::None => length,
        }
    }
}

/// The input of each execution.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    transform: Transform,
    /// Ranges of `bytes` that follow one another in the tensor.
    executions: Vec<Vec<std::ops::Range<usize>>>,
}

impl Input {
    /// Reads the input of a golden for a model that takes `wanted` bytes.
    pub(crate) fn open(
        root: &Path,
        golden: &Path,
        spec: &InputSpec,
        wanted: usize,
    ) -> Result<Self, GoldenError> {
        let (transform, streams) = parse(&spec.transform).ok_or_else(|| GoldenError::Unknown {
            path: golden.to_owned(),
            what: "transform",
            found: spec.transform.clone(),
        })?;
        let path = root.join(&spec.file);
        let input = if spec.size.is_some() {
            camera(root, golden, &path, spec, transform)?
        } else if transform == Transform::Waveform {
            sound(golden, &path, spec, transform)?
        } else {
            plain((golden, &path), spec, transform, streams, wanted)?
        };
        input.check(&path, golden, wanted)?;
        Ok(input)
    }

    /// How many executions there are.
    pub(crate) fn executions(&self) -> usize {
        self.executions.len()
    }

    /// Keeps only the first of them.
    pub(crate) fn truncate(&mut self, executions: usize) {
        self.executions.truncate(executions);
    }

    /// The input tensor of one of them; empty where there is no such execution.
    pub(crate) fn of(&self, execution: usize) -> Vec<u8> {
        let ranges = self.executions.get(execution).map(Vec::as_slice).unwrap_or_default();
        let mut tensor = Vec::new();
        for range in ranges {
            self.transform.apply(self.bytes.get(range.clone()).unwrap_or_default(), &mut tensor);
        }
        tensor
    }

    /// Every range lies in the file, and together they are a tensor of the right size.
    fn check(&self, path: &Path, golden: &Path, wanted: usize) -> Result<(), GoldenError> {
        for ranges in &self.executions {
            let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
            if end > self.bytes.len() {
                return Err(GoldenError::Short {
                    path: path.to_owned(),
                    found: self.bytes.len(),
                    what: "the golden's input".to_owned(),
                    needed: end,
                });
            }
            let found: usize = ranges.iter().map(|range| self.transform.grown(range.len())).sum();
            if found != wanted {
                return Err(mismatch(golden, "bytes of the input tensor", found, wanted));
            }
        }
        Ok(())
    }
}

fn mismatch(golden: &Path, what: &'static str, found: usize, wanted: usize) -> GoldenError {
    GoldenError::Mismatch { path: golden.to_owned(), what, found, wanted }
}

/// The transform by its name, and whether each frame is an execution of its own.
fn parse(name: &str) -> Option<(Transform, bool)> {
    Some(match name {
        "none" | "none (u8 as is)" => (Transform::None, false),
        "f32 = (u8 - 127.5) / 127.5" => (Transform::Centred, false),
        "f32 = u8 (0..255)" => (Transform::Widened, false),
        "i8 = u8 - 128" => (Transform::Signed, false),
        "f32 = int16/32768" => (Transform::Waveform, false),
        _ if name.starts_with("one frame per execution") => (Transform::None, true),
        _ => return None,
    })
}

/// A file whose bytes follow one another, or a run of frames from it.
fn plain(
    (golden, path): (&Path, &Path),
    spec: &InputSpec,
    transform: Transform,
    streams: bool,
    wanted: usize,
) -> Result<Input, GoldenError> {
    let bytes = read(path)?;
    let Some(frames) = spec.frames else {
        let executions = vec![vec![0..bytes.len()]];
        return Ok(Input { bytes, transform, executions });
    };
    if !(1..=MAX_EXECUTIONS).contains(&frames) {
        return Err(mismatch(golden, "frames", frames, MAX_EXECUTIONS));
    }
    let frame_bytes = if streams { wanted } else { wanted / frames };
    let at = |frame: usize| spec.frame_offset.saturating_add(frame).saturating_mul(frame_bytes);
    let run = |from: usize, to: usize| std::iter::once(at(from)..at(to)).collect();
    let executions = match streams {
        true => (0..frames).map(|frame| run(frame, frame + 1)).collect(),
        false => vec![run(0, frames)],
    };
    Ok(Input { bytes, transform, executions })
}

/// A stretch of a sound file.
fn sound(
    golden: &Path,
    path: &Path,
    spec: &InputSpec,
    transform: Transform,
) -> Result<Input, GoldenError> {
    let file = read(path)?;
    let sound = |problem| GoldenError::Sound { path: path.to_owned(), problem };
    let bytes = wave::samples(&file).map_err(sound)?.to_vec();
    let samples = spec.samples.ok_or_else(|| GoldenError::Unknown {
        path: golden.to_owned(),
        what: "number of samples",
        found: String::new(),
    })?;
    let start = spec.sample_offset.saturating_mul(2);
    let end = start.saturating_add(samples.saturating_mul(2));
    Ok(Input { bytes, transform, executions: vec![vec![start..end]] })
}

/// A camera that pans over one picture.
#[derive(Deserialize)]
struct Pan {
    file: PathBuf,
    width: usize,
    /// Corners (column, row) of the window in each frame, by the window's side.
    crops: BTreeMap<String, Vec<[usize; 2]>>,
}

fn camera(
    root: &Path,
    golden: &Path,
    path: &Path,
    spec: &InputSpec,
    transform: Transform,
) -> Result<Input, GoldenError> {
    let pan: Pan = read_json(path)?;
    let size = spec.size.unwrap_or_default();
    let crops = pan.crops.get(&size.to_string()).ok_or_else(|| GoldenError::Unknown {
        path: golden.to_owned(),
        what: "window of the camera",
        found: size.to_string(),
    })?;
    let wanted = spec.frames.unwrap_or(crops.len()).clamp(1, MAX_EXECUTIONS);
    if crops.len() != wanted {
        return Err(mismatch(golden, "frames of the camera", crops.len(), wanted));
    }
    let widest = pan.width.min(MAX_SIDE);
    let right = crops.iter().map(|[x, _]| x.saturating_add(size)).max().unwrap_or(0);
    if right > widest {
        return Err(mismatch(golden, "right edge of the camera's windows", right, widest));
    }
    let line = |x: usize, y: usize| {
        let start = y.saturating_mul(pan.width).saturating_add(x).saturating_mul(PIXEL_BYTES);
        start..start.saturating_add(size.saturating_mul(PIXEL_BYTES))
    };
    let window =
        |[x, y]: &[usize; 2]| (0..size).map(|row| line(*x, y.saturating_add(row))).collect();
    let executions = crops.iter().map(window).collect();
    Ok(Input { bytes: read(&root.join(&pan.file))?, transform, executions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(transform: Transform, bytes: &[u8]) -> Vec<u8> {
        let mut tensor = Vec::new();
        transform.apply(bytes, &mut tensor);
        assert_eq!(tensor.len(), transform.grown(bytes.len()));
        tensor
    }

    #[test]
    fn transforms_do_what_they_are_called() {
        let floats =
            |values: &[f32]| values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<_>>();
        assert_eq!(applied(Transform::None, &[1, 2]), [1, 2]);
        assert_eq!(applied(Transform::Signed, &[0, 128, 255]), [0x80, 0, 0x7f]);
        assert_eq!(applied(Transform::Widened, &[0, 255]), floats(&[0.0, 255.0]));
        assert_eq!(applied(Transform::Centred, &[0, 255]), floats(&[-1.0, 1.0]));
        let sound = [i16::MIN, 16_384].map(i16::to_le_bytes).concat();
        assert_eq!(applied(Transform::Waveform, &sound), floats(&[-1.0, 0.5]));
    }

    #[test]
    fn names_of_transforms_are_known_or_refused() {
        assert_eq!(parse("none"), Some((Transform::None, false)));
        let streamed = "one frame per execution, state carried; state starts at zero";
        assert_eq!(parse(streamed), Some((Transform::None, true)));
        assert_eq!(parse("f32 = u8"), None);
    }
}
