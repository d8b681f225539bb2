//! What a classifier's output says: the best classes, with labels and scores.

use std::path::Path;

use anyhow::{Context, Result, bail};
use burst_hal::OperandType;
use burst_tflite::TensorInfo;
use serde::Serialize;

/// Longest label file that is read, in bytes.
const MAX_LABEL_BYTES: u64 = 16 << 20;

/// One class with its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Class {
    pub(crate) index: usize,
    pub(crate) label: String,
    pub(crate) score: f32,
}

/// Reads scores out of a model's output tensor.
#[derive(Debug)]
pub(crate) struct Classifier {
    ty: OperandType,
    scale: f32,
    zero_point: i32,
    classes: usize,
    labels: Vec<String>,
    scores: Vec<f32>,
}

impl Classifier {
    /// `None` for an output that is not one score per class.
    pub(crate) fn new(output: &TensorInfo, labels: Vec<String>) -> Option<Self> {
        let known = matches!(
            output.ty,
            OperandType::TensorFloat32
                | OperandType::TensorQuant8Asymm
                | OperandType::TensorQuant8AsymmSigned
        );
        let (classes, lead) = output.dims.split_last()?;
        let classes = *classes as usize;
        if !known || classes < 2 || lead.iter().any(|dim| *dim != 1) {
            return None;
        }
        Some(Classifier {
            ty: output.ty,
            scale: output.scale,
            zero_point: output.zero_point,
            classes,
            labels,
            scores: Vec::with_capacity(classes),
        })
    }

    /// The class with the highest score; of equal ones the first.
    pub(crate) fn best(&mut self, output: &[u8]) -> usize {
        self.read(output);
        let mut best = 0;
        for (index, score) in self.scores.iter().enumerate() {
            if *score > self.scores[best] {
                best = index;
            }
        }
        best
    }

    /// The `count` classes with the highest scores, best first.
    pub(crate) fn top(&mut self, output: &[u8], count: usize) -> Vec<Class> {
        self.read(output);
        let mut order: Vec<usize> = (0..self.scores.len()).collect();
        order.sort_by(|a, b| self.scores[*b].total_cmp(&self.scores[*a]).then(a.cmp(b)));
        order.truncate(count);
        order.into_iter().map(|index| self.class(index)).collect()
    }

    /// A class by index, with the score of the output read last.
    pub(crate) fn class(&self, index: usize) -> Class {
        Class {
            index,
            label: self.label(index).to_owned(),
            score: self.scores.get(index).copied().unwrap_or(f32::NAN),
        }
    }

    fn label(&self, index: usize) -> &str {
        self.labels.get(index).map_or("", String::as_str)
    }

    fn read(&mut self, output: &[u8]) {
        self.scores.clear();
        let real = |stored: i32| {
            #[expect(clippy::cast_precision_loss, reason = "eight-bit values")]
            let steps = (stored - self.zero_point) as f32;
            steps * self.scale
        };
        match self.ty {
            OperandType::TensorFloat32 => self.scores.extend(
                output.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])),
            ),
            OperandType::TensorQuant8AsymmSigned => {
                self.scores.extend(output.iter().map(|b| real(b.cast_signed().into())));
            }
            _ => self.scores.extend(output.iter().map(|b| real((*b).into()))),
        }
        self.scores.truncate(self.classes);
    }
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
    let text = std::fs::read_to_string(path).with_context(what)?;
    Ok(text.lines().map(|line| line.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn scores_are_real_numbers_best_first() {
        let labels = ["a", "b", "c"].map(String::from).to_vec();
        let out = info(OperandType::TensorQuant8AsymmSigned, &[1, 3]);
        let mut classifier = Classifier::new(&out, labels).unwrap();
        let output = [1i8, 3, 3].map(i8::cast_unsigned);
        assert_eq!(classifier.best(&output), 1);
        let top = classifier.top(&output, 2);
        assert_eq!(top[0], Class { index: 1, label: "b".into(), score: 2.0 });
        assert_eq!(top[1], Class { index: 2, label: "c".into(), score: 2.0 });
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
}
