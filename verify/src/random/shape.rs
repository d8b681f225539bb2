//! Operations that move, pick or repeat elements.

use burst_hal::{OperandType, OperationType as Op, OutputSpec};

use super::Make;
use super::grower::{Grower, Within};
use super::value::{ALL, COMMON, F16, F32, FLOATS, I32, NUMBERS, Q8S, Q16, Q16S, TQ8, Value};

pub(super) const RECIPES: &[(Op, Make)] = &[
    (Op::Reshape, reshape),
    (Op::Squeeze, squeeze),
    (Op::Transpose, transpose),
    (Op::ExpandDims, expand_dims),
    (Op::Concatenation, concatenation),
    (Op::Split, split),
    (Op::Slice, slice),
    (Op::StridedSlice, strided_slice),
    (Op::Gather, gather),
    (Op::Tile, tile),
    (Op::Pad, pad),
    (Op::PadV2, pad_v2),
    (Op::DepthToSpace, depth_to_space),
    (Op::SpaceToDepth, space_to_depth),
    (Op::BatchToSpaceNd, batch_to_space_nd),
    (Op::SpaceToBatchNd, space_to_batch_nd),
    (Op::ChannelShuffle, channel_shuffle),
    (Op::TopkV2, topk_v2),
    (Op::Fill, fill),
    (Op::Rank, rank),
];

/// A size as the operations' lists have it. Sizes here are small.
pub(super) fn int(size: u32) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

/// An axis of a value, as it may be said: from the start, or from the end.
pub(super) fn say_axis(g: &mut Grower<'_>, axis: usize, rank: usize) -> u32 {
    let from_start = i32::try_from(axis).unwrap_or(0);
    let from_end = from_start - i32::try_from(rank).unwrap_or(0);
    let axis = if g.rng.chance(0.5) { from_start } else { from_end };
    g.b.scalar_i32(axis)
}

/// Moves elements: what the result means is what the input meant.
fn moved(g: &mut Grower<'_>, op: Op, x: &Value, rest: &[u32], dims: &[u32]) -> Value {
    let inputs: Vec<u32> = std::iter::once(x.operand).chain(rest.iter().copied()).collect();
    g.apply(op, &inputs, x.with(dims), x.bound)
}

fn reshape(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let total = x.elements();
    let divisors: Vec<u32> = (1..=total).filter(|size| total.is_multiple_of(*size)).collect();
    let first = g.rng.one_of(&divisors);
    let dims = match g.rng.below(3) {
        0 => vec![total],
        1 => vec![first, total / first],
        _ => vec![1, first, total / first, 1],
    };
    let mut sizes: Vec<i32> = dims.iter().map(|size| int(*size)).collect();
    if g.rng.chance(0.5) {
        let open = g.rng.below(sizes.len());
        sizes[open] = -1;
    }
    let count = u32::try_from(sizes.len()).unwrap_or(0);
    let list = g.list(&[count], &sizes);
    moved(g, Op::Reshape, &x, &[list], &dims);
}

fn squeeze(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=3);
    let axis = g.rng.below(x.rank());
    let mut dims = x.dims.clone();
    dims.insert(axis, 1);
    let x = expanded(g, &x, axis, &dims);
    dims.remove(axis);
    let list = g.list(&[1], &[i32::try_from(axis).unwrap_or(0)]);
    moved(g, Op::Squeeze, &x, &[list], &dims);
}

fn expand_dims(g: &mut Grower<'_>) {
    let x = g.tensor(NUMBERS, 1..=3);
    let axis = g.rng.below(x.rank() + 1);
    let mut dims = x.dims.clone();
    dims.insert(axis, 1);
    expanded(g, &x, axis, &dims);
}

fn expanded(g: &mut Grower<'_>, x: &Value, axis: usize, dims: &[u32]) -> Value {
    let axis = say_axis(g, axis, dims.len());
    moved(g, Op::ExpandDims, x, &[axis], dims)
}

fn transpose(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let rank = u32::try_from(x.rank()).unwrap_or(0);
    let mut order: Vec<u32> = (0..rank).collect();
    for index in (1..order.len()).rev() {
        let other = g.rng.below(index + 1);
        order.swap(index, other);
    }
    let dims: Vec<u32> = order.iter().map(|axis| x.dims[*axis as usize]).collect();
    let order: Vec<i32> = order.into_iter().map(int).collect();
    let list = g.list(&[rank], &order);
    moved(g, Op::Transpose, &x, &[list], &dims);
}

fn concatenation(g: &mut Grower<'_>) {
    let first = g.tensor(COMMON, 1..=4);
    let axis = g.rng.below(first.rank());
    let mut parts = vec![first.clone()];
    for _ in 0..g.rng.below(3) {
        let is_beside = |value: &Value| {
            let mut dims = value.dims.clone();
            value.ty == first.ty && value.rank() == first.rank() && {
                dims[axis] = first.dims[axis];
                dims == first.dims
            }
        };
        let part = match g.pick(is_beside) {
            Some(part) => part,
            None => {
                let mut dims = first.dims.clone();
                dims[axis] = g.rng.size(1, 4);
                g.leaf(first.ty, &dims)
            }
        };
        parts.push(part);
    }
    let mut dims = first.dims.clone();
    dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
    let bound = parts.iter().map(|part| part.bound).fold(0.0, f32::max);
    let mut inputs: Vec<u32> = parts.iter().map(|part| part.operand).collect();
    inputs.push(g.b.scalar_i32(i32::try_from(axis).unwrap_or(0)));
    let out = g.spec_for(first.ty, &dims, bound);
    g.apply(Op::Concatenation, &inputs, out, bound);
}

fn split(g: &mut Grower<'_>) {
    let x = g.tensor(NUMBERS, 1..=4);
    let axis = g.rng.below(x.rank());
    let size = x.dims[axis];
    let divisors: Vec<u32> =
        (1..=size.min(4)).filter(|parts| size.is_multiple_of(*parts)).collect();
    let parts = g.rng.one_of(&divisors);
    let mut dims = x.dims.clone();
    dims[axis] = size / parts;
    let axis = say_axis(g, axis, x.rank());
    let count = g.b.scalar_i32(int(parts));
    let outputs = vec![(x.with(&dims), x.bound); parts as usize];
    g.apply_many(Op::Split, &[x.operand, axis, count], &outputs);
}

fn slice(g: &mut Grower<'_>) {
    let x = g.tensor(NUMBERS, 1..=4);
    let (mut begins, mut sizes, mut dims) = (Vec::new(), Vec::new(), Vec::new());
    for size in &x.dims {
        let begin = g.rng.size(0, size - 1);
        let length = g.rng.size(1, size - begin);
        begins.push(int(begin));
        let reaches_end = begin + length == *size && g.rng.chance(0.3);
        sizes.push(if reaches_end { -1 } else { int(length) });
        dims.push(length);
    }
    let rank = u32::try_from(x.rank()).unwrap_or(0);
    let lists = [g.list(&[rank], &begins), g.list(&[rank], &sizes)];
    moved(g, Op::Slice, &x, &lists, &dims);
}

/// What a slice takes along one axis, as it may be said.
struct Walk {
    begin: i32,
    end: i32,
    stride: i32,
    /// Whether begin, or end, is to be ignored, and the axis to be dropped.
    masks: [bool; 3],
    count: u32,
}

impl Walk {
    fn new(g: &mut Grower<'_>, size: u32) -> Self {
        let is_dropped = g.rng.chance(0.15);
        let is_backwards = !is_dropped && g.rng.chance(0.3);
        let stride = if is_dropped { 1 } else { g.rng.size(1, 3) };
        let first = g.rng.size(0, size - 1);
        let reach = if is_backwards { first + 1 } else { size - first };
        let reach = if is_dropped { 1 } else { g.rng.size(1, reach) };
        // Backwards the end may lie before the first element, which only a number far below 0 says.
        let (begin, size) = (int(first), int(size));
        let end = if is_backwards { begin - int(reach) } else { begin + int(reach) };
        let is_whole =
            if is_backwards { [begin == size - 1, end == -1] } else { [begin == 0, end == size] };
        let ignores = is_whole.map(|is_whole| is_whole && !is_dropped && g.rng.chance(0.3));
        let mut say = |at: i32, is_ignored: bool| match at {
            _ if is_ignored => g.rng.int(-20, 20),
            -1 => -1 - size,
            at if at < size && g.rng.chance(0.3) => at - size,
            at => at,
        };
        Walk {
            begin: say(begin, ignores[0]),
            end: say(end, ignores[1]),
            stride: if is_backwards { -int(stride) } else { int(stride) },
            masks: [ignores[0], ignores[1], is_dropped],
            count: reach.div_ceil(stride),
        }
    }
}

fn strided_slice(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let walks: Vec<Walk> = x.dims.iter().map(|size| Walk::new(g, *size)).collect();
    let rank = u32::try_from(x.rank()).unwrap_or(0);
    let says: [fn(&Walk) -> i32; 3] = [|walk| walk.begin, |walk| walk.end, |walk| walk.stride];
    let mut rest = Vec::new();
    for said in says {
        let list: Vec<i32> = walks.iter().map(said).collect();
        rest.push(g.list(&[rank], &list));
    }
    for which in 0..3 {
        let bits =
            walks.iter().enumerate().map(|(axis, walk)| i32::from(walk.masks[which]) << axis);
        let mask: i32 = bits.sum();
        rest.push(g.b.scalar_i32(mask));
    }
    let kept = walks.iter().filter(|walk| !walk.masks[2]);
    let mut dims: Vec<u32> = kept.map(|walk| walk.count).collect();
    if dims.is_empty() {
        dims.push(1);
    }
    moved(g, Op::StridedSlice, &x, &rest, &dims);
}

fn gather(g: &mut Grower<'_>) {
    let x = g.tensor(NUMBERS, 1..=3);
    let axis = g.rng.below(x.rank());
    let count = g.rng.size(1, 4);
    let last = int(x.dims[axis]) - 1;
    let indexes: Vec<i32> = (0..count).map(|_| g.rng.int(0, last)).collect();
    let mut dims = x.dims.clone();
    dims[axis] = count;
    let said = say_axis(g, axis, x.rank());
    let list = g.list(&[count], &indexes);
    moved(g, Op::Gather, &x, &[said, list], &dims);
}

fn tile(g: &mut Grower<'_>) {
    let x = g.tensor(NUMBERS, 1..=4);
    let times: Vec<u32> = x.dims.iter().map(|_| g.rng.size(1, 2)).collect();
    let dims: Vec<u32> = x.dims.iter().zip(&times).map(|(size, times)| size * times).collect();
    let times: Vec<i32> = times.into_iter().map(int).collect();
    let rank = u32::try_from(x.rank()).unwrap_or(0);
    let list = g.list(&[rank], &times);
    moved(g, Op::Tile, &x, &[list], &dims);
}

/// Room around a value: the list that says it, and the larger shape.
fn room(g: &mut Grower<'_>, x: &Value) -> (u32, Vec<u32>) {
    let mut pairs = Vec::new();
    let mut dims = Vec::new();
    for size in &x.dims {
        let (before, after) = (g.rng.size(0, 2), g.rng.size(0, 2));
        pairs.extend([int(before), int(after)]);
        dims.push(size + before + after);
    }
    let rank = u32::try_from(x.rank()).unwrap_or(0);
    (g.list(&[rank, 2], &pairs), dims)
}

fn pad(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let (list, dims) = room(g, &x);
    moved(g, Op::Pad, &x, &[list], &dims);
}

fn pad_v2(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let (list, dims) = room(g, &x);
    let filler = match x.ty {
        TQ8 => g.rng.int(0, 255),
        _ => g.rng.int(-100, 100),
    };
    let filler = if x.is_quantized() { g.b.scalar_i32(filler) } else { g.real(x.ty, 0.75) };
    let mut larger = x.clone();
    larger.bound = larger.bound.max(0.75);
    moved(g, Op::PadV2, &larger, &[list, filler], &dims);
}

/// Pictures whose sizes are multiples of what the operation needs, and whether channels come first.
fn blocks(g: &mut Grower<'_>, dims: [u32; 4]) -> (Value, Option<u32>, bool) {
    let is_nchw = g.rng.chance(0.3);
    let [n, h, w, c] = dims;
    let dims = if is_nchw { [n, c, h, w] } else { dims };
    let ty = g.rng.one_of(COMMON);
    let x = match g.pick(|value| COMMON.contains(&value.ty) && value.dims == dims) {
        Some(x) => x,
        None => g.leaf(ty, &dims),
    };
    let flag = (is_nchw || g.rng.chance(0.5)).then(|| g.b.scalar_bool(is_nchw));
    (x, flag, is_nchw)
}

fn laid_out([n, h, w, c]: [u32; 4], is_nchw: bool) -> [u32; 4] {
    if is_nchw { [n, c, h, w] } else { [n, h, w, c] }
}

fn depth_to_space(g: &mut Grower<'_>) {
    let [n, h, w, c] = [1, g.rng.size(1, 4), g.rng.size(1, 4), g.rng.size(1, 3)];
    let (x, flag, is_nchw) = blocks(g, [n, h, w, 4 * c]);
    let rest: Vec<u32> = std::iter::once(g.b.scalar_i32(2)).chain(flag).collect();
    moved(g, Op::DepthToSpace, &x, &rest, &laid_out([n, 2 * h, 2 * w, c], is_nchw));
}

fn space_to_depth(g: &mut Grower<'_>) {
    let [n, h, w, c] = [1, g.rng.size(1, 3), g.rng.size(1, 3), g.rng.size(1, 3)];
    let (x, flag, is_nchw) = blocks(g, [n, 2 * h, 2 * w, c]);
    let rest: Vec<u32> = std::iter::once(g.b.scalar_i32(2)).chain(flag).collect();
    moved(g, Op::SpaceToDepth, &x, &rest, &laid_out([n, h, w, 4 * c], is_nchw));
}

fn batch_to_space_nd(g: &mut Grower<'_>) {
    let [n, h, w, c] = [g.rng.size(1, 2), g.rng.size(1, 3), g.rng.size(1, 3), g.rng.size(1, 3)];
    let (x, flag, is_nchw) = blocks(g, [6 * n, h, w, c]);
    let rest: Vec<u32> = std::iter::once(g.list(&[2], &[2, 3])).chain(flag).collect();
    moved(g, Op::BatchToSpaceNd, &x, &rest, &laid_out([n, 2 * h, 3 * w, c], is_nchw));
}

fn space_to_batch_nd(g: &mut Grower<'_>) {
    let [n, h, w, c] = [g.rng.size(1, 2), g.rng.size(1, 3), g.rng.size(1, 3), g.rng.size(1, 3)];
    // One row and one column of room make the sizes fit.
    let (x, flag, is_nchw) = blocks(g, [n, 2 * h - 1, 2 * w - 1, c]);
    let lists = [g.list(&[2], &[2, 2]), g.list(&[2, 2], &[1, 0, 0, 1])];
    let rest: Vec<u32> = lists.into_iter().chain(flag).collect();
    moved(g, Op::SpaceToBatchNd, &x, &rest, &laid_out([4 * n, h, w, c], is_nchw));
}

fn channel_shuffle(g: &mut Grower<'_>) {
    let x = g.tensor(COMMON, 1..=4);
    let axis = g.rng.below(x.rank());
    let size = x.dims[axis];
    let divisors: Vec<u32> = (1..=size).filter(|groups| size.is_multiple_of(*groups)).collect();
    let groups = g.rng.one_of(&divisors);
    let groups = g.b.scalar_i32(int(groups));
    let said = say_axis(g, axis, x.rank());
    let dims = x.dims.clone();
    moved(g, Op::ChannelShuffle, &x, &[groups, said], &dims);
}

fn topk_v2(g: &mut Grower<'_>) {
    let x = g.tensor(NUMBERS, 1..=4);
    let last = x.dims.len() - 1;
    let count = g.rng.size(1, x.dims[last]);
    let mut dims = x.dims.clone();
    dims[last] = count;
    let count = g.b.scalar_i32(int(count));
    let outputs = [(x.with(&dims), x.bound), (OutputSpec::new(I32, &dims), 20.0)];
    g.apply_many(Op::TopkV2, &[x.operand, count], &outputs);
}

fn fill(g: &mut Grower<'_>) {
    let ty = g.rng.one_of(&[F32, F16, I32]);
    let dims = g.dims(1..=4);
    let sizes: Vec<i32> = dims.iter().map(|size| int(*size)).collect();
    let rank = u32::try_from(dims.len()).unwrap_or(0);
    let list = g.list(&[rank], &sizes);
    let number = g.rng.real(-2.0, 2.0);
    let value = if FLOATS.contains(&ty) { g.real(ty, number) } else { g.b.scalar_i32(7) };
    g.apply(Op::Fill, &[list, value], OutputSpec::new(ty, &dims), 20.0);
}

fn rank(g: &mut Grower<'_>) {
    let alone = [Q16, Q16S, Q8S];
    let x = match g.rng.below(10) {
        0..4 => {
            let ty = g.rng.one_of(&alone);
            g.tensor(&[ty], 1..=4)
        }
        4 => {
            let dims = g.dims(2..=4);
            let axis = g.rng.below(dims.len());
            let scales: Vec<f32> = (0..dims[axis]).map(|_| g.rng.real(0.01, 0.1)).collect();
            let ty = OperandType::TensorQuant8SymmPerChannel;
            let axis = u32::try_from(axis).unwrap_or(0);
            g.leaf_of(OutputSpec::new(ty, &dims).per_channel(&scales, axis), Within::USUAL)
        }
        _ => g.tensor(ALL, 1..=4),
    };
    g.apply(Op::Rank, &[x.operand], OutputSpec::new(OperandType::Int32, &[]), 4.0);
}
