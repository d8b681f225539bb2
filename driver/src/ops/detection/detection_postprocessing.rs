//! DETECTION_POSTPROCESSING: boxes of a single-shot detector decoded, doubles suppressed.
//!
//! Inputs: scores `[batches, anchors, classes]` (class 0 is the background), encoded boxes
//! `[batches, anchors, 4 or more]` (dy, dx, dh, dw), anchors `[anchors, 4]` (centre y, x, height,
//! width), the scales of the four codes, whether classes are suppressed one by one (regular) or
//! all at once (fast), detections at most, classes per detection (fast), detections per class
//! (regular), score threshold, overlap threshold, whether class numbers count the background.
//! Outputs: scores `[batches, n]`, boxes `[batches, n, 4]` (y1, x1, y2, x2), classes
//! `[batches, n]`, numbers of detections `[batches]`; what is not filled is 0.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::DETECTION_POSTPROCESSING`.

use burst_hal::HalVersion::V1_2;
use burst_hal::{Dimensions, OperationType};

use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32, TI32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, Stop, WithAttributes,
};
use crate::ops::attributes::{positive_float, positive_i32};
use crate::ops::detection::boxes::{Corners, best_first, expect_few, index, position, suppress};
use crate::ops::detection::reals::{Reals, RealsMut, expect};
use crate::tensor::{Args, TensorMut};
use crate::{OpError, SignatureError};

/// The definition of DETECTION_POSTPROCESSING.
pub static DEF: OpDef = OpDef {
    code: OperationType::DetectionPostprocessing,
    validate,
    body: &WithAttributes { parse: Rules::parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(
        V1_2,
        &[TF32, TF32, TF32, F32, F32, F32, F32, BOOL, I32, I32, I32, F32, F32, BOOL],
        &[TF32, TF32, TI32, TI32],
    ),
    Form::new(
        V1_2,
        &[TF16, TF16, TF16, F16, F16, F16, F16, BOOL, I32, I32, I32, F16, F16, BOOL],
        &[TF16, TF16, TI32, TI32],
    ),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>, rules: Parsed<'_, Rules>) -> Result<Inferred, OpError> {
    let sizes = Sizes::of(args.dims(0)?, args.dims(1)?, args.dims(2)?)?;
    let rules = *rules?;
    let batches = index(sizes.batches)?.unsigned_abs();
    let row = rules.row;
    Ok(Inferred::many([
        Dimensions::from_slice(&[batches, row]),
        Dimensions::from_slice(&[batches, row, 4]),
        Dimensions::from_slice(&[batches, row]),
        Dimensions::from_slice(&[batches]),
    ]))
}

/// Sizes of the inputs.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    batches: usize,
    anchors: usize,
    classes: usize,
    /// Numbers per encoded box; only the first four are read.
    codes: usize,
}

impl Sizes {
    fn of(scores: &[u32], boxes: &[u32], anchors: &[u32]) -> Result<Self, OpError> {
        let [batches, count, classes] = *scores else {
            return Err(OpError::shape("scores have 3 dimensions", scores, &[0; 3]));
        };
        expect(classes > 1, "scores need a class besides the background", scores)?;
        expect_few(scores)?;
        let codes = match *boxes {
            [b, c, codes] if [b, c] == [batches, count] && codes >= 4 => codes,
            _ => return Err(OpError::shape("encoded boxes against scores", boxes, scores)),
        };
        if *anchors != [count, 4] {
            return Err(OpError::shape("anchors against scores", anchors, scores));
        }
        Ok(Sizes {
            batches: batches as usize,
            anchors: count as usize,
            classes: classes as usize,
            codes: codes as usize,
        })
    }
}

/// How many detections there may be, and of which kind.
#[derive(Debug, Clone, Copy)]
enum Mode {
    /// Every class for itself.
    Regular { per_class: usize },
    /// Every anchor by its best class.
    Fast { classes: usize },
}

/// What the scalar inputs say.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// Of dy, dx, dh, dw.
    scales: [f32; 4],
    mode: Mode,
    /// Most detections: of all classes together, or anchors.
    detections: usize,
    /// Entries per image in the outputs.
    row: u32,
    score_threshold: f32,
    overlap_threshold: f32,
    counts_background: bool,
}

impl Rules {
    fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        let scale = |index| positive_float(operands, index, "scale of a box code");
        let threshold = |index, what| {
            let value = operands.float(index)?;
            if value >= 0.0 { Ok(value) } else { Err(OpError::Range { what }) }
        };
        let detections = positive_i32(operands, 8, "number of detections")?;
        let (mode, row) = if operands.bool(7)? {
            let per_class = positive_i32(operands, 10, "detections per class")?;
            (Mode::Regular { per_class: per_class as usize }, Some(detections))
        } else {
            let classes = positive_i32(operands, 9, "classes per detection")?;
            (Mode::Fast { classes: classes as usize }, detections.checked_mul(classes))
        };
        Ok(Rules {
            scales: [scale(3)?, scale(4)?, scale(5)?, scale(6)?],
            mode,
            detections: detections as usize,
            row: row.ok_or(OpError::Range { what: "number of detections" })?,
            score_threshold: threshold(11, "score threshold")?,
            overlap_threshold: threshold(12, "overlap threshold")?,
            counts_background: operands.bool(13)?,
        })
    }
}

fn execute(run: &mut Run<'_, '_>, rules: &Rules) -> Result<(), OpError> {
    let (scores, boxes, anchors) = (run.input(0)?, run.input(1)?, run.input(2)?);
    let detector = Detector {
        sizes: Sizes::of(scores.dims, boxes.dims, anchors.dims)?,
        rules: *rules,
        scores: Reals::of(&scores)?,
        encoded: Reals::of(&boxes)?,
        anchors: Reals::of(&anchors)?,
        stop: run.stop,
    };
    let Sizes { batches, anchors, classes, .. } = detector.sizes;
    let entries = anchors * (classes - 1).max(1);
    let (corners, indices) =
        run.scratch.f32_and_i32(anchors * 5, entries + anchors.max(classes))?;
    let mut found = Found::of(run.outputs)?;
    for image in 0..batches {
        found.image(image, detector.rules.row);
        run.stop.check()?;
        detector.decode(image, corners);
        match detector.rules.mode {
            Mode::Regular { per_class } => {
                detector.regular(image, per_class, corners, indices, &mut found)?;
            }
            Mode::Fast { classes } => {
                detector.fast(image, classes, corners, indices, &mut found)?;
            }
        }
    }
    Ok(())
}

struct Detector<'a> {
    sizes: Sizes,
    rules: Rules,
    scores: Reals<'a>,
    encoded: Reals<'a>,
    anchors: Reals<'a>,
    stop: Stop<'a>,
}

impl Detector<'_> {
    /// Corners (y1, x1, y2, x2) of all anchors' boxes of one image.
    fn decode(&self, image: usize, corners: &mut [f32]) {
        let Sizes { anchors, codes, .. } = self.sizes;
        let all = corners.chunks_exact_mut(4).take(anchors);
        for (anchor, corners) in all.enumerate() {
            let code =
                |i| self.encoded.get((image * anchors + anchor) * codes + i) / self.rules.scales[i];
            let [y, x, height, width] = self.anchors.quad(anchor);
            let (centre_y, centre_x) = (code(0) * height + y, code(1) * width + x);
            let half = [code(2).exp() * height / 2.0, code(3).exp() * width / 2.0];
            corners.copy_from_slice(&[
                centre_y - half[0],
                centre_x - half[1],
                centre_y + half[0],
                centre_x + half[1],
            ]);
        }
    }

    fn score(&self, image: usize, anchor: usize, class: usize) -> f32 {
        self.scores.get((image * self.sizes.anchors + anchor) * self.sizes.classes + class)
    }

    /// The number a class has in the output.
    fn class_number(&self, class: usize) -> Result<i32, OpError> {
        index(if self.rules.counts_background { class } else { class - 1 })
    }

    /// Suppresses class by class, then takes the best of all.
    fn regular(
        &self,
        image: usize,
        per_class: usize,
        corners: &[f32],
        indices: &mut [i32],
        found: &mut Found<'_>,
    ) -> Result<(), OpError> {
        let Sizes { anchors, classes, .. } = self.sizes;
        // An index stands for a class and an anchor: class * anchors + anchor.
        let split = |at: i32| (position(at) % anchors, position(at) / anchors);
        let score = |at: i32| {
            let (anchor, class) = split(at);
            self.score(image, anchor, class)
        };
        let mut count = 0;
        for class in 1..classes {
            let mut end = count;
            for anchor in 0..anchors {
                if self.score(image, anchor, class) > self.rules.score_threshold {
                    indices[end] = index(class * anchors + anchor)?;
                    end += 1;
                }
            }
            let candidates = &mut indices[count..end];
            best_first(candidates, score);
            let corners = |at| corners_of(corners, split(at).0);
            let threshold = self.rules.overlap_threshold;
            count += suppress(candidates, corners, threshold, per_class, &self.stop)?;
        }
        let kept = &mut indices[..count];
        best_first(kept, score);
        for at in kept.iter().take(self.rules.detections) {
            let (anchor, class) = split(*at);
            found.add(score(*at), corners_of(corners, anchor), self.class_number(class)?);
        }
        Ok(())
    }

    /// Suppresses anchors by their best class, then takes the best classes of each.
    fn fast(
        &self,
        image: usize,
        most_classes: usize,
        numbers: &mut [f32],
        indices: &mut [i32],
        found: &mut Found<'_>,
    ) -> Result<(), OpError> {
        let Sizes { anchors, classes, .. } = self.sizes;
        let (corners, best) = numbers.split_at_mut(anchors * 4);
        let (kept, of_anchor) = indices.split_at_mut(anchors);
        let mut count = 0;
        for (anchor, best) in best.iter_mut().enumerate().take(anchors) {
            let first = (image * anchors + anchor) * classes;
            *best = self.scores.largest(first + 1..first + classes);
            if *best > self.rules.score_threshold {
                kept[count] = index(anchor)?;
                count += 1;
            }
        }
        let candidates = &mut kept[..count];
        best_first(candidates, |anchor| best[position(anchor)]);
        let corners = |anchor| corners_of(corners, position(anchor));
        let Rules { overlap_threshold, detections, .. } = self.rules;
        let count = suppress(candidates, corners, overlap_threshold, detections, &self.stop)?;
        for anchor in &kept[..count] {
            let ranked = &mut of_anchor[..classes - 1];
            for (class, slot) in (1..classes).zip(ranked.iter_mut()) {
                *slot = index(class)?;
            }
            let score = |class| self.score(image, position(*anchor), position(class));
            best_first(ranked, score);
            for class in ranked.iter().take(most_classes) {
                found.add(score(*class), corners(*anchor), self.class_number(position(*class))?);
            }
        }
        Ok(())
    }
}

fn corners_of(corners: &[f32], anchor: usize) -> Corners {
    std::array::from_fn(|i| corners[anchor * 4 + i])
}

/// The outputs, filled detection by detection.
struct Found<'a> {
    scores: RealsMut<'a>,
    boxes: RealsMut<'a>,
    classes: &'a mut [i32],
    counts: &'a mut [i32],
    image: usize,
    /// Where the next detection goes.
    next: usize,
}

impl<'a> Found<'a> {
    /// Empties the outputs.
    fn of(outputs: &'a mut [TensorMut<'_>]) -> Result<Self, OpError> {
        let got = outputs.len();
        outputs.iter_mut().for_each(|output| output.bytes_mut().fill(0));
        let [scores, boxes, classes, counts] = outputs else {
            return Err(OpError::Arity { want: 4, got });
        };
        Ok(Found {
            scores: RealsMut::of(scores)?,
            boxes: RealsMut::of(boxes)?,
            classes: classes.i32_mut()?,
            counts: counts.i32_mut()?,
            image: 0,
            next: 0,
        })
    }

    /// Begins the entries of an image.
    fn image(&mut self, image: usize, row: u32) {
        self.image = image;
        self.next = image * row as usize;
    }

    fn add(&mut self, score: f32, corners: Corners, class: i32) {
        self.scores.set(self.next, score);
        self.boxes.set_quad(self.next, corners);
        self.classes[self.next] = class;
        self.counts[self.image] += 1;
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run};

    /// Three anchors of 2 x 2 at (1, 1), (1, 1) and (9, 9); two classes besides the background.
    fn inputs(is_regular: bool) -> Vec<Tensor> {
        vec![
            Tensor::f32(&[1, 3, 3], &[0.0, 0.9, 0.8, 0.0, 0.7, 0.85, 0.0, 0.1, 0.6]),
            Tensor::f32(&[1, 3, 4], &[0.0; 12]),
            Tensor::f32(&[3, 4], &[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 9.0, 9.0, 2.0, 2.0]),
            Tensor::scalar_f32(10.0),
            Tensor::scalar_f32(10.0),
            Tensor::scalar_f32(5.0),
            Tensor::scalar_f32(5.0),
            Tensor::scalar_bool(is_regular),
            Tensor::scalar_i32(3),
            Tensor::scalar_i32(2),
            Tensor::scalar_i32(1),
            Tensor::scalar_f32(0.5),
            Tensor::scalar_f32(0.5),
            Tensor::scalar_bool(false),
        ]
    }

    fn outputs() -> Vec<Tensor> {
        let float = || Tensor::output(OperandType::TensorFloat32);
        let int = || Tensor::output(OperandType::TensorInt32);
        vec![float(), float(), int(), int()]
    }

    const NEAR: [f32; 4] = [0.0, 0.0, 2.0, 2.0];
    const FAR: [f32; 4] = [8.0, 8.0, 10.0, 10.0];

    #[test]
    fn regular_suppression_takes_the_best_of_each_class() {
        let out = run(&DEF, &inputs(true), &outputs()).unwrap();
        // One per class: 0.9 of class 1, 0.85 of class 2; the third entry stays empty.
        assert_eq!(out[0].values::<f32>(), [0.9, 0.85, 0.0]);
        assert_eq!(out[1].values::<f32>(), [NEAR, NEAR, [0.0; 4]].concat());
        assert_eq!(out[2].values::<i32>(), [0, 1, 0]);
        assert_eq!(out[3].values::<i32>(), [2]);
        let mut inputs = inputs(true);
        inputs[10] = Tensor::scalar_i32(9);
        inputs[13] = Tensor::scalar_bool(true);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.9, 0.85, 0.6]);
        assert_eq!(out[1].values::<f32>(), [NEAR, NEAR, FAR].concat());
        assert_eq!(out[2].values::<i32>(), [1, 2, 2]);
    }

    #[test]
    fn fast_suppression_judges_anchors_by_their_best_class() {
        let out = run(&DEF, &inputs(false), &outputs()).unwrap();
        // The second anchor is a double of the first. Two classes per anchor, six entries.
        assert_eq!(&*out[1].dims, [1, 6, 4]);
        assert_eq!(out[0].values::<f32>(), [0.9, 0.8, 0.6, 0.1, 0.0, 0.0]);
        assert_eq!(out[1].values::<f32>()[..16], [NEAR, NEAR, FAR, FAR].concat());
        assert_eq!(out[2].values::<i32>(), [0, 1, 1, 0, 0, 0]);
        assert_eq!(out[3].values::<i32>(), [4]);
    }

    #[test]
    fn codes_are_divided_by_their_scales() {
        let mut inputs = inputs(true);
        // dy 0.5 heights, dx -0.5 widths, twice as high, as wide as before; a fifth number.
        let ln2 = std::f32::consts::LN_2;
        let codes = [5.0, -5.0, 5.0 * ln2, 0.0, 77.0].repeat(3);
        inputs[1] = Tensor::f32(&[1, 3, 5], &codes);
        inputs[8] = Tensor::scalar_i32(1);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        let corners = out[1].values::<f32>();
        for (got, want) in corners.iter().zip([0.0, -1.0, 4.0, 1.0]) {
            assert!((got - want).abs() < 1e-6, "{corners:?}");
        }
    }

    #[test]
    fn senseless_parameters_are_refused() {
        for (index, value) in [
            (3, Tensor::scalar_f32(0.0)),
            (6, Tensor::scalar_f32(f32::NAN)),
            (8, Tensor::scalar_i32(0)),
            (9, Tensor::scalar_i32(0)),
            (11, Tensor::scalar_f32(-0.1)),
            (12, Tensor::scalar_f32(f32::NAN)),
            (0, Tensor::f32(&[1, 3, 1], &[0.0; 3])),
            (1, Tensor::f32(&[1, 3, 3], &[0.0; 9])),
            (2, Tensor::f32(&[2, 4], &[0.0; 8])),
        ] {
            let mut inputs = inputs(false);
            inputs[index] = value;
            assert!(run(&DEF, &inputs, &outputs()).is_err(), "input {index}");
        }
        let mut inputs = inputs(true);
        inputs[10] = Tensor::scalar_i32(0);
        assert!(run(&DEF, &inputs, &outputs()).is_err());
    }
}
