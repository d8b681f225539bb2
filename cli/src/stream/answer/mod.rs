//! What a model's outputs say, by what kind of model it is.

use anyhow::{Result, bail};
use burst_hal::OperationType;
use burst_tflite::{Imported, TensorInfo};
use serde::Serialize;

use super::feed::Placed;
use super::path::Path;
use crate::draw::Canvas;
use crate::fit::{FloatRange, InputShape};

mod boxes;
mod classes;
mod numbers;
mod segments;
mod upscaled;

pub(crate) use boxes::Detection;
pub(crate) use classes::{Class, Stretch, read_labels};
pub(crate) use segments::Share;

use boxes::Detector;
use classes::Classifier;
use numbers::Numbers;
use segments::Segmenter;
use upscaled::Upscaler;

/// What one frame came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
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

/// How many labels there have to be for a model's classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelsNeeded {
    /// One for each class.
    Exactly(usize),
    /// One for each class, and perhaps for others that the model does not tell apart.
    AtLeast(usize),
    /// How many classes there are the model does not say.
    Any,
}

impl LabelsNeeded {
    /// Whether so many are right.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn check(self, count: usize) -> Result<()> {
        let classes = match self {
            LabelsNeeded::Exactly(classes) if classes != count => classes,
            LabelsNeeded::AtLeast(classes) if classes > count => classes,
            _ => return Ok(()),
        };
        bail!(
            "{count} labels, where the model has {classes} classes; one line is one label, from class 0 on"
        )
    }
}

/// What is known of a model before it runs.
#[derive(Clone)]
pub(crate) struct Known<'a> {
    pub(crate) imported: &'a Imported,
    /// Its input, where pictures go in.
    pub(crate) picture: Option<InputShape>,
    pub(crate) labels: Vec<String>,
    pub(crate) min_score: f32,
    pub(crate) float_range: FloatRange,
}

/// Reads a model's outputs.
pub(crate) enum Reader {
    Classes(Classifier),
    Boxes(Detector),
    Segments(Segmenter),
    Upscaled(Upscaler),
    /// Whatever it is: the numbers of the first output.
    Values(Numbers, Vec<f32>),
    /// No output whose numbers can be read.
    Nothing,
}

impl Reader {
    /// Finds out from shapes and types what the outputs are.
    pub(crate) fn new(known: Known<'_>) -> Self {
        let own = known.imported.outputs.len() - known.imported.states.len();
        let outputs = &known.imported.outputs[..own];
        let Some(first) = outputs.first() else { return Reader::Nothing };
        let found = match known.picture {
            Some(input) => of_pictures(&known, input, outputs),
            None => Classifier::of_steps(first, known.labels.clone())
                .filter(|found| found.steps() == 1 || scores_come_last(known.imported))
                .map(Reader::Classes),
        };
        let values = || Numbers::of(first).map(|numbers| Reader::Values(numbers, Vec::new()));
        found.or_else(values).unwrap_or(Reader::Nothing)
    }

    /// Takes the outputs of the last execution in.
    pub(crate) fn read(&mut self, path: &mut dyn Path) -> Result<()> {
        match self {
            Reader::Classes(classifier) => classifier.read(path.output(0)?),
            Reader::Boxes(detector) => detector.read(path)?,
            Reader::Segments(segmenter) => segmenter.read(path)?,
            Reader::Upscaled(upscaler) => upscaler.read(path)?,
            Reader::Values(numbers, values) => numbers.read(path.output(0)?, values),
            Reader::Nothing => {}
        }
        Ok(())
    }

    /// The best class, of a classifier.
    pub(crate) fn best(&self) -> Option<usize> {
        match self {
            Reader::Classes(classifier) => Some(classifier.best()),
            _ => None,
        }
    }

    /// The best class with label and score, of a classifier.
    pub(crate) fn best_class(&self) -> Option<Class> {
        match self {
            Reader::Classes(classifier) => classifier.top(1).pop(),
            _ => None,
        }
    }

    /// How many labels its classes need; `None` where it has no classes.
    pub(crate) fn labels_needed(&self) -> Option<LabelsNeeded> {
        match self {
            Reader::Classes(classifier) => Some(LabelsNeeded::Exactly(classifier.classes())),
            Reader::Boxes(_) => Some(LabelsNeeded::Any),
            Reader::Segments(segmenter) => {
                Some(segmenter.classes().map_or(LabelsNeeded::Any, LabelsNeeded::AtLeast))
            }
            Reader::Upscaled(_) | Reader::Values(..) | Reader::Nothing => None,
        }
    }

    /// Whether the outputs are one score per class.
    pub(crate) fn is_classifier(&self) -> bool {
        matches!(self, Reader::Classes(classifier) if classifier.steps() == 1)
    }

    /// What was read last; of classes the best `top`.
    pub(crate) fn answer(&self, top: usize, placed: Option<&Placed<'_>>) -> Option<Answer> {
        Some(match self {
            Reader::Classes(classifier) if classifier.steps() > 1 => {
                Answer::Steps { steps: classifier.steps(), stretches: classifier.stretches() }
            }
            Reader::Classes(classifier) => Answer::Top { top: classifier.top(top) },
            Reader::Boxes(detector) => Answer::Boxes { boxes: detector.detections(placed) },
            Reader::Segments(segmenter) => Answer::Shares { classes: segmenter.shares() },
            Reader::Upscaled(upscaler) => {
                let (width, height) = upscaler.size();
                Answer::Picture { width, height }
            }
            Reader::Values(_, values) => Answer::Values {
                count: values.len(),
                least: values.iter().copied().fold(f32::INFINITY, f32::min),
                greatest: values.iter().copied().fold(f32::NEG_INFINITY, f32::max),
            },
            Reader::Nothing => return None,
        })
    }

    /// The frame with what was read last drawn in; of super-resolution the larger picture.
    pub(crate) fn picture(&self, placed: &Placed<'_>) -> Canvas {
        let frame = &placed.frame;
        let mut canvas = match self {
            Reader::Upscaled(upscaler) => {
                let (width, height) = upscaler.size();
                return Canvas::new(width, height, upscaler.rgb().to_vec());
            }
            _ => Canvas::new(frame.width, frame.height, frame.rgb.to_vec()),
        };
        match self {
            Reader::Boxes(detector) => detector.draw(placed, &mut canvas),
            Reader::Segments(segmenter) => segmenter.draw(placed, &mut canvas),
            _ => {
                let named =
                    |class: Class| (class.index, format!("{} {:.2}", class.name(), class.score));
                let best: Vec<_> = self.best_class().map(named).into_iter().collect();
                canvas.legend(&best);
            }
        }
        canvas
    }
}

fn of_pictures(known: &Known<'_>, input: InputShape, outputs: &[TensorInfo]) -> Option<Reader> {
    let first = outputs.first()?;
    if let Some(detector) = Detector::new(outputs, &known.labels, known.min_score) {
        return Some(Reader::Boxes(detector));
    }
    if let Some(classifier) = Classifier::new(first, known.labels.clone()) {
        return Some(Reader::Classes(classifier));
    }
    if let Some(upscaler) = Upscaler::new(input, first, known.float_range) {
        return Some(Reader::Upscaled(upscaler));
    }
    Segmenter::new(first, &known.labels).map(Reader::Segments)
}

/// What a picture model gives, as far as that decides how pictures are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Says where in the picture something is: detection, segmentation.
    Locate,
    /// A picture from a picture.
    Picture,
    /// Anything else.
    Other,
}

/// The task of a model that takes pictures.
pub(crate) fn task(imported: &Imported, input: InputShape) -> Task {
    let known = Known {
        imported,
        picture: Some(input),
        labels: Vec::new(),
        min_score: 0.0,
        float_range: FloatRange::Byte,
    };
    match Reader::new(known) {
        Reader::Boxes(_) | Reader::Segments(_) => Task::Locate,
        Reader::Upscaled(_) => Task::Picture,
        _ => Task::Other,
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
