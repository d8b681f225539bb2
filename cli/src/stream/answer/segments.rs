//! What a segmentation says: a class for each pixel.

use anyhow::Result;
use burst_hal::OperandType;
use burst_tflite::TensorInfo;
use serde::Serialize;

use super::classes::name;
use super::numbers::Numbers;
use crate::draw::Canvas;
use crate::stream::feed::Placed;
use crate::stream::path::Path;

/// Most classes that are distinguished.
const MAX_CLASSES: usize = 65_536;
/// Classes with a smaller part of the picture are not named in it.
const LEAST_NAMED: f32 = 0.005;

/// How much of the picture belongs to a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Share {
    pub(crate) index: usize,
    pub(crate) label: String,
    /// Part of all pixels, 0 to 1.
    pub(crate) share: f32,
}

impl Share {
    pub(crate) fn name(&self) -> String {
        name(self.index, &self.label)
    }
}

/// Reads an output with a score per class and pixel, `[1, height, width, classes]`, or with the
/// class of each pixel, `[1, height, width]`.
#[derive(Debug)]
pub(crate) struct Segmenter {
    numbers: Numbers,
    width: usize,
    height: usize,
    /// Scores of a pixel; 1 where the output has the class itself.
    scores: usize,
    labels: Vec<String>,
    values: Vec<f32>,
    /// The class of each pixel.
    classes: Vec<u16>,
}

impl Segmenter {
    /// `None` for an output that is no segmentation.
    pub(crate) fn new(output: &TensorInfo, labels: &[String]) -> Option<Self> {
        let is_class = output.ty == OperandType::TensorInt32;
        let (height, width, scores) = match *output.dims.as_slice() {
            [1, height, width] | [1, height, width, 1] if is_class => (height, width, 1),
            [1, height, width, scores @ (2..)] if !is_class => (height, width, scores),
            _ => return None,
        };
        let (width, height, scores) = (width as usize, height as usize, scores as usize);
        (width > 1 && height > 1 && scores <= MAX_CLASSES).then_some(())?;
        Some(Segmenter {
            numbers: Numbers::of(output)?,
            width,
            height,
            scores,
            labels: labels.to_vec(),
            values: Vec::new(),
            classes: Vec::new(),
        })
    }

    /// How many classes there are, where the output says it.
    pub(crate) fn classes(&self) -> Option<usize> {
        (self.scores > 1).then_some(self.scores)
    }

    /// Takes the output of the last execution in.
    pub(crate) fn read(&mut self, path: &mut dyn Path) -> Result<()> {
        self.numbers.read(path.output(0)?, &mut self.values);
        self.classify();
        Ok(())
    }

    fn classify(&mut self) {
        self.classes.clear();
        if self.scores == 1 {
            self.classes.extend(self.values.iter().map(|class| narrow(*class)));
            return;
        }
        self.classes.extend(self.values.chunks_exact(self.scores).map(|scores| {
            let mut best = 0;
            for (class, score) in scores.iter().enumerate() {
                if *score > scores[best] {
                    best = class;
                }
            }
            u16::try_from(best).unwrap_or(u16::MAX)
        }));
    }

    /// The classes there are, largest first.
    pub(crate) fn shares(&self) -> Vec<Share> {
        let mut counts: Vec<usize> = Vec::new();
        for class in &self.classes {
            let class = usize::from(*class);
            if counts.len() <= class {
                counts.resize(class + 1, 0);
            }
            counts[class] += 1;
        }
        let share = |(index, count): (usize, usize)| {
            #[expect(clippy::cast_precision_loss, reason = "counts of pixels")]
            let share = count as f32 / self.classes.len().max(1) as f32;
            Share { index, label: self.labels.get(index).cloned().unwrap_or_default(), share }
        };
        let mut shares: Vec<Share> =
            counts.into_iter().enumerate().filter(|(_, count)| *count > 0).map(share).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.index.cmp(&b.index)));
        shares
    }

    /// Tints the frame by class, all but class 0, which is the background.
    pub(crate) fn draw(&self, placed: &Placed<'_>, canvas: &mut Canvas) {
        let Placed { frame, placement } = placed;
        for y in 0..frame.height {
            let row = cell((f64::from(y) + 0.5 - placement.top) / placement.height, self.height);
            for x in 0..frame.width {
                let across = (f64::from(x) + 0.5 - placement.left) / placement.width;
                let index = row.zip(cell(across, self.width));
                let class = index
                    .and_then(|(row, column)| self.classes.get(row * self.width + column).copied());
                if let Some(class @ 1..) = class {
                    canvas.tint(x, y, class.into());
                }
            }
        }
        let named: Vec<(usize, String)> = self
            .shares()
            .iter()
            .filter(|share| share.index > 0 && share.share >= LEAST_NAMED)
            .map(|share| (share.index, format!("{} {:.1} %", share.name(), share.share * 100.0)))
            .collect();
        canvas.legend(&named);
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
    use crate::fit::Placement;
    use crate::source::Frame;

    fn tensor(ty: OperandType, dims: &[u32]) -> TensorInfo {
        let file_type = ElementType::Float32;
        TensorInfo { name: "t".into(), ty, file_type, dims: dims.into(), scale: 0.0, zero_point: 0 }
    }

    /// Two by two pixels: classes 0, 2, 2, 1.
    fn segmenter() -> Segmenter {
        let output = tensor(OperandType::TensorFloat32, &[1, 2, 2, 3]);
        let labels = ["ground", "cat", "dog"].map(String::from);
        let mut segmenter = Segmenter::new(&output, &labels).unwrap();
        segmenter.values = vec![1.0, 0.0, 0.0, 0.0, 0.0, 3.0, -2.0, -3.0, -1.0, 0.0, 0.5, 0.0];
        segmenter.classify();
        segmenter
    }

    #[test]
    fn each_pixel_has_its_best_class() {
        let segmenter = segmenter();
        assert_eq!(segmenter.classes, [0, 2, 2, 1]);
        let shares: Vec<(String, f32)> =
            segmenter.shares().iter().map(|share| (share.name(), share.share)).collect();
        let want = [("dog", 0.5), ("ground", 0.25), ("cat", 0.25)];
        assert_eq!(shares, want.map(|(name, share)| (name.to_owned(), share)));
        let output = tensor(OperandType::TensorInt32, &[1, 1_000, 2]);
        let mut whole = Segmenter::new(&output, &[]).unwrap();
        whole.values = vec![5.0; 2_000];
        whole.classify();
        assert_eq!(whole.shares()[0].name(), "class 5");
    }

    #[test]
    fn the_tint_lies_where_the_class_is_and_nowhere_else() {
        let rgb = vec![100; 400 * 200 * 3];
        let frame = Frame { width: 400, height: 200, rgb: &rgb, name: "", truth: None };
        // The model saw the middle.
        let placement = Placement { left: 100.0, top: 0.0, width: 200.0, height: 200.0 };
        let mut canvas = Canvas::new(400, 200, rgb.clone());
        segmenter().draw(&Placed { frame, placement }, &mut canvas);
        let plain = [100; 3];
        for (x, y, tinted) in [
            (50, 150, false),
            (350, 150, false),
            (250, 50, true),
            (120, 150, true),
            (299, 199, true),
        ] {
            assert_eq!(canvas.pixel(x, y) != plain, tinted, "{x}, {y}");
        }
        assert_ne!(canvas.pixel(250, 50), canvas.pixel(299, 199), "another class");
    }

    #[test]
    fn other_outputs_are_no_segmentation() {
        for (ty, dims) in [
            (OperandType::TensorFloat32, &[1_u32, 1_000][..]),
            (OperandType::TensorFloat32, &[1, 1, 1, 1_000]),
            (OperandType::TensorFloat32, &[1, 8, 8]),
            (OperandType::TensorInt32, &[1, 8, 8, 3]),
        ] {
            assert!(Segmenter::new(&tensor(ty, dims), &[]).is_none(), "{ty} {dims:?}");
        }
    }
}
