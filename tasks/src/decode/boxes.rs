//! What a detector's outputs say: boxes with classes and scores.

use burst_hal::OperandType;
use burst_tflite::TensorInfo;
use serde::Serialize;

use super::tensor::Tensor;
use crate::error::TaskError;
use crate::labels::name;
use crate::options::Choice;
use crate::picture_input::Placement;
use crate::runner::Outputs;

/// A thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detection {
    /// Its class, from 0.
    pub index: usize,
    /// The label of its class; empty where it has none.
    pub label: String,
    /// How much speaks for it, as the model says it.
    pub score: f32,
    /// Left, top, right and bottom edge, as parts of the picture's width and height.
    pub edges: [f32; 4],
}

impl Detection {
    /// Its label, or the number of its class where it has none.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.index, &self.label)
    }
}

/// Reads the four outputs of a detection operator: boxes `[1, n, 4]` (top, left, bottom, right, as
/// parts of the input), classes `[1, n]`, scores `[1, n]`, and how many there are, `[1]`.
#[derive(Debug)]
pub struct BoxDecoder {
    boxes: Tensor,
    classes: Tensor,
    scores: Tensor,
    count: Tensor,
    labels: Vec<String>,
    choice: Choice,
}

impl BoxDecoder {
    /// `None` for outputs that are not those of a detector.
    pub(super) fn new(outputs: &[TensorInfo]) -> Option<Self> {
        let [boxes, classes, scores, count] = outputs else { return None };
        let &[1, most, 4] = boxes.dims.as_slice() else { return None };
        let per_box = |tensor: &TensorInfo| tensor.dims.as_slice() == [1, most];
        let found = per_box(classes) && per_box(scores) && count.dims.as_slice() == [1];
        let is_real = |tensor: &TensorInfo| tensor.ty != OperandType::TensorInt32;
        if !found || !is_real(boxes) || !is_real(scores) {
            return None;
        }
        Some(BoxDecoder {
            boxes: Tensor::new(0, boxes)?,
            classes: Tensor::new(1, classes)?,
            scores: Tensor::new(2, scores)?,
            count: Tensor::new(3, count)?,
            labels: Vec::new(),
            choice: Choice::default(),
        })
    }

    pub(super) fn choose(&mut self, labels: Vec<String>, choice: Choice) {
        (self.labels, self.choice) = (labels, choice);
    }

    /// Takes the outputs of the last execution in.
    ///
    /// # Errors
    /// An output cannot be read, or has another length than the model says.
    pub fn read(&mut self, outputs: &mut (impl Outputs + ?Sized)) -> Result<(), TaskError> {
        for tensor in [&mut self.boxes, &mut self.classes, &mut self.scores, &mut self.count] {
            tensor.read(outputs)?;
        }
        Ok(())
    }

    /// What was found, as far as the options allow it, best first; its edges as parts of the picture that lies in the
    /// input like this, or, where it is not said how, of the input.
    #[must_use]
    pub fn detections(&self, placement: Option<&Placement>) -> Vec<Detection> {
        let count = self.count.values.first().map_or(0, |count| index(*count));
        let all = self.boxes.values.chunks_exact(4).zip(&self.classes.values);
        let all = all.zip(&self.scores.values).take(count);
        let detection = |((edges, class), score): ((&[f32], &f32), &f32)| {
            let index = index(*class);
            Detection {
                index,
                label: self.labels.get(index).cloned().unwrap_or_default(),
                score: *score,
                edges: in_picture([edges[1], edges[0], edges[3], edges[2]], placement),
            }
        };
        let mut found: Vec<Detection> = all
            .map(detection)
            .filter(|found| self.choice.takes(&found.label, found.score))
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(self.choice.most());
        found
    }
}

/// A class or count that comes as a real number; 0 for what is none.
fn index(value: f32) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let index = value as usize;
    index
}

/// From parts of the model's input to parts of the picture, cut off at its edges.
fn in_picture(edges: [f32; 4], placement: Option<&Placement>) -> [f32; 4] {
    let Some(placement) = placement else { return edges };
    let across = |part: f32, from: f64, length: f64, whole: u32| {
        #[expect(clippy::cast_possible_truncation, reason = "a part of 1")]
        let part = ((from + f64::from(part) * length) / f64::from(whole)).clamp(0.0, 1.0) as f32;
        part
    };
    let x = |part| across(part, placement.left, placement.width, placement.picture_width);
    let y = |part| across(part, placement.top, placement.height, placement.picture_height);
    [x(edges[0]), y(edges[1]), x(edges[2]), y(edges[3])]
}

#[cfg(test)]
mod tests {
    use burst_tflite::ElementType;

    use super::*;
    use crate::options::TaskOptions;

    fn tensor(ty: OperandType, dims: &[u32]) -> TensorInfo {
        let file_type = ElementType::Float32;
        TensorInfo { name: "t".into(), ty, file_type, dims: dims.into(), scale: 0.0, zero_point: 0 }
    }

    fn decoder(options: &TaskOptions) -> BoxDecoder {
        let float = OperandType::TensorFloat32;
        let int = OperandType::TensorInt32;
        let outputs = [
            tensor(float, &[1, 3, 4]),
            tensor(int, &[1, 3]),
            tensor(float, &[1, 3]),
            tensor(int, &[1]),
        ];
        let mut decoder = BoxDecoder::new(&outputs).unwrap();
        let labels = ["x", "y"].map(String::from).to_vec();
        let choice = Choice::new(options, Some(0.5), ("m", &labels)).unwrap();
        decoder.choose(labels, choice);
        decoder.boxes.values = vec![0.0, 0.5, 1.0, 1.0, 0.25, 0.25, 0.5, 0.5, 0.0, 0.0, 1.0, 1.0];
        decoder.classes.values = vec![1.0, 7.0, 0.0];
        decoder.scores.values = vec![0.5, 0.75, 0.9];
        decoder.count.values = vec![2.0];
        decoder
    }

    #[test]
    fn only_as_many_as_there_are_and_as_good_as_asked_for_best_first() {
        let options = TaskOptions::default();
        let found = decoder(&options).detections(None);
        let names: Vec<String> = found.iter().map(Detection::name).collect();
        assert_eq!(names, ["class 7", "y"], "the third box does not count");
        assert_eq!(found[1].edges, [0.5, 0.0, 1.0, 1.0], "left, top, right, bottom");
        let strict = decoder(&options.clone().with_score_threshold(0.6));
        assert_eq!(strict.detections(None).len(), 1);
        let only_y = decoder(&options.clone().with_allowed(["y"])).detections(None);
        assert_eq!((only_y.len(), only_y[0].index), (1, 1));
        assert_eq!(decoder(&options.with_max_results(1)).detections(None)[0].index, 7);
    }

    #[test]
    fn boxes_of_a_crop_lie_where_the_crop_was() {
        let placement = Placement {
            left: 100.0,
            top: 0.0,
            width: 200.0,
            height: 200.0,
            picture_width: 400,
            picture_height: 200,
        };
        let found = decoder(&TaskOptions::default()).detections(Some(&placement));
        assert_eq!(found[1].edges, [0.5, 0.0, 0.75, 1.0]);
    }

    #[test]
    fn other_outputs_are_no_detector() {
        let float = OperandType::TensorFloat32;
        assert!(BoxDecoder::new(&[tensor(float, &[1, 3, 4])]).is_none());
        let four = [&[1_u32, 3, 4][..], &[1, 3], &[1, 4], &[1]].map(|dims| tensor(float, dims));
        assert!(BoxDecoder::new(&four).is_none());
    }
}
