//! BOX_WITH_NMS_LIMIT: the boxes that are left when doubles are suppressed, class by class.
//!
//! Inputs: scores `[rois, classes]` (class 0 is the background), boxes `[rois, classes * 4]`, the
//! batch of each row, score threshold, detections at most (negative: no limit), kernel (0 hard,
//! 1 linear, 2 gaussian), overlap threshold, sigma, score threshold while suppressing. Outputs:
//! scores, boxes, classes and batches of what is left; their number depends on the data.
//!
//! Per image and class the best box left is selected and the scores of all others left are multiplied
//! by what the kernel makes of their overlap with it; those that fall below the second threshold
//! are dropped. With the hard kernel a suppressed box has score 0 and is still kept when that
//! threshold is not above 0. The limit holds per class and again per image. Results are in order
//! of image, class, and falling score.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::BOX_WITH_NMS_LIMIT`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use crate::op::types::{F16, F32, I32, TF16, TF32, TI32, TQ8, TQ8S, TQ16A};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, Stop, WithAttributes,
};
use crate::ops::detection::boxes::{
    best_first, expect_few, expect_ordered, index, limit, overlap, position,
};
use crate::ops::detection::reals::{Reals, RealsMut, expect, expect_eighths};
use crate::ops::quantization::rules::expect_same;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of BOX_WITH_NMS_LIMIT.
pub static DEF: OpDef = OpDef {
    code: OperationType::BoxWithNmsLimit,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, TF32, TI32, F32, I32, I32, F32, F32, F32], &[TF32, TF32, TI32, TI32]),
    Form::new(V1_2, &[TF16, TF16, TI32, F16, I32, I32, F16, F16, F16], &[TF16, TF16, TI32, TI32]),
    Form::new(V1_2, &[TQ8, TQ16A, TI32, F32, I32, I32, F32, F32, F32], &[TQ8, TQ16A, TI32, TI32]),
    Form::new(V1_3, &[TQ8S, TQ16A, TI32, F32, I32, I32, F32, F32, F32], &[TQ8S, TQ16A, TI32, TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    score_threshold: f32,
    /// Most boxes of one image.
    limit: usize,
    kernel: Kernel,
    /// Scores that fall below this are dropped.
    floor: f32,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    Ok(Attributes {
        kernel: Kernel::parse(operands)?,
        score_threshold: operands.float(3)?,
        limit: limit(operands.i32(4)?),
        floor: operands.float(8)?,
    })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    if let [(scores, _), (boxes, _), ..] = args.outputs {
        expect_same(args.input(0)?.info, scores)?;
        expect_eighths(boxes)?;
    }
    expect_eighths(args.input(1)?.info)?;
    sizes(args.dims(0)?, args.dims(1)?, args.dims(2)?)?;
    attributes?;
    Ok(Inferred::DataDependent)
}

/// Numbers of boxes and of classes.
fn sizes(scores: &[u32], boxes: &[u32], split: &[u32]) -> Result<(usize, usize), OpError> {
    let [rois, classes] = *scores else {
        return Err(OpError::shape("scores have 2 dimensions", scores, &[0, 0]));
    };
    expect(classes > 1, "scores need a class besides the background", scores)?;
    expect_few(scores)?;
    let four = classes.checked_mul(4).ok_or(OpError::Range { what: "number of classes" })?;
    if *boxes != [rois, four] {
        return Err(OpError::shape("boxes against scores", boxes, scores));
    }
    if *split != [rois] {
        return Err(OpError::shape("batch indexes against scores", split, scores));
    }
    Ok((rois as usize, classes as usize))
}

/// What an overlap does to a score.
#[derive(Debug, Clone, Copy)]
enum Kernel {
    Hard { threshold: f32 },
    Linear { threshold: f32 },
    Gaussian { sigma: f32 },
}

impl Kernel {
    fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        match operands.i32(5)? {
            0 => Ok(Kernel::Hard { threshold: operands.float(6)? }),
            1 => Ok(Kernel::Linear { threshold: operands.float(6)? }),
            2 => Ok(Kernel::Gaussian { sigma: operands.float(7)? }),
            other => Err(OpError::value("suppression kernel", other)),
        }
    }

    fn factor(self, overlap: f32) -> f32 {
        match self {
            Kernel::Hard { threshold } | Kernel::Linear { threshold } if overlap < threshold => 1.0,
            Kernel::Hard { .. } => 0.0,
            Kernel::Linear { .. } => 1.0 - overlap,
            Kernel::Gaussian { sigma } => (-overlap * overlap / sigma).exp(),
        }
    }
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    let (scores, boxes, split) = (run.input(0)?, run.input(1)?, run.input(2)?);
    let (rois, classes) = sizes(scores.dims, boxes.dims, split.dims)?;
    let (stored, corners, split) = (Reals::of(&scores)?, Reals::of(&boxes)?, split.i32()?);
    let suppression = Suppression { classes, boxes: corners, attributes, stop: run.stop };
    let count = rois * classes;
    for box_index in 0..count {
        expect_ordered(corners.quad(box_index))?;
    }
    let (scores, indices) = run.scratch.f32_and_i32(count, count + rois)?;
    for (at, score) in scores.iter_mut().enumerate() {
        *score = stored.get(at);
    }
    let (selected, left) = indices.split_at_mut(count);
    let mut kept = 0;
    let mut first = 0;
    for image in split.chunk_by(|a, b| a == b) {
        let rows = first..first + image.len();
        kept += suppression.image(rows, scores, &mut selected[kept..], left)?;
        first += image.len();
    }
    let selected = &selected[..kept];
    write(run.outputs, selected, scores, &suppression, split)
}

struct Suppression<'a> {
    classes: usize,
    boxes: Reals<'a>,
    attributes: &'a Attributes,
    stop: Stop<'a>,
}

impl Suppression<'_> {
    fn class(&self, score: i32) -> usize {
        position(score) % self.classes
    }

    /// Puts what is left of one image to the front of `selected` and returns how many they are.
    /// `left` is working memory.
    fn image(
        &self,
        rows: std::ops::Range<usize>,
        scores: &mut [f32],
        selected: &mut [i32],
        left: &mut [i32],
    ) -> Result<usize, OpError> {
        let mut count = 0;
        for class in 1..self.classes {
            let mut candidates = 0;
            for row in rows.clone() {
                let score = row * self.classes + class;
                if scores[score] > self.attributes.score_threshold {
                    left[candidates] = index(score)?;
                    candidates += 1;
                }
            }
            count += self.class_of(scores, &mut left[..candidates], &mut selected[count..])?;
        }
        if count > self.attributes.limit {
            best_first(&mut selected[..count], |score| scores[position(score)]);
            count = self.attributes.limit;
            let by_class = |score: &i32| self.class(*score);
            selected[..count].sort_unstable_by(|a, b| {
                let falling = scores[position(*b)].total_cmp(&scores[position(*a)]);
                by_class(a).cmp(&by_class(b)).then(falling).then(a.cmp(b))
            });
        }
        Ok(count)
    }

    /// Takes boxes of one class, the best of those `left` each time.
    fn class_of(
        &self,
        scores: &mut [f32],
        mut left: &mut [i32],
        selected: &mut [i32],
    ) -> Result<usize, OpError> {
        let mut count = 0;
        while count < self.attributes.limit && !left.is_empty() {
            self.stop.check()?;
            let best = first_best(left, scores);
            // The others move up, so that of equal ones the first stays first.
            left[..=best].rotate_right(1);
            let (chosen, others) = left.split_at_mut(1);
            selected[count] = chosen[0];
            count += 1;
            let corners = self.boxes.quad(position(chosen[0]));
            let mut kept = 0;
            for other in 0..others.len() {
                let candidate = others[other];
                let score = &mut scores[position(candidate)];
                *score *= self
                    .attributes
                    .kernel
                    .factor(overlap(corners, self.boxes.quad(position(candidate))));
                if *score >= self.attributes.floor || score.is_nan() {
                    others[kept] = candidate;
                    kept += 1;
                }
            }
            left = &mut others[..kept];
        }
        Ok(count)
    }
}

/// Position of the highest score, the first one of equals.
fn first_best(candidates: &[i32], scores: &[f32]) -> usize {
    let mut best = 0;
    for (at, candidate) in candidates.iter().enumerate().skip(1) {
        if scores[position(*candidate)] > scores[position(candidates[best])] {
            best = at;
        }
    }
    best
}

fn write(
    outputs: &mut [crate::tensor::TensorMut<'_>],
    selected: &[i32],
    scores: &[f32],
    from: &Suppression<'_>,
    split: &[i32],
) -> Result<(), OpError> {
    let got = outputs.len();
    let [out_scores, out_boxes, out_classes, out_batches] = outputs else {
        return Err(OpError::Arity { want: 4, got });
    };
    let count = index(selected.len())?.unsigned_abs();
    out_scores.resize(&[count])?;
    out_boxes.resize(&[count, 4])?;
    out_classes.resize(&[count])?;
    out_batches.resize(&[count])?;
    let (mut out_scores, mut out_boxes) = (RealsMut::of(out_scores)?, RealsMut::of(out_boxes)?);
    let (out_classes, out_batches) = (out_classes.i32_mut()?, out_batches.i32_mut()?);
    for (at, score) in selected.iter().enumerate() {
        let flat = position(*score);
        out_scores.set(at, scores[flat]);
        out_boxes.set_quad(at, from.boxes.quad(flat));
        out_classes[at] = index(from.class(*score))?;
        out_batches[at] = split[flat / from.classes];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run};

    /// One class besides the background; the box of row `i` is `boxes[i]`.
    fn inputs(scores: &[f32], boxes: &[[f32; 4]], split: &[i32]) -> Vec<Tensor> {
        let rows = u32::try_from(scores.len()).unwrap();
        let scores: Vec<f32> = scores.iter().flat_map(|s| [0.0, *s]).collect();
        let boxes: Vec<f32> = boxes.iter().flat_map(|b| [*b, *b]).flatten().collect();
        vec![
            Tensor::f32(&[rows, 2], &scores),
            Tensor::f32(&[rows, 8], &boxes),
            Tensor::i32(&[rows], split),
            Tensor::scalar_f32(0.3),
            Tensor::scalar_i32(-1),
            Tensor::scalar_i32(0),
            Tensor::scalar_f32(0.4),
            Tensor::scalar_f32(1.0),
            Tensor::scalar_f32(0.3),
        ]
    }

    fn outputs() -> Vec<Tensor> {
        let float = || Tensor::output(OperandType::TensorFloat32);
        let int = || Tensor::output(OperandType::TensorInt32);
        vec![float(), float(), int(), int()]
    }

    const FAR: [f32; 4] = [100.0, 100.0, 110.0, 110.0];
    const A: [f32; 4] = [0.0, 0.0, 10.0, 10.0];
    /// Half of it: overlap with A 0.5.
    const HALF: [f32; 4] = [0.0, 0.0, 10.0, 5.0];

    #[test]
    fn the_hard_kernel_drops_doubles_image_by_image() {
        let inputs = inputs(&[0.5, 0.9, 0.8, 0.3, 0.7], &[HALF, A, FAR, FAR, A], &[4, 4, 4, 4, 9]);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        // The fourth is not above the threshold; the last is another image.
        assert_eq!(out[0].values::<f32>(), [0.9, 0.8, 0.7]);
        assert_eq!(out[1].values::<f32>(), [A, FAR, A].concat());
        assert_eq!(out[2].values::<i32>(), [1, 1, 1]);
        assert_eq!(out[3].values::<i32>(), [4, 4, 9]);
        assert_eq!(&*out[1].dims, [3, 4]);
    }

    #[test]
    fn soft_kernels_lower_scores() {
        let mut inputs = inputs(&[0.9, 0.8], &[A, HALF], &[0, 0]);
        inputs[5] = Tensor::scalar_i32(1);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.9, 0.4]);
        inputs[5] = Tensor::scalar_i32(2);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        // 0.8 * exp(-0.25)
        assert!((out[0].values::<f32>()[1] - 0.623_040_6).abs() < 1e-6);
        inputs[5] = Tensor::scalar_i32(3);
        assert!(matches!(run(&DEF, &inputs, &outputs()), Err(OpError::Value { value: 3, .. })));
    }

    #[test]
    fn a_suppressed_box_of_score_zero_stays_without_a_floor() {
        let mut inputs = inputs(&[0.9, 0.8], &[A, A], &[0, 0]);
        inputs[8] = Tensor::scalar_f32(0.0);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.9, 0.0]);
    }

    #[test]
    fn the_limit_keeps_the_best_of_all_classes_in_order_of_class() {
        let boxes: Vec<f32> = [A, FAR].iter().flat_map(|b| [*b, *b, *b]).flatten().collect();
        let mut inputs = inputs(&[0.0; 2], &[A, FAR], &[0, 0]);
        inputs[0] = Tensor::f32(&[2, 3], &[0.0, 0.5, 0.7, 0.0, 0.6, 0.9]);
        inputs[1] = Tensor::f32(&[2, 12], &boxes);
        inputs[4] = Tensor::scalar_i32(3);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.6, 0.9, 0.7]);
        assert_eq!(out[2].values::<i32>(), [1, 2, 2]);
        inputs[4] = Tensor::scalar_i32(1);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.9]);
    }

    #[test]
    fn nothing_left_gives_empty_outputs() {
        let out = run(&DEF, &inputs(&[0.1], &[A], &[0]), &outputs()).unwrap();
        let dims: Vec<&[u32]> = out.iter().map(|o| &*o.dims).collect();
        assert_eq!(dims, [&[0][..], &[0, 4], &[0], &[0]]);
        let out = run(&DEF, &inputs(&[], &[], &[]), &outputs()).unwrap();
        assert_eq!(&*out[1].dims, [0, 4]);
    }

    #[test]
    fn quantized_scores_and_boxes_come_back_as_they_were() {
        let eighths = |ty: Tensor| ty.quantized(0.125, 0);
        let mut inputs = inputs(&[0.9], &[A], &[7]);
        inputs[0] = Tensor::i8(&[1, 2], &[-128, 100], 0.01, -28);
        let corners = [0u16, 0, 80, 80, 8, 16, 24, 33];
        inputs[1] = eighths(Tensor::new(OperandType::TensorQuant16Asymm, &[1, 8], &corners));
        let mut outputs = outputs();
        outputs[0] = Tensor::output(OperandType::TensorQuant8AsymmSigned).quantized(0.01, -28);
        outputs[1] = eighths(Tensor::output(OperandType::TensorQuant16Asymm));
        let out = run(&DEF, &inputs, &outputs).unwrap();
        assert_eq!(out[0].values::<i8>(), [100]);
        assert_eq!(out[1].values::<u16>(), [8, 16, 24, 33]);
        assert_eq!(out[3].values::<i32>(), [7]);
    }

    #[test]
    fn boxes_in_the_wrong_order_fail() {
        let inputs = inputs(&[0.9], &[[5.0, 0.0, 4.0, 1.0]], &[0]);
        assert!(matches!(run(&DEF, &inputs, &outputs()), Err(OpError::Range { .. })));
    }
}
