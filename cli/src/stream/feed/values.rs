//! A long sequence of numbers, a window of which goes into the model, then the next: samples of sound,
//! log-mel frames made of them, or values of a file.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use burst_hal::OperandType;
use burst_sound::{LogMel, LogMelShape, Sound};
use burst_tflite::TensorInfo;

use super::front::{Front, elements, own_input, put_floats};
use super::{Feed, Label};
use crate::model_file;
use crate::out;

/// Inputs `[n]` or `[1, n]` up to this are one frame of features, longer ones are a waveform.
const MOST_BINS: usize = 256;
/// Largest file of values that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// What is fed, and how.
pub(crate) struct Feeding<'a> {
    /// The file.
    pub(crate) source: &'a str,
    /// Samples per second of the models' waveforms.
    pub(crate) rate: u32,
    /// From one window to the next; `None`: one behind the other.
    pub(crate) hop: Option<Duration>,
    /// Whether a damaged file is taken as far as it goes.
    pub(crate) lenient: bool,
}

/// How a model takes sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// So many samples.
    Waveform(usize),
    /// So many frames of so many log-mel bands.
    Features { frames: usize, bins: usize },
}

pub(crate) struct Values {
    name: String,
    values: Vec<f32>,
    window: usize,
    hop: usize,
    /// Where the current window begins.
    at: usize,
    started: bool,
    /// Whether a last window that is not full is filled up with zeros.
    fill_up: bool,
    /// Values per second, where they are sound.
    per_second: Option<f64>,
    sound: Option<Duration>,
    front: Option<Front>,
    input: Encoder,
}

impl Values {
    /// Sound from a WAV file, in the form that the model takes.
    pub(crate) fn sound(
        feeding: &Feeding<'_>,
        input: &TensorInfo,
        front: Option<model_file::Front>,
    ) -> Result<Self> {
        let taken = front.as_ref().map_or(Ok(input), own_input)?;
        let takes = Takes::of(&taken.dims)?;
        let (sound, damage) = Sound::read_as_far_as_it_goes(feeding.source)?;
        match damage {
            Some(error) if feeding.lenient => out::say(format_args!("left out: {error}")),
            Some(error) => return Err(error.into()),
            None => {}
        }
        let duration = sound.duration();
        let (values, window, unit, per_second) = match takes {
            Takes::Waveform(window) => {
                let samples = sound.resampled(feeding.rate)?.samples;
                (samples, window, 1, f64::from(feeding.rate))
            }
            Takes::Features { frames, bins } => {
                let shape = LogMelShape::speech(bins);
                let samples = sound.resampled(shape.rate)?.samples;
                let mut values = LogMel::new(shape)?.frames(&samples);
                burst_sound::normalise(&mut values, bins);
                (values, frames * bins, bins, f64::from(shape.rate) / real(shape.hop) * real(bins))
            }
        };
        if values.is_empty() {
            bail!("{}: {duration:?} of sound are too short", feeding.source);
        }
        let hop = match feeding.hop {
            None => window,
            Some(hop) => hop_values(hop, per_second, unit)?,
        };
        Ok(Values {
            name: feeding.source.to_owned(),
            values,
            window,
            hop,
            at: 0,
            started: false,
            fill_up: true,
            per_second: Some(per_second),
            sound: Some(duration),
            front: front.map(|front| Front::new(front, input)).transpose()?,
            input: Encoder::new(input)?,
        })
    }

    /// Values of the model's input as a file of 32-bit floats has them.
    pub(crate) fn file(
        source: &str,
        input: &TensorInfo,
        front: Option<model_file::Front>,
    ) -> Result<Self> {
        let taken = front.as_ref().map_or(Ok(input), own_input)?;
        let window = elements(&taken.dims);
        let values = read_floats(Path::new(source))?;
        if values.len() < window || window == 0 {
            bail!(
                "{source}: {} values; the model takes {window} at a time, {:?}",
                values.len(),
                taken.dims
            );
        }
        let rest = values.len() % window;
        if rest > 0 {
            tracing::warn!("{source}: {rest} values at the end do not fill the input: left out");
        }
        Ok(Values {
            name: source.to_owned(),
            values,
            window,
            hop: window,
            at: 0,
            started: false,
            fill_up: false,
            per_second: None,
            sound: None,
            front: front.map(|front| Front::new(front, input)).transpose()?,
            input: Encoder::new(input)?,
        })
    }
}

impl Takes {
    fn of(dims: &[u32]) -> Result<Self> {
        let sizes: Vec<usize> = dims.iter().map(|size| *size as usize).collect();
        match sizes[..] {
            [count] | [1, count] if count > MOST_BINS => Ok(Takes::Waveform(count)),
            [bins @ (1..)] | [1, bins @ (1..)] => Ok(Takes::Features { frames: 1, bins }),
            [1, frames @ (1..), bins @ 1..=MOST_BINS] => Ok(Takes::Features { frames, bins }),
            _ => bail!(
                "the model's input has the shape {dims:?}; sound needs [samples], [1, bands] or \
                 [1, frames, bands]"
            ),
        }
    }
}

/// A hop in values: whole frames, at least one.
fn hop_values(hop: Duration, per_second: f64, unit: usize) -> Result<usize> {
    let frames = (hop.as_secs_f64() * per_second / real(unit)).round();
    if !(1.0..=1e9).contains(&frames) {
        bail!("--hop {}: less than one frame, or too long", hop.as_secs_f64());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    let frames = frames as usize;
    frames.checked_mul(unit).context("--hop is too long")
}

fn read_floats(path: &Path) -> Result<Vec<f32>> {
    let what = || format!("cannot read the values {}", path.display());
    let length = std::fs::metadata(path).with_context(what)?.len();
    if length > MAX_FILE_BYTES {
        bail!("{}: {length} bytes, at most {MAX_FILE_BYTES} are read", path.display());
    }
    let bytes = std::fs::read(path).with_context(what)?;
    let (chunks, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        bail!("{}: {} bytes are not 32-bit floats", path.display(), bytes.len());
    }
    Ok(chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect())
}

impl Feed for Values {
    fn advance(&mut self) -> Result<bool> {
        let next = if self.started { self.at + self.hop } else { 0 };
        let needed = if self.fill_up { 1 } else { self.window };
        if self.values.len() < next.saturating_add(needed) {
            return Ok(false);
        }
        (self.at, self.started) = (next, true);
        Ok(true)
    }

    fn write(&mut self, input: &mut [u8]) -> Result<()> {
        let there = &self.values[self.at..self.values.len().min(self.at + self.window)];
        let mut filled;
        let window = if there.len() == self.window {
            there
        } else {
            filled = there.to_vec();
            filled.resize(self.window, 0.0);
            &filled
        };
        match &mut self.front {
            Some(front) => front.write(window, input),
            None => {
                self.input.write(window, input);
                Ok(())
            }
        }
    }

    fn label(&self) -> Label<'_> {
        let at = self.per_second.map(|rate| Duration::from_secs_f64(real(self.at) / rate));
        Label { name: &self.name, truth: None, at }
    }

    fn span(&self) -> Option<Duration> {
        self.per_second.map(|rate| Duration::from_secs_f64(real(self.window) / rate))
    }

    fn sound(&self) -> Option<Duration> {
        self.sound
    }
}

/// Numbers to the bytes of an input.
#[derive(Debug, Clone, Copy)]
struct Encoder {
    ty: OperandType,
    scale: f32,
    zero_point: i32,
}

impl Encoder {
    fn new(input: &TensorInfo) -> Result<Self> {
        match input.ty {
            OperandType::TensorFloat32
            | OperandType::TensorQuant8Asymm
            | OperandType::TensorQuant8AsymmSigned => {
                Ok(Encoder { ty: input.ty, scale: input.scale, zero_point: input.zero_point })
            }
            other => bail!("the model's input is {other}; sound cannot be turned into that"),
        }
    }

    fn write(self, values: &[f32], out: &mut [u8]) {
        if self.ty == OperandType::TensorFloat32 {
            return put_floats(values, out);
        }
        let signed = self.ty == OperandType::TensorQuant8AsymmSigned;
        let (low, high) = if signed { (-128.0, 127.0) } else { (0.0, 255.0) };
        for (out, value) in out.iter_mut().zip(values) {
            #[expect(clippy::cast_precision_loss, reason = "a zero point has eight bits")]
            let stored = ((value / self.scale).round() + self.zero_point as f32).clamp(low, high);
            #[expect(clippy::cast_possible_truncation, reason = "clamped; not a number is 0")]
            let stored = stored as i16;
            *out = stored.to_le_bytes()[0];
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use burst_tflite::ElementType;

    use super::*;

    fn input(ty: OperandType, dims: &[u32]) -> TensorInfo {
        let file_type = ElementType::Float32;
        TensorInfo {
            name: "in".into(),
            ty,
            file_type,
            dims: dims.into(),
            scale: 0.5,
            zero_point: 3,
        }
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    #[test]
    fn shapes_say_how_sound_is_taken() {
        for (dims, want) in [
            (&[15_600_u32][..], Takes::Waveform(15_600)),
            (&[1, 16_000], Takes::Waveform(16_000)),
            (&[1, 80], Takes::Features { frames: 1, bins: 80 }),
            (&[1, 40, 80], Takes::Features { frames: 40, bins: 80 }),
        ] {
            assert_eq!(Takes::of(dims).unwrap(), want, "{dims:?}");
        }
        for dims in [&[1_u32, 224, 224, 3][..], &[1, 40, 4_000], &[], &[0], &[2, 80]] {
            assert!(Takes::of(dims).is_err(), "{dims:?}");
        }
    }

    #[test]
    fn a_file_goes_in_window_by_window_and_its_rest_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("v.f32");
        let bytes: Vec<u8> = (0..7_u8).flat_map(|v| f32::from(v).to_le_bytes()).collect();
        std::fs::write(&file, &bytes).unwrap();
        let path = file.to_str().unwrap();
        let shape = input(OperandType::TensorFloat32, &[1, 3]);
        let mut values = Values::file(path, &shape, None).unwrap();
        let mut seen = Vec::new();
        let mut into = [0; 12];
        while values.advance().unwrap() {
            values.write(&mut into).unwrap();
            seen.push(floats(&into));
        }
        assert_eq!(seen, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]);
        std::fs::write(&file, &bytes[..6]).unwrap();
        assert!(Values::file(path, &shape, None).is_err(), "not whole floats");
        std::fs::write(&file, &bytes[..8]).unwrap();
        assert!(Values::file(path, &shape, None).is_err(), "not one window");
    }

    #[test]
    fn quantized_inputs_hold_the_nearest_value() {
        let mut out = [0; 4];
        let encode = |ty, out: &mut [u8]| {
            Encoder::new(&input(ty, &[4])).unwrap().write(&[0.0, 0.76, -100.0, 1e9], out);
        };
        encode(OperandType::TensorQuant8Asymm, &mut out);
        assert_eq!(out, [3, 5, 0, 255]);
        encode(OperandType::TensorQuant8AsymmSigned, &mut out);
        assert_eq!(out.map(u8::cast_signed), [3, 5, -128, 127]);
        assert!(Encoder::new(&input(OperandType::TensorInt32, &[4])).is_err());
    }

    #[test]
    fn hops_are_whole_frames() {
        let millis = Duration::from_millis;
        assert_eq!(hop_values(millis(480), 16_000.0, 1).unwrap(), 7_680);
        assert_eq!(hop_values(millis(20), 8_000.0, 80).unwrap(), 160);
        assert!(hop_values(millis(1), 8_000.0, 80).is_err());
    }
}
