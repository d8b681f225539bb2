//! GENERATE_PROPOSALS: regions worth a closer look, out of anchors at every pixel of a feature map.
//!
//! Inputs: scores `[batches, height, width, anchors]`, deltas `[batches, height, width, anchors * 4]`
//! (both also with channels first), anchors `[anchors, 4]` (x1, y1, x2, y2), image sizes
//! `[batches, 2]` (height, width), pixels of the image per pixel of the map (height, width),
//! regions before and after suppression at most, overlap threshold, smallest size, layout.
//! Outputs: scores, regions and batch of each; their number depends on the data.
//!
//! Per image: anchors are shifted to their pixel and refined as in AXIS_ALIGNED_BBOX_TRANSFORM; the
//! best are kept, those that are not larger than the smallest size or whose centre lies on or
//! past the image's right or lower edge are dropped, doubles are suppressed, and the best are kept
//! again.
//!
//! Where documentation and reference disagree, the answer is the reference's, by whose results the
//! conformance vectors are judged:
//! * quantized image sizes are TENSOR_QUANT16_ASYMM (the documentation says SYMM);
//! * the limit after suppression is none when it is negative; 0 gives no regions (the documentation
//!   says that 0 is no limit either, as it is before suppression).
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::GENERATE_PROPOSALS`.

#![allow(clippy::cast_precision_loss, reason = "pixels of a feature map, computed with in f32")]

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::OperationType;

use crate::op::types::{BOOL, F16, F32, I32, TF16, TF32, TI32, TQ8, TQ8S, TQ16A, TQ16S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, Stop, WithAttributes,
};
use crate::ops::attributes::{Layout, positive_float};
use crate::ops::detection::boxes::{
    Corners, Image, best_first, expect_few, expect_ordered, index, limit, position, refine,
    suppress,
};
use crate::ops::detection::reals::{Reals, RealsMut, expect, expect_eighths};
use crate::ops::quantization::rules::expect_same;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of GENERATE_PROPOSALS.
pub static DEF: OpDef = OpDef {
    code: OperationType::GenerateProposals,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(
        V1_2,
        &[TF32, TF32, TF32, TF32, F32, F32, I32, I32, F32, F32, BOOL],
        &[TF32, TF32, TI32],
    ),
    Form::new(
        V1_2,
        &[TF16, TF16, TF16, TF16, F16, F16, I32, I32, F16, F16, BOOL],
        &[TF16, TF16, TI32],
    ),
    Form::new(
        V1_2,
        &[TQ8, TQ8, TQ16S, TQ16A, F32, F32, I32, I32, F32, F32, BOOL],
        &[TQ8, TQ16A, TI32],
    ),
    Form::new(
        V1_3,
        &[TQ8S, TQ8S, TQ16S, TQ16A, F32, F32, I32, I32, F32, F32, BOOL],
        &[TQ8S, TQ16A, TI32],
    ),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    /// How feature maps are stored.
    layout: Layout,
    /// Pixels of the image per pixel of the map: vertical, horizontal.
    ratios: [f32; 2],
    /// Most boxes of one image before suppression.
    before: usize,
    /// Most boxes of one image after suppression.
    after: usize,
    /// Overlap from which on a box is suppressed.
    threshold: f32,
    /// Sides of the smallest box that counts, in pixels of the image.
    smallest: f32,
}

fn parse(operands: &dyn Operands) -> Result<Attributes, OpError> {
    Ok(Attributes {
        layout: Layout::required(operands, 10)?,
        ratios: [
            positive_float(operands, 4, "height ratio")?,
            positive_float(operands, 5, "width ratio")?,
        ],
        before: match operands.i32(6)? {
            count @ 1.. => limit(count),
            _ => usize::MAX,
        },
        after: limit(operands.i32(7)?),
        threshold: operands.float(8)?,
        smallest: operands.float(9)?,
    })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, Attributes>) -> Result<Inferred, OpError> {
    expect_eighths(args.input(2)?.info)?;
    expect_eighths(args.input(3)?.info)?;
    if let [(scores, _), (regions, _), _] = args.outputs {
        expect_same(args.input(0)?.info, scores)?;
        expect_eighths(regions)?;
    }
    let shapes = [args.dims(0)?, args.dims(1)?, args.dims(2)?, args.dims(3)?];
    Grid::new(attributes?, shapes)?;
    Ok(Inferred::DataDependent)
}

/// The sizes of the feature map, and how it is stored.
#[derive(Debug, Clone, Copy)]
struct Grid {
    batches: usize,
    height: usize,
    width: usize,
    anchors: usize,
    layout: Layout,
}

impl Grid {
    /// Shapes of scores, deltas, anchors and image sizes.
    fn new(attributes: &Attributes, shapes: [&[u32]; 4]) -> Result<Self, OpError> {
        let layout = attributes.layout;
        let [scores, deltas, anchors, images] = shapes;
        let picture = |dims: &[u32]| match <[u32; 4]>::try_from(dims) {
            Ok(dims) => Ok(layout.sizes(dims)),
            Err(_) => Err(OpError::shape("a feature map has 4 dimensions", dims, &[0; 4])),
        };
        let [batches, height, width, count] = picture(scores)?;
        expect(!scores.contains(&0), "scores must not be empty", scores)?;
        expect_few(scores)?;
        let four = count.checked_mul(4).ok_or(OpError::Range { what: "number of anchors" })?;
        if picture(deltas)? != [batches, height, width, four] {
            return Err(OpError::shape("deltas against scores", deltas, scores));
        }
        expect(*anchors == [count, 4], "anchors are rows of 4", anchors)?;
        expect(*images == [batches, 2], "image sizes are rows of 2", images)?;
        Ok(Grid {
            batches: batches as usize,
            height: height as usize,
            width: width as usize,
            anchors: count as usize,
            layout,
        })
    }

    /// Anchors at all pixels.
    fn per_image(&self) -> usize {
        self.height * self.width * self.anchors
    }

    /// Row, column and anchor of a position: anchors side by side, then columns, then rows.
    fn coordinates(&self, at: usize) -> [usize; 3] {
        let (pixel, anchor) = (at / self.anchors, at % self.anchors);
        [pixel / self.width, pixel % self.width, anchor]
    }

    /// Where channel `channel` of a picture with `channels` of them is stored.
    fn stored(&self, image: usize, [row, column]: [usize; 2], channel: usize, of: usize) -> usize {
        match self.layout {
            Layout::Nhwc => ((image * self.height + row) * self.width + column) * of + channel,
            Layout::Nchw => ((image * of + channel) * self.height + row) * self.width + column,
        }
    }
}

fn execute(run: &mut Run<'_, '_>, attributes: &Attributes) -> Result<(), OpError> {
    let [scores, deltas, anchors, sizes] =
        [run.input(0)?, run.input(1)?, run.input(2)?, run.input(3)?];
    let grid = Grid::new(attributes, [scores.dims, deltas.dims, anchors.dims, sizes.dims])?;
    let proposals = Proposals {
        grid,
        scores: Reals::of(&scores)?,
        deltas: Reals::of(&deltas)?,
        anchors: Reals::of(&anchors)?,
        sizes: Reals::of(&sizes)?,
        attributes,
        stop: run.stop,
    };
    for anchor in 0..grid.anchors {
        expect_ordered(proposals.anchors.quad(anchor))?;
    }
    let per_image = grid.per_image();
    let total = per_image * grid.batches;
    // Refined corners of all anchors, then their scores.
    let (numbers, kept) = run.scratch.f32_and_i32(total * 5, total)?;
    let (corners, scores) = numbers.split_at_mut(total * 4);
    let mut count = 0;
    for image in 0..grid.batches {
        let first = image * per_image;
        proposals.refine(image, &mut corners[first * 4..], &mut scores[first..])?;
        count += proposals.choose(image, corners, scores, &mut kept[count..])?;
    }
    write(run.outputs, &kept[..count], corners, scores, per_image)
}

struct Proposals<'a> {
    grid: Grid,
    scores: Reals<'a>,
    deltas: Reals<'a>,
    anchors: Reals<'a>,
    sizes: Reals<'a>,
    attributes: &'a Attributes,
    stop: Stop<'a>,
}

impl Proposals<'_> {
    fn size(&self, image: usize) -> Image {
        Image { height: self.sizes.get(image * 2), width: self.sizes.get(image * 2 + 1) }
    }

    /// Corners and scores of all anchors of one image.
    fn refine(&self, image: usize, corners: &mut [f32], scores: &mut [f32]) -> Result<(), OpError> {
        let grid = &self.grid;
        let size = self.size(image);
        let all = corners.chunks_exact_mut(4).zip(scores).take(grid.per_image());
        for (at, (corners, score)) in all.enumerate() {
            if at % grid.anchors == 0 {
                self.stop.check()?;
            }
            let [row, column, anchor] = grid.coordinates(at);
            let (down, right) =
                (row as f32 * self.attributes.ratios[0], column as f32 * self.attributes.ratios[1]);
            let [x1, y1, x2, y2] = self.anchors.quad(anchor);
            let delta = |i| {
                self.deltas.get(grid.stored(image, [row, column], anchor * 4 + i, grid.anchors * 4))
            };
            let shifted = [x1 + right, y1 + down, x2 + right, y2 + down];
            corners.copy_from_slice(&refine(shifted, std::array::from_fn(delta), size));
            *score = self.scores.get(grid.stored(image, [row, column], anchor, grid.anchors));
        }
        Ok(())
    }

    /// Puts the proposals of one image to the front of `kept`, the best first; returns how many
    /// they are.
    fn choose(
        &self,
        image: usize,
        corners: &[f32],
        scores: &[f32],
        kept: &mut [i32],
    ) -> Result<usize, OpError> {
        let per_image = self.grid.per_image();
        let candidates = &mut kept[..per_image];
        for (at, candidate) in candidates.iter_mut().enumerate() {
            *candidate = index(image * per_image + at)?;
        }
        best_first(candidates, |at| scores[position(at)]);
        let size = self.size(image);
        let mut count = 0;
        for at in 0..per_image.min(self.attributes.before) {
            if self.is_worth(corners_of(corners, candidates[at]), size) {
                candidates[count] = candidates[at];
                count += 1;
            }
        }
        let corners = |at| corners_of(corners, at);
        suppress(
            &mut candidates[..count],
            corners,
            self.attributes.threshold,
            self.attributes.after,
            &self.stop,
        )
    }

    fn is_worth(&self, [x1, y1, x2, y2]: Corners, size: Image) -> bool {
        let (width, height) = (x2 - x1, y2 - y1);
        width > self.attributes.smallest
            && height > self.attributes.smallest
            && x1 + width / 2.0 < size.width
            && y1 + height / 2.0 < size.height
    }
}

fn corners_of(corners: &[f32], at: i32) -> Corners {
    std::array::from_fn(|i| corners[position(at) * 4 + i])
}

fn write(
    outputs: &mut [crate::tensor::TensorMut<'_>],
    kept: &[i32],
    corners: &[f32],
    scores: &[f32],
    per_image: usize,
) -> Result<(), OpError> {
    let got = outputs.len();
    let [out_scores, out_regions, out_batches] = outputs else {
        return Err(OpError::Arity { want: 3, got });
    };
    let count = index(kept.len())?.unsigned_abs();
    out_scores.resize(&[count])?;
    out_regions.resize(&[count, 4])?;
    out_batches.resize(&[count])?;
    let (mut out_scores, mut out_regions) = (RealsMut::of(out_scores)?, RealsMut::of(out_regions)?);
    let out_batches = out_batches.i32_mut()?;
    for (at, chosen) in kept.iter().enumerate() {
        out_scores.set(at, scores[position(*chosen)]);
        out_regions.set_quad(at, corners_of(corners, *chosen));
        out_batches[at] = index(position(*chosen) / per_image)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use burst_hal::{HalVersion, OperandType};

    use super::*;
    use crate::ops::testing::{Tensor, has_form, run};

    /// One row of two pixels, one anchor of 4 x 4, 4 pixels of the image per pixel of the map.
    fn inputs(scores: [f32; 2], post_nms: i32) -> Vec<Tensor> {
        vec![
            Tensor::f32(&[1, 1, 2, 1], &scores),
            Tensor::f32(&[1, 1, 2, 4], &[0.0; 8]),
            Tensor::f32(&[1, 4], &[0.0, 0.0, 4.0, 4.0]),
            Tensor::f32(&[1, 2], &[8.0, 8.0]),
            Tensor::scalar_f32(4.0),
            Tensor::scalar_f32(4.0),
            Tensor::scalar_i32(-1),
            Tensor::scalar_i32(post_nms),
            Tensor::scalar_f32(0.5),
            Tensor::scalar_f32(1.0),
            Tensor::scalar_bool(false),
        ]
    }

    fn outputs() -> Vec<Tensor> {
        let float = || Tensor::output(OperandType::TensorFloat32);
        vec![float(), float(), Tensor::output(OperandType::TensorInt32)]
    }

    #[test]
    fn anchors_stand_at_every_pixel_and_the_best_come_first() {
        let out = run(&DEF, &inputs([0.3, 0.8], -1), &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.8, 0.3]);
        assert_eq!(out[1].values::<f32>(), [4.0, 0.0, 8.0, 4.0, 0.0, 0.0, 4.0, 4.0]);
        assert_eq!(out[2].values::<i32>(), [0, 0]);
    }

    /// Documentation: 0 or less is no limit. Reference: only a negative number is none. We answer
    /// as the reference, so that a client sees the same regions here as on Android.
    #[test]
    fn zero_regions_after_suppression_are_none_but_zero_before_are_all() {
        let out = run(&DEF, &inputs([0.3, 0.8], 0), &outputs()).unwrap();
        let dims: Vec<&[u32]> = out.iter().map(|o| &*o.dims).collect();
        assert_eq!(dims, [&[0][..], &[0, 4], &[0]]);
        let mut inputs = inputs([0.3, 0.8], 1);
        inputs[6] = Tensor::scalar_i32(0);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.8]);
    }

    #[test]
    fn only_so_many_enter_suppression() {
        let mut inputs = inputs([0.3, 0.8], -1);
        inputs[6] = Tensor::scalar_i32(1);
        let out = run(&DEF, &inputs, &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.8]);
    }

    /// Sizes are compared in pixels of the image, whatever the ratio; and a box as large as the
    /// smallest size is too small.
    #[test]
    fn boxes_not_larger_than_the_smallest_size_and_centres_on_the_edge_are_dropped() {
        let mut small = inputs([0.3, 0.8], -1);
        small[9] = Tensor::scalar_f32(4.0);
        assert_eq!(&*run(&DEF, &small, &outputs()).unwrap()[0].dims, [0]);
        // Image 6 wide: the second box is cut to 4..6, 2 wide, centre 5.
        let mut cut = inputs([0.3, 0.8], -1);
        cut[3] = Tensor::f32(&[1, 2], &[8.0, 6.0]);
        cut[9] = Tensor::scalar_f32(1.9);
        assert_eq!(&*run(&DEF, &cut, &outputs()).unwrap()[0].dims, [2]);
        // Image 4 wide: it is cut to a line on the edge.
        cut[3] = Tensor::f32(&[1, 2], &[8.0, 4.0]);
        cut[9] = Tensor::scalar_f32(-1.0);
        let out = run(&DEF, &cut, &outputs()).unwrap();
        assert_eq!(out[0].values::<f32>(), [0.3]);
    }

    #[test]
    fn channels_first_means_the_same() {
        let mut first = inputs([0.3, 0.8], -1);
        first[0] = Tensor::f32(&[1, 1, 1, 2], &[0.3, 0.8]);
        // dx of both pixels, then dy, dw, dh.
        first[1] = Tensor::f32(&[1, 4, 1, 2], &[0.0, -0.25, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0]);
        first[10] = Tensor::scalar_bool(true);
        let out = run(&DEF, &first, &outputs()).unwrap();
        assert_eq!(out[1].values::<f32>(), [3.0, 2.0, 7.0, 6.0, 0.0, 0.0, 4.0, 4.0]);
    }

    /// The image size is TENSOR_QUANT16_ASYMM (code), not SYMM (documentation).
    #[test]
    fn quantized_image_sizes_are_asymmetric_eighths() {
        use OperandType::{
            Bool, Float32, Int32, TensorInt32, TensorQuant8Asymm as Q8, TensorQuant16Asymm as Q16A,
            TensorQuant16Symm as Q16S,
        };
        let form = |image| {
            let inputs =
                [Q8, Q8, Q16S, image, Float32, Float32, Int32, Int32, Float32, Float32, Bool];
            has_form(&DEF, HalVersion::V1_2, &inputs, &[Q8, Q16A, TensorInt32])
        };
        assert!(form(Q16A));
        assert!(!form(Q16S));
        let mut quantized = inputs([0.0; 2], -1);
        quantized[0] = Tensor::u8(&[1, 1, 2, 1], &[100, 200], 0.01, 0);
        quantized[1] = Tensor::u8(&[1, 1, 2, 4], &[128; 8], 0.05, 128);
        quantized[2] = Tensor::new(Q16S, &[1, 4], &[0i16, 0, 32, 32]).quantized(0.125, 0);
        // 40000 eighths would be negative as a signed number.
        quantized[3] = Tensor::new(Q16A, &[1, 2], &[40_000u16, 40_000]).quantized(0.125, 0);
        let outputs = [
            Tensor::output(Q8).quantized(0.01, 0),
            Tensor::output(Q16A).quantized(0.125, 0),
            Tensor::output(TensorInt32),
        ];
        let out = run(&DEF, &quantized, &outputs).unwrap();
        assert_eq!(out[0].values::<u8>(), [200, 100]);
        assert_eq!(out[1].values::<u16>(), [32, 0, 64, 32, 0, 0, 32, 32]);
        quantized[3] = Tensor::new(Q16A, &[1, 2], &[400u16, 400]).quantized(0.25, 0);
        assert!(run(&DEF, &quantized, &outputs).is_err());
    }

    #[test]
    fn an_anchor_in_the_wrong_order_fails() {
        let mut inputs = inputs([0.3, 0.8], -1);
        inputs[2] = Tensor::f32(&[1, 4], &[4.0, 0.0, 0.0, 4.0]);
        assert!(matches!(run(&DEF, &inputs, &outputs()), Err(OpError::Range { .. })));
    }
}
