//! What a classifier's output says: the best classes, with labels and scores; of a sequence of steps
//! the best class of each.

use std::path::Path;

use anyhow::{Context, Result, bail};
use burst_tflite::TensorInfo;
use serde::Serialize;

use super::numbers::Numbers;
use crate::labels::labels_of;

/// Longest label file that is read, in bytes.
const MAX_LABEL_BYTES: u64 = 16 << 20;

/// One class with its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Class {
    pub(crate) index: usize,
    pub(crate) label: String,
    pub(crate) score: f32,
}

impl Class {
    /// Its label, or its number where it has none.
    pub(crate) fn name(&self) -> String {
        name(self.index, &self.label)
    }
}

pub(super) fn name(index: usize, label: &str) -> String {
    if label.is_empty() { format!("class {index}") } else { label.to_owned() }
}

/// Consecutive steps that have the same best class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Stretch {
    /// The first of them.
    pub(crate) step: usize,
    /// The class; its score is the highest of these steps.
    #[serde(flatten)]
    pub(crate) class: Class,
}

/// Reads scores out of a model's output tensor.
#[derive(Debug)]
pub(crate) struct Classifier {
    numbers: Numbers,
    steps: usize,
    classes: usize,
    labels: Vec<String>,
    scores: Vec<f32>,
}

impl Classifier {
    /// `None` for an output that is not one score per class.
    pub(crate) fn new(output: &TensorInfo, labels: Vec<String>) -> Option<Self> {
        let (_, lead) = output.dims.split_last()?;
        if lead.iter().any(|dim| *dim != 1) {
            return None;
        }
        Self::of_steps(output, labels)
    }

    /// `None` for an output that is not one score per class, or that per step: `[1, steps, classes]`.
    pub(crate) fn of_steps(output: &TensorInfo, labels: Vec<String>) -> Option<Self> {
        let numbers = Numbers::of(output)?;
        let is_score = output.ty != burst_hal::OperandType::TensorInt32;
        let (classes, lead) = output.dims.split_last()?;
        let steps = match *lead {
            [] => 1,
            [.., steps] if lead.iter().rev().skip(1).all(|dim| *dim == 1) => steps as usize,
            _ => return None,
        };
        let classes = *classes as usize;
        (is_score && classes >= 2 && steps >= 1).then(|| Classifier {
            numbers,
            steps,
            classes,
            labels,
            scores: Vec::with_capacity(classes * steps),
        })
    }

    /// Takes the scores of an output in.
    pub(crate) fn read(&mut self, output: &[u8]) {
        self.numbers.read(output, &mut self.scores);
        self.scores.truncate(self.classes * self.steps);
    }

    /// How many classes there are.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// How many steps an output has.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    /// The class with the highest score in the last step; of equal ones the first.
    pub(crate) fn best(&self) -> usize {
        self.scores.chunks(self.classes).last().map_or(0, best_of)
    }

    /// The `count` classes with the highest scores in the last step, best first.
    pub(crate) fn top(&self, count: usize) -> Vec<Class> {
        let scores = self.scores.chunks(self.classes).last().unwrap_or(&[]);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        order.truncate(count);
        order.into_iter().map(|index| self.class_scored(index, scores[index])).collect()
    }

    /// The best class of each step, equal neighbours as one.
    pub(crate) fn stretches(&self) -> Vec<Stretch> {
        let mut all: Vec<Stretch> = Vec::new();
        for (step, scores) in self.scores.chunks(self.classes).enumerate() {
            let index = best_of(scores);
            match all.last_mut() {
                Some(last) if last.class.index == index => {
                    last.class.score = last.class.score.max(scores[index]);
                }
                _ => all.push(Stretch { step, class: self.class_scored(index, scores[index]) }),
            }
        }
        all
    }

    fn class_scored(&self, index: usize, score: f32) -> Class {
        let label = self.labels.get(index).cloned().unwrap_or_default();
        Class { index, label, score }
    }
}

fn best_of(scores: &[f32]) -> usize {
    let mut best = 0;
    for (index, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = index;
        }
    }
    best
}

/// Reads a label file: line number (from 0) is the class index.
pub(crate) fn read_labels(path: &Path) -> Result<Vec<String>> {
    let what = || format!("cannot read the labels {}", path.display());
    let bytes = std::fs::metadata(path).with_context(what)?.len();
    if bytes > MAX_LABEL_BYTES {
        bail!(
            "{}: a label file of {bytes} bytes, at most {MAX_LABEL_BYTES} are read",
            path.display()
        );
    }
    let labels = labels_of(&std::fs::read_to_string(path).with_context(what)?);
    if labels.iter().all(String::is_empty) {
        bail!("{}: no labels in this file", path.display());
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;

    fn info(ty: OperandType, dims: &[u32]) -> TensorInfo {
        TensorInfo {
            name: "out".into(),
            ty,
            file_type: burst_tflite::ElementType::Int8,
            dims: dims.into(),
            scale: 0.5,
            zero_point: -1,
        }
    }

    fn labels() -> Vec<String> {
        ["a", "b", "c"].map(String::from).to_vec()
    }

    #[test]
    fn scores_are_real_numbers_best_first() {
        let out = info(OperandType::TensorQuant8AsymmSigned, &[1, 3]);
        let mut classifier = Classifier::new(&out, labels()).unwrap();
        classifier.read(&[1i8, 3, 3].map(i8::cast_unsigned));
        assert_eq!(classifier.best(), 1);
        let top = classifier.top(2);
        assert_eq!(top[0], Class { index: 1, label: "b".into(), score: 2.0 });
        assert_eq!(top[1], Class { index: 2, label: "c".into(), score: 2.0 });
    }

    #[test]
    fn steps_with_the_same_class_are_one_stretch() {
        let out = info(OperandType::TensorQuant8AsymmSigned, &[1, 4, 2]);
        assert!(Classifier::new(&out, Vec::new()).is_none(), "more than one score per class");
        let mut classifier = Classifier::of_steps(&out, labels()).unwrap();
        classifier.read(&[3i8, 1, 5, 1, 1, 3, 7, 1].map(i8::cast_unsigned));
        let found: Vec<_> =
            classifier.stretches().into_iter().map(|s| (s.step, s.class.index)).collect();
        assert_eq!(found, [(0, 0), (2, 1), (3, 0)]);
        assert_eq!(classifier.stretches()[0].class.score, 3.0);
        assert_eq!(classifier.best(), 0, "of the last step");
    }

    #[test]
    fn outputs_of_other_shapes_are_no_classes() {
        for (ty, dims) in [
            (OperandType::TensorInt32, &[1u32, 3][..]),
            (OperandType::TensorFloat32, &[1, 10, 4]),
            (OperandType::TensorFloat32, &[]),
            (OperandType::TensorFloat32, &[1, 1]),
        ] {
            assert!(Classifier::new(&info(ty, dims), Vec::new()).is_none(), "{ty} {dims:?}");
        }
    }

    #[test]
    fn a_label_file_has_a_label_a_line() {
        assert_eq!(labels_of("a\n b \r\n\nc\n\n"), ["a", "b", "", "c"]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("l.txt");
        for text in ["", "\n\n", "  \n"] {
            std::fs::write(&file, text).unwrap();
            let error = read_labels(&file).unwrap_err().to_string();
            assert!(error.ends_with("l.txt: no labels in this file"), "{error}");
        }
    }

    #[test]
    fn a_class_without_a_label_has_a_number() {
        assert_eq!(Class { index: 7, label: String::new(), score: 0.0 }.name(), "class 7");
    }
}
