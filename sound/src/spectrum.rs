//! Magnitude spectra of real samples.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use crate::SoundError;

/// Longest transform.
pub const MAX_FFT_LENGTH: usize = 1 << 19;

/// Computes spectra of one length. Works in double precision and rounds each part once, so that
/// results are those of any good transform but for the last bit.
pub struct Magnitudes {
    fft: Arc<dyn RealToComplex<f64>>,
    samples: Vec<f64>,
    spectrum: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl std::fmt::Debug for Magnitudes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Magnitudes").field("length", &self.samples.len()).finish_non_exhaustive()
    }
}

impl Magnitudes {
    /// Of `length` samples.
    ///
    /// # Errors
    /// A length that is odd, 0, or over [`MAX_FFT_LENGTH`].
    pub fn new(length: usize) -> Result<Self, SoundError> {
        if length == 0 || !length.is_multiple_of(2) || length > MAX_FFT_LENGTH {
            return Err(SoundError::Shape { what: "a transform length", value: length });
        }
        let fft = RealFftPlanner::new().plan_fft_forward(length);
        let (samples, spectrum) = (fft.make_input_vec(), fft.make_output_vec());
        let scratch = fft.make_scratch_vec();
        Ok(Magnitudes { fft, samples, spectrum, scratch })
    }

    /// How many magnitudes one spectrum has: half the length and one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.spectrum.len()
    }

    /// The magnitudes of `samples`, from frequency 0 to half the rate, into `out`. Samples beyond
    /// the length are left out, missing ones are zeros.
    ///
    /// # Panics
    /// `out` has not [`Magnitudes::count`] elements.
    pub fn of(&mut self, samples: &[f32], out: &mut [f32]) {
        assert_eq!(out.len(), self.count(), "one element per magnitude");
        self.samples.fill(0.0);
        for (slot, sample) in self.samples.iter_mut().zip(samples) {
            *slot = f64::from(*sample);
        }
        self.transform();
        for (out, value) in out.iter_mut().zip(&self.spectrum) {
            *out = rounded(value.re).hypot(rounded(value.im));
        }
    }

    /// The squared magnitudes of what `samples` yields.
    pub(crate) fn powers(&mut self, samples: impl Iterator<Item = f64>, out: &mut [f64]) {
        self.samples.fill(0.0);
        for (slot, sample) in self.samples.iter_mut().zip(samples) {
            *slot = sample;
        }
        self.transform();
        for (out, value) in out.iter_mut().zip(&self.spectrum) {
            *out = value.norm_sqr();
        }
    }

    fn transform(&mut self) {
        let done =
            self.fft.process_with_scratch(&mut self.samples, &mut self.spectrum, &mut self.scratch);
        debug_assert!(done.is_ok(), "the plan made buffers of the lengths it wants");
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
fn rounded(value: f64) -> f32 {
    value as f32
}
