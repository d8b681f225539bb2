//! What a model's outputs say, by what kind of model it is.

use burst_hal::OperationType;
use burst_tflite::{Imported, TensorInfo};

use crate::error::TaskError;
use crate::labels::LabelsNeeded;
use crate::model::TaskModel;
use crate::options::{Choice, DEFAULT_MIN_SCORE, TaskOptions};
use crate::picture_input::{Normalisation, PictureFitter, PictureShape, Placement};
use crate::runner::Outputs;

mod boxes;
mod classes;
#[cfg(test)]
mod given;
mod segments;
mod tensor;
mod upscaled;
mod values;

pub use boxes::{BoxDecoder, Detection};
pub use classes::{Class, ClassDecoder, Stretch};
pub use segments::{SegmentDecoder, Share};
pub use upscaled::PictureDecoder;
pub use values::ValueDecoder;

/// What one input came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The best classes.
    Top {
        /// Best first.
        top: Vec<Class>,
    },
    /// The best class of each step.
    Steps {
        /// How many steps there are.
        steps: usize,
        /// Neighbours with the same class as one.
        stretches: Vec<Stretch>,
    },
    /// Things that were found.
    Boxes {
        /// Best first.
        boxes: Vec<Detection>,
    },
    /// How much of the picture belongs to which class.
    Shares {
        /// Largest first.
        classes: Vec<Share>,
    },
    /// A picture.
    Picture {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
    },
    /// Numbers whose meaning is not known here.
    Values {
        /// How many.
        count: usize,
        /// The least.
        least: f32,
        /// The greatest.
        greatest: f32,
    },
}

/// Reads a model's outputs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Decoder {
    /// One score per class, or that per step.
    Classes(ClassDecoder),
    /// The four outputs of a detection operator.
    Boxes(BoxDecoder),
    /// A class for each pixel.
    Segments(SegmentDecoder),
    /// A larger picture.
    Upscaled(PictureDecoder),
    /// Whatever it is: the numbers of the first output.
    Values(ValueDecoder),
    /// No output whose numbers can be read.
    Nothing,
}

impl Decoder {
    /// Finds out from shapes and types what the outputs are; `input` is where pictures go in, of a model that takes
    /// pictures. Labels in the model's own file that are not as many as its classes are left out, with a warning.
    ///
    /// # Errors
    /// The options contradict each other or the model: a number of labels, a label that is not there.
    pub fn new(
        model: &TaskModel,
        input: Option<&PictureFitter>,
        options: &TaskOptions,
    ) -> Result<Self, TaskError> {
        let input = input.map(|input| (input.shape(), input.normalisation()));
        let mut decoder = Decoder::of(model, input);
        let Some(needed) = decoder.labels_needed() else { return Ok(decoder) };
        let labels = match &options.labels {
            Some(labels) => {
                needed.check(labels.len())?;
                labels.clone()
            }
            None => match needed.check(model.labels.len()) {
                Ok(()) => model.labels.clone(),
                Err(error) => {
                    if !model.labels.is_empty() {
                        tracing::warn!("the labels in {} are not used: {error}", model.name);
                    }
                    Vec::new()
                }
            },
        };
        let least = match decoder {
            Decoder::Boxes(_) => model.score_threshold.or(Some(DEFAULT_MIN_SCORE)),
            Decoder::Classes(_) => model.score_threshold,
            _ => None,
        };
        let choice = Choice::new(options, least, (&model.name, &labels))?;
        match &mut decoder {
            Decoder::Classes(classes) => classes.choose(labels, choice),
            Decoder::Boxes(boxes) => boxes.choose(labels, choice),
            Decoder::Segments(segments) => segments.choose(labels, choice),
            Decoder::Upscaled(_) | Decoder::Values(_) | Decoder::Nothing => {}
        }
        Ok(decoder)
    }

    fn of(model: &TaskModel, input: Option<(PictureShape, Normalisation)>) -> Self {
        let outputs = model.own_outputs();
        let Some(first) = outputs.first() else { return Decoder::Nothing };
        let found = match input {
            Some((shape, normalisation)) => of_pictures(shape, normalisation, outputs),
            None => ClassDecoder::of_steps(first)
                .filter(|found| found.steps() == 1 || scores_come_last(&model.imported))
                .map(Decoder::Classes),
        };
        let values = || ValueDecoder::new(first).map(Decoder::Values);
        found.or_else(values).unwrap_or(Decoder::Nothing)
    }

    /// Takes the outputs of the last execution in.
    ///
    /// # Errors
    /// An output cannot be read, or has another length than the model says.
    pub fn read(&mut self, outputs: &mut (impl Outputs + ?Sized)) -> Result<(), TaskError> {
        match self {
            Decoder::Classes(classes) => classes.read(outputs),
            Decoder::Boxes(boxes) => boxes.read(outputs),
            Decoder::Segments(segments) => segments.read(outputs),
            Decoder::Upscaled(upscaled) => upscaled.read(outputs),
            Decoder::Values(values) => values.read(outputs),
            Decoder::Nothing => Ok(()),
        }
    }

    /// The best class, of a classifier.
    #[must_use]
    pub fn best(&self) -> Option<usize> {
        match self {
            Decoder::Classes(classes) => Some(classes.best()),
            _ => None,
        }
    }

    /// The best class with label and score, of a classifier.
    #[must_use]
    pub fn best_class(&self) -> Option<Class> {
        match self {
            Decoder::Classes(classes) => classes.top(1).pop(),
            _ => None,
        }
    }

    /// How many labels its classes need; `None` where it has no classes.
    #[must_use]
    pub fn labels_needed(&self) -> Option<LabelsNeeded> {
        match self {
            Decoder::Classes(classes) => Some(LabelsNeeded::Exactly(classes.classes())),
            Decoder::Boxes(_) => Some(LabelsNeeded::Any),
            Decoder::Segments(segments) => {
                Some(segments.classes().map_or(LabelsNeeded::Any, LabelsNeeded::AtLeast))
            }
            Decoder::Upscaled(_) | Decoder::Values(_) | Decoder::Nothing => None,
        }
    }

    /// Whether the outputs are one score per class.
    #[must_use]
    pub fn is_classifier(&self) -> bool {
        matches!(self, Decoder::Classes(classes) if classes.steps() == 1)
    }

    /// What was read last; of classes the best `top`. Boxes are where they are in the picture that lies in the input
    /// like this.
    #[must_use]
    pub fn answer(&self, top: usize, placement: Option<&Placement>) -> Option<Answer> {
        Some(match self {
            Decoder::Classes(classes) if classes.steps() > 1 => {
                Answer::Steps { steps: classes.steps(), stretches: classes.stretches() }
            }
            Decoder::Classes(classes) => Answer::Top { top: classes.top(top) },
            Decoder::Boxes(boxes) => Answer::Boxes { boxes: boxes.detections(placement) },
            Decoder::Segments(segments) => Answer::Shares { classes: segments.shares() },
            Decoder::Upscaled(upscaled) => {
                let (width, height) = upscaled.size();
                Answer::Picture { width, height }
            }
            Decoder::Values(values) => {
                let values = values.values();
                Answer::Values {
                    count: values.len(),
                    least: values.iter().copied().fold(f32::INFINITY, f32::min),
                    greatest: values.iter().copied().fold(f32::NEG_INFINITY, f32::max),
                }
            }
            Decoder::Nothing => return None,
        })
    }
}

/// The decoder of one task.
pub(crate) trait TaskDecoder: Sized {
    /// What messages call the task.
    const TASK: &'static str;

    /// The decoder, where it is that of this task.
    fn of(decoder: Decoder) -> Option<Self>;

    /// Takes the outputs of the last execution in.
    fn take(&mut self, outputs: &mut dyn Outputs) -> Result<(), TaskError>;

    /// The decoder of this task; an error where the model is of another one.
    fn of_task(decoder: Decoder, model: &TaskModel) -> Result<Self, TaskError> {
        Self::of(decoder).ok_or_else(|| {
            let outputs = model.own_outputs().iter();
            let outputs: Vec<String> = outputs
                .map(|info| format!("`{}` {} {:?}", info.name, info.ty, info.dims))
                .collect();
            let (model, task) = (model.name.clone(), Self::TASK);
            TaskError::NotThisTask { model, task, outputs: outputs.join(", ") }
        })
    }
}

macro_rules! task_decoders {
    ($($decoder:ident, $task:literal, $variant:ident;)*) => {$(
        impl TaskDecoder for $decoder {
            const TASK: &'static str = $task;

            fn of(decoder: Decoder) -> Option<Self> {
                match decoder {
                    Decoder::$variant(found) => Some(found),
                    _ => None,
                }
            }

            fn take(&mut self, outputs: &mut dyn Outputs) -> Result<(), TaskError> {
                self.read(outputs)
            }
        }
    )*};
}

task_decoders! {
    ClassDecoder, "classifier", Classes;
    BoxDecoder, "detector", Boxes;
    SegmentDecoder, "segmenter", Segments;
    PictureDecoder, "super-resolution", Upscaled;
}

fn of_pictures(
    input: PictureShape,
    normalisation: Normalisation,
    outputs: &[TensorInfo],
) -> Option<Decoder> {
    let first = outputs.first()?;
    if let Some(boxes) = BoxDecoder::new(outputs) {
        return Some(Decoder::Boxes(boxes));
    }
    if let Some(classes) = ClassDecoder::new(first) {
        return Some(Decoder::Classes(classes));
    }
    if let Some(upscaled) = PictureDecoder::new(input, first, normalisation) {
        return Some(Decoder::Upscaled(upscaled));
    }
    SegmentDecoder::new(first).map(Decoder::Segments)
}

/// What a picture model gives, as far as that decides how pictures are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureTask {
    /// Says where in the picture something is: detection, segmentation.
    Locate,
    /// A picture from a picture.
    Picture,
    /// Anything else.
    Other,
}

/// The task of a model that takes pictures.
pub(crate) fn picture_task(model: &TaskModel, input: PictureShape) -> PictureTask {
    match Decoder::of(model, Some((input, Normalisation::BYTE))) {
        Decoder::Boxes(_) | Decoder::Segments(_) => PictureTask::Locate,
        Decoder::Upscaled(_) => PictureTask::Picture,
        _ => PictureTask::Other,
    }
}

/// Whether the first output is made by an operation that gives scores.
fn scores_come_last(imported: &Imported) -> bool {
    let graph = &imported.model.main;
    let Some(output) = graph.output_indexes.first() else { return false };
    graph.operations.iter().any(|operation| {
        let scores = [OperationType::Softmax, OperationType::LogSoftmax, OperationType::Logistic];
        scores.contains(&operation.ty) && operation.outputs.contains(output)
    })
}
