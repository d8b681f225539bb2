//! From sound to a model's input: samples, log-mel frames made of them, or the magnitudes of a spectrum.

use std::time::Duration;

use burst_hal::Device;
use burst_sound::{LogMel, LogMelShape, Magnitudes, Sound};
use burst_tflite::{Spectrum, TensorInfo};

use crate::error::TaskError;
use crate::model::{SoundFront, TaskModel};
use crate::numbers::{Numbers, elements};
use crate::runner::{Outputs, Runner, SessionRunner};

/// Inputs `[n]` or `[1, n]` up to this are one frame of features, longer ones are a waveform.
const MOST_BINS: usize = 256;
/// Samples per second of models of waveforms where nobody says another number.
const DEFAULT_RATE: u32 = 16_000;
/// Only turns a hang into an error: the part before the spectrum computes for less than a millisecond.
const FRONT_TIMEOUT: Duration = Duration::from_secs(60);

/// How a model takes sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoundShape {
    /// So many samples.
    Waveform(usize),
    /// Log-mel frames of speech, normalised.
    Features {
        /// How many frames.
        frames: usize,
        /// Bands of each.
        bins: usize,
    },
}

impl SoundShape {
    /// How the input of this name and shape takes it: `[n]` and `[1, n]` are a waveform beyond 256, and one frame of
    /// features else; `[1, frames, bands]` are several.
    ///
    /// # Errors
    /// [`TaskError::InputShape`] where it takes none.
    pub fn of(input: &TensorInfo) -> Result<Self, TaskError> {
        let sizes: Vec<usize> = input.dims.iter().map(|size| *size as usize).collect();
        match sizes[..] {
            [count] | [1, count] if count > MOST_BINS => Ok(SoundShape::Waveform(count)),
            [bins @ (1..)] | [1, bins @ (1..)] => Ok(SoundShape::Features { frames: 1, bins }),
            [1, frames @ (1..), bins @ 1..=MOST_BINS] => Ok(SoundShape::Features { frames, bins }),
            _ => {
                let (input, dims) = (input.name.clone(), input.dims.to_vec());
                let needed = "sound needs [samples], [1, bands] or [1, frames, bands]";
                Err(TaskError::InputShape { input, dims, needed })
            }
        }
    }
}

/// Sound as a long sequence of numbers, of which one window after the other goes into the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Windows {
    /// The numbers.
    pub values: Vec<f32>,
    /// How many go in at once.
    pub window: usize,
    /// From one window to the next.
    pub hop: usize,
    /// Values per second.
    pub per_second: f64,
}

impl Windows {
    /// How much sound a window is.
    #[must_use]
    pub fn span(&self) -> Duration {
        Duration::from_secs_f64(real(self.window) / self.per_second)
    }

    /// When a value is due, from the beginning on.
    #[must_use]
    pub fn at(&self, value: usize) -> Duration {
        Duration::from_secs_f64(real(value) / self.per_second)
    }
}

/// A hop in values: whole frames, at least one.
fn hop_values(hop: Duration, per_second: f64, unit: usize) -> Result<usize, TaskError> {
    let seconds = hop.as_secs_f64();
    let frames = (seconds * per_second / real(unit)).round();
    if !(1.0..=1e9).contains(&frames) {
        return Err(TaskError::Hop { seconds });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    let frames = frames as usize;
    frames.checked_mul(unit).ok_or(TaskError::Hop { seconds })
}

/// The input that the whole model has: of one with a spectrum inside that of the part before it.
fn first_input(model: &TaskModel) -> Result<&TensorInfo, TaskError> {
    match &model.front {
        None => model.own_input(),
        Some(front) => match front.imported.inputs.as_slice() {
            [input] => Ok(input),
            inputs => {
                let names = inputs.iter().map(|info| info.name.clone()).collect();
                Err(TaskError::Inputs { model: model.name.clone(), names })
            }
        },
    }
}

/// Writes windows of sound, or of values, into a model's input; of a model with a spectrum inside it computes what
/// lies before, on a device of its own.
#[derive(Debug)]
pub struct SoundFitter {
    /// The input of the whole model, and how many values it takes.
    input: TensorInfo,
    window: usize,
    /// Samples per second of the model's waveforms, where its file says it.
    rate: Option<u32>,
    numbers: Numbers,
    front: Option<Front>,
}

impl SoundFitter {
    /// For the input of a model. `device` computes what lies before a spectrum, if there is one.
    ///
    /// # Errors
    /// [`TaskError::Inputs`], [`TaskError::InputType`]: it takes no numbers; [`TaskError::Front`], or the device does
    /// not run the part before the spectrum.
    pub fn new(model: &TaskModel, device: &dyn Device) -> Result<Self, TaskError> {
        let (input, first) = (model.own_input()?, first_input(model)?);
        let numbers = Numbers::real(input).ok_or_else(|| {
            let (input, ty, what) = (input.name.clone(), input.ty, "sound");
            TaskError::InputType { input, ty, what }
        })?;
        let front = model.front.as_ref().map(|front| Front::new(front, input, device));
        let (input, window, rate) = (first.clone(), elements(&first.dims), model.sample_rate);
        Ok(SoundFitter { input, window, rate, numbers, front: front.transpose()? })
    }

    /// The input of the whole model.
    #[must_use]
    pub fn input(&self) -> &TensorInfo {
        &self.input
    }

    /// How the model takes sound.
    ///
    /// # Errors
    /// [`TaskError::InputShape`]: it takes none.
    pub fn shape(&self) -> Result<SoundShape, TaskError> {
        SoundShape::of(&self.input)
    }

    /// Sound in the form that the model takes; `rate` is that of its waveforms, in samples per second, where its file
    /// does not say it or says it wrongly; `hop` is the time from one window to the next, without which they lie one
    /// behind the other.
    ///
    /// # Errors
    /// [`TaskError::InputShape`]: the model takes no sound; [`TaskError::Sound`]: a rate that there is not;
    /// [`TaskError::TooShort`]; [`TaskError::Hop`].
    pub fn windows(
        &self,
        sound: Sound,
        rate: Option<u32>,
        hop: Option<Duration>,
    ) -> Result<Windows, TaskError> {
        let rate = rate.or(self.rate).unwrap_or(DEFAULT_RATE);
        let seconds = sound.duration().as_secs_f64();
        let (values, window, unit, per_second) = match self.shape()? {
            SoundShape::Waveform(window) => {
                (sound.resampled(rate)?.samples, window, 1, f64::from(rate))
            }
            SoundShape::Features { frames, bins } => {
                let shape = LogMelShape::speech(bins);
                let samples = sound.resampled(shape.rate)?.samples;
                let mut values = LogMel::new(shape)?.frames(&samples);
                burst_sound::normalise(&mut values, bins);
                let per_second = f64::from(shape.rate) / real(shape.hop) * real(bins);
                (values, frames.saturating_mul(bins), bins, per_second)
            }
        };
        if values.is_empty() {
            return Err(TaskError::TooShort { seconds });
        }
        let hop = hop.map_or(Ok(window), |hop| hop_values(hop, per_second, unit))?;
        Ok(Windows { values, window, hop, per_second })
    }

    /// How many values go in at once.
    #[must_use]
    pub fn window(&self) -> usize {
        self.window
    }

    /// Writes a window into `input`, the memory that the driver reads. Missing values at its end are zeros.
    ///
    /// # Errors
    /// [`TaskError::InputLength`] where there are more values than go in, none at all, or `input` is not that of the
    /// model; the part before a spectrum failed.
    pub fn write(&mut self, values: &[f32], input: &mut [u8]) -> Result<(), TaskError> {
        let (wanted, found) = (self.window, values.len());
        if found > wanted || found == 0 {
            let name = self.input.name.clone();
            return Err(TaskError::InputLength { input: name, unit: "values", wanted, found });
        }
        let mut filled;
        let window = if found == wanted {
            values
        } else {
            filled = values.to_vec();
            filled.resize(wanted, 0.0);
            &filled
        };
        if let Some(front) = &mut self.front {
            return front.write(window, input);
        }
        let (wanted, found) = (window.len() * self.numbers.bytes(), input.len());
        if wanted != found {
            let name = self.input.name.clone();
            return Err(TaskError::InputLength { input: name, unit: "bytes", wanted, found });
        }
        self.numbers.write(window, input);
        Ok(())
    }
}

/// The part of an audio model before the driver's: its own operators up to the spectrum, and the spectrum itself.
#[derive(Debug)]
struct Front {
    runner: SessionRunner,
    numbers: Numbers,
    rows: Numbers,
    spectrum: Spectrum,
    magnitudes: Magnitudes,
    samples: Vec<f32>,
    line: Vec<f32>,
}

impl Front {
    /// Prepares the part; `input` is the driver's first input, which it computes.
    fn new(front: &SoundFront, input: &TensorInfo, device: &dyn Device) -> Result<Self, TaskError> {
        let SoundFront { imported, spectrum } = front.clone();
        let magnitudes = Magnitudes::new(spectrum.fft_length)?;
        let lines = spectrum.rows.checked_mul(magnitudes.count());
        if lines != Some(elements(&input.dims)) || spectrum.row_length == 0 {
            let TensorInfo { name, dims, .. } = input;
            return Err(TaskError::Front(format!("`{name}` behind it has the shape {dims:?}")));
        }
        let none = || TaskError::Front("it has no numbers at its ends".into());
        let numbers = imported.inputs.first().and_then(Numbers::real).ok_or_else(none)?;
        let rows = imported.outputs.first().and_then(Numbers::real).ok_or_else(none)?;
        let line = vec![0.0; magnitudes.count()];
        let runner = SessionRunner::open(device, &imported)?;
        let samples = Vec::new();
        Ok(Front { runner, numbers, rows, spectrum, magnitudes, samples, line })
    }

    /// From samples to the magnitudes that the driver's part takes.
    fn write(&mut self, samples: &[f32], input: &mut [u8]) -> Result<(), TaskError> {
        self.numbers.write(samples, self.runner.input(0));
        self.runner.run(FRONT_TIMEOUT)?;
        self.rows.read(self.runner.output(0)?, &mut self.samples);
        let rows = self.samples.chunks_exact(self.spectrum.row_length);
        let out = input.chunks_exact_mut(self.line.len() * 4);
        if rows.len() != out.len() {
            let (rows, spectra) = (rows.len(), out.len());
            return Err(TaskError::Front(format!("{rows} rows of samples for {spectra} spectra")));
        }
        for (row, out) in rows.zip(out) {
            self.magnitudes.of(row, &mut self.line);
            for (out, value) in out.as_chunks_mut::<4>().0.iter_mut().zip(&self.line) {
                *out = value.to_ne_bytes();
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;
    use burst_tflite::ElementType;

    use super::*;

    fn input(dims: &[u32]) -> TensorInfo {
        let (ty, file_type) = (OperandType::TensorFloat32, ElementType::Float32);
        let (name, dims) = ("sound".into(), dims.into());
        TensorInfo { name, ty, file_type, dims, scale: 0.0, zero_point: 0 }
    }

    #[test]
    fn shapes_say_how_sound_is_taken() {
        for (dims, want) in [
            (&[15_600_u32][..], SoundShape::Waveform(15_600)),
            (&[1, 16_000], SoundShape::Waveform(16_000)),
            (&[1, 80], SoundShape::Features { frames: 1, bins: 80 }),
            (&[1, 40, 80], SoundShape::Features { frames: 40, bins: 80 }),
        ] {
            assert_eq!(SoundShape::of(&input(dims)).unwrap(), want, "{dims:?}");
        }
        for dims in [&[1_u32, 224, 224, 3][..], &[1, 40, 4_000], &[], &[0], &[2, 80]] {
            let error = SoundShape::of(&input(dims)).unwrap_err().to_string();
            assert!(error.contains("`sound`") && error.contains(&format!("{dims:?}")), "{error}");
        }
    }

    #[test]
    fn hops_are_whole_frames() {
        let millis = Duration::from_millis;
        assert_eq!(hop_values(millis(480), 16_000.0, 1).unwrap(), 7_680);
        assert_eq!(hop_values(millis(20), 8_000.0, 80).unwrap(), 160);
        assert!(hop_values(millis(1), 8_000.0, 80).is_err());
    }
}
