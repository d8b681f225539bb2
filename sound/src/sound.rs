//! Sound from a WAV file.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::Duration;

use hound::{SampleFormat, WavReader, WavSpec};

use crate::SoundError;
use crate::resample::resample;

/// Most samples that are read or made: over two hours at 16 kHz, half a gigabyte.
pub const MAX_SAMPLES: usize = 1 << 27;
/// Lowest rate that is accepted, in samples per second.
pub const MIN_RATE: u32 = 1_000;
/// Highest rate that is accepted, in samples per second.
pub const MAX_RATE: u32 = 768_000;
/// Most channels that are mixed into one.
const MAX_CHANNELS: u16 = 64;

/// One channel of sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Sound {
    /// Samples per second.
    pub rate: u32,
    /// Samples from -1 to 1.
    pub samples: Vec<f32>,
}

impl Sound {
    /// Reads a WAV file: 8 to 32-bit integers (`value / 2^(bits - 1)`) or 32-bit floats. Several
    /// channels become their mean.
    ///
    /// # Errors
    /// [`SoundError`]: no such file, no WAV file, cut short, too long, or of a kind not read.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SoundError> {
        let (sound, damage) = Sound::read_as_far_as_it_goes(path)?;
        damage.map_or(Ok(sound), Err)
    }

    /// The same of a file that may be damaged: the sound up to where it is, and what is wrong there.
    ///
    /// # Errors
    /// As [`Sound::read`], but where the samples are wrong or end too early.
    pub fn read_as_far_as_it_goes(
        path: impl AsRef<Path>,
    ) -> Result<(Self, Option<SoundError>), SoundError> {
        let path = path.as_ref();
        let failed = |cause| SoundError::Read { path: path.into(), cause };
        let file = File::open(path).map_err(|error| failed(error.into()))?;
        if file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
            return Err(SoundError::Empty { path: path.into() });
        }
        let mut reader = WavReader::new(BufReader::new(file)).map_err(failed)?;
        let spec = reader.spec();
        check(path, spec)?;
        let mut samples = Vec::new();
        let read = match spec.sample_format {
            SampleFormat::Int => {
                let full_scale = exp2(u32::from(spec.bits_per_sample) - 1);
                let to_real = |sample| real(sample) / full_scale;
                mix(path, spec, reader.samples::<i32>(), to_real, &mut samples)
            }
            SampleFormat::Float => {
                mix(path, spec, reader.samples::<f32>(), |sample| sample, &mut samples)
            }
        };
        Ok((Sound { rate: spec.sample_rate, samples }, read.err()))
    }

    /// The same sound at another rate; frequencies that the rate cannot hold are filtered out.
    ///
    /// # Errors
    /// A rate outside of [`MIN_RATE`] to [`MAX_RATE`], or more than [`MAX_SAMPLES`] samples.
    pub fn resampled(self, rate: u32) -> Result<Self, SoundError> {
        for rate in [rate, self.rate] {
            check_rate(rate)?;
        }
        if rate == self.rate {
            return Ok(self);
        }
        let samples = resample(&self.samples, self.rate, rate, MAX_SAMPLES);
        Ok(Sound { rate, samples })
    }

    /// How long it lasts.
    #[must_use]
    pub fn duration(&self) -> Duration {
        at(self.samples.len(), self.rate)
    }
}

/// When a sample is due, from the beginning on.
fn at(sample: usize, rate: u32) -> Duration {
    let nanos = sample as u128 * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn check_rate(rate: u32) -> Result<(), SoundError> {
    if (MIN_RATE..=MAX_RATE).contains(&rate) {
        return Ok(());
    }
    Err(SoundError::Rate { rate, least: MIN_RATE, most: MAX_RATE })
}

fn check(path: &Path, spec: WavSpec) -> Result<(), SoundError> {
    check_rate(spec.sample_rate)?;
    let (kind, bits) = match spec.sample_format {
        SampleFormat::Int => ("integer", 8..=32),
        SampleFormat::Float => ("float", 32..=32),
    };
    let (found, channels) = (spec.bits_per_sample, spec.channels);
    if !bits.contains(&found) || !(1..=MAX_CHANNELS).contains(&channels) {
        return Err(SoundError::Kind { path: path.into(), bits: found, kind, channels });
    }
    Ok(())
}

/// Reads all samples, each frame as the mean of its channels. What was read before an error is there.
fn mix<R: Read, S: hound::Sample>(
    path: &Path,
    spec: WavSpec,
    mut samples: hound::WavSamples<'_, R, S>,
    to_real: impl Fn(S) -> f32,
    mono: &mut Vec<f32>,
) -> Result<(), SoundError> {
    let channels = usize::from(spec.channels);
    let share = real(i32::from(spec.channels));
    loop {
        let mut sum = 0.0;
        for channel in 0..channels {
            match samples.next() {
                Some(Ok(sample)) => sum += to_real(sample),
                Some(Err(cause)) => return Err(SoundError::Read { path: path.into(), cause }),
                None if channel == 0 => return Ok(()),
                None => {
                    let cause = hound::Error::FormatError("the last frame lacks a channel");
                    return Err(SoundError::Read { path: path.into(), cause });
                }
            }
        }
        if !sum.is_finite() {
            return Err(SoundError::NotFinite { path: path.into(), at: mono.len() });
        }
        if mono.len() == MAX_SAMPLES {
            return Err(SoundError::TooLong { path: path.into(), limit: MAX_SAMPLES });
        }
        mono.push(sum / share);
    }
}

#[expect(clippy::cast_precision_loss, reason = "32-bit samples keep the 24 bits that a float has")]
fn real(value: i32) -> f32 {
    value as f32
}

fn exp2(exponent: u32) -> f32 {
    2_f32.powi(i32::try_from(exponent).unwrap_or(0))
}
