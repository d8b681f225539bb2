//! What a detector's outputs say: boxes with classes and scores.

use anyhow::Result;
use burst_hal::OperandType;
use burst_tflite::TensorInfo;
use serde::Serialize;

use super::classes::name;
use super::numbers::Numbers;
use crate::draw::{Canvas, Rect};
use crate::stream::feed::Placed;
use crate::stream::path::Path;

/// A thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Detection {
    pub(crate) index: usize,
    pub(crate) label: String,
    pub(crate) score: f32,
    /// Left, top, right and bottom edge, as parts of the frame's width and height.
    pub(crate) edges: [f32; 4],
}

impl Detection {
    pub(crate) fn name(&self) -> String {
        name(self.index, &self.label)
    }
}

/// Reads the four outputs of a detection operator: boxes `[1, n, 4]` (top, left, bottom, right, as
/// parts of the input), classes `[1, n]`, scores `[1, n]`, and how many there are, `[1]`.
#[derive(Debug)]
pub(crate) struct Detector {
    outputs: [Numbers; 4],
    values: [Vec<f32>; 4],
    labels: Vec<String>,
    min_score: f32,
}

impl Detector {
    /// `None` for outputs that are not those of a detector.
    pub(crate) fn new(outputs: &[TensorInfo], labels: &[String], min_score: f32) -> Option<Self> {
        let [boxes, classes, scores, count] = outputs else { return None };
        let &[1, most, 4] = boxes.dims.as_slice() else { return None };
        let per_box = |tensor: &TensorInfo| tensor.dims.as_slice() == [1, most];
        let found = per_box(classes) && per_box(scores) && count.dims.as_slice() == [1];
        let is_real = |tensor: &TensorInfo| tensor.ty != OperandType::TensorInt32;
        if !found || !is_real(boxes) || !is_real(scores) {
            return None;
        }
        let of = Numbers::of;
        let outputs = [of(boxes)?, of(classes)?, of(scores)?, of(count)?];
        Some(Detector { outputs, values: Default::default(), labels: labels.to_vec(), min_score })
    }

    /// Takes the outputs of the last execution in.
    pub(crate) fn read(&mut self, path: &mut dyn Path) -> Result<()> {
        for (index, (numbers, values)) in self.outputs.iter().zip(&mut self.values).enumerate() {
            numbers.read(path.output(index)?, values);
        }
        Ok(())
    }

    /// What was found with at least the score that is asked for, best first.
    pub(crate) fn detections(&self, placed: Option<&Placed<'_>>) -> Vec<Detection> {
        let [boxes, classes, scores, count] = &self.values;
        let count = count.first().map_or(0, |count| index(*count));
        let all = boxes.chunks_exact(4).zip(classes).zip(scores).take(count);
        let mut found: Vec<Detection> = all
            .filter(|(_, score)| **score >= self.min_score)
            .map(|((edges, class), score)| {
                let index = index(*class);
                Detection {
                    index,
                    label: self.labels.get(index).cloned().unwrap_or_default(),
                    score: *score,
                    edges: in_frame([edges[1], edges[0], edges[3], edges[2]], placed),
                }
            })
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }

    /// Draws the boxes into the frame.
    pub(crate) fn draw(&self, placed: &Placed<'_>, canvas: &mut Canvas) {
        let (width, height) = (placed.frame.width, placed.frame.height);
        let boxes: Vec<_> = self
            .detections(Some(placed))
            .iter()
            .map(|found| {
                let rect = Rect::of_parts(found.edges, width, height);
                (rect, found.index, format!("{} {:.2}", found.name(), found.score))
            })
            .collect();
        canvas.labelled_boxes(&boxes);
    }
}

/// A class or count that comes as a real number; 0 for what is none.
fn index(value: f32) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let index = value as usize;
    index
}

/// From parts of the model's input to parts of the frame, cut off at its edges.
fn in_frame(edges: [f32; 4], placed: Option<&Placed<'_>>) -> [f32; 4] {
    let Some(Placed { frame, placement }) = placed else { return edges };
    let across = |part: f32, from: f64, length: f64, whole: u32| {
        #[expect(clippy::cast_possible_truncation, reason = "a part of 1")]
        let part = ((from + f64::from(part) * length) / f64::from(whole)).clamp(0.0, 1.0) as f32;
        part
    };
    let x = |part| across(part, placement.left, placement.width, frame.width);
    let y = |part| across(part, placement.top, placement.height, frame.height);
    [x(edges[0]), y(edges[1]), x(edges[2]), y(edges[3])]
}

#[cfg(test)]
mod tests {
    use burst_tflite::ElementType;

    use super::*;
    use crate::fit::Placement;
    use crate::source::Frame;

    fn tensor(ty: OperandType, dims: &[u32]) -> TensorInfo {
        let file_type = ElementType::Float32;
        TensorInfo { name: "t".into(), ty, file_type, dims: dims.into(), scale: 0.0, zero_point: 0 }
    }

    fn detector() -> Detector {
        let float = OperandType::TensorFloat32;
        let int = OperandType::TensorInt32;
        let outputs = [
            tensor(float, &[1, 3, 4]),
            tensor(int, &[1, 3]),
            tensor(float, &[1, 3]),
            tensor(int, &[1]),
        ];
        let mut detector = Detector::new(&outputs, &["x".into(), "y".into()], 0.5).unwrap();
        detector.values = [
            vec![0.0, 0.5, 1.0, 1.0, 0.25, 0.25, 0.5, 0.5, 0.0, 0.0, 1.0, 1.0],
            vec![1.0, 7.0, 0.0],
            vec![0.5, 0.75, 0.9],
            vec![2.0],
        ];
        detector
    }

    #[test]
    fn only_as_many_as_there_are_and_as_good_as_asked_for_best_first() {
        let found = detector().detections(None);
        let names: Vec<String> = found.iter().map(Detection::name).collect();
        assert_eq!(names, ["class 7", "y"], "the third box does not count");
        assert_eq!(found[1].edges, [0.5, 0.0, 1.0, 1.0], "left, top, right, bottom");
        let mut strict = detector();
        strict.min_score = 0.6;
        assert_eq!(strict.detections(None).len(), 1);
    }

    #[test]
    fn boxes_of_a_crop_lie_where_the_crop_was() {
        let frame = Frame { width: 400, height: 200, rgb: &[], name: "", truth: None };
        let placement = Placement { left: 100.0, top: 0.0, width: 200.0, height: 200.0 };
        let found = detector().detections(Some(&Placed { frame, placement }));
        assert_eq!(found[1].edges, [0.5, 0.0, 0.75, 1.0]);
    }

    #[test]
    fn other_outputs_are_no_detector() {
        let float = OperandType::TensorFloat32;
        assert!(Detector::new(&[tensor(float, &[1, 3, 4])], &[], 0.5).is_none());
        let four = [&[1_u32, 3, 4][..], &[1, 3], &[1, 4], &[1]].map(|dims| tensor(float, dims));
        assert!(Detector::new(&four, &[], 0.5).is_none());
    }
}
