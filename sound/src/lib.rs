//! Sound in the forms that models take: samples of a WAV file, magnitude spectra, log-mel frames.
//!
//! ```no_run
//! use burst_sound::{LogMel, LogMelShape, Sound};
//!
//! # fn main() -> Result<(), burst_sound::SoundError> {
//! let sound = Sound::read("speech.wav")?.resampled(16_000)?;
//! let mut frames = LogMel::new(LogMelShape::speech(80))?.frames(&sound.samples);
//! burst_sound::normalise(&mut frames, 80);
//! println!("{} frames in {:?}", frames.len() / 80, sound.duration());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod error;
mod log_mel;
mod resample;
mod sound;
mod spectrum;

pub use error::SoundError;
pub use log_mel::{LogMel, LogMelShape, normalise};
pub use sound::{MAX_RATE, MAX_SAMPLES, MIN_RATE, Sound};
pub use spectrum::{MAX_FFT_LENGTH, Magnitudes};
