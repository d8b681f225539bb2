//! Model files for [`burst_verify::models`]: whole, or in two parts where a spectrum lies between.

use burst_sound::Magnitudes;
use burst_tflite::{ImportError, Imported, Part, Spectrum, import_part};
use burst_verify::models::{Bridge, ImportedModel, Importer, OutputTensor, StatefulModel};

/// A model as the parts that a device runs, and what is computed between them.
pub(crate) struct Parts {
    /// At least one.
    pub(crate) parts: Vec<Imported>,
    /// One fewer than parts.
    pub(crate) bridges: Vec<Box<dyn Bridge>>,
}

impl From<Parts> for ImportedModel {
    fn from(Parts { parts, bridges }: Parts) -> Self {
        ImportedModel { parts: parts.into_iter().map(stateful).collect(), bridges }
    }
}

/// The model of an imported file, with its states.
fn stateful(imported: Imported) -> StatefulModel {
    StatefulModel { states: imported.state_bindings(), model: imported.model }
}

/// Imports the part of a file between the named tensors. A spectrum, which no device computes, is
/// computed in this process, between what lies before it and what lies behind it.
///
/// # Errors
/// The file is damaged, or something else in it stands in the way.
pub(crate) fn import_parts(file: &[u8], from: &[&str], to: &[&str]) -> Result<Parts, ImportError> {
    let whole = match import_part(file, Part { from, to }) {
        Ok(whole) => return Ok(Parts { parts: vec![whole], bridges: Vec::new() }),
        Err(error) => error,
    };
    let Some(spectrum) = burst_tflite::spectrum(file)?.filter(|_| from.is_empty()) else {
        return Err(whole);
    };
    let before = import_part(file, Part { from, to: &[&spectrum.samples] })?;
    let behind = import_part(file, Part { from: &[&spectrum.magnitudes], to })?;
    let Ok(magnitudes) = Magnitudes::new(spectrum.fft_length) else { return Err(whole) };
    let bridge = SpectrumBridge { spectrum, magnitudes };
    Ok(Parts { parts: vec![before, behind], bridges: vec![Box::new(bridge)] })
}

/// Rows of samples become rows of magnitudes.
struct SpectrumBridge {
    spectrum: Spectrum,
    magnitudes: Magnitudes,
}

impl Bridge for SpectrumBridge {
    fn cross(&mut self, outputs: &[OutputTensor]) -> Result<Vec<Vec<u8>>, String> {
        let bytes = outputs.first().map(|samples| samples.bytes.as_slice()).unwrap_or_default();
        let (chunks, _) = bytes.as_chunks::<4>();
        let samples: Vec<f32> = chunks.iter().map(|chunk| f32::from_ne_bytes(*chunk)).collect();
        let Spectrum { rows, row_length, .. } = self.spectrum;
        if samples.len() != rows.saturating_mul(row_length) {
            let found = samples.len();
            return Err(format!("{found} samples instead of {rows} times {row_length}"));
        }
        let mut spectra = vec![0f32; rows * self.magnitudes.count()];
        let count = self.magnitudes.count();
        for (row, spectrum) in samples.chunks_exact(row_length).zip(spectra.chunks_exact_mut(count))
        {
            self.magnitudes.of(row, spectrum);
        }
        Ok(vec![spectra.iter().flat_map(|value| value.to_ne_bytes()).collect()])
    }
}

/// Imports `.tflite` files.
pub(crate) struct TfliteImporter;

impl Importer for TfliteImporter {
    fn import(&self, file: &[u8], from: &[&str], to: &[&str]) -> Result<ImportedModel, String> {
        let parts = import_parts(file, from, to).map_err(|error| error.to_string())?;
        Ok(parts.into())
    }
}
