//! What a model's outputs say, whoever computed them: numbers, and what its task makes of them.

use anyhow::Result;
use burst_tasks::{
    Decoder, Detection, Numbers, Outputs, PictureFitter, TaskError, TaskModel, TaskOptions,
};
use serde::Serialize;

/// What a model does, as far as that decides how answers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    /// One score per class, or that per step.
    Classification,
    /// Boxes.
    Detection,
    /// A class for each pixel.
    Segmentation,
    /// A larger picture.
    SuperResolution,
    /// Numbers whose meaning is not known.
    Numbers,
}

impl Task {
    /// The word in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Task::Classification => "classification",
            Task::Detection => "detection",
            Task::Segmentation => "segmentation",
            Task::SuperResolution => "super-resolution",
            Task::Numbers => "numbers",
        }
    }
}

/// Outputs, and what they say.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The bytes of each output.
    pub(super) outputs: Vec<Vec<u8>>,
    /// Their numbers.
    pub(super) values: Vec<Vec<f32>>,
    /// What they say.
    pub(super) says: Says,
}

/// What outputs say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Says {
    /// So many scores for each step, one step after the other.
    Classes { scores: Vec<f32>, classes: usize },
    /// Everything that was found, however little speaks for it.
    Boxes(Vec<Detection>),
    /// The class of each pixel, and how many scores it is the best of; `None` where the output is the class itself.
    Mask { mask: Vec<u16>, scores: Option<usize> },
    /// Nothing beside the numbers.
    Numbers,
}

impl Answer {
    /// The scores of all pixels, of each so many; `None` where there are none.
    pub(super) fn pixel_scores(&self) -> Option<(&[f32], usize)> {
        match &self.says {
            Says::Mask { scores, .. } => Some((self.values.first()?, (*scores)?)),
            _ => None,
        }
    }
}

/// Reads the outputs of one model.
pub(super) struct Reader {
    decoder: Decoder,
    numbers: Vec<Option<Numbers>>,
    labels: Vec<String>,
}

impl Reader {
    /// For this model; `fitter` is where its pictures go in.
    pub(super) fn new(model: &TaskModel, fitter: Option<&PictureFitter>) -> Result<Reader> {
        // All that a detector found: who compares says which of it counts.
        let options = TaskOptions::default().with_score_threshold(0.0);
        let decoder = Decoder::new(model, fitter, &options)?;
        let numbers = model.own_outputs().iter().map(Numbers::of).collect();
        Ok(Reader { decoder, numbers, labels: model.labels.clone() })
    }

    /// What the model does.
    pub(super) fn task(&self) -> Task {
        match self.decoder {
            Decoder::Classes(_) => Task::Classification,
            Decoder::Boxes(_) => Task::Detection,
            Decoder::Segments(_) => Task::Segmentation,
            Decoder::Upscaled(_) => Task::SuperResolution,
            _ => Task::Numbers,
        }
    }

    /// Which class it is that a data set names, by number or label.
    pub(super) fn class(&self, named: &str) -> Option<usize> {
        named.parse().ok().or_else(|| self.labels.iter().position(|label| label == named))
    }

    /// Reads outputs.
    ///
    /// # Errors
    /// They are not those of this model.
    pub(super) fn read(&mut self, outputs: Vec<Vec<u8>>) -> Result<Answer> {
        let mut given = Given(outputs);
        self.decoder.read(&mut given)?;
        let says = match &self.decoder {
            Decoder::Classes(classes) => {
                Says::Classes { scores: classes.scores().to_vec(), classes: classes.classes() }
            }
            Decoder::Boxes(boxes) => Says::Boxes(boxes.detections(None)),
            Decoder::Segments(segments) => {
                Says::Mask { mask: segments.mask().to_vec(), scores: segments.classes() }
            }
            _ => Says::Numbers,
        };
        let outputs = given.0;
        let values = self.numbers.iter().zip(&outputs).map(|(numbers, bytes)| {
            let mut values = Vec::new();
            if let Some(numbers) = numbers {
                numbers.read(bytes, &mut values);
            }
            values
        });
        let values = values.collect();
        Ok(Answer { outputs, values, says })
    }
}

/// Outputs as bytes.
struct Given(Vec<Vec<u8>>);

impl Outputs for Given {
    fn output(&mut self, index: usize) -> Result<&[u8], TaskError> {
        let missing = TaskError::OutputLength { index, wanted: 1, found: 0 };
        self.0.get(index).map(Vec::as_slice).ok_or(missing)
    }
}
