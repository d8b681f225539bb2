//! A model with what its file says of itself.

use std::path::Path;

use burst_tflite::{
    ImportError, Imported, Metadata, MetadataFile, MetadataFileKind, Normalization, Part, Spectrum,
    TensorInfo, TensorMetadata,
};

use crate::error::TaskError;
use crate::packed;
use crate::picture_input::Normalisation;

/// Largest model file that is read, in bytes: descriptors and offsets are 32-bit.
pub const MAX_MODEL_BYTES: u64 = 2 << 30;

/// What of an audio model runs before the driver's part: its own operators up to the spectrum,
/// and the spectrum itself, for which the HAL has no operation.
#[derive(Debug, Clone)]
pub struct SoundFront {
    /// From the model's input to the samples of the spectrum.
    pub imported: Imported,
    /// What follows.
    pub spectrum: Spectrum,
}

/// A model with what its file says of itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskModel {
    /// What messages call it.
    pub name: String,
    /// What the device runs; of an audio model with a spectrum inside the part behind it.
    pub imported: Imported,
    /// What lies before, of such a model.
    pub front: Option<SoundFront>,
    /// Labels of its classes that are packed into its file; none where there are none.
    pub labels: Vec<String>,
    /// How its picture input is normalised, where the file says it.
    pub normalisation: Option<Normalisation>,
    /// Samples per second of the waveform that it takes, where the file says it.
    pub sample_rate: Option<u32>,
    /// The least score that counts, where the file says it.
    pub score_threshold: Option<f32>,
}

impl TaskModel {
    /// Reads a `.tflite` file.
    ///
    /// # Errors
    /// [`TaskError::File`], [`TaskError::FileTooLong`] beyond [`MAX_MODEL_BYTES`]; as [`TaskModel::from_bytes`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TaskError> {
        let (path, what) = (path.as_ref(), "the model");
        let failed = |cause| TaskError::File { what, file: path.into(), cause };
        let bytes = std::fs::metadata(path).map_err(failed)?.len();
        if bytes > MAX_MODEL_BYTES {
            let (file, most) = (path.into(), MAX_MODEL_BYTES);
            return Err(TaskError::FileTooLong { what: "a model", file, bytes, most });
        }
        let name = path.display().to_string();
        TaskModel::from_bytes(&name, &std::fs::read(path).map_err(failed)?)
    }

    /// Reads the bytes of a `.tflite` file; messages call the model by this name.
    ///
    /// # Errors
    /// [`TaskError::Model`]: the file is damaged, or one of its operators has no form in NNAPI; it is named.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, TaskError> {
        let failed = |cause| TaskError::Model { model: name.into(), cause };
        let (front, imported) = match burst_tflite::import(bytes) {
            Ok(imported) => (None, imported),
            Err(error @ ImportError::Refused { .. }) => {
                let (front, behind) =
                    SoundFront::split(bytes).map_err(failed)?.ok_or_else(|| failed(error))?;
                (Some(front), behind)
            }
            Err(error) => return Err(failed(error)),
        };
        let mut model = TaskModel { front, ..TaskModel::of(name, imported) };
        model.take_metadata(bytes);
        Ok(model)
    }

    /// A model that was imported already, without anything that a file says of it beside.
    #[must_use]
    pub fn of(name: &str, imported: Imported) -> Self {
        TaskModel {
            name: name.into(),
            imported,
            front: None,
            labels: Vec::new(),
            normalisation: None,
            sample_rate: None,
            score_threshold: None,
        }
    }

    /// Takes in what the file says of the model beside the graph. Where that cannot be read the model is one without.
    fn take_metadata(&mut self, bytes: &[u8]) {
        let metadata = burst_tflite::metadata(bytes).unwrap_or_else(|error| {
            tracing::warn!("the metadata in {} cannot be read: {error}", self.name);
            None
        });
        let Metadata { inputs, outputs } = metadata.unwrap_or_default();
        if let Some(input) = inputs.first() {
            self.sample_rate = input.sample_rate;
            self.normalisation = input.normalization.as_ref().and_then(|stated| {
                let read = normalisation(stated);
                if read.is_none() {
                    tracing::warn!("{}: {stated:?} is no normalisation of pictures", self.name);
                }
                read
            });
        }
        self.score_threshold = outputs.iter().find_map(|output| output.score_threshold);
        self.labels = packed::labels(bytes, label_file(&outputs));
    }

    /// The one input that is no state, of what the device runs.
    ///
    /// # Errors
    /// [`TaskError::Inputs`] where there is another number of them.
    pub fn own_input(&self) -> Result<&TensorInfo, TaskError> {
        let Imported { inputs, states, .. } = &self.imported;
        let is_state = |index| states.iter().any(|pair| pair.input_index == index);
        let own: Vec<usize> = (0..inputs.len()).filter(|index| !is_state(*index)).collect();
        if own == [0] {
            return Ok(&inputs[0]);
        }
        let names = own.iter().map(|index| inputs[*index].name.clone()).collect();
        Err(TaskError::Inputs { model: self.name.clone(), names })
    }

    /// The outputs that are no states.
    #[must_use]
    pub fn own_outputs(&self) -> &[TensorInfo] {
        let Imported { outputs, states, .. } = &self.imported;
        &outputs[..outputs.len().saturating_sub(states.len())]
    }
}

/// Numbers for red, green and blue, of one for all or three.
fn normalisation(stated: &Normalization) -> Option<Normalisation> {
    let three = |numbers: &[f32]| match *numbers {
        [all] => Some([all; 3]),
        [red, green, blue] => Some([red, green, blue]),
        _ => None,
    };
    Normalisation::new(three(&stated.mean)?, three(&stated.std)?).ok()
}

/// The file with the labels of the outputs: that without a language, else that in English, else the first.
fn label_file(outputs: &[TensorMetadata]) -> Option<&str> {
    let is_labels = |file: &&MetadataFile| {
        matches!(file.kind, MetadataFileKind::AxisLabels | MetadataFileKind::ValueLabels)
    };
    let files = || outputs.iter().flat_map(|output| &output.files).filter(is_labels);
    let plain = files().find(|file| file.locale.is_empty());
    let english = || files().find(|file| file.locale.starts_with("en"));
    let file = plain.or_else(english).or_else(|| files().next())?;
    Some(&file.name)
}

impl SoundFront {
    /// What lies before the end of a model's spectrum and what lies behind it; `None` for a model without one.
    ///
    /// # Errors
    /// The file is damaged, or an operator of one of the parts has no form in NNAPI.
    pub fn split(bytes: &[u8]) -> Result<Option<(SoundFront, Imported)>, ImportError> {
        let Some(spectrum) = burst_tflite::spectrum(bytes)? else { return Ok(None) };
        let before = Part { from: &[], to: &[&spectrum.samples] };
        let behind = Part { from: &[&spectrum.magnitudes], to: &[] };
        let imported = burst_tflite::import_part(bytes, before)?;
        let behind = burst_tflite::import_part(bytes, behind)?;
        Ok(Some((SoundFront { imported, spectrum }, behind)))
    }
}
