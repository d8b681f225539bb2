//! What finds things in pictures, where the shape of what is found is known: boxes, and what lies in them.

use burst_hal::{OperandType, OperationType as Op, OutputSpec};
use half::f16;

use super::Make;
use super::grower::{Grower, Within};
use super::shape::int;
use super::value::{COMMON, F16, F32, FLOATS, I32, Q16, Q16S, TQ8, TQ8S, Value};

pub(super) const RECIPES: &[(Op, Make)] = &[
    (Op::RoiAlign, |g| region(g, Op::RoiAlign)),
    (Op::RoiPooling, |g| region(g, Op::RoiPooling)),
    (Op::HeatmapMaxKeypoint, heatmap_max_keypoint),
    (Op::AxisAlignedBboxTransform, axis_aligned_bbox_transform),
    (Op::DetectionPostprocessing, detection_postprocessing),
];

/// The step of quantized coordinates.
pub(super) const STEP: f32 = 0.125;

/// Coordinates go with floats of their type, and with bytes in 16 bits.
pub(super) fn coordinates(ty: OperandType, dims: &[u32]) -> OutputSpec {
    match ty {
        F32 | F16 => OutputSpec::new(ty, dims),
        _ => OutputSpec::new(Q16, dims).quantized(STEP, 0),
    }
}

/// The stored bytes of numbers that are multiples of [`STEP`].
pub(super) fn stored(ty: OperandType, numbers: &[f32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| match ty {
            F32 => number.to_le_bytes().to_vec(),
            F16 => f16::from_f32(*number).to_le_bytes().to_vec(),
            _ => steps(*number).to_le_bytes().to_vec(),
        })
        .collect()
}

/// How many steps a coordinate is.
#[expect(clippy::cast_possible_truncation, reason = "sizes of pictures are small")]
fn steps(number: f32) -> i16 {
    (number / STEP) as i16
}

/// The corners of a box in a picture of these sizes.
pub(super) fn corners(g: &mut Grower<'_>, height: f32, width: f32) -> [f32; 4] {
    let mut two = |size: f32| {
        let mut place = || (g.rng.real(0.0, size) / STEP).floor() * STEP;
        let (one, other) = (place(), place());
        [one.min(other), one.max(other)]
    };
    let ([left, right], [top, bottom]) = (two(width), two(height));
    [left, top, right, bottom]
}

/// So many boxes, each with a row of `per_row` boxes.
pub(super) fn boxes(
    g: &mut Grower<'_>,
    ty: OperandType,
    [rows, per_row]: [u32; 2],
    (height, width): (f32, f32),
) -> Value {
    let spec = coordinates(ty, &[rows, per_row * 4]);
    let numbers: Vec<f32> = (0..rows * per_row).flat_map(|_| corners(g, height, width)).collect();
    let bytes = stored(spec.ty, &numbers);
    g.given(spec, bytes, Within(0.0, height.max(width)))
}

/// Which picture each of these belongs to: in order.
pub(super) fn batch_split(g: &mut Grower<'_>, rows: u32, batches: u32) -> Value {
    let mut split: Vec<i32> = (0..rows).map(|_| g.rng.int(0, int(batches) - 1)).collect();
    split.sort_unstable();
    let bytes = split.iter().flat_map(|batch| batch.to_le_bytes()).collect();
    g.given(OutputSpec::new(I32, &[rows]), bytes, Within::USUAL)
}

/// A size as a float. Sizes here are small.
pub(super) fn real(size: u32) -> f32 {
    f32::from(u16::try_from(size).unwrap_or(u16::MAX))
}

fn region(g: &mut Grower<'_>, op: Op) {
    let x = g.pictures(COMMON);
    let x = g.tame(x);
    let is_nchw = g.rng.chance(0.3);
    let [n, a, b, c] = [0, 1, 2, 3].map(|axis| x.dims[axis]);
    let [h, w, depth] = if is_nchw { [b, c, a] } else { [a, b, c] };
    let ratios = [g.rng.one_of(&[1.0, 2.0, 4.0]), g.rng.one_of(&[1.0, 2.0, 4.0])];
    let rows = g.rng.size(1, 4);
    let regions = boxes(g, x.ty, [rows, 1], (real(h) * ratios[0], real(w) * ratios[1]));
    let split = batch_split(g, rows, n);
    let sizes = [g.rng.size(1, 3), g.rng.size(1, 3)];
    let mut inputs = vec![x.operand, regions.operand, split.operand];
    inputs.extend(sizes.map(|size| g.b.scalar_i32(int(size))));
    inputs.extend(ratios.map(|ratio| g.real(x.ty, ratio)));
    if op == Op::RoiAlign {
        let samples = [g.rng.int(0, 3), g.rng.int(0, 3)];
        inputs.extend(samples.map(|count| g.b.scalar_i32(count)));
    }
    inputs.push(g.b.scalar_bool(is_nchw));
    let [out_h, out_w] = sizes;
    let dims = if is_nchw { [rows, depth, out_h, out_w] } else { [rows, out_h, out_w, depth] };
    g.apply(op, &inputs, x.with(&dims), x.bound);
}

fn heatmap_max_keypoint(g: &mut Grower<'_>) {
    let ty = g.rng.one_of(COMMON);
    let [rows, size, points] = [g.rng.size(1, 4), g.rng.size(2, 8), g.rng.size(1, 4)];
    let is_nchw = g.rng.chance(0.4);
    let dims = if is_nchw { [rows, points, size, size] } else { [rows, size, size, points] };
    let maps = g.leaf(ty, &dims);
    let around = boxes(g, ty, [rows, 1], (60.0, 60.0));
    let flag = g.b.scalar_bool(is_nchw);
    let scores = maps.with(&[rows, points]);
    let places = coordinates(ty, &[rows, points, 2]);
    let outputs = [(scores, 50.0 * maps.bound), (places, 200.0)];
    g.apply_many(Op::HeatmapMaxKeypoint, &[maps.operand, around.operand, flag], &outputs);
}

fn axis_aligned_bbox_transform(g: &mut Grower<'_>) {
    let ty = g.rng.one_of(&[F32, F16, TQ8, TQ8S]);
    let [rows, classes, batches] = [g.rng.size(1, 5), g.rng.size(1, 3), g.rng.size(1, 2)];
    let from = boxes(g, ty, [rows, 1], (60.0, 60.0));
    let deltas = OutputSpec::new(ty, &[rows, classes * 4]);
    let deltas = match ty {
        F32 | F16 => g.leaf_of(deltas, Within(-1.0, 1.0)),
        _ => {
            let zero_point = g.zero_point(ty);
            g.leaf_of(deltas.quantized(0.05, zero_point), Within::USUAL)
        }
    };
    let split = batch_split(g, rows, batches);
    let sizes = image_sizes(g, ty, batches, 60);
    let inputs = [from.operand, deltas.operand, split.operand, sizes.operand];
    let out = coordinates(ty, &[rows, classes * 4]);
    g.apply(Op::AxisAlignedBboxTransform, &inputs, out, 100.0);
}

/// Heights and widths of pictures that are at least so large.
pub(super) fn image_sizes(g: &mut Grower<'_>, ty: OperandType, batches: u32, least: u32) -> Value {
    let spec = coordinates(ty, &[batches, 2]);
    let sizes: Vec<f32> = (0..2 * batches).map(|_| real(g.rng.size(least, least + 30))).collect();
    let bytes = stored(spec.ty, &sizes);
    g.given(spec, bytes, Within(0.0, 100.0))
}

fn detection_postprocessing(g: &mut Grower<'_>) {
    let ty = g.rng.one_of(FLOATS);
    let [batches, anchors, classes] = [g.rng.size(1, 2), g.rng.size(1, 6), g.rng.size(2, 4)];
    let scores = g.leaf_of(OutputSpec::new(ty, &[batches, anchors, classes]), Within(0.0, 1.0));
    let extra = g.rng.size(4, 6);
    let encodings = OutputSpec::new(ty, &[batches, anchors, extra]);
    let encodings = g.leaf_of(encodings, Within(-1.0, 1.0));
    let placed: Vec<f32> = (0..anchors)
        .flat_map(|_| {
            [g.rng.real(0.0, 1.0), g.rng.real(0.0, 1.0), g.rng.real(0.1, 0.5), g.rng.real(0.1, 0.5)]
        })
        .collect();
    let anchors =
        g.given(OutputSpec::new(ty, &[anchors, 4]), stored(ty, &placed), Within(0.0, 1.0));
    let scales = [10.0, 10.0, 5.0, 5.0].map(|scale| g.real(ty, scale));
    let is_regular = g.rng.chance(0.5);
    let [most, per_anchor, per_class] = [g.rng.size(1, 5), g.rng.size(1, 3), g.rng.size(1, 4)];
    let mut inputs = vec![scores.operand, encodings.operand, anchors.operand];
    inputs.extend(scales);
    inputs.push(g.b.scalar_bool(is_regular));
    inputs.extend([most, per_anchor, per_class].map(|count| g.b.scalar_i32(int(count))));
    let limits = [g.rng.real(0.0, 0.6), g.rng.real(0.1, 0.9)];
    inputs.extend(limits.map(|limit| g.real(ty, limit)));
    let with_background = g.rng.chance(0.5);
    inputs.push(g.b.scalar_bool(with_background));
    let count = if is_regular { most } else { most * per_anchor };
    let outputs = [
        (OutputSpec::new(ty, &[batches, count]), 1.0),
        (OutputSpec::new(ty, &[batches, count, 4]), 10.0),
        (OutputSpec::new(I32, &[batches, count]), 20.0),
        (OutputSpec::new(I32, &[batches]), 20.0),
    ];
    g.apply_many(Op::DetectionPostprocessing, &inputs, &outputs);
}

/// Anchors of proposals: quantized ones have a sign.
pub(super) fn anchors(g: &mut Grower<'_>, ty: OperandType, count: u32) -> Value {
    let numbers: Vec<f32> = (0..count).flat_map(|_| corners(g, 16.0, 16.0)).collect();
    let spec = match ty {
        F32 | F16 => OutputSpec::new(ty, &[count, 4]),
        _ => OutputSpec::new(Q16S, &[count, 4]).quantized(STEP, 0),
    };
    let bytes = stored(spec.ty, &numbers);
    g.given(spec, bytes, Within(0.0, 16.0))
}
