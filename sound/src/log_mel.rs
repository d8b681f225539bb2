//! Log-mel frames: how loud the sound is in bands that the ear tells apart, every few
//! milliseconds.

use std::f64::consts::TAU;

use crate::{Magnitudes, SoundError};

/// Added to each band's energy before the logarithm, so that silence has one.
const FLOOR: f64 = 1e-6;
/// Most bands: there are not more lines in a spectrum of 25 ms to fill them.
const MAX_BINS: usize = 256;
/// Added to a standard deviation before dividing by it, for bands that never change.
const LEAST_DEVIATION: f64 = 1e-5;

/// The numbers of a log-mel front end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogMelShape {
    /// Samples per second.
    pub rate: u32,
    /// Samples of a window.
    pub window: usize,
    /// Samples from one window to the next.
    pub hop: usize,
    /// Length of the transform, at least the window's.
    pub fft_length: usize,
    /// Bands.
    pub bins: usize,
    /// Where the lowest band begins, in hertz.
    pub lowest_hz: f64,
    /// Where the highest band ends, in hertz.
    pub highest_hz: f64,
}

impl LogMelShape {
    /// What speech models usually take: 16 kHz, windows of 25 ms every 10 ms, 80 to 7600 Hz.
    #[must_use]
    pub fn speech(bins: usize) -> Self {
        LogMelShape {
            rate: 16_000,
            window: 400,
            hop: 160,
            fft_length: 512,
            bins,
            lowest_hz: 80.0,
            highest_hz: 7_600.0,
        }
    }
}

/// Turns samples into log-mel frames.
///
/// Per frame: a symmetric Hann window, the power spectrum, triangular bands that are evenly spaced
/// on the mel scale (`2595 log10(1 + f / 700)`) with a peak of 1, and `ln(energy + 1e-6)`.
#[derive(Debug)]
pub struct LogMel {
    shape: LogMelShape,
    window: Vec<f64>,
    spectrum: Magnitudes,
    powers: Vec<f64>,
    bands: Vec<Band>,
}

/// Weights of a band, from a line of the spectrum on.
#[derive(Debug)]
struct Band {
    first: usize,
    weights: Vec<f64>,
}

impl LogMel {
    /// A front end with these numbers.
    ///
    /// # Errors
    /// [`SoundError::Shape`] names the number that does not go with the others.
    pub fn new(shape: LogMelShape) -> Result<Self, SoundError> {
        let wrong = |what, value| Err(SoundError::Shape { what, value });
        let LogMelShape { window, hop, fft_length, bins, .. } = shape;
        if hop == 0 {
            return wrong("hop", hop);
        }
        if !(2..=fft_length).contains(&window) {
            return wrong("window", window);
        }
        if !(1..=MAX_BINS).contains(&bins) {
            return wrong("bins", bins);
        }
        let nyquist = f64::from(shape.rate) / 2.0;
        if !(0.0 <= shape.lowest_hz
            && shape.lowest_hz < shape.highest_hz
            && shape.highest_hz <= nyquist)
        {
            return wrong("rate", shape.rate as usize);
        }
        let spectrum = Magnitudes::new(fft_length)?;
        let powers = vec![0.0; spectrum.count()];
        Ok(LogMel { shape, window: hann(window), powers, bands: bands(&shape), spectrum })
    }

    /// How many frames so many samples make; only whole windows count.
    #[must_use]
    pub fn count(&self, samples: usize) -> usize {
        samples.checked_sub(self.shape.window).map_or(0, |rest| rest / self.shape.hop + 1)
    }

    /// Frame after frame, each of [`LogMelShape::bins`] values.
    #[must_use]
    pub fn frames(&mut self, samples: &[f32]) -> Vec<f32> {
        let count = self.count(samples.len());
        let mut frames = Vec::with_capacity(count * self.shape.bins);
        for windowed in samples.windows(self.shape.window).step_by(self.shape.hop).take(count) {
            let weighted = windowed.iter().zip(&self.window).map(|(s, w)| f64::from(*s) * w);
            self.spectrum.powers(weighted, &mut self.powers);
            frames.extend(self.bands.iter().map(|band| rounded(band.loudness(&self.powers))));
        }
        frames
    }
}

impl Band {
    fn loudness(&self, powers: &[f64]) -> f64 {
        let energy: f64 =
            powers.iter().skip(self.first).zip(&self.weights).map(|(power, w)| power * w).sum();
        (energy + FLOOR).ln()
    }
}

/// Brings each band to mean 0 and standard deviation 1 over all frames.
pub fn normalise(frames: &mut [f32], bins: usize) {
    let count = frames.len().checked_div(bins).unwrap_or(0);
    if count == 0 {
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 frames")]
    let share = 1.0 / count as f64;
    for bin in 0..bins {
        let values = || frames.iter().skip(bin).step_by(bins).map(|value| f64::from(*value));
        let mean = values().sum::<f64>() * share;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() * share;
        let deviation = variance.sqrt() + LEAST_DEVIATION;
        for value in frames.iter_mut().skip(bin).step_by(bins) {
            *value = rounded((f64::from(*value) - mean) / deviation);
        }
    }
}

fn hann(length: usize) -> Vec<f64> {
    let last = real(length - 1);
    (0..length).map(|at| 0.5 - 0.5 * (TAU * real(at) / last).cos()).collect()
}

fn mel(hertz: f64) -> f64 {
    2595.0 * (1.0 + hertz / 700.0).log10()
}

fn hertz(mel: f64) -> f64 {
    700.0 * (10_f64.powf(mel / 2595.0) - 1.0)
}

/// Triangles: each rises from its left neighbour's peak to its own and falls to the right one's.
fn bands(shape: &LogMelShape) -> Vec<Band> {
    let (low, high) = (mel(shape.lowest_hz), mel(shape.highest_hz));
    let peak = |at: usize| hertz(low + (high - low) * real(at) / real(shape.bins + 1));
    let line_hz = f64::from(shape.rate) / real(shape.fft_length);
    let band = |bin: usize| {
        let (left, middle, right) = (peak(bin), peak(bin + 1), peak(bin + 2));
        let weight = |line: usize| {
            let at = real(line) * line_hz;
            ((at - left) / (middle - left)).min((right - at) / (right - middle)).max(0.0)
        };
        let lines = 0..=shape.fft_length / 2;
        let first = lines.clone().find(|line| weight(*line) > 0.0).unwrap_or(0);
        let weights = lines.skip(first).map(weight).take_while(|weight| *weight > 0.0).collect();
        Band { first, weights }
    };
    (0..shape.bins).map(band).collect()
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn real(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
fn rounded(value: f64) -> f32 {
    value as f32
}
