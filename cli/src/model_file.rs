//! The model to run: the built-in one, or a `.tflite` file.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use burst_tflite::{ImportError, Imported, Part, Spectrum};

use crate::packed;

/// The model that this repository trained for its synthetic camera: see `models/README.md`.
const BUILT_IN: &[u8] = include_bytes!("../../models/shapes.tflite");

/// Largest model file that is read, in bytes: descriptors and offsets are 32-bit.
const MAX_MODEL_BYTES: u64 = 2 << 30;

/// A model with the name it goes by.
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) imported: Imported,
    /// Labels of its classes that are packed into its file; none where there are none.
    pub(crate) labels: Vec<String>,
}

/// Reads and imports a model; `None` is the built-in one.
pub(crate) fn load(path: Option<&Path>) -> Result<Loaded> {
    let (name, bytes) = read(path)?;
    let imported =
        burst_tflite::import(&bytes).with_context(|| format!("cannot use the model {name}"))?;
    Ok(Loaded { name, imported, labels: packed::labels(&bytes) })
}

/// What of an audio model runs before the driver's part: its own operators up to the spectrum,
/// and the spectrum itself, for which the HAL has no operation.
pub(crate) struct Front {
    /// From the model's input to the samples of the spectrum.
    pub(crate) imported: Imported,
    /// What follows.
    pub(crate) spectrum: Spectrum,
}

/// Reads and imports a model; of an audio model with a spectrum inside only the part behind it,
/// and beside it the part before.
pub(crate) fn load_with_front(path: Option<&Path>) -> Result<(Loaded, Option<Front>)> {
    let (name, bytes) = read(path)?;
    let what = || format!("cannot use the model {name}");
    let error = match burst_tflite::import(&bytes) {
        Ok(imported) => {
            return Ok((Loaded { name, imported, labels: packed::labels(&bytes) }, None));
        }
        Err(error @ ImportError::Refused { .. }) => error,
        Err(error) => return Err(error).with_context(what),
    };
    let Some((front, imported)) = split(&bytes).with_context(what)? else {
        return Err(error).with_context(what);
    };
    Ok((Loaded { name, imported, labels: packed::labels(&bytes) }, Some(front)))
}

/// What lies before the end of a model's spectrum and what lies behind it; `None` for a model
/// without one.
pub(crate) fn split(bytes: &[u8]) -> Result<Option<(Front, Imported)>, ImportError> {
    let Some(spectrum) = burst_tflite::spectrum(bytes)? else { return Ok(None) };
    let before = Part { from: &[], to: &[&spectrum.samples] };
    let behind = Part { from: &[&spectrum.magnitudes], to: &[] };
    let imported = burst_tflite::import_part(bytes, before)?;
    let behind = burst_tflite::import_part(bytes, behind)?;
    Ok(Some((Front { imported, spectrum }, behind)))
}

/// Name and bytes of a model file; `None` is the built-in one.
pub(crate) fn read(path: Option<&Path>) -> Result<(String, Cow<'static, [u8]>)> {
    let Some(path) = path else {
        return Ok(("built-in shapes".into(), Cow::Borrowed(BUILT_IN)));
    };
    let name = path.display().to_string();
    let what = || format!("cannot read the model {name}");
    let meta = std::fs::metadata(path).with_context(what)?;
    if !meta.is_file() {
        bail!("cannot read the model {name}: it is not a file");
    }
    if meta.len() > MAX_MODEL_BYTES {
        bail!("{name} has {} bytes, at most {MAX_MODEL_BYTES} are read", meta.len());
    }
    let bytes = std::fs::read(path).with_context(what)?;
    Ok((name, Cow::Owned(bytes)))
}
