//! What a segmentation says: a class for each pixel.

use burst_hal::OperandType;
use burst_tflite::TensorInfo;
use serde::Serialize;

use super::tensor::Tensor;
use crate::error::TaskError;
use crate::labels::name;
use crate::options::Choice;
use crate::picture_input::Placement;
use crate::runner::Outputs;

/// Most classes that are distinguished.
const MAX_CLASSES: usize = 65_536;

/// How much of the picture belongs to a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The class, from 0.
    pub index: usize,
    /// Its label; empty where it has none.
    pub label: String,
    /// Part of all pixels, 0 to 1.
    pub share: f32,
}

impl Share {
    /// The label, or the number of the class where it has none.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.index, &self.label)
    }
}

/// Reads an output with a score per class and pixel, `[1, height, width, classes]`, or with the
/// class of each pixel, `[1, height, width]`.
#[derive(Debug)]
pub struct SegmentDecoder {
    output: Tensor,
    width: usize,
    height: usize,
    /// Scores of a pixel; 1 where the output has the class itself.
    scores: usize,
    labels: Vec<String>,
    choice: Choice,
    /// The class of each pixel.
    mask: Vec<u16>,
}

impl SegmentDecoder {
    /// `None` for an output that is no segmentation.
    pub(super) fn new(output: &TensorInfo) -> Option<Self> {
        let is_class = output.ty == OperandType::TensorInt32;
        let (height, width, scores) = match *output.dims.as_slice() {
            [1, height, width] | [1, height, width, 1] if is_class => (height, width, 1),
            [1, height, width, scores @ (2..)] if !is_class => (height, width, scores),
            _ => return None,
        };
        let (width, height, scores) = (width as usize, height as usize, scores as usize);
        (width > 1 && height > 1 && scores <= MAX_CLASSES).then_some(())?;
        Some(SegmentDecoder {
            output: Tensor::new(0, output)?,
            width,
            height,
            scores,
            labels: Vec::new(),
            choice: Choice::default(),
            mask: Vec::new(),
        })
    }

    pub(super) fn choose(&mut self, labels: Vec<String>, choice: Choice) {
        (self.labels, self.choice) = (labels, choice);
    }

    /// How many classes there are, where the output says it.
    #[must_use]
    pub fn classes(&self) -> Option<usize> {
        (self.scores > 1).then_some(self.scores)
    }

    /// Width and height of the mask, in pixels.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// The class of each pixel of the model's own size, row by row.
    #[must_use]
    pub fn mask(&self) -> &[u16] {
        &self.mask
    }

    /// The class of a pixel of the picture that lies in the input like this; `None` where the model did not see it.
    #[must_use]
    pub fn class_at(&self, placement: &Placement, x: u32, y: u32) -> Option<u16> {
        let row = cell((f64::from(y) + 0.5 - placement.top) / placement.height, self.height)?;
        let column = cell((f64::from(x) + 0.5 - placement.left) / placement.width, self.width)?;
        self.mask.get(row * self.width + column).copied()
    }

    /// Takes the output of the last execution in.
    ///
    /// # Errors
    /// The output cannot be read, or has another length than the model says.
    pub fn read(&mut self, outputs: &mut (impl Outputs + ?Sized)) -> Result<(), TaskError> {
        self.output.read(outputs)?;
        self.classify();
        Ok(())
    }

    fn classify(&mut self) {
        self.mask.clear();
        let values = &self.output.values;
        if self.scores == 1 {
            self.mask.extend(values.iter().map(|class| narrow(*class)));
            return;
        }
        self.mask.extend(values.chunks_exact(self.scores).map(|scores| {
            let mut best = 0;
            for (class, score) in scores.iter().enumerate() {
                if *score > scores[best] {
                    best = class;
                }
            }
            u16::try_from(best).unwrap_or(u16::MAX)
        }));
    }

    /// The classes there are, as far as the options allow them, largest first. A least score is a least share.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let mut counts: Vec<usize> = Vec::new();
        for class in &self.mask {
            let class = usize::from(*class);
            if counts.len() <= class {
                counts.resize(class + 1, 0);
            }
            counts[class] += 1;
        }
        let share = |(index, count): (usize, usize)| {
            #[expect(clippy::cast_precision_loss, reason = "counts of pixels")]
            let share = count as f32 / self.mask.len().max(1) as f32;
            Share { index, label: self.labels.get(index).cloned().unwrap_or_default(), share }
        };
        let counted = counts.into_iter().enumerate().filter(|(_, count)| *count > 0).map(share);
        let mut shares: Vec<Share> =
            counted.filter(|share| self.choice.takes(&share.label, share.share)).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.index.cmp(&b.index)));
        shares.truncate(self.choice.most());
        shares
    }
}

/// Which of `count` cells a part from 0 to 1 falls into.
fn cell(part: f64, count: usize) -> Option<usize> {
    if !(0.0..1.0).contains(&part) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "within a picture"
    )]
    let cell = (part * count as f64) as usize;
    Some(cell.min(count - 1))
}

fn narrow(class: f32) -> u16 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let class = class as u16;
    class
}

#[cfg(test)]
mod tests {
    use burst_tflite::ElementType;

    use super::*;

    fn tensor(ty: OperandType, dims: &[u32]) -> TensorInfo {
        let file_type = ElementType::Float32;
        TensorInfo { name: "t".into(), ty, file_type, dims: dims.into(), scale: 0.0, zero_point: 0 }
    }

    /// Two by two pixels: classes 0, 2, 2, 1.
    fn decoder() -> SegmentDecoder {
        let output = tensor(OperandType::TensorFloat32, &[1, 2, 2, 3]);
        let mut decoder = SegmentDecoder::new(&output).unwrap();
        let labels = ["ground", "cat", "dog"].map(String::from);
        decoder.choose(labels.to_vec(), Choice::default());
        decoder.output.values = vec![1.0, 0.0, 0.0, 0.0, 0.0, 3.0, -2.0, -3.0, -1.0, 0.0, 0.5, 0.0];
        decoder.classify();
        decoder
    }

    #[test]
    fn each_pixel_has_its_best_class() {
        let decoder = decoder();
        assert_eq!(decoder.mask(), [0, 2, 2, 1]);
        let shares: Vec<(String, f32)> =
            decoder.shares().iter().map(|share| (share.name(), share.share)).collect();
        let want = [("dog", 0.5), ("ground", 0.25), ("cat", 0.25)];
        assert_eq!(shares, want.map(|(name, share)| (name.to_owned(), share)));
        let output = tensor(OperandType::TensorInt32, &[1, 1_000, 2]);
        let mut whole = SegmentDecoder::new(&output).unwrap();
        whole.output.values = vec![5.0; 2_000];
        whole.classify();
        assert_eq!(whole.shares()[0].name(), "class 5");
    }

    #[test]
    fn the_class_of_a_pixel_is_found_where_the_model_saw_it() {
        // The model saw the middle of 400 times 200 pixels.
        let placement = Placement {
            left: 100.0,
            top: 0.0,
            width: 200.0,
            height: 200.0,
            picture_width: 400,
            picture_height: 200,
        };
        let decoder = decoder();
        for (x, y, class) in [
            (50, 150, None),
            (350, 150, None),
            (150, 50, Some(0)),
            (250, 50, Some(2)),
            (120, 150, Some(2)),
            (299, 199, Some(1)),
        ] {
            assert_eq!(decoder.class_at(&placement, x, y), class, "{x}, {y}");
        }
    }

    #[test]
    fn other_outputs_are_no_segmentation() {
        for (ty, dims) in [
            (OperandType::TensorFloat32, &[1_u32, 1_000][..]),
            (OperandType::TensorFloat32, &[1, 1, 1, 1_000]),
            (OperandType::TensorFloat32, &[1, 8, 8]),
            (OperandType::TensorInt32, &[1, 8, 8, 3]),
        ] {
            assert!(SegmentDecoder::new(&tensor(ty, dims)).is_none(), "{ty} {dims:?}");
        }
    }
}
