//! What keeps as many boxes as are good enough: values say how many.

use burst_hal::{OperandType, OperationType as Op, OutputSpec};

use super::Make;
use super::grower::{Grower, Within};
use super::regions::{anchors, batch_split, boxes, coordinates, image_sizes};
use super::value::{COMMON, I32, Value};

pub(super) const RECIPES: &[(Op, Make)] =
    &[(Op::BoxWithNmsLimit, box_with_nms_limit), (Op::GenerateProposals, generate_proposals)];

fn box_with_nms_limit(g: &mut Grower<'_>) {
    let ty = g.rng.one_of(COMMON);
    let threshold = g.rng.real(0.0, 0.8);
    kept_boxes(g, ty, threshold);
}

/// The boxes that are better than this: scores, boxes, classes, batches.
pub(super) fn kept_boxes(g: &mut Grower<'_>, ty: OperandType, threshold: f32) -> Vec<Value> {
    let [rows, classes, batches] = [g.rng.size(1, 5), g.rng.size(2, 4), g.rng.size(1, 2)];
    let scores = scores(g, ty, &[rows, classes]);
    let all = boxes(g, ty, [rows, classes], (60.0, 60.0));
    let split = batch_split(g, rows, batches);
    let real = |g: &mut Grower<'_>, low, high| {
        let number = g.rng.real(low, high);
        g.real(ty, number)
    };
    let limit = g.rng.int(-1, 5);
    let kernel = g.rng.int(0, 2);
    let inputs = [
        scores.operand,
        all.operand,
        split.operand,
        g.real(ty, threshold),
        g.b.scalar_i32(limit),
        g.b.scalar_i32(kernel),
        real(g, 0.1, 0.9),
        real(g, 0.3, 1.0),
        real(g, 0.0, 0.3),
    ];
    let most = rows * (classes - 1);
    let outputs = [
        scores.with(&[0]),
        coordinates(ty, &[0, 4]),
        OutputSpec::new(I32, &[0]),
        OutputSpec::new(I32, &[0]),
    ];
    at_most(g, Op::BoxWithNmsLimit, &inputs, &outputs, most)
}

/// Between 0 and 1, as far as that can be said.
fn scores(g: &mut Grower<'_>, ty: OperandType, dims: &[u32]) -> Value {
    let spec = OutputSpec::new(ty, dims);
    if ty.is_quantized() {
        let zero_point = super::value::lowest(ty);
        return g.leaf_of(spec.quantized(1.0 / 256.0, zero_point), Within::USUAL);
    }
    g.leaf_of(spec, Within(0.0, 1.0))
}

/// An operation whose results have at most so many rows.
fn at_most(
    g: &mut Grower<'_>,
    op: Op,
    inputs: &[u32],
    outputs: &[OutputSpec],
    most: u32,
) -> Vec<Value> {
    let outputs: Vec<_> = outputs.iter().map(|spec| (spec.clone(), 100.0)).collect();
    let made = g.apply_many(op, inputs, &outputs);
    for value in &made {
        g.change(value, |value| {
            value.dims[0] = most;
            value.is_bound = true;
        });
    }
    made
}

fn generate_proposals(g: &mut Grower<'_>) {
    let ty = g.rng.one_of(COMMON);
    let [batches, h, w, count] =
        [g.rng.size(1, 2), g.rng.size(1, 4), g.rng.size(1, 4), g.rng.size(1, 3)];
    let is_nchw = g.rng.chance(0.4);
    let laid_out = |depth| if is_nchw { [batches, depth, h, w] } else { [batches, h, w, depth] };
    let scores = scores(g, ty, &laid_out(count));
    let deltas = OutputSpec::new(ty, &laid_out(4 * count));
    let deltas = if ty.is_quantized() {
        let zero_point = g.zero_point(ty);
        g.leaf_of(deltas.quantized(0.02, zero_point), Within::USUAL)
    } else {
        g.leaf_of(deltas, Within(-1.0, 1.0))
    };
    let anchors = anchors(g, ty, count);
    let sizes = image_sizes(g, ty, batches, 32);
    // Of a box's place in the picture to that among the scores.
    let ratios =
        [g.rng.one_of(&[4.0, 8.0]), g.rng.one_of(&[4.0, 8.0])].map(|ratio| g.real(ty, ratio));
    let before = g.rng.int(-1, 8);
    let after = g.rng.one_of(&[-1, 1, 3, 6]);
    let limits = [g.rng.real(0.2, 0.9), g.rng.real(0.0, 4.0)].map(|limit| g.real(ty, limit));
    let inputs = [
        scores.operand,
        deltas.operand,
        anchors.operand,
        sizes.operand,
        ratios[0],
        ratios[1],
        g.b.scalar_i32(before),
        g.b.scalar_i32(after),
        limits[0],
        limits[1],
        g.b.scalar_bool(is_nchw),
    ];
    let all = h * w * count;
    let most = batches * u32::try_from(after).map_or(all, |after| after.min(all));
    let outputs = [scores.with(&[0]), coordinates(ty, &[0, 4]), OutputSpec::new(I32, &[0])];
    at_most(g, Op::GenerateProposals, &inputs, &outputs, most);
}
